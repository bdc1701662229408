//! Link-state routing: routes to the applications of other forwarders, and rerouting when links fail.

use std::time::Duration;

use crate::common::*;
use prescient_named::*;
use prescient_tests::seeds::over_seeds;

const SECOND: Duration = Duration::from_secs(1);

/// Forwarders with routing, and their links.
struct Network {
    world: World,
    links: Vec<Link>,
    nonce: u32,
}

impl Network {
    fn new(nodes: usize) -> Self {
        let mut network = Self {
            world: World::default(),
            links: Vec::new(),
            nonce: 0,
        };
        (0..nodes).for_each(|_| {
            let node = network.world.node();
            network.start(node, 1000);
        });
        network
    }

    fn start(&mut self, node: usize, started: u64) {
        let config = RoutingConfig::new(name(&format!("/router/{node}")), started);
        let config = config.expect("a good name").key(b"shared by all");
        self.world.nodes[node].start_routing(self.world.now, config);
    }

    fn link(&mut self, one: usize, other: usize, cost: u64) -> Link {
        let link = self.world.link(one, other, 5 * MS);
        for (node, face) in link.nodes.into_iter().zip(link.faces) {
            let added = self.world.nodes[node].add_neighbour(self.world.now, face, cost);
            added.expect("routing runs");
        }
        self.links.push(link);
        link
    }

    /// An application that registers a prefix.
    fn app(&mut self, node: usize, prefix: &str) -> App {
        let app = self.world.app(node);
        self.world.route(node, prefix, app.face, 0);
        app
    }

    /// Whether an Interest from one application reaches another.
    fn reaches(&mut self, consumer: App, producer: App, prefix: &str) -> bool {
        self.nonce += 1;
        let text = format!("{prefix}/{}", self.nonce);
        self.world.heard(producer);
        self.world.ask(consumer, &text, self.nonce);
        self.world.run(200 * MS);
        self.world
            .heard(producer)
            .contains(&asked(&text, self.nonce))
    }
}

/// Fails if advertisements are not flooded (`flood` in `handle_update` left out), or routes are not
/// computed from them.
#[test]
fn a_line_of_routers_finds_both_ends() {
    let mut network = Network::new(6);
    for node in 1..6 {
        network.link(node - 1, node, 1);
    }
    let anna = network.app(0, "/game/anna");
    let ben = network.app(5, "/game/ben");
    network.world.run(3 * SECOND);
    assert!(network.reaches(anna, ben, "/game/ben"));
    assert!(network.reaches(ben, anna, "/game/anna"));
    // A prefix that is registered later, and one that is removed.
    let carl = network.app(2, "/game/carl");
    network.world.run(SECOND);
    assert!(network.reaches(anna, carl, "/game/carl"));
    network.world.nodes[5].remove_face(ben.face);
    network.world.run(SECOND);
    assert_eq!(network.world.nodes[0].statistics().routes, 2);
    network.world.ask(anna, "/game/ben/late", 77);
    network.world.run(100 * MS);
    let reason = NackReason::NoRoute;
    assert_eq!(
        network.world.heard(anna),
        [refused("/game/ben/late", 77, reason)]
    );
}

/// A machine that runs no routing registers its prefix at its router, and others reach it from afar, until it
/// unregisters. Static routes to neighbours are not advertised.
///
/// Fails if registered prefixes are not advertised (`is_registered` in `run_routing`), or if static routes of
/// neighbours are.
#[test]
fn hosts_are_reached_by_what_they_register() {
    let mut network = Network::new(3);
    network.link(0, 1, 1);
    network.link(1, 2, 1);
    let anna = network.app(0, "/game/anna");
    let host = FaceConfig::remote().registration(true);
    let host = network.world.app_with(2, &host);
    network.world.route(2, "/static", host.face, 1);
    let command = |command: Command, time: u64| {
        let nonce = (time as u32).to_be_bytes();
        let stamp = SignatureStamp {
            nonce: Some(&nonce),
            time: Some(time),
            sequence: None,
        };
        let mut packet = Vec::new();
        let signed = command
            .from_neighbour()
            .sign(&Signer::digest(), stamp, nonce, &mut packet);
        signed.expect("it fits");
        packet
    };
    let register = command(Command::register(name("/game/ben")), 1);
    network.world.send(host, &register);
    network.world.run(3 * SECOND);
    assert!(network.reaches(anna, host, "/game/ben"));
    assert!(!network.reaches(anna, host, "/static"));
    let unregister = command(Command::unregister(name("/game/ben")), 2);
    network.world.send(host, &unregister);
    network.world.run(SECOND);
    assert!(!network.reaches(anna, host, "/game/ben"));
}

