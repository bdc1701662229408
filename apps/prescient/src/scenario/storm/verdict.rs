//! The result of a storm.

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A client shows a value that the server did not have.
    Divergence,
    /// An event was not received.
    EventLost,
    /// An event was received twice.
    EventDoubled,
    /// A peer received something that is hidden from it.
    Leak,
    /// Anything else: an honest message refused, a connection lost, a client that does not catch
    /// up.
    Failure,
}

/// All faults of a storm.
#[derive(Clone, Debug, Default)]
pub(super) struct Verdict {
    /// Datagrams sent.
    pub packets: u64,
    pub divergences: u64,
    pub events_lost: u64,
    pub events_doubled: u64,
    pub leaks: u64,
    /// Faults that the other counters do not include.
    pub failures: u64,
    /// Descriptions of the first few faults.
    pub stories: Vec<String>,
}

impl Verdict {
    /// Records a fault.
    pub(super) fn note(&mut self, fault: Fault, story: impl FnOnce() -> String) {
        let count = match fault {
            Fault::Divergence => &mut self.divergences,
            Fault::EventLost => &mut self.events_lost,
            Fault::EventDoubled => &mut self.events_doubled,
            Fault::Leak => &mut self.leaks,
            Fault::Failure => &mut self.failures,
        };
        *count += 1;
        if self.stories.len() < MAX_STORIES {
            self.stories.push(format!("{fault:?}: {}", story()));
        }
    }

    /// Whether there was any fault.
    pub(super) fn is_bad(&self) -> bool {
        let counts = [
            self.divergences,
            self.events_lost,
            self.events_doubled,
            self.leaks,
            self.failures,
        ];
        counts.iter().any(|&count| count > 0)
    }

    /// The sum of both.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.packets += other.packets;
        self.divergences += other.divergences;
        self.events_lost += other.events_lost;
        self.events_doubled += other.events_doubled;
        self.leaks += other.leaks;
        self.failures += other.failures;
        self.stories.extend(other.stories);
        self.stories.truncate(MAX_STORIES);
        self
    }
}

const MAX_STORIES: usize = 12;
