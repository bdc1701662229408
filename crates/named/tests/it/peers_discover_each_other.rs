//! Discovery by State Vector Sync over forwarders with lossy links: peers join, leave, return and are
//! partitioned.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::common::*;
use prescient_named::*;
use prescient_tests::seeds::over_seeds;

const SECOND: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(10);
const UNIX: u64 = 1_700_000_000;
const KEY: &[u8] = b"shared by all";

/// Routers in a line, and peers at them.
struct Group {
    world: World,
    links: Vec<Link>,
    peers: Vec<Option<Running>>,
    /// All packets that peers received.
    recorded: Vec<Vec<u8>>,
}

/// A peer, and what its events amount to.
struct Running {
    app: App,
    discovery: Discovery,
    joined: BTreeMap<Member, Profile>,
}

impl Group {
    fn new(seed: u64, routers: usize, loss_percent: u64) -> Self {
        let mut world = World::default();
        world.seed = seed;
        world.loss_percent = loss_percent;
        let mut links = Vec::new();
        for router in 0..routers {
            world.node();
            let strategy = Some(Strategy::Multicast);
            world.nodes[router].set_strategy(name("/world/v=3").view(), strategy);
            if router > 0 {
                let link = world.link(router - 1, router, 5 * MS);
                for (node, face) in link.nodes.into_iter().zip(link.faces) {
                    world.route(node, "/world/v=3", face, 1);
                }
                links.push(link);
            }
        }
        Self {
            world,
            links,
            peers: Vec::new(),
            recorded: Vec::new(),
        }
    }

    /// Starts the next peer, and routes its publications to it.
    fn add_peer(&mut self) {
        let number = self.peers.len();
        for (index, link) in self.links.iter().enumerate() {
            // The link between the routers `index` and `index + 1`.
            let end = usize::from(index < self.router(number));
            let (node, face) = (link.nodes[1 - end], link.faces[1 - end]);
            self.world.route(node, &format!("/peer/{number}"), face, 1);
        }
        self.peers.push(None);
        self.start(number, UNIX, KEY);
    }

    fn router(&self, number: usize) -> usize {
        number % (self.links.len() + 1)
    }

    fn start(&mut self, number: usize, boot: u64, key: &[u8]) {
        let app = self.world.app(self.router(number));
        self.world.route(app.node, "/world/v=3", app.face, 0);
        self.world
            .route(app.node, &format!("/peer/{number}"), app.face, 0);
        let discovery = Discovery::new(
            self.world.now,
            UNIX + self.world.now.as_micros() / 1_000_000,
            config(number, boot).key(key),
            [number as u8 ^ self.world.seed as u8; 16],
        );
        assert_eq!(discovery.sync_prefix(), name("/world/v=3").view());
        assert_eq!(
            discovery.own_prefix(),
            name(&format!("/peer/{number}/world"))
        );
        self.peers[number] = Some(Running {
            app,
            discovery,
            joined: BTreeMap::new(),
        });
    }

    /// Ends a peer without notice.
    fn kill(&mut self, number: usize) {
        let peer = self.peers[number].take().expect("it runs");
        self.world.nodes[peer.app.node].remove_face(peer.app.face);
    }

    fn run(&mut self, span: Duration) {
        self.run_until(span, |_| false);
    }

    /// Runs until a condition is true, and returns the time that it took; `None` if that is longer.
    fn run_until(&mut self, span: Duration, holds: impl Fn(&Self) -> bool) -> Option<Duration> {
        let start = self.world.now;
        while !holds(self) {
            if self.world.now.since(start) >= span {
                return None;
            }
            self.world.run(STEP);
            for number in 0..self.peers.len() {
                self.serve(number);
            }
        }
        Some(self.world.now.since(start))
    }

