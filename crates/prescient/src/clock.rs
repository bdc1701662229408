//! The facade's own clock, for what no carrier's clock covers.
#![expect(
    clippy::disallowed_methods,
    reason = "all layers below get time as an argument; this is where it comes from"
)]

use prescient_channels::Time;
use web_time::Instant;

/// A monotonic clock that starts at zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_micros(0).after(self.start.elapsed())
    }
}
