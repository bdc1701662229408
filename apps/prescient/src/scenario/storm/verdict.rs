//! What went wrong in a storm, and where.

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A client shows something that was not so.
    Divergence,
    /// Somebody did not hear of something.
    EventLost,
    /// Somebody heard of something twice.
    EventDoubled,
    /// Somebody learned of what is hidden from them.
    Leak,
    /// Anything else: an honest message refused, a connection lost, no agreement in the end.
    Failure,
}

/// Everything that went wrong.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Datagrams that were sent.
    pub packets: u64,
    pub divergences: u64,
    pub events_lost: u64,
    pub events_doubled: u64,
    pub leaks: u64,
    /// What the others do not count.
    pub failures: u64,
    /// The first few, told to people.
    pub stories: Vec<String>,
}

impl Verdict {
    /// Notes a fault.
    pub fn note(&mut self, fault: Fault, story: impl FnOnce() -> String) {
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

    /// Whether anything went wrong.
    pub fn is_bad(&self) -> bool {
        let counts = [
            self.divergences,
            self.events_lost,
            self.events_doubled,
            self.leaks,
            self.failures,
        ];
        counts.iter().any(|&count| count > 0)
    }

    /// Both.
    pub fn and(mut self, other: Self) -> Self {
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
