//! Server and client of the keyframe protocol without sockets: both have the same timeline, and no bytes
//! make either fail.

use prescient_timeline::protocol::*;
use prescient_timeline::*;
use proptest::prelude::*;

const BASE: i64 = 1_552_000_000_000;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Fails if a refused change is sent, an applied one is not, or one is sent twice to a late joiner.
    #[test]
    fn whatever_is_changed_clients_hold_the_same(
        changes in prop::collection::vec(change(), 1..120),
        join_at in 0usize..60,
        drain_every in 1usize..20,
    ) {
        let mut server = Server::new(BASE).unwrap();
        server.set_history(true);
        let mut pairs = Vec::new();
        for (index, change) in changes.into_iter().enumerate() {
            if index == 0 || index == join_at {
                let (stream, mut client) = (server.handle_connected(), Client::new());
                let ask = client.poll_transmit().unwrap();
                server.handle_bytes(stream, &ask);
                pairs.push((stream, client));
            }
            let _ = apply(&mut server, change);
            // One client is slow: it gets its history while further changes are made.
            for (number, (stream, client)) in pairs.iter_mut().enumerate() {
                let count = if number == 0 { usize::MAX } else { index % drain_every };
                for _ in 0..count {
                    let Some(frame) = server.poll_transmit(*stream) else { break };
                    client.handle_bytes(&frame);
                }
            }
        }
        for (stream, client) in &mut pairs {
            while let Some(frame) = server.poll_transmit(*stream) {
                client.handle_bytes(&frame);
            }
            while let Some(event) = client.poll_event() {
                let refused = matches!(event, ClientEvent::Refused { .. });
                prop_assert!(!refused, "{:?}", event);
            }
            let kept = |timeline: &Timeline<f64>| -> Vec<_> {
                let curves = timeline.curves().filter(|(_, curve)| !curve.is_empty());
                let keyframes = |(property, curve): (_, &Curve<f64>)| {
                    (property, curve.keyframes().map(|keyframe| (keyframe.time, keyframe.value)).collect::<Vec<_>>())
                };
                curves.map(keyframes).collect()
            };
            prop_assert_eq!(kept(client.timeline()), kept(server.timeline()));
        }
    }

    /// Fails if any bytes make a client or a server panic, or stop working.
    #[test]
    fn nonsense_is_ignored(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let mut client = Client::new();
        client.handle_bytes(&bytes);
        while client.poll_event().is_some() {}
        let mut server = Server::new(BASE).unwrap();
        let stream = server.handle_connected();
        server.handle_bytes(stream, &bytes);
        while server.poll_transmit(stream).is_some() {}
        server.handle_bytes(stream, &vec![0xff; 14 - bytes.len() % 14]);
        server.handle_bytes(stream, &Client::new().poll_transmit().unwrap());
        let answer = server.poll_transmit(stream).map(|frame| Frame::from_bytes(&frame));
        prop_assert_eq!(answer, Some(Ok(Frame::Sync { base_time: BASE as u128 })));
    }
}

/// Fails if `keep` drops a frame.
#[test]
fn keyframes_may_come_before_the_base_time() {
    let mut client = Client::new();
    let key = KeyframeKey {
        time: 500,
        property: 3,
    };
    client.handle_bytes(&Frame::Add(key, 9).to_bytes().unwrap());
    assert_eq!(client.timeline().keyframe_count(), 0);
    let sync = Frame::Sync {
        base_time: BASE as u128,
    };
    client.handle_bytes(&sync.to_bytes().unwrap());
    let curve = client.timeline().curve(PropertyId(3)).unwrap();
    assert_eq!(curve.first_time(), Some(Time::from_millis(BASE + 500)));
    assert_eq!(
        client.poll_event(),
        Some(ClientEvent::Synced { base_time: BASE })
    );
}

/// Fails if keyframes are stored relative to the base time.
#[test]
fn the_base_time_can_move() {
    let mut server = Server::new(BASE).unwrap();
    let mut client = Client::new();
    let stream = server.handle_connected();
    server.handle_bytes(stream, &client.poll_transmit().unwrap());
    let property = PropertyId(1);
    let late = Time::from_millis(BASE + 100_000_000);
    server.add(property, Time::from_millis(BASE), 1).unwrap();
    assert_eq!(
        server.add(property, late, 2),
        Err(ServerError::Range(Range::Time))
    );
    server.move_base_time(BASE + 90_000_000).unwrap();
    server.add(property, late, 2).unwrap();
    while let Some(frame) = server.poll_transmit(stream) {
        client.handle_bytes(&frame);
    }
    assert_eq!(client.timeline(), server.timeline());
    let time = Time::from_millis(BASE);
    let gone = Err(ServerError::BeforeBaseTime { time });
    assert_eq!(server.remove(property, time), gone);
    assert_eq!(server.move_base_time(BASE), gone);
}

