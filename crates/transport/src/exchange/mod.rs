//! Messages into the bodies of packets and back: the part of a connection that knows no keys and
//! no addresses.
//!
//! Opened bodies and calls of the game go in; bodies and events come out. A body is made when it is
//! polled, of everything that waits.

mod arrivals;
pub(crate) mod blob;
pub(crate) mod channel;
pub(crate) mod events;
mod fragment;
mod frame;
pub(crate) mod inputs;
mod ranges;
mod receiver;
pub(crate) mod request;
pub(crate) mod round_trip;
mod sender;
mod sent;
mod stall;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use arrivals::Arrivals;
use blob::{BlobError, BlobId, Blobs};
use channel::{BLOBS, Channel, ChannelId, Delivery, LOBBY, REQUESTS};
use events::Events;
pub(crate) use events::Received;
use fragment::{Position, Scraps};
use frame::{Body, Frame, Piece, Report, frames};
use inputs::Inputs;
use receiver::{MOST_HELD, Moment};
use request::{RequestError, RequestId, Requests};
use round_trip::RoundTrip;
use sender::Wrote;
use sent::{Cargo, Packet, Sent, Settled};
use stall::Stall;

use crate::clock::RemoteClock;
use crate::config::LinkConfig;
use crate::congestion::{Congestion, FixedRate};
use crate::error::{CloseReason, SendError};
use crate::input::{Input, InputError, InputTick};
use crate::mtu::PathMtu;
use crate::packet::BASE_DATAGRAM;
use crate::ping::{Ping, Pinger, Pong};
use crate::statistics::{BytesPerSecond, Fate, Sizes};
use crate::time::{Now, Time};

/// What the other end did that no honest one would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It broke the rules.
    Violation,
    /// It is there and acknowledges nothing.
    Stalled,
}

impl From<Fault> for CloseReason {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Violation => Self::Violation,
            Fault::Stalled => Self::Stalled,
        }
    }
}

/// One end of an exchange of messages.
pub(crate) struct Exchange {
    config: LinkConfig,
    arrivals: Arrivals,
    sent: Sent,
    congestion: Box<dyn Congestion>,
    /// There may be something to say that the congestion controller does not allow yet.
    held_back: bool,
    mtu: PathMtu,
    channels: Vec<Channel>,
    scraps: Scraps,
    requests: Requests,
    blobs: Blobs,
    events: Events,
    /// The channel that begins the next packet.
    turn: usize,
    /// Packets in a row that had no room for what is left of blobs.
    without_chunk: u32,
    /// A packet must go out, whatever may be in flight.
    probe: bool,
    pinger: Pinger,
    /// A packet must go out with a ping in it.
    pings: bool,
    /// A ping that was not answered yet, and when it came.
    pinged: Option<(Ping, Now)>,
    remote_clock: RemoteClock,
    inputs: Inputs,
    /// What was said around the game, until it is looked at.
    lobby: VecDeque<Vec<u8>>,
    /// How many packets arrived, of all kinds.
    packets: u64,
    stall: Stall,
    /// When to look for neglected messages.
    sweep: Time,
    sizes: Sizes,
}

impl Exchange {
    pub(crate) fn new(config: &LinkConfig, peer: SocketAddr, inputs: Inputs, now: Time) -> Self {
        let game = (0..LOBBY).filter_map(|id| {
            let delivery = config.channels.delivery(ChannelId(id))?;
            Some(Channel::new(id, delivery))
        });
        let own = [
            Channel::new(LOBBY, Delivery::Ordered),
            Channel::new(REQUESTS, Delivery::Unordered),
            Channel::new(BLOBS, Delivery::Ordered),
        ];
        Self {
            config: *config,
            arrivals: Arrivals::default(),
            sent: Sent::default(),
            congestion: Box::new(FixedRate::new(
                config.rate,
                config.floor,
                burst(config),
                now,
            )),
            held_back: false,
            mtu: PathMtu::new(peer, now),
            channels: game.chain(own).collect(),
            scraps: Scraps::default(),
            requests: Requests::default(),
            blobs: Blobs::default(),
            events: Events::default(),
            turn: 0,
            without_chunk: 0,
            probe: false,
            pinger: Pinger::new(Time::default()),
            pings: false,
            pinged: None,
            remote_clock: RemoteClock::new(),
            inputs,
            lobby: VecDeque::new(),
            packets: 0,
            stall: Stall::new(Moment { now, packets: 0 }),
            sweep: now,
            sizes: Sizes::default(),
        }
    }

