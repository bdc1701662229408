//! The state of a link between good and bad periods.

use super::Bursts;
use crate::world::Random;

/// The state of the Gilbert-Elliott model.
#[derive(Clone, Debug, Default)]
pub(super) struct BurstState {
    /// `None` before the first datagram, for which the state is drawn from the stationary
    /// distribution.
    bad: Option<bool>,
}

impl BurstState {
    /// Whether the next datagram is lost.
    ///
    /// With loss p and burst length L, a bad link turns good with probability 1/L, and a good one
    /// bad with p/(1 − p) of that, so that p of all datagrams meet a bad link. The second
    /// probability cannot exceed 1, which limits the first. Both are exact fractions, so no
    /// rounding shifts the averages.
    pub(super) fn loses(&mut self, bursts: &Bursts, random: &mut Random) -> bool {
        let lost = u64::from(bursts.loss.min(MILLION));
        let kept = u64::from(MILLION) - lost;
        let length = u64::from(bursts.length.max(1));
        let bad = match self.bad {
            None => odds(random, lost, lost + kept),
            Some(true) if length * kept < lost => !odds(random, kept, lost),
            Some(true) => !odds(random, 1, length),
            Some(false) => odds(random, lost, length * kept),
        };
        self.bad = Some(bad);
        bad
    }
}

/// True with probability `part / whole`, at most 1.
fn odds(random: &mut Random, part: u64, whole: u64) -> bool {
    random.range(0, whole as i64) < part as i64
}

const MILLION: u32 = 1_000_000;
