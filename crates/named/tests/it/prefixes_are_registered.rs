//! Prefix registration by the NFD management protocol.

use std::time::Duration;

use crate::common::*;
use prescient_named::*;

fn sign(command: &Command, signer: &Signer, time: u64) -> Vec<u8> {
    let stamp = SignatureStamp {
        nonce: Some(&[1; 8]),
        time: Some(time),
        sequence: None,
    };
    let mut packet = Vec::new();
    command
        .sign(signer, stamp, (time as u32).to_be_bytes(), &mut packet)
        .expect("it fits");
    packet
}

/// Sends a command and returns the response.
fn command(world: &mut World, app: App, packet: &[u8]) -> ControlResponse {
    world.send(app, packet);
    let answers = world.received(app);
    let answer = answers.last().expect("an answer");
    let data = Data::decode(answer).expect("Data");
    let asked = Interest::decode(packet).expect("our own").name();
    assert_eq!(data.name(), asked);
    data.verify(&Verifier::digest()).expect("whole");
    ControlResponse::decode(data.content()).expect("a response")
}

/// Fails if Interests do not reach the registered face, reach another one, or still arrive after the
/// registration was removed.
#[test]
fn registered_and_no_longer() {
    let mut world = World::default();
    let node = world.node();
    let (anna, ben, consumer) = (world.app(node), world.app(node), world.app(node));
    let signer = Signer::digest();
    for (app, text, time) in [(anna, "/game/anna", 1), (ben, "/game/ben", 2)] {
        let packet = sign(&Command::register(name(text)), &signer, time);
        let response = command(&mut world, app, &packet);
        assert_eq!((response.code, response.text.as_str()), (200, "OK"));
        let done = response.parameters.expect("with what was done");
        assert_eq!(done.name, Some(name(text)));
        assert_eq!(done.face, Some(app.face.number()));
        assert_eq!(
            (done.cost, done.origin, done.flags),
            (Some(0), Some(0), Some(CHILD_INHERIT))
        );
    }
    world.ask(consumer, "/game/ben/1", 1);
    assert_eq!(world.heard(ben), [asked("/game/ben/1", 1)]);
    assert_eq!(world.heard(anna), []);
    let packet = sign(&Command::unregister(name("/game/ben")), &signer, 3);
    assert!(command(&mut world, ben, &packet).is_ok());
    world.ask(consumer, "/game/ben/2", 2);
    assert_eq!(world.heard(ben), []);
    // It is removed already.
    let packet = sign(&Command::unregister(name("/game/ben")), &signer, 4);
    assert!(command(&mut world, ben, &packet).is_ok());
    world.nodes[node].remove_face(anna.face);
    assert_eq!(world.nodes[node].statistics().routes, 0);
    assert_eq!(world.nodes[node].statistics().commands, 4);
}

/// Fails if a registration does not expire, or if registering again does not prolong it.
#[test]
fn a_registration_may_expire() {
    let mut world = World::default();
    let node = world.node();
    let (anna, consumer) = (world.app(node), world.app(node));
    let mut register = Command::register(name("/anna"));
    register.parameters.expiration = Some(Duration::from_secs(60));
    let signer = Signer::digest();
    assert!(command(&mut world, anna, &sign(&register, &signer, 1)).is_ok());
    world.run(Duration::from_secs(59));
    assert!(command(&mut world, anna, &sign(&register, &signer, 2)).is_ok());
    assert_eq!(world.nodes[node].statistics().routes, 1);
    world.run(Duration::from_secs(59));
    world.ask(consumer, "/anna/1", 1);
    assert_eq!(world.heard(anna), [asked("/anna/1", 1)]);
    world.run(Duration::from_secs(5));
    assert_eq!(world.nodes[node].statistics().routes, 0);
    world.ask(consumer, "/anna/2", 2);
    let reason = NackReason::NoRoute;
    assert_eq!(world.heard(consumer), [refused("/anna/2", 2, reason)]);
    assert_eq!(world.nodes[node].next_timeout(), None);
}

/// Fails if the flags CHILD_INHERIT or CAPTURE are ignored.
#[test]
fn a_prefix_may_be_captured() {
    let mut world = World::default();
    let node = world.node();
    let (wide, narrow, consumer) = (world.app(node), world.app(node), world.app(node));
    let signer = Signer::digest();
    let mut time = 0;
    for (wide_flags, narrow_flags, goes_to_both) in [
        (CHILD_INHERIT, CHILD_INHERIT, true),
        (0, CHILD_INHERIT, false),
        (CHILD_INHERIT, CAPTURE, false),
    ] {
        for (app, text, flags) in [
            (wide, "/game", wide_flags),
            (narrow, "/game/anna", narrow_flags),
        ] {
            let mut register = Command::register(name(text));
            register.parameters.flags = Some(flags);
            time += 1;
            assert!(command(&mut world, app, &sign(&register, &signer, time)).is_ok());
        }
        world.nodes[node].set_strategy(name("/game").view(), Some(Strategy::Multicast));
        world.ask(consumer, &format!("/game/anna/{time}"), time as u32);
        assert_eq!(world.heard(narrow).len(), 1);
        assert_eq!(world.heard(wide).len(), usize::from(goes_to_both));
        world.ask(consumer, &format!("/game/ben/{time}"), time as u32);
        assert_eq!(world.heard(wide).len(), 1);
        assert_eq!(world.heard(narrow).len(), 0);
    }
}

