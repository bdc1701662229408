//! Frames and their encoding; WIRE.md has the same as tables.
//!
//! A new frame takes a variant of [`Frame`], an arm of [`read`], and a writer on [`Body`] above its
//! reader.

use std::time::Duration;

use crate::arrivals::{RECENT, Urgency};
use crate::bytes::{Reader, number_len, write_number};
use crate::channel::ChannelId;
use crate::input::{self, Group, INPUT};
use crate::packet_buffer::PacketBuffer;
use crate::ping::{PING, PONG, Ping, Pong};
use crate::ranges::Ranges;

/// A frame of a packet.
#[derive(Clone, Debug)]
pub(crate) enum Frame<'a> {
    Received(Report<'a>),
    ReceivedRecent(RecentReport),
    /// How many packets have arrived so far that a router had marked (ECN).
    Marked(u64),
    /// Only elicits an acknowledgement.
    Ask,
    Chunk(Chunk<'a>),
    Message(MessageFrame<'a>),
    Ping(Ping),
    Pong(Pong),
    /// Inputs of a player.
    Input(Vec<Group<'a>>),
    /// Only fills the packet.
    Padding,
}

impl Frame<'_> {
    /// Whether a packet may have several frames of this kind.
    pub(crate) fn is_content(&self) -> bool {
        matches!(self, Self::Message(_) | Self::Chunk(_))
    }

    /// How soon a packet with this frame needs an acknowledgement; `None` if the frame elicits none.
    pub(crate) fn urgency(&self) -> Option<Urgency> {
        match self {
            Self::Received(_)
            | Self::ReceivedRecent(_)
            | Self::Marked(_)
            | Self::Ping(_)
            | Self::Pong(_) => None,
            Self::Message(piece) if !piece.reliable => Some(Urgency::Lazy),
            Self::Input(_) => Some(Urgency::NextPacket),
            Self::Message(_) | Self::Chunk(_) | Self::Ask | Self::Padding => Some(Urgency::Prompt),
        }
    }

    /// A bit for each kind of which a packet may have at most one.
    fn once(&self) -> u8 {
        match self {
            Self::Received(_) | Self::ReceivedRecent(_) => 1,
            Self::Ask => 1 << 1,
            Self::Ping(_) => 1 << 2,
            Self::Pong(_) => 1 << 3,
            Self::Input(_) => 1 << 4,
            Self::Padding => 1 << 5,
            Self::Marked(_) => 1 << 6,
            Self::Chunk(_) | Self::Message(_) => 0,
        }
    }
}

/// All frames of a body, or `None` if any is malformed.
pub(crate) fn frames(body: &[u8]) -> Option<Vec<Frame<'_>>> {
    let mut reader = Reader::new(body);
    let (mut frames, mut seen) = (Vec::new(), 0);
    while reader.left() > 0 {
        let frame = read(&mut reader)?;
        let once = frame.once();
        if frames.len() == MAX_FRAMES || seen & once != 0 {
            return None;
        }
        seen |= once;
        frames.push(frame);
    }
    (!frames.is_empty()).then_some(frames)
}

fn read<'a>(reader: &mut Reader<'a>) -> Option<Frame<'a>> {
    let mut all = *reader;
    match reader.u8()? {
        RECEIVED => Report::read(reader, false).map(Frame::Received),
        RECEIVED_WITH_GAPS => Report::read(reader, true).map(Frame::Received),
        RECEIVED_RECENT => RecentReport::read(reader).map(Frame::ReceivedRecent),
        MARKED => reader.number().map(Frame::Marked),
        ASK => Some(Frame::Ask),
        CHUNK => Chunk::read(reader).map(Frame::Chunk),
        PADDING => read_padding(reader),
        PING => Ping::read(reader.bytes()).map(Frame::Ping),
        PONG => Pong::read(reader.bytes()).map(Frame::Pong),
        INPUT => input::read(reader).map(Frame::Input),
        first if first & MESSAGE != 0 => MessageFrame::read(reader, first).map(Frame::Message),
        first if first & WHOLE != 0 => {
            reader.rest();
            Some(Frame::Message(MessageFrame {
                channel: ChannelId::UNRELIABLE.0,
                reliable: false,
                number: 0,
                fragment: None,
                bytes: all.rest(),
            }))
        }
        _ => None,
    }
}

