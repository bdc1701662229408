//! Packed keyframes to several receivers, who join at any time, are slow, and have long histories to catch up
//! with.

use prescient_timeline::packed::{Broadcast, PackedConfig, Receiver, SendError, Sender};
use prescient_timeline::*;

/// A generator of random numbers.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ bits >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }
}

type Value = [f64; 2];

fn config() -> PackedConfig<Value> {
    PackedConfig::new(0.25).expect("a step")
}

fn add<V>(property: u32, millis: i64, value: V) -> Operation<V> {
    Operation {
        property: PropertyId(property),
        edit: Edit::Add(Keyframe::new(Time::from_millis(millis), value)),
    }
}

fn random_operation(random: &mut Random, now: i64) -> Operation<Value> {
    let time = now + random.below(20) as i64 * 100;
    let value = [random.below(400) as f64 / 4.0, random.below(8) as f64];
    let operation = add(random.below(30) as u32, time, value);
    match random.below(8) {
        0 => Operation {
            edit: Edit::Remove {
                time: Time::from_millis(time),
            },
            ..operation
        },
        1 => Operation {
            edit: Edit::MoveWithin {
                from: Time::from_millis(time),
                to: Time::MAX,
                by: Span::from_millis(random.below(500) as i64),
            },
            ..operation
        },
        _ => operation,
    }
}

/// Whether both have the same curves; a history does not tell of empty ones.
fn same<V: prescient_timeline::Value>(first: &Timeline<V>, second: &Timeline<V>) -> bool {
    let [first, second] = [first, second].map(|timeline| {
        let curves = timeline.curves();
        curves.filter(|(_, curve)| !curve.is_empty())
    });
    first.eq(second)
}

