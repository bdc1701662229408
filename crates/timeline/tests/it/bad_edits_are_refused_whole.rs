//! Invalid edits and settings return a typed error and change nothing.

use prescient_timeline::*;

#[test]
fn what_is_no_number_is_refused() {
    let mut curve = some();
    for (value, error) in [
        (f64::NAN, ValueError::NotFinite),
        (f64::INFINITY, ValueError::NotFinite),
        (f64::NEG_INFINITY, ValueError::NotFinite),
        (1e101, ValueError::TooLarge),
    ] {
        let keyframe = Keyframe::new(micros(5), value);
        assert_eq!(curve.add(keyframe), Err(EditError::Value(error)));
    }
    let mut vectors = Curve::new(CurveConfig::default());
    let keyframe = Keyframe::new(micros(5), [0.0, f32::NAN, 0.0]);
    assert_eq!(
        vectors.add(keyframe),
        Err(EditError::Value(ValueError::NotFinite))
    );
    for quaternion in [[0.0; 4], [f32::NAN, 0.0, 0.0, 1.0], [f32::INFINITY; 4]] {
        assert_eq!(Rotation::new(quaternion), Err(RotationError));
    }
    assert_eq!(curve, some());
}

#[test]
fn times_out_of_range_are_refused() {
    let mut curve = some();
    for time in [
        Time::MAX + Span::from_micros(1),
        Time::from_micros(i64::MIN),
    ] {
        let refused = Err(EditError::TimeOutOfRange { time });
        assert_eq!(curve.add(Keyframe::new(time, 0.0)), refused);
    }
    let far = Span::MAX;
    let time = Time::from_micros(i64::MAX);
    assert_eq!(
        curve.move_one(micros(10), far),
        Err(EditError::TimeOutOfRange { time })
    );
    let moved = curve.move_within(micros(0), micros(100), far);
    assert_eq!(moved, Err(EditError::TimeOutOfRange { time }));
    assert_eq!(curve, some());
}

#[test]
fn what_is_not_there_cannot_be_changed() {
    let mut curve = some();
    let time = micros(11);
    assert_eq!(curve.remove(time), Err(EditError::NoKeyframe { time }));
    assert_eq!(
        curve.move_one(time, Span::ZERO),
        Err(EditError::NoKeyframe { time })
    );
    let moved = curve.move_within(time, micros(19), Span::ZERO);
    assert_eq!(moved, Err(EditError::NoKeyframe { time }));
    // The interval is reversed.
    let moved = curve.move_within(micros(20), micros(10), Span::ZERO);
    assert_eq!(moved, Err(EditError::NoKeyframe { time: micros(20) }));
    assert_eq!(curve, some());
}

#[test]
fn duplicates_and_crowds_are_refused() {
    let mut curve = some();
    let time = micros(10);
    assert_eq!(
        curve.add(Keyframe::new(time, 1.0)),
        Err(EditError::Duplicate { time })
    );
    let step = Keyframe::new(time, 1.0).with(Interpolation::Step);
    for keyframe in [step, Keyframe::new(time, 2.0), Keyframe::new(time, 3.0)] {
        curve.add(keyframe).unwrap();
    }
    let before = curve.clone();
    let crowd = Err(EditError::TooManyAtOneTime { time, max: 4 });
    assert_eq!(curve.add(Keyframe::new(time, 4.0)), crowd);
    assert_eq!(curve.move_one(micros(20), Span::from_micros(-10)), crowd);
    assert_eq!(curve, before);
    let config = CurveConfig::default().allow_duplicates(true);
    let twice = [Keyframe::new(time, 1.0), Keyframe::new(time, 1.0)];
    assert_eq!(Curve::from_keyframes(config, twice).unwrap().len(), 2);
}

#[test]
fn lists_out_of_order_are_refused() {
    let keyframes = [(10, 1.0), (20, 2.0), (19, 3.0)];
    let keyframes = keyframes.map(|(time, value)| Keyframe::new(micros(time), value));
    let made = Curve::from_keyframes(CurveConfig::default(), keyframes);
    assert_eq!(made.unwrap_err(), EditError::Unordered { time: micros(19) });
}

