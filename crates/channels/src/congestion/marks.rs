//! Packets that routers marked instead of dropping them (ECN, congestion experienced), both ways.
//!
//! An end counts the marked packets that arrive and states the count beside its next few
//! acknowledgements. The other end compares it with the highest it was told before, so a count that is
//! lost, repeated or late does no harm.
//!
//! Some networks drop packets that ask for marks. So an end stops asking if its first packets are not
//! acknowledged, or if nothing is for a while.

/// The marks of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    /// Marked packets that arrived here.
    arrived: u64,
    /// In how many more packets to state that.
    left: u32,
    /// The highest count that the other end stated.
    stated: u64,
    /// Whether it has grown since the last [`take`](Self::take).
    is_new: bool,
    path: EcnPath,
}

/// Whether a path carries packets that ask for marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EcnPath {
    #[default]
    Untried,
    Works,
    /// It may drop them.
    Doubtful,
}

impl Marks {
    /// A marked packet arrived here.
    pub(crate) fn note(&mut self) {
        self.arrived = self.arrived.saturating_add(1);
        self.left = TIMES;
    }

    /// The count, if a packet with an acknowledgement should state it.
    pub(crate) fn told(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        Some(self.arrived)
    }

    /// The other end stated a count.
    pub(crate) fn handle(&mut self, count: u64) {
        self.is_new |= count > self.stated;
        self.stated = self.stated.max(count);
    }

    /// Whether routers may mark our packets instead of dropping them.
    pub(crate) fn are_wanted(&self) -> bool {
        self.path != EcnPath::Doubtful
    }

    /// A packet was acknowledged.
    pub(crate) fn on_acknowledged(&mut self) {
        if self.path == EcnPath::Untried {
            self.path = EcnPath::Works;
        }
    }

    /// So many probe timeouts in a row passed without an acknowledgement.
    pub(crate) fn on_probe(&mut self, probes: u32) {
        if self.path == EcnPath::Untried || probes >= MAX_PROBES {
            self.path = EcnPath::Doubtful;
        }
    }

    /// Whether our packets were marked since the last call.
    pub(crate) fn take(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }
}

/// Packets may be lost.
const TIMES: u32 = 3;
const MAX_PROBES: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a count is stated for ever (`left` not counted down), or if a repeated or late one
    /// counts again (`stated` not compared).
    #[test]
    fn every_growth_of_the_count_is_noticed_once() {
        let mut here = Marks::default();
        assert_eq!(here.told(), None);
        here.note();
        here.note();
        let told: Vec<u64> = std::iter::from_fn(|| here.told()).collect();
        assert_eq!(told, [2, 2, 2]);
        let mut there = Marks::default();
        for (count, is_new) in [(2, true), (2, false), (1, false), (5, true), (0, false)] {
            there.handle(count);
            assert_eq!(there.take(), is_new, "{count}");
        }
        there.handle(u64::MAX);
        assert!(there.take() && !there.take());
    }

    /// Fails if a path that drops such packets is asked for marks for ever, or if a single loss ends
    /// it on a path that has carried them.
    #[test]
    fn paths_that_drop_what_asks_for_marks_are_not_asked() {
        let mut marks = Marks::default();
        assert!(marks.are_wanted());
        marks.on_acknowledged();
        marks.on_probe(1);
        assert!(marks.are_wanted());
        marks.on_probe(MAX_PROBES);
        marks.on_acknowledged();
        assert!(!marks.are_wanted());
        let mut marks = Marks::default();
        marks.on_probe(1);
        assert!(!marks.are_wanted());
    }
}
