//! Prediction, rollback, and entities that are spawned ahead of the server.

use std::collections::VecDeque;
use std::time::Duration;

use prescient_playout::{
    Confirmation, Layout, PreSpawns, PredictError, PredictedEntity, Predictor, ShowConfig,
    Simulated,
};
use prescient_schema::State;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Runner {
    at: i64,
}

impl Simulated for Runner {
    fn error(&self, other: &Self) -> f64 {
        (self.at - other.at).abs() as f64
    }
}

fn step(runner: &mut Runner, by: &i64) {
    runner.at += by;
}

/// Both ends run the same step, and states come back many inputs late: every input is shown at
/// once, and nothing is ever corrected.
///
/// Fails if `confirm` compares with the newest prediction instead of the one after that input.
#[test]
fn nothing_is_corrected_when_both_ends_agree() {
    let mut predictor = Predictor::new(0.0, 64);
    let (mut server, mut on_the_way) = (Runner { at: 0 }, VecDeque::new());
    let start = predictor.confirm(None, server, step);
    assert_eq!(start, Ok(Confirmation::Started));
    let mut expected = 0;
    for tick in 1..1000_u64 {
        let by = (tick * 7919 % 13) as i64 - 6;
        expected += by;
        let shown = predictor.act(tick, by, step).expect("in order");
        assert_eq!(shown, Some(&Runner { at: expected }), "in the same frame");
        step(&mut server, &by);
        on_the_way.push_back((tick, server));
        if on_the_way.len() > 20 {
            let (tick, state) = on_the_way.pop_front().expect("not empty");
            let confirmed = predictor.confirm(Some(tick), state, step);
            assert_eq!(confirmed, Ok(Confirmation::AsPredicted));
        }
    }
    assert_eq!(predictor.statistics().corrected, 0);
    assert_eq!(predictor.unconfirmed(), 20);
}

/// A push that the client did not know of moves it, and its later inputs are applied again.
///
/// Fails if `confirm` drops the inputs after the confirmed one, or does not keep the new states.
#[test]
fn a_correction_repeats_what_the_server_lacks() {
    let mut predictor = Predictor::new(0.0, 64);
    predictor
        .confirm(None, Runner { at: 0 }, step)
        .expect("the first");
    for tick in 1..=5 {
        predictor.act(tick, 10, step).expect("in order");
    }
    let confirmed = predictor.confirm(Some(2), Runner { at: 17 }, step);
    let expected = Confirmation::Corrected {
        moved: 3.0,
        replayed: 3,
    };
    assert_eq!(confirmed, Ok(expected));
    assert_eq!(predictor.predicted(), Some(&Runner { at: 47 }));
    let confirmed = predictor.confirm(Some(4), Runner { at: 37 }, step);
    assert_eq!(confirmed, Ok(Confirmation::AsPredicted));
    // It is pushed while it does nothing: the same input is confirmed again.
    let confirmed = predictor.confirm(Some(4), Runner { at: 38 }, step);
    let expected = Confirmation::Corrected {
        moved: 1.0,
        replayed: 1,
    };
    assert_eq!(confirmed, Ok(expected));
    let statistics = predictor.statistics();
    assert_eq!((statistics.corrected, statistics.replayed), (2, 4));
    assert_eq!((statistics.largest, statistics.moved), (3.0, 4.0));
}

/// Inputs before the first state are not lost.
///
/// Fails if `act` drops them, or if `confirm` repeats those that the state has consumed.
#[test]
fn inputs_before_the_first_state_count() {
    let mut predictor = Predictor::new(0.0, 64);
    for tick in 1..=3 {
        assert_eq!(predictor.act(tick, 1, step), Ok(None));
    }
    let confirmed = predictor.confirm(Some(1), Runner { at: 100 }, step);
    assert_eq!(confirmed, Ok(Confirmation::Started));
    assert_eq!(predictor.predicted(), Some(&Runner { at: 102 }));
}

#[derive(State, Clone, Debug, PartialEq)]
#[state(predicted)]
struct Tank {
    #[state(step = 0.01, position, snap_beyond = 10.0)]
    x: f64,
    shots: u32,
}

