//! The game over named data on a virtual clock: every node is a forwarder, and players run on theirs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use prescient::named::{
    Command, FaceConfig, FaceId, MAX_ROUTERS, Name, PrefixChange, RoutingConfig, SignatureStamp,
    Signer, Statistics, Strategy, Time,
};
use prescient_sim::world::Random;

use super::graph::Graph;
use super::measures::Histogram;
use super::simulation::{HOUSEKEEPING, Simulation};
use super::wires::Wires;
use crate::shooter::FRAMES;
use crate::shooter::peer::Peer;
use crate::shooter::settings::{Finding, GROUP, Settings, player_name};

/// The wall-clock time at which a simulation starts, in seconds since 1970.
const UNIX: u64 = 1_700_000_000;
/// How often machines without routing repeat their registrations.
const REGISTRATION: Duration = Duration::from_secs(5);
/// How far players see.
pub(crate) const VIEW_DISTANCE: f32 = 20.0;
/// What a forwarder's content store holds, in bytes.
const STORE: usize = 8 << 20;

/// A network of forwarders with players.
pub(crate) struct Network {
    simulation: Simulation<End, Event>,
    pub(crate) graph: Graph,
    pub(crate) wires: Wires,
    pub(crate) peers: Vec<Option<Peer>>,
    settings: Arc<Settings>,
    /// Packets that players have not handled yet: they do once per frame.
    inboxes: Vec<Vec<Vec<u8>>>,
    /// The face of each player.
    app_faces: Vec<Option<FaceId>>,
    /// The faces of each link.
    link_faces: Vec<[FaceId; 2]>,
    /// Players' machines run no routing, but register their prefixes at their routers.
    are_hosts: bool,
    /// The prefixes of each player.
    prefixes: Vec<BTreeSet<Name>>,
    /// Distances from where players are shown to where they are, by the peer that shows them.
    pub(crate) deltas: Vec<Histogram>,
    /// Of all pairs of players in range, at every frame: how many there were, and in how many the one knew of
    /// the other.
    pub(crate) pairs_in_range: [u64; 2],
    is_measuring: bool,
    phases: Random,
    /// Packets that arrived at nodes: node, link and end.
    #[cfg(test)]
    tap: std::collections::VecDeque<(usize, usize, usize, Vec<u8>)>,
}

#[derive(Clone, Copy)]
enum End {
    Link { link: usize, end: usize },
    App,
}

enum Event {
    Arrives {
        node: usize,
        link: usize,
        end: usize,
        packet: Vec<u8>,
    },
    Frame {
        player: usize,
        /// Frames of an earlier life of the player are ignored.
        life: u64,
    },
    Housekeeping,
}

impl Network {
    pub(crate) fn new(graph: Graph, settings: Settings) -> Self {
        let mut simulation = Simulation::new();
        let are_hosts = matches!(settings.finding, Finding::Regions(_));
        for node in 0..graph.nodes.len() {
            simulation.add_node(STORE, settings.seed ^ node as u64);
        }
        let mut link_faces = Vec::new();
        for (link, ends) in graph.links.iter().map(|link| link.ends).enumerate() {
            link_faces.push([0, 1].map(|end| {
                let is_access = ends[1 - end] < graph.players;
                let config = FaceConfig::remote().registration(are_hosts && is_access);
                simulation.add_face(ends[end], &config, End::Link { link, end })
            }));
        }
        let mut network = Self {
            simulation,
            wires: Wires::new(&graph, settings.seed),
            peers: Vec::new(),
            phases: Random::new(settings.seed ^ 0x9ba5e),
            settings: Arc::new(settings),
            inboxes: vec![Vec::new(); graph.players],
            app_faces: vec![None; graph.players],
            link_faces,
            are_hosts,
            prefixes: vec![BTreeSet::new(); graph.players],
            pairs_in_range: [0; 2],
            deltas: vec![Histogram::default(); graph.players],
            is_measuring: false,
            #[cfg(test)]
            tap: std::collections::VecDeque::new(),
            graph,
        };
        network.add_routes();
        for player in 0..network.graph.players {
            network.peers.push(None);
            network.start(player);
        }
        let first = network.now();
        network.simulation.schedule(first, Event::Housekeeping);
        network
    }

