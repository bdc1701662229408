//! Waypoints ahead of time, and corrections: the past is unchanged, the future is as planned, and keyframes
//! that remain cost no edit.

use prescient_timeline::*;
use proptest::prelude::*;

/// Fails if `delay` is not tried.
#[test]
fn a_delay_costs_one_move() {
    let mut curve = curve(&[(0, 0.0), (100, 10.0), (200, 30.0), (300, 0.0)]);
    let before = curve.clone();
    let future = keyframes(&[(140, 5.0), (190, 10.0), (290, 30.0), (390, 0.0)]);
    let edits = plan(&curve, micros(50), &future).unwrap();
    assert_eq!(
        edits,
        [
            Edit::Add(Keyframe::new(micros(50), 5.0)),
            Edit::MoveWithin {
                from: micros(100),
                to: micros(300),
                by: Span::from_micros(90),
            },
            Edit::Add(Keyframe::new(micros(140), 5.0)),
        ]
    );
    for edit in &edits {
        curve.apply(edit).unwrap();
    }
    for time in 0..=50 {
        assert_eq!(curve.at(micros(time)), before.at(micros(time)));
    }
    assert_eq!(curve.at(micros(100)), Some(5.0));
    assert_eq!(curve.at(micros(240)), Some(20.0));
}

#[test]
fn what_stays_costs_nothing() {
    let curve = curve(&[(0, 0.0), (100, 10.0), (200, 30.0), (300, 0.0)]);
    let future = keyframes(&[(100, 10.0), (200, 30.0), (300, 0.0)]);
    assert_eq!(plan(&curve, micros(50), &future), Ok(vec![]));
    let future = keyframes(&[(100, 10.0), (250, 30.0), (300, 0.0), (400, 1.0)]);
    let edits = plan(&curve, micros(50), &future).unwrap();
    let [gone, new, last] = [200, 250, 400].map(micros);
    let expected = [
        Edit::Remove { time: gone },
        Edit::Add(Keyframe::new(new, 30.0)),
        Edit::Add(Keyframe::new(last, 1.0)),
    ];
    assert_eq!(edits, expected);
}

#[test]
fn plans_that_cannot_be_are_refused() {
    let curve = curve(&[(0, 0.0), (100, 10.0)]);
    let time = micros(50);
    let refused = plan(&curve, time, &keyframes(&[(50, 1.0)]));
    assert_eq!(refused, Err(PlanError::NotInTheFuture { time }));
    let time = micros(69);
    let refused = plan(&curve, micros(50), &keyframes(&[(70, 1.0), (69, 1.0)]));
    assert_eq!(refused, Err(PlanError::Unordered { time }));
    let refused = plan(&curve, micros(50), &keyframes(&[(70, f64::NAN)]));
    let error = EditError::Value(ValueError::NotFinite);
    assert_eq!(refused, Err(PlanError::Edit(error)));
}

/// Each case is a curve, its extrapolation before and after, whether its keyframes are velocities, and
/// whether a plan from 50 can leave the past unchanged. Fails if any arm of `cut_before_first` or
/// `cut_value_after_last` returns what another does.
#[test]
fn plans_that_would_change_the_past_are_refused() {
    use Extrapolation::{Absent, Continue, Hold};
    let until = |micros| Continue {
        at_most: Span::from_micros(micros),
    };
    let moving: &[(i64, f64)] = &[(0, 0.0), (10, 1.0)];
    let resting: &[(i64, f64)] = &[(0, 1.0), (10, 0.0)];
    let later: &[(i64, f64)] = &[(60, 1.0), (70, 2.0)];
    let cases = [
        // The curve ends before 50.
        (moving, Hold, Hold, false, true),
        (moving, Hold, Absent, false, false),
        (moving, Hold, until(40), false, true),
        (moving, Hold, until(39), false, false),
        (moving, Hold, Hold, true, false),
        (resting, Hold, Hold, true, true),
        (moving, Hold, until(40), true, true),
        (moving, Hold, until(39), true, false),
        // The curve begins after 50.
        (later, Hold, Hold, false, true),
        (later, Absent, Hold, false, true),
        (later, until(40), Hold, false, false),
        (&[], until(40), Hold, false, true),
    ];
    for (index, (points, before, after, velocities, possible)) in cases.into_iter().enumerate() {
        let mut config = CurveConfig::default().before(before).unwrap();
        config = config.after(after).unwrap();
        if velocities {
            config = config.interpolation(Interpolation::Velocity).unwrap();
        }
        let mut curve = Curve::from_keyframes(config, keyframes(points)).unwrap();
        let planned = plan(&curve, micros(50), &keyframes(&[(80, 7.0)]));
        if !possible {
            let refused = Err(PlanError::CannotHold { time: micros(50) });
            assert_eq!(planned, refused, "case {index}");
            continue;
        }
        let past = curve.clone();
        for edit in planned.unwrap() {
            curve.apply(&edit).unwrap();
        }
        for time in (-100..=50).filter(|_| !past.is_empty()) {
            let values = [&curve, &past].map(|curve| curve.at(micros(time)));
            let same = match values {
                [Some(found), Some(expected)] => (found - expected).abs() < 1e-9,
                values => values == [None, None],
            };
            assert!(same, "case {index} at {time}: {values:?}");
        }
    }
}