/// The shown entity does not jump when it is corrected, but for what is beyond its limit.
///
/// Fails if `PredictedEntity::confirm` does not note the difference, or if `shown` mends nothing.
#[test]
fn corrections_are_mended_smoothly() {
    let layout = Layout::<Tank>::new(&ShowConfig::default()).expect("sound");
    let drive = |tank: &mut Tank, by: &f64| tank.x += by;
    let tank = |x: f64| Tank { x, shots: 0 };
    let mut entity = PredictedEntity::new(&layout, 0.006, 64);
    entity
        .confirm(&layout, None, tank(0.0), drive)
        .expect("the first");
    entity.act(1, 1.0, drive).expect("in order");
    let frame = |frame: u64| Duration::from_millis(16 * frame);
    assert_eq!(
        entity.shown(&layout, frame(0)),
        Some(tank(1.0)),
        "in the same frame"
    );
    // Within the tolerance: the server's is rounded to its step.
    let confirmed = entity.confirm(&layout, Some(1), tank(1.004), drive);
    assert_eq!(confirmed, Ok(Confirmation::AsPredicted));
    let confirmed = entity.confirm(&layout, Some(1), tank(3.0), drive);
    assert!(matches!(
        confirmed,
        Ok(Confirmation::Corrected { moved: 2.0, .. })
    ));
    let mut before = 1.0;
    for number in 1..200 {
        let x = entity
            .shown(&layout, frame(number))
            .expect("it is predicted")
            .x;
        assert!(x > before - 1e-12 && x - before < 0.31, "{before} to {x}");
        before = x;
    }
    assert_eq!(before, 3.0);
    entity
        .confirm(&layout, Some(1), tank(30.0), drive)
        .expect("it is sound");
    assert_eq!(entity.shown(&layout, frame(200)), Some(tank(30.0)));
    let more_shots = Tank { x: 30.0, shots: 1 };
    let confirmed = entity.confirm(&layout, Some(1), more_shots, drive);
    assert!(
        matches!(confirmed, Ok(Confirmation::Corrected { .. })),
        "{confirmed:?}"
    );
}

/// Projectiles are matched by key or by distance, and vanish if the server did not spawn them.
///
/// Fails if `take_nearest` takes the first one, or if `expire` ignores patience.
#[test]
fn what_is_spawned_ahead_is_matched_or_vanishes() {
    let mut shots = PreSpawns::new(4);
    for (tick, x) in [(5, 0.0), (6, 3.0), (7, 9.0), (8, 20.0)] {
        shots.spawn((tick, 0), tick, x).expect("there is room");
    }
    assert!(shots.spawn((9, 0), 9, 0.0).is_err());
    assert_eq!(shots.take(&(7, 0)), Some(9.0));
    assert_eq!(shots.take(&(7, 0)), None, "only once");
    let distance = |x: &f64| Some((x - 2.0).abs());
    assert_eq!(shots.take_nearest(5.0, distance), Some(3.0));
    assert_eq!(shots.take_nearest(1.0, distance), None);
    assert_eq!(shots.take_nearest(f64::INFINITY, |_| Some(f64::NAN)), None);
    assert_eq!(shots.expire(None, 3), []);
    assert_eq!(shots.expire(Some(7), 3), []);
    assert_eq!(shots.expire(Some(8), 3), [0.0]);
    assert_eq!(shots.iter_mut().count(), 1);
    assert_eq!(shots.counts(), (2, 1));
}

/// A client that the server does not answer stops predicting instead of growing.
///
/// Fails if `max_ahead` is not applied to inputs before the first state.
#[test]
fn predictions_are_bounded() {
    let mut predictor: Predictor<Runner, i64> = Predictor::new(0.0, 8);
    for tick in 0..8 {
        assert_eq!(predictor.act(tick, 1, step), Ok(None));
    }
    assert_eq!(predictor.act(8, 1, step), Err(PredictError::TooFarAhead(8)));
}

