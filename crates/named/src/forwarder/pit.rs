//! The pending Interest table: downstream faces that wait for Data, upstream faces that were asked.
//!
//! Interests share an entry if name, CanBePrefix, MustBeFresh and forwarding hint are equal. An entry
//! expires with the last of its in-records.

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

/// A downstream face that waits for Data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InRecord {
    pub(crate) face: FaceId,
    pub(crate) nonce: [u8; 4],
    pub(crate) token: Option<PitToken>,
    pub(crate) expires: Time,
    /// The bytes that it counts for its face.
    pub(crate) cost: usize,
}

/// An upstream face that the Interest was sent to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutRecord {
    pub(crate) face: FaceId,
    pub(crate) nonce: [u8; 4],
    pub(crate) expires: Time,
    /// The reason of its Nack, if it sent one.
    pub(crate) nack: Option<NackReason>,
}

impl OutRecord {
    /// Whether an answer is still due. A removed face owes none.
    pub(crate) fn is_pending(&self, now: Time, is_alive: impl Fn(FaceId) -> bool) -> bool {
        self.nack.is_none() && self.expires > now && is_alive(self.face)
    }

    /// Whether it sent a Nack for an Interest that has not expired.
    pub(crate) fn is_refused(&self, now: Time) -> bool {
        self.nack.is_some() && self.expires > now
    }
}

/// The index of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PitIndex(u32);

#[derive(Debug)]
pub(crate) struct PitEntry {
    hash: u64,
    /// The Interest as it was forwarded last, or will be forwarded.
    pub(crate) packet: Arc<[u8]>,
    name: Range<usize>,
    hint: Box<[u8]>,
    pub(crate) can_be_prefix: bool,
    must_be_fresh: bool,
    /// Whether the name ends in the digest of a Data packet.
    by_digest: bool,
    pub(crate) in_records: Vec<InRecord>,
    pub(crate) out_records: Vec<OutRecord>,
    expires: Time,
}

impl PitEntry {
    pub(crate) fn name(&self) -> NameRef<'_> {
        NameRef::trusted(&self.packet[self.name.clone()])
    }

    /// Replaces the Interest to forward by another one of this entry.
    pub(crate) fn set_packet(&mut self, packet: Arc<[u8]>) {
        self.name = name_place(&packet);
        self.packet = packet;
    }

    /// The hash of its name.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Whether this face has an in-record.
    pub(crate) fn has_in_record(&self, face: FaceId) -> bool {
        self.in_records.iter().any(|record| record.face == face)
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
    /// By the hash of names. Never iterated.
    table: HashTable<PitIndex>,
    entries: Vec<Option<PitEntry>>,
    free: Vec<PitIndex>,
    expiries: BTreeSet<(Time, PitIndex)>,
    /// The number of entries with names that end in a digest.
    by_digest: usize,
}

impl Pit {
    pub(crate) fn len(&self) -> usize {
        self.expiries.len()
    }

    pub(crate) fn get(&self, place: PitIndex) -> Option<&PitEntry> {
        self.entries.get(place.0 as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, place: PitIndex) -> Option<&mut PitEntry> {
        self.entries.get_mut(place.0 as usize)?.as_mut()
    }

    /// The entry of an Interest. `hash` is that of its name.
    pub(crate) fn find(&self, hash: u64, interest: &Interest<'_>) -> Option<PitIndex> {
        let is_it = |place: &PitIndex| self.get(*place).is_some_and(|entry| entry.is_for(interest));
        self.table.find(hash, is_it).copied()
    }

    /// Adds an entry for an Interest that has none. `packet` is the Interest to forward, `record` its first
    /// in-record.
    pub(crate) fn insert(
        &mut self,
        hash: u64,
        interest: &Interest<'_>,
        packet: Arc<[u8]>,
        record: InRecord,
    ) -> PitIndex {
        let place = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            PitIndex(self.entries.len() as u32 - 1)
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
            in_records: vec![record],
            out_records: Vec::new(),
            expires: record.expires,
        });
        self.expiries.insert((record.expires, place));
        let entries = &self.entries;
        let hash_of = |place: &PitIndex| {
            let entry = entries[place.0 as usize].as_ref();
            entry.map_or(0, |entry| entry.hash)
        };
        self.table.insert_unique(hash, place, hash_of);
        place
    }

    /// Adds an in-record, or replaces the one of the same face.
    pub(crate) fn add_in_record(&mut self, place: PitIndex, record: InRecord) {
        let Some(entry) = self.entries[place.0 as usize].as_mut() else {
            return;
        };
        let mut in_records = entry.in_records.iter_mut();
        match in_records.find(|known| known.face == record.face) {
            // Only the first Interest of a face counts.
            Some(known) => {
                let cost = known.cost;
                *known = InRecord { cost, ..record };
            }
            None => entry.in_records.push(record),
        }
        if record.expires > entry.expires {
            self.expiries.remove(&(entry.expires, place));
            entry.expires = record.expires;
            self.expiries.insert((entry.expires, place));
        }
    }

    pub(crate) fn remove(&mut self, place: PitIndex) -> Option<PitEntry> {
        let entry = self.entries.get_mut(place.0 as usize)?.take()?;
        if let Ok(found) = self.table.find_entry(entry.hash, |other| *other == place) {
            found.remove();
        }
        self.expiries.remove(&(entry.expires, place));
        self.by_digest -= usize::from(entry.by_digest);
        self.free.push(place);
        Some(entry)
    }

    /// Appends the entries that Data answers to `found`. `prefixes` are those of its name; `digest` is
    /// called only if a name in the table ends in a digest.
    pub(crate) fn matches(
        &self,
        name: NameRef<'_>,
        prefixes: &[Prefix],
        digest: impl FnOnce() -> (u64, [u8; 32]),
        found: &mut Vec<PitIndex>,
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

    /// Whether all in-records of an entry have expired.
    pub(crate) fn is_expired(&self, place: PitIndex, now: Time) -> bool {
        self.get(place).is_some_and(|entry| entry.expires <= now)
    }

    /// The next entry whose in-records have all expired.
    pub(crate) fn next_expired(&self, now: Time) -> Option<PitIndex> {
        let (due, place) = self.expiries.first()?;
        (*due <= now).then_some(*place)
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.expiries.first().map(|(due, _)| *due)
    }
}