    fn serve(&mut self, number: usize) {
        let now = self.world.now;
        let Some(peer) = &mut self.peers[number] else {
            return;
        };
        for packet in self.world.received(peer.app) {
            peer.handle(now, &packet);
            self.recorded.push(packet);
        }
        if peer.discovery.next_timeout() <= now {
            peer.discovery.handle_timeout(now);
            assert!(peer.discovery.next_timeout() > now, "no progress");
        }
        let mut bytes = Vec::new();
        while peer.discovery.poll_transmit(&mut bytes) {
            assert!(bytes.len() <= MAX_PACKET);
            self.world.send(peer.app, &bytes);
        }
        while let Some(event) = peer.discovery.poll_event() {
            match event {
                DiscoveryEvent::Joined { member, profile } => {
                    let before = peer.joined.insert(member, (*profile).clone());
                    assert_eq!(before, None);
                }
                DiscoveryEvent::Left { member } => {
                    assert!(peer.joined.remove(&member).is_some());
                }
                _ => {}
            }
        }
        let members = peer.discovery.members();
        let members = members.map(|(member, profile)| (member.clone(), profile.clone()));
        assert_eq!(members.collect::<BTreeMap<_, _>>(), peer.joined);
    }

    /// Whether every peer sees exactly the other running ones of a set.
    fn is_complete(&self, numbers: &BTreeSet<usize>) -> bool {
        numbers.iter().all(|&number| {
            let others = numbers.iter().filter(|other| **other != number);
            let others = others.filter_map(|&other| {
                let peer = self.peers[other].as_ref()?;
                let member = peer.discovery.own().clone();
                let profile = profile(other, member.boot);
                Some((member, profile))
            });
            let peer = self.peers[number].as_ref();
            peer.is_some_and(|peer| peer.joined == others.collect())
        })
    }
}

impl Running {
    fn handle(&mut self, now: Time, packet: &[u8]) {
        let came = LinkPacket::decode(packet).expect("our own");
        if came.header.nack.is_some() {
            return;
        }
        let is_handled = match Interest::decode(came.packet) {
            Ok(interest) => self.discovery.handle_interest(now, &interest),
            Err(_) => {
                let data = Data::decode(came.packet).expect("our own");
                // A late copy of a profile that is known is not handled.
                self.discovery.handle_data(now, &data);
                true
            }
        };
        assert!(is_handled);
    }
}

fn config(number: usize, boot: u64) -> DiscoveryConfig {
    let peer = name(&format!("/peer/{number}"));
    DiscoveryConfig::new(name("/world"), peer, boot, profile(number, boot)).expect("a good name")
}

fn profile(number: usize, boot: u64) -> Profile {
    Profile {
        key: [number as u8; 32],
        fingerprint: [7; 16],
        details: boot.to_be_bytes().to_vec(),
    }
}

fn set(numbers: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
    numbers.into_iter().collect()
}

/// Six peers start at different times; a fifth of all packets on links is lost.
///
/// Fails if an outdated vector is not answered (`must_answer` always false) and heartbeats are left out, or
/// if a profile is requested only once (`request_at` set to `None` in `request`).
#[test]
fn all_peers_find_each_other_over_lossy_links() {
    over_seeds(20, |seed| {
        let mut group = Group::new(seed, 3, 20);
        for _ in 0..6 {
            group.add_peer();
            group.run(200 * MS);
        }
        let all = set(0..6);
        let taken = group.run_until(15 * SECOND, |group| group.is_complete(&all));
        assert!(taken.is_some());
    });
}

/// Without loss a newcomer knows all others, and they know it, after a round trip and the suppression time.
///
/// Fails if a newcomer waits for heartbeats (`must_answer` always false).
#[test]
fn a_newcomer_is_complete_at_once() {
    over_seeds(20, |seed| {
        let mut group = Group::new(seed, 3, 0);
        (0..5).for_each(|_| group.add_peer());
        group.run(5 * SECOND);
        group.add_peer();
        let all = set(0..6);
        let taken = group.run_until(SECOND, |group| group.is_complete(&all));
        assert!(taken.is_some_and(|taken| taken <= 400 * MS), "{taken:?}");
    });
}

