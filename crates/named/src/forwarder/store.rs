//! The content store: a cache of solicited Data.
//!
//! It has one packet per name, the last that arrived, and evicts the least recently used one. All lookups
//! are by hash, because a search tree over names costs a processor cache miss per level. For Interests with
//! CanBePrefix, each prefix has a list of the packets below it, the newest first.

use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;
use prescient_channels::Time;

use crate::data::Data;
use crate::hash::Prefix;
use crate::interest::Interest;
use crate::name::{ComponentKind, NameRef};
use crate::signature::sha256;
use crate::tlv::name_place;

/// The approximate overhead of an entry, in bytes, with its places in the tables.
const OVERHEAD: usize = 192;

/// The additional overhead for each component of the name.
const COMPONENT_OVERHEAD: usize = 64;

/// The most packets below a prefix that a lookup examines, which bounds the work for an Interest. A packet
/// that is not found is requested upstream.
const MAX_EXAMINED: usize = 64;

#[derive(Debug)]
pub(crate) struct Store {
    /// Entries by the hash of their names.
    names: HashTable<usize>,
    /// The newest entry below each prefix, by the prefix's hash.
    prefixes: HashTable<PrefixList>,
    entries: Vec<Entry>,
    free: Vec<usize>,
    /// Ends of the list of all entries in the order of their last use.
    oldest: usize,
    newest: usize,
    len: usize,
    bytes: usize,
    max_bytes: usize,
}

/// No entry.
const NONE: usize = usize::MAX;

#[derive(Debug)]
struct Entry {
    packet: Arc<[u8]>,
    name: Range<usize>,
    hash: u64,
    fresh_until: Time,
    /// Adjacent entries in the order of last use.
    older: usize,
    newer: usize,
    /// Adjacent entries in the list of each proper prefix of the name, from one component on.
    below: Vec<Below>,
}

/// The entries below a prefix. The prefix itself is not stored, so entries below another one with the same
/// hash and length may be among them.
#[derive(Debug)]
struct PrefixList {
    hash: u64,
    /// The number of components less one: the index of the list in [`Entry::below`].
    depth: usize,
    newest: usize,
}

#[derive(Clone, Copy, Debug)]
struct Below {
    prefix: u64,
    older: usize,
    newer: usize,
}

impl Entry {
    fn name(&self) -> &[u8] {
        &self.packet[self.name.clone()]
    }

    fn size(&self) -> usize {
        size(self.packet.len(), self.below.len() + 1)
    }
}

fn size(packet: usize, components: usize) -> usize {
    packet + OVERHEAD + components * COMPONENT_OVERHEAD
}

