//! Cases 20 and 32: every invalid call or message has a defined result, and nothing is lost.

use crate::common;

use crate::common::{Dice, Unit, encode, poll, schema};
use prescient_codec::{Ack, AppliedSet, Config, Sequence, numbers};
use prescient_replication::{
    Change, Client, ClientConfig, ClientError, Distance, Everything, FromClient, PeerError, PeerId,
    Position, Room, Server, ServerConfig, Tick, Visibility, WorldError,
};
use prescient_schema::{Class, EntityRef, Field, FieldKind, Ref, Schema, State};
use prescient_tests::seeds::over_seeds;

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Stranger {
    number: u8,
}

const NOBODY: PeerId = PeerId(77);

/// A server and three clients that know one unit.
fn test_server(config: ServerConfig) -> (Server, Vec<Client>, Ref<Unit>) {
    let mut server = Server::new(schema(), config, Everything).expect("sound");
    let client = |_| Client::new(schema(), Default::default()).expect("sound");
    let mut clients: Vec<Client> = (0..3).map(client).collect();
    for (peer, client) in (1..).map(PeerId).zip(&mut clients) {
        server.connect(peer);
        common::greet(&mut server, peer, client);
    }
    let mut step = server.step(Tick(1)).expect("the first");
    let unit = step.spawn(&Unit::default()).expect("sound");
    step.finish();
    pass(&mut server, &mut clients);
    (server, clients, unit)
}

fn pass(server: &mut Server, clients: &mut [Client]) {
    for (peer, message) in encode(server, &|_| Room::UNLIMITED) {
        let client = &mut clients[peer.0 as usize - 1];
        client.handle(&message).expect("in order");
        let ack = client.acknowledgement().expect("something arrived");
        server.handle(peer, &ack).expect("honest");
    }
}

/// Asserts that all clients still see the unit and its changes.
fn goes_on(mut server: Server, mut clients: Vec<Client>, unit: Ref<Unit>) {
    let tick = server.world().tick().expect("there was one");
    let mut step = server.step(Tick(tick.0 + 1)).expect("in order");
    let next = Unit {
        health: 9,
        ..Unit::default()
    };
    step.set(unit, &next).expect("it is there");
    step.finish();
    pass(&mut server, &mut clients);
    for client in &clients {
        let entity = client.entities().next().expect("it is shown");
        assert_eq!(client.get::<Unit>(entity), Some(next.clone()));
    }
}

/// Fails if `WorldStep::find` accepts any entity with the same index, or if `Server::send_clock`
/// sends any tick.
#[test]
fn servers_answer_anything() {
    let (mut server, clients, unit) = test_server(ServerConfig::default());
    let missing = Err(PeerError::NoSuchPeer(NOBODY));
    let nowhere = Position([f64::NAN, f64::INFINITY, -1e300]);
    assert_eq!(server.set_view_position(NOBODY, nowhere), missing);
    assert_eq!(server.follow(NOBODY, unit.entity_ref()), missing);
    assert_eq!(server.set_team(NOBODY, 1), missing);
    assert_eq!(server.send_event(NOBODY, b"hello"), missing);
    assert_eq!(server.handle(NOBODY, &[2]).map(drop), missing);
    assert_eq!(poll(&mut server, NOBODY), None);
    assert_eq!(server.statistics(NOBODY), None);
    assert!(!server.sees(NOBODY, unit.entity_ref()));
    server.disconnect(NOBODY);
    server
        .set_view_position(PeerId(1), nowhere)
        .expect("connected");
    for entity in [EntityRef::NONE, EntityRef::new(0, 5), EntityRef::new(9, 0)] {
        let gone = WorldError::NoSuchEntity(entity);
        assert_eq!(server.send_entity_event(entity, b"?"), Err(gone.clone()));
        assert_eq!(
            server.send_entity_event_to(NOBODY, entity, b"?"),
            Err(gone.clone())
        );
        server.follow(PeerId(2), entity).expect("connected");
        assert!(!server.sees(PeerId(1), entity));
        assert_eq!(server.world().position(entity), None);
        let mut step = server
            .step(Tick(server_tick(&server) + 1))
            .expect("in order");
        assert_eq!(
            step.set(Ref::to(entity), &Unit::default()),
            Err(gone.clone())
        );
        assert_eq!(step.set_owner(entity, None), Err(gone.clone()));
        assert_eq!(step.despawn(entity), Err(gone));
        let unknown = WorldError::UnknownType(Stranger::NAME.into());
        let stranger = Stranger::default();
        assert_eq!(step.spawn(&stranger).map(drop), Err(unknown.clone()));
        assert_eq!(
            step.set(Ref::to(unit.entity_ref()), &stranger),
            Err(unknown)
        );
    }
    server
        .send_entity_event_to(NOBODY, unit.entity_ref(), b"?")
        .expect("it is there");
    for tick in [0, server_tick(&server)] {
        assert!(matches!(
            server.step(Tick(tick)).map(drop),
            Err(WorldError::Capture(_))
        ));
    }
    goes_on(server, clients, unit);
}

