//! The sending side of a channel: the queue of messages, fragmented where they do not fit a packet.

use std::collections::{BTreeSet, VecDeque};

use crate::frame::{Body, Fragment, MessageFrame};
use crate::in_flight::ReliableContent;
use crate::packet_buffer::PacketBuffer;
use crate::ranges::Ranges;
use crate::receiver::{MESSAGE_COST, WINDOW};

/// The result of an attempt to add something to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    /// Something was added.
    Something,
    /// There is nothing to add, or not yet.
    Nothing,
    /// There is something to add, but it did not fit.
    NoRoom,
}

/// The sending side of a reliable channel.
pub(crate) struct ReliableSender {
    channel: u8,
    /// Messages, from the first that is not acknowledged.
    queue: VecDeque<Outgoing>,
    /// The number of the first message in the queue.
    first: u64,
    /// How many messages of the queue were sent at least in part.
    begun: usize,
    /// Messages of which something has to be sent again.
    lost: BTreeSet<u64>,
    /// Bytes of the messages that were begun, and [`MESSAGE_COST`] for each: what the other end may
    /// have to buffer.
    exposed: usize,
    /// Bytes of all messages, with their cost.
    waiting: usize,
}

struct Outgoing {
    bytes: Vec<u8>,
    /// Everything before this offset was sent at least once.
    sent: u64,
    lost: Ranges,
    acknowledged: Ranges,
}

impl Outgoing {
    /// The length, but 1 for an empty message, so that it can be sent and acknowledged, too.
    fn places(&self) -> u64 {
        places(&self.bytes)
    }

    fn is_acknowledged(&self) -> bool {
        self.acknowledged.first() == Some((0, self.places()))
    }
}

impl ReliableSender {
    pub(crate) fn new(channel: u8) -> Self {
        Self {
            channel,
            queue: VecDeque::new(),
            first: 0,
            begun: 0,
            lost: BTreeSet::new(),
            exposed: 0,
            waiting: 0,
        }
    }

    pub(crate) fn push(&mut self, bytes: Vec<u8>) {
        self.waiting += cost(&bytes);
        self.queue.push_back(Outgoing {
            bytes,
            sent: 0,
            lost: Ranges::default(),
            acknowledged: Ranges::default(),
        });
    }

    /// Adds a message or fragment to a packet: lost ones first, then the rest of the message that
    /// was begun, then the next one if the other end has `room` for it.
    pub(crate) fn write(
        &mut self,
        body: &mut Body,
        room: usize,
        reliable: &mut Vec<ReliableContent>,
    ) -> WriteOutcome {
        let Some((place, start, end)) = self.next(room) else {
            return WriteOutcome::Nothing;
        };
        let number = self.first + place as u64;
        let message = &mut self.queue[place];
        let piece = Cut {
            channel: self.channel,
            reliable: true,
            number,
        };
        let Some(end) = piece.write(&message.bytes, start, end, body) else {
            return WriteOutcome::NoRoom;
        };
        message.lost.remove(start, end);
        message.sent = message.sent.max(end);
        if message.lost.is_empty() {
            self.lost.remove(&number);
        }
        if place == self.begun {
            self.begun += 1;
            self.exposed += message.bytes.len() + MESSAGE_COST;
        }
        reliable.push(ReliableContent::Message {
            channel: self.channel,
            number,
            start,
            end,
        });
        WriteOutcome::Something
    }

    /// Whether there is nothing to send or retransmit.
    pub(crate) fn is_idle(&self) -> bool {
        self.next(usize::MAX).is_none()
    }

    /// The next fragment to send: index in the queue, start and end.
    fn next(&self, room: usize) -> Option<(usize, u64, u64)> {
        if let Some(number) = self.lost.first() {
            let place = (number - self.first) as usize;
            let (start, end) = self.queue.get(place)?.lost.first()?;
            return Some((place, start, end));
        }
        if let Some(place) = self.begun.checked_sub(1) {
            let message = &self.queue[place];
            if message.sent < message.places() {
                return Some((place, message.sent, message.places()));
            }
        }
        let message = self.queue.get(self.begun)?;
        let allowed = message.bytes.len() + MESSAGE_COST <= room && (self.begun as u64) < WINDOW;
        allowed.then(|| (self.begun, 0, message.places()))
    }

    pub(crate) fn acknowledged(&mut self, number: u64, start: u64, end: u64) {
        let Some(message) = self.message(number) else {
            return;
        };
        message.acknowledged.insert(start, end);
        message.lost.remove(start, end);
        if message.lost.is_empty() {
            self.lost.remove(&number);
        }
        while let Some(message) = self.queue.front()
            && message.is_acknowledged()
        {
            self.exposed -= message.bytes.len() + MESSAGE_COST;
            self.waiting -= cost(&message.bytes);
            self.begun -= 1;
            self.first += 1;
            self.queue.pop_front();
        }
    }

