//! The content store: Data that was asked for, kept for others who ask.
//!
//! One packet for each name, the last that came; the one that was used least recently makes room for
//! the next. Names are in their canonical order, so all that start with a prefix lie together.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::Arc;

use prescient_transport::Time;

use crate::data::Data;
use crate::interest::{DIGEST_COMPONENT, Interest};
use crate::name::{ComponentKind, NameRef};
use crate::signature::sha256;
use crate::tlv::name_place;

/// What keeping a packet takes besides its bytes, about.
const OVERHEAD: usize = 256;

/// How many packets with a prefix are looked at for a fresh one. Not finding one that there is costs
/// a packet from upstream; looking through all of them could cost everybody's time.
const MAX_EXAMINED: usize = 64;

#[derive(Debug)]
pub(crate) struct Store {
    names: BTreeMap<Key, usize>,
    entries: Vec<Entry>,
    free: Vec<usize>,
    /// Ends of a list through `entries`, by when they were used last.
    oldest: usize,
    newest: usize,
    bytes: usize,
    max_bytes: usize,
}

/// No entry.
const NONE: usize = usize::MAX;

#[derive(Debug)]
struct Entry {
    packet: Arc<[u8]>,
    fresh_until: Time,
    /// Neighbours in the list.
    older: usize,
    newer: usize,
}

impl Store {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            names: BTreeMap::new(),
            entries: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            bytes: 0,
            max_bytes,
        }
    }

    /// Packets that are kept.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// What they take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps Data, of which `packet` is the whole.
    pub(crate) fn insert(&mut self, now: Time, data: &Data<'_>, packet: &Arc<[u8]>) {
        let size = packet.len() + OVERHEAD;
        if size > self.max_bytes {
            return;
        }
        if let Some(place) = self.names.remove(data.name().as_bytes()) {
            self.release(place);
        }
        while self.bytes + size > self.max_bytes {
            self.evict();
        }
        let entry = Entry {
            packet: packet.clone(),
            fresh_until: now.after(data.freshness()),
            older: NONE,
            newer: NONE,
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place] = entry;
                place
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        };
        self.names.insert(Key::of(packet), place);
        self.bytes += size;
        self.append(place);
    }

    /// Data that answers an Interest, if there is any.
    ///
    /// Among several names with a prefix it is the last in the canonical order that will do: of
    /// versions and numbers in a sequence the highest, and the one that is most likely fresh.
    pub(crate) fn find(&mut self, now: Time, interest: &Interest<'_>) -> Option<Arc<[u8]>> {
        let place = self.find_place(now, interest)?;
        self.unlink(place);
        self.append(place);
        Some(self.entries[place].packet.clone())
    }

    fn find_place(&self, now: Time, interest: &Interest<'_>) -> Option<usize> {
        let name = interest.name();
        let will_do =
            |place: usize| !interest.must_be_fresh() || self.entries[place].fresh_until > now;
        if interest.can_be_prefix() {
            let end = after_all(name.as_bytes());
            let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let all = (Bound::Included(name.as_bytes()), end);
            let range = self.names.range::<[u8], _>(all);
            let mut places = range.rev().take(MAX_EXAMINED).map(|(_, place)| *place);
            return places
                .find(|place| will_do(*place))
                .or_else(|| self.find_by_digest(name).filter(|place| will_do(*place)));
        }
        let exact = self.names.get(name.as_bytes()).copied();
        let found = exact.or_else(|| self.find_by_digest(name))?;
        will_do(found).then_some(found)
    }

    /// Data whose name and digest are together a name.
    fn find_by_digest(&self, full: NameRef<'_>) -> Option<usize> {
        let last = full.last()?;
        if last.kind != ComponentKind::IMPLICIT_DIGEST {
            return None;
        }
        let name = &full.as_bytes()[..full.as_bytes().len() - DIGEST_COMPONENT];
        let place = *self.names.get(name)?;
        let digest = sha256(&[&self.entries[place].packet]);
        (digest == last.value).then_some(place)
    }

    fn evict(&mut self) {
        let place = self.oldest;
        let name = Key::of(&self.entries[place].packet);
        self.names.remove(&name);
        self.release(place);
    }

    /// Forgets an entry whose name was removed.
    fn release(&mut self, place: usize) {
        self.unlink(place);
        let packet = std::mem::take(&mut self.entries[place].packet);
        self.bytes -= packet.len() + OVERHEAD;
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
}

/// The least bytes that come after everything with this prefix; `None` if nothing does.
fn after_all(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut after = prefix[..=last].to_vec();
    after[last] += 1;
    Some(after)
}

/// The name of a packet, as part of it.
#[derive(Debug)]
struct Key {
    packet: Arc<[u8]>,
    name: Range<usize>,
}

impl Key {
    fn of(packet: &Arc<[u8]>) -> Self {
        Self {
            packet: packet.clone(),
            name: name_place(packet),
        }
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        &self.packet[self.name.clone()]
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let (own, others): (&[u8], &[u8]) = (self.borrow(), other.borrow());
        own.cmp(others)
    }
}