    pub(crate) fn now(&self) -> Time {
        self.simulation.now
    }

    /// Routes to the group over all links. Routes to players are found by the forwarders; networks with more of them
    /// than routing allows get fixed ones.
    fn add_routes(&mut self) {
        let group = GROUP.parse::<prescient::named::Name>().unwrap_or_default();
        let now = self.now();
        let players = self.graph.players;
        let hosts = if self.are_hosts { players } else { 0 };
        let is_routed = self.graph.nodes.len() - hosts <= MAX_ROUTERS;
        for (node, forwarder) in self.simulation.nodes.iter_mut().enumerate() {
            forwarder.set_strategy(group.view(), Some(Strategy::Multicast));
            let name = format!("/router/{node}").parse().ok();
            if let Some(config) = name.and_then(|name| RoutingConfig::new(name, UNIX))
                && is_routed
                && node >= hosts
            {
                forwarder.start_routing(now, config);
            }
        }
        for (link, ids) in self.graph.links.iter().zip(&self.link_faces) {
            for (node, face) in link.ends.into_iter().zip(ids) {
                let forwarder = &mut self.simulation.nodes[node];
                let is_access = link.ends.iter().any(|end| *end < hosts);
                if node < hosts {
                    let added = forwarder.add_route(Name::new().view(), *face, 1);
                    added.expect("few routes");
                } else if !self.are_hosts {
                    let added = forwarder.add_route(group.view(), *face, 1);
                    added.expect("few routes");
                }
                if is_routed && !is_access {
                    // In microseconds.
                    let cost = (link.delay * 1e3 + link.jitter * 500.0) as u64 + 10;
                    let added = forwarder.add_neighbour(now, *face, cost);
                    added.expect("routing was started");
                }
            }
        }
        if !is_routed {
            (0..self.graph.players).for_each(|player| self.add_fixed_routes(player));
        }
    }

    /// Routes to a player along shortest paths.
    fn add_fixed_routes(&mut self, player: usize) {
        let prefix = player_name(player as u32);
        let hops = self.graph.next_hops(player);
        for (node, link) in hops.into_iter().enumerate() {
            let Some(link) = link else { continue };
            let end = usize::from(self.graph.links[link].ends[1] == node);
            let face = self.link_faces[link][end];
            let added = self.simulation.nodes[node].add_route(prefix.view(), face, 1);
            added.expect("few routes");
        }
    }

    /// Starts a player, or starts it again as if its process had been killed.
    pub(crate) fn start(&mut self, player: usize) {
        self.kill(player);
        let now = self.now();
        let boot = UNIX + now.as_micros() / 1_000_000;
        let peer = Peer::new(player as u32, self.settings.clone(), now, boot);
        let local = FaceConfig::local();
        let face = self.simulation.add_face(player, &local, End::App);
        self.app_faces[player] = Some(face);
        let mut prefixes = vec![peer.prefix().clone()];
        if !self.are_hosts {
            prefixes.extend(GROUP.parse());
        }
        self.peers[player] = Some(peer);
        for prefix in prefixes {
            self.change_prefix(player, PrefixChange::Register(prefix));
        }
        // Players do not start together.
        let phase = Duration::from_micros(self.phases.range(0, 500_000) as u64);
        let life = self.life(player);
        let first = Event::Frame { player, life };
        self.simulation.schedule(now.after(phase), first);
    }

    /// Ends a player without a farewell.
    pub(crate) fn kill(&mut self, player: usize) {
        if let Some(face) = self.app_faces[player].take() {
            self.simulation.remove_face(player, face);
        }
        self.peers[player] = None;
        self.inboxes[player].clear();
        self.prefixes[player].clear();
    }

    /// Adds or removes a route to a player, at its own forwarder and, if that runs no routing, at its routers.
    fn change_prefix(&mut self, player: usize, change: PrefixChange) {
        let Some(face) = self.app_faces[player] else {
            return;
        };
        let forwarder = &mut self.simulation.nodes[player];
        let command = match change {
            PrefixChange::Register(prefix) => {
                let added = forwarder.add_route(prefix.view(), face, 0);
                added.expect("few routes");
                self.prefixes[player].insert(prefix.clone());
                Command::register(prefix)
            }
            PrefixChange::Unregister(prefix) => {
                forwarder.remove_route(prefix.view(), face);
                self.prefixes[player].remove(&prefix);
                Command::unregister(prefix)
            }
        };
        if self.are_hosts {
            self.command_routers(player, command);
        }
    }

