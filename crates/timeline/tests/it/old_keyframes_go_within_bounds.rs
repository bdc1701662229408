//! Curves with limited memory: which keyframes are removed, and by how much that changes the curve.

use prescient_timeline::*;
use proptest::prelude::*;

/// Fails if `make_room` drops none, or the newest.
#[test]
fn the_oldest_keyframe_goes_first() {
    let config = CurveConfig::default().memory(8, WhenFull::DropOldest);
    let mut curve = Curve::new(config.unwrap());
    for index in 0..1000 {
        curve
            .add(Keyframe::new(micros(index), index as f64))
            .unwrap();
        assert!(curve.len() <= 8);
    }
    let kept: Vec<f64> = curve.keyframes().map(|keyframe| keyframe.value).collect();
    assert_eq!(
        kept,
        [992.0, 993.0, 994.0, 995.0, 996.0, 997.0, 998.0, 999.0]
    );
    let time = micros(5);
    let late = curve.add(Keyframe::new(time, 5.0));
    assert_eq!(late, Err(EditError::TooOld { time, max: 8 }));

    let config = CurveConfig::default().memory(4, WhenFull::Refuse).unwrap();
    let full = (0..5).map(|index| Keyframe::new(micros(index), 0.0));
    let full = Curve::from_keyframes(config, full);
    assert_eq!(full.unwrap_err(), EditError::Full { max: 4 });
}

/// Fails if `drop_first` does not keep the value that was reached.
#[test]
fn what_is_dropped_leaves_later_look_ups_alone() {
    for interpolation in [
        Interpolation::Step,
        Interpolation::Linear,
        Interpolation::Velocity,
    ] {
        let config = CurveConfig::default().interpolation(interpolation).unwrap();
        let keyframes =
            (0..100).map(|index| Keyframe::new(micros(10 * index), (index * index) as f64));
        let mut curve = Curve::from_keyframes(config, keyframes).unwrap();
        let whole = curve.clone();
        assert_eq!(curve.drop_before(micros(-1)), 0);
        assert_eq!(curve.drop_before(micros(505)), 50);
        for time in 505..1100 {
            assert_eq!(
                curve.at(micros(time)),
                whole.at(micros(time)),
                "{interpolation:?} {time}"
            );
        }
        assert_eq!(curve.drop_before(Time::MAX), 49);
        assert_eq!(curve.at(micros(2000)), whole.at(micros(2000)));
    }
}

/// A walk with many keyframes on its straight parts: most are removed, and every corner is kept.
#[test]
fn straight_parts_are_thinned() {
    let corners = |time: i64| (time % 200 - 100).abs() as f64;
    let keyframes = (0..200).map(|index| Keyframe::new(micros(5 * index), corners(5 * index)));
    let mut curve = Curve::from_keyframes(CurveConfig::default(), keyframes).unwrap();
    let thinned = curve.thin_before(Time::MAX, 1e-9).unwrap();
    assert_eq!(curve.len(), 200 - thinned);
    assert_eq!(curve.len(), 11);
    for time in 0..996 {
        let value = curve.at(micros(time)).unwrap();
        assert!((value - corners(time)).abs() < 1e-6);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// Fails if `thin` starts from the first keyframe again, so that errors add up, or `line_passes`
    /// leaves a keyframe out.
    #[test]
    fn a_full_curve_stays_within_its_error(
        seed in prop::collection::vec((1i64..30, -10i32..=10), 40..400),
        max_error in 0.0..8.0f64,
        stepped in any::<bool>(),
    ) {
        let thin = WhenFull::Thin { max_error };
        let kind = if stepped { Interpolation::Step } else { Interpolation::Linear };
        let base = || CurveConfig::default().interpolation(kind).unwrap();
        let mut bounded = Curve::<f64>::new(base().memory(32, thin).unwrap());
        let mut whole = Curve::<f64>::new(base());
        let mut integers = Curve::<i64>::new(
            CurveConfig::default().interpolation(kind).unwrap().memory(32, thin).unwrap());
        let mut whole_integers =
            Curve::<i64>::new(CurveConfig::default().interpolation(kind).unwrap());
        let (mut time, mut value) = (0, 0);
        for (after, change) in seed {
            time += after;
            value += change;
            let real = Keyframe::new(micros(time), f64::from(value));
            bounded.add(real).unwrap();
            whole.add(real).unwrap();
            let integer = Keyframe::new(micros(time), i64::from(value));
            integers.add(integer).unwrap();
            whole_integers.add(integer).unwrap();
            prop_assert!(bounded.len() <= 32 && integers.len() <= 32);
        }
        for time in bounded.first_time().unwrap().as_micros()..=time {
            let off = bounded.at(micros(time)).unwrap() - whole.at(micros(time)).unwrap();
            prop_assert!(off.abs() <= max_error + 1e-9, "{} off at {}", off, time);
        }
        for time in integers.first_time().unwrap().as_micros()..=time {
            let (found, expected) = (integers.at(micros(time)), whole_integers.at(micros(time)));
            let off = found.unwrap().abs_diff(expected.unwrap());
            prop_assert!(off as f64 <= max_error, "{} off at {}", off, time);
        }
    }
}

fn micros(time: i64) -> Time {
    Time::from_micros(time)
}
