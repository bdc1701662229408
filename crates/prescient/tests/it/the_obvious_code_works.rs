//! Programs as a newcomer writes them: what looks right is right.

use std::collections::BTreeSet;
use std::time::Duration;

use prescient::links::Conditions;
use prescient::{
    BlobEvent, Change, Client, ClientEvent, ClientId, Clock, CloseReason, Distance, Everything,
    JoinError, MoveError, PeerError, PeerId, Position, Quality, Schema, Server, ServerEvent,
    ServerOptions, State, Tick,
};

#[derive(State, Clone, Debug, PartialEq)]
struct Tank {
    #[state(step = 0.01, position)]
    position: [f32; 2],
}

#[derive(State, Clone, Debug, PartialEq)]
struct Turret {
    #[state(step = 0.1)]
    angle: f32,
}

fn at(x: f32) -> Tank {
    Tank { position: [x, 0.0] }
}

fn schema() -> Schema {
    Schema::of::<(Tank, Turret)>().expect("a sound schema")
}

fn offline() -> Server {
    Server::offline(schema(), Everything).expect("a sound schema")
}

fn events(server: &mut Server) -> Vec<ServerEvent> {
    std::iter::from_fn(|| server.poll()).collect()
}

/// A client joins and leaves before the program polls; no call under `Joined` fails until `Left`
/// was polled. Fails if `about_peer` does not look at `leaving`, or if `poll` does not remove a peer
/// from there.
#[test]
fn nothing_fails_between_joined_and_left() {
    let mut server = offline();
    let other = server.open_world(Everything).expect("a sound schema");
    let tank = server
        .step()
        .expect("a tick")
        .spawn(&at(1.0))
        .expect("room");
    server.local_client().leave();
    server.wait(Duration::ZERO);
    let mut met = None;
    while let Some(event) = server.poll() {
        match event {
            ServerEvent::Joined { peer, .. } => {
                met = Some(peer);
                // Receives what has arrived meanwhile, which is the end of the connection.
                server.wait(Duration::from_millis(1));
            }
            ServerEvent::Left { .. } => break,
            _ => {}
        }
        let peer = met.expect("it joined first");
        let entity = tank.entity_ref();
        server.send_event(peer, b"welcome").expect("send_event");
        server.set_team(peer, 1).expect("set_team");
        server.follow(peer, entity).expect("follow");
        let here = Position([0.0; 3]);
        server.set_view_position(peer, here).expect("view");
        server
            .set_quality(peer, Quality::default())
            .expect("quality");
        let told = server.send_entity_event_to(peer, entity, b"yours");
        told.expect("send_entity_event_to");
        server.audit(peer).expect("audit");
        server.resync(peer).expect("resync");
        server.keep_ledger(peer, true).expect("keep_ledger");
        server.move_to(peer, other).expect("move_to");
        server
            .offer_blob(peer, b"map", vec![1])
            .expect("offer_blob");
        let patience = Duration::from_secs(1);
        server.request(peer, b"ready?", patience).expect("request");
        server.kick(peer);
        server
            .offer_blob(peer, b"map", vec![1])
            .expect("offer_blob");
        assert_eq!(server.keys(peer), 0);
    }
    let peer = met.expect("it joined");
    let gone = PeerError::NoSuchPeer(peer);
    assert_eq!(server.send_event(peer, b"late"), Err(gone));
    let gone = MoveError::NoSuchPeer(peer);
    assert_eq!(server.move_to(peer, other), Err(gone));
}

