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
    /// For each recent state: when it arrived, less when the tick before it would have been sent at
    /// the client's time zero.
    waits: VecDeque<f64>,
    /// The same less its own tick: how long it travelled, plus a constant.
    travels: VecDeque<f64>,
    target: f64,
    newest: Option<u64>,
    position: Option<f64>,
    now: Duration,
    statistics: PlaybackStatistics,
}

impl PlaybackClock {
    /// A clock for a server with this tick interval.
    pub fn new(config: PlaybackConfig, interval: Duration) -> Result<Self, ConfigError> {
        config.check()?;
        ConfigError::first(&[(interval > Duration::ZERO, "interval", "above zero")])?;
        Ok(Self {
            config,
            interval: micros(interval),
            waits: VecDeque::new(),
            travels: VecDeque::new(),
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
        let Some(before) = self.newest else {
            self.newest = Some(tick);
            self.travels
                .push_back(micros(now) - tick as f64 * self.interval);
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
        let arrived = micros(now.max(self.now));
        // After a long silence only the end of it says anything about what is to come.
        let gap = (tick - before).min(MAX_GAP) as f64;
        push(
            &mut self.waits,
            arrived - (tick as f64 - gap) * self.interval,
        );
        push(&mut self.travels, arrived - tick as f64 * self.interval);
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
        let target = match self.waits.is_empty() {
            true => newest - 1.0,
            false => (micros(now) - self.target) / self.interval,
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
        let first = self.travels.iter().copied().fold(f64::INFINITY, f64::min);
        let could = (micros(now) - first) / self.interval;
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

    /// Time between two ticks, as the server told it; measurements start again if it changed.
    pub fn set_interval(&mut self, interval: Duration) -> Result<(), ConfigError> {
        if micros(interval) != self.interval {
            *self = Self::new(self.config.clone(), interval)?;
        }
        Ok(())
    }

    /// The wait that all but the allowed share of recent states kept.
    fn needed(&self) -> f64 {
        let mut waits: Vec<f64> = self.waits.iter().copied().collect();
        waits.sort_unstable_by(f64::total_cmp);
        let late = (waits.len() as f64 * self.config.late_share) as usize;
        waits[waits.len() - 1 - late] + micros(self.config.margin)
    }
}

fn push(measured: &mut VecDeque<f64>, value: f64) {
    if measured.len() == WINDOW {
        measured.pop_front();
    }
    measured.push_back(value);
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}

/// States over which waits are measured: some seconds.
const WINDOW: usize = 256;
/// Ticks; a longer gap is no loss but a pause.
const MAX_GAP: u64 = 16;
