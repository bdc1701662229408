//! Aggregation: a pending Interest is forwarded once, and its Data goes to all downstream faces.

use std::time::Duration;

use crate::common::*;
use prescient_named::*;

/// Fails if a pending Interest is forwarded again (`is_pending` in `Strategy::choose` ignored), or if only
/// the first downstream face gets the answer.
#[test]
fn sixteen_consumers_one_upstream_interest() {
    let mut world = World::default();
    let node = world.node();
    let producer = world.app(node);
    let consumers: Vec<App> = (0..16).map(|_| world.app(node)).collect();
    world.route(node, "/game/anna", producer.face, 0);
    for (number, consumer) in consumers.iter().enumerate() {
        world.ask(*consumer, "/game/anna/status", number as u32);
        world.run(MS);
    }
    assert_eq!(world.heard(producer), [asked("/game/anna/status", 0)]);
    world.answer(producer, "/game/anna/status", b"7", MS);
    for consumer in &consumers {
        assert_eq!(world.heard(*consumer), [told("/game/anna/status", b"7")]);
    }
    assert_eq!(world.heard(producer), []);
    let statistics = world.nodes[node].statistics();
    assert_eq!((statistics.aggregated, statistics.forwarded), (15, 1));
    assert_eq!((statistics.pending, statistics.pending_bytes), (0, 0));
}

/// A dumbbell: two consumers behind each of two routers, the producer behind one of them.
///
/// Fails if routers aggregate among faces of one kind only.
#[test]
fn a_long_link_carries_each_interest_once() {
    let mut world = World::default();
    let (left, right) = (world.node(), world.node());
    let link = world.link(left, right, 20 * MS);
    let producer = world.app(left);
    let near: Vec<App> = (0..2).map(|_| world.app(left)).collect();
    let far: Vec<App> = (0..2).map(|_| world.app(right)).collect();
    world.route(left, "/anna", producer.face, 0);
    world.route(right, "/anna", link.faces[1], 0);
    for round in 0..10 {
        let text = format!("/anna/{round}");
        for (number, app) in near.iter().chain(&far).enumerate() {
            world.ask(*app, &text, (round * 10 + number) as u32);
        }
        world.run(50 * MS);
        assert_eq!(world.heard(producer).len(), 1);
        world.answer(producer, &text, b"x", MS);
        world.run(50 * MS);
        for app in near.iter().chain(&far) {
            assert_eq!(world.heard(*app), [told(&text, b"x")]);
        }
    }
    let over = world.nodes[right].face_statistics(link.faces[1]);
    let over = over.expect("it is there");
    assert_eq!((over.interests_out, over.data_in), (10, 10));
}

/// Best-route, version 1: a retransmission is not forwarded while an answer is due. Afterwards it is,
/// also on behalf of other downstream faces that still wait.
///
/// Fails if a retransmission is forwarded at once (as in later versions of best-route), or never.
#[test]
fn a_retransmission_is_forwarded_when_the_last_has_expired() {
    let mut world = World::default();
    let node = world.node();
    let (producer, first, second) = (world.app(node), world.app(node), world.app(node));
    world.route(node, "/anna", producer.face, 0);
    let second_long = |nonce| interest("/anna/1", nonce, |it| it.lifetime(Duration::from_secs(1)));
    world.send(first, &second_long(1));
    world.run(900 * MS);
    world.send(second, &second_long(2));
    world.send(first, &second_long(3));
    world.run(99 * MS);
    assert_eq!(world.heard(producer), [asked("/anna/1", 1)]);
    world.run(MS);
    world.send(first, &second_long(4));
    assert_eq!(world.heard(producer), [asked("/anna/1", 4)]);
    // The second waits until 1.9 s, and the first until 2 s.
    world.run(850 * MS);
    world.answer(producer, "/anna/1", b"late", MS);
    assert_eq!(world.heard(first), [told("/anna/1", b"late")]);
    assert_eq!(world.heard(second), [told("/anna/1", b"late")]);
}

/// Fails if Data is sent to a face whose in-record has expired.
#[test]
fn expired_in_records_get_no_data() {
    let mut world = World::default();
    let node = world.node();
    let (producer, short, long) = (world.app(node), world.app(node), world.app(node));
    world.route(node, "/anna", producer.face, 0);
    world.send(long, &interest("/anna/1", 1, |it| it));
    world.send(short, &interest("/anna/1", 2, |it| it.lifetime(100 * MS)));
    world.run(101 * MS);
    world.answer(producer, "/anna/1", b"x", MS);
    assert_eq!(world.heard(short), []);
    assert_eq!(world.heard(long), [told("/anna/1", b"x")]);
    world.ask(short, "/nothing/of/it", 3);
    world.run(Duration::from_secs(10));
    assert_eq!(world.nodes[node].next_timeout(), None);
    assert_eq!(world.nodes[node].statistics().pending_bytes, 0);
}

