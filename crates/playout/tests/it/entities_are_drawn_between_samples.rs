//! What a track shows: between samples, ahead of them, and while an error is mended.

use std::f64::consts::PI;
use std::time::Duration;

use glam::DQuat;
use prescient_playout::{Layout, Moment, ShowConfig, Track};
use prescient_schema::State;

#[derive(State, Clone, Copy, Debug, Default, PartialEq)]
enum Gear {
    #[default]
    Forward,
    Reverse,
}

#[derive(State, Clone, Debug, Default, PartialEq)]
#[state(tick_hz = 20)]
struct Car {
    #[state(step = 0.01, show = "linear", snap_beyond = 5.0)]
    x: f64,
    #[state(step = 0.001)]
    y: f64,
    #[state(step = 0.001, velocity_of = "y")]
    y_speed: f64,
    #[state(exact, show = "velocity", converge = "cubic")]
    ahead: f64,
    #[state(exact)]
    turn: DQuat,
    #[state(show = "linear")]
    fuel: u8,
    gear: Gear,
    health: u16,
    wheel: Option<f64>,
}

fn moment(tick: f64, frame: u64) -> Moment {
    Moment {
        playback: tick,
        present: tick,
        now: Duration::from_millis(10 * frame),
        tick_seconds: 0.05,
    }
}

fn track(cars: &[(u64, Car)]) -> (Layout<Car>, Track<Car>) {
    let layout = Layout::new(&ShowConfig::default()).expect("a sound class");
    let mut track = Track::new(&layout);
    for (tick, car) in cars {
        track.push(&layout, *tick, car.clone()).expect("in order");
    }
    (layout, track)
}

/// Numbers are drawn between, and finer than the step they are sent in; rotations turn the short
/// way; enumerations and counts step.
///
/// Fails if `visit_numbers` of the derive macro visits fields in another order than their columns,
/// or if integers are drawn between without being asked.
#[test]
fn every_field_is_shown_as_declared() {
    let turned = |angle: f64| DQuat::from_rotation_z(angle);
    let cars = [
        (
            10,
            Car {
                x: 1.0,
                fuel: 10,
                turn: turned(0.9 * PI),
                wheel: Some(1.0),
                ..Car::default()
            },
        ),
        (
            12,
            Car {
                x: 1.01,
                fuel: 20,
                // Across the half turn, as the negative quaternion.
                turn: -turned(1.1 * PI),
                gear: Gear::Reverse,
                health: 7,
                wheel: Some(3.0),
                ..Car::default()
            },
        ),
        (
            14,
            Car {
                x: 40.0,
                ..Car::default()
            },
        ),
    ];
    let (layout, mut track) = track(&cars);
    let shown = track.shown(&layout, cars[0].1.clone(), &moment(11.0, 1));
    assert!((shown.x - 1.005).abs() < 1e-12, "{}", shown.x);
    assert_eq!(
        (shown.fuel, shown.gear, shown.health),
        (15, Gear::Forward, 0)
    );
    assert!(shown.turn.dot(turned(PI)).abs() > 1.0 - 1e-9);
    assert!(shown.wheel.is_some_and(|wheel| wheel > 1.5 && wheel < 2.5));
    let shown = track.shown(&layout, cars[1].1.clone(), &moment(13.9, 2));
    assert_eq!(shown.x, 1.01, "a jump is not drawn through");
    assert_eq!(shown.wheel, Some(3.0), "nothing to draw towards");
}

/// A cubic with the declared velocity is the parabola of a thrown ball exactly; the line is not.
///
/// Fails if `Layout::new` inverts the ratio of the two units, or forgets ticks per second.
#[test]
fn a_declared_velocity_bends_the_curve() {
    let at = |tick: f64| {
        let seconds = tick / 20.0;
        (
            10.0 * seconds - 5.0 * seconds * seconds,
            10.0 - 10.0 * seconds,
        )
    };
    let car = |tick: u64| {
        let (y, y_speed) = at(tick as f64);
        (
            tick,
            Car {
                y,
                y_speed,
                ..Car::default()
            },
        )
    };
    let cars = [car(0), car(8), car(16)];
    let (layout, mut track) = track(&cars);
    for tenth in 0..160 {
        let tick = f64::from(tenth) / 10.0;
        let shown = track.shown(&layout, Car::default(), &moment(tick, tenth as u64));
        assert!((shown.y - at(tick).0).abs() < 1e-9, "{tick}: {}", shown.y);
    }
}

/// What is dead-reckoned runs ahead of its samples; when one tells that it turned, what is shown
/// does not jump, and ends where it should be.
///
/// Fails if `Track::push` does not note the difference, or notes it with the wrong sign.
#[test]
fn a_wrong_guess_is_mended_without_a_jump() {
    let car = |ahead: f64| Car {
        ahead,
        ..Car::default()
    };
    let cars = [(0, car(0.0)), (2, car(2.0))];
    let (layout, mut track) = track(&cars);
    let mut tick = 4.0;
    let mut before = track.shown(&layout, Car::default(), &moment(tick, 0)).ahead;
    assert!((before - 4.0).abs() < 1e-12, "{before}");
    // It stood still from tick 2 on.
    track.push(&layout, 4, car(2.0)).expect("in order");
    for frame in 1..60 {
        tick += 0.2;
        let ahead = track
            .shown(&layout, Car::default(), &moment(tick, frame))
            .ahead;
        assert!(
            (ahead - before).abs() < 0.25,
            "frame {frame}: {before} to {ahead}"
        );
        before = ahead;
    }
    assert_eq!(before, 2.0);
}

/// A guess ends half a second after the newest sample.
///
/// Fails if `Guesses::new` does not apply the limit.
#[test]
fn a_guess_does_not_run_away() {
    let car = |ahead: f64| Car {
        ahead,
        ..Car::default()
    };
    let (layout, mut track) = track(&[(0, car(0.0)), (2, car(2.0))]);
    let shown = track.shown(&layout, Car::default(), &moment(1000.0, 0));
    assert_eq!(shown.ahead, 12.0);
}

/// Samples that no frame needs any more are dropped, also if no frame is drawn.
///
/// Fails if `drop_before` is not called, or if `MAX_SAMPLES` is not applied.
#[test]
fn a_track_is_bounded() {
    let (layout, mut track) = track(&[]);
    for tick in 0..1000 {
        track.push(&layout, tick, Car::default()).expect("in order");
    }
    assert_eq!(track.len(), 72);
    track.shown(&layout, Car::default(), &moment(990.0, 1));
    assert_eq!(track.len(), 11);
}