    /// Retransmits what was not acknowledged by another packet meanwhile.
    pub(crate) fn lost(&mut self, number: u64, start: u64, end: u64) {
        let Some(message) = self.message(number) else {
            return;
        };
        message.lost.insert(start, end);
        for (start, end) in message.acknowledged.iter() {
            message.lost.remove(start, end);
        }
        if !message.lost.is_empty() {
            self.lost.insert(number);
        }
    }

    fn message(&mut self, number: u64) -> Option<&mut Outgoing> {
        let place = number.checked_sub(self.first)?;
        self.queue.get_mut(usize::try_from(place).ok()?)
    }

    /// What the other end may have to buffer.
    pub(crate) fn exposed(&self) -> usize {
        self.exposed
    }

    /// Bytes not acknowledged yet, and the cost of keeping track of them.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    #[cfg(test)]
    pub(crate) fn start_at(&mut self, first: u64) {
        self.first = first;
    }
}

/// The sending side of an unreliable channel.
pub(crate) struct UnreliableSender {
    channel: u8,
    queue: VecDeque<PacketBuffer>,
    /// How many bytes of the first message were sent.
    sent: u64,
    /// The number of the next message that is fragmented.
    number: u64,
    waiting: usize,
}

impl UnreliableSender {
    pub(crate) fn new(channel: u8) -> Self {
        Self {
            channel,
            queue: VecDeque::new(),
            sent: 0,
            number: 0,
            waiting: 0,
        }
    }

    pub(crate) fn push(&mut self, bytes: PacketBuffer) {
        self.waiting += cost(&bytes);
        self.queue.push_back(bytes);
    }

    /// Whether the first message is sent in part.
    pub(crate) fn is_cutting(&self) -> bool {
        self.sent > 0
    }

    /// Adds a message, or a fragment if a message is being fragmented or may be (`may_cut`).
    pub(crate) fn write(&mut self, body: &mut Body, may_cut: bool) -> WriteOutcome {
        let is_cutting = self.is_cutting();
        let may_be_last = |message: &mut PacketBuffer| {
            !is_cutting && message.headroom() > 0 && body.has_room_for(message)
        };
        if let Some(message) = self.queue.pop_front_if(may_be_last) {
            self.waiting -= cost(&message);
            body.put_last(self.channel, message);
            return WriteOutcome::Something;
        }
        let Some(bytes) = self.queue.front() else {
            return WriteOutcome::Nothing;
        };
        if !may_cut && !is_cutting && bytes.len() + MAX_HEAD > body.left() {
            return WriteOutcome::NoRoom;
        }
        let piece = Cut {
            channel: self.channel,
            reliable: false,
            number: self.number,
        };
        let Some(end) = piece.write(bytes, self.sent, places(bytes), body) else {
            return WriteOutcome::NoRoom;
        };
        if end < places(bytes) {
            self.sent = end;
            return WriteOutcome::Something;
        }
        self.number += u64::from(self.sent > 0);
        self.sent = 0;
        self.waiting -= cost(bytes);
        self.queue.pop_front();
        WriteOutcome::Something
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }
}

/// A message that is fragmented.
struct Cut {
    channel: u8,
    reliable: bool,
    number: u64,
}

impl Cut {
    /// Writes as much of a message from `start` up to `end` as fits, and returns where that ends.
    fn write(&self, message: &[u8], start: u64, end: u64, body: &mut Body) -> Option<u64> {
        let mut piece = MessageFrame {
            channel: self.channel,
            reliable: self.reliable,
            number: if self.reliable { self.number } else { 0 },
            fragment: None,
            bytes: message,
        };
        if (start, end) == (0, places(message)) {
            let length = piece.head_len() + message.len();
            if length <= body.left() {
                body.message(&piece);
                return Some(end);
            }
            // It fits an empty packet without fragmentation.
            if message.is_empty() || (body.is_ack_eliciting() && length <= body.room()) {
                return None;
            }
        }
        piece.number = self.number;
        piece.fragment = Some(Fragment {
            offset: start,
            total: message.len() as u64,
        });
        piece.bytes = &message[start as usize..end as usize];
        let space = body.left().saturating_sub(piece.head_len());
        if space < piece.bytes.len().min(MIN_FRAGMENT) {
            return None;
        }
        piece.bytes = &piece.bytes[..piece.bytes.len().min(space)];
        body.message(&piece);
        Some(start + piece.bytes.len() as u64)
    }
}