/// Before its first keyframe the curve continues the line between its first two: a plan that keeps the first
/// and changes the second changes the past.
///
/// Fails if `hold` compares the first keyframes only.
#[test]
fn plans_that_would_turn_the_line_into_the_first_keyframe_are_refused() {
    let before = Extrapolation::Continue {
        at_most: Span::from_micros(40),
    };
    let config = CurveConfig::default().before(before).unwrap();
    let curve = Curve::from_keyframes(config, keyframes(&[(60, 1.0), (70, 2.0)])).unwrap();
    let turned = plan(&curve, micros(50), &keyframes(&[(60, 1.0), (70, 7.0)]));
    assert_eq!(turned, Err(PlanError::CannotHold { time: micros(50) }));
    let longer = keyframes(&[(60, 1.0), (70, 2.0), (80, 7.0)]);
    let edits = plan(&curve, micros(50), &longer).unwrap();
    assert_eq!(edits, [Edit::Add(longer[2])]);
}

/// A heading that turns on after its last keyframe, by two and by four radians.
///
/// Fails if `is_turn_kept` is always true: a segment of four radians takes the shorter way.
#[test]
fn plans_that_would_turn_the_other_way_are_refused() {
    let after = Extrapolation::Continue {
        at_most: Span::from_micros(1000),
    };
    let config = CurveConfig::default().after(after).unwrap();
    let config = config.interpolation(Interpolation::Spherical).unwrap();
    let mut curve = Curve::from_keyframes(config, keyframes(&[(0, 0.0), (10, 2.0)])).unwrap();
    let future = keyframes(&[(80, 7.0)]);
    let refused = plan(&curve, micros(30), &future);
    assert_eq!(refused, Err(PlanError::CannotHold { time: micros(30) }));
    let past = curve.clone();
    for edit in plan(&curve, micros(20), &future).unwrap() {
        curve.apply(&edit).unwrap();
    }
    for time in 0..=20 {
        let [found, expected] = [&curve, &past].map(|curve| curve.at(micros(time)).unwrap());
        assert!((found - expected).abs() < 1e-9, "at {time}: {found}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Fails if `hold` is left out, or `replace` compares times only.
    #[test]
    fn the_past_stays_and_the_future_is_what_was_planned(
        after in prop_oneof![Just(0i64), Just(10), Just(1000)],
        kind in prop_oneof![Just(Interpolation::Step), Just(Interpolation::Linear), Just(Interpolation::Velocity)],
        present in points(0..100),
        future in points(51..100),
        rest in 0usize..8,
        delay in 0i64..20,
    ) {
        // A continuation of 0 is a hold.
        let after = Extrapolation::Continue { at_most: Span::from_micros(after) };
        let config = CurveConfig::default().after(after).unwrap().interpolation(kind).unwrap();
        let mut curve = Curve::from_keyframes(config, keyframes(&present)).unwrap();
        let from = micros(50);
        // Often only a delay of the present keyframes, or of some of them.
        let later = present.iter().filter(|(time, _)| *time > 50);
        let mut future = if rest > 0 {
            later.skip(rest - 1).map(|&(time, value)| (time + delay, value)).collect()
        } else {
            future
        };
        future.sort_by_key(|&(time, _)| time);
        let planned = plan(&curve, from, &keyframes(&future));
        let refused = Err(PlanError::CannotHold { time: from });
        prop_assume!(planned != refused);
        let edits = planned.unwrap();
        prop_assert!(edits.len() <= 1 + present.len() + future.len());
        let before = curve.clone();
        for edit in &edits {
            curve.apply(edit).unwrap();
        }
        for time in -10..=50 {
            // Without keyframes there was no value.
            let Some(expected) = before.at(micros(time)) else { continue };
            let found = curve.at(micros(time)).unwrap_or(f64::NAN);
            prop_assert!((found - expected).abs() < 1e-9, "{} for {} at {}", found, expected, time);
        }
        let after: Vec<_> = curve.keyframes_from(micros(51)).collect();
        prop_assert_eq!(after, keyframes(&future));
    }
}

fn points(times: std::ops::Range<i64>) -> impl Strategy<Value = Vec<(i64, f64)>> {
    let value = (-5i32..5).prop_map(f64::from);
    let map = prop::collection::btree_map(times, value, 0..12);
    map.prop_map(|points| points.into_iter().collect())
}

fn curve(points: &[(i64, f64)]) -> Curve<f64> {
    Curve::from_keyframes(CurveConfig::default(), keyframes(points)).unwrap()
}

fn keyframes(points: &[(i64, f64)]) -> Vec<Keyframe<f64>> {
    let keyframe = |&(time, value): &(i64, f64)| Keyframe::new(micros(time), value);
    points.iter().map(keyframe).collect()
}

fn micros(time: i64) -> Time {
    Time::from_micros(time)
}
