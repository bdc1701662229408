//! Several worlds on one server, clients that move between them, and clients with authority.

use prescient::{
    Change, Client, ClientEvent, Everything, JoinError, MoveError, PeerId, Schema, Server,
    ServerEvent, State, WorldId,
};
use prescient_net::Clock;

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Ship {
    #[state(step = 0.01, position)]
    position: [f32; 2],
}

fn schema() -> Schema {
    Schema::of::<Ship>().expect("a sound schema")
}

fn joined(server: &mut Server) -> Vec<PeerId> {
    let events = std::iter::from_fn(|| server.poll());
    let joined = events.filter_map(|event| match event {
        ServerEvent::Joined { peer, .. } => Some(peer),
        _ => None,
    });
    joined.collect()
}

fn changes(client: &mut Client) -> Vec<Change> {
    let events = std::iter::from_fn(|| client.poll());
    let changes = events.filter_map(|event| match event {
        ClientEvent::Change(change) => Some(change),
        _ => None,
    });
    changes.collect()
}

fn positions(client: &Client) -> Vec<[f32; 2]> {
    let ships = client.entities().filter_map(|entity| client.get(entity));
    ships.map(|Ship { position }| position).collect()
}

/// Fails if `Server::send` sends only the first world, or if a peer's messages go to the world that
/// it left (`world_of_mut` that always returns the first).
#[test]
fn a_client_goes_to_another_world() {
    let mut server = Server::offline(schema(), Everything).expect("a sound schema");
    let (mut stays, mut goes) = (server.local_client(), server.local_client());
    let peers = joined(&mut server);
    let there = server.open_world(Everything).expect("a sound schema");
    let ship = |x: f32| Ship { position: [x, 0.0] };
    server
        .step()
        .and_then(|mut step| step.spawn(&ship(1.0)))
        .expect("sound");
    let step = server.step_in(there).expect("it is open");
    step.and_then(|mut step| step.spawn(&ship(2.0)))
        .expect("sound");
    server.send();
    assert_eq!(changes(&mut goes).len(), 1);
    assert_eq!(positions(&goes), [[1.0, 0.0]]);

    server.move_to(peers[1], there).expect("both are there");
    server.send();
    let [Change::Entered, Change::Removed(_), Change::Created(_)] = changes(&mut goes)[..] else {
        panic!("it is not elsewhere");
    };
    changes(&mut stays);
    assert_eq!(
        (positions(&stays), positions(&goes)),
        (vec![[1.0, 0.0]], vec![[2.0, 0.0]])
    );
    server
        .send_event(peers[1], b"welcome")
        .expect("it is there");
    goes.send_event(None, b"thanks").expect("there is room");
    server.send();
    let received = changes(&mut goes);
    assert!(matches!(&received[..], [Change::Event { payload, .. }] if payload == b"welcome"));
    let reported = std::iter::from_fn(|| server.poll()).collect::<Vec<_>>();
    assert!(matches!(&reported[..], [ServerEvent::Event { peer, .. }] if *peer == peers[1]));
    assert!(
        server
            .statistics(peers[1])
            .is_some_and(|report| report.state.visible == 1)
    );

    assert_eq!(server.close_world(there), Err(MoveError::InUse(there)));
    assert_eq!(
        server.close_world(WorldId::FIRST),
        Err(MoveError::InUse(WorldId::FIRST))
    );
    server
        .move_to(peers[1], WorldId::FIRST)
        .expect("both are there");
    assert_eq!(server.close_world(there), Ok(()));
    assert_eq!(
        server.close_world(there),
        Err(MoveError::NoSuchWorld(there))
    );
    assert_eq!(
        server.move_to(peers[0], there),
        Err(MoveError::NoSuchWorld(there))
    );
    let nobody = PeerId(u64::MAX);
    assert_eq!(
        server.move_to(nobody, WorldId::FIRST),
        Err(MoveError::NoSuchPeer(nobody))
    );
    server.send();
    changes(&mut goes);
    assert_eq!(positions(&goes), [[1.0, 0.0]]);
}

/// Fails if `Client::report` sends nothing, or if the server does not acknowledge it.
#[test]
fn a_client_steers_its_own_ship() {
    let mut server = Server::offline(schema(), Everything).expect("a sound schema");
    let (mut captain, mut watcher) = (server.local_client(), server.local_client());
    let peer = joined(&mut server)[0];
    let mut step = server.step().expect("in order");
    let ship = step.spawn_for(peer, &Ship::default()).expect("sound");
    step.grant_authority(ship.entity_ref(), peer)
        .expect("it is there");
    step.finish();
    let mut longest = 0;
    for tick in 1..60u8 {
        server.send();
        changes(&mut captain);
        let own = captain
            .entities()
            .find(|&entity| captain.has_authority(entity));
        if let Some(own) = own {
            let position = [f32::from(tick), 0.5];
            captain
                .set(own, &Ship { position })
                .expect("it has authority");
            captain.report();
        }
        while server.poll().is_some() {}
        server.step().expect("in order").finish();
        changes(&mut watcher);
        longest = longest.max(positions(&watcher)[0][0] as i32);
    }
    assert_eq!(longest, 58, "all clients see where it goes");
    assert_eq!(positions(&captain), [[59.0, 0.5]]);
}

#[derive(State)]
#[state(rename = "Ship")]
struct OtherShip {
    #[state(step = 0.02, position)]
    _place: [f32; 2],
}

/// Case 19 on sockets. Fails if `Client::join` does not wait for the server's response to its
/// schema.
#[test]
fn another_schema_is_named_on_both_sides() {
    let mut server = Server::loopback("127.0.0.1:0", schema(), Everything).expect("a server");
    let address = server.address().expect("it has a socket").to_string();
    let other = Schema::of::<OtherShip>().expect("a sound schema");
    let joining = std::thread::spawn(move || Client::loopback(&address, other).err());
    let clock = Clock::start();
    let named = loop {
        assert!(clock.now().as_micros() < 20_000_000, "it takes too long");
        server.wait(std::time::Duration::from_millis(5));
        match server.poll() {
            Some(ServerEvent::OtherSchema { differences, .. }) => break differences,
            Some(event) => panic!("{event:?}"),
            None => {}
        }
    };
    while !joining.is_finished() {
        server.wait(std::time::Duration::from_millis(5));
    }
    let refused = joining.join().expect("no panic");
    let Some(JoinError::OtherSchema(differences)) = &refused else {
        panic!("{refused:?}");
    };
    assert_eq!(differences, &named);
    let text = refused.map(|error| error.to_string()).unwrap_or_default();
    assert!(text.contains("class `Ship`, field `position"), "{text}");
    assert!(
        server.poll().is_none(),
        "a client that never joined does not leave"
    );
}