/// Five receivers: each joins at another time, takes a message now and then, and does not get every tenth.
/// Fails if a history contains what is sent again after it, if messages are numbered as batches are although a
/// history took several numbers, or if a resume begins at another batch.
#[test]
fn receivers_that_join_at_any_time_have_the_same_curves() {
    let (mut histories, mut resumes) = (0, 0);
    for seed in 0..20 {
        let mut random = Random(seed);
        let settings = config().history(12).max_message(512).expect("long enough");
        let mut broadcast: Broadcast<u32, Value> = Broadcast::new(settings.clone());
        let mut receivers: Vec<Receiver<Value>> = Vec::new();
        for round in 0..400i64 {
            let now = 50 * round;
            if round % 80 == 0 {
                receivers.push(Receiver::new(settings.clone()));
            }
            for _ in 0..random.below(5) {
                let operation = random_operation(&mut random, now);
                let _ = broadcast.apply(&operation);
            }
            broadcast.handle_timeout(Time::from_millis(now));
            for (number, receiver) in (0..).zip(&mut receivers) {
                if random.below(3) == 0 {
                    receiver.ask_again();
                }
                if let Some(request) = receiver.poll_transmit() {
                    broadcast.handle(number, &request).expect("a request");
                }
                for _ in 0..random.below(4) {
                    let Some(message) = broadcast.poll_transmit(number) else {
                        break;
                    };
                    assert!(message.len() <= 512, "{}", message.len());
                    histories += u32::from(message[0] == 3);
                    resumes += u32::from(message[0] == 2);
                    if random.below(10) > 0 {
                        let _ = receiver.handle(&message);
                    }
                }
            }
        }
        // A receiver notices what it misses by what follows.
        broadcast.apply(&add(99, 90_000, [1.0; 2])).expect("sound");
        broadcast.flush(Time::from_millis(30_000));
        for (number, receiver) in (0..).zip(&mut receivers) {
            for _ in 0..3 {
                while let Some(message) = broadcast.poll_transmit(number) {
                    let _ = receiver.handle(&message);
                }
                receiver.ask_again();
                if let Some(request) = receiver.poll_transmit() {
                    broadcast.handle(number, &request).expect("a request");
                }
            }
            assert!(
                same(receiver.timeline(), broadcast.timeline()),
                "seed {seed}, receiver {number}"
            );
        }
        assert_eq!(broadcast.receivers().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert!(broadcast.remove(2) && !broadcast.remove(2));
        assert_eq!(broadcast.poll_transmit(2), None);
    }
    assert!(
        histories > 100 && resumes > 100,
        "{histories} histories, {resumes} resumes"
    );
}

/// The history of 600 curves, which change while it is sent. Fails if a history is one message, or is read
/// from the present timeline instead of a copy.
#[test]
fn a_long_history_comes_in_short_messages() {
    let mut random = Random(3);
    let settings = config().max_message(1024).expect("long enough");
    let mut sender = Sender::new(settings.clone());
    for property in 0..600 {
        for number in 0..=random.below(40) as i64 {
            let value = [random.below(4000) as f64, number as f64];
            let operation = add(property, 100 * number, value);
            sender.apply(&operation).expect("sound");
        }
    }
    let keyframes = sender.timeline().keyframe_count();
    sender.flush(Time::from_millis(4000));
    let mut receiver = Receiver::new(settings);
    let request = receiver.poll_transmit().expect("it asks");
    sender.handle(&request).expect("a request");
    let (mut messages, mut bytes) = (0, 0);
    while let Some(message) = sender.poll_transmit() {
        assert!(message.len() <= 1024, "{}", message.len());
        receiver.handle(&message).expect("nothing is lost");
        (messages, bytes) = (messages + 1, bytes + message.len());
        // Faster than the history.
        if messages < 100 {
            let operation = random_operation(&mut random, 4000 + 100 * messages);
            let _ = sender.apply(&operation);
            sender.flush(Time::from_millis(4000 + 100 * messages));
        }
    }
    assert!(messages > 100);
    assert!(same(receiver.timeline(), sender.timeline()));
    println!("{keyframes} keyframes in {messages} messages, {bytes} bytes");
}

/// More numbers than a keyframe usually has.
type Wide = [f64; 8];

/// Random bits in every keyframe, all of one property, so that each is a packet of its own. Fails if a
/// message that became too long is sent nevertheless, or if what follows it continues the old codec.
#[test]
fn surprising_keyframes_are_divided() {
    let mut random = Random(4);
    let settings = PackedConfig::<Wide>::new(1.0).expect("a step");
    let settings = settings.max_message(1024).expect("long enough");
    let mut sender = Sender::new(settings.clone());
    let mut receiver = Receiver::new(settings.clone());
    let mut late = Receiver::new(settings);
    let request = receiver.poll_transmit().expect("it asks");
    sender.handle(&request).expect("a request");
    for _ in 0..500 {
        let value: Wide = std::array::from_fn(|_| (random.bits() >> 12) as f64);
        let operation = add(7, random.below(1 << 42) as i64, value);
        sender.apply(&operation).expect("sound");
    }
    sender.flush(Time::from_millis(100));
    let deliver = |sender: &mut Sender<Wide>, receiver: &mut Receiver<Wide>| {
        let mut resumes = 0;
        while let Some(message) = sender.poll_transmit() {
            assert!(message.len() <= 1024, "{}", message.len());
            resumes += u32::from(message[0] == 2);
            receiver.handle(&message).expect("nothing is lost");
        }
        assert!(same(receiver.timeline(), sender.timeline()));
        resumes
    };
    assert!(
        deliver(&mut sender, &mut receiver) > 0,
        "nothing was divided"
    );
    let request = late.poll_transmit().expect("it asks");
    sender.handle(&request).expect("a request");
    deliver(&mut sender, &mut late);
}

/// Nothing is made for a receiver that takes nothing; after more batches than are kept it gets a history.
/// Fails if messages are made when operations are, or a batch that is not kept any more is skipped.
#[test]
fn a_receiver_that_takes_nothing_for_long_gets_a_history() {
    let settings = config().history(8);
    let mut sender = Sender::new(settings.clone());
    let mut receiver = Receiver::new(settings);
    let request = receiver.poll_transmit().expect("it asks");
    sender.handle(&request).expect("a request");
    let first = sender.poll_transmit().expect("an empty history");
    receiver.handle(&first).expect("asked for");
    for round in 0..100 {
        let operation = add(round % 3, i64::from(100 * round), [1.0, 2.0]);
        sender.apply(&operation).expect("sound");
        sender.flush(Time::from_millis(i64::from(100 * round)));
    }
    let mut messages = 0;
    while let Some(message) = sender.poll_transmit() {
        receiver.handle(&message).expect("nothing is lost");
        messages += 1;
    }
    assert_eq!(messages, 1);
    assert!(same(receiver.timeline(), sender.timeline()));
    assert_eq!(receiver.timeline().keyframe_count(), 100);
}

/// A curve of velocities that dropped its oldest keyframes, which are part of the integral. Fails if the
/// history does not begin with what was reached.
#[test]
fn late_joiners_integrate_dropped_velocities() {
    let curves = CurveConfig::default()
        .interpolation(Interpolation::Velocity)
        .and_then(|curves| curves.memory(4, WhenFull::DropOldest))
        .expect("sound");
    let limits = TimelineConfig::default().curves(curves);
    let settings = PackedConfig::<f64>::new(0.25).expect("a step");
    let settings = settings.timeline(limits);
    let mut sender = Sender::new(settings.clone());
    for second in 0..20 {
        let operation = add(1, 1000 * second, 2.0);
        sender.apply(&operation).expect("sound");
    }
    let mut receiver = Receiver::new(settings);
    let request = receiver.poll_transmit().expect("it asks");
    sender.handle(&request).expect("a request");
    let message = sender.poll_transmit().expect("a history");
    receiver.handle(&message).expect("asked for");
    for second in 17..=19 {
        let shown = receiver
            .timeline()
            .at(PropertyId(1), Time::from_millis(1000 * second));
        assert_eq!(shown, Some(2.0 * second as f64));
    }
}

/// A property with steps among lines, and a path that is followed, delayed, and followed as before. Fails if
/// the configuration of a property is lost with a history, or if `follow` compares keyframes before it rounds
/// them.
#[test]
fn paths_are_followed_in_steps() {
    let steps = CurveConfig::default().interpolation(Interpolation::Step);
    let limits = TimelineConfig::default().property(PropertyId(2), steps.expect("supported"));
    let settings = config().timeline(limits);
    let mut sender = Sender::new(settings.clone());
    let mut receiver = Receiver::new(settings);
    let millis = Time::from_millis;
    let path = |late: i64| {
        let corner = |(time, x): (i64, f64)| Keyframe::new(millis(time + late), [x, 0.1]);
        [(1000, 3.3), (2000, 7.7), (4000, 1.1)].map(corner)
    };
    for property in [1, 2].map(PropertyId) {
        assert_eq!(sender.follow(property, Time::ZERO, &path(0)), Ok(3));
        assert_eq!(sender.follow(property, millis(500), &path(0)), Ok(0));
        // A keyframe at which the delay begins, and one move of all others.
        assert_eq!(sender.follow(property, millis(500), &path(700)), Ok(2));
    }
    let backwards = [path(0)[1], path(0)[0]];
    let refused = sender.follow(PropertyId(1), Time::ZERO, &backwards);
    assert!(matches!(
        refused,
        Err(SendError::Plan(PlanError::Unordered { .. }))
    ));
    for _ in 0..2 {
        receiver.ask_again();
        if let Some(request) = receiver.poll_transmit() {
            sender.handle(&request).expect("a request");
        }
        while let Some(message) = sender.poll_transmit() {
            receiver.handle(&message).expect("nothing is lost");
        }
    }
    assert!(same(receiver.timeline(), sender.timeline()));
    let at = |property, time| receiver.timeline().at(PropertyId(property), millis(time));
    assert_eq!(at(1, 2200), Some([5.5, 0.0]));
    assert_eq!(at(2, 2200), Some([3.25, 0.0]));
}