fn places(message: &[u8]) -> u64 {
    message.len().max(1) as u64
}

/// Bytes that a message counts for while it waits.
fn cost(message: &[u8]) -> usize {
    message.len() + OVERHEAD
}

/// The header of an unreliable message that is not fragmented.
const MAX_HEAD: usize = 1 + 3;
/// Shorter fragments are not worth their headers.
const MIN_FRAGMENT: usize = 64;
const OVERHEAD: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn all(sender: &mut ReliableSender, room: usize) -> Vec<(usize, Vec<ReliableContent>)> {
        let mut packets = Vec::new();
        loop {
            let (mut body, mut reliable) = (Body::new(room, Vec::new()), Vec::new());
            while sender.write(&mut body, usize::MAX, &mut reliable) == WriteOutcome::Something {}
            if reliable.is_empty() {
                return packets;
            }
            packets.push((body.finish(&mut Vec::new()).len(), reliable));
        }
    }

    fn settle(sender: &mut ReliableSender, reliable: &[ReliableContent], acknowledged: bool) {
        for reliable in reliable {
            if let ReliableContent::Message {
                number, start, end, ..
            } = *reliable
            {
                match acknowledged {
                    true => sender.acknowledged(number, start, end),
                    false => sender.lost(number, start, end),
                }
            }
        }
    }

    /// Fails if acknowledged bytes are sent again (`message.acknowledged` ignored in `lost`), or if
    /// numbers are expected to start at 0 (`self.queue.get_mut(number)` in `message`).
    #[test]
    fn what_is_lost_is_cut_anew_and_the_rest_is_not_repeated() {
        let mut sender = ReliableSender::new(0);
        sender.start_at(u64::from(u32::MAX));
        for length in [0, 10, 5000, 1000, 3] {
            sender.push(vec![1; length]);
        }
        let packets = all(&mut sender, 1171);
        assert!(packets.iter().all(|(length, _)| *length <= 1171));
        assert_eq!(all(&mut sender, 1171).len(), 0);
        settle(&mut sender, &packets[2].1, true);
        for lost in [2, 1, 0] {
            settle(&mut sender, &packets[lost].1, false);
        }
        settle(&mut sender, &packets[0].1, true);
        // The path MTU has shrunk.
        let again = all(&mut sender, 500);
        assert!(again.len() >= 3 && again.iter().all(|(length, _)| *length <= 500));
        let bytes = |reliable: &ReliableContent| match *reliable {
            ReliableContent::Message {
                number, start, end, ..
            } => (start..end).map(move |place| (number, place)),
            ReliableContent::Chunk { .. } | ReliableContent::Input(_) => {
                unreachable!("only messages were sent")
            }
        };
        let arrived: BTreeSet<_> = packets[2].1.iter().flat_map(bytes).collect();
        let repeated = again
            .iter()
            .flat_map(|(_, reliable)| reliable)
            .flat_map(bytes);
        assert!(repeated.into_iter().all(|byte| !arrived.contains(&byte)));
        for (_, reliable) in packets[3..].iter().chain(&again) {
            settle(&mut sender, reliable, true);
        }
        assert_eq!((sender.exposed(), sender.waiting()), (0, 0));
        assert_eq!(sender.first, u64::from(u32::MAX) + 5);
        settle(&mut sender, &packets[1].1, false);
        assert_eq!(all(&mut sender, 1171).len(), 0, "it arrived, after all");
    }

    /// Fails if the window of messages or of bytes is not checked.
    #[test]
    fn no_more_is_begun_than_the_other_end_has_room_for() {
        let mut sender = ReliableSender::new(0);
        for _ in 0..2000 {
            sender.push(vec![2; 10]);
        }
        let packets = all(&mut sender, 1171);
        assert_eq!(sender.exposed(), WINDOW as usize * (10 + MESSAGE_COST));
        // The acknowledgement of a later message does not move the window while the first is
        // missing.
        for (_, reliable) in &packets[1..] {
            settle(&mut sender, reliable, true);
        }
        assert_eq!(all(&mut sender, 1171).len(), 0);
        settle(&mut sender, &packets[0].1, true);
        assert!(!all(&mut sender, 1171).is_empty());
        let (mut body, mut reliable) = (Body::new(1171, Vec::new()), Vec::new());
        let mut tight = ReliableSender::new(0);
        tight.push(vec![2; 100]);
        let room = 100 + MESSAGE_COST;
        assert_eq!(
            tight.write(&mut body, room - 1, &mut reliable),
            WriteOutcome::Nothing
        );
        assert_eq!(
            tight.write(&mut body, room, &mut reliable),
            WriteOutcome::Something
        );
    }
}