/// An entity at rest is in no packet while packets are too small for everything, but its inputs are
/// consumed all the same.
///
/// Fails if `consume` does not drop the inputs, or drops the state after them.
#[test]
fn inputs_wait_no_longer_than_they_are_consumed() {
    let mut predictor = Predictor::new(0.0, 8);
    let started = predictor.confirm(None, Runner { at: 0 }, step);
    started.expect("the first");
    for tick in 1..=100 {
        predictor.act(tick, 1, step).expect("there is room");
        predictor.consume(tick.saturating_sub(3));
        assert_eq!(predictor.unconfirmed(), tick.min(3) as usize);
        predictor.consume(tick.saturating_sub(9));
    }
    let confirmed = predictor.confirm(Some(99), Runner { at: 99 }, step);
    assert_eq!(confirmed, Ok(Confirmation::AsPredicted));
    let backwards = predictor.confirm(Some(98), Runner { at: 98 }, step);
    assert_eq!(backwards, Err(PredictError::Backwards { confirmed: 99 }));
    assert_eq!(predictor.predicted(), Some(&Runner { at: 100 }));
}

#[derive(State, Clone, Debug, PartialEq)]
#[state(predicted)]
struct Knight {
    #[state(step = 0.01, position)]
    x: f64,
    #[state(keys)]
    keys: u8,
    #[state(step = 0.1, show = "stepped")]
    mana: f64,
    #[state(table)]
    shield: Option<Shield>,
}

#[derive(State, Clone, Debug, PartialEq)]
struct Shield {
    #[state(step = 0.1)]
    strength: f32,
}

/// What the server adds to an entity is no misprediction if it is keys, and one if it is a table.
///
/// Fails if `error_in` compares the keys, or if `error` looks at the first table only.
#[test]
fn everything_but_keys_is_compared() {
    let layout = Layout::<Knight>::new(&ShowConfig::default()).expect("sound");
    let walk = |knight: &mut Knight, by: &f64| knight.x += by;
    let knight = |x: f64, keys: u8, shield: Option<f32>| Knight {
        x,
        keys,
        mana: 1.0,
        shield: shield.map(|strength| Shield { strength }),
    };
    let mut entity = PredictedEntity::new(&layout, 0.01, 8);
    let started = entity.confirm(&layout, None, knight(0.0, 0, None), walk);
    started.expect("the first");
    entity.act(1, 1.0, walk).expect("in order");
    let confirmed = entity.confirm(&layout, Some(1), knight(1.0, 5, None), walk);
    assert_eq!(confirmed, Ok(Confirmation::AsPredicted));
    for shield in [Some(2.0), Some(1.5), None] {
        let state = knight(1.0, 5, shield);
        let confirmed = entity.confirm(&layout, Some(1), state.clone(), walk);
        let corrected = Confirmation::Corrected {
            moved: 0.0,
            replayed: 0,
        };
        assert_eq!(confirmed, Ok(corrected), "{shield:?}");
        assert_eq!(entity.shown(&layout, Duration::ZERO), Some(state));
    }
}

/// A float that is declared as stepped is not drawn through values that it never had.
///
/// Fails if `Mend::number` mends whatever differs.
#[test]
fn what_is_stepped_is_not_mended() {
    let layout = Layout::<Knight>::new(&ShowConfig::default()).expect("sound");
    let still = |_: &mut Knight, _: &f64| {};
    let knight = |x: f64, mana: f64| Knight {
        x,
        keys: 0,
        mana,
        shield: None,
    };
    let mut entity = PredictedEntity::new(&layout, 0.01, 8);
    let started = entity.confirm(&layout, None, knight(0.0, 9.0), still);
    started.expect("the first");
    entity.shown(&layout, Duration::ZERO);
    let corrected = entity.confirm(&layout, None, knight(4.0, 2.0), still);
    corrected.expect("sound");
    let shown = entity
        .shown(&layout, Duration::from_millis(50))
        .expect("it is predicted");
    assert_eq!(shown.mana, 2.0);
    assert!(shown.x > 0.5 && shown.x < 3.5, "{shown:?}");
}
