//! Look-ups per second: `cargo bench -p prescient-timeline`. The goals are 20 million sequential and 5
//! million random ones, over a million keyframes.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use prescient_timeline::*;

fn main() {
    divan::main();
}

const KEYFRAMES: i64 = 1_000_000;
const SPACING: i64 = 100_000;
/// The number of random times, and how many of them one sample looks up: few, so that a sample is seldom
/// interrupted by other processes.
const TIMES: usize = 200_000;
const LOOK_UPS: usize = 20_000;

/// Sixty frames per second forwards through a single curve.
#[divan::bench]
fn sequential(bencher: Bencher) {
    play(bencher, &curve(), 16_667, 0);
}

/// The same backwards.
#[divan::bench]
fn backwards(bencher: Bencher) {
    play(bencher, &curve(), -16_667, KEYFRAMES * SPACING - 1);
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
    look_up(bencher, &times, |time| curve.at(time));
}

/// The same with keyframes in bursts, a hundred times as close as between them.
#[divan::bench]
fn random_uneven(bencher: Bencher) {
    let config = CurveConfig::default().memory(KEYFRAMES as usize, WhenFull::Refuse);
    let mut time = 0;
    let keyframes = (0..KEYFRAMES).map(|index| {
        let close = index / 1000 % 3 != 0;
        time += (1 + index * 7919 % 1000) * if close { 1 } else { 100 };
        Keyframe::new(Time::from_micros(time), value(index))
    });
    let curve = Curve::from_keyframes(config.expect("it can hold them"), keyframes)
        .expect("they are in order");
    let end = curve.last_time().expect("it has keyframes").as_micros();
    let times: Vec<Time> = random_times()
        .into_iter()
        .map(|time| Time::from_micros(time.as_micros() % end))
        .collect();
    look_up(bencher, &times, |time| curve.at(time));
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
    look_up(bencher, &times, |time| {
        let micros = time.as_micros();
        let property = PropertyId((micros % 1000) as u32);
        timeline.at(property, Time::from_micros(micros / 1000))
    });
}

fn play<V: Value>(bencher: Bencher, curve: &Curve<V>, step: i64, start: i64) {
    let (mut cursor, mut time) = (Cursor::default(), start);
    bencher.counter(ItemsCount::new(LOOK_UPS)).bench_local(|| {
        for _ in 0..LOOK_UPS {
            black_box(curve.at_cursor(&mut cursor, Time::from_micros(time)));
            time += step;
        }
        if !(0..KEYFRAMES * SPACING).contains(&time) {
            time = start;
        }
    });
}

fn look_up(bencher: Bencher, times: &[Time], at: impl Fn(Time) -> Option<f64>) {
    let mut turns = times.chunks(LOOK_UPS).cycle();
    bencher.counter(ItemsCount::new(LOOK_UPS)).bench_local(|| {
        for &time in turns.next().expect("there are times") {
            black_box(at(time));
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
    (0..TIMES).map(|_| next()).collect()
}