/// The body of a packet while it is written.
pub(crate) struct Body {
    /// Space for the header of the packet, and the frames after it.
    bytes: Vec<u8>,
    room: usize,
    frames: usize,
    /// Whether a frame in it elicits an acknowledgement.
    is_ack_eliciting: bool,
    /// The start of the last frame, and the position of its length if that may be left out.
    last: Option<(usize, std::ops::Range<usize>)>,
    /// An unreliable message that becomes the last frame, with its channel. Its buffer becomes that
    /// of the packet, so it is not copied.
    tail: Option<(u8, PacketBuffer)>,
}

impl Body {
    /// The frames have at most `room` bytes. `spare` is a buffer of which the memory is used.
    pub(crate) fn new(room: usize, mut spare: Vec<u8>) -> Self {
        spare.clear();
        spare.resize(HEADER_ROOM, 0);
        Self {
            bytes: spare,
            room,
            frames: 0,
            is_ack_eliciting: false,
            last: None,
            tail: None,
        }
    }

    /// Whether a frame in it elicits an acknowledgement; such a frame is worth a packet.
    pub(crate) fn is_ack_eliciting(&self) -> bool {
        self.is_ack_eliciting
    }

    /// Whether no further frame may be added.
    pub(crate) fn is_full(&self) -> bool {
        self.frames == MAX_FRAMES
    }

    /// How many bytes a frame may have.
    pub(crate) fn left(&self) -> usize {
        let tail = self.tail.as_ref().map_or(0, |(_, message)| {
            1 + number_len(message.len() as u64) + message.len()
        });
        let written = self.bytes.len() - HEADER_ROOM;
        self.room.saturating_sub(written + tail)
    }

    /// How many bytes a frame may have in an empty packet.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// The bytes, without the length of the last message, and without its head if it needs none;
    /// there is space for a header before them.
    /// If a message's own buffer becomes that of the packet, `spare` gets the other one.
    pub(crate) fn finish(mut self, spare: &mut Vec<u8>) -> PacketBuffer {
        if let Some((channel, mut packet)) = self.tail {
            if !is_whole(channel, &packet) {
                self.bytes.push(MESSAGE | channel | LAST);
            }
            let front = &self.bytes[HEADER_ROOM..];
            // One copy, if the other frames and the header do not fit.
            if packet.headroom() < self.bytes.len() {
                packet = PacketBuffer::with_headroom([&self.bytes, &*packet].concat(), HEADER_ROOM);
            } else {
                packet.prepend(front);
            }
            *spare = self.bytes;
            return packet;
        }
        if let Some((start, length)) = self.last {
            let has_no_number = self.bytes[start] & (RELIABLE | FRAGMENT) == 0;
            let channel = self.bytes[start] & CHANNEL;
            if has_no_number && is_whole(channel, &self.bytes[length.end..]) {
                self.bytes.drain(start..length.end);
            } else {
                self.bytes[start] |= LAST;
                self.bytes.drain(length);
            }
        }
        PacketBuffer::with_headroom(self.bytes, HEADER_ROOM)
    }

    /// Whether [`put_last`](Self::put_last) has space for a message.
    pub(crate) fn has_room_for(&self, message: &[u8]) -> bool {
        let head = 1 + number_len(message.len() as u64);
        head + message.len() <= self.left() && !self.is_full()
    }

