//! Discovery: which peers are in a group, with the key and the schema fingerprint of each.
//!
//! Every peer is a member of a sync group (`sync`) and publishes once per heartbeat, so that its sequence
//! number grows as long as it runs. Its first publication is its profile, which other peers request once. A
//! peer without a new number for some seconds has left; one that restarts has another boot time. There is no
//! server, and no peer has a special role.
//!
//! The vector of a group is sent once per heartbeat and peer. For thousands of peers, use one group per
//! region of the world: `Regions` (`regions.rs`) is a member of one and observes those around it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use prescient_channels::Time;
use thiserror::Error;

use crate::data::{Data, DataBuilder};
use crate::error::{DecodeError, NameError};
use crate::interest::{Interest, InterestBuilder};
use crate::name::{ComponentKind, Name, NameRef};
use crate::signature::{Signer, Verifier};
use crate::sync::{MAX_MEMBER_NAME, Member, Random, SyncGroup, sync_prefix};
use crate::tlv::{self, Reader};

/// The most bytes of [`Profile::details`].
pub const MAX_DETAILS: usize = 1024;

/// The longest name of a peer or a group, in bytes.
pub const MAX_PEER_NAME: usize = MAX_MEMBER_NAME;

/// The most events that wait for [`Discovery::poll_event`]; beyond it the oldest are dropped.
pub(crate) const MAX_EVENTS: usize = 1024;

/// The most packets that wait for [`Discovery::poll_transmit`].
const MAX_QUEUED: usize = 256;

/// How long caches answer with a profile.
const FRESHNESS: Duration = Duration::from_secs(2);

/// The lifetime of an Interest for a profile.
const LIFETIME: Duration = Duration::from_secs(1);

/// The time from one Interest for a profile to the next.
const RETRY: Duration = Duration::from_millis(500);

/// How long a peer that has left is remembered, in timeouts.
const MEMORY: u32 = 20;

/// The most profiles of peers that have left.
const MAX_PAST: usize = 1024;

/// What a peer publishes about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The public Ed25519 key that its Data is signed with.
    pub key: [u8; 32],
    /// The fingerprint of its schema. Peers with different ones cannot read each other's state.
    pub fingerprint: [u8; 16],
    /// Further bytes for the game, at most [`MAX_DETAILS`].
    pub details: Vec<u8>,
}

const PROFILE_KEY: u32 = 1101;
const PROFILE_FINGERPRINT: u32 = 1103;
const PROFILE_DETAILS: u32 = 1105;

impl Profile {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        tlv::write_element(&mut bytes, PROFILE_KEY, &self.key);
        tlv::write_element(&mut bytes, PROFILE_FINGERPRINT, &self.fingerprint);
        tlv::write_element(&mut bytes, PROFILE_DETAILS, &self.details);
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let mut next = |kind| {
            let element = reader.element()?;
            let is_it = element.kind == kind;
            is_it
                .then_some(element.value)
                .ok_or(DecodeError::Missing { kind })
        };
        let key = tlv::read_array(PROFILE_KEY, next(PROFILE_KEY)?)?;
        let fingerprint = tlv::read_array(PROFILE_FINGERPRINT, next(PROFILE_FINGERPRINT)?)?;
        let details = next(PROFILE_DETAILS)?.to_vec();
        if details.len() > MAX_DETAILS {
            return Err(DecodeError::BadLength {
                kind: PROFILE_DETAILS,
                length: details.len(),
            });
        }
        // Later versions may append elements.
        Ok(Self {
            key,
            fingerprint,
            details,
        })
    }
}

/// The configuration of a peer's discovery.
#[derive(Clone, Debug)]
pub struct DiscoveryConfig {
    group: Name,
    own: Member,
    profile: Profile,
    keys: Arc<(Signer, Verifier)>,
    heartbeat: Duration,
    timeout: Duration,
}

