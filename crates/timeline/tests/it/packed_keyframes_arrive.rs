//! Packed keyframes: both ends have the same curves, in few bytes, whatever gets lost.

use prescient_timeline::break_even::{BruteForce, Packets};
use prescient_timeline::packed::{PackedConfig, ReceiveError, Receiver, SendError, Sender};
use prescient_timeline::*;

/// A generator of random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (bits ^ bits >> 31) % end
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.below(1 << 30) as f64 / (1u64 << 30) as f64
    }
}

fn config<V: Value>(step: f64) -> PackedConfig<V> {
    PackedConfig::new(step).unwrap()
}

fn add<V>(property: u32, millis: i64, value: V) -> Operation<V> {
    Operation {
        property: PropertyId(property),
        edit: Edit::Add(Keyframe::new(Time::from_millis(millis), value)),
    }
}

/// Whether both have the same curves; a history does not tell of empty ones.
fn same<V: Value>(first: &Timeline<V>, second: &Timeline<V>) -> bool {
    let [first, second] = [first, second].map(|timeline| {
        let curves = timeline.curves();
        curves.filter(|(_, curve)| !curve.is_empty())
    });
    first.eq(second)
}

/// Sends the receiver's requests, and all messages but those that `loses` names.
fn exchange<V: Value>(
    sender: &mut Sender<V>,
    receiver: &mut Receiver<V>,
    mut loses: impl FnMut() -> bool,
) -> usize {
    let mut bytes = 0;
    loop {
        let request = receiver.poll_transmit();
        if let Some(request) = &request {
            sender.handle(request).unwrap();
        }
        let mut any = request.is_some();
        while let Some(message) = sender.poll_transmit() {
            any = true;
            bytes += message.len();
            if !loses() {
                let _ = receiver.handle(&message);
            }
        }
        if !any {
            return bytes;
        }
    }
}

fn random_operation(random: &mut Random, now: i64) -> Operation<[f64; 2]> {
    let property = PropertyId(random.below(12) as u32);
    let time = |random: &mut Random| Time::from_millis(now + random.below(40) as i64 * 50);
    let by = Span::from_millis(random.below(400) as i64 - 100);
    let value = [random.between(-50.0, 50.0), random.between(0.0, 5.0)];
    let edit = match random.below(12) {
        0 => Edit::Remove { time: time(random) },
        1 => Edit::Move {
            time: time(random),
            by,
        },
        2 => Edit::MoveWithin {
            from: time(random),
            to: Time::MAX,
            by,
        },
        3 => Edit::Clear,
        4 => Edit::Add(Keyframe::new(time(random), value).with(Interpolation::Step)),
        _ => Edit::Add(Keyframe::new(time(random), value)),
    };
    Operation { property, edit }
}

/// Fails if a layer may have two operations on a property, or if a `Resume` keeps the old decoder.
#[test]
fn both_ends_have_the_same_curves_whatever_is_lost() {
    for seed in 0..20 {
        let mut random = Random(seed);
        let mut sender = Sender::new(config(0.01).history(8));
        let mut receivers = [Receiver::new(config(0.01)), Receiver::new(config(0.01))];
        let mut refused = 0;
        for round in 0..300i64 {
            let now = Time::from_millis(50 * round);
            for _ in 0..random.below(6) {
                let operation = random_operation(&mut random, 50 * round);
                refused += u32::from(sender.apply(&operation).is_err());
                if random.below(9) == 0 {
                    sender.apply(&operation).ok();
                }
            }
            if random.below(20) == 0 {
                sender.flush(now);
            }
            sender.handle_timeout(now);
            // The second receiver joins late, and loses a third of all messages.
            let which = usize::from(round > 150);
            let mut chances = Random(seed << 32 | round as u64);
            exchange(&mut sender, &mut receivers[which], || {
                which == 1 && chances.below(3) == 0
            });
            if round % 10 == 9 {
                receivers[which].ask_again();
            }
            if round == 150 {
                sender.flush(now);
                exchange(&mut sender, &mut receivers[0], || false);
                assert!(
                    same(receivers[0].timeline(), sender.timeline()),
                    "seed {seed}"
                );
            }
        }
        assert!(refused > 0, "the timeline refuses nothing");
        // A receiver notices what it misses by what follows.
        sender.apply(&add(99, 20_000, [1.0, 2.0])).unwrap();
        sender.flush(Time::from_millis(20_000));
        receivers[1].ask_again();
        exchange(&mut sender, &mut receivers[1], || false);
        exchange(&mut sender, &mut receivers[1], || false);
        assert!(
            same(receivers[1].timeline(), sender.timeline()),
            "seed {seed}"
        );
    }
}