/// A peer is killed, and starts again with another key after the others have noticed; another one starts again
/// before they do.
///
/// Fails if peers never leave (`is_gone` always false), if vectors of others bring them back (`is_old` in
/// `SyncGroup::update` always false), or if the older start of a name stays.
#[test]
fn peers_leave_and_return() {
    over_seeds(20, |seed| {
        let mut group = Group::new(seed, 3, 10);
        (0..4).for_each(|_| group.add_peer());
        let all = set(0..4);
        let taken = group.run_until(15 * SECOND, |group| group.is_complete(&all));
        assert!(taken.is_some());
        group.kill(3);
        let rest = set(0..3);
        let taken = group.run_until(15 * SECOND, |group| group.is_complete(&rest));
        assert!(taken.is_some_and(|taken| taken >= 3 * SECOND), "{taken:?}");
        // It does not return by itself.
        group.run(20 * SECOND);
        assert!(group.is_complete(&rest));
        group.start(3, UNIX + 100, KEY);
        let taken = group.run_until(15 * SECOND, |group| group.is_complete(&all));
        assert!(taken.is_some());
        group.kill(2);
        group.start(2, UNIX + 200, KEY);
        let taken = group.run_until(15 * SECOND, |group| group.is_complete(&all));
        assert!(taken.is_some());
    });
}

/// The link between two halves of the group loses everything for 30 seconds.
///
/// Fails if a peer that has left cannot return with the same boot time (`removed` compared without the
/// sequence number), or if heartbeats are as rare as the specification's periodic Interests.
#[test]
fn a_partition_heals_within_two_seconds() {
    over_seeds(20, |seed| {
        let mut group = Group::new(seed, 2, 0);
        (0..6).for_each(|_| group.add_peer());
        let all = set(0..6);
        let taken = group.run_until(5 * SECOND, |group| group.is_complete(&all));
        assert!(taken.is_some());
        let link = group.links[0];
        group.world.silence(link);
        group.run(30 * SECOND);
        assert!(group.is_complete(&set([0, 2, 4])) && group.is_complete(&set([1, 3, 5])));
        group.world.restore(link, 5 * MS);
        let taken = group.run_until(5 * SECOND, |group| group.is_complete(&all));
        assert!(taken.is_some_and(|taken| taken <= 2 * SECOND), "{taken:?}");
    });
}

/// In a group at rest every peer sends one sync Interest per heartbeat, and hardly any answer is needed.
///
/// Fails if peers answer vectors that are not outdated, or that lack only what was published just now
/// (`must_answer` without the comparison with `SUPPRESSION`).
#[test]
fn a_group_at_rest_sends_heartbeats_only() {
    over_seeds(20, |seed| {
        let mut group = Group::new(seed, 3, 0);
        (0..8).for_each(|_| group.add_peer());
        group.run(5 * SECOND);
        let sent = |group: &Group| -> u64 {
            let peers = group.peers.iter().flatten();
            peers
                .map(|peer| peer.discovery.statistics().syncs_sent)
                .sum()
        };
        let before = sent(&group);
        group.run(30 * SECOND);
        let during = sent(&group) - before;
        // 8 peers, 20 heartbeats each, up to a tenth more.
        assert!((140..=185).contains(&during), "{during}");
    });
}

/// A stranger without the key, all recorded packets once more after a peer has left, and boot times in the
/// far future.
///
/// Fails if signatures are not verified, or if recorded vectors bring a peer back (`removed` left out).
#[test]
fn forged_and_replayed_packets_change_nothing() {
    over_seeds(20, |seed| {
        let mut group = Group::new(seed, 2, 0);
        (0..3).for_each(|_| group.add_peer());
        group.run(3 * SECOND);
        group.kill(2);
        let rest = set(0..2);
        let taken = group.run_until(15 * SECOND, |group| group.is_complete(&rest));
        assert!(taken.is_some());
        group.start(2, UNIX, b"another key");
        group.run(10 * SECOND);
        assert!(group.is_complete(&rest));
        let refused = |group: &Group| {
            let peer = group.peers[0].as_ref().expect("it runs");
            peer.discovery.statistics().refused
        };
        assert!(refused(&group) > 0);
        group.kill(2);
        let now = group.world.now;
        for packet in std::mem::take(&mut group.recorded) {
            for number in [0, 1] {
                let peer = group.peers[number].as_mut().expect("it runs");
                let came = LinkPacket::decode(&packet).expect("our own");
                if let Ok(interest) = Interest::decode(came.packet) {
                    peer.discovery.handle_interest(now, &interest);
                } else if let Ok(data) = Data::decode(came.packet) {
                    peer.discovery.handle_data(now, &data);
                }
            }
        }
        group.run(10 * SECOND);
        assert!(group.is_complete(&rest));
        // A member with a wrong clock.
        let before = refused(&group);
        group.start(2, UNIX + 1_000_000, KEY);
        group.run(5 * SECOND);
        assert!(refused(&group) > before);
        let peer = group.peers[0].as_ref().expect("it runs");
        assert_eq!(peer.joined.len(), 1);
    });
}

