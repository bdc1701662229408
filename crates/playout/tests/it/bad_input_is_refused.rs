//! Nonsense is a typed error or clamped as documented, never a panic.

use std::time::Duration;

use prescient_playout::{
    InputBuffer, InputBufferConfig, Layout, Moment, Pace, PlaybackClock, PlaybackConfig,
    PlaybackError, PredictError, PredictedEntity, RewindError, RewindLimits, SeenTick, ShowConfig,
    Track, TrackError, between,
};
use prescient_schema::State;

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Ball {
    #[state(exact)]
    height: f32,
    #[state(exact, show = "acceleration")]
    ahead: f32,
}

fn ball(height: f32) -> Ball {
    Ball {
        height,
        ahead: height,
    }
}

fn moment(tick: f64, millis: u64) -> Moment {
    Moment {
        playback: tick,
        present: tick,
        now: Duration::from_millis(millis),
        tick_seconds: 0.05,
    }
}

/// Fails if `Track::push` accepts an equal tick, or if `handle_state` does.
#[test]
fn states_that_are_not_newer_change_nothing() {
    let layout = Layout::new(&ShowConfig::default()).expect("sound");
    let mut track = Track::new(&layout);
    track.push(&layout, 5, ball(1.0)).expect("the first");
    for tick in [5, 4, 0] {
        let refused = track.push(&layout, tick, ball(9.0));
        assert_eq!(refused, Err(TrackError::NotLater { newest: 5 }));
    }
    assert_eq!(
        track.shown(&layout, Ball::default(), &moment(5.0, 0)),
        ball(1.0)
    );
    let tick = Duration::from_millis(50);
    let mut clock = PlaybackClock::new(PlaybackConfig::default(), tick).expect("sound");
    clock.handle_state(5, tick).expect("the first");
    let refused = clock.handle_state(5, tick * 2);
    assert_eq!(refused, Err(PlaybackError::NotLater { newest: 5 }));
}

/// Fails if `advance` does not keep the later time, or if a frame of the past mends something.
#[test]
fn time_that_goes_backwards_stands_still() {
    let tick = Duration::from_millis(50);
    let mut clock = PlaybackClock::new(PlaybackConfig::default(), tick).expect("sound");
    for number in 0..20 {
        clock
            .handle_state(number.into(), tick * number)
            .expect("in order");
        clock.advance(tick * number);
    }
    let before = clock.position();
    assert_eq!(clock.advance(Duration::ZERO), before);
    assert_eq!(clock.advance(tick * 19), before);

    let layout = Layout::new(&ShowConfig::default()).expect("sound");
    let mut track = Track::new(&layout);
    for number in 0..10 {
        track
            .push(&layout, number, ball(number as f32))
            .expect("in order");
    }
    assert_eq!(
        track
            .shown(&layout, Ball::default(), &moment(8.0, 100))
            .height,
        8.0
    );
    assert_eq!(
        track
            .shown(&layout, Ball::default(), &moment(7.5, 50))
            .height,
        7.5
    );
    let oldest = track
        .shown(&layout, Ball::default(), &moment(-1e300, 0))
        .height;
    assert_eq!(
        oldest, 7.0,
        "a history that is shorter than asked shows its oldest sample"
    );
}

/// Fails if `Samples::number` returns what is not finite, or if `Draw` adds a correction that is
/// not.
#[test]
fn what_is_no_number_is_not_drawn_between() {
    let layout = Layout::new(&ShowConfig::default()).expect("sound");
    let bad = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX];
    for bad in bad {
        let mut track = Track::new(&layout);
        track.push(&layout, 1, ball(1.0)).expect("in order");
        track.shown(&layout, ball(1.0), &moment(1.0, 0));
        track.push(&layout, 2, ball(bad)).expect("in order");
        track.push(&layout, 3, ball(3.0)).expect("in order");
        let between = track.shown(&layout, ball(1.0), &moment(1.5, 10));
        assert!(between.height.is_finite(), "{bad}: {between:?}");
        let after = track.shown(&layout, ball(3.0), &moment(3.0, 1000));
        assert_eq!(after.height, 3.0);
    }
    for tick in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut track = Track::new(&layout);
        track.push(&layout, 1, ball(1.0)).expect("in order");
        track.push(&layout, 2, ball(2.0)).expect("in order");
        let shown = track.shown(&layout, ball(1.0), &moment(tick, 10));
        assert!(
            shown.height.is_finite() && shown.ahead.is_finite(),
            "{tick}: {shown:?}"
        );
    }
}