/// All changes between two `send`s are one tick, however often `step` is called, and clients get
/// all of them. Fails if `step_in` always begins a tick, if `Archive::resume` forgets the changes of
/// the tick, or if `send` does not end it.
#[test]
fn a_tick_has_one_beginning_and_one_end() {
    let mut server = offline();
    let mut client = server.local_client();
    let mut tanks = Vec::new();
    for number in 0..300 {
        let mut step = server.step().expect("the same tick");
        tanks.push(step.spawn(&at(number as f32)).expect("room"));
    }
    assert_eq!(server.world().tick(), Some(Tick(1)));
    server.send();
    for tick in 2..40u64 {
        // Acknowledgements, without which the client would be sent less.
        while server.poll().is_some() {}
        for (number, tank) in tanks.iter().enumerate() {
            if (number as u64 + tick).is_multiple_of(3) {
                let peers: Vec<PeerId> = server.peers().collect();
                let keys = server.keys(peers[0]) as f32;
                let moved = at(number as f32 + tick as f32 + keys);
                server
                    .step()
                    .expect("open")
                    .set(*tank, &at(-1.0))
                    .expect("there");
                server
                    .step()
                    .expect("open")
                    .set(*tank, &moved)
                    .expect("there");
            }
        }
        // Spawned and removed within the tick: nobody ever sees it.
        let short = server.step().expect("open").spawn(&at(0.0)).expect("room");
        let removed = server.step().expect("open").despawn(short.entity_ref());
        removed.expect("there");
        assert_eq!(server.world().tick(), Some(Tick(tick)));
        server.send();
        while client.poll().is_some() {}
        assert_eq!(client.tick(), Some(Tick(tick)));
        let mut shown: Vec<Vec<i64>> = client
            .all::<Tank>()
            .map(|(_, it)| it.to_row("default"))
            .collect();
        let newest = |tank: &prescient::Ref<Tank>| {
            let (_, value) = server.world().samples(*tank).next_back().expect("there");
            value.to_row("default")
        };
        let mut truth: Vec<Vec<i64>> = tanks.iter().map(newest).collect();
        shown.sort();
        truth.sort();
        assert_eq!(shown, truth, "tick {tick}");
    }
}

/// Fails if ticks outside of the schedule are not counted, or others are.
#[test]
fn ticks_that_the_schedule_does_not_know_are_counted() {
    let options = ServerOptions::default().with_tick_interval(Duration::from_micros(50));
    let mut server = Server::offline_with(schema(), Everything, options).expect("sound");
    for _ in 0..3 {
        server.step().expect("a tick").finish();
        server.send();
    }
    assert_eq!(server.unscheduled_ticks(), 0, "it does not use next_tick");
    for _ in 0..3 {
        server.next_tick();
        server.step().expect("a tick").finish();
        server.step().expect("the same").finish();
        server.send();
    }
    assert_eq!(server.unscheduled_ticks(), 0);
    server.step().expect("one too many").finish();
    server.send();
    assert_eq!(server.unscheduled_ticks(), 1);
}

/// Waits until a condition holds for a server.
fn run(server: &mut Server, mut done: impl FnMut(&[ServerEvent]) -> bool) {
    let clock = Clock::start();
    let mut seen = Vec::new();
    while !done(&seen) {
        assert!(clock.now().as_micros() < 20_000_000, "it takes too long");
        server.wait(Duration::from_millis(2));
        seen.extend(events(server));
        server.step().expect("a tick").finish();
        server.send();
    }
}

/// A player whose game crashed is back at once, over a bad link, and the server closes what is
/// left of the old session. Fails if `replace_sessions` and `replace` both do nothing.
#[test]
fn a_restarted_player_replaces_its_old_session() {
    let mut server = Server::loopback("127.0.0.1:0", schema(), Everything).expect("a server");
    let link = Conditions::named("wifi").expect("a preset");
    let link = server.simulate_link(link, 7).expect("a relay");
    let address = link.address().to_string();
    let join = |address: String| {
        std::thread::spawn(move || Client::loopback_as(&address, ClientId(42), schema()))
    };
    let first = join(address.clone());
    run(&mut server, |_| first.is_finished());
    let first = first.join().expect("no panic").expect("it joins");
    // It crashes: nobody polls it any more, and it says no goodbye.
    let again = join(address);
    run(&mut server, |seen| {
        let replaced = |event: &ServerEvent| {
            matches!(
                event,
                ServerEvent::Left {
                    reason: CloseReason::Replaced,
                    ..
                }
            )
        };
        let joined = |event: &&ServerEvent| {
            matches!(
                event,
                ServerEvent::Joined {
                    client: ClientId(42),
                    ..
                }
            )
        };
        again.is_finished() && seen.iter().any(replaced) && seen.iter().filter(joined).count() >= 1
    });
    again
        .join()
        .expect("no panic")
        .expect("it joins again")
        .leave();
    drop(first);
}