    /// Adds an unreliable message that has space before it, as the last frame. One that was the last
    /// so far becomes an ordinary frame.
    pub(crate) fn put_last(&mut self, channel: u8, message: PacketBuffer) {
        if let Some((channel, earlier)) = self.tail.take() {
            self.frames -= 1;
            self.message(&MessageFrame {
                channel,
                reliable: false,
                number: 0,
                fragment: None,
                bytes: &earlier,
            });
        }
        self.count();
        self.is_ack_eliciting = true;
        self.tail = Some((channel, message));
    }

    /// Says how many packets arrived marked.
    pub(crate) fn marked(&mut self, count: u64) {
        self.begin(MARKED);
        self.number(count);
    }

    pub(crate) fn ask(&mut self) {
        self.begin(ASK);
        self.is_ack_eliciting = true;
    }

    pub(crate) fn ping(&mut self, ping: Ping) {
        ping.write(&mut self.bytes);
        self.count();
    }

    pub(crate) fn pong(&mut self, pong: Pong) {
        pong.write(&mut self.bytes);
        self.count();
    }

    /// Adds a frame of inputs if it fits. They may be repeated ones, so they are no reason to send
    /// a packet.
    pub(crate) fn input(&mut self, frame: &[u8]) -> bool {
        let fits = frame.len() <= self.left() && !self.is_full();
        if fits {
            self.bytes.extend_from_slice(frame);
            self.count();
        }
        fits
    }

    fn count(&mut self) {
        self.frames += 1;
        self.last = None;
    }

    fn begin(&mut self, first: u8) {
        self.bytes.push(first);
        self.count();
    }

    fn number(&mut self, number: u64) {
        write_number(&mut self.bytes, number);
    }

    /// Acknowledges packets: the newest ranges, as many as fit half a packet.
    pub(crate) fn received(&mut self, arrived: &Ranges, delay: Duration, arrival: u8) {
        let mut ranges = arrived.iter().rev();
        let Some((start, end)) = ranges.next() else {
            return;
        };
        let mut gaps = Vec::new();
        let (mut below, mut count) = (start, 0);
        for (start, end) in ranges.take(MAX_RANGES - 1) {
            if gaps.len() + 2 * 10 > self.room / 2 {
                break;
            }
            write_number(&mut gaps, below - end - 1);
            write_number(&mut gaps, end - start - 1);
            (below, count) = (start, count + 1);
        }
        self.begin(if count == 0 {
            RECEIVED
        } else {
            RECEIVED_WITH_GAPS
        });
        self.number(end - 1);
        self.number(delay_units(delay));
        self.bytes.push(arrival);
        self.number(end - start - 1);
        if count > 0 {
            self.number(count);
            self.bytes.extend_from_slice(&gaps);
        }
    }
}

impl Body {
    /// Acknowledges `newest` and those of the sixteen packets before it that arrived. The other end
    /// must know that a packet less than 256 before `newest` was acknowledged.
    pub(crate) fn received_recent(
        &mut self,
        newest: u64,
        arrived: &Ranges,
        delay: u8,
        arrival: u8,
    ) {
        let before = (1..=RECENT).filter(|&step| {
            let number = newest.checked_sub(step);
            number.is_some_and(|number| arrived.contains(number))
        });
        let bitmap = before.fold(0u16, |bitmap, step| bitmap | 1 << (step - 1));
        let [low, high] = bitmap.to_le_bytes();
        self.begin(RECEIVED_RECENT);
        let bytes = [newest as u8, low, high, delay, arrival];
        self.bytes.extend_from_slice(&bytes);
    }
}

/// A short acknowledgement, which only says the low byte of the newest packet's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecentReport {
    low: u8,
    /// Bit 0 is the packet before the newest.
    bitmap: u16,
    delay: u8,
    arrival: u8,
}

