//! The receiving side of a reliable channel: each message is delivered once, and in order if the
//! channel is ordered.

use std::collections::BTreeMap;

use crate::exchange::Fault;
use crate::frame::{Fragment, MessageFrame};
use crate::ranges::Ranges;
use crate::reassembly::Assembly;
use crate::receive_activity::ReceiveActivity;
use crate::time::Time;

/// The receiving side of a reliable channel.
pub(crate) struct ReliableReceiver {
    ordered: bool,
    /// The number of the first message that is not complete.
    next: u64,
    /// Complete messages after it; if the channel is ordered, their bytes are in `waiting`.
    complete: Ranges,
    waiting: BTreeMap<u64, Vec<u8>>,
    partial: BTreeMap<u64, Partial>,
    /// The activity when message `next` became the one that others wait for.
    stuck: Option<ReceiveActivity>,
    /// Bytes of all waiting and partial messages, and [`MESSAGE_COST`] for each.
    buffered: usize,
    /// Gaps in partial messages.
    gaps: usize,
}

struct Partial {
    assembly: Assembly,
    /// The activity when the last fragment was added.
    touched: ReceiveActivity,
}

/// A point in time, and how many packets had arrived by then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActivityMark {
    pub(crate) now: Time,
    pub(crate) packets: u64,
}

impl ReliableReceiver {
    pub(crate) fn new(ordered: bool) -> Self {
        Self {
            ordered,
            next: 0,
            complete: Ranges::default(),
            waiting: BTreeMap::new(),
            partial: BTreeMap::new(),
            stuck: None,
            buffered: 0,
            gaps: 0,
        }
    }

    /// Handles a message or fragment; messages that are complete and next in order go to `out`. At
    /// most `room` further bytes may be buffered.
    pub(crate) fn handle(
        &mut self,
        piece: &MessageFrame<'_>,
        room: usize,
        activity: &ReceiveActivity,
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
        let limit = self.buffered + room;
        let bytes = match piece.fragment {
            None => Some(piece.bytes.to_vec()),
            Some(fragment) => self.assemble(piece, fragment, limit, activity)?,
        };
        match bytes {
            Some(bytes) => self.finish(piece.number, bytes, limit, activity, out),
            None => Ok(()),
        }
    }

    fn assemble(
        &mut self,
        piece: &MessageFrame<'_>,
        fragment: Fragment,
        limit: usize,
        activity: &ReceiveActivity,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let total = usize::try_from(fragment.total).unwrap_or(usize::MAX);
        let known = self.partial.get(&piece.number);
        let known = known.map(|partial| partial.assembly.total());
        if total > MAX_MESSAGE || known.is_some_and(|known| known != total) {
            return Err(Fault::Violation);
        }
        if known.is_none() {
            if self.buffered + total + MESSAGE_COST > limit {
                return Err(Fault::Violation);
            }
            self.buffered += total + MESSAGE_COST;
        }
        let partial = self.partial.entry(piece.number).or_insert_with(|| Partial {
            assembly: Assembly::new(total),
            touched: *activity,
        });
        self.gaps -= partial.assembly.gaps();
        let added = partial.assembly.add(fragment.offset, piece.bytes);
        self.gaps += partial.assembly.gaps();
        if added? > 0 {
            partial.touched = *activity;
        }
        if !partial.assembly.is_complete() {
            return Ok(None);
        }
        Ok(self.take_partial(piece.number).map(Assembly::into_bytes))
    }

    fn take_partial(&mut self, number: u64) -> Option<Assembly> {
        let assembly = self.partial.remove(&number)?.assembly;
        self.buffered -= assembly.total() + MESSAGE_COST;
        self.gaps -= assembly.gaps();
        Some(assembly)
    }

    fn finish(
        &mut self,
        number: u64,
        bytes: Vec<u8>,
        limit: usize,
        activity: &ReceiveActivity,
        out: &mut Vec<Vec<u8>>,
    ) -> Result<(), Fault> {
        self.take_partial(number);
        if self.ordered && number != self.next {
            if self.buffered + bytes.len() + MESSAGE_COST > limit {
                return Err(Fault::Violation);
            }
            self.buffered += bytes.len() + MESSAGE_COST;
            self.waiting.insert(number, bytes);
        } else {
            out.push(bytes);
        }
        self.complete.insert(number, number + 1);
        if number == self.next {
            self.advance(out);
            self.stuck = None;
        }
        if !self.complete.is_empty() {
            self.stuck.get_or_insert(*activity);
        }
        Ok(())
    }

    /// Moves past everything that is complete.
    fn advance(&mut self, out: &mut Vec<Vec<u8>>) {
        let Some((start, end)) = self.complete.first() else {
            return;
        };
        self.next = end;
        self.complete.remove(start, end);
        while let Some(entry) = self.waiting.first_entry()
            && *entry.key() < end
        {
            let bytes = entry.remove();
            self.buffered -= bytes.len() + MESSAGE_COST;
            out.push(bytes);
        }
    }

