//! Curves over the reliable events of a server, through a link that loses, delays and reorders.

use std::time::Duration;

use prescient::links::{Conditions, UdpConditioner};
use prescient::timeline::packed::{PackedConfig, ReceiveError, Receiver, Sender};
use prescient::timeline::{Edit, Keyframe, Operation, PropertyId, Span, Time, Timeline};
use prescient::{
    About, Change, Client, ClientEvent, ClientId, Grant, Schema, Server, ServerEvent,
    ServerOptions, State, TimelineClient, TimelineError, TimelineServer, TokenKey, UnixTime,
};
use prescient_net::{Clock, SystemEntropy};

use crate::common::{bind, join, run, token};

/// Curves need no entities, but a server has a schema.
#[derive(Clone, Copy, Debug, PartialEq, State)]
struct Flag {
    is_up: bool,
}

type Position = [f64; 2];

fn schema() -> Schema {
    Schema::of::<Flag>().expect("sound")
}

fn config() -> PackedConfig<Position> {
    let interval = Span::from_millis(40);
    PackedConfig::new(0.25).expect("a step").interval(interval)
}

fn add(property: u32, time: Time, value: Position) -> (PropertyId, Edit<Position>) {
    (PropertyId(property), Edit::Add(Keyframe::new(time, value)))
}

/// Which events a client is not given, although they arrived.
type Forgets = fn(usize) -> bool;

/// A client that was there from the start and forgets every seventh event for a while, and one that joins when
/// the game is half over, through a link that loses a tenth of all packets, have the curves of the server.
/// Fails if the receiver does not ask for what it misses (`ask` in `Receiver::handle`), if the server ignores
/// requests, or if a timeline takes the events of another number.
#[test]
fn late_and_forgetful_clients_have_the_curves_of_the_server() {
    let mut server = bind(schema(), ServerOptions::default());
    let address = server.address().expect("it has a socket");
    let bad = Conditions {
        latency: Duration::from_millis(5),
        jitter: Duration::from_millis(10),
        jitter_reorders: true,
        loss: 100_000,
        ..Conditions::default()
    };
    let relay = UdpConditioner::start(address, 11, bad.clone(), bad).expect("a relay");
    let joined = |server: &mut Server, number| {
        let grant = Grant {
            client: ClientId(number),
            protocol: server.protocol(),
            servers: vec![relay.address(), address],
            expires: UnixTime(Clock::unix().0 + 60),
            data: Vec::new(),
        };
        let key = TokenKey::insecure_for_loopback_tests();
        let mut entropy = SystemEntropy::new().expect("randomness");
        let token = grant.issue(&key, &mut entropy).expect("sound");
        let (client, _) = join(server, move || Client::join(token, schema()));
        client.expect("joined")
    };

    let mut paths = TimelineServer::new(1, config());
    let mut others = TimelineServer::new(2, config());
    let mut clients = Vec::new();
    let forgets: [Forgets; 2] = [
        // Not the last one: nothing after it would tell that it is missing.
        |number| number % 7 == 0 && number < 60,
        |_| false,
    ];
    let mut shown = [0; 2].map(|_| TimelineClient::new(1, config()));
    let mut events = [0; 2];
    let mut round = 0i64;
    for watching in 1..=shown.len() {
        clients.push(joined(&mut server, watching as u64));
        let end = round + 300;
        run(&mut server, &mut clients, |server, clients| {
            round += 1;
            if round < end {
                let time = server.game_time() + Span::from_millis(500);
                let value = [(round % 50) as f64, (round / 50) as f64];
                let (property, edit) = add((round * 7 % 20) as u32, time, value);
                // Ticks may be too short for two keyframes of a property at different times.
                let _ = paths.apply(property, edit);
                let _ = others.apply(PropertyId(77), edit);
            }
            while let Some(event) = server.poll() {
                assert!(!others.handle(&event), "nobody asked for it");
                paths.handle(&event);
            }
            paths.send(server);
            others.send(server);
            for (number, client) in clients.iter_mut().enumerate() {
                while let Some(event) = client.poll() {
                    let is_event = matches!(event, ClientEvent::Change(Change::Event { .. }));
                    events[number] += usize::from(is_event);
                    if !is_event || !forgets[number](events[number]) {
                        shown[number].handle(&event).expect("the same settings");
                    }
                }
                shown[number].send(client);
            }
            let all = shown.iter().take(watching);
            round >= end
                && all
                    .clone()
                    .all(|shown| same(shown.timeline(), paths.timeline()))
        });
    }
    assert!(paths.timeline().keyframe_count() > 100);
    assert!(shown[0].requests() > 1, "nothing was asked for");
    assert_eq!(shown[1].requests(), 1, "events are reliable");
}

fn same(first: &Timeline<Position>, second: &Timeline<Position>) -> bool {
    first.curves().eq(second.curves())
}