impl RecentReport {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let [low, first, second, delay, arrival] = reader.array()?;
        let bitmap = u16::from_le_bytes([first, second]);
        Some(Self {
            low,
            bitmap,
            delay,
            arrival,
        })
    }

    /// The whole report; `acknowledged` is the newest packet acknowledged before. `None` if it names
    /// packets below 0.
    pub(crate) fn after(self, acknowledged: u64) -> Option<Report<'static>> {
        let further = self.low.wrapping_sub(acknowledged as u8);
        let newest = acknowledged.checked_add(further.into())?;
        newest.checked_sub(u64::from(16 - self.bitmap.leading_zeros()))?;
        let direct = self.bitmap.trailing_ones();
        Some(Report {
            newest,
            delay: delay_of(self.delay.into()),
            arrival: self.arrival,
            further: direct.into(),
            gaps: 0,
            rest: Reader::new(&[]),
            scattered: u32::from(self.bitmap) >> direct << direct << 1,
        })
    }
}

/// A delay as it is written, rounded down.
pub(crate) fn delay_units(delay: Duration) -> u64 {
    u64::try_from(delay.as_micros()).unwrap_or(u64::MAX) / DELAY_UNIT
}

fn delay_of(units: u64) -> Duration {
    Duration::from_micros(units.saturating_mul(DELAY_UNIT))
}

impl Body {
    /// Fills the rest of the packet.
    pub(crate) fn pad(&mut self) {
        self.begin(PADDING);
        self.bytes.resize(HEADER_ROOM + self.room, 0);
        self.is_ack_eliciting = true;
    }
}

/// Padding must be zeros.
fn read_padding<'a>(reader: &mut Reader<'a>) -> Option<Frame<'a>> {
    let zeros = reader.rest().iter().all(|&byte| byte == 0);
    zeros.then_some(Frame::Padding)
}

/// An acknowledgement: which packets the other end received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report<'a> {
    pub(crate) newest: u64,
    /// How long the acknowledgement of the newest packet was delayed.
    pub(crate) delay: Duration,
    /// The lowest byte of the milliseconds at which the newest packet arrived, on the other end's
    /// clock.
    pub(crate) arrival: u8,
    further: u64,
    gaps: u64,
    rest: Reader<'a>,
    /// Received packets below those: bit n is the n-th before the newest.
    scattered: u32,
}

impl<'a> Report<'a> {
    fn read(reader: &mut Reader<'a>, with_gaps: bool) -> Option<Self> {
        let newest = reader.number()?;
        let delay = delay_of(reader.number()?);
        let arrival = reader.u8()?;
        let further = reader.number()?;
        let gaps = if with_gaps { reader.number()? } else { 0 };
        if with_gaps && !(1..MAX_RANGES as u64).contains(&gaps) {
            return None;
        }
        let report = Self {
            newest,
            delay,
            arrival,
            further,
            gaps,
            rest: *reader,
            scattered: 0,
        };
        let mut low = newest.checked_sub(further)?;
        for _ in 0..gaps {
            let missing = reader.number()?;
            let received = reader.number()?;
            // Both lengths are encoded less one.
            low = low
                .checked_sub(missing)?
                .checked_sub(received)?
                .checked_sub(2)?;
        }
        Some(report)
    }

    /// First and last packet number of each range, descending.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let mut reader = self.rest;
        let mut low = self.newest - self.further;
        let first = (low, self.newest);
        let others = (0..self.gaps).map_while(move |_| {
            let last = low - reader.number()? - 2;
            low = last - reader.number()?;
            Some((low, last))
        });
        let (newest, mut scattered) = (self.newest, self.scattered);
        let scattered = std::iter::from_fn(move || {
            let step = (scattered != 0).then(|| scattered.trailing_zeros())?;
            let length = (scattered >> step).trailing_ones();
            scattered = scattered >> (step + length) << (step + length);
            let last = newest - u64::from(step);
            Some((last - u64::from(length - 1), last))
        });
        std::iter::once(first).chain(others).chain(scattered)
    }
}

/// A range of a blob's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk<'a> {
    pub(crate) blob: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
}