/// Fails if `stepped` keeps the state with NaN, or if `confirm` takes one over.
#[test]
fn a_step_that_returns_nan_is_an_error() {
    let layout = Layout::new(&ShowConfig::default()).expect("sound");
    let mut entity = PredictedEntity::new(&layout, 0.0, 16);
    let step = |ball: &mut Ball, by: &f32| ball.height += by;
    entity
        .confirm(&layout, None, ball(1.0), step)
        .expect("the first");
    assert_eq!(entity.act(1, f32::NAN, step), Err(PredictError::NotFinite));
    assert_eq!(entity.predicted(), Some(&ball(1.0)));
    assert_eq!(
        entity.act(1, 1.0, step),
        Err(PredictError::NotLater { last: 1 })
    );
    entity.act(2, 1.0, step).expect("in order");
    let refused = entity.confirm(&layout, Some(1), ball(f32::NAN), step);
    assert_eq!(refused, Err(PredictError::StateNotFinite));
    let corrected = entity.confirm(&layout, Some(1), ball(5.0), |ball: &mut Ball, _| {
        ball.height = f32::NAN;
    });
    assert_eq!(corrected, Err(PredictError::NotFinite));
    assert_eq!(entity.predicted(), Some(&ball(5.0)));
    let refused = entity.confirm(&layout, None, ball(0.0), step);
    assert_eq!(refused, Err(PredictError::Backwards { confirmed: 1 }));
}

/// Fails if `bound` compares a NaN, or if a claim of the future is believed.
#[test]
fn claims_of_clients_are_bounded() {
    let limits = RewindLimits { max_ticks: 8.0 };
    assert_eq!(limits.bound(95.5, 100.0), Ok(95.5));
    assert_eq!(limits.bound(1e18, 100.0), Ok(100.0));
    assert_eq!(limits.bound(-5.0, 100.0), Ok(92.0));
    assert_eq!(limits.bound(f64::NAN, 100.0), Err(RewindError::NotANumber));
    let seen = SeenTick::new(95.5);
    assert_eq!(SeenTick::from_bytes(&seen.to_bytes()), Some(seen));
    assert_eq!(seen.tick(), 95.5);
    assert_eq!(SeenTick::from_bytes(&[0; 7]), None);
    assert_eq!(SeenTick::new(f64::NAN).tick(), 0.0);
    assert_eq!(
        between("default", ball(1.0), ball(3.0), f64::NAN),
        ball(1.0)
    );
    assert_eq!(between("default", ball(1.0), ball(3.0), 0.5), ball(2.0));
    assert_eq!(
        between("default", ball(1.0), ball(f32::NAN), 0.5),
        ball(1.0)
    );
}

/// Fails if a `check` is left out of a constructor.
#[test]
fn settings_that_cannot_work_are_refused() {
    let tick = Duration::from_millis(50);
    let bad = [
        PlaybackConfig::default().with_late_share(f64::NAN),
        PlaybackConfig::default().with_max_bend(0.6),
        PlaybackConfig::default().with_jump_beyond(Duration::ZERO),
    ];
    for config in bad {
        assert!(PlaybackClock::new(config, tick).is_err());
    }
    assert!(PlaybackClock::new(PlaybackConfig::default(), Duration::ZERO).is_err());
    let still = Pace {
        exponential: Duration::ZERO,
        ..Pace::default()
    };
    assert!(ShowConfig::default().with_pace(still).check().is_err());
    let config = InputBufferConfig::default().with_target(40);
    assert!(InputBuffer::<u8>::new(config).is_err());
}