/// Fails if `admit` is not asked, or does not look at bans.
#[test]
fn a_server_decides_who_joins() {
    let options = ServerOptions::default().with_approval(|applicant| match applicant.client.0 {
        7 => Err(3),
        _ => Ok(()),
    });
    let mut server =
        Server::loopback_with("127.0.0.1:0", schema(), Everything, options).expect("a server");
    server.ban(ClientId(8));
    assert_eq!(server.banned().collect::<Vec<_>>(), [ClientId(8)]);
    let address = server.address().expect("a socket").to_string();
    let mut outcome = |client: u64| {
        let address = address.clone();
        let joining =
            std::thread::spawn(move || Client::loopback_as(&address, ClientId(client), schema()));
        run(&mut server, |_| joining.is_finished());
        joining.join().expect("no panic").map(drop)
    };
    let refused = outcome(7).expect_err("the program refuses it");
    assert!(matches!(refused, JoinError::Closed(CloseReason::Other(3))));
    let banned = outcome(8).expect_err("it is banned");
    assert!(banned.to_string().contains("banned"), "{banned}");
    outcome(9).expect("it is welcome");
}

/// A client gets a blob in parts over a real connection and is told the progress. Fails if a
/// carrier does not forward blobs, or if progress is swallowed.
#[test]
fn blobs_arrive_with_progress() {
    let mut server = Server::loopback("127.0.0.1:0", schema(), Everything).expect("a server");
    let address = server.address().expect("a socket").to_string();
    let joining = std::thread::spawn(move || Client::loopback(&address, schema()));
    run(&mut server, |_| joining.is_finished());
    let mut client = joining.join().expect("no panic").expect("it joins");
    let peer = server.peers().next().expect("it is there");
    let map: Vec<u8> = (0..300_000u32).map(|byte| (byte / 7) as u8).collect();
    let offered = server.offer_blob(peer, b"map", map.clone()).expect("room");
    let (mut steps, mut arrived, mut delivered) = (0, false, false);
    let clock = Clock::start();
    while !(arrived && delivered) {
        assert!(clock.now().as_micros() < 20_000_000, "it takes too long");
        server.wait(Duration::from_millis(1));
        let is_delivered = |event: &ServerEvent| matches!(event, ServerEvent::Blob { blob: BlobEvent::Delivered { blob }, .. } if *blob == offered);
        delivered |= events(&mut server).iter().any(is_delivered);
        server.send();
        while let Some(event) = client.poll() {
            match event {
                ClientEvent::Blob(BlobEvent::Offered { blob, label, size }) => {
                    assert_eq!((&label[..], size), (&b"map"[..], 300_000));
                    client.accept_blob(blob).expect("there is room");
                }
                ClientEvent::Blob(BlobEvent::Progress { done, size, .. }) => {
                    assert!(done <= size);
                    steps += 1;
                }
                ClientEvent::Blob(BlobEvent::Arrived { bytes, .. }) => {
                    assert!(bytes == map);
                    arrived = true;
                }
                _ => {}
            }
        }
    }
    assert!(steps > 3, "{steps}");
    let withdrawn = server.offer_blob(peer, b"again", vec![1]).expect("room");
    server.cancel_blob(peer, withdrawn).expect("it is offered");
}

/// What comes near and what goes away is shown and hidden after the same time, at most the
/// relevance interval; what spawns near is shown at once. Fails if the interval only applies to one
/// of the two, or if it is longer than configured.
#[test]
fn appearing_and_disappearing_take_equally_long() {
    for interval in [1, 4, 10] {
        let options = ServerOptions::default().with_relevance_interval(interval);
        let near = Distance::new(10.0, 10.0).expect("sound");
        let mut server = Server::offline_with(schema(), near, options).expect("sound");
        let mut client = server.local_client();
        let Some(ServerEvent::Joined { peer, .. }) = server.poll() else {
            panic!("a local client has joined");
        };
        let origin = Position([0.0; 3]);
        server.set_view_position(peer, origin).expect("it is there");
        let tank = server
            .step()
            .expect("a tick")
            .spawn(&at(50.0))
            .expect("room");
        let mut delays = [BTreeSet::new(), BTreeSet::new()];
        let mut since = 0;
        for tick in 1..400u32 {
            let inside = tick / 37 % 2 == 1;
            if tick % 37 == 0 {
                since = tick;
            }
            let x = if inside { 5.0 } else { 50.0 };
            let mut step = server.step().expect("a tick");
            step.set(tank, &at(x)).expect("it is there");
            step.finish();
            server.send();
            while let Some(event) = client.poll() {
                if let ClientEvent::Change(Change::Created(_)) = event {
                    delays[0].insert(tick - since);
                }
                if let ClientEvent::Change(Change::Removed(_)) = event {
                    delays[1].insert(tick - since);
                }
            }
        }
        let longest = |delays: &BTreeSet<u32>| delays.last().copied();
        assert_eq!(longest(&delays[0]), longest(&delays[1]), "{delays:?}");
        assert!(longest(&delays[0]) < Some(interval), "{delays:?}");
        let spawned = server
            .step()
            .expect("a tick")
            .spawn(&at(1.0))
            .expect("room");
        server.send();
        assert!(server.sees(peer, spawned.entity_ref()), "at once");
    }
}

