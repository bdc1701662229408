//! Discovery by regions of the world, for games with thousands of peers.
//!
//! The vector of a group grows with its members, and every member receives all of them. So the world is divided
//! into regions with a group each. A peer is a member of the group of the region where it is, and observes the
//! groups of the regions around it: it learns of the peers near it, and nobody learns of it who is far away.
//! What discovery costs a peer depends on how crowded its surroundings are, not on how many play.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use prescient_channels::Time;

use crate::data::Data;
use crate::discovery::{
    Discovery, DiscoveryConfig, DiscoveryError, DiscoveryEvent, DiscoveryStatistics, MAX_EVENTS,
    Profile,
};
use crate::interest::Interest;
use crate::name::{ComponentKind, Name};
use crate::sync::{Member, Random};

/// The most regions that a peer is in or observes at once.
pub const MAX_REGIONS: usize = 64;

/// The most groups: those, and others that it has left just now.
const MAX_GROUPS: usize = 2 * MAX_REGIONS;

/// Square regions of a plane, and how far a peer looks.
///
/// ```
/// use prescient_named::Grid;
///
/// let grid = Grid::new(100.0, 30.0)?;
/// assert_eq!(grid.region([250.0, -1.0]), "/2/-1".parse()?);
/// assert_eq!(grid.near([250.0, 50.0]).len(), 1);
/// assert_eq!(grid.near([210.0, 10.0]).len(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    side: f64,
    radius: f64,
}

impl Grid {
    /// Regions with a side, for peers that look so far in each direction. The larger the regions, the more peers
    /// are in each; the smaller, the more of them a peer observes.
    pub fn new(side: f64, radius: f64) -> Result<Self, DiscoveryError> {
        let is_length = |length: f64| length.is_finite() && length > 0.0;
        if !is_length(side) || !is_length(radius) {
            return Err(DiscoveryError::RegionSize);
        }
        // As many as a square with twice the radius can touch.
        let max_joined = ((2.0 * radius / side).floor() + 2.0).powi(2);
        match max_joined <= MAX_REGIONS as f64 {
            true => Ok(Self { side, radius }),
            false => Err(DiscoveryError::TooManyRegions(max_joined as usize)),
        }
    }

    /// The region of a position.
    pub fn region(&self, position: [f64; 2]) -> Name {
        let [x, y] = position.map(|at| self.cell(at));
        region_name(x, y)
    }

    /// The regions that the square with twice the radius around a position touches.
    pub fn near(&self, position: [f64; 2]) -> Vec<Name> {
        let [columns, rows] =
            position.map(|at| self.cell(at - self.radius)..=self.cell(at + self.radius));
        let names = columns.flat_map(|x| rows.clone().map(move |y| region_name(x, y)));
        names.collect()
    }

    fn cell(&self, at: f64) -> i64 {
        (at / self.side).floor() as i64
    }
}

fn region_name(x: i64, y: i64) -> Name {
    let mut name = Name::new();
    for number in [x, y] {
        let pushed = name.push(ComponentKind::GENERIC, number.to_string().as_bytes());
        debug_assert!(pushed.is_ok());
    }
    name
}

/// A prefix that the forwarder must know, or no longer needs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrefixChange {
    /// Register it.
    Register(Name),
    /// Unregister it.
    Unregister(Name),
}

/// A peer's view of the regions around it, without sockets and clocks.
///
/// 1. [`Regions::new`]. Register [`own_prefix`](Self::own_prefix) at the forwarder. All names below the group's
///    need the multicast strategy at all forwarders.
/// 2. [`enter`](Self::enter) at the start, and when the peer has moved to another region or sees other ones.
/// 3. [`handle_interest`](Self::handle_interest) and [`handle_data`](Self::handle_data) with received packets.
/// 4. [`handle_timeout`](Self::handle_timeout) at [`next_timeout`](Self::next_timeout).
/// 5. After each of these calls, [`poll_prefix`](Self::poll_prefix) and [`poll_event`](Self::poll_event) until
///    they return `None`, and [`poll_transmit`](Self::poll_transmit) until it returns false.
#[derive(Debug)]
pub struct Regions {
    config: DiscoveryConfig,
    /// The start of the clock, in seconds since 1970.
    unix_start: u64,
    groups: BTreeMap<Name, Group>,
    peers: BTreeMap<Member, Peer>,
    /// At least the newest own publication in every group that was left for good.
    sequence: u64,
    events: VecDeque<DiscoveryEvent>,
    prefixes: VecDeque<PrefixChange>,
    /// Of groups that were left.
    past: DiscoveryStatistics,
    random: Random,
}

