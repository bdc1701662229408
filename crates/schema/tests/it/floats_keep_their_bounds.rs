//! Steps, exact floats and custom floats keep their documented bounds.

use prescient_schema::{
    CustomFloat, Declaration, Field, FieldKind, FloatFormat, Level, Priority, State, Step,
    exact_from_f32, exact_from_f64, exact_to_f32, exact_to_f64,
};
use proptest::prelude::*;

fn format() -> impl Strategy<Value = FloatFormat> {
    let parts = (1..=52u8, 1..=11u8, -1100..=1100i16);
    parts.prop_filter_map("beyond double", |(m, e, b)| FloatFormat::new(m, e, b))
}

/// A format, and three others that are subsets of it.
fn levels() -> impl Strategy<Value = CustomFloat> {
    let choice = || any::<(u8, u8, u16)>();
    (format(), [choice(), choice(), choice()]).prop_map(|(fine, choices)| {
        let [a, b, c] = choices.map(|choice| coarser(fine, choice));
        CustomFloat::new([fine, a, b, c]).unwrap()
    })
}

fn coarser(fine: FloatFormat, (mantissa, exponent, bias): (u8, u8, u16)) -> FloatFormat {
    let mantissa = 1 + mantissa % fine.mantissa();
    let exponent = 1 + exponent % fine.exponent();
    let min = (1 << exponent) - (1 << fine.exponent()) + fine.bias();
    let max = fine.bias() + i16::from(fine.mantissa()) - i16::from(mantissa);
    let bias = min + (bias % (max - min + 1) as u16) as i16;
    FloatFormat::new(mantissa, exponent, bias).unwrap()
}

fn level() -> impl Strategy<Value = Level> {
    (0..4u8).prop_map(|level| Level::new(level).unwrap())
}

fn anything() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        -1e6..1e6f64,
        -1.0..1.0f64,
        (any::<f32>()).prop_map(f64::from),
    ]
}

proptest! {
    #[test]
    fn a_step_is_off_by_at_most_half(value in -1e6..1e6f64, exponent in -6..3i32) {
        let step = Step::from_f64(10f64.powi(exponent)).unwrap();
        let count = step.count(value, 64);
        prop_assert!((step.value(count) - value).abs() <= step.as_f64() * 0.500_001);
        prop_assert_eq!(step.count(step.value(count), 64), count);
    }

    #[test]
    fn steps_keep_order(a in anything(), b in anything()) {
        let step = Step::parse("0.01").unwrap();
        if a <= b {
            prop_assert!(step.count(a, 32) <= step.count(b, 32));
        }
    }

    #[test]
    fn exact_floats_keep_bits_and_order(a in any::<u64>(), b in any::<u64>()) {
        let (a, b) = (f64::from_bits(a), f64::from_bits(b));
        prop_assert_eq!(exact_to_f64(exact_from_f64(a)).to_bits(), a.to_bits());
        prop_assert_eq!(exact_from_f64(a).cmp(&exact_from_f64(b)), a.total_cmp(&b));
        let (a, b) = (f32::from_bits(a.to_bits() as u32), f32::from_bits(b.to_bits() as u32));
        prop_assert_eq!(exact_to_f32(exact_from_f32(a)).to_bits(), a.to_bits());
        prop_assert_eq!(exact_from_f32(a).cmp(&exact_from_f32(b)), a.total_cmp(&b));
        prop_assert!(i32::try_from(exact_from_f32(a)).is_ok());
    }

    #[test]
    fn single_precision_is_what_the_processor_makes_of_it(value in anything()) {
        let format = FloatFormat::BINARY32;
        let single = value as f32;
        let ours = format.to_f64(format.from_f64(value)) as f32;
        if single.is_infinite() && value.is_finite() {
            prop_assert_eq!(ours.abs(), f32::MAX);
        } else if value.is_nan() {
            prop_assert!(ours.is_nan());
        } else {
            prop_assert_eq!(ours.to_bits(), single.to_bits());
            prop_assert_eq!(format.from_f64(value), exact_from_f32(single));
        }
    }

    #[test]
    fn double_precision_loses_nothing(value in anything()) {
        let format = FloatFormat::BINARY64;
        if !value.is_nan() {
            prop_assert_eq!(format.from_f64(value), exact_from_f64(value));
            prop_assert_eq!(format.to_f64(format.from_f64(value)).to_bits(), value.to_bits());
        }
    }

    #[test]
    fn custom_floats_are_monotone_and_idempotent(
        format in format(), a in anything(), b in anything(),
    ) {
        let round = |value| format.to_f64(format.from_f64(value));
        if a <= b {
            prop_assert!(format.from_f64(a) <= format.from_f64(b) || a == b);
            prop_assert!(round(a) <= round(b));
        }
        prop_assert_eq!(format.from_f64(round(a)), format.from_f64(a));
        prop_assert!(FieldKind::Custom(CustomFloat::uniform(format)).admits(format.from_f64(a)));
    }

    #[test]
    fn custom_floats_are_the_nearest(format in format(), value in anything()) {
        prop_assume!(value.is_finite());
        let integer = format.from_f64(value);
        let error = (format.to_f64(integer) - value).abs();
        // Around zero the two zeros are neighbours; at the ends of the range there may be no
        // neighbour.
        for neighbour in [integer - 1, integer + 1] {
            let other = format.to_f64(neighbour);
            if other.is_finite() {
                prop_assert!(error <= (other - value).abs());
            }
        }
    }

    #[test]
    fn a_level_is_the_same_as_rounding_once_more(
        float in levels(), level in level(), value in anything(),
    ) {
        let fine = float.format(Level::EXACT);
        let coarse = float.format(level);
        let integer = fine.from_f64(value);
        let served = float.at_level(level, integer);
        prop_assert_eq!(float.at_level(level, served), served);
        prop_assert_eq!(float.at_level(Level::EXACT, integer), integer);
        let (served, exact) = (fine.to_f64(served), fine.to_f64(integer));
        if exact.is_nan() {
            prop_assert!(served.is_nan());
        } else {
            prop_assert_eq!(served.to_bits(), coarse.to_f64(coarse.from_f64(exact)).to_bits());
        }
    }

    #[test]
    fn coarser_integers_are_near_and_stay(
        value in any::<i64>(), bits in 1..=64u8, signed in any::<bool>(), shift in 0..63u8,
    ) {
        let shift = shift.min(bits - 1);
        let mut field = Field::new("n", FieldKind::Int { bits, signed });
        field.priority = Priority::new(1).unwrap();
        field.coarser = [0, 0, shift, shift];
        let spare = 64 - u32::from(bits);
        let value = if signed { value >> spare } else { (value as u64 >> spare) as i64 };
        let level = Level::new(3).unwrap();
        let coarse = field.at_level(level, value);
        prop_assert!(field.kind.admits(coarse), "{} becomes {}", value, coarse);
        prop_assert_eq!(field.at_level(level, coarse), coarse);
        let wide = |value: i64| if signed { i128::from(value) } else { i128::from(value as u64) };
        prop_assert!((wide(coarse) - wide(value)).abs() < 1 << shift);
    }
}

