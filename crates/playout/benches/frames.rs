//! What a frame costs: `cargo bench -p prescient-playout`.

use std::hint::black_box;
use std::time::Duration;

use divan::Bencher;
use glam::{Quat, Vec3};
use prescient_playout::{Layout, Moment, ShowConfig, Track};
use prescient_schema::State;

fn main() {
    divan::main();
}

/// What most entities of a game have.
#[derive(State, Clone, Copy)]
struct Walker {
    #[state(step = 0.01, position)]
    position: Vec3,
    #[state(step = 0.001)]
    facing: Quat,
    health: u8,
}

fn walker(entity: u64, tick: u64) -> Walker {
    let at = (entity * 31 + tick * 7) as f32 / 100.0;
    Walker {
        position: Vec3::new(at, at.sin(), -at),
        facing: Quat::from_rotation_y(at),
        health: 100,
    }
}

const ENTITIES: u64 = 10_000;

fn tracks(layout: &Layout<Walker>) -> Vec<(Track<Walker>, Walker)> {
    let entities = (0..ENTITIES).map(|entity| {
        let mut track = Track::new(layout);
        for tick in 0..8 {
            let pushed = track.push(layout, tick, walker(entity, tick));
            pushed.expect("ticks ascend");
        }
        (track, walker(entity, 5))
    });
    entities.collect()
}

/// A frame of 10,000 entities that are drawn between two samples.
#[divan::bench]
fn show_10000_entities(bencher: Bencher) {
    let layout = Layout::new(&ShowConfig::default()).expect("a sound class");
    let mut tracks = tracks(&layout);
    let mut frame = 0_u64;
    bencher.bench_local(|| {
        frame += 1;
        let moment = Moment {
            playback: 5.0 + (frame % 50) as f64 / 50.0,
            present: 8.0,
            now: Duration::from_micros(frame * 16_667),
            tick_seconds: 1.0 / 30.0,
        };
        for (track, walker) in &mut tracks {
            black_box(track.shown(&layout, *walker, &moment));
        }
    });
}

/// A tick's samples of 10,000 entities, while they are drawn.
#[divan::bench]
fn push_10000_samples(bencher: Bencher) {
    let layout = Layout::new(&ShowConfig::default()).expect("a sound class");
    let mut tracks = tracks(&layout);
    let mut tick = 8;
    for (track, walker) in &mut tracks {
        let moment = Moment {
            playback: 6.5,
            present: 8.0,
            now: Duration::ZERO,
            tick_seconds: 1.0 / 30.0,
        };
        track.shown(&layout, *walker, &moment);
    }
    bencher.bench_local(|| {
        for (entity, (track, _)) in tracks.iter_mut().enumerate() {
            let pushed = track.push(&layout, tick, walker(entity as u64, tick));
            pushed.expect("ticks ascend");
        }
        tick += 1;
    });
}