/// Thirty thousand keyframes, far longer than a message may be, for a client that joins late. Fails if a
/// history is one event (it is too long to be sent), or all of it is queued at once.
#[test]
fn a_long_history_reaches_a_late_client() {
    let mut server = bind(schema(), ServerOptions::default());
    let config = || PackedConfig::<Position>::new(0.25).expect("a step");
    let mut paths = TimelineServer::new(1, config());
    for property in 0..300u32 {
        for number in 0..100i64 {
            let time = Time::from_millis(1000 * number + i64::from(property));
            let value = [f64::from(property * 37 % 91), (number * number % 83) as f64];
            let (property, edit) = add(property, time, value);
            paths.apply(property, edit).expect("sound");
        }
    }
    let token = token(&server);
    let (client, _) = join(&mut server, move || Client::join(token, schema()));
    let mut shown = TimelineClient::new(1, config());
    let mut most = 0;
    run(
        &mut server,
        &mut [client.expect("joined")],
        |server, clients| {
            while let Some(event) = server.poll() {
                paths.handle(&event);
            }
            paths.send(server);
            for peer in server.peers().collect::<Vec<_>>() {
                let report = server.statistics(peer).expect("it joined");
                assert_eq!(report.too_long, 0);
                most = most.max(report.backlog + report.state.event_bytes);
            }
            let client = &mut clients[0];
            while let Some(event) = client.poll() {
                shown.handle(&event).expect("the same settings");
            }
            shown.send(client);
            same(shown.timeline(), paths.timeline())
        },
    );
    assert!(most < 200_000, "{most} bytes wait");
    assert_eq!(shown.timeline().keyframe_count(), 30_000);
}

/// A client with another step is told so, and a program's own events reach it. Fails if the hash of the
/// settings leaves out the step, or a timeline takes what does not begin with its header.
#[test]
fn clients_with_other_settings_are_told() {
    let mut server = bind(schema(), ServerOptions::default());
    let mut paths = TimelineServer::new(1, config());
    let token = token(&server);
    let (client, _) = join(&mut server, move || Client::join(token, schema()));
    let other = PackedConfig::<Position>::new(0.5).expect("a step");
    let mut shown = TimelineClient::new(1, other);
    let (mut error, mut own) = (None, 0);
    run(
        &mut server,
        &mut [client.expect("joined")],
        |server, clients| {
            while let Some(event) = server.poll() {
                if paths.handle(&event) {
                    continue;
                }
                if let ServerEvent::Event { peer, payload, .. } = event {
                    server.send_event(peer, &payload).expect("connected");
                }
            }
            paths.send(server);
            let client = &mut clients[0];
            while let Some(event) = client.poll() {
                match shown.handle(&event) {
                    Ok(false) if matches!(event, ClientEvent::Change(Change::Event { .. })) => {
                        own += 1
                    }
                    Ok(_) => {}
                    Err(told) => error = Some(told),
                }
            }
            if own == 0 {
                client.send_event(None, b"\xcbK").expect("connected");
            }
            shown.send(client);
            own > 0 && error.is_some()
        },
    );
    assert_eq!(error, Some(TimelineError::OtherSettings { number: 1 }));
}

/// The other direction: a client sends a curve of its own, and the server asks for what it lacks. Fails if
/// `Receiver::handle` does not ask.
#[test]
fn a_server_asks_a_client_for_what_it_misses() {
    let mut server = bind(schema(), ServerOptions::default());
    let token = token(&server);
    let (client, _) = join(&mut server, move || Client::join(token, schema()));
    let mut sender = Sender::new(config());
    let mut receiver = Receiver::new(config());
    let (mut round, mut arrived, mut missing) = (0i64, 0, 0);
    run(
        &mut server,
        &mut [client.expect("joined")],
        |server, clients| {
            round += 1;
            let now = Time::from_millis(10 * round);
            if round < 200 {
                let (property, edit) = add(3, now + Span::from_millis(500), [1.0, round as f64]);
                sender.apply(&Operation { property, edit }).expect("sound");
            }
            while let Some(event) = server.poll() {
                let ServerEvent::Event { payload, .. } = event else {
                    continue;
                };
                arrived += 1;
                let is_forgotten = arrived % 7 == 0 && arrived < 30;
                if !is_forgotten && receiver.handle(&payload) == Err(ReceiveError::Missing) {
                    missing += 1;
                    receiver.ask_again();
                }
            }
            for peer in server.peers().collect::<Vec<_>>() {
                while let Some(request) = receiver.poll_transmit() {
                    server.send_event(peer, &request).expect("connected");
                }
            }
            let client = &mut clients[0];
            while let Some(event) = client.poll() {
                if let ClientEvent::Change(Change::Event {
                    about: About::Nothing,
                    payload,
                    ..
                }) = event
                {
                    sender.handle(&payload).expect("a receiver wrote it");
                }
            }
            sender.handle_timeout(now);
            while let Some(message) = sender.poll_transmit() {
                client.send_event(None, &message).expect("connected");
            }
            round >= 210 && same(receiver.timeline(), sender.timeline())
        },
    );
    assert!(missing > 0, "nothing was asked for");
}