impl Body {
    /// How many bytes of a blob fit.
    pub(crate) fn left_for_chunk(&self, blob: u64, offset: u64) -> usize {
        let head = 1 + number_len(blob) + number_len(offset) + number_len(self.room as u64);
        self.left().saturating_sub(head)
    }

    pub(crate) fn chunk(&mut self, chunk: &Chunk<'_>) {
        self.begin(CHUNK);
        self.number(chunk.blob);
        self.number(chunk.offset);
        self.number(chunk.bytes.len() as u64);
        self.bytes.extend_from_slice(chunk.bytes);
        self.is_ack_eliciting = true;
    }
}

impl<'a> Chunk<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let (blob, offset) = (reader.number()?, reader.number()?);
        let length = usize::try_from(reader.number()?).ok()?;
        let bytes = reader.slice(length)?;
        (!bytes.is_empty()).then_some(Self {
            blob,
            offset,
            bytes,
        })
    }
}

/// A message or a fragment of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageFrame<'a> {
    pub(crate) channel: u8,
    pub(crate) reliable: bool,
    /// 0 for a message without a number: an unreliable one that is not fragmented.
    pub(crate) number: u64,
    pub(crate) fragment: Option<Fragment>,
    pub(crate) bytes: &'a [u8],
}

/// The position of a fragment in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) offset: u64,
    pub(crate) total: u64,
}

impl MessageFrame<'_> {
    /// The length of the frame without the message's bytes.
    pub(crate) fn head_len(&self) -> usize {
        let numbered = self.reliable || self.fragment.is_some();
        let number = if numbered { number_len(self.number) } else { 0 };
        let fragment = self.fragment.map_or(0, |fragment| {
            number_len(fragment.offset) + number_len(fragment.total)
        });
        1 + number + fragment + number_len(self.bytes.len() as u64)
    }
}

impl Body {
    pub(crate) fn message(&mut self, piece: &MessageFrame<'_>) {
        let start = self.bytes.len();
        let mut first = MESSAGE | piece.channel;
        first |= if piece.reliable { RELIABLE } else { 0 };
        first |= if piece.fragment.is_some() {
            FRAGMENT
        } else {
            0
        };
        self.begin(first);
        if piece.reliable || piece.fragment.is_some() {
            self.number(piece.number);
        }
        if let Some(fragment) = piece.fragment {
            self.number(fragment.offset);
            self.number(fragment.total);
        }
        let length = self.bytes.len();
        self.number(piece.bytes.len() as u64);
        self.last = Some((start, length..self.bytes.len()));
        self.bytes.extend_from_slice(piece.bytes);
        self.is_ack_eliciting = true;
    }
}

/// Whether a message that is the last frame of its packet needs no head: its channel and its first
/// byte are those that a frame without a head stands for.
fn is_whole(channel: u8, message: &[u8]) -> bool {
    let first = message.first().copied().unwrap_or_default();
    channel == ChannelId::UNRELIABLE.0 && first & (MESSAGE | WHOLE) == WHOLE
}

impl<'a> MessageFrame<'a> {
    fn read(reader: &mut Reader<'a>, first: u8) -> Option<Self> {
        let (reliable, is_fragment) = (first & RELIABLE != 0, first & FRAGMENT != 0);
        let number = match reliable || is_fragment {
            true => reader.number()?,
            false => 0,
        };
        let fragment = match is_fragment {
            true => Some(Fragment {
                offset: reader.number()?,
                total: reader.number()?,
            }),
            false => None,
        };
        let bytes = match first & LAST != 0 {
            true => reader.rest(),
            false => {
                let length = usize::try_from(reader.number()?).ok()?;
                reader.slice(length)?
            }
        };
        if let Some(fragment) = fragment {
            let end = fragment.offset.checked_add(bytes.len() as u64)?;
            if bytes.is_empty() || end > fragment.total {
                return None;
            }
        }
        Some(Self {
            channel: first & CHANNEL,
            reliable,
            number,
            fragment,
            bytes,
        })
    }
}