/// Its row is that of the one before, because times are relative to the message. Fails if `IS_ODD` is constant.
#[test]
fn a_keyframe_like_the_one_before_arrives() {
    let mut sender = Sender::new(config(0.01));
    let mut receiver = Receiver::new(config(0.01));
    exchange(&mut sender, &mut receiver, || false);
    for now in [100, 200, 300] {
        sender.apply(&add(1, now + 500, 5.0)).unwrap();
        sender.flush(Time::from_millis(now));
        exchange(&mut sender, &mut receiver, || false);
    }
    assert_eq!(receiver.timeline().keyframe_count(), 3);
    assert!(same(receiver.timeline(), sender.timeline()));
}

/// Fails if `flush` waits for the interval, or `handle_timeout` does not.
#[test]
fn urgent_keyframes_are_sent_at_once() {
    let mut sender = Sender::new(config(0.01).interval(Span::from_millis(200)));
    let mut receiver = Receiver::new(config(0.01));
    exchange(&mut sender, &mut receiver, || false);
    sender.apply(&add(1, 900, 5.0)).unwrap();
    sender.handle_timeout(Time::from_millis(199));
    assert_eq!(exchange(&mut sender, &mut receiver, || false), 0);
    sender.handle_timeout(Time::from_millis(200));
    assert!(exchange(&mut sender, &mut receiver, || false) > 0);
    sender.apply(&add(2, 900, 5.0)).unwrap();
    sender.flush(Time::from_millis(201));
    assert!(exchange(&mut sender, &mut receiver, || false) > 0);
    assert_eq!(sender.next_timeout(), Time::from_millis(401));
    assert!(same(receiver.timeline(), sender.timeline()));
}

/// Keyframes a century apart: only the base time grows. Fails if times are relative to the first base.
#[test]
fn the_base_time_moves_with_the_game() {
    let mut sender = Sender::new(config(0.01));
    let mut receiver = Receiver::new(config(0.01));
    exchange(&mut sender, &mut receiver, || false);
    let mut lengths = Vec::new();
    for day in 0..36_500i64 {
        let now = 86_400_000 * day;
        sender.apply(&add(1, now + 300, (day % 50) as f64)).unwrap();
        sender.handle_timeout(Time::from_millis(now + 100));
        lengths.push(exchange(&mut sender, &mut receiver, || false));
    }
    assert!(same(receiver.timeline(), sender.timeline()));
    assert!(
        lengths[36_000..].iter().all(|&len| len < 24),
        "{:?}",
        &lengths[36_490..]
    );
}

/// Fails if `apply` rounds before it checks, or a damaged message is applied in part.
#[test]
fn bad_input_is_refused_whole() {
    let limits = TimelineConfig::<f64>::default().max_ahead(Span::from_secs(10));
    let settings = || config::<f64>(0.01).timeline(limits.clone());
    let mut sender = Sender::new(settings());
    for value in [f64::NAN, f64::INFINITY, 1e200] {
        assert!(matches!(
            sender.apply(&add(1, 0, value)),
            Err(SendError::Edit(_))
        ));
    }
    assert_eq!(sender.apply(&add(1, 0, 1e60)), Err(SendError::TooManySteps));
    let far = sender.apply(&add(1, 20_000, 1.0));
    assert!(matches!(
        far,
        Err(SendError::Edit(EditError::TooFarAhead { .. }))
    ));
    assert!(PackedConfig::<f64>::new(f64::NAN).is_err() && PackedConfig::<f64>::new(0.0).is_err());
    assert_eq!(sender.timeline().keyframe_count(), 0);
    // Unordered keyframes are no error.
    for (property, time) in [(1, 900), (1, 100), (2, 500), (1, 400)] {
        sender.apply(&add(property, time, time as f64)).unwrap();
    }
    let mut receiver = Receiver::new(settings());
    exchange(&mut sender, &mut receiver, || false);
    assert!(same(receiver.timeline(), sender.timeline()));
    sender.apply(&add(1, 1200, 7.0)).unwrap();
    sender.flush(Time::from_millis(100));
    let message = sender.poll_transmit().unwrap();
    let before = receiver.timeline().clone();
    let mut asked = 0;
    for at in 0..8 * message.len() {
        let mut damaged = message.clone();
        damaged[at / 8] ^= 1 << (at % 8);
        // The channels authenticate messages. Without that, a changed number is a message like any other.
        if receiver.handle(&damaged).is_err() {
            assert!(same(receiver.timeline(), &before), "bit {at}");
            match receiver.poll_transmit() {
                Some(request) => {
                    asked += 1;
                    sender.handle(&request).unwrap();
                    receiver.handle(&sender.poll_transmit().unwrap()).unwrap();
                }
                // It looked like one that had arrived before.
                None => receiver.handle(&message).unwrap(),
            }
            assert!(same(receiver.timeline(), sender.timeline()), "bit {at}");
        }
        receiver = Receiver::new(settings());
        let mut copy = Sender::new(settings());
        for (property, time) in [(1, 900), (1, 100), (2, 500), (1, 400)] {
            copy.apply(&add(property, time, time as f64)).unwrap();
        }
        exchange(&mut copy, &mut receiver, || false);
    }
    assert!(asked > 0);
    for end in 0..message.len() {
        let _ = receiver.handle(&message[..end]);
    }
    assert!(same(receiver.timeline(), &before));
    assert_eq!(receiver.handle(&[9, 9, 9]), Err(ReceiveError::Malformed));
}