fn server_tick(server: &Server) -> u64 {
    server.world().tick().map_or(0, |tick| tick.0)
}

/// Bytes that are no message, or not of a client, or of one that lies. Fails if `Message::read` or
/// `Encoder::acknowledge` accepts anything.
#[test]
fn servers_take_any_bytes() {
    over_seeds(20, |seed| {
        let (mut server, clients, unit) = test_server(ServerConfig::default());
        let mut dice = Dice::new(seed);
        for _ in 0..500 {
            let length = dice.below(40) as usize;
            let mut bytes: Vec<u8> = (0..length).map(|_| dice.below(256) as u8).collect();
            if let Some(first) = bytes.first_mut() {
                *first = (dice.below(13) as u8) << 4;
            }
            match server.handle(PeerId(1 + dice.below(3)), &bytes) {
                Ok(FromClient::Event { about, .. }) => {
                    assert!(bytes[0] == 0x10 && length > 2, "{about:?}")
                }
                // Cannot be told from the truth: it acknowledges what was sent. A report without
                // authority is ignored.
                Ok(FromClient::Applied) => {
                    assert!(bytes[0] == 0x40 || bytes[0] == 0x60 && length > 2);
                }
                Err(PeerError::AuditNotRequested) => assert_eq!(bytes[0], 0x30),
                Ok(other) => panic!("neither requested nor greeted: {other:?}"),
                Err(PeerError::Malformed | PeerError::BadAcknowledgement(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        // A packet that was never sent was not applied.
        let lie = Ack {
            epoch: 0,
            newest: Sequence(255),
            applied: AppliedSet::ALL,
            resync: false,
        };
        let lie = [&[0x60][..], &lie.to_bytes()].concat();
        let refused = server.handle(PeerId(1), &lie);
        assert!(matches!(refused, Err(PeerError::BadAcknowledgement(_))));
        goes_on(server, clients, unit);
    });
}

/// Bytes that are no message, or none of a server; none of them unfolds. Fails if `Client::handle`
/// accepts messages for a server, or if a packet of hostile bytes may create any number of entities
/// (`max_entities` and the allowance of `ReadLimits` ignored).
#[test]
fn clients_take_any_bytes() {
    over_seeds(20, |seed| {
        let (mut server, mut clients, unit) = test_server(ServerConfig::default());
        let mut dice = Dice::new(seed);
        for client in &mut clients {
            for _ in 0..300 {
                let length = dice.below(1200) as usize;
                let mut bytes: Vec<u8> = (0..length).map(|_| dice.below(256) as u8).collect();
                if let Some(first) = bytes.first_mut() {
                    *first = [0x40, 0x40, 0x60, 0x10, 0x90][dice.below(5) as usize];
                }
                assert!(client.handle(&bytes).is_err(), "{length} bytes were taken");
            }
            assert_eq!(client.handle(&[]), Err(ClientError::Malformed));
            assert_eq!(client.handle(&[0, 0]), Err(ClientError::Malformed));
            // Any event is valid, even of a tick that never arrives, about an unknown entity.
            for number in 0..3000u32 {
                let mut event = vec![0];
                numbers::put(&mut event, u64::MAX);
                numbers::put(&mut event, number.into());
                client.handle(&event).expect("an event");
            }
            let changes = std::iter::from_fn(|| client.poll_change());
            let received = changes.filter(|change| matches!(change, Change::Event { .. }));
            let received = received.count();
            assert!(
                (1976..3000).contains(&received),
                "no more than 1024 wait: {received}"
            );
        }
        // They request a resync and get it.
        for (peer, client) in (1..).zip(&mut clients) {
            let ack = client.acknowledgement().expect("something arrived");
            server.handle(PeerId(peer), &ack).expect("honest");
        }
        goes_on(server, clients, unit);
    });
}

/// Queries about unknown entities. Fails if `ShownWorld::entry` does not compare generations.
#[test]
fn clients_answer_anything() {
    let (mut server, mut clients, unit) = test_server(ServerConfig::default());
    let entity = clients[0].entities().next().expect("it is shown");
    let client = &clients[0];
    assert_eq!(client.get::<Stranger>(entity), None);
    assert_eq!(client.get_table::<Unit>(entity, "secret"), None);
    assert_eq!(client.get_table::<Unit>(entity, "private"), None);
    assert_eq!(client.row(entity, usize::MAX), None);
    assert_eq!(client.tick_of(entity, usize::MAX), None);
    assert_eq!(client.content(-1), None);
    for reference in [
        EntityRef::NONE,
        EntityRef::new(u32::MAX, 3),
        EntityRef::new(77, 0),
    ] {
        assert_eq!(client.resolve(reference), None);
    }
    assert!(client.send_event(None, &[]).is_some());
    let mut step = server.step(Tick(2)).expect("in order");
    step.despawn(unit.entity_ref()).expect("it was there");
    step.finish();
    pass(&mut server, &mut clients);
    let client = &clients[0];
    assert!(!client.entities().any(|other| other == entity));
    assert_eq!(client.get::<Unit>(entity), None);
    // Nor when another entity has its id.
    for tick in 3..9 {
        let mut step = server.step(Tick(tick)).expect("in order");
        if tick == 6 {
            step.spawn(&Unit::default()).expect("sound");
        }
        step.finish();
        pass(&mut server, &mut clients);
    }
    let client = &clients[0];
    assert_eq!(client.entities().count(), 1);
    assert_eq!(client.get::<Unit>(entity), None);
    assert_eq!(client.type_name(entity), None);
    assert_eq!(client.send_event(Some(entity), b"?"), None);
}

/// Settings that cannot work. Fails if `ServerConfig::check` or `ClientConfig::check` is not called,
/// or forgets a setting.
#[test]
fn settings_that_cannot_work_are_named() {
    let none = Config::default().with_max_entities(0);
    let sound = ServerConfig::default;
    for (config, setting) in [
        (sound().with_codec(none), "codec.max_entities"),
        (
            sound().with_codec(Config::default().with_history(300)),
            "codec.history",
        ),
        (sound().with_relevance_interval(0), "relevance_interval"),
        (sound().with_grid_cell(0.0), "grid_cell"),
        (sound().with_grid_cell(-1.0), "grid_cell"),
        (sound().with_grid_cell(f64::NAN), "grid_cell"),
        (sound().with_grid_cell(f64::INFINITY), "grid_cell"),
        (sound().with_probe_every(0), "probe_every"),
        (sound().with_max_newcomers(0), "max_newcomers"),
    ] {
        let refused = Server::new(schema(), config, Everything).err();
        assert!(
            matches!(refused, Some(WorldError::Config(error)) if error.setting() == setting),
            "{setting}"
        );
    }
    let config = ClientConfig::default().with_max_entities(0);
    let refused = Client::new(schema(), config).err();
    assert!(
        matches!(refused, Some(WorldError::Config(error)) if error.setting() == "max_entities")
    );
}

/// Absurd settings and invalid schemas. Fails if `Visibility::and_table` shifts without a limit (`1
/// << table`).
#[test]
fn settings_may_make_no_sense() {
    let config = ServerConfig::default()
        .with_relevance_interval(1)
        .with_grid_cell(f64::MAX)
        .with_resync_every(u32::MAX);
    let (server, clients, unit) = test_server(config.clone());
    goes_on(server, clients, unit);
    // Nothing may wait, so nothing can be sent, not even the settings.
    let config = config.with_max_event_bytes(0);
    let (mut server, clients, _) = test_server(config.clone());
    server.send_event(PeerId(1), b"hello").expect("connected");
    assert_eq!(poll(&mut server, PeerId(1)), None);
    assert_eq!(server.overrun().count(), 3, "not even a welcome");
    assert_eq!(encode(&mut server, &|_| Room::UNLIMITED), []);
    assert!(clients.iter().all(|client| !client.is_welcome()));

    let refused = [
        (f64::NAN, 1.0),
        (1.0, f64::NAN),
        (-1.0, 1.0),
        (2.0, 1.0),
        (f64::INFINITY, 1.0),
    ];
    for (enter, leave) in refused {
        assert!(Distance::new(enter, leave).is_err(), "{enter}, {leave}");
    }
    for (enter, leave) in [
        (0.0, 0.0),
        (0.0, f64::INFINITY),
        (f64::INFINITY, f64::INFINITY),
    ] {
        let policy = Distance::new(enter, leave).expect("possible, if useless");
        let mut server = Server::new(schema(), config.clone(), policy).expect("sound");
        server.connect(PeerId(1));
        server
            .set_view_position(PeerId(1), Position([f64::NAN; 3]))
            .expect("connected");
        let mut step = server.step(Tick(1)).expect("the first");
        step.spawn(&Unit::default()).expect("sound");
        step.finish();
        for budget in [Some(0), Some(1), Some(usize::MAX), None] {
            encode(&mut server, &|_| budget.map_or(Room::UNLIMITED, Room::one));
        }
    }
    assert_eq!(Visibility::PUBLIC.and_table(usize::MAX), Visibility::PUBLIC);
    let twice = Field::new("a", FieldKind::Bool);
    let broken = Class::new("broken", vec![twice.clone(), twice]);
    let broken = || Schema {
        classes: vec![broken.clone()],
    };
    let refused = Server::new(broken(), config, Everything).err();
    assert!(matches!(refused, Some(WorldError::Schema(_))));
    let refused = Client::new(broken(), Default::default()).err();
    assert!(matches!(refused, Some(WorldError::Schema(_))));
}
