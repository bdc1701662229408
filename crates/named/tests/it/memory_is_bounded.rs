//! No input makes a forwarder exceed its limits, or stop serving other faces.

use std::time::Duration;

use crate::common::*;
use prescient_named::*;

/// Fails if one face can use up the limit of all (`max_pending_bytes_per_face` not compared), so that
/// others are refused.
#[test]
fn one_face_cannot_use_up_the_pit() {
    let mut world = World::default();
    let config = ForwarderConfig::default().max_pending_bytes(1 << 20, 1 << 18);
    let node = world.node_with(config);
    let producer = world.app(node);
    let (greedy, modest) = (world.app(node), world.app(node));
    world.route(node, "/", producer.face, 0);
    let hour = Duration::from_secs(3600);
    for number in 0..5000 {
        let packet = interest(&format!("/{number}"), number, |it| it.lifetime(hour));
        world.send(greedy, &packet);
        assert!(world.nodes[node].statistics().pending_bytes <= 1 << 20);
    }
    let refusals = world.heard(greedy);
    let congestion = |heard: &Heard| matches!(heard, Heard::Nack(_, _, NackReason::Congestion));
    assert!(refusals.iter().all(congestion));
    let pending = world.nodes[node].statistics().pending;
    assert_eq!(pending + refusals.len(), 5000);
    assert!((100..600).contains(&pending), "{pending}");
    world.ask(modest, "/modest", 1);
    assert_eq!(world.heard(modest), []);
    // The configured maximum lifetime applies, whatever the Interest's own.
    world.run(Duration::from_secs(61));
    assert_eq!(world.nodes[node].statistics().pending_bytes, 0);
}

/// Many faces together, with long Interests for the same names.
///
/// Fails if the total is not limited, or if aggregated Interests do not count.
#[test]
fn many_faces_together_are_limited_as_well() {
    let mut world = World::default();
    let config = ForwarderConfig::default().max_pending_bytes(1 << 20, 1 << 18);
    let node = world.node_with(config);
    let producer = world.app(node);
    world.route(node, "/", producer.face, 0);
    let parameters = [0; 4000];
    for face in 0..50 {
        let app = world.app(node);
        for number in 0..100 {
            let text = format!("/{}", number % 10 + face / 25 * 10);
            let nonce = face * 1000 + number;
            world.send(
                app,
                &interest(&text, nonce, |it| it.parameters(&parameters)),
            );
        }
    }
    let statistics = world.nodes[node].statistics();
    assert!(statistics.pending_bytes <= 1 << 20);
    assert!(statistics.refused > 100, "{}", statistics.refused);
    for _ in 0..5 {
        world.run(Duration::from_secs(1));
    }
    assert_eq!(world.nodes[node].statistics().pending_bytes, 0);
}

/// Fails if routes or faces are not limited, or if removing them frees none.
#[test]
fn routes_and_faces_are_limited() {
    let config = ForwarderConfig::default().max_routes(100, 60).max_faces(3);
    let mut world = World::default();
    let node = world.node_with(config);
    let (one, other) = (world.app(node), world.app(node));
    world.app(node);
    let forwarder = &mut world.nodes[node];
    let full = forwarder.add_face(&FaceConfig::local());
    assert_eq!(full, Err(FaceError::Full(3)));
    for (app, may) in [(one, 60), (other, 40)] {
        let added = (0..80).map(|number| {
            let prefix = name(&format!("/{number}"));
            forwarder.add_route(prefix.view(), app.face, 1)
        });
        let added: Vec<_> = added.collect();
        assert!(added[..may].iter().all(Result::is_ok));
        assert!(
            added[may..]
                .iter()
                .all(|error| *error == Err(RouteError::Full))
        );
    }
    // A change of cost is not a new route.
    assert_eq!(forwarder.add_route(name("/0").view(), one.face, 2), Ok(()));
    assert!(forwarder.remove_route(name("/0").view(), one.face));
    assert_eq!(forwarder.add_route(name("/70").view(), one.face, 1), Ok(()));
    forwarder.remove_face(one.face);
    assert_eq!(forwarder.statistics().routes, 40);
    assert!(forwarder.add_face(&FaceConfig::local()).is_ok());
    let gone = forwarder.add_route(name("/0").view(), one.face, 1);
    assert_eq!(gone, Err(RouteError::NoSuchFace));
}

/// Fails if the send queue is not limited.
#[test]
fn what_is_not_fetched_is_dropped() {
    let config = ForwarderConfig::default().max_queued_bytes(1 << 16);
    let mut forwarder = Forwarder::new(config, [1; 16]);
    let producer = forwarder.add_face(&FaceConfig::local()).expect("room");
    let consumer = forwarder.add_face(&FaceConfig::local()).expect("room");
    forwarder
        .add_route(Name::new().view(), producer, 0)
        .expect("room");
    for number in 0..10_000 {
        let packet = interest(&format!("/{number}"), number, |it| it);
        let taken = forwarder.handle_packet(Time::default(), consumer, &packet);
        assert_eq!(taken, Ok(()));
    }
    let mut bytes = Vec::new();
    let mut fetched = 0;
    while forwarder.poll_transmit(&mut bytes).is_some() {
        fetched += 1;
    }
    let dropped = forwarder.statistics().dropped;
    assert!(fetched * 128 <= 1 << 16);
    assert_eq!(fetched + dropped, 10_000);
}

/// Fragments of packets that are never completed.
///
/// Fails if they are kept, or if other fragmented packets are not reassembled meanwhile.
#[test]
fn fragments_are_forgotten() {
    let mut world = World::default();
    let node = world.node();
    let (producer, consumer) = (world.app(node), world.app(node));
    world.route(node, "/", producer.face, 0);
    let parameters = [1; 3000];
    let whole = interest("/a", 1, |it| it.parameters(&parameters));
    let fragment = |sequence, index, count, bytes: &[u8]| {
        let fragment = Some(Fragment {
            sequence,
            index,
            count,
        });
        let mut packet = Vec::new();
        LinkHeader {
            fragment,
            ..LinkHeader::default()
        }
        .encode(bytes, &mut packet);
        packet
    };
    for sequence in 0..1000 {
        world.send(consumer, &fragment(sequence * 8, 1, 5, &[0; 1000]));
    }
    let (first, second) = whole.split_at(1500);
    world.send(consumer, &fragment(9001, 1, 2, second));
    assert!(world.nodes[node].next_timeout().is_some());
    world.send(consumer, &fragment(9000, 0, 2, first));
    assert_eq!(world.heard(producer).len(), 1);
    world.send(consumer, &fragment(9101, 1, 2, second));
    world.run(Duration::from_secs(1));
    world.send(consumer, &fragment(9100, 0, 2, first));
    assert_eq!(world.heard(producer).len(), 0);
    world.run(Duration::from_secs(10));
    assert_eq!(world.nodes[node].next_timeout(), None);
}