#[test]
fn servers_refuse_what_the_protocol_cannot_say() {
    let mut server = Server::new(BASE).unwrap();
    let property = PropertyId(1);
    let time = Time::from_millis(BASE) + Span::from_micros(1);
    let micros = time.as_micros();
    assert_eq!(
        server.add(property, time, 0),
        Err(ServerError::NotMilliseconds { micros })
    );
    let early = Time::from_millis(BASE - 1);
    let before = ServerError::BeforeBaseTime { time: early };
    assert_eq!(server.add(property, early, 0), Err(before));
    let time = Time::from_millis(BASE);
    let many = Err(ServerError::Range(Range::Property));
    assert_eq!(server.add(PropertyId(1 << 24), time, 0), many);
    server.add(property, time, 0).unwrap();
    let moved = server.move_one(property, time, Span::from_millis(-1));
    assert_eq!(moved, Err(before));
    let moved = server.move_one(property, time, Span::from_millis(1 << 26));
    assert_eq!(moved, Err(ServerError::Range(Range::Time)));
    let moved = server.move_one(property, Time::from_millis(BASE + 1), Span::ZERO);
    let time = Time::from_millis(BASE + 1);
    assert_eq!(
        moved,
        Err(ServerError::Edit(EditError::NoKeyframe { time }))
    );
    for base_time in [-1, i64::MAX, Time::MAX.as_micros() / 1000 + 1] {
        assert!(Server::new(base_time).is_err());
    }
}

/// Fails if `push` has no limit.
#[test]
fn a_client_that_takes_nothing_in_is_named_once_and_held_no_longer() {
    let mut server = Server::new(BASE).unwrap();
    server.set_max_waiting(10);
    let stream = server.handle_connected();
    server.handle_bytes(stream, &Client::new().poll_transmit().unwrap());
    for index in 0..100 {
        let time = Time::from_millis(BASE + index);
        server.add(PropertyId(1), time, 0).unwrap();
    }
    let mut events = Vec::new();
    while let Some(event) = server.poll_event() {
        events.push(event);
    }
    assert_eq!(
        events,
        [ServerEvent::Synced(stream), ServerEvent::Stalled(stream)]
    );
    assert_eq!(server.poll_transmit(stream), None);
}

/// Fails if `handle_disconnected` leaves the events of the connection queued.
#[test]
fn connections_that_come_and_go_leave_no_events() {
    let mut server = Server::new(BASE).unwrap();
    let sync = Client::new().poll_transmit().unwrap();
    for _ in 0..1000 {
        let stream = server.handle_connected();
        server.handle_bytes(stream, &sync);
        server.handle_bytes(stream, &[0xff; FRAME_BYTES]);
        server.handle_disconnected(stream);
    }
    let stays = server.handle_connected();
    server.handle_bytes(stays, &sync);
    assert_eq!(server.poll_event(), Some(ServerEvent::Synced(stays)));
    assert_eq!(server.poll_event(), None);
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Add(u32, i64, u32),
    Remove(u32, i64),
    Move(u32, i64, i64),
}

fn change() -> impl Strategy<Value = Change> {
    let (property, time) = (|| 0u32..6, || 0i64..30);
    prop_oneof![
        4 => (property(), time(), 0u32..4).prop_map(|(property, time, value)| Change::Add(property, time, value)),
        1 => (property(), time()).prop_map(|(property, time)| Change::Remove(property, time)),
        2 => (property(), time(), -30i64..30).prop_map(|(property, time, by)| Change::Move(property, time, by)),
    ]
}

fn apply(server: &mut Server, change: Change) -> Result<(), ServerError> {
    let at = |millis| Time::from_millis(BASE + millis);
    match change {
        Change::Add(property, time, value) => server.add(PropertyId(property), at(time), value),
        Change::Remove(property, time) => server.remove(PropertyId(property), at(time)),
        Change::Move(property, time, by) => {
            server.move_one(PropertyId(property), at(time), Span::from_millis(by))
        }
    }
}
