//! State Vector Sync, version 3: members of a group learn the newest sequence number of each other.
//!
//! A member that publishes sends its whole state vector to the group, in an Interest that nothing answers
//! and that forwarders send to all members. A member that receives an outdated vector waits for a random
//! time of up to 200 ms, in which another one may answer (suppression), and then sends its own.
//!
//! `SyncGroup` is that protocol, without sockets and clocks; [`Discovery`](crate::Discovery) uses it.

mod vector;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use prescient_channels::Time;

pub use vector::Member;

use crate::data::{Data, DataBuilder};
use crate::error::DecodeError;
use crate::hash::Hasher;
use crate::interest::{Interest, InterestBuilder};
use crate::name::{ComponentKind, Name, NameRef};
use crate::signature::{Signer, Verifier};
use vector::{StateVector, entry_len};

/// The time between Interests of a group in which nothing is published; random by a tenth.
const PERIODIC: Duration = Duration::from_secs(30);

/// The longest wait before an outdated vector is answered.
const SUPPRESSION: Duration = Duration::from_millis(200);

/// The lifetime of a sync Interest.
const LIFETIME: Duration = Duration::from_secs(1);

/// The most bytes of a state vector, which leaves room for the packets around it.
const MAX_VECTOR: usize = 7000;

/// The longest name of a member or a group, in bytes; longer ones are ignored.
pub(crate) const MAX_MEMBER_NAME: usize = 256;

/// How far in the future a boot time may be, in seconds; later ones are forged or of a wrong clock.
const MAX_FUTURE: u64 = 86_400;

/// The most members that are remembered after they were removed.
const MAX_REMOVED: usize = 1024;

/// The state of one member of a group.
#[derive(Debug)]
pub(crate) struct SyncGroup {
    own: Member,
    /// The newest own publication.
    sequence: u64,
    published_at: Time,
    /// `/<group>/v=3`.
    prefix: Name,
    keys: Arc<(Signer, Verifier)>,
    /// The other members.
    entries: BTreeMap<Member, Entry>,
    /// An upper bound of the bytes of the own vector.
    size: usize,
    /// Removed members with their last sequence numbers, until a time. Vectors of members that have not
    /// removed them yet do not bring them back.
    removed: BTreeMap<Member, (u64, Time)>,
    /// In suppression: the newest sequence numbers in vectors that arrived since, of members that are known
    /// here.
    received: Option<StateVector>,
    /// When to send an Interest, or when suppression ends.
    sync_at: Time,
    /// Whether an Interest is to be sent now.
    is_due: bool,
    /// The start of the clock, in seconds since 1970.
    unix_start: u64,
    random: Random,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    sequence: u64,
    updated: Time,
}

/// Pseudo-random numbers, unpredictable without the key.
#[derive(Debug)]
pub(crate) struct Random {
    hasher: Hasher,
    drawn: u64,
}

impl Random {
    pub(crate) fn new(key: [u8; 16]) -> Self {
        Self {
            hasher: Hasher::new(key),
            drawn: 0,
        }
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.hasher.hash(&self.drawn.to_be_bytes())
    }

    pub(crate) fn nonce(&mut self) -> [u8; 4] {
        (self.draw() as u32).to_be_bytes()
    }

    /// From 0 to 1.
    fn fraction(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A span that differs from this one by up to a tenth.
    pub(crate) fn around(&mut self, span: Duration) -> Duration {
        span.mul_f64(0.9 + 0.2 * self.fraction())
    }

    /// The specification's suppression timeout: seldom short, so that few members answer at once.
    fn suppression(&mut self) -> Duration {
        let unused = 1.0 - self.fraction();
        SUPPRESSION.mul_f64(1.0 - (-10.0 * unused).exp())
    }
}

impl SyncGroup {
    /// A member that has published nothing yet. `unix` is the time since 1970 in seconds.
    pub(crate) fn new(
        now: Time,
        unix: u64,
        own: Member,
        prefix: Name,
        keys: Arc<(Signer, Verifier)>,
        key: [u8; 16],
    ) -> Self {
        let mut random = Random::new(key);
        Self {
            size: entry_len(&own),
            own,
            sequence: 0,
            published_at: now,
            prefix,
            keys,
            entries: BTreeMap::new(),
            removed: BTreeMap::new(),
            received: None,
            sync_at: now.after(random.around(PERIODIC)),
            is_due: false,
            unix_start: unix.saturating_sub(now.as_micros() / 1_000_000),
            random,
        }
    }

    pub(crate) fn own(&self) -> &Member {
        &self.own
    }

    /// `/<group>/v=3`.
    pub(crate) fn prefix(&self) -> NameRef<'_> {
        self.prefix.view()
    }

    /// The newest own publication; 0 for none.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Continues after publications of an earlier membership.
    pub(crate) fn continue_after(&mut self, sequence: u64) {
        self.sequence = self.sequence.max(sequence);
    }

    /// Whether this is the name of a sync Interest of the group.
    pub(crate) fn is_sync(&self, name: NameRef<'_>) -> bool {
        name.starts_with(self.prefix.view())
    }

    /// Counts a publication, and sends the vector to the group.
    pub(crate) fn publish(&mut self, now: Time) {
        self.sequence = self.sequence.saturating_add(1);
        self.published_at = now;
        self.received = None;
        self.sync_at = now.after(self.random.around(PERIODIC));
        self.is_due = true;
    }

    /// When a member has published last, as far as known.
    pub(crate) fn updated(&self, member: &Member) -> Option<Time> {
        self.entries.get(member).map(|entry| entry.updated)
    }

