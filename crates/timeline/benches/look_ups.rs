//! What look-ups take: `cargo bench -p prescient-timeline` prints how many there are in a second. The goals
//! are 20 million while playing and 5 million at random, over a million keyframes.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use prescient_timeline::*;

fn main() {
    divan::main();
}

const KEYFRAMES: i64 = 1_000_000;
const SPACING: i64 = 100_000;
const LOOK_UPS: usize = 1_000_000;

/// Sixty frames a second forwards through a single curve.
#[divan::bench]
fn sequential(bencher: Bencher) {
    play(bencher, &curve(), 16_667, 0);
}

/// The same backwards.
#[divan::bench]
fn backwards(bencher: Bencher) {
    play(bencher, &curve(), -16_667, KEYFRAMES * SPACING);
}

/// The same with three components.
#[divan::bench]
fn sequential_vectors(bencher: Bencher) {
    let curve = of(|value| [value as f32, 1.0, -value as f32]);
    play(bencher, &curve, 16_667, 0);
}

/// Anywhere in a single curve.
#[divan::bench]
fn random(bencher: Bencher) {
    let curve = curve();
    let times = random_times();
    bencher.counter(ItemsCount::new(LOOK_UPS)).bench_local(|| {
        for &time in &times {
            black_box(curve.at(time));
        }
    });
}

/// Anywhere in any of a thousand properties of a thousand keyframes each.
#[divan::bench]
fn random_properties(bencher: Bencher) {
    let mut timeline = Timeline::default();
    for index in 0..KEYFRAMES {
        let keyframe = Keyframe::new(Time::from_micros(index / 1000 * SPACING), value(index));
        let property = PropertyId((index % 1000) as u32);
        let edit = Edit::Add(keyframe);
        timeline
            .apply(&Operation { property, edit })
            .expect("there is room");
    }
    let times = random_times();
    bencher.counter(ItemsCount::new(LOOK_UPS)).bench_local(|| {
        for &time in &times {
            let micros = time.as_micros();
            let property = PropertyId((micros % 1000) as u32);
            black_box(timeline.at(property, Time::from_micros(micros / 1000)));
        }
    });
}

fn play<V: Value>(bencher: Bencher, curve: &Curve<V>, step: i64, start: i64) {
    bencher.counter(ItemsCount::new(LOOK_UPS)).bench_local(|| {
        let mut cursor = Cursor::default();
        let mut time = start;
        for _ in 0..LOOK_UPS {
            black_box(curve.at_cursor(&mut cursor, Time::from_micros(time)));
            time += step;
        }
    });
}

fn curve() -> Curve<f64> {
    of(|value| value)
}

fn of<V: Value>(made: impl Fn(f64) -> V) -> Curve<V> {
    let config = CurveConfig::default().memory(KEYFRAMES as usize, WhenFull::Refuse);
    let keyframe = |index| Keyframe::new(Time::from_micros(index * SPACING), made(value(index)));
    let keyframes = (0..KEYFRAMES).map(keyframe);
    Curve::from_keyframes(config.expect("it can hold them"), keyframes).expect("they are in order")
}

fn value(index: i64) -> f64 {
    (index * 7919 % 1000) as f64
}

fn random_times() -> Vec<Time> {
    let mut state = 1u64;
    let mut next = || {
        // Xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Time::from_micros((state % (KEYFRAMES * SPACING) as u64) as i64)
    };
    (0..LOOK_UPS).map(|_| next()).collect()
}