    /// Takes the body of a packet. `next` is the sequence of our next packet.
    pub(crate) fn handle_body(
        &mut self,
        sequence: u64,
        body: &[u8],
        next: u64,
        at: Now,
    ) -> Result<(), Fault> {
        let now = at.now;
        let frames = frames(body).ok_or(Fault::Violation)?;
        let mut asks = false;
        for (place, frame) in frames.enumerate() {
            asks |= !matches!(frame, Frame::Received(_) | Frame::Ping(_) | Frame::Pong(_));
            match frame {
                Frame::Received(report) => self.handle_report(&report, next, now)?,
                Frame::Ask | Frame::Padding => {}
                Frame::Ping(ping) => self.pinged = Some((ping, at)),
                Frame::Pong(pong) => self.handle_pong(pong, at),
                Frame::Input(inputs) => self.handle_inputs(inputs)?,
                Frame::Chunk(chunk) => self.blobs.handle_chunk(&chunk, &mut self.events)?,
                Frame::Message(piece) => self.handle_piece(&piece, (sequence, place), now)?,
            }
        }
        self.note(sequence, asks, now);
        self.look_for_stall(now)
    }

    /// Takes note of a packet; one with a body is noted by [`handle_body`](Self::handle_body).
    pub(crate) fn note(&mut self, sequence: u64, asks: bool, now: Time) {
        self.packets += 1;
        self.arrivals.note(sequence, asks, now);
    }

    /// Does what time demands.
    pub(crate) fn handle_timeout(&mut self, now: Time) -> Result<(), Fault> {
        let mut lost = Vec::new();
        if self.sent.handle_timeout(now, &mut lost) {
            self.probe = true;
            let cargo: Vec<_> = self.sent.oldest_cargo().copied().collect();
            for cargo in cargo {
                self.lose(cargo);
            }
        }
        for packet in lost {
            self.settle(packet, Fate::Lost, now);
        }
        self.scraps.handle_timeout(now);
        while let Some(request) = self.requests.expired(now) {
            let answer = Err(RequestError::TimedOut);
            self.events.push(Received::Answer { request, answer });
        }
        if now >= self.sweep {
            self.sweep = now.after(SWEEP);
            let moment = self.moment(now);
            if self
                .channels
                .iter()
                .any(|channel| channel.is_neglected(moment))
            {
                return Err(Fault::Violation);
            }
        }
        self.look_for_stall(now)
    }

    /// Wants a packet to go out that is answered, and need not arrive.
    pub(crate) fn ping(&mut self) {
        self.pings = true;
    }

    /// What the other end's clock shows.
    pub(crate) fn remote_clock(&mut self) -> &mut RemoteClock {
        &mut self.remote_clock
    }