    /// Removes a member. Until a time it returns only with a higher sequence number.
    pub(crate) fn remove(&mut self, member: &Member, until: Time) {
        let Some(entry) = self.entries.remove(member) else {
            return;
        };
        self.size -= entry_len(member);
        if self.removed.len() == MAX_REMOVED {
            let oldest = self.removed.iter().min_by_key(|(_, (_, until))| *until);
            if let Some(oldest) = oldest.map(|(member, _)| member.clone()) {
                self.removed.remove(&oldest);
            }
        }
        self.removed.insert(member.clone(), (entry.sequence, until));
    }

    /// Handles a sync Interest and returns the members that have published. An Interest without a valid
    /// signature, or with a boot time too far in the future, changes nothing.
    pub(crate) fn handle_interest(
        &mut self,
        now: Time,
        interest: &Interest<'_>,
    ) -> Result<Vec<Member>, SyncError> {
        let data = Data::decode(interest.parameters().unwrap_or_default())?;
        if data.name() != self.prefix.view() {
            return Err(SyncError::OtherGroup);
        }
        let verified = data.verify(&self.keys.1);
        verified.map_err(|_| SyncError::Untrusted)?;
        let vector = StateVector::decode(data.content())?;
        let unix = self.unix_start + now.as_micros() / 1_000_000;
        let latest = unix.saturating_add(MAX_FUTURE);
        if vector.0.keys().any(|member| member.boot > latest) {
            return Err(SyncError::Future);
        }
        Ok(self.handle_vector(now, vector))
    }

    fn handle_vector(&mut self, now: Time, vector: StateVector) -> Vec<Member> {
        let mut updates = Vec::new();
        for (member, &sequence) in &vector.0 {
            if *member == self.own {
                // From before a restart that kept the boot time.
                self.sequence = self.sequence.max(sequence);
            } else if self.update(now, member, sequence) {
                updates.push(member.clone());
            }
        }
        let is_outdated = self.is_outdated(&vector, |_| true);
        let must_answer = self.is_outdated(&vector, |updated| now.since(updated) >= SUPPRESSION);
        match &mut self.received {
            Some(received) => {
                for (member, sequence) in vector.0 {
                    if self.entries.contains_key(&member) || member == self.own {
                        received.raise(member, sequence);
                    }
                }
            }
            None if must_answer => {
                self.received = Some(vector);
                self.sync_at = now.after(self.random.suppression());
            }
            // A vector that lacks only what was published just now: the sender will receive that, too.
            None if is_outdated => {}
            None => self.sync_at = now.after(self.random.around(PERIODIC)),
        }
        updates
    }

    /// True if the sequence number is higher than the known one.
    fn update(&mut self, now: Time, member: &Member, sequence: u64) -> bool {
        let new = Entry {
            sequence,
            updated: now,
        };
        if let Some(entry) = self.entries.get_mut(member) {
            let is_newer = sequence > entry.sequence;
            if is_newer {
                *entry = new;
            }
            return is_newer;
        }
        let removed = self.removed.get(member);
        let is_old = removed.is_some_and(|(last, until)| sequence <= *last && now < *until);
        let is_long = member.name.view().as_bytes().len() > MAX_MEMBER_NAME;
        if is_old || is_long || self.size + entry_len(member) > MAX_VECTOR {
            return false;
        }
        self.removed.remove(member);
        self.size += entry_len(member);
        self.entries.insert(member.clone(), new);
        true
    }

    /// Whether a vector lacks a publication that is known here, of those members whose last one was at a time
    /// that passes the filter.
    fn is_outdated(&self, vector: &StateVector, counts: impl Fn(Time) -> bool) -> bool {
        let own = self.sequence > vector.get(&self.own) && counts(self.published_at);
        let mut entries = self.entries.iter();
        own || entries
            .any(|(member, entry)| entry.sequence > vector.get(member) && counts(entry.updated))
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if self.sync_at > now {
            return;
        }
        let is_needed = match self.received.take() {
            Some(received) => self.is_outdated(&received, |_| true),
            None => true,
        };
        self.is_due |= is_needed;
        self.sync_at = now.after(self.random.around(PERIODIC));
        self.removed.retain(|_, (_, until)| *until > now);
    }

    pub(crate) fn next_timeout(&self) -> Time {
        self.sync_at
    }

    /// Appends the next sync Interest. False if there is none.
    pub(crate) fn poll_transmit(&mut self, bytes: &mut Vec<u8>) -> bool {
        if !std::mem::take(&mut self.is_due) {
            return false;
        }
        let mut vector = StateVector::default();
        vector.raise(self.own.clone(), self.sequence);
        for (member, entry) in &self.entries {
            vector.raise(member.clone(), entry.sequence);
        }
        let (mut content, mut data) = (Vec::new(), Vec::new());
        vector.encode(&mut content);
        let nonce = self.random.nonce();
        let name = self.prefix.view();
        let signed = DataBuilder::new(name)
            .content(&content)
            .sign(&self.keys.0, &mut data);
        let interest = InterestBuilder::new(name)
            .lifetime(LIFETIME)
            .nonce(nonce)
            .parameters(&data);
        // It does not fail: names and vectors are limited.
        signed.is_ok() && interest.encode(bytes).is_ok()
    }
}

/// Why a sync Interest changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncError {
    Malformed(DecodeError),
    /// The vector is another group's.
    OtherGroup,
    /// The signature is not valid.
    Untrusted,
    /// A boot time is too far in the future.
    Future,
}

impl From<DecodeError> for SyncError {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error)
    }
}

/// `/<group>/v=3`.
pub(crate) fn sync_prefix(group: &Name) -> Result<Name, crate::error::NameError> {
    let mut prefix = group.clone();
    prefix.push_number(ComponentKind::VERSION, 3)?;
    Ok(prefix)
}