/// A receiver with lower limits than the sender's: far-future keyframes are refused, others applied.
/// Fails if `handle` stops at the first refused operation.
#[test]
fn far_future_keyframes_are_refused_by_a_careful_receiver() {
    let mut sender = Sender::new(config(0.01));
    let limits = TimelineConfig::<f64>::default().max_ahead(Span::from_secs(10));
    let mut receiver = Receiver::new(config(0.01).timeline(limits));
    sender.apply(&add(1, 5_000_000_000, 1.0)).unwrap();
    sender.apply(&add(2, 5_000, 2.0)).unwrap();
    let request = receiver.poll_transmit().unwrap();
    sender.handle(&request).unwrap();
    let refused = receiver.handle(&sender.poll_transmit().unwrap());
    assert!(matches!(refused, Err(ReceiveError::Refused(_))));
    assert_eq!(receiver.timeline().keyframe_count(), 1);
    assert!(receiver.timeline().at(PropertyId(2), Time::ZERO).is_some());
}

/// The document's case: a thousand entities of three floats, ten times per second, take 988 kbit/s if every
/// value is sent. Fails if times are not relative to the message's base time, or every keyframe is a message.
#[test]
fn a_thousand_walkers_take_three_percent_of_brute_force() {
    const COUNT: usize = 1000;
    let mut random = Random(5);
    let tick = Span::from_millis(100);
    let config = || {
        config::<[f64; 3]>(0.01)
            .time_step(tick)
            .unwrap()
            .interval(Span::from_millis(250))
    };
    let mut sender = Sender::new(config());
    let mut receiver = Receiver::new(config());
    exchange(&mut sender, &mut receiver, || false);
    // The tick and the place of every unit's last planned turn.
    let mut turns: Vec<(i64, [f64; 3])> = (0..COUNT)
        .map(|_| (0, [0; 3].map(|_| random.between(-500.0, 500.0))))
        .collect();
    let mut truth = Timeline::<[f64; 3]>::default();
    let (mut bytes, mut messages, mut keyframes, mut max_error) = (0, 0, 0, 0.0f64);
    const TICKS: i64 = 1200;
    for now in 0..TICKS {
        for (number, (tick, place)) in (0..).zip(&mut turns) {
            let mut plan = |tick: i64, place: [f64; 3]| {
                let operation = add(number, 100 * tick, place);
                truth.apply(&operation).unwrap();
                sender.apply(&operation).unwrap();
                keyframes += 1;
            };
            if now == 0 {
                plan(*tick, *place);
            }
            // Half a second before a turn, the next one is planned.
            if *tick <= now + 5 {
                let ticks = 20 + random.below(21) as i64;
                let reach = 3.0 * ticks as f64 / 10.0;
                *tick += ticks;
                *place = place.map(|axis| axis + random.between(-reach, reach));
                plan(*tick, *place);
            }
        }
        sender.handle_timeout(Time::from_millis(100 * now));
        let sent = exchange(&mut sender, &mut receiver, || false);
        bytes += sent;
        messages += usize::from(sent > 0);
        let time = Time::from_millis(100 * now);
        // The first message is sent after an interval.
        for number in (0..COUNT as u32).map(PropertyId).filter(|_| now >= 3) {
            let shown = receiver.timeline().at(number, time).unwrap();
            let expected = truth.at(number, time).unwrap();
            let squares = shown.iter().zip(expected).map(|(a, b)| (a - b).powi(2));
            max_error = max_error.max(squares.sum::<f64>().sqrt());
        }
    }
    sender.flush(Time::from_millis(100 * TICKS));
    exchange(&mut sender, &mut receiver, || false);
    let seconds = TICKS as f64 / 10.0;
    let with_headers = bytes + messages * Packets::UDP.header as usize;
    let rate = 8.0 * with_headers as f64 / seconds;
    let brute_force = BruteForce {
        properties: 3 * COUNT as u64,
        bytes_per_value: 4,
        updates_per_second: 10,
        packets: Packets::UDP,
    };
    let share = rate / brute_force.bits_per_second() as f64;
    let each = with_headers as f64 / keyframes as f64;
    println!(
        "figure: 1000 entities x 3 floats: {:.1} kbit/s with headers, {:.2} % of {} kbit/s, {each:.2} bytes \
         per keyframe of three values, largest error {max_error:.4} m, break-even of the packed form \
         {:.2} keyframes/s (of three values)",
        rate / 1000.0,
        100.0 * share,
        brute_force.bits_per_second() / 1000,
        3.0 * brute_force.break_even(each),
    );
    assert!(share <= 0.03, "{share}");
    assert!(max_error <= 0.01, "{max_error}");
    assert!(same(receiver.timeline(), sender.timeline()));
}