/// Why a configuration was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// The name of the peer or of the group is empty or longer than [`MAX_PEER_NAME`].
    #[error("a name of {0} bytes: give one of 1 to {MAX_PEER_NAME}")]
    NameLength(usize),
    /// A name has too many components for the names of the protocol.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The profile's details are longer than [`MAX_DETAILS`].
    #[error("{0} bytes of details: give at most {MAX_DETAILS}")]
    DetailsLength(usize),
    /// The heartbeat is zero, or the timeout is shorter than two heartbeats.
    #[error("a peer must have two heartbeats before it times out")]
    Timeout,
    /// A peer would be in more than [`MAX_REGIONS`](crate::MAX_REGIONS) regions.
    #[error("{0} regions: give at most {max}", max = crate::MAX_REGIONS)]
    TooManyRegions(usize),
    /// The side of a region, or the radius, is not a positive number.
    #[error("regions need a side and a radius above zero")]
    RegionSize,
}

impl DiscoveryConfig {
    /// A peer with a name that no other one in the group has. All peers of a group use the same `group`.
    ///
    /// `boot` is the time of the start in seconds since 1970. It must be higher than at any earlier start
    /// of a peer with this name.
    pub fn new(
        group: Name,
        peer: Name,
        boot: u64,
        profile: Profile,
    ) -> Result<Self, DiscoveryError> {
        for name in [&group, &peer] {
            let length = name.view().as_bytes().len();
            if !(1..=MAX_PEER_NAME).contains(&length) {
                return Err(DiscoveryError::NameLength(length));
            }
        }
        if profile.details.len() > MAX_DETAILS {
            return Err(DiscoveryError::DetailsLength(profile.details.len()));
        }
        let own = Member { name: peer, boot };
        profile_name(&group, &own, u64::MAX)?;
        sync_prefix(&group)?;
        Ok(Self {
            group,
            own,
            profile,
            keys: Arc::new((Signer::digest(), Verifier::digest())),
            heartbeat: Duration::from_millis(1500),
            timeout: Duration::from_secs(6),
        })
    }

    /// Signs with a key that all peers of the group share, and ignores packets without its signature. Every
    /// peer with the key is trusted not to publish for another one. Without a key, anybody can.
    pub fn key(mut self, key: &[u8]) -> Self {
        self.keys = Arc::new((Signer::hmac(key, None), Verifier::hmac(key)));
        self
    }

    /// The time between two publications, and the time without one after which a peer has left; 1.5 and 6
    /// seconds by default. All peers of a group should use the same.
    pub fn heartbeat(
        mut self,
        heartbeat: Duration,
        timeout: Duration,
    ) -> Result<Self, DiscoveryError> {
        if heartbeat.is_zero() || timeout < 2 * heartbeat {
            return Err(DiscoveryError::Timeout);
        }
        (self.heartbeat, self.timeout) = (heartbeat, timeout);
        Ok(self)
    }

    /// The same peer in a group whose name is this one's with further components.
    pub(crate) fn below(&self, region: NameRef<'_>) -> Result<Self, DiscoveryError> {
        let group = self.group.join(region)?;
        let Member { name, boot } = self.own.clone();
        let config = Self::new(group, name, boot, self.profile.clone())?;
        Ok(Self {
            keys: self.keys.clone(),
            heartbeat: self.heartbeat,
            timeout: self.timeout,
            ..config
        })
    }

    pub(crate) fn group(&self) -> &Name {
        &self.group
    }

    pub(crate) fn own(&self) -> &Member {
        &self.own
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }
}

/// A peer has joined or left.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiscoveryEvent {
    /// A peer is in the group.
    Joined {
        /// The peer.
        member: Member,
        /// Its profile, which does not change until it leaves.
        profile: Arc<Profile>,
    },
    /// A peer has not published for the timeout, or has started again with another boot time.
    Left {
        /// The peer.
        member: Member,
    },
}

/// Counts of a [`Discovery`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveryStatistics {
    /// Sync Interests that were sent.
    pub syncs_sent: u64,
    /// Sync Interests that were received and valid.
    pub syncs_received: u64,
    /// Packets that were malformed or had no valid signature.
    pub refused: u64,
    /// Interests for profiles that were sent.
    pub requests: u64,
    /// Interests for the own profile that were answered.
    pub answers: u64,
}

