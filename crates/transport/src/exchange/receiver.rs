//! Reliable messages of one channel, in: each once, and in order where that is wanted.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Fault;
use super::fragment::Assembly;
use super::frame::{Part, Piece};
use super::ranges::Ranges;
use crate::time::Time;

/// The receiving end of a reliable channel.
pub(crate) struct Receiver {
    ordered: bool,
    /// The first message that is not complete.
    next: u64,
    /// Complete ones after it: with their bytes if they wait for their turn.
    complete: Ranges,
    waiting: BTreeMap<u64, Vec<u8>>,
    partial: BTreeMap<u64, Partial>,
    /// Bytes of all that wait and all that are partial.
    held: usize,
}

struct Partial {
    assembly: Assembly,
    /// When something was added last, and how many packets had arrived by then.
    touched: Moment,
}

/// A moment, and how many packets had arrived by then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now: Time,
    pub(crate) packets: u64,
}

impl Receiver {
    pub(crate) fn new(ordered: bool) -> Self {
        Self {
            ordered,
            next: 0,
            complete: Ranges::default(),
            waiting: BTreeMap::new(),
            partial: BTreeMap::new(),
            held: 0,
        }
    }

    /// Takes a message or a part of one; what is complete and whose turn it is goes to `out`. No
    /// more than `room` further bytes may be held.
    pub(crate) fn handle(
        &mut self,
        piece: &Piece<'_>,
        room: usize,
        moment: Moment,
        out: &mut Vec<Vec<u8>>,
    ) -> Result<(), Fault> {
        let Some(ahead) = piece.number.checked_sub(self.next) else {
            return Ok(());
        };
        if ahead >= WINDOW {
            return Err(Fault::Violation);
        }
        if self.complete.contains(piece.number) {
            return Ok(());
        }
        let bytes = match piece.part {
            None => Some(piece.bytes.to_vec()),
            Some(part) => self.assemble(piece, part, room, moment)?,
        };
        match bytes {
            Some(bytes) => self.finish(piece.number, bytes, room, out),
            None => Ok(()),
        }
    }

    fn assemble(
        &mut self,
        piece: &Piece<'_>,
        part: Part,
        room: usize,
        moment: Moment,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let total = usize::try_from(part.total).unwrap_or(usize::MAX);
        let known = self.partial.get(&piece.number);
        let known = known.map(|partial| partial.assembly.total());
        if total > LONGEST || known.is_some_and(|known| known != total) {
            return Err(Fault::Violation);
        }
        if known.is_none() {
            if total > room {
                return Err(Fault::Violation);
            }
            self.held += total;
        }
        let partial = self.partial.entry(piece.number).or_insert_with(|| Partial {
            assembly: Assembly::new(total),
            touched: moment,
        });
        if partial.assembly.add(part.offset, piece.bytes)? > 0 {
            partial.touched = moment;
        }
        if !partial.assembly.is_complete() {
            return Ok(None);
        }
        let partial = self.partial.remove(&piece.number);
        self.held -= total;
        Ok(partial.map(|partial| partial.assembly.into_bytes()))
    }

    fn finish(
        &mut self,
        number: u64,
        bytes: Vec<u8>,
        room: usize,
        out: &mut Vec<Vec<u8>>,
    ) -> Result<(), Fault> {
        if let Some(partial) = self.partial.remove(&number) {
            self.held -= partial.assembly.total();
        }
        if self.ordered && number != self.next {
            if bytes.len() > room {
                return Err(Fault::Violation);
            }
            self.held += bytes.len();
            self.waiting.insert(number, bytes);
        } else {
            out.push(bytes);
        }
        self.complete.insert(number, number + 1);
        if number == self.next {
            self.go_on(out);
        }
        Ok(())
    }

    /// Moves past everything that is complete.
    fn go_on(&mut self, out: &mut Vec<Vec<u8>>) {
        let Some((start, end)) = self.complete.first() else {
            return;
        };
        self.next = end;
        self.complete.remove(start, end);
        while let Some(entry) = self.waiting.first_entry()
            && *entry.key() < end
        {
            let bytes = entry.remove();
            self.held -= bytes.len();
            out.push(bytes);
        }
    }