/// Fails if keyframes are sent when they are due instead of ahead.
#[test]
fn latency_is_hidden_from_clients_at_20_and_400_milliseconds() {
    const COUNT: u32 = 50;
    let mut random = Random(8);
    // A client's messages, with their times of arrival.
    struct Late {
        latency: i64,
        sender: Sender<[f64; 3]>,
        receiver: Receiver<[f64; 3]>,
        in_flight: Vec<(i64, Vec<u8>)>,
    }
    let mut clients = [20, 400].map(|latency| Late {
        latency,
        sender: Sender::new(config(0.005).interval(Span::from_millis(50))),
        receiver: Receiver::new(config(0.005)),
        in_flight: Vec::new(),
    });
    for Late {
        sender, receiver, ..
    } in &mut clients
    {
        exchange(sender, receiver, || false);
    }
    let mut ends: Vec<(i64, [f64; 3])> = (0..COUNT).map(|_| (600, [0.0; 3])).collect();
    let mut truth = Timeline::<[f64; 3]>::default();
    let (mut max_error, mut compared) = (0.0f64, 0);
    for now in (0..30_000).step_by(10) {
        for (property, end) in (0..).zip(&mut ends) {
            // The path is known half a second ahead, and to the end of that leg.
            while end.0 < now + 550 {
                end.0 += 20 * (5 + random.below(20) as i64);
                end.1 = end.1.map(|axis| axis + random.between(-0.5, 0.5));
                let operation = add(property, end.0, end.1);
                truth.apply(&operation).unwrap();
                for client in &mut clients {
                    client.sender.apply(&operation).unwrap();
                }
            }
        }
        for client in &mut clients {
            client.sender.handle_timeout(Time::from_millis(now));
            while let Some(message) = client.sender.poll_transmit() {
                client.in_flight.push((now + client.latency, message));
            }
            let arrived = client
                .in_flight
                .iter()
                .take_while(|(time, _)| *time <= now)
                .count();
            for (_, message) in client.in_flight.drain(..arrived) {
                client.receiver.handle(&message).unwrap();
            }
        }
        if now < 1100 {
            continue;
        }
        let time = Time::from_millis(now);
        for property in (0..COUNT).map(PropertyId) {
            let shown = [&clients[0], &clients[1]]
                .map(|client| client.receiver.timeline().at(property, time).unwrap());
            let expected = truth.at(property, time).unwrap();
            for other in [shown[0], shown[1]] {
                let squares = other.iter().zip(expected).map(|(a, b)| (a - b).powi(2));
                max_error = max_error.max(squares.sum::<f64>().sqrt());
            }
            compared += 1;
            assert_eq!(shown[0], shown[1], "{property:?} at {now} ms");
        }
    }
    println!(
        "figure: latency hidden: {compared} values at clients of 20 and 400 ms, equal, largest error {max_error:.4} m"
    );
    assert!(max_error < 0.01, "{max_error}");
}
