//! Routes, strategies, Nacks, hop limits, scopes and fragments.

use std::time::Duration;

use crate::common::*;
use prescient_named::*;

/// Fails if a shorter prefix is preferred, or a more expensive route.
#[test]
fn the_longest_prefix_and_the_cheapest_way() {
    let mut world = World::default();
    let node = world.node();
    let apps: Vec<App> = (0..5).map(|_| world.app(node)).collect();
    let consumer = world.app(node);
    world.route(node, "/", apps[0].face, 0);
    world.route(node, "/game", apps[1].face, 9);
    world.route(node, "/game/anna", apps[2].face, 5);
    world.route(node, "/game/anna", apps[3].face, 4);
    for (nonce, (text, app)) in [
        ("/other", 0),
        ("/gamer/1", 0),
        ("/game/ben", 0),
        ("/game/anna", 0),
    ]
    .into_iter()
    .enumerate()
    {
        // Routes of shorter prefixes are used for longer ones; the default route costs nothing.
        world.ask(consumer, text, nonce as u32);
        for (number, other) in apps.iter().enumerate() {
            assert_eq!(
                world.heard(*other).len(),
                usize::from(number == app),
                "{text}"
            );
        }
    }
    assert!(world.nodes[node].remove_route(Name::new().view(), apps[0].face));
    assert!(!world.nodes[node].remove_route(Name::new().view(), apps[0].face));
    for (nonce, (text, app)) in [("/game/ben/2", 1), ("/game/anna/2", 3)]
        .into_iter()
        .enumerate()
    {
        world.ask(consumer, text, 100 + nonce as u32);
        assert_eq!(world.heard(apps[app]).len(), 1, "{text}");
    }
    // The same route at another cost.
    world.route(node, "/game/anna", apps[2].face, 3);
    world.ask(consumer, "/game/anna/3", 200);
    assert_eq!(world.heard(apps[2]).len(), 1);
    assert_eq!(world.nodes[node].statistics().routes, 3);
}

/// Fails if there is no Nack, or if it has another nonce than the Interest that it refuses.
#[test]
fn interests_without_a_route_are_nacked() {
    let mut world = World::default();
    let (near, far) = (world.node(), world.node());
    let link = world.link(near, far, 10 * MS);
    world.route(near, "/", link.faces[0], 0);
    let (first, second) = (world.app(near), world.app(near));
    world.ask(first, "/nobody", 1);
    world.ask(second, "/nobody", 2);
    world.run(25 * MS);
    let reason = NackReason::NoRoute;
    assert_eq!(world.heard(first), [refused("/nobody", 1, reason)]);
    assert_eq!(world.heard(second), [refused("/nobody", 2, reason)]);
    assert_eq!(world.nodes[near].statistics().pending_bytes, 0);
    // An Interest is not sent back to its own face.
    let lonely = world.node();
    let only = world.app(lonely);
    world.route(lonely, "/", only.face, 0);
    world.ask(only, "/anna", 3);
    assert_eq!(world.heard(only), [refused("/anna", 3, reason)]);
}

/// Fails if best-route gives up at the first Nack, tries the same face again, or sends another reason
/// than the least severe downstream.
#[test]
fn the_next_route_is_tried_after_a_nack() {
    let mut world = World::default();
    let node = world.node();
    let producers: Vec<App> = (0..3).map(|_| world.app(node)).collect();
    let consumer = world.app(node);
    for (cost, producer) in producers.iter().enumerate() {
        world.route(node, "/anna", producer.face, cost as u64);
    }
    let refuse = |world: &mut World, app: App, nonce, reason| {
        let header = LinkHeader {
            nack: Some(reason),
            ..LinkHeader::default()
        };
        let mut packet = Vec::new();
        header.encode(&interest("/anna/1", nonce, |it| it), &mut packet);
        world.send(app, &packet);
    };
    world.ask(consumer, "/anna/1", 1);
    assert_eq!(world.heard(producers[0]), [asked("/anna/1", 1)]);
    // Nacks without a pending Interest change nothing.
    refuse(&mut world, producers[1], 1, NackReason::NoRoute);
    refuse(&mut world, producers[0], 2, NackReason::NoRoute);
    assert_eq!(world.heard(producers[1]), []);
    refuse(&mut world, producers[0], 1, NackReason::NoRoute);
    assert_eq!(world.heard(producers[1]), [asked("/anna/1", 1)]);
    refuse(&mut world, producers[0], 1, NackReason::NoRoute);
    refuse(&mut world, producers[1], 1, NackReason::Congestion);
    assert_eq!(world.heard(producers[2]), [asked("/anna/1", 1)]);
    assert_eq!(world.heard(consumer), []);
    refuse(&mut world, producers[2], 1, NackReason::Duplicate);
    let reason = NackReason::Congestion;
    assert_eq!(world.heard(consumer), [refused("/anna/1", 1, reason)]);
    assert!(world.heard(producers[0]).is_empty());
}

