//! The bottleneck of a link: a queue that drains at a rate.
//!
//! Work is counted in millionths of a bit (one bit per second times one microsecond), so a constant
//! rate is exact. Only departure times are rounded, up, and the next datagram gets the rounded part
//! back.

use std::collections::VecDeque;

use crate::{OPPORTUNITY_BYTES, Rate, Time};

/// A FIFO queue.
#[derive(Clone, Debug)]
pub(super) struct Bottleneck<T> {
    queue: VecDeque<Waiting<T>>,
    /// Bytes of all entries but the first.
    waiting: usize,
    /// Work left for the first entry at `since`; negative if the last departure was rounded up or
    /// did not use its whole opportunity.
    left: i128,
    since: Time,
    /// Number of the first unused opportunity of a recorded link.
    opportunity: u64,
}

/// An entry of the queue.
#[derive(Clone, Debug)]
pub(super) struct Waiting<T> {
    pub sent: Time,
    pub size: usize,
    pub item: T,
}

impl<T> Bottleneck<T> {
    pub(super) fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            waiting: 0,
            left: 0,
            since: Time::ZERO,
            opportunity: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Bytes waiting behind the entry being sent.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting
    }

    /// Appends an entry, or returns it if more than `limit` bytes would wait. All departures up to
    /// now must have been handled.
    pub(super) fn push(
        &mut self,
        entry: Waiting<T>,
        rate: &Rate,
        limit: Option<usize>,
    ) -> Result<(), Waiting<T>> {
        if self.queue.is_empty() {
            self.left = work(entry.size);
            self.start(entry.sent, rate);
        } else {
            let waiting = self.waiting.saturating_add(entry.size);
            if limit.is_some_and(|limit| waiting > limit) {
                return Err(entry);
            }
            self.waiting = waiting;
        }
        self.queue.push_back(entry);
        Ok(())
    }

    /// Departure time of the first entry; `None` if there is none or it never departs.
    pub(super) fn next_departure(&self, rate: &Rate) -> Option<Time> {
        self.queue.front()?;
        if self.left <= 0 {
            return Some(self.since);
        }
        match rate {
            Rate::Unlimited => Some(self.since),
            Rate::Constant(0) => None,
            Rate::Constant(bits_per_second) => {
                let rate = i128::from(*bits_per_second);
                let wait = (self.left + rate - 1) / rate;
                let at = i128::from(self.since.as_micros()) + wait;
                u64::try_from(at).ok().map(Time::from_micros)
            }
            Rate::Recorded(link) => {
                let last = self
                    .opportunity
                    .saturating_add(self.opportunities_needed() - 1);
                Some(link.opportunity(last))
            }
        }
    }

    /// Removes the first entry at the time of [`next_departure`](Self::next_departure).
    pub(super) fn depart(&mut self, at: Time, rate: &Rate) -> Option<Waiting<T>> {
        let departed = self.queue.pop_front()?;
        match rate {
            Rate::Unlimited => self.left = 0,
            Rate::Constant(bits_per_second) => {
                self.left -= i128::from(*bits_per_second) * passed(self.since, at);
            }
            Rate::Recorded(_) if self.left > 0 => {
                let needed = self.opportunities_needed();
                self.left -= i128::from(needed) * work(OPPORTUNITY_BYTES);
                self.opportunity = self.opportunity.saturating_add(needed);
            }
            Rate::Recorded(_) => {}
        }
        self.since = at;
        if let Some(next) = self.queue.front() {
            self.waiting = self.waiting.saturating_sub(next.size);
            self.left += work(next.size);
        }
        Some(departed)
    }

    /// Replaces the rate at `now`; the work done for the first entry is kept.
    pub(super) fn change_rate(&mut self, now: Time, old: &Rate, new: &Rate) {
        match old {
            _ if self.queue.is_empty() => {}
            Rate::Unlimited => {}
            Rate::Constant(bits_per_second) => {
                self.left -= i128::from(*bits_per_second) * passed(self.since, now);
            }
            Rate::Recorded(link) => {
                let used = link.opportunities_until(now);
                let used = used.saturating_sub(self.opportunity);
                self.left -= i128::from(used) * work(OPPORTUNITY_BYTES);
            }
        }
        self.left = self.left.max(0);
        self.start(now, new);
    }

    fn start(&mut self, now: Time, rate: &Rate) {
        self.since = now;
        if let Rate::Recorded(link) = rate {
            self.opportunity = link.opportunities_until(now);
        }
    }

    /// Opportunities needed for the rest of the first entry, which must not be empty.
    fn opportunities_needed(&self) -> u64 {
        let each = work(OPPORTUNITY_BYTES);
        u64::try_from((self.left + each - 1) / each).unwrap_or(u64::MAX)
    }
}

fn work(bytes: usize) -> i128 {
    bytes as i128 * 8 * 1_000_000
}

fn passed(since: Time, now: Time) -> i128 {
    i128::from(now.as_micros().saturating_sub(since.as_micros()))
}
