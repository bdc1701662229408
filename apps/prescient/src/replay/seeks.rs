//! The time that seeks take.

use std::sync::Arc;
use std::time::Duration;

use prescient_net::Clock;
use prescient_recording::{Player, Recording};
use prescient_sim::world::Random;
use serde_json::json;

use super::{ReplayError, ReplayOptions};

/// Measures seeks to random ticks with nothing decoded, and with everything decoded.
pub(super) fn measure(
    recording: &Arc<Recording>,
    count: u32,
    options: &ReplayOptions,
) -> Result<(), ReplayError> {
    let (first, last) = recording.tick_range().unwrap_or_default();
    let mut random = Random::new(1);
    let ticks: Vec<u64> = (0..count)
        .map(|_| first + random.bits() % (last - first + 1))
        .collect();
    let clock = Clock::start();
    let mut cold = Times::default();
    for &tick in &ticks {
        let mut player = Player::new(recording.clone());
        let begun = clock.now();
        player.seek(tick)?;
        cold.add(clock.now().since(begun));
    }
    let mut player = Player::new(recording.clone());
    let begun = clock.now();
    player.load_all(&mut |_| {})?;
    let load = clock.now().since(begun);
    let mut warm = Times::default();
    for &tick in &ticks {
        let begun = clock.now();
        player.seek(tick)?;
        warm.add(clock.now().since(begun));
    }
    let milliseconds = |span: Duration| span.as_secs_f64() * 1e3;
    let [cold_mean, cold_max] = cold.mean_and_max();
    let [warm_mean, warm_max] = warm.mean_and_max();
    if options.json {
        let line = json!({
            "ticks": recording.tick_count(),
            "seeks": count,
            "cold_ms": {"mean": cold_mean, "max": cold_max},
            "load_ms": milliseconds(load),
            "warm_ms": {"mean": warm_mean, "max": warm_max},
            "held_bytes": player.held_bytes(),
        });
        println!("{line}");
    } else {
        println!(
            "{count} seeks with nothing decoded: mean {cold_mean:.1} ms, longest {cold_max:.1} ms\n\
             decoding all {} ticks: {:.0} ms, {} bytes\n\
             {count} seeks with all decoded: mean {warm_mean:.1} ms, longest {warm_max:.1} ms",
            recording.tick_count(),
            milliseconds(load),
            player.held_bytes(),
        );
    }
    Ok(())
}

#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn add(&mut self, span: Duration) {
        self.0.push(span);
    }

    /// In milliseconds.
    fn mean_and_max(&self) -> [f64; 2] {
        let sum: Duration = self.0.iter().sum();
        let max = self.0.iter().max().copied().unwrap_or_default();
        let mean = sum.as_secs_f64() / self.0.len().max(1) as f64;
        [mean, max.as_secs_f64()].map(|seconds| seconds * 1e3)
    }
}