impl Store {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            names: HashTable::new(),
            prefixes: HashTable::new(),
            entries: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            len: 0,
            bytes: 0,
            max_bytes,
        }
    }

    /// The number of packets.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The bytes that they count.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds Data. `packet` is the whole packet, `prefixes` are those of its name.
    pub(crate) fn insert(
        &mut self,
        now: Time,
        data: &Data<'_>,
        prefixes: &[Prefix],
        packet: &Arc<[u8]>,
    ) {
        let [proper @ .., whole] = prefixes else {
            return;
        };
        // The empty prefix has no list: it is not the name of an Interest.
        let proper = proper.get(1..).unwrap_or_default();
        let size = size(packet.len(), proper.len() + 1);
        if size > self.max_bytes {
            return;
        }
        if let Some(place) = self.find_name(whole.hash, data.name().as_bytes()) {
            self.remove(place);
        }
        while self.bytes + size > self.max_bytes {
            self.remove(self.oldest);
        }
        let place = self.free.pop().unwrap_or(self.entries.len());
        let mut below = match self.entries.get_mut(place) {
            Some(reused) => std::mem::take(&mut reused.below),
            None => Vec::with_capacity(proper.len()),
        };
        below.extend(proper.iter().map(|prefix| Below {
            prefix: prefix.hash,
            older: NONE,
            newer: NONE,
        }));
        let entry = Entry {
            packet: packet.clone(),
            name: name_place(packet),
            hash: whole.hash,
            fresh_until: now.after(data.freshness()),
            older: NONE,
            newer: NONE,
            below,
        };
        match self.entries.get_mut(place) {
            Some(reused) => *reused = entry,
            None => self.entries.push(entry),
        }
        self.len += 1;
        self.bytes += size;
        let entries = &self.entries;
        self.names
            .insert_unique(whole.hash, place, |&other| entries[other].hash);
        self.append(place);
        self.link_below(place);
    }

    /// Data that answers an Interest; among several names, the one that arrived last. `prefixes` are those
    /// of the Interest's name.
    pub(crate) fn find(
        &mut self,
        now: Time,
        interest: &Interest<'_>,
        prefixes: &[Prefix],
    ) -> Option<Arc<[u8]>> {
        let place = self.find_place(now, interest, prefixes)?;
        self.unlink(place);
        self.append(place);
        Some(self.entries[place].packet.clone())
    }

    fn find_place(&self, now: Time, interest: &Interest<'_>, prefixes: &[Prefix]) -> Option<usize> {
        let whole = prefixes.last()?;
        let name = interest.name();
        let will_do =
            |place: &usize| !interest.must_be_fresh() || self.entries[*place].fresh_until > now;
        let exact = self.find_name(whole.hash, name.as_bytes());
        if let Some(found) = exact.filter(will_do) {
            return Some(found);
        }
        if let Some(found) = self.find_by_digest(name, prefixes).filter(will_do) {
            return Some(found);
        }
        if !interest.can_be_prefix() {
            return None;
        }
        let is_below = |place: &usize| self.entries[*place].name().starts_with(name.as_bytes());
        // The empty prefix is the first.
        let depth = prefixes.len().checked_sub(2)?;
        self.below(depth, whole.hash)
            .take(MAX_EXAMINED)
            .find(|place| will_do(place) && is_below(place))
    }

    fn find_name(&self, hash: u64, name: &[u8]) -> Option<usize> {
        let is_it = |place: &usize| self.entries[*place].name() == name;
        self.names.find(hash, is_it).copied()
    }

    /// The entry that a name with a digest at its end requests.
    fn find_by_digest(&self, full: NameRef<'_>, prefixes: &[Prefix]) -> Option<usize> {
        let [.., without, _] = prefixes else {
            return None;
        };
        let (name, last) = full.as_bytes().split_at(without.end);
        let last = NameRef::trusted(last).get(0)?;
        if last.kind != ComponentKind::IMPLICIT_DIGEST {
            return None;
        }
        let place = self.find_name(without.hash, name)?;
        let digest = sha256(&[&self.entries[place].packet]);
        (digest == last.value).then_some(place)
    }

    /// Entries below a prefix, the newest first.
    fn below(&self, depth: usize, hash: u64) -> impl Iterator<Item = usize> {
        let is_it = |list: &PrefixList| list.hash == hash && list.depth == depth;
        let list = self.prefixes.find(hash, is_it);
        let mut next = list.map_or(NONE, |list| list.newest);
        std::iter::from_fn(move || {
            let place = next;
            next = self.entries.get(place)?.below.get(depth)?.older;
            Some(place)
        })
    }

    fn remove(&mut self, place: usize) {
        self.unlink(place);
        self.unlink_below(place);
        let entry = &mut self.entries[place];
        self.bytes -= entry.size();
        self.len -= 1;
        let hash = entry.hash;
        entry.packet = Arc::default();
        entry.below.clear();
        if let Ok(found) = self.names.find_entry(hash, |&other| other == place) {
            found.remove();
        }
        self.free.push(place);
    }

    fn unlink(&mut self, place: usize) {
        let Entry { older, newer, .. } = self.entries[place];
        match older {
            NONE => self.oldest = newer,
            _ => self.entries[older].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            _ => self.entries[newer].older = older,
        }
    }

    fn append(&mut self, place: usize) {
        self.entries[place].older = self.newest;
        self.entries[place].newer = NONE;
        match self.newest {
            NONE => self.oldest = place,
            newest => self.entries[newest].newer = place,
        }
        self.newest = place;
    }

    /// Puts an entry first in the lists of its prefixes.
    fn link_below(&mut self, place: usize) {
        for depth in 0..self.entries[place].below.len() {
            let hash = self.entries[place].below[depth].prefix;
            let is_it = |list: &PrefixList| list.hash == hash && list.depth == depth;
            match self.prefixes.entry(hash, is_it, |list| list.hash) {
                Slot::Vacant(room) => {
                    room.insert(PrefixList {
                        hash,
                        depth,
                        newest: place,
                    });
                }
                Slot::Occupied(mut found) => {
                    let list = found.get_mut();
                    let older = std::mem::replace(&mut list.newest, place);
                    self.entries[place].below[depth].older = older;
                    self.entries[older].below[depth].newer = place;
                }
            }
        }
    }

    fn unlink_below(&mut self, place: usize) {
        for depth in 0..self.entries[place].below.len() {
            let Below {
                prefix,
                older,
                newer,
            } = self.entries[place].below[depth];
            if older != NONE {
                self.entries[older].below[depth].newer = newer;
            }
            if newer != NONE {
                self.entries[newer].below[depth].older = older;
                continue;
            }
            let is_it = |list: &PrefixList| list.hash == prefix && list.depth == depth;
            let Ok(mut found) = self.prefixes.find_entry(prefix, is_it) else {
                continue;
            };
            match older {
                NONE => {
                    found.remove();
                }
                older => found.get_mut().newest = older,
            }
        }
    }
}
