//! Receiving a packet: its frames, and the acknowledgements among them.

use std::time::Duration;

use crate::arrivals::Urgency;
use crate::channel::{BLOBS, Channel, ChannelId, LOBBY, REQUESTS};
use crate::congestion::AcknowledgedPacket;
use crate::events::Received;
use crate::exchange::{Exchange, Fault, Path};
use crate::frame::{Frame, MessageFrame, Report, frames};
use crate::in_flight::{Packet, ReliableContent, Settled};
use crate::ping::Pong;
use crate::reassembly::Position;
use crate::receiver::{MAX_BUFFERED, MAX_GAPS};
use crate::request::{self, RequestId};
use crate::statistics::PacketOutcome;
use crate::time::{Arrival, Now, Time};

impl Exchange {
    /// Handles the body of a packet. `next` is our next packet number.
    pub fn handle_body(
        &mut self,
        sequence: u64,
        body: &[u8],
        next: u64,
        at: impl Into<Arrival>,
        path: &mut impl Path,
    ) -> Result<(), Fault> {
        let at = at.into();
        let now = at.handled.now;
        let frames = frames(body).ok_or(Fault::Violation)?;
        let content = frames.iter().filter(|frame| frame.is_content()).count();
        if !self.may_take(content, now) {
            self.refused += 1;
            return Ok(());
        }
        let urgency = frames.iter().filter_map(Frame::urgency).max();
        for frame in &frames {
            if let Frame::Marked(count) = frame {
                self.marks.handle(*count);
            }
        }
        for (place, frame) in frames.into_iter().enumerate() {
            match frame {
                Frame::Received(report) => self.handle_report(&report, sequence, next, at, path)?,
                Frame::ReceivedRecent(recent) => {
                    if let Some(report) = self.in_flight.complete(recent, sequence)? {
                        self.handle_report(&report, sequence, next, at, path)?;
                    }
                }
                Frame::Ask | Frame::Padding | Frame::Marked(_) => {}
                // A packet that elicits no acknowledgement was sent for the sake of the answer.
                Frame::Ping(ping) => {
                    let due = now.after(urgency.map_or(Duration::ZERO, Urgency::delay));
                    self.pinged = Some((ping, at.arrived, due));
                }
                Frame::Pong(pong) => self.handle_pong(pong, at.arrived),
                Frame::Input(inputs) => {
                    let events = &mut self.events;
                    self.inputs.handle(&inputs, self.is_paused, now, events)?;
                }
                Frame::Chunk(chunk) => self.blobs.handle_chunk(&chunk, &mut self.events)?,
                Frame::Message(piece) => self.handle_piece(&piece, (sequence, place), now)?,
            }
        }
        self.activity.note(sequence, now);
        let arrived = at.arrived.now;
        self.arrivals
            .note(sequence, body.len(), urgency, arrived, now);
        if at.is_marked {
            self.marks.note();
            // A bare acknowledgement must not be answered by another.
            if urgency.is_some() {
                self.arrivals.hurry(now);
            }
        }
        self.check_stall(now)
    }

    /// Whether this many messages and chunks are allowed now. A packet with more is treated as
    /// lost, so that its sender retransmits it later; a flood costs only little work.
    fn may_take(&mut self, content: usize, now: Time) -> bool {
        let Some(allowance) = &mut self.allowance else {
            return true;
        };
        let may = content == 0 || !self.is_paused && content <= allowance.left(now);
        if may {
            allowance.take(content);
        }
        may
    }

    fn handle_report(
        &mut self,
        report: &Report<'_>,
        sequence: u64,
        next: u64,
        at: Arrival,
        path: &mut impl Path,
    ) -> Result<(), Fault> {
        let now = at.handled.now;
        let Settled {
            mut acknowledged,
            lost,
            revived,
        } = self.in_flight.handle_report(report, next, at)?;
        self.in_flight.reported_in(sequence);
        if self.is_server() && !acknowledged.is_empty() {
            self.pinger.put_off(at.handled.clock);
        }
        if !acknowledged.is_empty() {
            self.marks.on_acknowledged();
        }
        // The newest last: it says when all of them had arrived.
        acknowledged.sort_unstable_by_key(|packet| packet.sequence);
        for packet in acknowledged {
            let is_newest = packet.sequence == report.newest;
            let arrival = is_newest.then_some(report.arrival);
            self.note_acknowledged(&packet, arrival, at);
            self.settle(packet, PacketOutcome::Acknowledged, now, path);
        }
        for packet in lost {
            self.settle(packet, PacketOutcome::Lost, now, path);
        }
        for size in revived {
            self.sizes.revive(size);
            self.congestion.on_spurious_loss(size, now);
        }
        Ok(())
    }

    /// Tells congestion control of an acknowledged packet; `arrival` is what the acknowledgement says
    /// of its newest one.
    fn note_acknowledged(&mut self, packet: &Packet, arrival: Option<u8>, at: Arrival) {
        if packet.probe {
            return;
        }
        let arrived = at.arrived.now;
        let round_trip = arrived.since(packet.sent);
        let one_way = arrival.map(|byte| self.one_way.measure(byte, round_trip, arrived));
        self.congestion.on_acknowledged(AcknowledgedPacket {
            bytes: packet.size,
            sent: packet.sent,
            now: at.handled.now,
            round_trip,
            one_way,
            is_marked: arrival.is_some() && self.marks.take(),
            in_flight: 0,
        });
    }

