//! A server's buffer of one client's inputs, and how the client is told to speed up or slow down.
//!
//! Inputs are made at even intervals and arrive at uneven ones. A server that applies each when it
//! arrives applies two in one tick and none in the next; other players see the entity stutter. The
//! buffer hands out one per tick. It is as full as the client's jitter needs: the client runs a
//! little faster while the buffer is too empty, and a little slower while it is too full, so a drift
//! between the two clocks needs no treatment of its own.

use std::collections::VecDeque;
use std::time::Duration;

use thiserror::Error;

use crate::error::ConfigError;

/// Settings of an [`InputBuffer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputBufferConfig {
    target: usize,
    max: usize,
    window: usize,
}

impl Default for InputBufferConfig {
    fn default() -> Self {
        Self {
            target: 1,
            max: 32,
            window: 30,
        }
    }
}

impl InputBufferConfig {
    /// Inputs that shall still be there in the worst of recent ticks after one was taken, 1 by
    /// default.
    #[must_use]
    pub fn with_target(mut self, inputs: usize) -> Self {
        self.target = inputs;
        self
    }

    /// Inputs that may wait, 32 by default; the oldest give way.
    #[must_use]
    pub fn with_max(mut self, inputs: usize) -> Self {
        self.max = inputs;
        self
    }

    /// Ticks between two nudges, 30 by default.
    #[must_use]
    pub fn with_window(mut self, ticks: usize) -> Self {
        self.window = ticks;
        self
    }

    /// Refuses settings that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        ConfigError::first(&[
            (self.max > self.target, "max", "above the target"),
            (self.window > 0, "window", "at least 1"),
        ])
    }
}

/// Why an input was not buffered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InputBufferError {
    /// It is of a tick that was handed out, skipped or buffered already.
    #[error("the input is not later than that of tick {last}")]
    NotLater {
        /// The newest tick that was buffered.
        last: u64,
    },
}

/// What a server applies in a tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferedInput<I> {
    /// The next input, with its tick at the client.
    Input(u64, I),
    /// None has arrived in time: repeat the last one (the client will be corrected if it did
    /// something else).
    Missing,
    /// The client has not begun, or its first inputs have not filled the buffer yet.
    Waiting,
}

/// How many thousandths faster a client's ticks shall be; negative is slower. A byte, to be sent
/// in an event whenever [`InputBuffer::poll_nudge`] returns one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nudge(pub i8);

/// One client's inputs at the server.
#[derive(Clone, Debug)]
pub struct InputBuffer<I> {
    config: InputBufferConfig,
    inputs: VecDeque<(u64, I)>,
    last: Option<u64>,
    is_running: bool,
    /// Ticks since the last nudge, and the fewest inputs that were left over in one.
    ticks: usize,
    min_left: usize,
    was_empty: bool,
    nudge: Option<Nudge>,
    missing: u64,
}

impl<I> InputBuffer<I> {
    /// An empty buffer.
    pub fn new(config: InputBufferConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            inputs: VecDeque::new(),
            last: None,
            is_running: false,
            ticks: 0,
            min_left: usize::MAX,
            was_empty: false,
            nudge: None,
            missing: 0,
        })
    }

    /// Adds an input that arrived.
    pub fn push(&mut self, tick: u64, input: I) -> Result<(), InputBufferError> {
        if let Some(last) = self.last.filter(|&last| last >= tick) {
            return Err(InputBufferError::NotLater { last });
        }
        self.last = Some(tick);
        self.inputs.push_back((tick, input));
        if self.inputs.len() > self.config.max {
            self.inputs.pop_front();
        }
        Ok(())
    }

    /// The input of a tick of the server; call it once per tick.
    pub fn next_tick(&mut self) -> BufferedInput<I> {
        if !self.is_running {
            if self.inputs.len() <= self.config.target {
                return BufferedInput::Waiting;
            }
            self.is_running = true;
        }
        let next = self.inputs.pop_front();
        self.measure(next.is_none());
        match next {
            Some((tick, input)) => BufferedInput::Input(tick, input),
            None => {
                self.missing += 1;
                BufferedInput::Missing
            }
        }
    }

    /// How the client's speed is to change; to be sent to it. At most one per window of ticks.
    pub fn poll_nudge(&mut self) -> Option<Nudge> {
        self.nudge.take()
    }

    /// Inputs that wait.
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Ticks for which no input was there.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    fn measure(&mut self, was_missing: bool) {
        self.ticks += 1;
        self.was_empty |= was_missing;
        self.min_left = self.min_left.min(self.inputs.len());
        if self.ticks < self.config.window {
            return;
        }
        // Missing inputs are one worse than none left over.
        let min_left = self.min_left as i64 - i64::from(self.was_empty);
        let error = self.config.target as i64 - min_left;
        self.nudge = Some(Nudge(
            (error * NUDGE_PER_INPUT).clamp(-MAX_NUDGE, MAX_NUDGE) as i8,
        ));
        (self.ticks, self.min_left, self.was_empty) = (0, usize::MAX, false);
    }
}

/// The speed of a client's ticks, as the server's nudges want it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TickRate {
    interval: Duration,
    nudge: Nudge,
}

impl TickRate {
    /// A client's ticks, which are as long as the server's.
    pub fn new(interval: Duration) -> Self {
        Self {
            interval,
            nudge: Nudge(0),
        }
    }

    /// Handles what the server sent. More than 5 % are never followed, whoever sends them.
    pub fn handle_nudge(&mut self, nudge: Nudge) {
        let bounded = i64::from(nudge.0).clamp(-MAX_NUDGE, MAX_NUDGE);
        self.nudge = Nudge(bounded as i8);
    }

    /// Time until the next tick of the client.
    pub fn interval(&self) -> Duration {
        let thousandths = (1000 - i32::from(self.nudge.0)).unsigned_abs();
        self.interval * thousandths / 1000
    }
}

/// Thousandths per missing input: 30 ticks later, a third of an input is gained.
const NUDGE_PER_INPUT: i64 = 10;
const MAX_NUDGE: i64 = 50;
