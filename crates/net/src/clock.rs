//! The only place where clocks are read and the system is asked for randomness.
#![expect(
    clippy::disallowed_methods,
    reason = "the machines get time and randomness as arguments; this is where those come from"
)]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use prescient_transport::{Entropy, Time, UnixTime};

use crate::error::OpenError;

/// The monotonic clock as the machines count it: microseconds since this was made. It stands
/// still while the computer sleeps on some systems and leaps on others; the machines expect both.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that shows zero.
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// What it shows.
    pub fn now(&self) -> Time {
        Time::from_micros(0).after(self.start.elapsed())
    }

    /// What the clock on the wall shows, which decides whether tokens have expired.
    pub fn unix() -> UnixTime {
        UnixTime(Self::since_1970().as_secs())
    }

    /// The same to the millisecond, for reports that are read beside others of the same machine.
    pub fn unix_millis() -> u64 {
        u64::try_from(Self::since_1970().as_millis()).unwrap_or(u64::MAX)
    }

    fn since_1970() -> Duration {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.unwrap_or(Duration::ZERO)
    }
}

/// The operating system's randomness.
#[derive(Clone, Debug)]
pub struct SystemEntropy(());

impl SystemEntropy {
    /// Asks the system once, so that one that has none says so here.
    pub fn new() -> Result<Self, OpenError> {
        match getrandom::fill(&mut [0; 16]) {
            Ok(()) => Ok(Self(())),
            Err(error) => Err(OpenError::Randomness(error.to_string())),
        }
    }
}

impl Entropy for SystemEntropy {
    /// # Panics
    ///
    /// If a system that had randomness has none any more: there is nothing safe to go on with.
    fn fill(&mut self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("a system that gave random bytes goes on to do so");
    }
}
