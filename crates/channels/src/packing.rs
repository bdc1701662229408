//! Building the body of a packet, which happens when it is polled, from everything that waits to be
//! sent.

use crate::BASE_DATAGRAM;
use crate::channel::Channel;
use crate::exchange::{Exchange, Path};
use crate::frame::Body;
use crate::in_flight::{Packet, ReliableContent};
use crate::packet_buffer::PacketBuffer;
use crate::receiver::MAX_BUFFERED;
use crate::sender::WriteOutcome;
use crate::statistics::PacketOutcome;
use crate::time::{Now, Time};

impl Exchange {
    /// The body of the packet with this packet number, which must be sent at once; `None` if there
    /// is nothing to send. The packet is `overhead` longer, and no longer than the path carries. The
    /// buffer has space for a header of at least 16 bytes.
    pub fn poll_body(
        &mut self,
        sequence: u64,
        overhead: usize,
        at: Now,
        path: &mut impl Path,
    ) -> Option<PacketBuffer> {
        let now = at.now;
        // Callers poll until `None`, so every second call ends here.
        if self.has_nothing_to_send(now) {
            self.held_back = false;
            self.congestion.on_idle(now);
            return None;
        }
        // After a path has shrunk, large packets are lost; a probe has to get through.
        let size = match self.probe {
            true => BASE_DATAGRAM,
            false => path.max_packet(),
        };
        let room = size - overhead;
        let mut body = Body::new(room, std::mem::take(&mut self.spare));
        let mut reliable = Vec::new();
        let acknowledges = (self.arrivals).write(&mut body, now, self.rhythm.next(now));
        if acknowledges && let Some(count) = self.marks.told() {
            body.marked(count);
        }
        if let Some((ping, came, _)) = self.pinged {
            body.pong(ping.answer(came.clock, at.clock));
        }
        let pings = self.pings || self.pinger.is_due(at.clock);
        if pings {
            body.ping(self.pinger.ping());
        }
        let fresh = self.inputs.are_fresh();
        if self.may_send(room + overhead, now) || self.probe {
            reliable.extend(self.inputs.write(&mut body));
            self.fill(&mut body, &mut reliable);
        }
        let due = self.arrivals.due().is_some_and(|time| time <= now);
        let has_content = body.is_ack_eliciting() || (fresh && !reliable.is_empty());
        if !(has_content || due || self.probe || self.pings || self.is_pong_due(now)) {
            return None;
        }
        // An ACK-only packet elicits no ACK, so old ranges would be repeated for ever; ask for one
        // now and then.
        let repeats = due && self.arrivals.is_long() && self.in_flight.bytes() == 0;
        if (self.probe || repeats) && !body.is_ack_eliciting() && reliable.is_empty() {
            body.ask();
        }
        if pings {
            self.pinger.note(at.clock);
        }
        self.probe = false;
        self.pings = false;
        self.pinged = None;
        self.rhythm.note(now);
        let told = acknowledges.then(|| self.arrivals.told()).flatten();
        let is_ack_eliciting = body.is_ack_eliciting() || !reliable.is_empty();
        let body = body.finish(&mut self.spare);
        let size = body.len() + overhead;
        if !is_ack_eliciting {
            self.congestion.on_unanswered(size, now);
        } else {
            self.congestion.on_sent(size, now);
            let mark = self.mark(now);
            if self.in_flight.bytes() == 0 {
                self.stall.begin(mark);
            }
            self.stall.sent();
            if !reliable.is_empty() && !self.in_flight.has_reliable() {
                self.stall.begin_reliable(mark);
            }
            let packet = Packet {
                sequence,
                sent: now,
                size,
                reliable,
                probe: false,
                told,
            };
            self.remember(packet, now, path);
        }
        Some(body)
    }