impl DiscoveryStatistics {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            syncs_sent: self.syncs_sent + other.syncs_sent,
            syncs_received: self.syncs_received + other.syncs_received,
            refused: self.refused + other.refused,
            requests: self.requests + other.requests,
            answers: self.answers + other.answers,
        }
    }
}

/// A peer's view of its group, without sockets and clocks.
///
/// 1. [`Discovery::new`]. Register [`sync_prefix`](Self::sync_prefix) and [`own_prefix`](Self::own_prefix) at
///    the forwarder; the former needs the multicast strategy at all forwarders. If programs with NDNts are in the
///    group, all register the group's name instead, as NDNts does: forwarders look for the longest name only.
/// 2. [`handle_interest`](Self::handle_interest) and [`handle_data`](Self::handle_data) with received packets.
/// 3. [`handle_timeout`](Self::handle_timeout) at [`next_timeout`](Self::next_timeout).
/// 4. After each of these calls, [`poll_transmit`](Self::poll_transmit) until it returns false, and
///    [`poll_event`](Self::poll_event) until it returns `None`.
#[derive(Debug)]
pub struct Discovery {
    group: Name,
    sync: SyncGroup,
    keys: Arc<(Signer, Verifier)>,
    heartbeat: Duration,
    timeout: Duration,
    heartbeat_at: Time,
    is_observer: bool,
    profile: Vec<u8>,
    peers: BTreeMap<Member, Peer>,
    /// Profiles of peers that have left, until a time: they need not be requested when those return.
    past: BTreeMap<Member, (Arc<Profile>, Time)>,
    /// Names of requested profiles.
    requests: BTreeMap<Name, Member>,
    queue: VecDeque<Vec<u8>>,
    events: VecDeque<DiscoveryEvent>,
    random: Random,
    statistics: DiscoveryStatistics,
}

/// A peer that has published lately.
#[derive(Debug)]
struct Peer {
    profile: Option<Arc<Profile>>,
    /// When to request its profile; `None` if it is known or not needed.
    request_at: Option<Time>,
}

impl Discovery {
    /// Joins the group. `unix` is the present time in seconds since 1970; `key` must be unpredictable.
    pub fn new(now: Time, unix: u64, config: DiscoveryConfig, key: [u8; 16]) -> Self {
        let prefix = sync_prefix(&config.group).unwrap_or_default();
        let keys = config.keys.clone();
        let mut random = Random::new(key);
        let [high, low] = [random.draw(), random.draw()].map(u128::from);
        let sync_key = (high << 64 | low).to_be_bytes();
        Self {
            sync: SyncGroup::new(now, unix, config.own, prefix, keys, sync_key),
            group: config.group,
            keys: config.keys,
            heartbeat: config.heartbeat,
            timeout: config.timeout,
            heartbeat_at: now,
            is_observer: false,
            profile: config.profile.encode(),
            peers: BTreeMap::new(),
            past: BTreeMap::new(),
            requests: BTreeMap::new(),
            queue: VecDeque::new(),
            events: VecDeque::new(),
            random,
            statistics: DiscoveryStatistics::default(),
        }
    }

