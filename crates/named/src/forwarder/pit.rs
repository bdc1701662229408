//! The pending Interest table: who waits for which names, and whom they were asked of.
//!
//! Interests are one entry if they ask for the same: name, whether Data may have a longer one,
//! whether it must be fresh, and forwarding hint. An entry is forgotten when the last that waits for
//! it gives up.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashTable;
use prescient_channels::Time;

use super::face::FaceId;
use crate::hash::Prefix;
use crate::interest::{DIGEST_COMPONENT, Interest};
use crate::link::{NackReason, PitToken};
use crate::name::{ComponentKind, NameRef};
use crate::tlv::name_place;

/// Somebody who waits for Data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InRecord {
    pub(crate) face: FaceId,
    pub(crate) nonce: [u8; 4],
    pub(crate) token: Option<PitToken>,
    pub(crate) expires: Time,
    /// The bytes that its face is charged with.
    pub(crate) charge: usize,
}

/// Somebody who was asked for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutRecord {
    pub(crate) face: FaceId,
    pub(crate) nonce: [u8; 4],
    pub(crate) expires: Time,
    /// It said no.
    pub(crate) nack: Option<NackReason>,
}

impl OutRecord {
    /// Whether an answer is still due. From a face that is gone, none is.
    pub(crate) fn is_pending(&self, now: Time, is_alive: impl Fn(FaceId) -> bool) -> bool {
        self.nack.is_none() && self.expires > now && is_alive(self.face)
    }

    /// Whether it refused, so short a time ago that it need not be asked again.
    pub(crate) fn is_refused(&self, now: Time) -> bool {
        self.nack.is_some() && self.expires > now
    }
}

/// The place of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PitPlace(u32);

#[derive(Debug)]
pub(crate) struct PitEntry {
    hash: u64,
    /// The Interest that was forwarded last, or is to be forwarded.
    pub(crate) packet: Arc<[u8]>,
    name: Range<usize>,
    hint: Box<[u8]>,
    pub(crate) can_be_prefix: bool,
    must_be_fresh: bool,
    /// Whether it asks for Data by its digest.
    by_digest: bool,
    pub(crate) waiting: Vec<InRecord>,
    pub(crate) asked: Vec<OutRecord>,
    expires: Time,
}

