//! The version-floored event cache: short-lived things such as projectiles, of which a consumer needs all
//! since the last one that it got.

use std::collections::VecDeque;

use crate::error::DecodeError;
use crate::tlv::{self, Reader};

/// The longest event in bytes, for [`write_events`].
pub const MAX_EVENT: usize = 1 << 20;

/// The most recent events. Every event is one version of the topic: [publish](crate::Producer::publish) once
/// for each.
///
/// Consumers that fell further behind than the capacity miss the oldest events. Choose it as the longest life
/// of an event times the highest rate of events.
#[derive(Clone, Debug)]
pub struct EventCache<E> {
    events: VecDeque<E>,
    capacity: usize,
    /// The version of the next event.
    next: u64,
}

impl<E> EventCache<E> {
    /// A cache of at most `capacity` events, at least one; `first` is the version of the first event.
    pub fn new(capacity: usize, first: u64) -> Self {
        Self {
            events: VecDeque::new(),
            capacity: capacity.max(1),
            next: first,
        }
    }

    /// Adds an event and returns its version.
    pub fn push(&mut self, event: E) -> u64 {
        if self.events.len() == self.capacity {
            self.events.pop_front();
        }
        self.events.push_back(event);
        self.next += 1;
        self.next - 1
    }

    /// The version of the newest event; `None` if there was none yet.
    pub fn newest(&self) -> Option<u64> {
        (!self.events.is_empty()).then(|| self.next - 1)
    }

    /// All events from a version on, the oldest first: all that there are if the version is older than the
    /// oldest, and none if it is yet to come.
    pub fn since(&self, floor: u64) -> impl Iterator<Item = (u64, &E)> {
        let oldest = self.next - self.events.len() as u64;
        let skipped = floor.saturating_sub(oldest).min(self.events.len() as u64);
        let versions = oldest + skipped..;
        versions.zip(self.events.range(skipped as usize..))
    }
}

/// Encodes the events that a consumer at a floor lacks. Events longer than [`MAX_EVENT`] are left out.
pub fn write_events<'a>(events: impl Iterator<Item = &'a [u8]>, bytes: &mut Vec<u8>) {
    for event in events.filter(|event| event.len() <= MAX_EVENT) {
        tlv::write_number(bytes, event.len() as u64);
        bytes.extend_from_slice(event);
    }
}

/// Decodes what [`write_events`] wrote.
pub fn read_events(bytes: &[u8]) -> Result<Vec<&[u8]>, DecodeError> {
    let mut events = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let mut reader = Reader::new(rest);
        let length = reader.number()?;
        let after = &rest[rest.len() - reader.left()..];
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > MAX_EVENT {
            return Err(DecodeError::TooLong {
                length,
                limit: MAX_EVENT,
            });
        }
        let (event, after) = after
            .split_at_checked(length)
            .ok_or(DecodeError::Truncated)?;
        events.push(event);
        rest = after;
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if `since` does not clamp the floor to the oldest event, or counts the newest as missing.
    #[test]
    fn a_consumer_gets_the_events_since_its_floor() {
        let mut cache = EventCache::new(3, 10);
        assert_eq!(cache.newest(), None);
        for event in ["a", "b", "c", "d"] {
            cache.push(event);
        }
        let since = |floor| cache.since(floor).map(|(version, event)| (version, *event));
        assert_eq!(
            since(0).collect::<Vec<_>>(),
            [(11, "b"), (12, "c"), (13, "d")]
        );
        assert_eq!(since(13).collect::<Vec<_>>(), [(13, "d")]);
        assert_eq!(since(14).count(), 0);
        assert_eq!(since(u64::MAX).count(), 0);
        assert_eq!(cache.newest(), Some(13));
    }

    /// Fails if `read_events` does not check the length against the rest.
    #[test]
    fn events_come_back_and_truncated_ones_are_refused() {
        let events = [&b"shot"[..], b"", &[7; 300]];
        let mut bytes = Vec::new();
        write_events(events.into_iter(), &mut bytes);
        assert_eq!(read_events(&bytes), Ok(events.to_vec()));
        for end in 1..bytes.len() {
            if let Ok(read) = read_events(&bytes[..end]) {
                assert!(read.len() < events.len());
            }
        }
        assert!(read_events(&[0xff; 9]).is_err());
    }
}
