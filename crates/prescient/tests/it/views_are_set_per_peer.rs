//! A server sets view positions per peer, and its policy gets the classes of observer and
//! candidate.

use prescient::{
    About, Candidate, Change, Client, ClientEvent, Distance, Everything, Observer, PeerId,
    Position, Schema, SchemaBuilder, Server, ServerEvent, State, Visibility, WorldId,
};

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Ship {
    #[state(step = 0.01, position)]
    position: [f32; 2],
}

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Mine {
    #[state(step = 0.01, position)]
    position: [f32; 2],
}

fn schema() -> Schema {
    let schema = SchemaBuilder::new().state::<Ship>().state::<Mine>();
    schema.build().expect("a sound schema")
}

fn joined(server: &mut Server) -> Vec<PeerId> {
    let events = std::iter::from_fn(|| server.poll());
    let joined = events.filter_map(|event| match event {
        ServerEvent::Joined { peer, .. } => Some(peer),
        _ => None,
    });
    joined.collect()
}

/// The payloads of events about entities.
fn events(client: &mut Client) -> Vec<Vec<u8>> {
    let events = std::iter::from_fn(|| client.poll());
    let payloads = events.filter_map(|event| match event {
        ClientEvent::Change(Change::Event {
            about: About::Entity(_),
            payload,
            ..
        }) => Some(payload),
        _ => None,
    });
    payloads.collect()
}

/// Fails if `Candidate::class` or `Observer::class` is that of another class (`tables(..)[0]` of
/// another type in `World::class` or in `Peer::update_visibility`), or if `follow` does nothing.
#[test]
fn a_policy_goes_by_class() {
    let schema = schema();
    let class = |name: &str| {
        let at = schema.classes.iter().position(|class| class.name == name);
        at.expect("it was declared") as u16
    };
    let (ship, mine) = (class(Ship::NAME), class(Mine::NAME));
    // Mines are visible from ships only.
    let policy = move |observer: &Observer, candidate: &Candidate, _: Option<Visibility>| {
        let is_visible = match candidate.class {
            class if class == mine => observer.class == Some(ship),
            class => class == ship,
        };
        is_visible.then_some(Visibility::PUBLIC)
    };
    let mut server = Server::offline(schema.clone(), policy).expect("a sound schema");
    let _clients = (server.local_client(), server.local_client());
    let peers = joined(&mut server);
    let mut step = server.step().expect("in order");
    let own = step.spawn(&Ship::default()).expect("sound").entity_ref();
    let hidden = step.spawn(&Mine::default()).expect("sound").entity_ref();
    step.finish();
    assert_eq!(server.world().class(own), Some(ship));
    assert_eq!(server.world().class(hidden), Some(mine));

    server.follow(peers[0], own).expect("it is connected");
    server.follow(peers[1], hidden).expect("it is connected");
    server.send();
    assert!(server.sees(peers[0], own) && server.sees(peers[0], hidden));
    assert!(server.sees(peers[1], own) && !server.sees(peers[1], hidden));

    server.follow(peers[1], own).expect("it is connected");
    server
        .set_view_position(peers[0], Position([0.0; 3]))
        .expect("it is connected");
    server.reevaluate_relevance();
    server.step().expect("in order").finish();
    server.send();
    assert!(!server.sees(peers[0], hidden) && server.sees(peers[1], hidden));
}

/// Fails if `set_view_position` or `sees` uses the first world for a peer of another one, or if
/// `send_entity_event_to` sends to all.
#[test]
fn a_peer_of_another_world_has_a_view_there() {
    let mut server = Server::offline(schema(), Everything).expect("a sound schema");
    let mut clients = [server.local_client(), server.local_client()];
    let peers = joined(&mut server);
    let there = server
        .open_world(Distance::new(10.0, 12.0).expect("sound"))
        .expect("a sound schema");
    for &peer in &peers {
        server.move_to(peer, there).expect("both are there");
        let view = server.set_view_position(peer, Position([0.0; 3]));
        view.expect("it is connected");
    }
    let mut step = server.step_in(there).expect("open").expect("in order");
    let ship = |x: f32| Ship { position: [x, 0.0] };
    let near = step.spawn(&ship(5.0)).expect("sound").entity_ref();
    let far = step.spawn(&ship(50.0)).expect("sound").entity_ref();
    step.finish();
    server.send();
    assert_eq!(server.peers().collect::<Vec<_>>(), peers);
    for &peer in &peers {
        assert!(server.sees(peer, near) && !server.sees(peer, far));
    }
    let entities = |server: &Server, world| server.world_in(world).map(|world| world.len());
    assert_eq!(entities(&server, there), Some(2));
    assert_eq!(entities(&server, WorldId::FIRST), Some(0));

    server
        .send_entity_event_to(peers[1], near, b"one")
        .expect("it is there");
    let sent = server.send_entity_event_in(there, near, b"all");
    sent.expect("open").expect("it is there");
    // An event waits until its client has acknowledged the entity.
    let mut received = [Vec::new(), Vec::new()];
    for _ in 0..10 {
        server.send();
        for (client, received) in clients.iter_mut().zip(&mut received) {
            received.extend(events(client));
        }
        while server.poll().is_some() {}
        let step = server.step_in(there).expect("open");
        step.expect("in order").finish();
    }
    let [one, all] = [b"one".to_vec(), b"all".to_vec()];
    assert_eq!(received, [vec![all.clone()], vec![one, all]]);

    for peer in peers {
        server.move_to(peer, WorldId::FIRST).expect("open");
    }
    server.close_world(there).expect("it has no peers");
    assert_eq!(entities(&server, there), None);
    assert!(server.send_entity_event_in(there, near, b"late").is_none());
}
