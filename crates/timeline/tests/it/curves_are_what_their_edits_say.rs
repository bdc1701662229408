//! Any edits in any order, compared with a list that is sorted after each: the same keyframes, the same
//! values at all times, with and without a cursor, and the same errors.

use prescient_timeline::*;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Fails if `move_range` sorts equal times in another order, `remove` takes one only, or the search
    /// from a cursor stops a step early.
    #[test]
    fn a_curve_is_a_sorted_list(edits in prop::collection::vec(edit(), 1..60)) {
        let config = || CurveConfig::default().max_at_one_time(3).unwrap();
        let mut curve = Curve::new(config());
        let mut list = List::default();
        let mut cursor = Cursor::default();
        for edit in edits {
            prop_assert_eq!(curve.apply(&edit), list.apply(&edit), "{:?}", edit);
            let keyframes: Vec<_> = curve.keyframes().collect();
            prop_assert_eq!(&keyframes, &list.0);
            for time in (-5..70).rev().chain(-5..70) {
                let time = Time::from_micros(time);
                let expected = list.at(time);
                prop_assert_eq!(curve.at(time), expected, "at {}", time);
                prop_assert_eq!(curve.at_cursor(&mut cursor, time), expected, "near {}", time);
            }
        }
        let again = Curve::from_keyframes(config(), list.0.iter().copied()).unwrap();
        prop_assert_eq!(curve, again);
    }

    /// Velocities, whose look-ups depend on all keyframes before, compared with a curve that is built at
    /// once. Fails if `integrate_from` is left out of an edit.
    #[test]
    fn velocities_do_not_depend_on_the_order_of_edits(
        edits in prop::collection::vec(edit(), 1..60),
        probes in prop::collection::vec(-5i64..70, 8),
    ) {
        let config = || CurveConfig::default().interpolation(Interpolation::Velocity).unwrap();
        let mut curve = Curve::new(config());
        for edit in edits {
            let _ = curve.apply(&edit);
            let again = Curve::from_keyframes(config(), curve.keyframes()).unwrap();
            for &probe in &probes {
                let time = Time::from_micros(probe);
                prop_assert_eq!(curve.at(time), again.at(time));
            }
        }
    }

    /// For any times, values and interpolations, look-ups are finite and nothing overflows.
    #[test]
    fn look_ups_are_finite(
        wild in prop::collection::vec((wild_time(), -1e100..1e100f64, kind(), any::<i64>()), 1..12),
        probes in prop::collection::vec(any::<i64>(), 8),
        at_most in 0..i64::MAX,
    ) {
        let on = Extrapolation::Continue { at_most: Span::from_micros(at_most) };
        let mut real = Curve::new(CurveConfig::default().before(on).unwrap().after(on).unwrap());
        let mut small = Curve::new(CurveConfig::default().before(on).unwrap().after(on).unwrap());
        let mut plane = Curve::new(CurveConfig::default().before(on).unwrap().after(on).unwrap());
        let mut whole = Curve::new(CurveConfig::default().before(on).unwrap().after(on).unwrap());
        for (time, value, kind, number) in wild {
            let time = Time::from_micros(time);
            let _ = real.add(Keyframe::new(time, value).with(kind));
            let _ = small.add(Keyframe::new(time, value as f32).with(kind));
            let _ = plane.add(Keyframe::new(time, [value, number as f64]).with(kind));
            let _ = whole.add(Keyframe::new(time, number).with(kind));
        }
        for probe in probes {
            let time = Time::from_micros(probe);
            prop_assert!(real.at(time).is_none_or(f64::is_finite));
            prop_assert!(small.at(time).is_none_or(f32::is_finite));
            prop_assert!(plane.at(time).is_none_or(|value| value.iter().all(|number| number.is_finite())));
            whole.at(time);
        }
    }
}

/// The reference: a sorted list.
#[derive(Default)]
struct List(Vec<Keyframe<f64>>);