/// A member with the key announces thousands of names.
///
/// Fails if the vector is not limited (`MAX_VECTOR` not compared): then sync Interests do not fit a packet, and
/// peers lose each other.
#[test]
fn too_many_names_do_not_break_the_group() {
    let mut group = Group::new(1, 1, 0);
    (0..3).for_each(|_| group.add_peer());
    group.run(3 * SECOND);
    let all = set(0..3);
    assert!(group.is_complete(&all));
    let mut flood = Vec::new();
    for number in 0..3000 {
        let peer = name(&format!("/flood/{number}"));
        let config = DiscoveryConfig::new(name("/world"), peer, UNIX, profile(9, UNIX));
        let config = config.expect("a good name").key(KEY);
        let mut discovery = Discovery::new(group.world.now, UNIX, config, [9; 16]);
        discovery.handle_timeout(group.world.now);
        let mut bytes = Vec::new();
        assert!(discovery.poll_transmit(&mut bytes));
        flood.push(bytes);
    }
    for (index, packet) in flood.iter().enumerate() {
        let now = group.world.now;
        let interest = Interest::decode(packet).expect("our own");
        for peer in group.peers.iter_mut().flatten() {
            assert!(peer.discovery.handle_interest(now, &interest));
        }
        if index % 100 == 0 {
            group.run(STEP);
        }
    }
    group.run(5 * SECOND);
    assert!(group.is_complete(&all));
    // The names that never published again are removed, and a new peer finds room.
    group.run(10 * SECOND);
    group.add_peer();
    group.run(5 * SECOND);
    assert!(group.is_complete(&set(0..4)));
}

/// Fails if a limit is not compared.
#[test]
fn configurations_beyond_the_limits_are_refused() {
    let good = || (name("/world"), name("/peer"), profile(0, UNIX));
    let (group, peer, mine) = good();
    let refused = DiscoveryConfig::new(Name::new(), peer.clone(), UNIX, mine.clone());
    assert_eq!(refused.err(), Some(DiscoveryError::NameLength(0)));
    let long = name(&format!("/{}", "a".repeat(MAX_PEER_NAME)));
    let refused = DiscoveryConfig::new(group.clone(), long, UNIX, mine.clone());
    let length = MAX_PEER_NAME + 4;
    assert_eq!(refused.err(), Some(DiscoveryError::NameLength(length)));
    let deep = name(&"/a".repeat(MAX_COMPONENTS - 2));
    let refused = DiscoveryConfig::new(group.clone(), deep, UNIX, mine.clone());
    assert_eq!(
        refused.err(),
        Some(DiscoveryError::Name(NameError::TooDeep))
    );
    let details = vec![0; MAX_DETAILS + 1];
    let refused = DiscoveryConfig::new(group, peer, UNIX, Profile { details, ..mine });
    assert_eq!(
        refused.err(),
        Some(DiscoveryError::DetailsLength(MAX_DETAILS + 1))
    );
    let refused = config(0, UNIX).heartbeat(SECOND, SECOND);
    assert_eq!(refused.err(), Some(DiscoveryError::Timeout));
    assert!(config(0, UNIX).heartbeat(SECOND, 2 * SECOND).is_ok());
}
