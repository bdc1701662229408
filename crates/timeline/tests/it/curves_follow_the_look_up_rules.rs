//! Look-ups before, after, between and at keyframes, for every interpolation.

use std::f64::consts::PI;

use prescient_timeline::*;

/// Fails if `before_first` uses the last keyframe, `after_last` the first, or `along` the wrong segment.
#[test]
fn the_first_value_before_the_last_after_and_a_line_between() {
    let curve = curve(&[(10, 4.0), (30, 6.0), (40, 12.0)]);
    for (time, value) in [
        (i64::MIN, 4.0),
        (0, 4.0),
        (10, 4.0),
        (20, 5.0),
        (25, 5.5),
        (30, 6.0),
        (35, 9.0),
        (40, 12.0),
        (41, 12.0),
        (i64::MAX, 12.0),
    ] {
        assert_eq!(curve.at(micros(time)), Some(value), "at {time}");
    }
}

#[test]
fn nothing_has_no_value() {
    let mut empty = Curve::<f64>::new(CurveConfig::default());
    assert_eq!(empty.at(Time::ZERO), None);
    assert_eq!(empty.at_cursor(&mut Cursor::default(), Time::ZERO), None);
    empty.add(Keyframe::new(Time::ZERO, 1.0)).unwrap();
    empty.clear();
    assert_eq!(empty.at(Time::ZERO), None);
}

/// Fails if `count_until` counts keyframes before the time only.
#[test]
fn two_keyframes_at_one_time_are_a_step() {
    let curve = curve(&[(0, 0.0), (100, 10.0), (100, 50.0), (200, 60.0)]);
    assert_eq!(curve.at(micros(99)), Some(9.9));
    assert_eq!(curve.at(micros(100)), Some(50.0));
    assert_eq!(curve.at(micros(150)), Some(55.0));
    let ends = self::curve(&[(0, 1.0), (0, 2.0)]);
    assert_eq!(ends.at(micros(-1)), Some(1.0));
    assert_eq!(ends.at(micros(0)), Some(2.0));
}

#[test]
fn each_keyframe_may_be_interpolated_its_own_way() {
    let mut curve = curve(&[(0, 0.0), (100, 10.0), (200, 20.0)]);
    curve.remove(micros(100)).unwrap();
    let step = Keyframe::new(micros(100), 10.0).with(Interpolation::Step);
    curve.add(step).unwrap();
    assert_eq!(curve.at(micros(50)), Some(5.0));
    assert_eq!(curve.at(micros(199)), Some(10.0));
    assert_eq!(curve.at(micros(200)), Some(20.0));
}

/// Fails if tangents are those of a Catmull-Rom spline, which overshoots 0 and 10 here.
#[test]
fn a_smooth_curve_stays_between_its_keyframes_and_has_no_corners() {
    let config = CurveConfig::default();
    let config = config.interpolation(Interpolation::Smooth).unwrap();
    let points = [
        (0, 0.0),
        (100, 0.0),
        (200, 10.0),
        (300, 10.0),
        (400, 4.0),
        (500, 3.0),
    ];
    let curve = Curve::from_keyframes(config, keyframes(&points)).unwrap();
    let slope = |time: i64| curve.at(micros(time + 1)).unwrap() - curve.at(micros(time)).unwrap();
    for pair in points.windows(2) {
        let (low, high) = (pair[0].1.min(pair[1].1), pair[0].1.max(pair[1].1));
        for time in pair[0].0..=pair[1].0 {
            let value = curve.at(micros(time)).unwrap();
            assert!((low..=high).contains(&value), "{value} at {time}");
        }
    }
    for time in 1..499 {
        let change = (slope(time) - slope(time - 1)).abs();
        assert!(change < 0.01, "a corner of {change} at {time}");
    }
}

