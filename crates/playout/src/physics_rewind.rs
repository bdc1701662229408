//! Physics rewinding: a late update is applied as of when it was expected, and simulated from then
//! to now.
//!
//! This is Algorithm 2 of the document that introduced it, line by line. It needs no synchronised
//! clock, only the number of each update and the time between two. Between updates the program runs
//! its physics as always.

use std::time::Duration;

use crate::error::ConfigError;

/// What is to be done with an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewound {
    /// It is not newer than the last one: skip it.
    Late,
    /// It came earlier than expected, or is the first one: it was applied as it is.
    Snap,
    /// It came when expected or later: it was applied, and the physics ran over this span.
    Simulated {
        /// When the update was expected.
        from: Duration,
        /// When it came.
        to: Duration,
    },
}

/// A client's own physics: what Algorithm 2 calls.
pub trait Physics {
    /// What an update of the server contains.
    type Update;

    /// Takes over the values of an update.
    fn apply(&mut self, update: &Self::Update);

    /// Simulates the time between two moments.
    fn step(&mut self, from: Duration, to: Duration);
}

/// When updates are expected.
#[derive(Clone, Debug)]
pub struct PhysicsRewind {
    period: Duration,
    max_span: Duration,
    last: Option<u64>,
    expected_at: Duration,
    now: Duration,
}

impl PhysicsRewind {
    /// For updates that are sent once in this period.
    pub fn new(period: Duration) -> Result<Self, ConfigError> {
        ConfigError::first(&[(period > Duration::ZERO, "period", "above zero")])?;
        Ok(Self {
            period,
            max_span: Duration::MAX,
            last: None,
            expected_at: Duration::ZERO,
            now: Duration::ZERO,
        })
    }

    /// Simulates no more than this span, so that a client that was suspended does not simulate an
    /// hour. There is no limit by default, as in the document.
    #[must_use]
    pub fn with_max_span(mut self, span: Duration) -> Self {
        self.max_span = span;
        self
    }

    /// Handles an update with its sequence number. A time before the last one counts as that.
    pub fn handle_update<P: Physics>(
        &mut self,
        sequence: u64,
        update: &P::Update,
        now: Duration,
        physics: &mut P,
    ) -> Rewound {
        let now = now.max(self.now);
        self.now = now;
        // Lines 1 and 2.
        let Some(last) = self.last else {
            self.last = Some(sequence);
            physics.apply(update);
            self.expected_at = now.saturating_add(self.period);
            return Rewound::Snap;
        };
        // Lines 5 and 6.
        if sequence <= last {
            return Rewound::Late;
        }
        // Lines 7 and 8; an absurd number must not overflow.
        let missed = u32::try_from(sequence - last - 1).unwrap_or(u32::MAX);
        let missed = self.period.saturating_mul(missed);
        self.expected_at = self.expected_at.saturating_add(missed);
        // Lines 9 and 10.
        self.last = Some(sequence);
        physics.apply(update);
        // Lines 11 to 15.
        if now < self.expected_at {
            self.expected_at = now.saturating_add(self.period);
            return Rewound::Snap;
        }
        let from = self.expected_at.max(now.saturating_sub(self.max_span));
        physics.step(from, now);
        self.expected_at = self.expected_at.saturating_add(self.period);
        Rewound::Simulated { from, to: now }
    }

    /// When the next update is expected.
    pub fn expected_at(&self) -> Duration {
        self.expected_at
    }
}