/// Teams, owners and view positions are set at the server, whatever world the peer is in. Fails if
/// `set_team` or `follow` does not reach the policy, or if `Distance::and_team` has no effect.
#[test]
fn fog_of_war_takes_a_policy_and_two_calls() {
    let fog = Distance::new(10.0, 12.0).expect("sound").and_team();
    let mut server = Server::offline(schema(), fog).expect("sound");
    let mut clients = Vec::new();
    let mut peers = Vec::new();
    for number in 0..3u64 {
        clients.push(server.local_client_as(ClientId(number), Vec::new()));
        let joined = server.poll();
        let Some(ServerEvent::Joined { peer, .. }) = joined else {
            panic!("a local client has joined: {joined:?}");
        };
        let team = if number < 2 { 1 } else { 2 };
        server.set_team(peer, team).expect("it is there");
        let position = at(number as f32 * 100.0);
        let tank = server.step().expect("a tick").spawn_for(peer, &position);
        let tank = tank.expect("room").entity_ref();
        server.follow(peer, tank).expect("it is there");
        peers.push(peer);
    }
    for _ in 0..8 {
        server.step().expect("a tick").finish();
        server.send();
    }
    let shown = clients.iter_mut().map(|client| {
        while client.poll().is_some() {}
        client.all::<Tank>().count()
    });
    assert_eq!(shown.collect::<Vec<_>>(), [2, 2, 1]);
}

/// `main` prints errors by `Debug`; a user reads them. Fails if one of these derives `Debug`.
#[test]
fn errors_read_alike_however_they_are_printed() {
    let serve = Server::loopback("127.0.0.1", schema(), Everything)
        .err()
        .expect("no port");
    assert_eq!(format!("{serve:?}"), serve.to_string());
    let join = Client::loopback("192.0.2.1:4000", schema())
        .err()
        .expect("not here");
    assert_eq!(format!("{join:?}"), join.to_string());
    let peer = PeerError::NoSuchPeer(PeerId(3));
    assert_eq!(format!("{peer:?}"), peer.to_string());
    let reason = CloseReason::Replaced;
    assert_eq!(format!("{reason:?}"), reason.to_string());
}

/// Entities that live for ten ticks, over a link that delays and loses: an audit compares what the
/// client shows with the truth of that tick. Fails if it is compared with the newest one.
#[test]
fn audits_of_short_lived_entities_find_nothing() {
    let mut server = Server::loopback("127.0.0.1:0", schema(), Everything).expect("a server");
    let link = Conditions::named("wifi").expect("a preset");
    let link = server.simulate_link(link, 3).expect("a relay");
    let address = link.address().to_string();
    let joining = std::thread::spawn(move || Client::loopback(&address, schema()));
    run(&mut server, |_| joining.is_finished());
    let mut client = joining.join().expect("no panic").expect("it joins");
    let peer = server.peers().next().expect("it is there");
    let mut tanks = std::collections::VecDeque::new();
    let (mut audits, mut reports, mut compared) = (0, 0, 0);
    for tick in 0..3000 {
        let mut step = server.step().expect("a tick");
        tanks.push_back(step.spawn(&at(tick as f32)).expect("room"));
        if tanks.len() > 10 {
            let oldest = tanks.pop_front().expect("there are ten");
            step.despawn(oldest).expect("it is there");
        }
        for (number, tank) in tanks.iter().enumerate() {
            let moved = at((tick * 7 + number) as f32 * 0.1);
            step.set(*tank, &moved).expect("it is there");
        }
        step.finish();
        server.send();
        if tick % 20 == 0 && audits == reports {
            server.audit(peer).expect("it is there");
            audits += 1;
        }
        server.wait(Duration::from_millis(2));
        while client.poll().is_some() {}
        compared += client.all::<Tank>().count();
        for event in events(&mut server) {
            if let ServerEvent::AuditReport {
                differences, last, ..
            } = event
            {
                assert!(differences.is_empty(), "{differences:?}");
                reports += u32::from(last);
            }
        }
        if reports == 14 {
            break;
        }
    }
    assert_eq!(reports, 14, "of {audits} audits");
    assert!(compared > 500, "{compared}");
}