/// Fails if a neighbour may register without permission, or for a face other than its own.
#[test]
fn neighbours_register_only_if_they_are_let() {
    let mut world = World::default();
    let node = world.node();
    let local = world.app(node);
    let stranger = world.app_with(node, &FaceConfig::remote());
    let friend = world.app_with(node, &FaceConfig::remote().registration(true));
    let signer = Signer::digest();
    let register = Command::register(name("/anna")).from_neighbour();
    let response = command(&mut world, stranger, &sign(&register, &signer, 1));
    assert_eq!(response.code, 403);
    let response = command(&mut world, friend, &sign(&register, &signer, 2));
    assert_eq!(response.code, 200);
    let mut for_another = register.clone();
    for_another.parameters.face = Some(local.face.number());
    let response = command(&mut world, friend, &sign(&for_another, &signer, 3));
    assert_eq!(response.code, 403);
    // An application on this machine may register for other faces.
    let mut for_another = Command::register(name("/ben"));
    for_another.parameters.face = Some(friend.face.number());
    let response = command(&mut world, local, &sign(&for_another, &signer, 4));
    assert_eq!(response.code, 200);
    for_another.parameters.face = Some(9999);
    let response = command(&mut world, local, &sign(&for_another, &signer, 5));
    assert_eq!(response.code, 410);
    // Neighbours cannot send commands under `/localhost`.
    world.send(friend, &sign(&Command::register(name("/carl")), &signer, 6));
    assert_eq!(world.heard(friend), []);
    assert_eq!(world.nodes[node].statistics().routes, 2);
}

/// Fails if a command is executed without the signature of a trusted key, or was signed before the last
/// one or before the forwarder started.
#[test]
fn with_keys_only_their_commands_count_and_only_once() {
    let mut world = World::default();
    let keys = [Signer::hmac(b"one", None), Signer::ed25519(&[2; 32], None)];
    let trusted = keys.iter().map(Signer::verifier).collect();
    let config = ForwarderConfig::default()
        .commands(CommandTrust::Keys(trusted))
        .commands_after(1000);
    let node = world.node_with(config);
    let app = world.app(node);
    let register = Command::register(name("/anna"));
    let unregister = Command::unregister(name("/anna"));
    for (command_, signer, time, code) in [
        (&register, &Signer::digest(), 2000, 403),
        (&register, &Signer::hmac(b"another", None), 2000, 403),
        (&register, &keys[0], 1000, 403),
        (&register, &keys[0], 2000, 200),
        (&unregister, &keys[0], 2001, 200),
        // The first is replayed.
        (&register, &keys[0], 2000, 403),
        (&register, &keys[1], 1500, 200),
    ] {
        let response = command(&mut world, app, &sign(command_, signer, time));
        assert_eq!(response.code, code, "{time}");
    }
    // Without a signing time it could be a replay.
    let mut packet = Vec::new();
    let stamp = SignatureStamp::default();
    register
        .sign(&keys[0], stamp, [0; 4], &mut packet)
        .expect("it fits");
    assert_eq!(command(&mut world, app, &packet).code, 403);
}

/// Fails if a malformed command is executed or forwarded.
#[test]
fn nonsense_is_refused_with_a_reason() {
    let mut world = World::default();
    let node = world.node();
    let (app, everything) = (world.app(node), world.app(node));
    world.route(node, "/", everything.face, 0);
    for (text, code) in [
        ("/localhost/nfd/rib", 501),
        ("/localhost/nfd/rib/register", 400),
        ("/localhost/nfd/rib/register/nonsense", 400),
        ("/localhost/nfd/rib/register/h%00", 400),
        ("/localhost/nfd/rib/destroy/h%00", 501),
        ("/localhop/nfd/rib/list", 501),
    ] {
        let packet = interest(text, 1, |it| it);
        assert_eq!(command(&mut world, app, &packet).code, code, "{text}");
    }
    assert_eq!(world.heard(everything), []);
    let statistics = world.nodes[node].statistics();
    assert_eq!(
        (statistics.routes, statistics.pending, statistics.stored),
        (1, 0, 0)
    );
}