    /// Sends a command of a player's machine to its routers. Registrations expire, so that those of machines that
    /// are gone do, and are repeated before, so that one may be lost.
    fn command_routers(&mut self, player: usize, command: Command) {
        let mut command = command.from_neighbour();
        command.parameters.expiration = Some(REGISTRATION * 3);
        let nonce = (self.phases.bits() as u32).to_be_bytes();
        let stamp = SignatureStamp {
            nonce: Some(&nonce),
            time: Some(UNIX * 1000 + self.now().as_micros() / 1000),
            sequence: None,
        };
        let mut packet = Vec::new();
        let signed = command.sign(&Signer::digest(), stamp, nonce, &mut packet);
        signed.expect("prefixes are short");
        for link in 0..self.graph.links.len() {
            let ends = self.graph.links[link].ends;
            if let Some(end) = ends.iter().position(|end| *end == player) {
                self.cross(link, end, packet.clone());
            }
        }
    }

    /// Sends a packet over a link from one of its ends.
    fn cross(&mut self, link: usize, end: usize, packet: Vec<u8>) {
        let arrives = self.wires.cross(link, end, self.now(), packet.len());
        let arrival = Event::Arrives {
            node: self.graph.links[link].ends[1 - end],
            link,
            end,
            packet,
        };
        if let Some(arrives) = arrives {
            self.simulation.schedule(arrives, arrival);
        }
    }

    fn life(&self, player: usize) -> u64 {
        self.app_faces[player].map_or(0, FaceId::number)
    }

    /// Forgets what was counted so far, when everybody has found everybody.
    pub(crate) fn start_measuring(&mut self) {
        self.is_measuring = true;
        self.pairs_in_range = [0; 2];
        self.deltas = vec![Histogram::default(); self.graph.players];
        for peer in self.peers.iter_mut().flatten() {
            let past = std::mem::take(&mut peer.measures);
            peer.measures.past_expressed = past.past_expressed;
        }
    }

    pub(crate) fn statistics(&self, node: usize) -> Statistics {
        self.simulation.nodes[node].statistics()
    }

    /// Advances the clock.
    pub(crate) fn run(&mut self, span: Duration) {
        let end = self.now().after(span);
        while let Some(event) = self.simulation.next_until(end) {
            self.handle(event);
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrives {
                node,
                link,
                end,
                packet,
            } => {
                let face = self.link_faces[link][1 - end];
                #[cfg(test)]
                {
                    if self.tap.len() == 2000 {
                        self.tap.pop_front();
                    }
                    self.tap.push_back((node, link, end, packet.clone()));
                }
                self.simulation.arrive(node, face, &packet);
                self.pump(node);
            }
            Event::Frame { player, life } => {
                if self.life(player) != life {
                    return;
                }
                let now = self.now();
                let packets = std::mem::take(&mut self.inboxes[player]);
                if let Some(peer) = &mut self.peers[player] {
                    for packet in packets {
                        peer.handle_packet(now, &packet);
                    }
                    peer.frame(now);
                }
                self.update_prefixes(player);
                self.pump_app(player);
                self.measure(player);
                let next = now.after(Duration::from_secs(1) / FRAMES);
                self.simulation
                    .schedule(next, Event::Frame { player, life });
            }
            Event::Housekeeping => {
                for node in self.simulation.handle_timeouts() {
                    self.pump(node);
                }
                let next = self.now().after(HOUSEKEEPING);
                self.simulation.schedule(next, Event::Housekeeping);
            }
        }
    }

