//! The playback clock: which tick a client draws, so that the next one has arrived already.
//!
//! States leave a server at even intervals and arrive at uneven ones, and some never. A client that
//! draws between two of them must be late enough for most, and no later. How late is measured: for
//! every state, how long after the tick *before* it (of those that arrived) it came. A lost state is
//! a longer wait like any other, so jitter and loss need no models of their own.
//!
//! The clock follows that measure by running a few percent faster or slower, which nobody sees,
//! where a jump would be seen. Nothing here needs the server's time: all times are those of the
//! client's clock, so a drift between the two clocks is followed like any other change.

use std::collections::VecDeque;
use std::time::Duration;

use crate::error::{ConfigError, PlaybackError};

/// Settings of a [`PlaybackClock`].
#[derive(Clone, Debug, PartialEq)]
pub struct PlaybackConfig {
    late_share: f64,
    margin: Duration,
    max_bend: f64,
    jump_beyond: Duration,
    max_ahead: Duration,
}

impl Default for PlaybackConfig {
    fn default() -> Self {
        Self {
            late_share: 0.01,
            margin: Duration::from_millis(2),
            max_bend: 0.05,
            jump_beyond: Duration::from_millis(500),
            max_ahead: Duration::from_millis(250),
        }
    }
}

impl PlaybackConfig {
    /// The share of states that may come too late to be drawn towards, 0.01 by default. A smaller
    /// one draws later.
    #[must_use]
    pub fn with_late_share(mut self, share: f64) -> Self {
        self.late_share = share;
        self
    }

    /// Time added to what was measured, 2 ms by default.
    #[must_use]
    pub fn with_margin(mut self, margin: Duration) -> Self {
        self.margin = margin;
        self
    }

    /// How much faster or slower than the server playback may run, 0.05 by default.
    #[must_use]
    pub fn with_max_bend(mut self, bend: f64) -> Self {
        self.max_bend = bend;
        self
    }

    /// Playback jumps if it is this far from where it should be, half a second by default.
    #[must_use]
    pub fn with_jump_beyond(mut self, span: Duration) -> Self {
        self.jump_beyond = span;
        self
    }

    /// How far playback goes beyond the newest state when none arrives, a quarter of a second by
    /// default. There it waits.
    #[must_use]
    pub fn with_max_ahead(mut self, span: Duration) -> Self {
        self.max_ahead = span;
        self
    }

    /// Refuses settings that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        ConfigError::first(&[
            (
                (0.0..0.5).contains(&self.late_share),
                "late_share",
                "a share below 0.5",
            ),
            (
                (0.0..=0.5).contains(&self.max_bend),
                "max_bend",
                "a share up to 0.5",
            ),
            (
                self.jump_beyond > Duration::ZERO,
                "jump_beyond",
                "above zero",
            ),
        ])
    }
}

/// What a [`PlaybackClock`] has measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PlaybackStatistics {
    /// How far playback is behind the newest tick that could have arrived.
    pub delay: Duration,
    /// How fast playback runs, 1 being the server's speed.
    pub rate: f64,
    /// States that arrived when playback had passed the state before them already.
    pub starved: u64,
    /// Times that playback jumped.
    pub jumps: u64,
}

/// Decides which tick is drawn.
#[derive(Clone, Debug)]
pub struct PlaybackClock {
    config: PlaybackConfig,
    /// Microseconds of a tick.
    interval: f64,
    /// Recent states.
    arrivals: VecDeque<Arrival>,
    target: f64,
    newest: Option<u64>,
    position: Option<f64>,
    now: Duration,
    statistics: PlaybackStatistics,
}

/// A state that arrived.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: f64,
    tick: f64,
    /// Ticks since the state before it; none of the first one.
    gap: Option<f64>,
}

impl Arrival {
    /// How long it travelled, plus a constant.
    fn travel(&self, interval: f64) -> f64 {
        self.at - self.tick * interval
    }

    /// The same of the tick before it: how long a client waits that draws towards this one.
    fn wait(&self, interval: f64) -> Option<f64> {
        Some(self.travel(interval) + self.gap? * interval)
    }
}

impl PlaybackClock {
    /// A clock for a server with this tick interval.
    pub fn new(config: PlaybackConfig, interval: Duration) -> Result<Self, ConfigError> {
        config.check()?;
        ConfigError::first(&[(interval > Duration::ZERO, "interval", "above zero")])?;
        Ok(Self {
            config,
            interval: micros(interval),
            arrivals: VecDeque::new(),
            target: 0.0,
            newest: None,
            position: None,
            now: Duration::ZERO,
            statistics: PlaybackStatistics::default(),
        })
    }