impl PitEntry {
    pub(crate) fn name(&self) -> NameRef<'_> {
        NameRef::trusted(&self.packet[self.name.clone()])
    }

    /// Takes over another Interest of this entry, to be forwarded in place of the last.
    pub(crate) fn set_packet(&mut self, packet: Arc<[u8]>) {
        self.name = name_place(&packet);
        self.packet = packet;
    }

    /// The hash of its name.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Whether this face waits.
    pub(crate) fn is_awaited_by(&self, face: FaceId) -> bool {
        self.waiting.iter().any(|record| record.face == face)
    }

    fn is_for(&self, interest: &Interest<'_>) -> bool {
        self.can_be_prefix == interest.can_be_prefix()
            && self.must_be_fresh == interest.must_be_fresh()
            && self.name() == interest.name()
            && *self.hint == *interest.hint_bytes()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Pit {
    /// Looked up by the hash of names, never walked through.
    table: HashTable<PitPlace>,
    entries: Vec<Option<PitEntry>>,
    free: Vec<PitPlace>,
    expiries: BTreeSet<(Time, PitPlace)>,
    /// How many entries ask for Data by its digest.
    by_digest: usize,
}

impl Pit {
    pub(crate) fn len(&self) -> usize {
        self.expiries.len()
    }

    pub(crate) fn get(&self, place: PitPlace) -> Option<&PitEntry> {
        self.entries.get(place.0 as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, place: PitPlace) -> Option<&mut PitEntry> {
        self.entries.get_mut(place.0 as usize)?.as_mut()
    }

    /// The entry that an Interest belongs to. `hash` is that of its name.
    pub(crate) fn find(&self, hash: u64, interest: &Interest<'_>) -> Option<PitPlace> {
        let is_it = |place: &PitPlace| self.get(*place).is_some_and(|entry| entry.is_for(interest));
        self.table.find(hash, is_it).copied()
    }

    /// A new entry, for an Interest that has none. `packet` is the Interest as it is forwarded, `record`
    /// who waits for it.
    pub(crate) fn insert(
        &mut self,
        hash: u64,
        interest: &Interest<'_>,
        packet: Arc<[u8]>,
        record: InRecord,
    ) -> PitPlace {
        let place = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            PitPlace(self.entries.len() as u32 - 1)
        });
        let last = interest.name().last();
        let by_digest = last.is_some_and(|last| last.kind == ComponentKind::IMPLICIT_DIGEST);
        self.by_digest += usize::from(by_digest);
        self.entries[place.0 as usize] = Some(PitEntry {
            hash,
            name: name_place(&packet),
            packet,
            hint: interest.hint_bytes().into(),
            can_be_prefix: interest.can_be_prefix(),
            must_be_fresh: interest.must_be_fresh(),
            by_digest,
            waiting: vec![record],
            asked: Vec::new(),
            expires: record.expires,
        });
        self.expiries.insert((record.expires, place));
        let entries = &self.entries;
        let hash_of = |place: &PitPlace| {
            let entry = entries[place.0 as usize].as_ref();
            entry.map_or(0, |entry| entry.hash)
        };
        self.table.insert_unique(hash, place, hash_of);
        place
    }

    /// Notes who waits, in place of what was noted about the same face.
    pub(crate) fn wait(&mut self, place: PitPlace, record: InRecord) {
        let Some(entry) = self.entries[place.0 as usize].as_mut() else {
            return;
        };
        let mut waiting = entry.waiting.iter_mut();
        match waiting.find(|known| known.face == record.face) {
            // It was charged for the first, which may have been the longer.
            Some(known) => {
                let charge = known.charge;
                *known = InRecord { charge, ..record };
            }
            None => entry.waiting.push(record),
        }
        if record.expires > entry.expires {
            self.expiries.remove(&(entry.expires, place));
            entry.expires = record.expires;
            self.expiries.insert((entry.expires, place));
        }
    }

    pub(crate) fn remove(&mut self, place: PitPlace) -> Option<PitEntry> {
        let entry = self.entries.get_mut(place.0 as usize)?.take()?;
        if let Ok(found) = self.table.find_entry(entry.hash, |other| *other == place) {
            found.remove();
        }
        self.expiries.remove(&(entry.expires, place));
        self.by_digest -= usize::from(entry.by_digest);
        self.free.push(place);
        Some(entry)
    }

    /// Adds the entries that Data answers. `prefixes` are those of its name; `digest` is called only
    /// if somebody asks by digest.
    pub(crate) fn matches(
        &self,
        name: NameRef<'_>,
        prefixes: &[Prefix],
        digest: impl FnOnce() -> (u64, [u8; 32]),
        found: &mut Vec<PitPlace>,
    ) {
        for (count, prefix) in prefixes.iter().enumerate() {
            let is_whole = count + 1 == prefixes.len();
            let bytes = &name.as_bytes()[..prefix.end];
            found.extend(self.table.iter_hash(prefix.hash).filter(|place| {
                self.get(**place).is_some_and(|entry| {
                    (is_whole || entry.can_be_prefix) && entry.name().as_bytes() == bytes
                })
            }));
        }
        if self.by_digest == 0 {
            return;
        }
        let (hash, digest) = digest();
        found.extend(self.table.iter_hash(hash).filter(|place| {
            self.get(**place).is_some_and(|entry| {
                let full = entry.name().as_bytes();
                entry.by_digest
                    && full.len() == name.as_bytes().len() + DIGEST_COMPONENT
                    && full.starts_with(name.as_bytes())
                    && full.ends_with(&digest)
            })
        }));
    }

    /// Whether nobody waits at an entry any more.
    pub(crate) fn is_expired(&self, place: PitPlace, now: Time) -> bool {
        self.get(place).is_some_and(|entry| entry.expires <= now)
    }

    /// The next entry for which nobody waits any more.
    pub(crate) fn next_expired(&self, now: Time) -> Option<PitPlace> {
        let (due, place) = self.expiries.first()?;
        (*due <= now).then_some(*place)
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.expiries.first().map(|(due, _)| *due)
    }
}