/// The same curve in integers: within one unit of the floats' values.
#[test]
fn a_smooth_curve_of_integers_is_the_same_curve() {
    let config = CurveConfig::default().interpolation(Interpolation::Smooth);
    let points = [(0, 3), (70, -4000), (90, 20_000), (1000, 20_500), (1010, 0)];
    let whole = points.map(|(time, value)| Keyframe::new(micros(time), value));
    let whole = Curve::<i64>::from_keyframes(config.unwrap(), whole).unwrap();
    let config = CurveConfig::default().interpolation(Interpolation::Smooth);
    let real = points.map(|(time, value)| Keyframe::new(micros(time), value as f64));
    let real = Curve::<f64>::from_keyframes(config.unwrap(), real).unwrap();
    for time in -10..1020 {
        let (whole, real) = (
            whole.at(micros(time)).unwrap(),
            real.at(micros(time)).unwrap(),
        );
        assert!(
            (whole as f64 - real).abs() <= 1.0,
            "{whole} and {real} at {time}"
        );
    }
}

#[test]
fn integers_are_rounded_to_the_nearest() {
    let points = [(0, 0), (4, 10)].map(|(time, value)| Keyframe::new(micros(time), value));
    let curve = Curve::<i64>::from_keyframes(CurveConfig::default(), points).unwrap();
    let values: Vec<i64> = (0..=4)
        .map(|time| curve.at(micros(time)).unwrap())
        .collect();
    assert_eq!(values, [0, 3, 5, 8, 10]);
    let wide = [(Time::MIN, i64::MIN), (Time::MAX, i64::MAX)];
    let wide = wide.map(|(time, value)| Keyframe::new(time, value));
    let wide = Curve::<i64>::from_keyframes(CurveConfig::default(), wide).unwrap();
    assert_eq!(wide.at(Time::ZERO), Some(0));
}

/// Fails if `angle` does not subtract a whole turn, or `aligned_with` never changes a sign.
#[test]
fn rotations_angles_and_directions_turn_the_shorter_way_at_a_constant_rate() {
    let spherical = Interpolation::Spherical;
    let angles = [(0, 3.0), (100, -3.0)];
    let angles = angles.map(|(time, value)| Keyframe::new(micros(time), value).with(spherical));
    let angles = Curve::<f64>::from_keyframes(CurveConfig::default(), angles).unwrap();
    let turn = 2.0 * PI - 6.0;
    near(angles.at(micros(25)).unwrap(), 3.0 + turn / 4.0);

    let about_z = |angle: f64| {
        let half = 0.5 * angle;
        [0.0, 0.0, half.sin() as f32, half.cos() as f32]
    };
    let first = Rotation::new(about_z(0.0)).unwrap();
    let last = Rotation::new(about_z(2.0).map(|number| -number)).unwrap();
    let turns = [(0, first), (100, last)];
    let turns = turns.map(|(time, value)| Keyframe::new(micros(time), value).with(spherical));
    let turns = Curve::from_keyframes(CurveConfig::default(), turns).unwrap();
    for time in 0..=100 {
        let expected = about_z(2.0 * time as f64 / 100.0);
        let found = turns.at(micros(time)).unwrap().to_array();
        let sign = if found[3] * expected[3] < 0.0 {
            -1.0
        } else {
            1.0
        };
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found * sign - expected).abs() < 1e-6, "at {time}");
        }
    }

    let directions = [(0, [2.0, 0.0, 0.0]), (90, [0.0, 4.0, 0.0])];
    let directions = directions.map(|(time, value)| Keyframe::new(micros(time), value));
    let config = CurveConfig::default().interpolation(spherical).unwrap();
    let directions = Curve::<[f64; 3]>::from_keyframes(config, directions).unwrap();
    let [x, y, z] = directions.at(micros(30)).unwrap();
    let length = 2.0 + 2.0 / 3.0;
    near(x, length * (PI / 6.0).cos());
    near(y, length * (PI / 6.0).sin());
    near(z, 0.0);
}

/// A speed that rises, stays and falls: Figure 6 of the keyframe protocol's document. Fails if
/// `integrate` leaves the ramp's half out, or `reach` starts each segment from the origin.
#[test]
fn a_velocity_is_integrated_exactly() {
    let seconds = |time: i64| Time::from_millis(1000 * time);
    let velocities = [(0, 0), (2, 6), (5, 6), (6, 0)];
    let velocities = velocities.map(|(time, value)| Keyframe::new(seconds(time), value));
    let config = CurveConfig::default().interpolation(Interpolation::Velocity);
    let config = config.unwrap().origin(100).unwrap();
    let curve = Curve::<i64>::from_keyframes(config, velocities).unwrap();
    for (millis, value) in [
        (-5000, 100),
        (0, 100),
        (1000, 102), // 1.5, rounded
        (2000, 106),
        (3500, 115),
        (5000, 124),
        (5500, 126), // 2.25 more
        (6000, 127),
        (60_000, 127),
    ] {
        assert_eq!(
            curve.at(Time::from_millis(millis)),
            Some(value),
            "at {millis}"
        );
    }
}

