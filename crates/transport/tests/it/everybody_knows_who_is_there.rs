//! The lobby: infos, loading, welcomes, resets, and the roster.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::{GOOD, Link, SECOND, World, config, over_seeds};
use prescient_channels::*;
use prescient_transport::*;

const LOSSY: Link = Link {
    loss: 20,
    delayed: 50,
    delay: 40_000,
    ..GOOD
};

fn info(name: &str) -> ClientInfo {
    ClientInfo {
        name: Text::new(name).expect("short"),
        data: Bytes::new([name.len() as u8]).expect("short"),
    }
}

fn server_info(name: &str) -> ServerInfo {
    ServerInfo {
        name: Text::new(name).expect("short"),
        update_period: Duration::from_micros(16_667),
        tick: 7,
        message_of_the_day: Text::new("Be kind.").expect("short"),
        data: Bytes::default(),
    }
}

fn world(seed: u64) -> World {
    World::with(seed, LOSSY, config().with_info(server_info("first")))
}

/// Adds a client that sends its info.
fn join(world: &mut World) -> usize {
    let peer = world.join();
    let now = world.client_time();
    let name = info(&format!("player {peer}"));
    world.peers[peer].client.set_info(name, now);
    peer
}

/// All clients load at once whatever is asked for.
fn play(world: &mut World, span: Duration) {
    let end = world.now + span.as_micros() as u64;
    while world.now < end {
        world.run_for(Duration::from_millis(50));
        let now = world.client_time();
        for peer in &mut world.peers {
            peer.client.loaded(now);
        }
    }
}

fn welcomes(world: &World, peer: usize) -> Vec<PlayerId> {
    let events = world.peers[peer].events.iter();
    let welcomes = events.filter_map(|event| match event {
        ClientEvent::Welcome(player) => Some(*player),
        _ => None,
    });
    welcomes.collect()
}

/// Who is connected and plays, by the server's events.
fn truth(world: &World) -> BTreeMap<PlayerId, String> {
    let mut players = BTreeMap::new();
    for event in &world.server_events {
        match event {
            ServerEvent::Plays { connection, player } => drop(players.insert(*connection, *player)),
            ServerEvent::Closed { connection, .. } => drop(players.remove(connection)),
            _ => {}
        }
    }
    let clients: BTreeMap<_, _> = world.server.clients().collect();
    let named = players.into_iter().map(|(connection, player)| {
        let name = format!("player {}", clients[&connection].0);
        (player, name)
    });
    named.collect()
}

fn rosters_are_true(world: &World) {
    let truth = truth(world);
    // All close packets to a client may be lost, so the server's connections decide.
    for (_, client) in world.server.clients() {
        let roster = world.peers[client.0 as usize].client.roster();
        let names = roster.iter().map(|(player, Player { info, .. })| {
            assert_eq!(info.data.as_slice(), [info.name.as_str().len() as u8]);
            (player, info.name.to_string())
        });
        assert_eq!(names.collect::<BTreeMap<_, _>>(), truth);
        for (_, player) in roster.iter() {
            let latency = player.latency.expect("measured").as_duration();
            assert!(latency >= Duration::from_millis(40), "{latency:?}");
        }
    }
}

/// Fails if new clients do not receive the roster (`introduction` left out of
/// `LobbyServer::handle`), if a client that left stays in it (`lobby.leave` left out of
/// `Server::end` and `leave`), or if latencies are not recorded (`note_latency`).
#[test]
fn rosters_are_the_truth_in_the_end() {
    over_seeds(20, |seed| {
        let mut world = world(seed);
        for _ in 0..3 {
            join(&mut world);
        }
        play(&mut world, 3 * SECOND);
        for round in 0..12 {
            let (now, server_time) = (world.client_time(), world.server_time());
            match world.random.below(4) {
                0 => drop(join(&mut world)),
                1 => {
                    let peer = world.random.below(world.peers.len() as u64) as usize;
                    let client = &mut world.peers[peer].client;
                    client.close(CloseReason::Finished, now);
                }
                2 => {
                    let connections = world.connections();
                    if let Some(connection) = connections.get(round % connections.len().max(1)) {
                        world
                            .server
                            .close(*connection, CloseReason::Kicked, server_time);
                    }
                }
                _ => {
                    join(&mut world);
                    join(&mut world);
                }
            }
            play(&mut world, Duration::from_millis(700));
        }
        let last = join(&mut world);
        play(&mut world, 8 * SECOND);
        assert!(world.peers[last].client.is_connected());
        let broken = |(_, reason): &(_, CloseReason)| *reason == CloseReason::Violation;
        assert!(!world.closed().iter().any(broken));
        assert!(!truth(&world).is_empty());
        rosters_are_true(&world);
    });
}

/// Fails if a reset does not change the stage (`LobbyPeer::reset` without `self.stage.reset()`), or
/// if it changes a player's id (`lobby_peer.player` ignored in `LobbyServer::join`).
#[test]
fn after_a_reset_everybody_loads_again_and_keeps_its_number() {
    over_seeds(20, |seed| {
        let mut world = world(seed);
        for _ in 0..3 {
            join(&mut world);
        }
        while (0..3).any(|peer| welcomes(&world, peer).is_empty()) {
            play(&mut world, SECOND);
        }
        let now = world.server_time();
        world.server.reset(server_info("second"), now);
        join(&mut world);
        play(&mut world, 5 * SECOND);
        for peer in 0..4 {
            let events = &world.peers[peer].events;
            let [first, second] = ["first", "second"].map(server_info);
            let infos: Vec<_> = events
                .iter()
                .filter(|event| matches!(event, ClientEvent::Info(_) | ClientEvent::Reset(_)))
                .cloned()
                .collect();
            let numbers = welcomes(&world, peer);
            if peer == 3 {
                assert_eq!(infos, [ClientEvent::Info(second)]);
                assert_eq!(numbers.len(), 1);
            } else {
                assert_eq!(
                    infos,
                    [ClientEvent::Info(first), ClientEvent::Reset(second)]
                );
                assert_eq!(numbers.len(), 2);
                assert_eq!(numbers[0], numbers[1]);
            }
        }
        rosters_are_true(&world);
        // A new name reaches all rosters.
        let now = world.client_time();
        world.peers[0].client.set_info(info("somebody else"), now);
        play(&mut world, 5 * SECOND);
        let number = welcomes(&world, 0)[0];
        for peer in &world.peers {
            let player = peer.client.roster().get(number).expect("there");
            assert_eq!(player.info, info("somebody else"));
        }
    });
}

/// A client that does not take part receives no lobby messages, and need not load. Fails if roster
/// updates are sent to all (`is_introduced` always true): the client lacks the state that they are
/// differences to.
#[test]
fn who_says_nothing_hears_nothing() {
    let mut world = world(1);
    world.link = GOOD;
    join(&mut world);
    let quiet = world.join();
    play(&mut world, 5 * SECOND);
    assert_eq!(welcomes(&world, 0).len(), 1);
    let peer = &world.peers[quiet];
    assert_eq!(peer.events.len(), 1, "{:?}", peer.events);
    assert!(peer.client.roster().is_empty());
    assert_eq!(world.closed(), []);
}