    /// Registers what a player has to, and repeats registrations.
    fn update_prefixes(&mut self, player: usize) {
        while let Some(peer) = &mut self.peers[player]
            && let Some(change) = peer.poll_prefix()
        {
            self.change_prefix(player, change);
        }
        let frame = self.peers[player].as_ref().map_or(0, |it| it.player.frame);
        if self.are_hosts && frame.is_multiple_of(REGISTRATION.as_secs() * u64::from(FRAMES)) {
            for prefix in self.prefixes[player].clone() {
                self.command_routers(player, Command::register(prefix));
            }
        }
    }

    /// Compares where a peer shows the others with where they are, and whom it knows with whom it could see.
    fn measure(&mut self, player: usize) {
        let Some(peer) = self.peers[player].as_ref().filter(|_| self.is_measuring) else {
            return;
        };
        // With many players a part of the frames is enough.
        let every = 1 + self.graph.players as u64 / 16;
        if !peer.player.frame.is_multiple_of(every) {
            return;
        }
        let own = peer.player.status.position;
        for other in self.peers.iter().flatten() {
            let apart = crate::shooter::distance(own, other.player.status.position);
            if other.player.number != peer.player.number && apart <= VIEW_DISTANCE {
                self.pairs_in_range[0] += 1;
                self.pairs_in_range[1] += u64::from(peer.knows(other.player.number));
            }
        }
        for (other, place) in peer.shown(self.simulation.now) {
            if let Some(Some(other)) = self.peers.get(other as usize) {
                let apart = crate::shooter::distance(place, other.player.status.position);
                self.deltas[player].add(f64::from(apart));
            }
        }
    }

    /// Passes what a player sends to its forwarder.
    fn pump_app(&mut self, player: usize) {
        let Some(face) = self.app_faces[player] else {
            return;
        };
        let mut bytes = Vec::new();
        while let Some(peer) = &mut self.peers[player]
            && peer.poll_transmit(&mut bytes)
        {
            self.simulation.arrive(player, face, &bytes);
        }
        self.pump(player);
    }

