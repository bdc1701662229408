//! Sends at a fixed rate, whatever happens.

use super::{AcknowledgedPacket, Congestion, LostPacket, RateLimits, SentPacket};
use crate::statistics::BytesPerSecond;

/// A policy that always allows the ceiling: for comparison, and for links whose rate is known.
#[derive(Clone, Debug)]
pub struct FixedRate {
    rate: BytesPerSecond,
}

impl FixedRate {
    /// Sends at the ceiling of `limits`.
    pub fn new(limits: RateLimits) -> Self {
        Self {
            rate: limits.ceiling,
        }
    }
}

impl Congestion for FixedRate {
    fn on_sent(&mut self, _: &SentPacket) {}

    fn on_acknowledged(&mut self, _: &AcknowledgedPacket) {}

    fn on_lost(&mut self, _: &LostPacket) {}

    fn rate(&self) -> BytesPerSecond {
        self.rate
    }

    fn window(&self) -> usize {
        usize::MAX
    }
}