    /// The body of a probe that finds out whether the path carries packets of this size. It must be
    /// sent at once; the path is told of its outcome.
    pub fn probe(
        &mut self,
        sequence: u64,
        size: usize,
        overhead: usize,
        now: Time,
        path: &mut impl Path,
    ) -> PacketBuffer {
        let mut body = Body::new(size - overhead, Vec::new());
        body.pad();
        if self.in_flight.bytes() == 0 {
            self.stall.begin(self.mark(now));
        }
        self.congestion.on_unanswered(size, now);
        let packet = Packet {
            sequence,
            sent: now,
            size,
            reliable: Vec::new(),
            probe: true,
            told: None,
        };
        self.remember(packet, now, path);
        body.finish(&mut self.spare)
    }

    fn remember(&mut self, packet: Packet, now: Time, path: &mut impl Path) {
        if let Some(lost) = self.in_flight.note(packet) {
            self.settle(lost, PacketOutcome::Lost, now, path);
        }
    }

    /// Whether there is nothing to send, as far as that is known without building a packet.
    fn has_nothing_to_send(&self, now: Time) -> bool {
        let asked = self.probe || self.pings || self.is_pong_due(now);
        let due = self.arrivals.due().is_some_and(|time| time <= now);
        let idle = self.channels.iter().all(Channel::is_idle) && self.blobs.are_idle();
        !asked && !due && idle && !self.inputs.are_fresh()
    }

    /// Whether a ping has to be answered even without other content.
    fn is_pong_due(&self, now: Time) -> bool {
        self.pinged.is_some_and(|(.., due)| due <= now)
    }

    /// Whether congestion control allows a packet with content now.
    fn may_send(&mut self, size: usize, now: Time) -> bool {
        self.held_back = self.congestion.allowance(now) < size;
        !self.held_back && self.in_flight.bytes() + size <= MAX_IN_FLIGHT
    }

    /// How many bytes may be sent until the next tick without queueing on the way.
    pub(crate) fn bytes_allowed(&mut self, now: Time) -> usize {
        let unused = MAX_IN_FLIGHT.saturating_sub(self.in_flight.bytes());
        self.congestion.capacity(now).min(unused)
    }

    /// Fills a packet: channels are served round-robin, blobs get the remaining space.
    fn fill(&mut self, body: &mut Body, reliable: &mut Vec<ReliableContent>) {
        if self.without_chunk >= CHUNK_PATIENCE {
            self.add_chunks(body, reliable);
        }
        let count = self.channels.len();
        let mut exposed: usize = self.channels.iter().map(Channel::exposed).sum();
        // One unreliable message is fragmented at a time: the other end has little memory for
        // reassembly.
        let mut cutting = self.channels.iter().position(Channel::is_cutting);
        let (mut idle, mut at, mut without_room) = (0, self.turn, None);
        while idle < count && !body.is_full() {
            let channel = &mut self.channels[at];
            let before = channel.exposed();
            let (room, may_cut) = (MAX_BUFFERED.saturating_sub(exposed), cutting.is_none());
            idle += 1;
            match channel.write(body, room, may_cut, reliable) {
                WriteOutcome::Something => {
                    exposed += channel.exposed() - before;
                    idle = 0;
                    match channel.is_cutting() {
                        true => cutting = Some(at),
                        false if cutting == Some(at) => cutting = None,
                        false => {}
                    }
                }
                WriteOutcome::Nothing => {}
                WriteOutcome::NoRoom => without_room = without_room.or(Some(at)),
            }
            at = (at + 1) % count;
        }
        self.turn = without_room.unwrap_or(at);
        self.add_chunks(body, reliable);
    }

    fn add_chunks(&mut self, body: &mut Body, reliable: &mut Vec<ReliableContent>) {
        if self.in_flight.bytes() > MAX_IN_FLIGHT / 2 {
            return;
        }
        while !body.is_full() {
            match self.blobs.write(body, reliable) {
                WriteOutcome::Something => self.without_chunk = 0,
                WriteOutcome::Nothing => return,
                WriteOutcome::NoRoom => {
                    self.without_chunk = self.without_chunk.saturating_add(1);
                    return;
                }
            }
        }
    }
}

/// The limit of bytes in flight at any rate, since all of them are kept in memory.
const MAX_IN_FLIGHT: usize = 256 << 10;
/// After this many packets without room for a chunk, the next one starts with a chunk.
const CHUNK_PATIENCE: u32 = 8;