#[test]
fn types_refuse_what_they_cannot_interpolate() {
    let mut whole = Curve::<i64>::new(CurveConfig::default());
    let interpolation = Interpolation::Spherical;
    let added = whole.add(Keyframe::new(Time::ZERO, 1).with(interpolation));
    assert_eq!(added, Err(EditError::Interpolation { interpolation }));
    let velocity = Interpolation::Velocity;
    let config = CurveConfig::<Rotation>::default().interpolation(velocity);
    assert_eq!(config, Err(CurveConfigError::Interpolation(velocity)));
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let config = CurveConfig::<f64>::default;
    let back = Extrapolation::Continue {
        at_most: Span::from_micros(-1),
    };
    assert_eq!(config().before(back), Err(CurveConfigError::Negative));
    assert_eq!(config().after(back), Err(CurveConfigError::Negative));
    let nan = CurveConfigError::Value(ValueError::NotFinite);
    assert_eq!(config().origin(f64::NAN), Err(nan));
    let small = CurveConfigError::TooSmall { min: 4 };
    assert_eq!(config().memory(3, WhenFull::Refuse), Err(small));
    for max_error in [-1.0, f64::NAN, f64::INFINITY] {
        let thin = WhenFull::Thin { max_error };
        assert_eq!(config().memory(100, thin), Err(CurveConfigError::Negative));
        assert_eq!(
            some().thin_before(micros(0), max_error),
            Err(CurveConfigError::Negative)
        );
    }
    let thin = WhenFull::Thin { max_error: 1.0 };
    let config = CurveConfig::<Rotation>::default().memory(100, thin);
    assert_eq!(config, Err(CurveConfigError::CannotThin));
}

/// Fails if `check_time` checks the edit's own time instead of the keyframe's new one.
#[test]
fn timelines_refuse_the_far_future_and_what_does_not_fit() {
    let second = Span::from_secs(1);
    let config = TimelineConfig::default().max_ahead(second);
    let mut timeline = Timeline::new(config.max_properties(2).max_keyframes(3));
    timeline.set_now(micros(500));
    let latest = micros(500) + second;
    let time = latest + Span::from_micros(1);
    let ahead = Err(EditError::TooFarAhead { time, latest });
    let operation = |property, edit| Operation {
        property: PropertyId(property),
        edit,
    };
    let add = |property, time| operation(property, Edit::Add(Keyframe::new(time, 1.0)));
    assert_eq!(timeline.apply(&add(1, time)), ahead);
    assert_eq!(timeline.curve(PropertyId(1)), None);
    timeline.apply(&add(1, latest)).unwrap();
    let by = Span::from_micros(1);
    assert_eq!(
        timeline.apply(&operation(1, Edit::Move { time: latest, by })),
        ahead
    );
    let within = Edit::MoveWithin {
        from: Time::ZERO,
        to: Time::MAX,
        by,
    };
    assert_eq!(timeline.apply(&operation(1, within)), ahead);

    timeline.apply(&add(2, latest)).unwrap();
    let many = Err(EditError::TooManyProperties { max: 2 });
    assert_eq!(timeline.apply(&add(3, latest)), many);
    timeline.apply(&add(2, micros(0))).unwrap();
    assert_eq!(
        timeline.apply(&add(2, micros(1))),
        Err(EditError::Full { max: 3 })
    );
    assert_eq!(timeline.keyframe_count(), 3);
    assert!(timeline.forget(PropertyId(2)));
    assert_eq!(timeline.keyframe_count(), 1);
    timeline.apply(&add(3, latest)).unwrap();
}

fn some() -> Curve<f64> {
    let keyframes = [(10, 1.0), (20, 2.0)];
    let keyframes = keyframes.map(|(time, value)| Keyframe::new(micros(time), value));
    Curve::from_keyframes(CurveConfig::default(), keyframes).unwrap()
}

fn micros(time: i64) -> Time {
    Time::from_micros(time)
}