    /// The prefix of the group's sync Interests: `/<group>/v=3`.
    pub fn sync_prefix(&self) -> NameRef<'_> {
        self.sync.prefix()
    }

    /// The prefix of the own publications: `/<peer>/<group>`.
    pub fn own_prefix(&self) -> Name {
        // It does not fail: the configuration checked a longer name.
        let own = &self.sync.own().name;
        own.join(self.group.view()).unwrap_or_default()
    }

    /// This peer.
    pub fn own(&self) -> &Member {
        self.sync.own()
    }

    /// Makes this peer an observer, or a member again. An observer learns who is in the group but sends no
    /// vectors, so that the others do not learn of it; if they knew it as a member, it leaves for them when
    /// it times out. A peer starts as a member.
    pub fn set_observing(&mut self, now: Time, is_observer: bool) {
        if self.is_observer != is_observer {
            self.is_observer = is_observer;
            self.heartbeat_at = now;
        }
    }

    /// The newest own publication; 0 for none.
    pub(crate) fn sequence(&self) -> u64 {
        self.sync.sequence()
    }

    /// Continues after publications of an earlier membership in the group.
    pub(crate) fn continue_after(&mut self, sequence: u64) {
        self.sync.continue_after(sequence);
    }

    /// The peers that are in the group, in the order of their names.
    pub fn members(&self) -> impl Iterator<Item = (&Member, &Profile)> {
        let peers = self.peers.iter();
        peers.filter_map(|(member, peer)| Some((member, peer.profile.as_deref()?)))
    }

    /// Counts since the start.
    pub fn statistics(&self) -> DiscoveryStatistics {
        self.statistics
    }

    /// Handles an Interest: a sync Interest of the group, or a request for the own profile. False if it is
    /// neither.
    pub fn handle_interest(&mut self, now: Time, interest: &Interest<'_>) -> bool {
        if self.sync.is_sync(interest.name()) {
            match self.sync.handle_interest(now, interest) {
                Ok(updates) => {
                    self.statistics.syncs_received += 1;
                    for member in updates {
                        self.handle_publication(now, member);
                    }
                }
                Err(_) => self.statistics.refused += 1,
            }
            return true;
        }
        if !interest.name().starts_with(self.own_prefix().view()) {
            return false;
        }
        self.answer(interest);
        true
    }

    /// Handles Data. False if it is not a profile that was requested.
    pub fn handle_data(&mut self, now: Time, data: &Data<'_>) -> bool {
        let Some(member) = self.requests.get(&data.name().to_name()) else {
            return false;
        };
        let member = member.clone();
        let profile = data.verify(&self.keys.1).ok();
        let profile = profile.and_then(|()| Profile::decode(data.content()).ok());
        match profile {
            Some(profile) => {
                self.requests.remove(&data.name().to_name());
                self.join(now, &member, Arc::new(profile));
            }
            None => self.statistics.refused += 1,
        }
        true
    }

    /// Sends heartbeats and requests, and removes peers that have left.
    pub fn handle_timeout(&mut self, now: Time) {
        self.sync.handle_timeout(now);
        if self.heartbeat_at <= now && !self.is_observer {
            self.heartbeat_at = now.after(self.random.around(self.heartbeat));
            self.sync.publish(now);
        }
        let is_gone = |member: &&Member| {
            let updated = self.sync.updated(member);
            updated.is_none_or(|updated| now.since(updated) >= self.timeout)
        };
        let gone: Vec<Member> = self.peers.keys().filter(is_gone).cloned().collect();
        for member in gone {
            self.leave(now, &member);
        }
        let is_due = |peer: &Peer| peer.request_at.is_some_and(|due| due <= now);
        let due = self.peers.iter().filter(|(_, peer)| is_due(peer));
        let due: Vec<Member> = due.map(|(member, _)| member.clone()).collect();
        for member in due {
            self.request(now, &member);
        }
        self.past.retain(|_, (_, until)| *until > now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn next_timeout(&self) -> Time {
        let peers = self.peers.iter().flat_map(|(member, peer)| {
            let updated = self.sync.updated(member);
            [updated.map(|it| it.after(self.timeout)), peer.request_at]
        });
        let sync = self.sync.next_timeout();
        let own = match self.is_observer {
            true => sync,
            false => sync.min(self.heartbeat_at),
        };
        peers.flatten().fold(own, Time::min)
    }

    /// Replaces the content of `bytes` by the next packet to send. False if there is none.
    pub fn poll_transmit(&mut self, bytes: &mut Vec<u8>) -> bool {
        bytes.clear();
        if !self.is_observer && self.sync.poll_transmit(bytes) {
            self.statistics.syncs_sent += 1;
            return true;
        }
        let Some(packet) = self.queue.pop_front() else {
            return false;
        };
        *bytes = packet;
        true
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<DiscoveryEvent> {
        self.events.pop_front()
    }

    fn handle_publication(&mut self, now: Time, member: Member) {
        if self.peers.contains_key(&member) {
            return;
        }
        let newest = self.boots(&member.name).max();
        let is_newest = newest.is_none_or(|newest| newest < member.boot);
        let peer = Peer {
            profile: None,
            // An older start of a peer that has started again is over.
            request_at: is_newest.then_some(now),
        };
        self.peers.insert(member.clone(), peer);
        let known = self.past.get(&member).filter(|_| is_newest);
        if let Some((profile, _)) = known {
            let profile = profile.clone();
            self.join(now, &member, profile);
        }
    }

    /// The boot times of all peers with a name.
    fn boots(&self, name: &Name) -> impl Iterator<Item = u64> {
        let first = Member {
            name: name.clone(),
            boot: 0,
        };
        let last = Member {
            name: name.clone(),
            boot: u64::MAX,
        };
        let same = self.peers.range(first..=last);
        same.map(|(member, _)| member.boot)
    }

    fn join(&mut self, now: Time, member: &Member, profile: Arc<Profile>) {
        let older: Vec<u64> = self.boots(&member.name).collect();
        for boot in older.into_iter().filter(|boot| *boot < member.boot) {
            let name = member.name.clone();
            self.leave(now, &Member { name, boot });
        }
        let Some(peer) = self.peers.get_mut(member) else {
            return;
        };
        peer.request_at = None;
        if peer.profile.is_none() {
            peer.profile = Some(profile.clone());
            self.queue_event(DiscoveryEvent::Joined {
                member: member.clone(),
                profile,
            });
        }
    }

    fn leave(&mut self, now: Time, member: &Member) {
        let until = now.after(self.timeout.saturating_mul(MEMORY));
        self.sync.remove(member, until);
        self.requests.retain(|_, requested| requested != member);
        let peer = self.peers.remove(member);
        if let Some(profile) = peer.and_then(|peer| peer.profile) {
            if self.past.len() < MAX_PAST {
                self.past.insert(member.clone(), (profile, until));
            }
            self.queue_event(DiscoveryEvent::Left {
                member: member.clone(),
            });
        }
    }

    fn request(&mut self, now: Time, member: &Member) {
        let retry_at = now.after(self.random.around(RETRY));
        let Some(peer) = self.peers.get_mut(member) else {
            return;
        };
        let Ok(name) = profile_name(&self.group, member, 1) else {
            // A name with too many components, which has no publications.
            peer.request_at = None;
            return;
        };
        peer.request_at = Some(retry_at);
        let nonce = self.random.nonce();
        let mut packet = Vec::new();
        let interest = InterestBuilder::new(name.view())
            .must_be_fresh()
            .lifetime(LIFETIME)
            .nonce(nonce);
        if interest.encode(&mut packet).is_ok() && self.queue_packet(packet) {
            self.statistics.requests += 1;
        }
        self.requests.insert(name, member.clone());
    }

    /// Answers a request for any of the own publications with the profile.
    fn answer(&mut self, interest: &Interest<'_>) {
        let own = self.sync.own();
        let last = interest.name().last();
        let sequence = last.and_then(|last| last.number()).unwrap_or(0);
        let name = profile_name(&self.group, own, sequence);
        let is_published = (1..=self.sync.sequence()).contains(&sequence);
        if !is_published || name.is_ok_and(|name| name.view() != interest.name()) {
            return;
        }
        let mut packet = Vec::new();
        let signed = DataBuilder::new(interest.name())
            .freshness(FRESHNESS)
            .content(&self.profile)
            .sign(&self.keys.0, &mut packet);
        if signed.is_ok() && self.queue_packet(packet) {
            self.statistics.answers += 1;
        }
    }

    fn queue_packet(&mut self, packet: Vec<u8>) -> bool {
        let has_room = self.queue.len() < MAX_QUEUED;
        if has_room {
            self.queue.push_back(packet);
        }
        has_room
    }

    fn queue_event(&mut self, event: DiscoveryEvent) {
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

/// The name of a publication: `/<peer>/<group>/t=<boot>/seq=<sequence>`.
fn profile_name(group: &Name, member: &Member, sequence: u64) -> Result<Name, NameError> {
    let mut name = member.name.join(group.view())?;
    name.push_number(ComponentKind::TIMESTAMP, member.boot)?;
    name.push_number(ComponentKind::SEQUENCE, sequence)?;
    Ok(name)
}