#[derive(Debug)]
struct Group {
    discovery: Discovery,
    /// When to forget the group, if the peer no longer observes it.
    until: Option<Time>,
}

/// A peer in one of the groups.
#[derive(Debug)]
struct Peer {
    profile: Arc<Profile>,
    regions: BTreeSet<Name>,
}

impl Regions {
    /// A peer that is nowhere yet. The groups of regions have the name of the configuration's group with that of
    /// the region appended. `unix` is the present time in seconds since 1970; `key` must be unpredictable.
    pub fn new(now: Time, unix: u64, config: DiscoveryConfig, key: [u8; 16]) -> Self {
        Self {
            config,
            unix_start: unix.saturating_sub(now.as_micros() / 1_000_000),
            groups: BTreeMap::new(),
            peers: BTreeMap::new(),
            sequence: 0,
            events: VecDeque::new(),
            prefixes: VecDeque::new(),
            past: DiscoveryStatistics::default(),
            random: Random::new(key),
        }
    }

    /// The prefix of the own publications in all groups: `/<peer>/<group>`.
    pub fn own_prefix(&self) -> Name {
        // It does not fail: the configuration checked a longer name.
        let own = &self.config.own().name;
        own.join(self.config.group().view()).unwrap_or_default()
    }

    /// Makes the peer a member of a region, and an observer of others: [`Grid`] names those of a plane. A region
    /// that is no longer named is observed until peers have had the time to appear in another one.
    pub fn enter(
        &mut self,
        now: Time,
        region: &Name,
        observed: &[Name],
    ) -> Result<(), DiscoveryError> {
        let wanted: BTreeSet<&Name> = observed.iter().chain([region]).collect();
        if wanted.len() > MAX_REGIONS {
            return Err(DiscoveryError::TooManyRegions(wanted.len()));
        }
        let new = wanted.iter().filter(|it| !self.groups.contains_key(**it));
        let new = new.map(|name| Ok(((*name).clone(), self.config.below(name.view())?)));
        let new = new.collect::<Result<Vec<_>, DiscoveryError>>()?;
        for (name, config) in new {
            let [high, low] = [self.random.draw(), self.random.draw()].map(u128::from);
            let key = (high << 64 | low).to_be_bytes();
            let unix = self.unix_start + now.as_micros() / 1_000_000;
            let mut discovery = Discovery::new(now, unix, config, key);
            discovery.continue_after(self.sequence);
            let prefix = discovery.sync_prefix().to_name();
            self.prefixes.push_back(PrefixChange::Register(prefix));
            let group = Group {
                discovery,
                until: None,
            };
            self.groups.insert(name, group);
        }
        let end = now.after(self.config.timeout());
        for (name, group) in &mut self.groups {
            group.discovery.set_observing(now, name != region);
            group.until = match wanted.contains(name) {
                true => None,
                false => group.until.or(Some(end)),
            };
        }
        while self.groups.len() > MAX_GROUPS {
            let left = self.groups.iter();
            let left = left.filter_map(|(name, group)| Some((group.until?, name)));
            let Some((_, oldest)) = left.min() else { break };
            let oldest = oldest.clone();
            self.forget(&oldest);
        }
        Ok(())
    }

    /// The peers in all groups, in the order of their names.
    pub fn members(&self) -> impl Iterator<Item = (&Member, &Profile)> {
        let peers = self.peers.iter();
        peers.map(|(member, peer)| (member, &*peer.profile))
    }

    /// Counts since the start.
    pub fn statistics(&self) -> DiscoveryStatistics {
        let groups = self.groups.values();
        groups.fold(self.past, |sum, group| {
            sum.plus(group.discovery.statistics())
        })
    }

    /// Handles an Interest: a sync Interest of a group, or a request for the own profile. False if it is
    /// neither.
    pub fn handle_interest(&mut self, now: Time, interest: &Interest<'_>) -> bool {
        // A region's name may begin with that of another one; the longer one is later.
        let mut groups = self.groups.values_mut().rev();
        let is_known = groups.any(|group| group.discovery.handle_interest(now, interest));
        self.collect();
        is_known
    }