/// Fails if different Interests share a PIT entry (`can_be_prefix`, `must_be_fresh` or the hint left out of
/// `PitEntry::is_for`).
#[test]
fn different_interests_are_not_aggregated() {
    let mut world = World::default();
    let node = world.node();
    let (producer, consumer) = (world.app(node), world.app(node));
    world.route(node, "/", producer.face, 0);
    let hint = [name("/isp")];
    let packets = [
        interest("/anna", 1, |it| it),
        interest("/anna", 2, |it| it.can_be_prefix()),
        interest("/anna", 3, |it| it.must_be_fresh()),
        interest("/anna", 4, |it| it.can_be_prefix().must_be_fresh()),
        interest("/anna", 5, |it| it.forwarding_hint(&hint)),
        interest("/anna/1", 6, |it| it),
    ];
    for packet in &packets {
        world.send(consumer, packet);
    }
    assert_eq!(world.heard(producer).len(), packets.len());
    // One Data packet satisfies all entries that it matches: the two with CanBePrefix, and its own name.
    world.answer(producer, "/anna/1", b"x", MS);
    assert_eq!(world.heard(consumer).len(), 3);
    world.answer(producer, "/anna", b"x", MS);
    assert_eq!(world.heard(consumer).len(), 3);
}

/// Fails if the answer has the token of another Interest, or none.
#[test]
fn pit_tokens_are_returned() {
    let mut world = World::default();
    let node = world.node();
    let (producer, first, second) = (world.app(node), world.app(node), world.app(node));
    world.route(node, "/anna", producer.face, 0);
    let token = |token: &[u8]| LinkHeader {
        pit_token: PitToken::new(token),
        ..LinkHeader::default()
    };
    for (app, bytes, nonce) in [(first, &b"one"[..], 1), (second, b"other", 2)] {
        for text in ["/anna/1", "/nobody"] {
            let mut packet = Vec::new();
            token(bytes).encode(&interest(text, nonce, |it| it), &mut packet);
            world.send(app, &packet);
        }
    }
    let to_producer = world.received(producer);
    assert!(to_producer.iter().all(|packet| packet[0] == 5), "bare");
    world.answer(producer, "/anna/1", b"x", MS);
    for (app, bytes) in [(first, &b"one"[..]), (second, b"other")] {
        for packet in world.received(app) {
            let came = LinkPacket::decode(&packet).expect("our own");
            assert_eq!(came.header.pit_token, PitToken::new(bytes));
        }
    }
    // From the content store as well.
    let mut packet = Vec::new();
    token(b"late").encode(&interest("/anna/1", 3, |it| it), &mut packet);
    world.send(first, &packet);
    let packet = world.received(first).remove(0);
    let came = LinkPacket::decode(&packet).expect("our own");
    assert_eq!(came.header.pit_token, PitToken::new(b"late"));
}

/// Fails if Data is accepted from a face without an out-record: any neighbour could forge answers.
#[test]
fn data_from_a_face_that_was_not_asked_is_dropped() {
    let mut world = World::default();
    let node = world.node();
    let (producer, consumer, stranger) = (world.app(node), world.app(node), world.app(node));
    world.route(node, "/anna", producer.face, 0);
    world.ask(consumer, "/anna/1", 1);
    world.answer(stranger, "/anna/1", b"forged", MS);
    world.answer(consumer, "/anna/1", b"forged", MS);
    assert_eq!(world.heard(consumer), []);
    assert_eq!(world.nodes[node].statistics().unsolicited, 2);
    assert_eq!(world.nodes[node].statistics().stored, 0);
    world.answer(producer, "/anna/1", b"true", MS);
    assert_eq!(world.heard(consumer), [told("/anna/1", b"true")]);
    // Nothing is pending any more.
    world.answer(producer, "/anna/1", b"again", MS);
    assert_eq!(world.heard(consumer), []);
}

/// Fails if an Interest with a digest is answered by another packet of the same name, or not at all.
#[test]
fn a_digest_asks_for_one_packet() {
    let mut world = World::default();
    let node = world.node();
    let (producer, consumer) = (world.app(node), world.app(node));
    world.route(node, "/anna", producer.face, 0);
    let wanted = data("/anna/1", b"wanted", MS);
    let digest = Data::decode(&wanted).expect("our own").implicit_digest();
    let mut full = name("/anna/1");
    full.push(ComponentKind::IMPLICIT_DIGEST, &digest)
        .expect("it fits");
    world.ask(consumer, &full.to_string(), 1);
    world.answer(producer, "/anna/1", b"another", MS);
    assert_eq!(world.heard(consumer), []);
    world.send(producer, &wanted);
    assert_eq!(world.heard(consumer), [told("/anna/1", b"wanted")]);
    // And from the content store.
    world.ask(consumer, &full.to_string(), 2);
    assert_eq!(world.heard(consumer), [told("/anna/1", b"wanted")]);
    world.ask(
        consumer,
        "/anna/1/sha256digest=0000000000000000000000000000000000000000000000000000000000000000",
        3,
    );
    assert_eq!(world.heard(consumer), []);
}
