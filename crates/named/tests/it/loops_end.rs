//! Interests in a loop are not forwarded again.

use std::time::Duration;

use crate::common::*;
use prescient_named::*;
use prescient_tests::seeds::over_seeds;

/// A ring of four forwarders with the multicast strategy.
///
/// Fails if nonces are not compared (`is_loop` always false): then the Interest loops for ever.
#[test]
fn a_ring_is_gone_around_once() {
    let mut world = World::default();
    let nodes: Vec<usize> = (0..4).map(|_| world.node()).collect();
    for here in 0..4 {
        let link = world.link(nodes[here], nodes[(here + 1) % 4], 10 * MS);
        for (node, face) in link.nodes.into_iter().zip(link.faces) {
            world.route(node, "/group", face, 0);
        }
    }
    for node in &nodes {
        world.nodes[*node].set_strategy(name("/group").view(), Some(Strategy::Multicast));
    }
    let consumer = world.app(nodes[0]);
    world.ask(consumer, "/group/1", 7);
    world.run(Duration::from_secs(3));
    let forwarded: u64 = world
        .nodes
        .iter()
        .map(|node| node.statistics().forwarded)
        .sum();
    // Both ways around: two, then one each, then the far node forwards the one that arrived first.
    assert!(forwarded <= 6, "{forwarded}");
    let loops: u64 = world.nodes.iter().map(|node| node.statistics().loops).sum();
    assert!(loops >= 1);
    // All refuse in the end, and the consumer gets a Nack.
    let heard = world.heard(consumer);
    assert_eq!(heard, [refused("/group/1", 7, NackReason::Duplicate)]);
    assert_eq!(world.under_way(), 0);
}

/// An Interest that returns after it was answered is still detected as a loop.
///
/// Fails if its nonce is removed with the PIT entry (`remove_pending` without `dead_nonces.insert`).
#[test]
fn what_comes_back_late_is_recognised() {
    let mut world = World::default();
    let node = world.node();
    let (producer, consumer, neighbour) = (world.app(node), world.app(node), world.app(node));
    world.route(node, "/anna", producer.face, 0);
    let ask = interest("/anna/1", 1, |it| it.must_be_fresh());
    world.send(consumer, &ask);
    world.answer(producer, "/anna/1", b"x", Duration::ZERO);
    world.heard(producer);
    world.run(Duration::from_secs(5));
    world.send(neighbour, &ask);
    assert_eq!(world.heard(producer), []);
    assert_eq!(
        world.heard(neighbour),
        [refused("/anna/1", 1, NackReason::Duplicate)]
    );
    // Another Interest for the same name is not a loop.
    world.send(neighbour, &interest("/anna/1", 2, |it| it.must_be_fresh()));
    assert_eq!(world.heard(producer), [asked("/anna/1", 2)]);
}

/// Fails if an Interest that a link duplicates is treated as a loop.
#[test]
fn what_a_link_repeats_is_no_loop() {
    let mut world = World::default();
    let node = world.node();
    let (producer, consumer) = (world.app(node), world.app(node));
    world.route(node, "/anna", producer.face, 0);
    world.ask(consumer, "/anna/1", 1);
    world.ask(consumer, "/anna/1", 1);
    assert_eq!(world.heard(producer), [asked("/anna/1", 1)]);
    assert_eq!(world.heard(consumer), []);
    world.answer(producer, "/anna/1", b"x", MS);
    assert_eq!(world.heard(consumer), [told("/anna/1", b"x")]);
}

/// Any graph with the multicast strategy: each Interest crosses each link at most once in each direction,
/// forwarding ends, and the producer is found.
///
/// Fails if a node sends an Interest twice, or back to its downstream face.
#[test]
fn any_network_comes_to_rest() {
    over_seeds(20, |seed| {
        let mut random = Random(seed);
        let mut world = World::default();
        let nodes = 3 + random.below(10);
        (0..nodes).for_each(|_| {
            world.node();
        });
        let mut links = Vec::new();
        for node in 1..nodes {
            let other = random.below(node);
            links.push(world.link(node, other, random.delay()));
        }
        for _ in 0..random.below(2 * nodes) {
            let (one, other) = (random.below(nodes), random.below(nodes));
            if one != other {
                links.push(world.link(one, other, random.delay()));
            }
        }
        for link in &links {
            for (node, face) in link.nodes.into_iter().zip(link.faces) {
                world.route(node, "/", face, random.below(5) as u64);
            }
        }
        for node in 0..nodes {
            let strategy = Some(Strategy::Multicast);
            world.nodes[node].set_strategy(Name::new().view(), strategy);
        }
        let producer = world.app(random.below(nodes));
        world.route(producer.node, "/anna", producer.face, 0);
        let consumer = world.app(random.below(nodes));
        world.ask(consumer, "/anna/1", 1);
        world.run(Duration::from_secs(1));
        assert_eq!(world.heard(producer), [asked("/anna/1", 1)]);
        world.answer(producer, "/anna/1", b"x", MS);
        world.run(Duration::from_secs(1));
        assert_eq!(world.heard(consumer), [told("/anna/1", b"x")]);
        world.ask(consumer, "/nobody/1", 2);
        world.run(Duration::from_secs(6));
        assert_eq!(world.under_way(), 0);
        for link in &links {
            for (node, face) in link.nodes.into_iter().zip(link.faces) {
                let over = world.nodes[node]
                    .face_statistics(face)
                    .expect("it is there");
                assert!(over.interests_out <= 2);
            }
        }
        for node in &world.nodes {
            assert_eq!(node.statistics().pending, 0);
        }
    });
}