    /// Applies the outcome of a packet; the only function that does so.
    pub(crate) fn settle(
        &mut self,
        packet: Packet,
        outcome: PacketOutcome,
        now: Time,
        path: &mut impl Path,
    ) {
        let (size, is_probe) = (packet.size, packet.probe);
        match outcome {
            PacketOutcome::Lost => path.on_lost(size, is_probe, now),
            PacketOutcome::Acknowledged => path.on_acknowledged(size, is_probe, now),
        }
        if !is_probe {
            self.sizes.note(size, outcome);
        }
        match outcome {
            // Its size was the reason, not congestion.
            PacketOutcome::Lost if is_probe => return,
            PacketOutcome::Lost => {
                self.congestion.on_lost(size, packet.sent, now);
            }
            PacketOutcome::Acknowledged => {}
        }
        match outcome {
            PacketOutcome::Lost => {
                self.stall.lost(!packet.reliable.is_empty());
                packet
                    .reliable
                    .into_iter()
                    .for_each(|reliable| self.lose(reliable));
            }
            PacketOutcome::Acknowledged => {
                let mark = self.mark(now);
                self.stall.acknowledged(!packet.reliable.is_empty(), mark);
                if let Some(told) = packet.told {
                    self.arrivals.forget(told);
                }
                for reliable in packet.reliable {
                    self.arrive(reliable);
                }
            }
        }
    }

    fn arrive(&mut self, reliable: ReliableContent) {
        match reliable {
            ReliableContent::Input(tick) => self.inputs.arrived(tick),
            ReliableContent::Chunk { blob, start, end } => {
                self.blobs.acknowledged(blob, start, end, &mut self.events);
            }
            ReliableContent::Message {
                channel,
                number,
                start,
                end,
            } => {
                if let Some(sender) = self.channel(channel).and_then(Channel::sender) {
                    sender.acknowledged(number, start, end);
                }
            }
        }
    }

    pub(crate) fn lose(&mut self, reliable: ReliableContent) {
        match reliable {
            // All packets repeat inputs.
            ReliableContent::Input(_) => {}
            ReliableContent::Chunk { blob, start, end } => self.blobs.lost(blob, start, end),
            ReliableContent::Message {
                channel,
                number,
                start,
                end,
            } => {
                if let Some(sender) = self.channel(channel).and_then(Channel::sender) {
                    sender.lost(number, start, end);
                }
            }
        }
    }

    fn handle_pong(&mut self, pong: Pong, at: Now) {
        if let Some(echo) = self.pinger.handle_pong(pong, at.clock) {
            self.remote_clock.observe(&echo);
            self.in_flight.measure(echo.round_trip(), Duration::ZERO);
        }
    }

    fn handle_piece(
        &mut self,
        piece: &MessageFrame<'_>,
        at: Position,
        now: Time,
    ) -> Result<(), Fault> {
        let room = MAX_BUFFERED.saturating_sub(self.buffered_by_channels());
        let channel = self
            .channels
            .iter_mut()
            .find(|channel| channel.id == piece.channel);
        let channel = channel.ok_or(Fault::Violation)?;
        let mut out = Vec::new();
        match piece.reliable {
            true => channel.handle_reliable(piece, room, &self.activity, &mut out)?,
            false => out.extend(channel.handle_unreliable(piece, at, &mut self.reassembly, now)?),
        }
        if self.gaps() > MAX_GAPS {
            return Err(Fault::Violation);
        }
        for message in out {
            self.deliver(piece.channel, message)?;
        }
        Ok(())
    }

    fn deliver(&mut self, channel: u8, message: Vec<u8>) -> Result<(), Fault> {
        match channel {
            LOBBY => self.lobby.push_back(message),
            REQUESTS => {
                let (number, answer, payload) = request::read(&message).ok_or(Fault::Violation)?;
                if !answer {
                    self.events.push(Received::Request {
                        request: RequestId {
                            number,
                            ours: false,
                        },
                        message: payload.to_vec(),
                    });
                } else if self.requests.close(number) {
                    self.events.push(Received::Answer {
                        request: RequestId { number, ours: true },
                        answer: Ok(payload.to_vec()),
                    });
                }
            }
            BLOBS => {
                // A peer that keeps offering while it acknowledges none of our messages would never
                // stop.
                let unacknowledged = self.channel(BLOBS).map_or(0, |channel| channel.waiting());
                if unacknowledged > MAX_UNSENT_BLOB_MESSAGES {
                    return Err(Fault::Stalled);
                }
                self.blobs.handle_message(&message, &mut self.events)?;
            }
            _ => self.events.push(Received::Message {
                channel: ChannelId(channel),
                message,
            }),
        }
        Ok(())
    }
}

/// Bytes of unacknowledged messages about blobs.
const MAX_UNSENT_BLOB_MESSAGES: usize = 1 << 18;
