//! How fast the other end receives.

use std::collections::VecDeque;

use super::{micros, rate_of};
use crate::time::Time;

/// The rate at which packets arrived lately, by the times at which acknowledgements report them.
#[derive(Clone, Debug, Default)]
pub(super) struct DeliveryRate {
    /// When packets were sent and are known to have arrived, and their bytes; packets of one
    /// acknowledgement are one entry.
    samples: VecDeque<(Time, u64)>,
}

impl DeliveryRate {
    /// Adds bytes that arrived at a time, and forgets what is older than `span`.
    pub(super) fn note(&mut self, bytes: u64, at: Time, span: u64) {
        match self.samples.back_mut() {
            Some((last, sum)) if at <= *last => *sum += bytes,
            _ => self.samples.push_back((at, bytes)),
        }
        while self.samples.len() > MAX_SAMPLES
            || self.samples.len() > 2
                && (self.samples.get(1)).is_some_and(|(first, _)| micros(at.since(*first)) >= span)
        {
            self.samples.pop_front();
        }
    }

    /// The rate; `None` before there are two times.
    pub(super) fn get(&self) -> Option<u64> {
        let (&(first, start), &(last, _)) = (self.samples.front()?, self.samples.back()?);
        let passed = micros(last.since(first));
        let bytes: u64 = self.samples.iter().map(|(_, bytes)| bytes).sum();
        (passed > 0).then(|| rate_of(bytes - start, passed))
    }
}

/// At a packet per millisecond, a quarter of a second.
const MAX_SAMPLES: usize = 256;
