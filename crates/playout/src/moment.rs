//! The times that a frame is drawn for.

use std::time::Duration;

/// A frame: which ticks it shows, and when it is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// The tick that is drawn of everything that lies between two samples; from a
    /// [`PlaybackClock`](crate::PlaybackClock).
    pub playback: f64,
    /// The tick that the server is in, for everything that is dead-reckoned.
    pub present: f64,
    /// When the frame is drawn, on any clock that does not go backwards.
    pub now: Duration,
    /// Seconds between two ticks.
    pub tick_seconds: f64,
}

impl Moment {
    /// Seconds since another moment; none if it is later.
    pub(crate) fn seconds_since(&self, before: Option<&Self>) -> f64 {
        before.map_or(0.0, |before| {
            self.now.saturating_sub(before.now).as_secs_f64()
        })
    }

    /// The moment some ticks before.
    pub(crate) fn earlier(self, ticks: f64) -> Self {
        Self {
            playback: self.playback - ticks,
            present: self.present - ticks,
            ..self
        }
    }
}
