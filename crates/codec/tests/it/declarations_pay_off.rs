//! Declarations in a schema make fields cheaper, and never wrong.

use crate::pair::{Pair, int};
use crate::scenarios::bounce;
use prescient_codec::Slot;
use prescient_schema::{Class, Contract, Derivative, Level, Priority};

/// Bounces, and is thrown again when it gets slow.
fn juggle(past: &[i64], ticks: u32, out: &mut [i64]) {
    out.copy_from_slice(past);
    for _ in 0..ticks {
        let past = [out[0], out[1]];
        bounce(&past, 1, out);
        if out[0] < 40 && out[1].abs() < 9 {
            out[1] = 60;
        }
    }
}

#[test]
fn a_ball_that_bounces_by_contract_costs_next_to_nothing() {
    let cost = |contract: bool| -> usize {
        let mut class = Class::new("ball", vec![int("height", 32), int("speed", 16)]);
        class.contract = contract.then(|| Contract {
            name: "juggle".into(),
            fast_forward: juggle,
        });
        let rows: Vec<[i64; 2]> = (0..20).map(|ball| [900 + 37 * ball, 3 * ball]).collect();
        let starts: Vec<&[i64]> = rows.iter().map(|row| &row[..]).collect();
        let mut pair = Pair::new(class, &starts);
        let mut rows = rows.clone();
        let mut late = 0;
        for time in 0..200 {
            let len = pair.exchange(None);
            for (slot, row) in (0..).zip(&rows) {
                assert_eq!(pair.shown(slot), row);
            }
            late += if time >= 100 { len - HEADER } else { 0 };
            for row in &mut rows {
                let past = *row;
                juggle(&past, 1, row);
            }
            pair.capture((0..).zip(rows.iter().map(|row| &row[..])));
        }
        late
    };
    let (with, without) = (cost(true), cost(false));
    println!("{with} bytes with the contract, {without} without, for 100 packets");
    assert!(with <= 100, "{with}");
    assert!(with * 3 < without, "{with} {without}");
}

/// Bytes of a plain header with its check.
const HEADER: usize = 3;

#[test]
fn a_declared_rate_of_change_tells_where_its_field_will_be() {
    let cost = |declared: bool| -> usize {
        let mut speed = int("speed", 16);
        speed.derivative_of = declared.then_some(Derivative {
            of: 0,
            numerator: 1,
            denominator: 1,
        });
        let class = Class::new("car", vec![int("place", 32), speed]);
        let mut pair = Pair::new(class, &[&[0, 0]]);
        let (mut place, mut speed, mut noise) = (0i64, 0i64, 1u64);
        let mut total = 0;
        // Without the declaration the codec finds out by itself, but not so soon.
        for _ in 0..40 {
            total += pair.exchange(None) - HEADER;
            noise = noise
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            // The velocity changes by an even number, so that the mean of two velocities is an
            // integer.
            let change = 2 * ((noise >> 40) as i64 % 300 - 150);
            let next = (speed + change).clamp(-9_000, 9_000) & !1;
            place += (speed + next) / 2;
            speed = next;
            pair.capture([(0, &[place, speed][..])]);
        }
        total
    };
    let (with, without) = (cost(true), cost(false));
    println!("{with} bytes with the rate declared, {without} without");
    assert!(with * 3 < without * 2, "{with} {without}");
}

#[test]
fn coarse_levels_never_drift_from_the_truth() {
    let mut fine = int("fine", 32);
    fine.priority = Priority::new(2).unwrap();
    fine.coarser = [0, 3, 6, 9];
    let class = Class::new("walker", vec![fine.clone()]);
    let mut pair = Pair::new(class, &[&[0]]);
    let mut truth = 0i64;
    let mut cost = [0; 4];
    for time in 0..800u32 {
        let level = Level::new((time / 50 % 4) as u8).unwrap();
        pair.encoder.show(Slot(0), &pair.archive);
        pair.encoder.set_level(Slot(0), level, &pair.archive);
        cost[level.index()] += pair.exchange(None) - HEADER;
        // The first packet of an entity is always exact.
        if time > 0 {
            assert_eq!(pair.shown(0), [fine.at_level(level, truth)], "time {time}");
        }
        truth += 2000 + i64::from(time.wrapping_mul(0x9E37_79B9) >> 23);
        pair.capture([(0, &[truth][..])]);
    }
    println!("{cost:?} bytes by level");
    assert!(cost[3] < cost[0], "{cost:?}");
}