/// A square with a cheap and an expensive path.
///
/// Fails if costs are not compared, or if traffic does not move to the other path when a link is removed or
/// loses everything.
#[test]
fn traffic_is_rerouted_when_a_link_fails() {
    for is_silent in [false, true] {
        let mut network = Network::new(4);
        network.link(0, 1, 1);
        let cheap = network.link(1, 3, 1);
        let expensive = network.link(0, 2, 5);
        network.link(2, 3, 5);
        let consumer = network.app(0, "/game/anna");
        let producer = network.app(3, "/game/ben");
        network.world.run(3 * SECOND);
        assert!(network.reaches(consumer, producer, "/game/ben"));
        let over = |network: &Network| {
            let over = network.world.nodes[0].face_statistics(expensive.faces[0]);
            over.expect("it is there").interests_out
        };
        assert_eq!(over(&network), 0);
        if is_silent {
            network.world.silence(cheap);
            network.world.run(4 * SECOND);
        } else {
            network.world.cut(cheap);
            network.world.run(100 * MS);
        }
        assert!(network.reaches(consumer, producer, "/game/ben"));
        assert_eq!(over(&network), 1);
    }
}

/// Fails if the advertisements of a restarted router are ignored (`started` left out of `sequence`), or if
/// its old one is kept.
#[test]
fn a_router_may_restart() {
    let mut network = Network::new(3);
    network.link(0, 1, 1);
    let last = network.link(1, 2, 1);
    let consumer = network.app(0, "/game/anna");
    network.app(2, "/game/old");
    network.world.run(3 * SECOND);
    assert_eq!(network.world.nodes[0].statistics().routes, 2);
    network.world.cut(last);
    network.world.nodes[2] = Forwarder::new(ForwarderConfig::default(), [9; 16]);
    network.start(2, 2000);
    network.link(1, 2, 1);
    let new = network.app(2, "/game/new");
    network.world.run(3 * SECOND);
    assert!(network.reaches(consumer, new, "/game/new"));
    assert_eq!(network.world.nodes[0].statistics().routes, 2);
}

/// Random networks whose links fail, return and lose packets: in the end every router has a route to every
/// prefix over the cheapest path.
///
/// Fails if a lost advertisement is not sent again (`send_summary` left out), or if a path is not the
/// cheapest.
#[test]
fn any_network_converges() {
    over_seeds(20, |seed| {
        let mut random = Random(seed);
        let nodes = 3 + random.below(8);
        let mut network = Network::new(nodes);
        network.world.loss_percent = 20;
        network.world.seed = seed;
        let mut edges = Vec::new();
        for node in 1..nodes {
            edges.push((node, random.below(node), 1 + random.below(9) as u64));
        }
        for _ in 0..nodes {
            let (one, other) = (random.below(nodes), random.below(nodes));
            if one != other {
                edges.push((one, other, 1 + random.below(9) as u64));
            }
        }
        let mut links: Vec<Link> = Vec::new();
        for (one, other, cost) in &edges {
            links.push(network.link(*one, *other, *cost));
        }
        let apps: Vec<App> = (0..nodes)
            .map(|node| network.app(node, &format!("/app/{node}")))
            .collect();
        // Some links fail and return.
        for _ in 0..5 {
            network.world.run(SECOND);
            let index = random.below(edges.len());
            network.world.cut(links[index]);
            network.world.run(SECOND);
            let (one, other, cost) = edges[index];
            links[index] = network.link(one, other, cost);
        }
        network.world.run(15 * SECOND);
        network.world.loss_percent = 0;
        network.world.run(5 * SECOND);
        let distances = shortest(nodes, &edges);
        for from in 0..nodes {
            assert_eq!(network.world.nodes[from].statistics().routes, nodes);
            for to in 0..nodes {
                if from == to {
                    continue;
                }
                assert!(network.reaches(apps[from], apps[to], &format!("/app/{to}")));
            }
        }
        // The Interests on each link, times its cost, add up to the costs of the cheapest paths.
        let before = crossed(&network, &links);
        for from in 0..nodes {
            for to in (0..nodes).filter(|to| *to != from) {
                network.reaches(apps[from], apps[to], &format!("/app/{to}"));
            }
        }
        let after = crossed(&network, &links);
        let cost: u64 = edges
            .iter()
            .zip(before.iter().zip(&after))
            .map(|((_, _, cost), (before, after))| cost * (after - before))
            .sum();
        let least: u64 = distances.iter().flatten().sum();
        assert_eq!(cost, least);
    });
}

