//! Requests and answers. Both are messages on a reliable channel, so this only numbers requests and
//! detects timeouts.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::bytes::{Reader, write_number};
use crate::time::Time;

/// A request of one connection, made by either end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    pub(crate) number: u64,
    pub(crate) ours: bool,
}

impl RequestId {
    /// The id of a request with a number of the end that makes it; for carriers.
    pub fn new(number: u64, is_ours: bool) -> Self {
        Self {
            number,
            ours: is_ours,
        }
    }

    /// Its number, counted by the end that makes it.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether this end made it.
    pub fn is_ours(&self) -> bool {
        self.ours
    }
}

/// Why a request has no answer.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// No answer arrived in time. A later one is dropped.
    #[error("no answer in time: repeat the request, or go on without")]
    TimedOut,
    /// The connection ended first.
    #[error("the connection ended before an answer came")]
    Closed,
}

crate::debug_as_display!(RequestError);

/// Requests of one end without an answer; for carriers.
#[derive(Default)]
pub struct Requests {
    next: u64,
    open: BTreeMap<u64, Time>,
    deadlines: BTreeSet<(Time, u64)>,
}

impl Requests {
    /// Whether so many are open that no other may be made.
    pub fn is_full(&self) -> bool {
        self.open.len() >= MAX_OPEN
    }

    /// Starts a request that times out at `until`.
    pub fn open(&mut self, until: Time) -> u64 {
        let number = self.next;
        self.next += 1;
        self.open.insert(number, until);
        self.deadlines.insert((until, number));
        number
    }

    /// Ends a request; whether it was open.
    pub fn close(&mut self, number: u64) -> bool {
        let Some(until) = self.open.remove(&number) else {
            return false;
        };
        self.deadlines.remove(&(until, number))
    }

    /// Ends the next request that has timed out.
    pub fn expired(&mut self, now: Time) -> Option<RequestId> {
        let &(until, number) = self.deadlines.first()?;
        (until <= now && self.close(number)).then_some(RequestId { number, ours: true })
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(until, _)| *until)
    }
}

/// The message of a request or an answer.
pub(crate) fn write(number: u64, answer: bool, bytes: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(bytes.len() + 10);
    write_number(&mut message, number << 1 | u64::from(answer));
    message.extend_from_slice(bytes);
    message
}

/// The number, whether it is an answer, and the payload.
pub(crate) fn read(message: &[u8]) -> Option<(u64, bool, &[u8])> {
    let mut reader = Reader::new(message);
    let head = reader.number()?;
    Some((head >> 1, head & 1 == 1, reader.rest()))
}

/// How many requests may be open at a time.
const MAX_OPEN: usize = 1024;
