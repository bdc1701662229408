//! Keyframes from samples: the error bound holds at every sample, the look-ahead is bounded, and the number
//! of keyframes is about that of the path's corners.

use prescient_timeline::*;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Fails if the tolerance of a component is the whole error, `narrowed` skips a gate, or `crossing`
    /// returns a point outside the cone and `bridge` does not check it.
    #[test]
    fn every_sample_is_within_the_error(
        samples in samples(),
        max_error in prop_oneof![Just(0.0), 0.001..50.0f64],
        look_ahead in 2usize..40,
    ) {
        let check_real = |of: fn([f64; 3]) -> f64| {
            check(&samples, max_error, look_ahead, of, |a, b| (a - b).abs())
        };
        check_real(|[x, _, _]| x)?;
        check_real(|[x, y, _]| 1e9 * x + y)?;
        check(&samples, max_error, look_ahead, |[x, _, _]| x as f32, |a, b| f64::from(a - b).abs())?;
        check(&samples, max_error, look_ahead, |position| position, length)?;
        let small = |position: [f64; 3]| position.map(|number| number as f32);
        check(&samples, max_error, look_ahead, small, |a, b| {
            length(a.map(f64::from), b.map(f64::from))
        })?;
        let whole = |[x, _, _]: [f64; 3]| (10.0 * x) as i64;
        check(&samples, max_error.floor(), look_ahead, whole, |a, b| a.abs_diff(b) as f64)?;
        let turned = |[x, y, z]: [f64; 3]| {
            Rotation::new([x as f32, y as f32, z as f32, 1.0]).unwrap()
        };
        check(&samples, max_error / 20.0, look_ahead, turned, |a, b| {
            let (a, b) = (a.to_array().map(f64::from), b.to_array().map(f64::from));
            let (apart, together) = (length(a, b), length(a, b.map(|number| -number)));
            4.0 * apart.min(together).atan2(apart.max(together))
        })?;
    }
}

/// A unit that walks straight and turns between samples: one keyframe per corner, and a few more because of
/// the look-ahead. Fails if `crossing` always returns `None`, which costs two keyframes per corner.
#[test]
fn a_path_costs_a_keyframe_for_each_corner() {
    let corners: Vec<(i64, [f64; 2])> = (0..200)
        .map(|index| {
            let time = 2_870_003 * index;
            let angle = (index * index) as f64;
            let position = [20.0 * angle.sin(), 20.0 * angle.cos()];
            (time, position)
        })
        .collect();
    let truth = corners
        .iter()
        .map(|&(time, position)| Keyframe::new(Time::from_micros(time), position));
    let truth = Curve::from_keyframes(CurveConfig::default(), truth).unwrap();
    let mut fitter = Fitter::new(0.01, 100).unwrap();
    let mut fitted = Curve::new(CurveConfig::default());
    let end = corners[199].0;
    for tick in 0..=end / 100_000 {
        let time = Time::from_micros(100_000 * tick);
        fitter.push(time, truth.at(time).unwrap()).unwrap();
    }
    fitter.finish();
    while let Some(keyframe) = fitter.poll_keyframe() {
        fitted.add(keyframe).unwrap();
    }
    assert!(
        fitted.len() <= 220,
        "{} keyframes for 200 corners",
        fitted.len()
    );
    // Also between samples, where the corners are.
    let mut worst: f64 = 0.0;
    for step in 0..(end - 100_000) / 10_007 {
        let time = Time::from_micros(10_007 * step);
        let off = length(fitted.at(time).unwrap(), truth.at(time).unwrap());
        if off > 0.05 {
            println!("{time} {off}");
        }
        worst = worst.max(off);
    }
    assert!(worst < 0.05, "{worst}");
}

/// Fails if `hold` is not called.
#[test]
fn what_rests_costs_nothing() {
    let mut fitter = Fitter::new(0.5, 8).unwrap();
    let mut keyframes = Vec::new();
    for tick in 0..1000 {
        let value = if tick < 900 {
            3.0
        } else {
            3.0 + (tick - 900) as f64
        };
        fitter.push(Time::from_millis(10 * tick), value).unwrap();
        keyframes.extend(std::iter::from_fn(|| fitter.poll_keyframe()));
        if tick == 899 {
            assert_eq!(keyframes.len(), 1);
        }
    }
    assert!(keyframes[1].time >= Time::from_millis(8900));
    assert!(keyframes[1].time <= Time::from_millis(9000));
}