/// A million segments of a third of a unit each: sums of rounded values would have a large error.
#[test]
fn integrals_of_integers_do_not_drift() {
    let config = CurveConfig::default().interpolation(Interpolation::Velocity);
    let config = config.unwrap().memory(1 << 20, WhenFull::Refuse).unwrap();
    let mut curve = Curve::<i64>::new(config);
    for index in 0..1_000_000i64 {
        let keyframe = Keyframe::new(micros(333_333 * index), index % 2);
        curve.add(keyframe).unwrap();
    }
    let end = 333_333 * 999_999i64;
    let exact = (end as f64 / 2e6).round() as i64;
    assert_eq!(curve.at(micros(end)), Some(exact));
}

/// Fails if the integral of a velocity does not start at a value keyframe of the same time.
#[test]
fn values_and_velocities_can_be_mixed() {
    let keyframe = |millis, value: f64| Keyframe::new(Time::from_millis(millis), value);
    let velocity = Interpolation::Velocity;
    let curve = [
        keyframe(0, 5.0),
        keyframe(0, 2.0).with(velocity),
        keyframe(1000, 20.0),
        // A value holds up to a velocity keyframe.
        keyframe(2000, -1.0).with(velocity),
        keyframe(3000, 0.0).with(Interpolation::Step),
    ];
    let curve = Curve::from_keyframes(CurveConfig::default(), curve).unwrap();
    let at = |millis| curve.at(Time::from_millis(millis)).unwrap();
    near(at(500), 6.0);
    near(at(999), 6.998);
    near(at(1000), 20.0);
    near(at(1500), 20.0);
    near(at(2500), 19.5);
    near(at(3000), 0.0);
}

#[test]
fn curves_go_on_outside_their_keyframes_as_far_as_they_are_told() {
    let on = Extrapolation::Continue {
        at_most: Span::from_micros(50),
    };
    let config = || {
        CurveConfig::default()
            .before(on)
            .unwrap()
            .after(on)
            .unwrap()
    };
    let curve = Curve::from_keyframes(config(), keyframes(&[(0, 0.0), (100, 10.0)])).unwrap();
    near(curve.at(micros(120)).unwrap(), 12.0);
    near(curve.at(micros(1000)).unwrap(), 15.0);
    near(curve.at(micros(i64::MAX)).unwrap(), 15.0);
    near(curve.at(micros(-20)).unwrap(), -2.0);
    near(curve.at(micros(i64::MIN)).unwrap(), -5.0);

    let config = config().interpolation(Interpolation::Velocity).unwrap();
    let curve = Curve::from_keyframes(config, keyframes(&[(0, 1e6), (100, 2e6)])).unwrap();
    near(curve.at(micros(110)).unwrap(), 150.0 + 20.0);
    near(curve.at(micros(-10)).unwrap(), -10.0);

    let absent = Extrapolation::Absent;
    let config = CurveConfig::default()
        .before(absent)
        .unwrap()
        .after(absent)
        .unwrap();
    let curve = Curve::from_keyframes(config, keyframes(&[(0, 1.0), (100, 2.0)])).unwrap();
    assert_eq!(curve.at(micros(-1)), None);
    assert_eq!(curve.at(micros(0)), Some(1.0));
    assert_eq!(curve.at(micros(100)), Some(2.0));
    assert_eq!(curve.at(micros(101)), None);
}

fn curve(points: &[(i64, f64)]) -> Curve<f64> {
    Curve::from_keyframes(CurveConfig::default(), keyframes(points)).unwrap()
}

fn keyframes(points: &[(i64, f64)]) -> impl Iterator<Item = Keyframe<f64>> {
    let keyframe = |&(time, value)| Keyframe::new(micros(time), value);
    points.iter().map(keyframe)
}

fn micros(time: i64) -> Time {
    Time::from_micros(time)
}

#[track_caller]
fn near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() < 1e-6,
        "{found} instead of {expected}"
    );
}