/// A link that is configured at one end only.
///
/// Fails if the other end does not accept it (`accept_neighbours`), or accepts a face without the key.
#[test]
fn one_end_of_a_link_is_enough() {
    let mut network = Network::new(1);
    let hub = network.world.node();
    let config = RoutingConfig::new(name("/router/hub"), 1).expect("a good name");
    let config = config.key(b"shared by all").accept_neighbours(2);
    network.world.nodes[hub].start_routing(network.world.now, config);
    let stranger = network.world.node();
    let config = RoutingConfig::new(name("/router/stranger"), 1).expect("a good name");
    network.world.nodes[stranger].start_routing(network.world.now, config);
    for node in [0, stranger] {
        let link = network.world.link(node, hub, MS);
        let added = network.world.nodes[node].add_neighbour(network.world.now, link.faces[0], 1);
        assert_eq!(added, Ok(()));
    }
    let anna = network.app(0, "/game/anna");
    let ben = network.app(hub, "/game/ben");
    network.app(stranger, "/game/forged");
    network.world.run(3 * SECOND);
    assert!(network.reaches(anna, ben, "/game/ben"));
    assert!(network.reaches(ben, anna, "/game/anna"));
    assert_eq!(network.world.nodes[hub].statistics().routes, 2);
}

/// Fails if messages of a router with another key change routes, or those from a face that is not a
/// neighbour.
#[test]
fn strangers_change_nothing() {
    let mut network = Network::new(2);
    network.link(0, 1, 1);
    network.app(1, "/game/ben");
    network.world.run(3 * SECOND);
    let routes = network.world.nodes[0].statistics().routes;
    // A router with another key.
    let stranger = network.world.node();
    let config = RoutingConfig::new(name("/router/1"), 9_000_000).expect("a good name");
    network.world.nodes[stranger].start_routing(network.world.now, config.key(b"another key"));
    network.link(0, stranger, 1);
    network.app(stranger, "/game/forged");
    network.world.run(5 * SECOND);
    assert_eq!(network.world.nodes[0].statistics().routes, routes);
    // A router with the right key, on a face that is not configured as a neighbour.
    let guest = network.world.node();
    network.start(guest, 9_000_000);
    let link = network.world.link(0, guest, MS);
    let now = network.world.now;
    let added = network.world.nodes[guest].add_neighbour(now, link.faces[1], 1);
    assert_eq!(added, Ok(()));
    network.app(guest, "/game/uninvited");
    network.world.run(5 * SECOND);
    assert_eq!(network.world.nodes[0].statistics().routes, routes);
    assert!(network.world.nodes[0].statistics().out_of_scope > 0);
    assert!(RoutingConfig::new(Name::new(), 0).is_none());
    let face = network.links[0].faces[0];
    let mut other = Forwarder::new(ForwarderConfig::default(), [0; 16]);
    assert_eq!(
        other.add_neighbour(now, face, 1),
        Err(RoutingError::NotStarted)
    );
}

fn crossed(network: &Network, links: &[Link]) -> Vec<u64> {
    let over = |node: usize, face| {
        let statistics = network.world.nodes[node].face_statistics(face);
        statistics.map_or(0, |statistics| statistics.interests_out)
    };
    let count = |link: &Link| {
        let ends = link.nodes.into_iter().zip(link.faces);
        ends.map(|(node, face)| over(node, face)).sum()
    };
    links.iter().map(count).collect()
}

/// The costs of the cheapest paths between all nodes, by Floyd and Warshall.
fn shortest(nodes: usize, edges: &[(usize, usize, u64)]) -> Vec<Vec<u64>> {
    let mut distances = vec![vec![u64::MAX / 4; nodes]; nodes];
    for (node, distances) in distances.iter_mut().enumerate() {
        distances[node] = 0;
    }
    for &(one, other, cost) in edges {
        distances[one][other] = distances[one][other].min(cost);
        distances[other][one] = distances[other][one].min(cost);
    }
    for middle in 0..nodes {
        for one in 0..nodes {
            for other in 0..nodes {
                let through = distances[one][middle] + distances[middle][other];
                distances[one][other] = distances[one][other].min(through);
            }
        }
    }
    distances
}
