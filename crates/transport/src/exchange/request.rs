//! Questions and answers. Both are messages of a reliable channel, so all that is left to do is to
//! number questions and to notice that an answer takes too long.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::bytes::{Reader, write_number};
use crate::time::Time;

/// A request of one connection, of this end or of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    pub(crate) number: u64,
    pub(crate) ours: bool,
}

/// Why there is no answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// None came in time. One that still comes is dropped.
    #[error("no answer in time: ask again, or go on without")]
    TimedOut,
    /// The connection ended first.
    #[error("the connection ended before an answer came")]
    Closed,
}

/// Our requests that are not answered yet.
#[derive(Default)]
pub(crate) struct Requests {
    next: u64,
    open: BTreeMap<u64, Time>,
    deadlines: BTreeSet<(Time, u64)>,
}

impl Requests {
    pub(crate) fn is_full(&self) -> bool {
        self.open.len() >= MAX_OPEN
    }

    /// A new request, to be answered until then.
    pub(crate) fn open(&mut self, until: Time) -> u64 {
        let number = self.next;
        self.next += 1;
        self.open.insert(number, until);
        self.deadlines.insert((until, number));
        number
    }

    /// Whether an answer to this request was awaited; it is no longer.
    pub(crate) fn close(&mut self, number: u64) -> bool {
        let Some(until) = self.open.remove(&number) else {
            return false;
        };
        self.deadlines.remove(&(until, number))
    }

    /// The next one that waited for too long.
    pub(crate) fn expired(&mut self, now: Time) -> Option<RequestId> {
        let &(until, number) = self.deadlines.first()?;
        (until <= now && self.close(number)).then_some(RequestId { number, ours: true })
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(until, _)| *until)
    }
}

/// The message that carries a question or an answer.
pub(crate) fn write(number: u64, answer: bool, bytes: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(bytes.len() + 10);
    write_number(&mut message, number << 1 | u64::from(answer));
    message.extend_from_slice(bytes);
    message
}

/// The number, whether it is an answer, and what it says.
pub(crate) fn read(message: &[u8]) -> Option<(u64, bool, &[u8])> {
    let mut reader = Reader::new(message);
    let head = reader.number()?;
    Some((head >> 1, head & 1 == 1, reader.rest()))
}

/// How many requests may be open at a time.
const MAX_OPEN: usize = 1024;