    /// Notes that the state of a tick arrived. A state that is not newer than all before is an error
    /// and changes nothing; it cannot be drawn towards any more.
    pub fn handle_state(&mut self, tick: u64, now: Duration) -> Result<(), PlaybackError> {
        let arrival = Arrival {
            at: micros(now.max(self.now)),
            tick: tick as f64,
            gap: None,
        };
        let Some(before) = self.newest else {
            self.newest = Some(tick);
            self.arrivals.push_back(arrival);
            return Ok(());
        };
        if tick <= before {
            return Err(PlaybackError::NotLater { newest: before });
        }
        if self
            .position
            .is_some_and(|position| position > before as f64)
        {
            self.statistics.starved += 1;
        }
        // After a long silence only the end of it says anything about what is to come.
        let mut gap = (tick - before).min(MAX_GAP) as f64;
        let early = self.fastest() - arrival.travel(self.interval);
        if early > micros(self.config.jump_beyond) {
            // The server skipped ticks: what was measured says nothing of those to come.
            self.arrivals.clear();
            gap = 1.0;
        }
        if self.arrivals.len() == WINDOW {
            self.arrivals.pop_front();
        }
        let gap = Some(gap);
        self.arrivals.push_back(Arrival { gap, ..arrival });
        self.newest = Some(tick);
        self.target = self.needed();
        Ok(())
    }

    /// Lets time pass and returns the tick to draw, with its fraction; `None` before the first
    /// state. A time before the last one counts as the last one: playback never runs backwards,
    /// except when it jumps.
    pub fn advance(&mut self, now: Duration) -> Option<f64> {
        let newest = self.newest? as f64;
        let now = now.max(self.now);
        let passed = micros(now - self.now) / self.interval;
        self.now = now;
        let target = match self.arrivals.iter().any(|arrival| arrival.gap.is_some()) {
            true => (micros(now) - self.target) / self.interval,
            false => newest - 1.0,
        };
        let furthest = newest + micros(self.config.max_ahead) / self.interval;
        let target = target.min(furthest);
        let Some(position) = self.position else {
            self.position = Some(target);
            return self.position;
        };
        let error = target - (position + passed);
        let seconds = self.interval / 1e6;
        let next = if (error * self.interval).abs() > micros(self.config.jump_beyond) {
            self.statistics.jumps += 1;
            self.statistics.rate = 1.0;
            target
        } else {
            // An error is mended in about a second.
            let bend = (error * seconds).clamp(-self.config.max_bend, self.config.max_bend);
            self.statistics.rate = 1.0 + bend;
            (position + passed * (1.0 + bend)).min(furthest.max(position))
        };
        self.position = Some(next);
        let could = (micros(now) - self.fastest()) / self.interval;
        let delay = ((could - next) * self.interval).max(0.0);
        self.statistics.delay = Duration::from_micros(delay as u64);
        self.position
    }

    /// The tick that was drawn last.
    pub fn position(&self) -> Option<f64> {
        self.position
    }

    /// What was measured.
    pub fn statistics(&self) -> PlaybackStatistics {
        self.statistics
    }

    /// Time between two ticks.
    pub fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.interval / 1e6)
    }

    /// Sets the time between two ticks, as the server told it; measurements start again if it changed.
    pub fn set_interval(&mut self, interval: Duration) -> Result<(), ConfigError> {
        if micros(interval) != self.interval {
            *self = Self::new(self.config.clone(), interval)?;
        }
        Ok(())
    }

    /// Sets the time between two ticks, as the client [estimates](crate::IntervalEstimate) it;
    /// measurements stay. Playback starts again where it should be if it ran at a wrong speed.
    pub fn adjust_interval(&mut self, interval: Duration) -> Result<(), ConfigError> {
        ConfigError::first(&[(interval > Duration::ZERO, "interval", "above zero")])?;
        let change = micros(interval) / self.interval - 1.0;
        if change.abs() > self.config.max_bend {
            self.position = None;
        }
        self.interval = micros(interval);
        self.target = self.needed();
        Ok(())
    }

    /// The least travel of recent states.
    fn fastest(&self) -> f64 {
        let travels = self.arrivals.iter().map(|it| it.travel(self.interval));
        travels.fold(f64::INFINITY, f64::min)
    }

    /// The wait that all but the allowed share of recent states kept.
    fn needed(&self) -> f64 {
        let waits = self.arrivals.iter();
        let mut waits: Vec<f64> = waits.filter_map(|it| it.wait(self.interval)).collect();
        waits.sort_unstable_by(f64::total_cmp);
        let late = (waits.len() as f64 * self.config.late_share) as usize;
        let kept = waits.iter().rev().nth(late);
        kept.map_or(0.0, |wait| wait + micros(self.config.margin))
    }
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}

/// States over which waits are measured: some seconds.
const WINDOW: usize = 256;
/// Ticks; a longer gap is no loss but a pause.
const MAX_GAP: u64 = 16;