    /// Passes what a forwarder sends to links and its player.
    fn pump(&mut self, node: usize) {
        while let Some((end, packet)) = self.simulation.poll_transmit(node) {
            let End::Link { link, end } = end else {
                self.inboxes[node].push(packet);
                continue;
            };
            self.cross(link, end, packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use prescient::named::{DataBuilder, Freshness, Interest, LinkPacket, MAX_PACKET, Signer};

    use super::*;
    use crate::shooter::settings::Codecs;
    use prescient::named::Grid;

    fn network(shape: &str, npcs: u32) -> Network {
        let graph = Graph::named(shape, None).expect("a known shape");
        let settings = Settings {
            seed: 5,
            players: graph.players as u32,
            freshness: Freshness::Fixed(Duration::from_millis(20)),
            throttle: None,
            interest: None,
            finding: Finding::Group,
            npcs,
            codecs: Codecs::trained(),
        };
        Network::new(graph, settings)
    }

    /// Every player shows every other one as it was less than a fifth of a second ago.
    fn is_in_step(network: &Network) -> bool {
        let alive: Vec<&Peer> = network.peers.iter().flatten().collect();
        alive.iter().all(|peer| {
            let fresh = peer.ages(network.now());
            let fresh = fresh.filter(|(_, age)| *age < Duration::from_millis(200));
            peer.known() == alive.len() - 1 && fresh.count() == alive.len() - 1
        })
    }

    /// Runs until all are in step again, and returns how long that took.
    fn time_to_step(network: &mut Network, limit: Duration) -> Option<Duration> {
        let begun = network.now();
        while network.now().since(begun) < limit {
            network.run(Duration::from_millis(20));
            if is_in_step(network) {
                return Some(network.now().since(begun));
            }
        }
        None
    }

    /// Fails if peers that left are not accepted again (`MEMORY` of profiles and a boot time that must be new), or if
    /// consumers of peers that return are not made again.
    #[test]
    fn a_partition_of_thirty_seconds_heals_within_two() {
        for seed in 0..3 {
            let mut network = network("dumbbell", 0);
            network.run(Duration::from_secs(8) + Duration::from_millis(331) * seed);
            assert!(is_in_step(&network));
            let bridge = network.graph.links.len() - 1;
            network.wires.set_cut(bridge, true);
            network.run(Duration::from_secs(30));
            let known: Vec<usize> = network.peers.iter().flatten().map(Peer::known).collect();
            assert_eq!(known, [1; 4], "both halves play on alone");
            network.wires.set_cut(bridge, false);
            let took = time_to_step(&mut network, Duration::from_secs(2));
            println!("a partition of 30 s healed after {took:?}");
            assert!(took.is_some(), "run {seed}");
        }
    }

    /// In a square every player has two ways to each other one.
    ///
    /// Fails if forwarders do not use routing (fixed routes only), or keep a route over a link without hellos.
    #[test]
    fn updates_take_another_way_when_a_link_dies() {
        let mut network = network("square", 0);
        network.run(Duration::from_secs(8));
        assert!(is_in_step(&network));
        for link in 0..4 {
            network.wires.set_cut(link, true);
            network.run(Duration::from_millis(400));
            assert!(!is_in_step(&network), "neighbours use their link {link}");
            // A link without hellos is down after 3.5 s.
            let took = time_to_step(&mut network, Duration::from_secs(6));
            println!("updates took another way after {took:?}");
            assert!(took.is_some(), "link {link}");
            network.wires.set_cut(link, false);
            network.run(Duration::from_secs(4));
            assert!(is_in_step(&network), "the link is back");
        }
    }

    /// Fails if a new life of a player starts with the versions of the last one (`first_version(0)`), or if its
    /// characters are not adopted (`hand_over` without `adopt`).
    #[test]
    fn a_killed_player_rejoins_and_others_adopt_its_characters() {
        let mut network = network("tree", 12);
        network.run(Duration::from_secs(8));
        assert!(is_in_step(&network));
        let owners = |network: &Network| {
            let npcs = network.peers.iter().flatten().flat_map(Peer::npcs);
            let npcs: Vec<u32> = npcs.map(|(number, _)| number).collect();
            let distinct: BTreeSet<u32> = npcs.iter().copied().collect();
            (npcs.len(), distinct.len())
        };
        assert_eq!(owners(&network), (12, 12), "every character has one owner");
        let orphans: Vec<(u32, [f32; 2])> = network.peers[2].iter().flat_map(Peer::npcs).collect();
        assert!(!orphans.is_empty());
        network.kill(2);
        network.run(Duration::from_secs(9));
        assert!(is_in_step(&network), "the others play on");
        assert_eq!(owners(&network), (12, 12));
        // Characters stand still until they are adopted, and then walk on from where they were seen.
        for (npc, place) in orphans {
            let mut npcs = network.peers.iter().flatten().flat_map(Peer::npcs);
            let adopted = npcs.find(|(number, _)| *number == npc);
            let (_, now) = adopted.expect("it has an owner");
            assert!(crate::shooter::distance(place, now) < 5.0 * 9.0);
        }
        network.start(2);
        let took = time_to_step(&mut network, Duration::from_secs(4));
        println!("a restarted player was in step after {took:?}");
        assert!(took.is_some());
        assert_eq!(owners(&network), (12, 12));
    }

    /// Fails if a consumer does not verify answers (it would request a version that never comes), or does not request
    /// another name after a forged one (caches would repeat it for a minute).
    #[test]
    fn forged_replayed_and_oversized_packets_change_nothing() {
        let mut quiet = network("dumbbell", 0);
        let mut attacked = network("dumbbell", 0);
        let thief = Signer::ed25519(&[66; 32], None);
        let mut random = Random::new(3);
        let warm_up = Duration::from_secs(8);
        quiet.run(warm_up);
        attacked.run(warm_up);
        let mut forged = 0;
        for _ in 0..200 {
            attacked.run(Duration::from_millis(20));
            for _ in 0..5 {
                let newest = attacked.tap.len() as i64;
                let (node, link, end, packet) =
                    attacked.tap[random.range(newest - 50, newest) as usize].clone();
                let mut arrives = (node, link, end, packet.clone());
                match random.range(0, 4) {
                    0 => {}
                    1 => {
                        let place = random.range(0, packet.len() as i64) as usize;
                        arrives.3[place] ^= 1 << random.range(0, 8);
                    }
                    2 => arrives.3 = vec![0x06; MAX_PACKET + 100],
                    _ => {
                        // An answer to an Interest that is pending, from where its answer is expected.
                        let packet = LinkPacket::decode(&packet).map(|link| link.packet);
                        let Ok(interest) = packet.and_then(Interest::decode) else {
                            continue;
                        };
                        let mut name = interest.name().to_name();
                        let version = prescient::named::ComponentKind::VERSION;
                        name.push_number(version, u64::MAX).expect("it fits");
                        let mut answer = Vec::new();
                        let signed = DataBuilder::new(name.view())
                            .freshness(Duration::from_secs(60))
                            .content(&[0, 1, 2])
                            .sign(&thief, &mut answer);
                        signed.expect("it fits");
                        let sender = attacked.graph.links[link].ends[end];
                        arrives = (sender, link, 1 - end, answer);
                        forged += 1;
                    }
                }
                let (node, link, end, packet) = arrives;
                let event = Event::Arrives {
                    node,
                    link,
                    end,
                    packet,
                };
                let now = attacked.now();
                attacked.simulation.schedule(now, event);
            }
        }
        assert!(forged > 100);
        let refused: u64 = attacked
            .peers
            .iter()
            .flatten()
            .map(|peer| peer.measures.refused)
            .sum();
        assert!(refused > 0, "some forged answers reached players");
        attacked.run(Duration::from_secs(3));
        quiet.run(Duration::from_secs(7));
        assert!(is_in_step(&attacked));
        for (one, other) in attacked.peers.iter().zip(&quiet.peers) {
            let place = |peer: &Option<Peer>| peer.as_ref().map(|peer| peer.player.status.position);
            assert_eq!(place(one), place(other));
        }
    }

    /// Ninety-six players on machines without routing, in regions of 40 units.
    ///
    /// Fails if a router does not advertise what hosts have registered (`is_registered` in the forwarder's
    /// `run_routing`), if registrations are not repeated before they expire (`REGISTRATION` without the repetition), or
    /// if everybody observes everything.
    #[test]
    fn players_know_those_around_them() {
        let graph = Graph::named("scale16", Some(96)).expect("a known shape");
        let settings = Settings {
            seed: 2,
            players: 96,
            freshness: Freshness::Fixed(Duration::from_millis(20)),
            throttle: Some(0.5),
            interest: Some(prescient::named::Radii::default()),
            finding: Finding::Regions(Grid::new(40.0, 25.0).expect("sound lengths")),
            npcs: 0,
            codecs: Codecs::trained(),
        };
        let mut network = Network::new(graph, settings);
        network.run(Duration::from_secs(20));
        network.start_measuring();
        network.run(Duration::from_secs(2));
        let [near, known] = network.pairs_in_range;
        let all: usize = network.peers.iter().flatten().map(Peer::known).sum();
        println!(
            "{known} of {near} in range are known; each knows {} of 95",
            all / 96
        );
        assert!(
            near > 1000 && known * 1000 >= near * 999,
            "{known} of {near}"
        );
        assert!(all / 96 < 50, "{all}");
    }

    /// Fails if updates are not throttled (`EveryUpdate` always), or pauses are not observed.
    #[test]
    fn throttling_and_interest_management_save_interests() {
        let rate = |throttle: Option<f64>, interest: Option<prescient::named::Radii>| {
            let graph = Graph::named("scale16", None).expect("a known shape");
            let settings = Settings {
                seed: 1,
                players: 16,
                freshness: Freshness::Fixed(Duration::from_millis(20)),
                throttle,
                interest,
                finding: Finding::Group,
                npcs: 0,
                codecs: Codecs::trained(),
            };
            let mut network = Network::new(graph, settings);
            network.run(Duration::from_secs(8));
            let seen = |network: &Network| -> u64 {
                let peers = network.peers.iter().flatten();
                peers.map(Peer::interests_seen).sum()
            };
            let before = seen(&network);
            network.run(Duration::from_secs(2));
            (seen(&network) - before) as f64 / 2.0 / 16.0
        };
        let radii = prescient::named::Radii::default();
        let (none, both) = (rate(None, None), rate(Some(0.5), Some(radii)));
        assert!(none > 28.0, "{none} Interests per second");
        assert!(both <= 5.0, "{both} Interests per second");
    }
}