/// Fails if multicast sends to one face only, sends a Nack while other faces may answer, or sends again
/// before the Interest has expired.
#[test]
fn multicast_asks_all() {
    let mut world = World::default();
    let node = world.node();
    let members: Vec<App> = (0..3).map(|_| world.app(node)).collect();
    for member in &members {
        world.route(node, "/group", member.face, 0);
    }
    world.nodes[node].set_strategy(name("/group").view(), Some(Strategy::Multicast));
    world.ask(members[0], "/group/1", 1);
    assert_eq!(world.heard(members[0]), []);
    assert_eq!(world.heard(members[1]), [asked("/group/1", 1)]);
    assert_eq!(world.heard(members[2]), [asked("/group/1", 1)]);
    // Another consumer requests it: only the first one's face was not sent the Interest yet.
    world.ask(members[1], "/group/1", 2);
    assert_eq!(world.heard(members[0]), [asked("/group/1", 2)]);
    assert_eq!(world.heard(members[2]), []);
    let header = LinkHeader {
        nack: Some(NackReason::NoRoute),
        ..LinkHeader::default()
    };
    let mut packet = Vec::new();
    header.encode(&interest("/group/1", 1, |it| it), &mut packet);
    world.send(members[2], &packet);
    assert_eq!(world.heard(members[0]), []);
    world.answer(members[1], "/group/1", b"x", MS);
    assert_eq!(world.heard(members[0]), [told("/group/1", b"x")]);
    // The strategy of a shorter prefix applies to longer ones without their own.
    world.nodes[node].set_strategy(name("/group").view(), None);
    world.ask(members[0], "/group/2", 3);
    let heard = [world.heard(members[1]), world.heard(members[2])].concat();
    assert_eq!(heard, [asked("/group/2", 3)]);
}

/// Fails if a hop limit is not decremented, or if an Interest with 0 leaves the machine.
#[test]
fn a_hop_limit_is_counted_down() {
    let mut world = World::default();
    let nodes: Vec<usize> = (0..4).map(|_| world.node()).collect();
    for pair in nodes.windows(2) {
        let link = world.link(pair[0], pair[1], MS);
        world.route(pair[0], "/anna", link.faces[0], 0);
    }
    let consumer = world.app(nodes[0]);
    let producer = world.app(nodes[3]);
    world.route(nodes[3], "/anna", producer.face, 0);
    for limit in 0..6 {
        let text = format!("/anna/{limit}");
        world.send(consumer, &interest(&text, 1, |it| it.hop_limit(limit)));
        world.run(10 * MS);
        let came = world.received(producer);
        // Four forwarders on the path; the last one sends it to an application.
        assert_eq!(came.len(), usize::from(limit >= 4), "{limit}");
        for packet in came {
            let interest = Interest::decode(&packet).expect("our own");
            assert_eq!(interest.hop_limit(), Some(limit - 4));
        }
        world.run(Duration::from_secs(5));
    }
}

/// Fails if `/localhost` names leave the machine or are accepted from another one, or if `/localhop` names
/// pass two links.
#[test]
fn localhost_and_localhop_stay_in_scope() {
    let mut world = World::default();
    let (near, middle, far) = (world.node(), world.node(), world.node());
    let first = world.link(near, middle, MS);
    let second = world.link(middle, far, MS);
    world.route(near, "/", first.faces[0], 0);
    world.route(middle, "/", second.faces[0], 0);
    let consumer = world.app(near);
    let producer = world.app(middle);
    for text in ["/localhost", "/localhop"] {
        world.route(middle, text, producer.face, 1);
    }
    world.ask(consumer, "/localhost/1", 1);
    world.ask(consumer, "/localhop/2", 2);
    world.ask(consumer, "/elsewhere/3", 3);
    world.run(5 * MS);
    let reason = NackReason::NoRoute;
    let heard = world.heard(consumer);
    assert!(heard.contains(&refused("/localhost/1", 1, reason)));
    assert!(!heard.contains(&refused("/localhop/2", 2, reason)));
    assert_eq!(world.heard(producer), [asked("/localhop/2", 2)]);
    let over = world.nodes[middle].face_statistics(second.faces[0]);
    assert_eq!(over.expect("it is there").interests_out, 1);
    // Data under `/localhost` from another machine.
    let packet = interest("/localhost/4", 4, |it| it);
    let taken = world.nodes[middle].handle_packet(world.now, first.faces[1], &packet);
    assert_eq!(taken, Ok(()));
    assert_eq!(world.heard(producer), []);
    assert_eq!(world.nodes[middle].statistics().out_of_scope, 1);
}

