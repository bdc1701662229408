//! How long a server's ticks take, where it does not say so.

use std::collections::VecDeque;
use std::time::Duration;

/// An estimate from the times at which states arrive: the median of how long some ticks took each,
/// so that neither jitter nor a pause counts.
#[derive(Clone, Debug)]
pub struct IntervalEstimate {
    interval: Duration,
    states: VecDeque<(u64, Duration)>,
}

impl IntervalEstimate {
    /// This is the estimate until enough states arrived.
    pub fn new(guess: Duration) -> Self {
        Self {
            interval: guess,
            states: VecDeque::new(),
        }
    }

    /// Notes that the state of a tick arrived, and returns the estimate: a millisecond to a second.
    pub fn handle_state(&mut self, tick: u64, now: Duration) -> Duration {
        if let Some(&(last, at)) = self.states.back() {
            if tick <= last {
                return self.interval;
            }
            if now.saturating_sub(at) > PAUSE || tick - last > MAX_GAP {
                self.states.clear();
            }
        }
        if self.states.len() == WINDOW {
            self.states.pop_front();
        }
        self.states.push_back((tick, now));
        let half = self.states.len() / 2;
        if half < LEAST {
            return self.interval;
        }
        let pairs = self.states.iter().zip(self.states.iter().skip(half));
        let seconds = pairs.map(|((from, began), (to, ended))| {
            ended.saturating_sub(*began).as_secs_f64() / (to - from) as f64
        });
        let mut seconds: Vec<f64> = seconds.collect();
        seconds.sort_unstable_by(f64::total_cmp);
        let median = Duration::from_secs_f64(seconds[seconds.len() / 2]);
        self.interval = median.clamp(SHORTEST, LONGEST);
        self.interval
    }
}

/// States that are kept.
const WINDOW: usize = 128;
/// Ticks that are measured together at least.
const LEAST: usize = 8;
/// A game that pauses has no ticks meanwhile, and one that skips some takes no time for them.
const PAUSE: Duration = Duration::from_millis(500);
const MAX_GAP: u64 = 16;
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(1);
