//! Reassembly of fragmented messages.

use std::time::Duration;

use crate::exchange::Fault;
use crate::frame::{Fragment, MessageFrame};
use crate::ranges::Ranges;
use crate::receiver::{GAP_COST, MESSAGE_COST};
use crate::time::Time;

/// A message or blob that is being reassembled.
#[derive(Debug)]
pub(crate) struct Assembly {
    bytes: Vec<u8>,
    got: Ranges,
    received: u64,
}

impl Assembly {
    pub(crate) fn new(total: usize) -> Self {
        Self {
            bytes: vec![0; total],
            got: Ranges::default(),
            received: 0,
        }
    }

    /// Copies bytes to their offset; returns how many were new.
    pub(crate) fn add(&mut self, offset: u64, bytes: &[u8]) -> Result<u64, Fault> {
        let end = offset
            .checked_add(bytes.len() as u64)
            .ok_or(Fault::Violation)?;
        let place = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
        let place = place.and_then(|(start, end)| self.bytes.get_mut(start..end));
        place.ok_or(Fault::Violation)?.copy_from_slice(bytes);
        let new = self.got.insert(offset, end);
        self.received += new;
        // No correct sender causes that many gaps, and each takes memory that is not counted.
        if self.got.len() > MAX_GAPS {
            return Err(Fault::Violation);
        }
        Ok(new)
    }

    pub(crate) fn total(&self) -> usize {
        self.bytes.len()
    }

    /// The number of gaps in what was received.
    pub(crate) fn gaps(&self) -> usize {
        self.got.len().saturating_sub(1)
    }

    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.received == self.bytes.len() as u64
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The order of a message in its channel: packet number, and index in the packet.
pub(crate) type Position = (u64, usize);

/// Unreliable messages with missing fragments, the oldest first.
#[derive(Default)]
pub(crate) struct Reassembly {
    messages: Vec<PartialMessage>,
    /// Bytes of all messages, [`MESSAGE_COST`] for each and [`GAP_COST`] for each gap.
    buffered: usize,
}

struct PartialMessage {
    channel: u8,
    number: u64,
    begun: Time,
    position: Option<Position>,
    assembly: Assembly,
}

impl PartialMessage {
    fn cost(&self) -> usize {
        self.assembly.total() + MESSAGE_COST + self.assembly.gaps() * GAP_COST
    }
}

impl Reassembly {
    /// Handles a fragment; returns the message once it is complete.
    pub(crate) fn add(
        &mut self,
        piece: &MessageFrame<'_>,
        fragment: Fragment,
        position: Position,
        now: Time,
    ) -> Result<Option<(Position, Vec<u8>)>, Fault> {
        let total = usize::try_from(fragment.total).unwrap_or(usize::MAX);
        if total > MAX_UNRELIABLE {
            return Err(Fault::Violation);
        }
        let known = |message: &PartialMessage| {
            (message.channel, message.number) == (piece.channel, piece.number)
        };
        let place = self.messages.iter().position(known);
        let place = place.unwrap_or_else(|| self.begin(piece, total, now));
        let message = &mut self.messages[place];
        if message.assembly.total() != total {
            return Err(Fault::Violation);
        }
        self.buffered -= message.cost();
        let added = message.assembly.add(fragment.offset, piece.bytes);
        self.buffered += message.cost();
        added?;
        if fragment.offset == 0 {
            message.position = Some(position);
        }
        if !message.assembly.is_complete() {
            self.make_room(0);
            return Ok(None);
        }
        let message = self.messages.remove(place);
        self.buffered -= message.cost();
        // A complete message has its fragment with offset 0, which set the position.
        let position = message.position.unwrap_or(position);
        Ok(Some((position, message.assembly.into_bytes())))
    }

    fn begin(&mut self, piece: &MessageFrame<'_>, total: usize, now: Time) -> usize {
        while self.messages.len() >= MAX_PARTIAL_MESSAGES {
            self.drop_oldest();
        }
        self.make_room(total + MESSAGE_COST);
        let message = PartialMessage {
            channel: piece.channel,
            number: piece.number,
            begun: now,
            position: None,
            assembly: Assembly::new(total),
        };
        self.buffered += message.cost();
        self.messages.push(message);
        self.messages.len() - 1
    }

    fn make_room(&mut self, room: usize) {
        while self.buffered + room > MAX_BYTES && !self.messages.is_empty() {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let message = self.messages.remove(0);
        self.buffered -= message.cost();
    }

    /// Drops messages that have waited for too long.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        while self.deadline().is_some_and(|time| time <= now) {
            self.drop_oldest();
        }
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        Some(self.messages.first()?.begun.after(LIFETIME))
    }

    pub(crate) fn buffered(&self) -> usize {
        self.buffered
    }
}

/// How long an unreliable message waits for missing fragments.
const LIFETIME: Duration = Duration::from_secs(5);
/// The longest unreliable message: nearly thirty packets, all of which must arrive.
pub(crate) const MAX_UNRELIABLE: usize = 32 << 10;
/// The limit of bytes for all incomplete unreliable messages together.
const MAX_BYTES: usize = 40 << 10;
const MAX_PARTIAL_MESSAGES: usize = 32;
const MAX_GAPS: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    fn add(reassembly: &mut Reassembly, number: u64, offset: u64, total: u64, now: Time) -> bool {
        let piece = MessageFrame {
            channel: 2,
            reliable: false,
            number,
            fragment: None,
            bytes: &[number as u8; 10],
        };
        let fragment = Fragment { offset, total };
        let added = reassembly.add(&piece, fragment, (0, 0), now);
        added.expect("sound").is_some()
    }

    /// Case 28. Fails if the oldest message is not dropped for a new one, or none after five
    /// seconds.
    #[test]
    fn parts_without_end_hold_little_and_not_for_long() {
        let mut reassembly = Reassembly::default();
        let mut now = Time::from_micros(0);
        for number in 0..10_000 {
            add(&mut reassembly, number, 0, 20 + number % 30_000, now);
            assert!(
                reassembly.buffered() <= MAX_BYTES
                    && reassembly.messages.len() <= MAX_PARTIAL_MESSAGES
            );
        }
        assert!(reassembly.buffered() > 0);
        now = now.after(LIFETIME);
        assert_eq!(reassembly.deadline(), Some(now));
        reassembly.handle_timeout(now);
        assert_eq!((reassembly.buffered(), reassembly.messages.len()), (0, 0));
        assert!(!add(&mut reassembly, 1, 10, 20, now));
        assert!(add(&mut reassembly, 1, 0, 20, now));
        assert_eq!(reassembly.buffered(), 0);
    }

    /// Fails if another length of the same message is accepted, or if gaps are not counted.
    #[test]
    fn contradictions_are_refused() {
        let mut reassembly = Reassembly::default();
        let now = Time::default();
        assert!(!add(&mut reassembly, 1, 0, 100, now));
        let piece = MessageFrame {
            channel: 2,
            reliable: false,
            number: 1,
            fragment: None,
            bytes: &[1],
        };
        let longer = Fragment {
            offset: 50,
            total: 101,
        };
        assert_eq!(
            reassembly.add(&piece, longer, (0, 0), now),
            Err(Fault::Violation)
        );
        let mut sieve = Assembly::new(100_000);
        let refused = (0..50_000).find_map(|place| sieve.add(2 * place, &[1]).err());
        assert_eq!(refused, Some(Fault::Violation));
        assert!(sieve.add(100_000, &[1]).is_err());
        assert!(sieve.add(u64::MAX, &[1]).is_err());
    }
}