    /// When [`handle_timeout`](Self::handle_timeout), [`poll_body`](Self::poll_body) or
    /// [`poll_probe`](Self::poll_probe) has something to do.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let holds = self.channels.iter().any(|channel| channel.held() > 0);
        let times = [
            self.sent.deadline(),
            self.scraps.deadline(),
            self.requests.deadline(),
            self.arrivals.due(),
            self.pinged.map(|(_, at)| at.now),
            holds.then_some(self.sweep),
            self.held_back.then(|| self.congestion.next_allowance()),
            self.mtu.next_timeout(),
        ];
        times.into_iter().flatten().min()
    }

    /// The body of the packet with this sequence, which is sent at once; none if there is nothing
    /// to say. Its packet is `overhead` longer, and no larger than the path carries.
    pub(crate) fn poll_body(&mut self, sequence: u64, overhead: usize, at: Now) -> Option<Vec<u8>> {
        let now = at.now;
        // A path that shrank swallows large packets; what asks for an answer has to get through.
        let size = match self.probe {
            true => BASE_DATAGRAM,
            false => self.mtu.size(),
        };
        let room = size - overhead;
        let mut body = Body::new(room);
        let mut cargo = Vec::new();
        self.arrivals.write(&mut body, now);
        if let Some((ping, came)) = self.pinged {
            body.pong(ping.answer(came.clock, at.clock));
        }
        let pings = self.pings || self.pinger.is_due(at.clock);
        if pings {
            body.ping(Ping { sent: at.clock });
        }
        let fresh = self.inputs.are_fresh();
        if self.may_send(room + overhead, now) || self.probe {
            cargo.extend(self.inputs.write(&mut body));
            self.fill(&mut body, &mut cargo);
        }
        let due = self.arrivals.due().is_some_and(|time| time <= now);
        let says = body.talks() || (fresh && !cargo.is_empty());
        if !(says || due || self.probe || self.pings || self.pinged.is_some()) {
            return None;
        }
        // Who only listens is never acknowledged, and could never stop to repeat all gaps.
        let repeats = due && self.arrivals.is_long() && self.sent.bytes() == 0;
        if (self.probe || repeats) && !body.talks() && cargo.is_empty() {
            body.ask();
        }
        if pings {
            self.pinger.note(at.clock);
        }
        self.probe = false;
        self.pings = false;
        self.pinged = None;
        let told = self.arrivals.told();
        let talks = body.talks() || !cargo.is_empty();
        let body = body.finish();
        let size = body.len() + overhead;
        if !talks {
            self.congestion.on_unanswered(size, now);
        } else {
            self.congestion.on_sent(size, now);
            let moment = self.moment(now);
            if self.sent.bytes() == 0 {
                self.stall.begin(moment);
            }
            self.stall.sent();
            if !cargo.is_empty() && !self.sent.is_laden() {
                self.stall.begin_reliable(moment);
            }
            let packet = Packet {
                sequence,
                sent: now,
                size,
                cargo,
                probe: false,
                told,
            };
            self.remember(packet, now);
        }
        Some(body)
    }

    /// The body of a packet that finds out how large packets may be, if it is time for one.
    pub(crate) fn poll_probe(
        &mut self,
        sequence: u64,
        overhead: usize,
        now: Time,
    ) -> Option<Vec<u8>> {
        let size = self.mtu.next_probe(now)?;
        let mut body = Body::new(size - overhead);
        body.pad();
        if self.sent.bytes() == 0 {
            self.stall.begin(self.moment(now));
        }
        self.congestion.on_unanswered(size, now);
        let packet = Packet {
            sequence,
            sent: now,
            size,
            cargo: Vec::new(),
            probe: true,
            told: None,
        };
        self.remember(packet, now);
        Some(body.finish())
    }

    fn remember(&mut self, packet: Packet, now: Time) {
        if let Some(lost) = self.sent.note(packet) {
            self.settle(lost, Fate::Lost, now);
        }
    }

    /// The other end is elsewhere now, or we are.
    pub(crate) fn path_changed(&mut self, peer: SocketAddr, now: Time) {
        self.mtu.on_path_changed(peer, now);
    }

    /// How large datagrams may be.
    pub(crate) fn datagram(&self) -> usize {
        self.mtu.size()
    }

    pub(crate) fn send(&mut self, channel: ChannelId, message: &[u8]) -> Result<(), SendError> {
        let known = self.config.channels.delivery(channel);
        known.ok_or(SendError::NoSuchChannel(channel))?;
        self.push(channel.0, message.len(), || message.to_vec())
    }

    pub(crate) fn request(
        &mut self,
        message: &[u8],
        timeout: Duration,
        now: Time,
    ) -> Result<RequestId, SendError> {
        if self.requests.is_full() {
            return Err(SendError::Backlogged);
        }
        let number = self.requests.open(now.after(timeout));
        let pushed = self.push(REQUESTS, message.len(), || {
            request::write(number, false, message)
        });
        if let Err(error) = pushed {
            self.requests.close(number);
            return Err(error);
        }
        Ok(RequestId { number, ours: true })
    }

    pub(crate) fn respond(&mut self, request: RequestId, message: &[u8]) -> Result<(), SendError> {
        if request.ours {
            return Err(SendError::NotAsked);
        }
        self.push(REQUESTS, message.len(), || {
            request::write(request.number, true, message)
        })
    }

    pub(crate) fn offer_blob(&mut self, label: &[u8], bytes: Vec<u8>) -> Result<BlobId, BlobError> {
        let channel = self.channels.iter_mut().find(|channel| channel.id == BLOBS);
        let channel = channel.ok_or(BlobError::NotConnected)?;
        if channel.waiting() > self.config.backlog {
            return Err(BlobError::Backlogged);
        }
        let (blob, said) = self.blobs.offer(label, bytes)?;
        channel.push(said);
        Ok(blob)
    }

    pub(crate) fn accept_blob(&mut self, blob: BlobId) -> Result<(), BlobError> {
        let memory = self.config.blob_memory;
        let said = self.blobs.accept(blob, memory, &mut self.events)?;
        let channel = self.channel(BLOBS).ok_or(BlobError::NotConnected)?;
        channel.push(said);
        Ok(())
    }

    pub(crate) fn cancel_blob(&mut self, blob: BlobId) -> Result<(), BlobError> {
        let said = self.blobs.cancel(blob)?;
        let channel = self.channel(BLOBS).ok_or(BlobError::NotConnected)?;
        channel.push(said);
        Ok(())
    }

    pub(crate) fn push_input(&mut self, tick: InputTick, input: Input) -> Result<(), InputError> {
        self.inputs.push(tick, input)
    }

    /// Says something around the game; `false` if the other end does not listen.
    pub(crate) fn say_around(&mut self, message: Vec<u8>) -> bool {
        let backlog = self.config.backlog.max(LEAST_BACKLOG);
        let channel = self.channel(LOBBY);
        match channel.filter(|channel| channel.waiting() <= backlog) {
            Some(channel) => channel.push(message),
            None => return false,
        }
        true
    }

    /// What the other end said around the game.
    pub(crate) fn poll_around(&mut self) -> Option<Vec<u8>> {
        self.lobby.pop_front()
    }

    pub(crate) fn poll_event(&mut self) -> Option<Received> {
        self.events.pop()
    }

    /// Gives up: whoever waits for an answer is told so, and everything else is forgotten.
    pub(crate) fn close(&mut self) {
        let mut requests = std::mem::take(&mut self.requests);
        while let Some(request) = requests.expired(Time::from_micros(u64::MAX)) {
            let answer = Err(RequestError::Closed);
            self.events.push(Received::Answer { request, answer });
        }
        self.channels.clear();
        self.blobs = Blobs::default();
        self.scraps = Scraps::default();
    }

    pub(crate) fn round_trip(&self) -> Option<RoundTrip> {
        self.sent.round_trip()
    }

    /// What became of our packets, by their size.
    pub(crate) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Bytes that are held for the game or for the other end.
    pub(crate) fn held(&self) -> Held {
        Held {
            waiting: self.channels.iter().map(Channel::waiting).sum(),
            incomplete: self.scraps.bytes() + self.held_by_channels(),
            blobs: self.blobs.held(),
        }
    }

    /// Counts a packet that was made elsewhere and did not wait to be allowed.
    pub(crate) fn charge(&mut self, bytes: usize, now: Time) {
        self.congestion.on_unanswered(bytes, now);
    }

    /// How fast packets may go out.
    pub(crate) fn rate(&self) -> BytesPerSecond {
        self.congestion.rate()
    }

    /// Whether a packet of frames may go out now.
    fn may_send(&mut self, size: usize, now: Time) -> bool {
        self.held_back = self.congestion.allowance(now) < size;
        !self.held_back && self.sent.bytes() + size <= MOST_IN_FLIGHT
    }

    /// The one place that learns what became of packets, and that tells others.
    fn settle(&mut self, packet: Packet, fate: Fate, now: Time) {
        let size = packet.size;
        match fate {
            Fate::Lost if packet.probe => return self.mtu.on_probe_lost(size, now),
            Fate::Acknowledged if packet.probe => self.mtu.on_probe_acknowledged(size, now),
            Fate::Lost => {
                self.sizes.note(size, fate);
                self.congestion.on_lost(size, now);
                self.mtu.on_packet_lost(size, now);
            }
            Fate::Acknowledged => {
                self.sizes.note(size, fate);
                let round_trip = now.since(packet.sent);
                self.congestion.on_acknowledged(size, round_trip, now);
                self.mtu.on_packet_acknowledged(size);
            }
        }
        match fate {
            Fate::Lost => {
                self.stall.lost(!packet.cargo.is_empty());
                packet.cargo.into_iter().for_each(|cargo| self.lose(cargo));
            }
            Fate::Acknowledged => {
                let moment = self.moment(now);
                self.stall.acknowledged(!packet.cargo.is_empty(), moment);
                if let Some(told) = packet.told {
                    self.arrivals.forget(told);
                }
                for cargo in packet.cargo {
                    self.arrive(cargo);
                }
            }
        }
    }

    fn arrive(&mut self, cargo: Cargo) {
        match cargo {
            Cargo::Input(tick) => self.inputs.arrived(tick),
            Cargo::Chunk { blob, start, end } => {
                self.blobs.acknowledged(blob, start, end, &mut self.events);
            }
            Cargo::Message {
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

    fn lose(&mut self, cargo: Cargo) {
        match cargo {
            Cargo::Input(_) => self.inputs.lost(),
            Cargo::Chunk { blob, start, end } => self.blobs.lost(blob, start, end),
            Cargo::Message {
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

    /// Fills a packet: channels take turns, and blobs get what is left.
    fn fill(&mut self, body: &mut Body, cargo: &mut Vec<Cargo>) {
        if self.without_chunk >= CHUNK_PATIENCE {
            self.add_chunks(body, cargo);
        }
        let count = self.channels.len();
        let mut exposed: usize = self.channels.iter().map(Channel::exposed).sum();
        // One unreliable message in parts at a time: the other end has little room for them.
        let mut cutting = self.channels.iter().position(Channel::is_cutting);
        let (mut idle, mut at, mut hungry) = (0, self.turn, None);
        while idle < count && !body.is_full() {
            let channel = &mut self.channels[at];
            let before = channel.exposed();
            let (room, may_cut) = (MOST_HELD.saturating_sub(exposed), cutting.is_none());
            idle += 1;
            match channel.write(body, room, may_cut, cargo) {
                Wrote::Something => {
                    exposed += channel.exposed() - before;
                    idle = 0;
                    match channel.is_cutting() {
                        true => cutting = Some(at),
                        false if cutting == Some(at) => cutting = None,
                        false => {}
                    }
                }
                Wrote::Nothing => {}
                Wrote::NoRoom => hungry = hungry.or(Some(at)),
            }
            at = (at + 1) % count;
        }
        self.turn = hungry.unwrap_or(at);
        self.add_chunks(body, cargo);
    }

    fn add_chunks(&mut self, body: &mut Body, cargo: &mut Vec<Cargo>) {
        if self.sent.bytes() > MOST_IN_FLIGHT / 2 {
            return;
        }
        while !body.is_full() {
            match self.blobs.write(body, cargo) {
                Wrote::Something => self.without_chunk = 0,
                Wrote::Nothing => return,
                Wrote::NoRoom => {
                    self.without_chunk += 1;
                    return;
                }
            }
        }
    }

    fn handle_report(&mut self, report: &Report<'_>, next: u64, now: Time) -> Result<(), Fault> {
        let Settled {
            acknowledged,
            lost,
            revived,
        } = self.sent.handle_report(report, next, now)?;
        for packet in acknowledged {
            self.settle(packet, Fate::Acknowledged, now);
        }
        for packet in lost {
            self.settle(packet, Fate::Lost, now);
        }
        for size in revived {
            self.sizes.revive(size);
        }
        Ok(())
    }

    fn handle_inputs(&mut self, frame: &[u8]) -> Result<(), Fault> {
        for (tick, input) in self.inputs.handle(frame)? {
            self.events.push(Received::Input { tick, input });
        }
        Ok(())
    }

    fn handle_pong(&mut self, pong: Pong, at: Now) {
        if let Some(echo) = self.pinger.handle_pong(pong, at.clock) {
            self.remote_clock.observe(&echo);
            self.sent.measure(echo.round_trip(), Duration::ZERO);
        }
    }

    fn handle_piece(&mut self, piece: &Piece<'_>, at: Position, now: Time) -> Result<(), Fault> {
        let room = MOST_HELD.saturating_sub(self.held_by_channels());
        let moment = self.moment(now);
        let channel = self
            .channels
            .iter_mut()
            .find(|channel| channel.id == piece.channel);
        let channel = channel.ok_or(Fault::Violation)?;
        let mut out = Vec::new();
        match piece.reliable {
            true => channel.handle_reliable(piece, room, moment, &mut out)?,
            false => out.extend(channel.handle_unreliable(piece, at, &mut self.scraps, now)?),
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
                let (number, answer, said) = request::read(&message).ok_or(Fault::Violation)?;
                if !answer {
                    self.events.push(Received::Request {
                        request: RequestId {
                            number,
                            ours: false,
                        },
                        message: said.to_vec(),
                    });
                } else if self.requests.close(number) {
                    self.events.push(Received::Answer {
                        request: RequestId { number, ours: true },
                        answer: Ok(said.to_vec()),
                    });
                }
            }
            BLOBS => {
                // Who goes on offering while it acknowledges none of our answers never stops.
                let unheard = self.channel(BLOBS).map_or(0, |channel| channel.waiting());
                if unheard > MOST_UNHEARD {
                    return Err(Fault::Stalled);
                }
                self.blobs.handle_said(&message, &mut self.events)?;
            }
            _ => self.events.push(Received::Message {
                channel: ChannelId(channel),
                message,
            }),
        }
        Ok(())
    }

    /// Puts a message into the queue of a channel, if it is not too long and the queue is not.
    fn push(
        &mut self,
        id: u8,
        length: usize,
        message: impl FnOnce() -> Vec<u8>,
    ) -> Result<(), SendError> {
        let (limit, backlog) = (self.config.longest_message, self.config.backlog);
        let waiting: usize = self.channels.iter().map(Channel::waiting).sum();
        let channel = self.channel(id).ok_or(SendError::NotConnected)?;
        let limit = limit.min(channel.longest());
        if length > limit {
            return Err(SendError::TooLong { length, limit });
        }
        if waiting + length > backlog {
            return Err(SendError::Backlogged);
        }
        channel.push(message());
        Ok(())
    }

    fn channel(&mut self, id: u8) -> Option<&mut Channel> {
        self.channels.iter_mut().find(|channel| channel.id == id)
    }

    fn held_by_channels(&self) -> usize {
        self.channels.iter().map(Channel::held).sum()
    }

    fn moment(&self, now: Time) -> Moment {
        Moment {
            now,
            packets: self.packets,
        }
    }

    fn look_for_stall(&self, now: Time) -> Result<(), Fault> {
        let (span, moment) = (self.config.stalled, self.moment(now));
        let deaf = self.sent.bytes() > 0 && self.stall.is_deaf(span, moment);
        let choosy = self.sent.is_laden() && self.stall.is_choosy(span, moment);
        if deaf || choosy {
            Err(Fault::Stalled)
        } else {
            Ok(())
        }
    }
}

/// Bytes that an exchange holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// To be sent, or to be acknowledged.
    pub(crate) waiting: usize,
    /// Received, but parts or predecessors are missing.
    pub(crate) incomplete: usize,
    /// Blobs under way to us.
    pub(crate) blobs: usize,
}

/// What may be saved up while nothing is said: a thirtieth of a second or so.
fn burst(config: &LinkConfig) -> usize {
    usize::try_from(config.rate.0 / 32).unwrap_or(usize::MAX)
}

/// How often to look for neglected messages.
const SWEEP: Duration = Duration::from_secs(1);
/// Bytes in flight, however fast they may be sent: all of them are remembered.
const MOST_IN_FLIGHT: usize = 256 << 10;
/// After that many packets without room for a chunk, the next begins with one.
const CHUNK_PATIENCE: u32 = 8;
/// Who comes to a server is told of all who are there, however little may wait.
const LEAST_BACKLOG: usize = 1 << 20;
/// Bytes of what we say about blobs.
const MOST_UNHEARD: usize = 1 << 18;