    /// Bytes buffered, and [`MESSAGE_COST`] for each message.
    pub(crate) fn buffered(&self) -> usize {
        self.buffered
    }

    /// Gaps in what was received; they take memory, too.
    pub(crate) fn gaps(&self) -> usize {
        self.gaps + self.complete.len()
    }

    /// Whether the other end has left a message incomplete, or left one out, although it had the
    /// time to send it.
    pub(crate) fn is_neglected(&self, activity: &ReceiveActivity, now: Time) -> bool {
        let partial = self.partial.values().map(|partial| &partial.touched);
        let mut since = partial.chain(&self.stuck);
        since.any(|then| activity.had_time_since(then, now))
    }
}

/// How many messages may follow a missing one.
pub(crate) const WINDOW: u64 = 1024;
/// The longest message, including the header of a request.
pub(crate) const MAX_MESSAGE: usize = (1 << 17) + 16;
/// How many bytes all reliable channels together may buffer. With this, the cost of gaps and the
/// limit of unreliable messages, a connection buffers at most 256 KiB of incomplete messages.
pub(crate) const MAX_BUFFERED: usize = 192 << 10;
/// Bytes that a message counts for besides its own; at least the memory to keep track of it.
pub(crate) const MESSAGE_COST: usize = 256;
/// How many gaps all reliable channels together may have. A correct sender has too few packets in
/// flight for more.
pub(crate) const MAX_GAPS: usize = 768;
/// Bytes that a gap takes, in a list that grows by doubling.
pub(crate) const GAP_COST: usize = 32;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn whole(number: u64) -> MessageFrame<'static> {
        MessageFrame {
            channel: 0,
            reliable: true,
            number,
            fragment: None,
            bytes: b"abc",
        }
    }

    fn deliver(receiver: &mut ReliableReceiver, piece: &MessageFrame<'_>) -> Result<usize, Fault> {
        let mut out = Vec::new();
        let room = MAX_BUFFERED - receiver.buffered();
        receiver.handle(piece, room, &ReceiveActivity::default(), &mut out)?;
        Ok(out.len())
    }

    /// Fails if `complete` is not checked, or if an ordered message does not wait.
    #[test]
    fn each_comes_once_and_in_order_where_that_is_wanted() {
        let mut receiver = ReliableReceiver::new(true);
        receiver.next = u64::from(u32::MAX) - 1;
        let base = receiver.next;
        let delivered = [2, 1, 1, 2, 0, 0, 5, 3, 2, 4, 5].map(|number| {
            deliver(&mut receiver, &whole(base + number)).expect("within the window")
        });
        assert_eq!(delivered, [0, 0, 0, 0, 3, 0, 0, 1, 0, 2, 0]);
        assert_eq!(receiver.buffered(), 0);
        let mut receiver = ReliableReceiver::new(false);
        let delivered = [2, 1, 1, 2, 0, 0, 3].map(|number| deliver(&mut receiver, &whole(number)));
        assert_eq!(delivered, [1, 1, 0, 0, 1, 0, 1].map(Ok));
        assert!(receiver.complete.is_empty());
    }

    /// Fails if the window is not checked.
    #[test]
    fn what_lies_too_far_ahead_breaks_the_rules() {
        for ordered in [true, false] {
            let mut receiver = ReliableReceiver::new(ordered);
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

    /// Fails if a message counts for its bytes alone (`MESSAGE_COST` left out of `assemble` or
    /// `finish`), or if incomplete or missing messages are not detected.
    #[test]
    fn a_message_that_is_left_unfinished_is_neglected() {
        let mut receiver = ReliableReceiver::new(true);
        let fragment = Fragment {
            offset: 0,
            total: 10,
        };
        let piece = MessageFrame {
            fragment: Some(fragment),
            ..whole(0)
        };
        deliver(&mut receiver, &piece).expect("sound");
        let (mut activity, mut now) = (ReceiveActivity::default(), Time::default());
        for sequence in 0..10 {
            now = now.after(Duration::from_secs(1));
            activity.note(sequence, now);
        }
        assert!(receiver.is_neglected(&activity, now));
        assert_eq!(receiver.buffered(), 10 + MESSAGE_COST);
        assert_eq!(deliver(&mut receiver, &whole(2)), Ok(0));
        assert_eq!(receiver.buffered(), 10 + 3 + 2 * MESSAGE_COST);
        assert_eq!(receiver.gaps(), 1);
        // The whole message replaces its fragments.
        assert_eq!(deliver(&mut receiver, &whole(0)), Ok(1));
        // Message 1 is missing since before the first activity.
        assert!(receiver.is_neglected(&activity, now));
        assert_eq!(deliver(&mut receiver, &whole(1)), Ok(2));
        assert_eq!((receiver.buffered(), receiver.gaps()), (0, 0));
        assert!(!receiver.is_neglected(&activity, now));
    }
}