impl List {
    fn apply(&mut self, edit: &Edit<f64>) -> Result<(), EditError> {
        let mut next = self.0.clone();
        match *edit {
            Edit::Add(keyframe) => {
                let same = next.iter().filter(|other| other.time == keyframe.time);
                let (crowd, duplicate) = (
                    same.clone().count(),
                    same.clone().any(|other| *other == keyframe),
                );
                if crowd >= 3 {
                    return Err(EditError::TooManyAtOneTime {
                        time: keyframe.time,
                        max: 3,
                    });
                }
                if duplicate {
                    return Err(EditError::Duplicate {
                        time: keyframe.time,
                    });
                }
                next.push(keyframe);
            }
            Edit::Remove { time } => {
                next.retain(|keyframe| keyframe.time != time);
                if next.len() == self.0.len() {
                    return Err(EditError::NoKeyframe { time });
                }
            }
            Edit::Move { time, by } => {
                let found = next.iter_mut().find(|keyframe| keyframe.time == time);
                let found = found.ok_or(EditError::NoKeyframe { time })?;
                found.time = found.time + by;
            }
            Edit::MoveWithin { from, to, by } => {
                let within = |keyframe: &&mut Keyframe<f64>| (from..=to).contains(&keyframe.time);
                let mut found = 0;
                for keyframe in next.iter_mut().filter(within) {
                    keyframe.time = keyframe.time + by;
                    found += 1;
                }
                if found == 0 {
                    return Err(EditError::NoKeyframe { time: from });
                }
            }
            Edit::Clear => next.clear(),
        }
        next.sort_by_key(|keyframe| keyframe.time);
        if let Some(crowd) = next.windows(4).find(|few| few[0].time == few[3].time) {
            return Err(EditError::TooManyAtOneTime {
                time: crowd[0].time,
                max: 3,
            });
        }
        for (index, keyframe) in next.iter().enumerate() {
            if next[..index].contains(keyframe) {
                let time = keyframe.time;
                return Err(EditError::Duplicate { time });
            }
        }
        self.0 = next;
        Ok(())
    }

    fn at(&self, time: Time) -> Option<f64> {
        let first = self.0.first()?;
        if time < first.time {
            return Some(first.value);
        }
        let index = self.0.iter().rposition(|keyframe| keyframe.time <= time)?;
        let from = self.0[index];
        let Some(to) = self.0.get(index + 1) else {
            return Some(from.value);
        };
        if from.interpolation == Some(Interpolation::Step) {
            return Some(from.value);
        }
        let elapsed = time.since(from.time).as_micros() as f64;
        let length = to.time.since(from.time).as_micros() as f64;
        Some(from.value + (to.value - from.value) * (elapsed / length))
    }
}

fn edit() -> impl Strategy<Value = Edit<f64>> {
    let time = || (0i64..64).prop_map(Time::from_micros);
    let by = || (-64i64..64).prop_map(Span::from_micros);
    let own = prop::option::of(prop_oneof![
        Just(Interpolation::Step),
        Just(Interpolation::Linear)
    ]);
    let add = (time(), -4i32..4, own).prop_map(|(time, value, interpolation)| {
        let value = f64::from(value);
        Edit::Add(Keyframe {
            time,
            value,
            interpolation,
        })
    });
    prop_oneof![
        6 => add,
        2 => time().prop_map(|time| Edit::Remove { time }),
        3 => (time(), by()).prop_map(|(time, by)| Edit::Move { time, by }),
        2 => (time(), time(), by()).prop_map(|(from, to, by)| Edit::MoveWithin { from, to, by }),
        1 => Just(Edit::Clear),
    ]
}

fn kind() -> impl Strategy<Value = Interpolation> {
    prop_oneof![
        Just(Interpolation::Step),
        Just(Interpolation::Linear),
        Just(Interpolation::Smooth),
        Just(Interpolation::Spherical),
        Just(Interpolation::Velocity),
    ]
}

fn wild_time() -> impl Strategy<Value = i64> {
    let limit = Time::MAX.as_micros();
    prop_oneof![-limit..=limit, -3i64..3]
}
