//! What the facade shows in a frame: drawn between samples, predicted, rewound, one input per tick.

use std::time::Duration;

use prescient::playout::{InputBufferConfig, SeenTick};
use prescient::{
    Client, EntityHandle, Everything, Input, PeerId, PredictionError, Ref, Schema, Server,
    ServerEvent, ServerOptions, State, Tick,
};

#[derive(Clone, Copy, Debug, PartialEq, State)]
#[state(predicted)]
struct Runner {
    #[state(step = 0.5, show = "linear", snap_beyond = 50.0, position)]
    x: f64,
    shots: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, State)]
struct Crate {
    #[state(step = 0.5, position)]
    x: f64,
}

fn runner(x: f64) -> Runner {
    Runner { x, shots: 0 }
}

fn drive(runner: &mut Runner, input: &Input) {
    runner.x += input.keys_down.bits() as f64;
}

/// A server with a runner, and a client that sees it.
fn pair(options: ServerOptions) -> (Server, Client, Ref<Runner>, EntityHandle, PeerId) {
    let schema = Schema::of::<(Runner, Crate)>().expect("sound");
    let mut server = Server::offline_with(schema, Everything, options).expect("sound");
    let mut client = server.local_client();
    let joined = std::iter::from_fn(|| server.poll());
    let peer = joined.into_iter().find_map(|event| match event {
        ServerEvent::Joined { peer, .. } => Some(peer),
        _ => None,
    });
    let mut step = server.step().expect("in order");
    let entity = step.spawn(&runner(0.0)).expect("sound");
    step.finish();
    server.send();
    while client.poll().is_some() {}
    let shown = client.entities().next().expect("it is visible");
    (server, client, entity, shown, peer.expect("it joined"))
}

/// Frames never go back, never beyond what the server has, and are finer than its steps; the rest
/// steps.
///
/// Fails if `PlayOut::shown` pushes samples newest first, or if `begin_frame` passes no time.
#[test]
fn movement_is_drawn_between_samples() {
    let options = ServerOptions::default().with_tick_interval(Duration::from_millis(2));
    let (mut server, mut client, entity, shown, _) = pair(options);
    assert_eq!(
        client.shown(shown),
        Some(runner(0.0)),
        "without frames it is the newest"
    );
    let (mut before, mut between) = (f64::MIN, 0);
    for number in 1..=400_u32 {
        server.next_tick();
        while server.poll().is_some() {}
        let now = Runner {
            x: f64::from(number) * 2.0,
            shots: number,
        };
        server
            .step()
            .expect("in order")
            .set(entity, &now)
            .expect("it lives");
        server.send();
        for _ in 0..3 {
            client.wait(Duration::ZERO);
            while client.poll().is_some() {}
            let frame = client.begin_frame().expect("a state arrived");
            let drawn: Runner = client.shown(shown).expect("it is visible");
            assert!(drawn.x >= before - 1e-9, "{before} to {}", drawn.x);
            assert!(frame.playback <= frame.present);
            assert!(drawn.shots <= number);
            between += u32::from(drawn.x % 2.0 != 0.0);
            before = drawn.x;
        }
    }
    assert!(
        between > 300,
        "{between} of 1200 frames were between two samples"
    );
    let statistics = client.playback().expect("states arrived");
    assert!(statistics.rate > 0.9 && statistics.rate < 1.1);
}

/// A key moves the runner in the same frame, before the server knows of it. What the server did
/// not agree to is mended without a jump.
///
/// Fails if `Client::act` does not apply the input, or if a state is not compared
/// (`prediction.confirm` left out of `handle_state`).
#[test]
fn own_movement_shows_in_the_same_frame() {
    let (mut server, mut client, entity, shown, _) = pair(ServerOptions::default());
    client.predict(shown, drive).expect("it is visible");
    client.begin_frame();
    let mut truth = runner(0.0);
    for number in 1..=20 {
        client.press(1).expect("connected");
        let drawn: Runner = client.shown(shown).expect("it is visible");
        assert_eq!(drawn.x, f64::from(number));
        while let Some(event) = server.poll() {
            if let ServerEvent::Input { input, .. } = event {
                drive(&mut truth, &input);
            }
        }
        server
            .step()
            .expect("in order")
            .set(entity, &truth)
            .expect("it lives");
        server.send();
        while client.poll().is_some() {}
    }
    let statistics = client
        .prediction_statistics(shown)
        .expect("it is predicted");
    assert_eq!((statistics.inputs, statistics.corrected), (20, 0));
    assert!(statistics.confirmed >= 20);
    truth.x -= 8.0;
    truth.shots = 1;
    server
        .step()
        .expect("in order")
        .set(entity, &truth)
        .expect("it lives");
    server.send();
    while client.poll().is_some() {}
    let drawn: Runner = client.shown(shown).expect("it is visible");
    assert!(drawn.x > 12.0, "{} is a jump", drawn.x);
    assert_eq!(drawn.shots, 1, "what steps is taken over");
    let statistics = client
        .prediction_statistics(shown)
        .expect("it is predicted");
    assert_eq!(statistics.corrected, 1);
    assert!(client.stop_predicting(shown) && !client.stop_predicting(shown));
    assert_eq!(client.prediction_statistics(shown), None);
}