#[test]
fn a_tiny_format_is_what_one_computes_by_hand() {
    // Two bits each: exponent 0 is 0, ¼, ½, ¾; then 1 to 1¾ in quarters, 2 to 3½ in halves.
    let format = FloatFormat::new(2, 2, 1).unwrap();
    let all: Vec<f64> = (0..12).map(|integer| format.to_f64(integer)).collect();
    assert_eq!(
        all,
        [
            0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5
        ]
    );
    assert_eq!(format.to_f64(12), f64::INFINITY);
    assert!(format.to_f64(13).is_nan());
    assert_eq!(format.from_f64(100.0), 11);
    assert_eq!(format.from_f64(-100.0), -12);
    assert_eq!(format.from_f64(0.124), 0);
    assert_eq!(format.from_f64(0.126), 1);
    assert_eq!(format.from_f64(0.375), 2);
    assert_eq!(format.bits(), 5);
}

#[test]
fn a_format_with_one_exponent_bit_is_fixed_point() {
    let format = FloatFormat::new(8, 1, -3).unwrap();
    assert_eq!(format.to_f64(1), 0.0625);
    assert_eq!(format.from_f64(1.0), 16);
    assert_eq!(format.from_f64(1e9), 255);
}

#[test]
fn four_levels_of_one_field() {
    #[derive(State)]
    struct Ball {
        #[state(float((23, 8, 127), (15, 8, 127), (7, 6, 31), (3, 5, 15)))]
        height: f32,
        #[state(float((10, 5, 15)))]
        spin: f64,
    }
    let class = Ball::class("default").unwrap();
    let height = &class.fields[0];
    let row = Ball {
        height: 3.3,
        spin: 0.1,
    }
    .to_row("default");
    let at = |level| height.at_level(Level::new(level).unwrap(), row[0]);
    let served = |level| {
        Ball::from_row("default", &[at(level), row[1]])
            .unwrap()
            .height
    };
    assert_eq!(
        [served(0), served(1), served(2), served(3)],
        [3.3, 3.299_987_8, 3.296_875, 3.25]
    );
    assert_eq!(class.fields[1].priority.get(), 0);
    assert_eq!(
        Ball::from_row("default", &row).unwrap().spin,
        0.099_975_585_937_5
    );
}

#[test]
fn declarations_are_plain_data() {
    let how = Declaration {
        only_on_spawn: true,
        ..Declaration::PLAIN
    };
    assert!(Declaration::PLAIN.within(&how).only_on_spawn);
}