    /// Bytes held.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Whether the other end has left a message unfinished although it has said much since. In a
    /// blackout nothing is said.
    pub(crate) fn is_neglected(&self, moment: Moment) -> bool {
        self.partial.values().any(|partial| {
            let touched = partial.touched;
            moment.now.since(touched.now) >= PATIENCE && moment.packets - touched.packets >= MANY
        })
    }
}

/// How many messages may follow one that is missing.
pub(crate) const WINDOW: u64 = 1024;
/// The longest message, with what requests put before it.
pub(crate) const LONGEST: usize = (1 << 17) + 16;
/// How many bytes all reliable channels may have to hold together.
pub(crate) const MOST_HELD: usize = 192 << 10;
const PATIENCE: Duration = Duration::from_secs(5);
const MANY: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(number: u64) -> Piece<'static> {
        Piece {
            channel: 0,
            reliable: true,
            number,
            part: None,
            bytes: b"abc",
        }
    }

    fn moment(seconds: u64, packets: u64) -> Moment {
        Moment {
            now: Time::from_micros(seconds * 1_000_000),
            packets,
        }
    }

    fn deliver(receiver: &mut Receiver, piece: &Piece<'_>) -> Result<usize, Fault> {
        let mut out = Vec::new();
        let room = MOST_HELD - receiver.held();
        receiver.handle(piece, room, moment(0, 0), &mut out)?;
        Ok(out.len())
    }

    /// Fails if `complete` is not asked, or an ordered message does not wait.
    #[test]
    fn each_comes_once_and_in_order_where_that_is_wanted() {
        let mut receiver = Receiver::new(true);
        receiver.next = u64::from(u32::MAX) - 1;
        let base = receiver.next;
        let delivered = [2, 1, 1, 2, 0, 0, 5, 3, 2, 4, 5].map(|number| {
            deliver(&mut receiver, &whole(base + number)).expect("within the window")
        });
        assert_eq!(delivered, [0, 0, 0, 0, 3, 0, 0, 1, 0, 2, 0]);
        assert_eq!(receiver.held(), 0);
        let mut receiver = Receiver::new(false);
        let delivered = [2, 1, 1, 2, 0, 0, 3].map(|number| deliver(&mut receiver, &whole(number)));
        assert_eq!(delivered, [1, 1, 0, 0, 1, 0, 1].map(Ok));
        assert!(receiver.complete.is_empty());
    }

    /// Fails if the window is not looked at.
    #[test]
    fn what_lies_too_far_ahead_breaks_the_rules() {
        for ordered in [true, false] {
            let mut receiver = Receiver::new(ordered);
            assert!(deliver(&mut receiver, &whole(WINDOW - 1)).is_ok());
            assert_eq!(
                deliver(&mut receiver, &whole(WINDOW)),
                Err(Fault::Violation)
            );
            assert_eq!(
                deliver(&mut receiver, &whole(u64::MAX)),
                Err(Fault::Violation)
            );
        }
    }

    /// Fails if time alone, or talk alone, counts as neglect.
    #[test]
    fn a_blackout_is_no_neglect() {
        let mut receiver = Receiver::new(true);
        let part = Part {
            offset: 0,
            total: 10,
        };
        let piece = Piece {
            part: Some(part),
            ..whole(0)
        };
        deliver(&mut receiver, &piece).expect("sound");
        assert!(!receiver.is_neglected(moment(1000, MANY - 1)));
        assert!(!receiver.is_neglected(moment(4, 1 << 20)));
        assert!(receiver.is_neglected(moment(5, MANY)));
        assert_eq!(receiver.held(), 10);
        // The whole message does as well as its parts.
        assert_eq!(deliver(&mut receiver, &whole(0)), Ok(1));
        assert_eq!(receiver.held(), 0);
        assert!(!receiver.is_neglected(moment(5, MANY)));
    }
}
