//! Minima and maxima over the last seconds.

use std::time::Duration;

use crate::time::Time;

/// The least of the values of the last one to two spans.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowedMin {
    span: Duration,
    /// Of the present span, which began then, and of the one before.
    recent: Option<(Time, u64)>,
    before: Option<u64>,
}

impl WindowedMin {
    pub(super) fn new(span: Duration) -> Self {
        Self {
            span,
            recent: None,
            before: None,
        }
    }

    /// Adds a value and returns the least.
    pub(super) fn note(&mut self, value: u64, now: Time) -> u64 {
        let recent = match self.recent {
            Some((since, least)) if now.since(since) < self.span => (since, least.min(value)),
            Some((since, least)) => {
                // A span without values says nothing about the one before it.
                let is_next = now.since(since) < self.span * 2;
                self.before = is_next.then_some(least);
                (now, value)
            }
            None => (now, value),
        };
        self.recent = Some(recent);
        self.before.map_or(recent.1, |before| before.min(recent.1))
    }

    pub(super) fn get(&self) -> Option<u64> {
        let recent = self.recent.map(|(_, least)| least);
        self.before.into_iter().chain(recent).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the span before is forgotten at once (`before` left out of `note`), or never
    /// (`is_next` always true).
    #[test]
    fn minima_last_one_to_two_spans() {
        let second = Duration::from_secs(1);
        let at = |millis: u64| Time::from_micros(millis * 1000);
        let mut least = WindowedMin::new(second);
        assert_eq!(least.note(5, at(0)), 5);
        assert_eq!(least.note(7, at(999)), 5);
        assert_eq!(least.note(8, at(1000)), 5);
        assert_eq!(least.note(9, at(2000)), 8);
        assert_eq!(least.note(20, at(9000)), 20);
    }
}