/// A peer's world is rewound to between two ticks, no further than allowed, and never forward.
///
/// Fails if `Rewind::ticks` rounds, or if `seen` does not bound the claim.
#[test]
fn the_world_is_rewound_to_what_a_client_saw() {
    let limit = Duration::from_micros(33_333) * 10;
    let options = ServerOptions::default().with_max_rewind(limit);
    let (mut server, mut client, entity, _, peer) = pair(options);
    for number in 2..=40_u32 {
        while server.poll().is_some() {}
        let mut step = server.step().expect("in order");
        step.set(entity, &runner(f64::from(number) * 3.0))
            .expect("it lives");
        step.finish();
        server.send();
        while client.poll().is_some() {}
    }
    while server.poll().is_some() {}
    let at = |tick: f64| {
        let rewind = server
            .rewind(peer)
            .seen(SeenTick::new(tick))
            .expect("a number");
        let position = rewind.position(entity.entity_ref()).expect("it has one");
        let then = rewind.get(entity).expect("it was there");
        assert_eq!(position.0[0], then.x);
        then.x
    };
    assert_eq!(at(35.0), 105.0);
    assert_eq!(at(35.25), 105.75);
    assert_eq!(at(1e9), 120.0, "not the future");
    assert_eq!(at(0.0), 90.0, "not too far back");
    assert_eq!(server.world().tick(), Some(Tick(40)));
    // Without a claim: a tick before the newest that the client acknowledged.
    assert_eq!(server.rewind(peer).tick(), 39.0);
    let gone = server.rewind(PeerId(99));
    assert!(gone.tick() <= 40.0, "an unknown peer sees the present");
}

/// Inputs that arrive at once are handed out one per tick, in order.
///
/// Fails if `hand_out_inputs` is not called, or hands out more than one.
#[test]
fn inputs_are_handed_out_one_per_tick() {
    let options = ServerOptions::default()
        .with_tick_interval(Duration::from_millis(1))
        .with_input_buffer(InputBufferConfig::default().with_window(5));
    let (mut server, mut client, _, _, peer) = pair(options);
    for keys in 1..=6 {
        client.press(keys).expect("connected");
    }
    let (mut ticks, mut nudges) = (Vec::new(), 0);
    for _ in 0..10 {
        server.next_tick();
        let events: Vec<_> = std::iter::from_fn(|| server.poll()).collect();
        let inputs = events.iter().filter_map(|event| match event {
            ServerEvent::Input { input, .. } => Some(input.keys_down.bits()),
            _ => None,
        });
        ticks.push(inputs.collect::<Vec<_>>());
        while let Some((from, _)) = server.poll_nudge() {
            assert_eq!(from, peer);
            nudges += 1;
        }
        server.step().expect("in order").finish();
        server.send();
    }
    assert!(ticks.iter().all(|inputs| inputs.len() <= 1), "{ticks:?}");
    assert_eq!(ticks.concat(), [1, 2, 3, 4, 5, 6]);
    assert!(nudges > 0);
}

/// Nonsense is a typed error.
///
/// Fails if `predict` does not check the declaration, or the entity.
#[test]
fn nonsense_is_not_predicted() {
    let (mut server, mut client, entity, shown, _) = pair(ServerOptions::default());
    let crate_of_wood = Crate { x: 1.0 };
    server
        .step()
        .expect("in order")
        .spawn(&crate_of_wood)
        .expect("sound");
    server.send();
    while client.poll().is_some() {}
    let other = client.all::<Crate>().next().expect("it is visible").0;
    let refused = client.predict(other, |_: &mut Crate, _| {});
    assert_eq!(refused, Err(PredictionError::NotPredicted));
    let refused = client.predict(other, drive);
    assert_eq!(refused, Err(PredictionError::NoSuchEntity));
    assert_eq!(
        client.simulate(shown, |_: &mut Crate, _, _| {}),
        Err(PredictionError::NoSuchEntity)
    );
    client.begin_frame();
    assert_eq!(client.shown::<Crate>(shown), None, "it has another type");
    client
        .predict(shown, |runner: &mut Runner, _| runner.x = f64::NAN)
        .expect("it is visible");
    client.press(1).expect("connected");
    assert!(
        client.prediction_error(shown).is_some(),
        "the step returned NaN"
    );
    assert_eq!(client.shown(shown), Some(runner(0.0)));
    server
        .step()
        .expect("in order")
        .despawn(entity.entity_ref())
        .expect("it lives");
    server.send();
    while client.poll().is_some() {}
    assert_eq!(client.shown::<Runner>(shown), None, "it is gone");
    assert_eq!(client.prediction_statistics(shown), None);
}