    /// Handles Data. False if it is not a profile that was requested.
    pub fn handle_data(&mut self, now: Time, data: &Data<'_>) -> bool {
        let mut groups = self.groups.values_mut();
        let is_known = groups.any(|group| group.discovery.handle_data(now, data));
        self.collect();
        is_known
    }

    /// Sends heartbeats and requests, and removes peers and regions that were left.
    pub fn handle_timeout(&mut self, now: Time) {
        let groups = self.groups.iter();
        let over = groups.filter(|(_, group)| group.until.is_some_and(|until| until <= now));
        let over: Vec<Name> = over.map(|(name, _)| name.clone()).collect();
        for name in &over {
            self.forget(name);
        }
        for group in self.groups.values_mut() {
            if group.discovery.next_timeout() <= now {
                group.discovery.handle_timeout(now);
            }
        }
        self.collect();
    }

    /// When to call [`handle_timeout`](Self::handle_timeout); `None` before the first [`enter`](Self::enter).
    pub fn next_timeout(&self) -> Option<Time> {
        let groups = self.groups.values();
        let times = groups.flat_map(|group| [Some(group.discovery.next_timeout()), group.until]);
        times.flatten().min()
    }

    /// Replaces the content of `bytes` by the next packet to send. False if there is none.
    pub fn poll_transmit(&mut self, bytes: &mut Vec<u8>) -> bool {
        let mut groups = self.groups.values_mut();
        groups.any(|group| group.discovery.poll_transmit(bytes))
    }

    /// The next event: a peer is in one of the groups, or in none of them any more.
    pub fn poll_event(&mut self) -> Option<DiscoveryEvent> {
        self.events.pop_front()
    }

    /// The next prefix to register or to unregister at the forwarder.
    pub fn poll_prefix(&mut self) -> Option<PrefixChange> {
        self.prefixes.pop_front()
    }

    /// Removes a group, and its peers that are in no other one.
    fn forget(&mut self, region: &Name) {
        let Some(group) = self.groups.remove(region) else {
            return;
        };
        self.sequence = self.sequence.max(group.discovery.sequence());
        self.past = self.past.plus(group.discovery.statistics());
        let prefix = group.discovery.sync_prefix().to_name();
        self.prefixes.push_back(PrefixChange::Unregister(prefix));
        let members = self.peers.iter();
        let members = members.filter(|(_, peer)| peer.regions.contains(region));
        let members: Vec<Member> = members.map(|(member, _)| member.clone()).collect();
        for member in &members {
            self.leave(region, member);
        }
    }

    /// Merges the events of all groups.
    fn collect(&mut self) {
        let mut events = Vec::new();
        for (region, group) in &mut self.groups {
            while let Some(event) = group.discovery.poll_event() {
                events.push((region.clone(), event));
            }
        }
        for (region, event) in events {
            match event {
                DiscoveryEvent::Joined { member, profile } => self.join(region, member, profile),
                DiscoveryEvent::Left { member } => self.leave(&region, &member),
            }
        }
    }

    fn join(&mut self, region: Name, member: Member, profile: Arc<Profile>) {
        let other = self.peers.keys().find(|it| it.name == member.name).cloned();
        match other {
            // An older start of a peer that has started again, in a group where it is not over yet.
            Some(other) if other.boot > member.boot => return,
            Some(other) if other.boot < member.boot => {
                self.peers.remove(&other);
                self.queue_event(DiscoveryEvent::Left { member: other });
            }
            _ => {}
        }
        if let Some(peer) = self.peers.get_mut(&member) {
            peer.regions.insert(region);
            return;
        }
        let peer = Peer {
            profile: profile.clone(),
            regions: [region].into(),
        };
        self.peers.insert(member.clone(), peer);
        self.queue_event(DiscoveryEvent::Joined { member, profile });
    }

    fn leave(&mut self, region: &Name, member: &Member) {
        let Some(peer) = self.peers.get_mut(member) else {
            return;
        };
        if peer.regions.remove(region) && peer.regions.is_empty() {
            self.peers.remove(member);
            let member = member.clone();
            self.queue_event(DiscoveryEvent::Left { member });
        }
    }

    fn queue_event(&mut self, event: DiscoveryEvent) {
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}