const RECEIVED: u8 = 1;
const RECEIVED_WITH_GAPS: u8 = 2;
const ASK: u8 = 3;
const CHUNK: u8 = 4;
const RECEIVED_RECENT: u8 = 5;
const MARKED: u8 = 6;
const PADDING: u8 = 16;
const MESSAGE: u8 = 0x80;
/// An unreliable message that begins with such a byte (and not with [`MESSAGE`]) needs no head.
const WHOLE: u8 = 0x40;
const RELIABLE: u8 = 0x40;
const FRAGMENT: u8 = 0x20;
const LAST: u8 = 0x10;
const CHANNEL: u8 = 0x0f;

/// Space for the header of a packet before its frames.
const HEADER_ROOM: usize = 16;

/// Microseconds. A delay of 65 ms fits the byte of a short report.
const DELAY_UNIT: u64 = 256;
pub(crate) const MAX_FRAMES: usize = 64;
pub(crate) const MAX_RANGES: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn arrived(ranges: &[(u64, u64)]) -> Ranges {
        let mut arrived = Ranges::default();
        for (start, end) in ranges {
            arrived.insert(*start, *end);
        }
        arrived
    }

    /// Fails if the last message keeps its length (`finish` returning `self.bytes` at once).
    #[test]
    fn an_unreliable_message_and_a_report_cost_eight_bytes() {
        let mut body = Body::new(1171, Vec::new());
        body.received(&arrived(&[(20_000, 20_100)]), Duration::from_millis(16), 0);
        body.message(&MessageFrame {
            channel: 2,
            reliable: false,
            number: 0,
            fragment: None,
            bytes: &[7; 64],
        });
        assert_eq!(body.finish(&mut Vec::new()).len(), 64 + 8);
    }

    /// Fails if a message is written without its head although its channel or its first byte is
    /// another (`is_whole` always true), or if the head is written all the same.
    #[test]
    fn a_message_that_ends_a_packet_may_need_no_head() {
        let written = |channel, reliable, bytes: &[u8], with_room: bool| {
            let mut body = Body::new(1171, Vec::new());
            body.ask();
            if with_room {
                let buffer = [&[0; 20], bytes].concat();
                body.put_last(channel, PacketBuffer::with_headroom(buffer, 20));
            } else {
                body.message(&MessageFrame {
                    channel,
                    reliable,
                    number: 0,
                    fragment: None,
                    bytes,
                });
            }
            let body = body.finish(&mut Vec::new());
            let read = frames(&body).expect("sound");
            let Some(Frame::Message(piece)) = read.last() else {
                panic!("a message")
            };
            assert_eq!((piece.channel, piece.reliable), (channel, reliable));
            assert_eq!((piece.bytes, read.len()), (bytes, 2));
            body.len() - 1 - bytes.len()
        };
        for with_room in [true, false] {
            assert_eq!(written(2, false, &[0x40, 1], with_room), 0);
            assert_eq!(written(2, false, &[0x7f], with_room), 0);
            assert_eq!(written(2, false, &[0x3f, 1], with_room), 1);
            assert_eq!(written(2, false, &[0xc0, 1], with_room), 1);
            assert_eq!(written(2, false, &[], with_room), 1);
            assert_eq!(written(3, false, &[0x40, 1], with_room), 1);
        }
        assert_eq!(written(2, true, &[0x40, 1], false), 2);
    }

    /// Fails if a fragment may lie outside of its message (`end > fragment.total` left out), or if
    /// padding may contain data.
    #[test]
    fn nonsense_is_malformed() {
        let bad: [&[u8]; 16] = [
            &[],
            &[0],
            &[5],
            &[PADDING, 0, 1],
            &[63],
            &[RECEIVED],
            &[RECEIVED_RECENT, 5, 0, 0, 0],
            &[MARKED],
            &[RECEIVED, 5, 0, 0, 6],
            &[RECEIVED_WITH_GAPS, 5, 0, 0, 0, 0],
            &[RECEIVED_WITH_GAPS, 5, 0, 0, 0, 64],
            &[RECEIVED_WITH_GAPS, 5, 0, 0, 0, 1, 3, 1],
            &[CHUNK, 0, 0, 0],
            &[MESSAGE | 2, 5, 1, 2, 3, 4],
            &[MESSAGE | FRAGMENT | LAST, 0, 0, 4],
            &[MESSAGE | FRAGMENT | LAST, 0, 2, 4, 1, 2, 3],
        ];
        for body in bad {
            assert!(frames(body).is_none(), "{body:?}");
        }
        assert!(frames(&[RECEIVED_WITH_GAPS, 5, 0, 0, 0, 1, 2, 1]).is_some());
        assert!(frames(&[ASK, PADDING, 0, 0]).is_some());
        let empty = [MESSAGE, 0];
        assert!(frames(&empty.repeat(64)).is_some());
        assert!(frames(&empty.repeat(65)).is_none());
        // Frames before a malformed one are not applied.
        assert!(frames(&[ASK, 0]).is_none());
    }

    /// Case 34. Fails if a packet may have two frames of an expensive kind (`seen & once` left out
    /// of `frames`).
    #[test]
    fn only_messages_and_chunks_come_more_than_once() {
        let once: [&[u8]; 8] = [
            &[RECEIVED, 5, 0, 0, 0],
            &[RECEIVED_WITH_GAPS, 5, 0, 0, 0, 1, 2, 1],
            &[ASK],
            &[PING, 1],
            &[PONG, 1, 1, 1],
            &[INPUT, 1, 1, 0],
            &[RECEIVED_RECENT, 5, 0, 0, 0, 0],
            &[MARKED, 3],
        ];
        for frame in once {
            assert!(frames(frame).is_some(), "{frame:?}");
            assert!(frames(&frame.repeat(2)).is_none(), "{frame:?}");
        }
        assert!(frames(&[once[0], once[1]].concat()).is_none());
        assert!(frames(&[once[0], once[6]].concat()).is_none());
        let all = [once[1], once[2], once[3], once[4], once[5]].concat();
        assert_eq!(frames(&all).map(|frames| frames.len()), Some(5));
        assert!(frames(&[CHUNK, 0, 0, 1, 7].repeat(64)).is_some());
    }

    /// Fails if a short report may name packets below 0 (`checked_sub` left out of `after`).
    #[test]
    fn a_short_report_ends_at_the_first_packet() {
        let report = |newest, bitmap: u16| {
            let [low, high] = bitmap.to_le_bytes();
            RecentReport::read(&mut Reader::new(&[newest, low, high, 0, 0]))
        };
        let complete = |newest, bitmap| report(newest, bitmap).expect("long enough").after(0);
        assert!(complete(3, 0b111).is_some());
        assert!(complete(3, 0b1000).is_none());
        assert!(complete(16, 0xffff).is_some());
        assert!(complete(15, 0xffff).is_none());
        assert!(complete(0, 1).is_none());
        let newest = complete(0, 0).expect("sound").ranges().collect::<Vec<_>>();
        assert_eq!(newest, [(0, 0)]);
    }

    proptest! {
        /// Fails if a bit of the bitmap means another packet, or if the low byte does not carry
        /// (`acknowledged & !255 | low`).
        #[test]
        fn short_reports_come_back_as_what_they_were(
            acknowledged in prop_oneof![0u64..1000, 0u64..1 << 50],
            further in 0u64..256,
            bitmap in any::<u16>(),
            (delay, arrival) in any::<(u8, u8)>(),
        ) {
            let newest = acknowledged + further;
            let mut arrived = Ranges::default();
            arrived.insert(newest, newest + 1);
            for step in (1..=16).filter(|step| bitmap >> (step - 1) & 1 != 0 && *step <= newest) {
                arrived.insert(newest - step, newest - step + 1);
            }
            let mut body = Body::new(1171, Vec::new());
            body.received_recent(newest, &arrived, delay, arrival);
            let body = body.finish(&mut Vec::new());
            prop_assert_eq!(body.len(), 6);
            let Some(Frame::ReceivedRecent(recent)) = frames(&body).expect("sound").into_iter().next() else {
                panic!("a short report");
            };
            let report = recent.after(acknowledged).expect("sound");
            prop_assert_eq!(report.newest, newest);
            prop_assert_eq!(delay_units(report.delay), u64::from(delay));
            prop_assert_eq!(report.arrival, arrival);
            let read: Vec<_> = report.ranges().map(|(first, last)| (first, last + 1)).collect();
            let expected: Vec<_> = arrived.iter().rev().collect();
            prop_assert_eq!(read, expected);
        }

        /// Fails if `ranges` subtracts 1 instead of 2 between ranges.
        #[test]
        fn reports_come_back_as_what_they_were(
            spans in prop::collection::vec((1u64..1 << 20, 1u64..1 << 20), 1..90),
            start in prop_oneof![0u64..1000, Just(u64::MAX - (1 << 28))],
        ) {
            let (mut at, mut list) = (start, Vec::new());
            for (gap, length) in spans {
                list.push((at + gap, at + gap + length));
                at += gap + length;
            }
            let mut body = Body::new(1171, Vec::new());
            body.received(&arrived(&list), Duration::from_micros(2560), 9);
            let body = body.finish(&mut Vec::new());
            prop_assert!(body.len() < 700);
            let Some(Frame::Received(report)) = frames(&body).expect("sound").into_iter().next() else {
                panic!("a report");
            };
            prop_assert_eq!(report.delay, Duration::from_micros(2560));
            prop_assert_eq!(report.newest, at - 1);
            let expected: Vec<_> = list.iter().rev().take(64).map(|&(start, end)| (start, end - 1)).collect();
            let read: Vec<_> = report.ranges().collect();
            prop_assert_eq!(&read[..], &expected[..read.len()]);
            prop_assert!(read.len() >= expected.len().min(50));
        }

        /// Fails if the flags of a message are mixed up.
        #[test]
        fn pieces_come_back_as_what_they_were(
            pieces in prop::collection::vec(
                (0u8..16, any::<bool>(), any::<u64>(), prop::option::of(0u64..1 << 40), 0usize..40),
                1..20,
            ),
        ) {
            let text: Vec<u8> = (0..40).collect();
            let mut body = Body::new(4000, Vec::new());
            let mut expected = Vec::new();
            for (channel, reliable, number, offset, length) in pieces {
                let bytes = &text[..length.max(usize::from(offset.is_some()))];
                let total = |offset| offset + bytes.len() as u64 + number % 100;
                let fragment = offset.map(|offset| Fragment { offset, total: total(offset) });
                let number = if reliable || fragment.is_some() { number } else { 0 };
                let piece = MessageFrame { channel, reliable, number, fragment, bytes };
                let before = body.left();
                body.message(&piece);
                prop_assert_eq!(before - body.left(), piece.head_len() + bytes.len());
                expected.push(piece);
                let chunk = Chunk { blob: number, offset: number, bytes: &text };
                body.chunk(&chunk);
                body.message(&piece);
                expected.push(piece);
            }
            let body = body.finish(&mut Vec::new());
            let read: Vec<_> = frames(&body).expect("sound").into_iter().filter_map(|frame| match frame {
                Frame::Message(piece) => Some(piece),
                _ => None,
            }).collect();
            prop_assert_eq!(read, expected);
        }

        /// Fails if any reader does not check a length.
        #[test]
        fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
            for frame in frames(&body).unwrap_or_default() {
                if let Frame::Received(report) = frame {
                    prop_assert!(report.ranges().count() <= MAX_RANGES);
                }
            }
        }
    }
}