/// Fails if a hint is ignored although the name has no route, or used although it has one.
#[test]
fn a_forwarding_hint_is_used_without_a_route() {
    let mut world = World::default();
    let node = world.node();
    let (direct, hinted, consumer) = (world.app(node), world.app(node), world.app(node));
    world.route(node, "/anna", direct.face, 0);
    world.route(node, "/isp", hinted.face, 0);
    let hints = [name("/nowhere"), name("/isp/two")];
    world.send(
        consumer,
        &interest("/anna/1", 1, |it| it.forwarding_hint(&hints)),
    );
    world.send(
        consumer,
        &interest("/ben/1", 2, |it| it.forwarding_hint(&hints)),
    );
    assert_eq!(world.heard(direct), [asked("/anna/1", 1)]);
    assert_eq!(world.heard(hinted), [asked("/ben/1", 2)]);
}

/// Fails if an Interest without a nonce is forwarded without one, or damaged by adding it.
#[test]
fn a_nonce_is_added_where_there_is_none() {
    let mut world = World::default();
    let node = world.node();
    let (producer, consumer) = (world.app(node), world.app(node));
    world.route(node, "/anna", producer.face, 0);
    let name = name("/anna/1");
    let hints = [name.clone()];
    let signer = Signer::hmac(b"key", None);
    let mut packet = Vec::new();
    InterestBuilder::new(name.view())
        .can_be_prefix()
        .forwarding_hint(&hints)
        .lifetime(Duration::from_secs(2))
        .hop_limit(9)
        .parameters(&[7; 300])
        .sign(&signer, SignatureStamp::default(), &mut packet)
        .expect("it fits");
    world.send(consumer, &packet);
    let came = world.received(producer);
    let came = Interest::decode(&came[0]).expect("our own");
    assert!(came.nonce().is_some() && came.can_be_prefix());
    assert_eq!(came.forwarding_hint().count(), 1);
    assert_eq!(came.lifetime(), Duration::from_secs(2));
    assert_eq!(came.hop_limit(), Some(8));
    came.verify(&signer.verifier()).expect("still whole");
}

/// Fails if an answer is still expected from a removed face.
#[test]
fn a_removed_face_is_not_waited_for() {
    let mut world = World::default();
    let (near, far) = (world.node(), world.node());
    let short = world.link(near, far, MS);
    let long = world.link(near, far, 50 * MS);
    let (consumer, producer) = (world.app(near), world.app(far));
    world.route(near, "/anna", short.faces[0], 1);
    world.route(near, "/anna", long.faces[0], 2);
    world.route(far, "/anna", producer.face, 0);
    world.cut(short);
    world.ask(consumer, "/anna/1", 1);
    world.run(60 * MS);
    assert_eq!(world.heard(producer), [asked("/anna/1", 1)]);
    world.cut(long);
    world.ask(consumer, "/anna/1", 2);
    let reason = NackReason::NoRoute;
    assert_eq!(world.heard(consumer), [refused("/anna/1", 2, reason)]);
    assert_eq!(world.nodes[near].statistics().routes, 0);
    let taken = world.nodes[near].handle_packet(world.now, short.faces[0], &[5, 0]);
    assert_eq!(taken, Err(HandleError::NoSuchFace));
}

/// Fails if a packet above the MTU is dropped, or if its fragments exceed the MTU.
#[test]
fn long_packets_cross_short_links() {
    for mtu in [MIN_MTU, 576, 1400] {
        let mut world = World::default();
        let (near, far) = (world.node(), world.node());
        let config = FaceConfig::remote().mtu(mtu).expect("in its range");
        let link = world.link_with(near, far, MS, &config);
        let (consumer, producer) = (world.app(near), world.app(far));
        world.route(near, "/anna", link.faces[0], 0);
        world.route(far, "/anna", producer.face, 0);
        let parameters = [3; 2000];
        world.send(
            consumer,
            &interest("/anna/1", 1, |it| it.parameters(&parameters)),
        );
        world.run(2 * MS);
        let came = world.received(producer);
        let came = Interest::decode(&came[0]).expect("whole");
        assert_eq!(came.parameters(), Some(&parameters[..]));
        let content = vec![8; 8000];
        world.answer(producer, &came.name().to_string(), &content, MS);
        world.run(2 * MS);
        assert_eq!(
            world.heard(consumer),
            [told(&came.name().to_string(), &content)]
        );
    }
    assert!(FaceConfig::remote().mtu(MIN_MTU - 1).is_none());
    assert!(FaceConfig::remote().mtu(MAX_PACKET + 1).is_none());
}