#[test]
fn bad_samples_and_settings_are_refused() {
    for max_error in [-0.1, f64::NAN, f64::INFINITY] {
        assert_eq!(
            Fitter::<f64>::new(max_error, 10).unwrap_err(),
            FitError::MaxError
        );
    }
    for look_ahead in [0, 1, MAX_LOOK_AHEAD + 1] {
        assert_eq!(
            Fitter::<f64>::new(1.0, look_ahead).unwrap_err(),
            FitError::LookAhead
        );
    }
    let mut fitter = Fitter::new(1.0, 10).unwrap();
    let time = Time::from_micros(5);
    fitter.push(time, 0.0).unwrap();
    assert_eq!(fitter.push(time, 1.0), Err(FitError::Unordered { time }));
    let late = Time::from_micros(i64::MAX);
    assert_eq!(
        fitter.push(late, 1.0),
        Err(FitError::TimeOutOfRange { time: late })
    );
    let next = Time::from_micros(6);
    let refused = Err(FitError::Value(ValueError::NotFinite));
    assert_eq!(fitter.push(next, f64::NAN), refused);
    fitter.push(next, 100.0).unwrap();
    fitter.finish();
    let found: Vec<_> = std::iter::from_fn(|| fitter.poll_keyframe()).collect();
    assert_eq!(found.len(), 2);
}

/// Fits, and checks the curve of the keyframes so far after each sample.
fn check<V: Value>(
    samples: &[(i64, [f64; 3])],
    max_error: f64,
    look_ahead: usize,
    of: impl Fn([f64; 3]) -> V,
    distance: impl Fn(V, V) -> f64,
) -> Result<(), TestCaseError> {
    let mut fitter = Fitter::new(max_error, look_ahead).unwrap();
    let mut curve = Curve::new(CurveConfig::default());
    let mut seen: Vec<(Time, V)> = Vec::new();
    let within = |found: Option<V>, sample: V| -> Result<(), TestCaseError> {
        let found = found.expect("there are keyframes");
        let off = distance(found, sample);
        prop_assert!(
            off <= max_error + 1e-6,
            "{:?} instead of {:?}: {} off",
            found,
            sample,
            off
        );
        Ok(())
    };
    for (index, &(time, position)) in samples.iter().enumerate() {
        let sample = (Time::from_micros(time), of(position));
        fitter.push(sample.0, sample.1).unwrap();
        seen.push(sample);
        if index + 1 == samples.len() {
            fitter.finish();
        }
        while let Some(keyframe) = fitter.poll_keyframe() {
            curve.add(keyframe).unwrap();
        }
        // The bound holds for all samples but the newest.
        let finished = index + 1 == samples.len();
        let open = if finished { 0 } else { look_ahead - 1 };
        for &(time, value) in
            &seen[seen.len().saturating_sub(open + 3)..seen.len().saturating_sub(open)]
        {
            within(curve.at(time), value)?;
        }
    }
    for (time, value) in seen {
        within(curve.at(time), value)?;
    }
    Ok(())
}

fn length<const N: usize>(one: [f64; N], other: [f64; N]) -> f64 {
    let squares = one.into_iter().zip(other).map(|(a, b)| (a - b) * (a - b));
    squares.sum::<f64>().sqrt()
}

/// A walk of three numbers: straight parts, jumps, rests and noise, at uneven times.
fn samples() -> impl Strategy<Value = Vec<(i64, [f64; 3])>> {
    let part = (
        1usize..30,
        prop_oneof![Just([0.0; 3]), [-20.0..20.0f64, -20.0..20.0, -20.0..20.0]],
        prop_oneof![3 => Just(0.0), 1 => -300.0..300.0f64],
        prop_oneof![Just(0.0), 0.0..5.0f64],
        any::<u64>(),
    );
    prop::collection::vec(part, 1..12).prop_map(|parts| {
        let (mut time, mut position) = (0, [0.0; 3]);
        let mut samples = Vec::new();
        for (count, velocity, jump, noise, seed) in parts {
            position[0] += jump;
            let mut state = seed | 1;
            for _ in 0..count {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                time += 1 + (state >> 40) as i64 % 50_000;
                let random = (state >> 33) as f64 / (1u64 << 31) as f64 - 0.5;
                for (position, velocity) in position.iter_mut().zip(velocity) {
                    *position += 0.1 * velocity;
                }
                samples.push((time, position.map(|number| number + noise * random)));
            }
        }
        samples
    })
}
