//! Messages of which parts are missing.

use std::time::Duration;

use super::Fault;
use super::frame::{Part, Piece};
use super::ranges::Ranges;
use super::receiver::{GAP_COST, MESSAGE_COST};
use crate::time::Time;

/// A message, or a blob, that is being put together.
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

    /// Puts bytes into their place; returns how many were new.
    pub(crate) fn add(&mut self, offset: u64, bytes: &[u8]) -> Result<u64, Fault> {
        let end = offset
            .checked_add(bytes.len() as u64)
            .ok_or(Fault::Violation)?;
        let place = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
        let place = place.and_then(|(start, end)| self.bytes.get_mut(start..end));
        place.ok_or(Fault::Violation)?.copy_from_slice(bytes);
        let new = self.got.insert(offset, end);
        self.received += new;
        // No sender leaves that many gaps; each takes memory that nobody counts.
        if self.got.len() > MOST_GAPS {
            return Err(Fault::Violation);
        }
        Ok(new)
    }

    pub(crate) fn total(&self) -> usize {
        self.bytes.len()
    }

    /// How many gaps there are in what was received.
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

/// Where a message stands among those of its channel: its packet, and its place in that.
pub(crate) type Position = (u64, usize);

/// Unreliable messages of which parts are missing, the oldest first.
#[derive(Default)]
pub(crate) struct Scraps {
    scraps: Vec<Scrap>,
    /// Bytes of all, [`MESSAGE_COST`] for each and [`GAP_COST`] for each gap.
    held: usize,
}

struct Scrap {
    channel: u8,
    number: u64,
    begun: Time,
    position: Option<Position>,
    assembly: Assembly,
}

impl Scrap {
    fn cost(&self) -> usize {
        self.assembly.total() + MESSAGE_COST + self.assembly.gaps() * GAP_COST
    }
}

impl Scraps {
    /// Takes a part of a message; returns the message if nothing is missing any more.
    pub(crate) fn add(
        &mut self,
        piece: &Piece<'_>,
        part: Part,
        position: Position,
        now: Time,
    ) -> Result<Option<(Position, Vec<u8>)>, Fault> {
        let total = usize::try_from(part.total).unwrap_or(usize::MAX);
        if total > LONGEST_UNRELIABLE {
            return Err(Fault::Violation);
        }
        let known = |scrap: &Scrap| (scrap.channel, scrap.number) == (piece.channel, piece.number);
        let place = self.scraps.iter().position(known);
        let place = place.unwrap_or_else(|| self.begin(piece, total, now));
        let scrap = &mut self.scraps[place];
        if scrap.assembly.total() != total {
            return Err(Fault::Violation);
        }
        self.held -= scrap.cost();
        let added = scrap.assembly.add(part.offset, piece.bytes);
        self.held += scrap.cost();
        added?;
        if part.offset == 0 {
            scrap.position = Some(position);
        }
        if !scrap.assembly.is_complete() {
            self.make_room(0);
            return Ok(None);
        }
        let scrap = self.scraps.remove(place);
        self.held -= scrap.cost();
        // Where nothing is missing, the part with offset 0 is not, either.
        let position = scrap.position.unwrap_or(position);
        Ok(Some((position, scrap.assembly.into_bytes())))
    }

    fn begin(&mut self, piece: &Piece<'_>, total: usize, now: Time) -> usize {
        while self.scraps.len() >= MOST_SCRAPS {
            self.drop_oldest();
        }
        self.make_room(total + MESSAGE_COST);
        let scrap = Scrap {
            channel: piece.channel,
            number: piece.number,
            begun: now,
            position: None,
            assembly: Assembly::new(total),
        };
        self.held += scrap.cost();
        self.scraps.push(scrap);
        self.scraps.len() - 1
    }

    fn make_room(&mut self, room: usize) {
        while self.held + room > MOST_BYTES && !self.scraps.is_empty() {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let scrap = self.scraps.remove(0);
        self.held -= scrap.cost();
    }

    /// Frees what has waited for too long.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        while self.deadline().is_some_and(|time| time <= now) {
            self.drop_oldest();
        }
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        Some(self.scraps.first()?.begun.after(LIFETIME))
    }

    /// Bytes held.
    pub(crate) fn held(&self) -> usize {
        self.held
    }
}

/// How long an unreliable message waits for what is missing.
const LIFETIME: Duration = Duration::from_secs(5);
/// The longest unreliable message: nearly thirty packets, all of which must arrive.
pub(crate) const LONGEST_UNRELIABLE: usize = 32 << 10;
/// What all of them may take together while parts are missing.
const MOST_BYTES: usize = 40 << 10;
const MOST_SCRAPS: usize = 32;
const MOST_GAPS: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    fn add(scraps: &mut Scraps, number: u64, offset: u64, total: u64, now: Time) -> bool {
        let piece = Piece {
            channel: 2,
            reliable: false,
            number,
            part: None,
            bytes: &[number as u8; 10],
        };
        let part = Part { offset, total };
        let added = scraps.add(&piece, part, (0, 0), now);
        added.expect("sound").is_some()
    }

    /// Case 28. Fails if the oldest is not dropped for a new one, or nothing after five seconds.
    #[test]
    fn parts_without_end_hold_little_and_not_for_long() {
        let mut scraps = Scraps::default();
        let mut now = Time::from_micros(0);
        for number in 0..10_000 {
            add(&mut scraps, number, 0, 20 + number % 30_000, now);
            assert!(scraps.held() <= MOST_BYTES && scraps.scraps.len() <= MOST_SCRAPS);
        }
        assert!(scraps.held() > 0);
        now = now.after(LIFETIME);
        assert_eq!(scraps.deadline(), Some(now));
        scraps.handle_timeout(now);
        assert_eq!((scraps.held(), scraps.scraps.len()), (0, 0));
        assert!(!add(&mut scraps, 1, 10, 20, now));
        assert!(add(&mut scraps, 1, 0, 20, now));
        assert_eq!(scraps.held(), 0);
    }

    /// Fails if a second length of the same message is believed, or gaps are not counted.
    #[test]
    fn contradictions_are_refused() {
        let mut scraps = Scraps::default();
        let now = Time::default();
        assert!(!add(&mut scraps, 1, 0, 100, now));
        let piece = Piece {
            channel: 2,
            reliable: false,
            number: 1,
            part: None,
            bytes: &[1],
        };
        let longer = Part {
            offset: 50,
            total: 101,
        };
        assert_eq!(
            scraps.add(&piece, longer, (0, 0), now),
            Err(Fault::Violation)
        );
        let mut sieve = Assembly::new(100_000);
        let refused = (0..50_000).find_map(|place| sieve.add(2 * place, &[1]).err());
        assert_eq!(refused, Some(Fault::Violation));
        assert!(sieve.add(100_000, &[1]).is_err());
        assert!(sieve.add(u64::MAX, &[1]).is_err());
    }
}
