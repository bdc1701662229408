//! The only place that reads clocks and asks the system for randomness.
#![expect(
    clippy::disallowed_methods,
    reason = "the machines get time and randomness as arguments; this is where those come from"
)]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use prescient_channels::Time;
use prescient_transport::{Entropy, UnixTime};

use crate::error::OpenError;

/// The monotonic clock, in microseconds since its start. While the host is suspended it stops on
/// some systems and jumps on others; client and server handle both.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that starts at zero.
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// The present time.
    pub fn now(&self) -> Time {
        Time::from_micros(0).after(self.start.elapsed())
    }

    /// The wall clock, which decides whether tokens have expired.
    pub fn unix() -> UnixTime {
        UnixTime(Self::since_1970().as_secs())
    }

    /// The wall clock in milliseconds, for reports that are compared with others of the same host.
    pub fn unix_millis() -> u64 {
        u64::try_from(Self::since_1970().as_millis()).unwrap_or(u64::MAX)
    }

    /// The wall clock.
    pub(crate) fn since_1970() -> Duration {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.unwrap_or(Duration::ZERO)
    }
}

/// The operating system's random number generator.
#[derive(Clone, Debug)]
pub struct SystemEntropy(());

impl SystemEntropy {
    /// Requests random bytes once, so that a system without randomness fails here.
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
    /// If a system that had randomness fails later: there is no safe way to continue.
    fn fill(&mut self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("a system that gave random bytes goes on to do so");
    }
}
