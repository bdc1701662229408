//! The exchange of messages over packets: the part of a connection without keys and addresses.
//!
//! Bodies of opened packets and calls of the game go in; bodies of packets and events come out. A
//! body is built when it is polled, from everything that waits to be sent.

use std::collections::VecDeque;
use std::time::Duration;

use crate::allowance::Allowance;
use crate::arrivals::Arrivals;
use crate::blob::Blobs;
use crate::carrier::Capacity;
use crate::channel::{BLOBS, Channel, ChannelId, Delivery, LOBBY, REQUESTS};
use crate::clock::RemoteClock;
use crate::config::ExchangeConfig;
use crate::congestion::{Governor, Marks, OneWay, RateLimits};
use crate::error::CloseReason;
use crate::events::{Events, Received};
use crate::frame::MAX_FRAMES;
use crate::in_flight::InFlight;
use crate::inputs::Inputs;
use crate::ping::{Ping, Pinger};
use crate::reassembly::Reassembly;
use crate::receive_activity::ReceiveActivity;
use crate::receiver::{ActivityMark, GAP_COST};
use crate::request::{RequestError, Requests};
use crate::rhythm::Rhythm;
use crate::round_trip::RoundTrip;
use crate::stall::Stall;
use crate::statistics::{BytesPerSecond, PacketOutcome, Sizes};
use crate::time::{Now, Time};

/// Misbehaviour of the other end, which closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It violated the protocol.
    Violation,
    /// It sends packets but acknowledges nothing.
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

/// One end of an exchange.
pub struct Exchange {
    pub(crate) config: ExchangeConfig,
    pub(crate) arrivals: Arrivals,
    pub(crate) in_flight: InFlight,
    pub(crate) congestion: Governor,
    pub(crate) one_way: OneWay,
    pub(crate) marks: Marks,
    /// Something may wait to be sent that congestion control does not allow yet.
    pub(crate) held_back: bool,
    pub(crate) channels: Vec<Channel>,
    pub(crate) reassembly: Reassembly,
    pub(crate) requests: Requests,
    pub(crate) blobs: Blobs,
    pub(crate) events: Events,
    /// The channel that is first in the next packet.
    pub(crate) turn: usize,
    /// How many packets in a row had no room for a blob chunk.
    pub(crate) without_chunk: u32,
    /// A probe packet must be sent, whatever is in flight (RFC 9002, probe timeout).
    pub(crate) probe: bool,
    /// A server does not need the client's clock: it pings if nothing else measures round trips.
    pub(crate) pinger: Pinger,
    /// A packet with a ping must be sent.
    pub(crate) pings: bool,
    /// A ping that is not answered yet, when it arrived, and when to answer at the latest.
    pub(crate) pinged: Option<(Ping, Now, Time)>,
    pub(crate) remote_clock: RemoteClock,
    pub(crate) inputs: Inputs,
    /// How many messages and chunks the other end may send; limits clients only.
    pub(crate) allowance: Option<Allowance>,
    /// The game accepts no more messages of the other end for now.
    pub(crate) is_paused: bool,
    /// Packets that were dropped because of `allowance` or `is_paused`.
    pub(crate) refused: u64,
    /// Lobby messages that were received and not polled yet.
    pub(crate) lobby: VecDeque<Vec<u8>>,
    pub(crate) activity: ReceiveActivity,
    pub(crate) stall: Stall,
    /// When to check again for neglected messages.
    pub(crate) sweep: Time,
    pub(crate) sizes: Sizes,
    pub(crate) rhythm: Rhythm,
    /// Memory for the next body.
    pub(crate) spare: Vec<u8>,
}

impl Exchange {
    /// The end that sends inputs. The configuration must pass [`ExchangeConfig::check`].
    pub fn of_client(config: &ExchangeConfig, now: Time) -> Self {
        Self::new(config, Inputs::of_client(), now)
    }

    /// The end that receives inputs, and limits what the other end may send. The configuration must
    /// pass [`ExchangeConfig::check`].
    pub fn of_server(config: &ExchangeConfig, now: Time) -> Self {
        let inputs = Inputs::of_server(config.inputs_per_second, now);
        Self::new(config, inputs, now)
    }

    fn new(config: &ExchangeConfig, inputs: Inputs, now: Time) -> Self {
        let allowance = matches!(inputs, Inputs::Taken { .. }).then(|| {
            let rate = config.messages_per_second;
            Allowance::new(rate, (rate / 4).max(MAX_FRAMES as u32), now)
        });
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
            config: config.clone(),
            arrivals: Arrivals::default(),
            in_flight: InFlight::default(),
            congestion: governor(config, now),
            one_way: OneWay::default(),
            marks: Marks::default(),
            held_back: false,
            channels: game.chain(own).collect(),
            reassembly: Reassembly::default(),
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
            allowance,
            is_paused: false,
            refused: 0,
            lobby: VecDeque::new(),
            activity: ReceiveActivity::new(now),
            stall: Stall::new(ActivityMark { now, packets: 0 }),
            sweep: now,
            sizes: Sizes::default(),
            rhythm: Rhythm::default(),
            spare: Vec::new(),
        }
    }

    /// Records a packet that arrived; [`handle_body`](Self::handle_body) does so for one with a
    /// body.
    pub fn note(&mut self, sequence: u64, now: Time) {
        self.activity.note(sequence, now);
        self.arrivals.note(sequence, 0, None, now, now);
    }

    /// Handles all timers that have expired.
    pub fn handle_timeout(&mut self, now: Time, path: &mut impl Path) -> Result<(), Fault> {
        let mut lost = Vec::new();
        if self.in_flight.handle_timeout(now, &mut lost) {
            self.probe = true;
            self.marks.on_probe(self.in_flight.probes());
            let reliable: Vec<_> = self.in_flight.oldest_reliable().copied().collect();
            for reliable in reliable {
                self.lose(reliable);
            }
        }
        for packet in lost {
            self.settle(packet, PacketOutcome::Lost, now, path);
        }
        self.reassembly.handle_timeout(now);
        while let Some(request) = self.requests.expired(now) {
            let answer = Err(RequestError::TimedOut);
            self.events.push(Received::Answer { request, answer });
        }
        if now >= self.sweep {
            self.sweep = now.after(SWEEP);
            let mut channels = self.channels.iter();
            if channels.any(|channel| channel.is_neglected(&self.activity, now)) {
                return Err(Fault::Violation);
            }
        }
        self.check_stall(now)
    }

    /// Stops or resumes accepting messages and inputs: packets with messages are treated as lost,
    /// inputs are joined.
    pub fn pause(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    /// Packets that were dropped and inputs that were joined because there were too many.
    pub fn excess(&self) -> (u64, u64) {
        (self.refused, self.inputs.joined())
    }

    /// Sends a packet with a ping, which is answered but not retransmitted.
    pub fn ping(&mut self) {
        self.pings = true;
    }

    /// The estimate of the other end's clock.
    pub fn remote_clock(&mut self) -> &mut RemoteClock {
        &mut self.remote_clock
    }

    /// When [`handle_timeout`](Self::handle_timeout) or [`poll_body`](Self::poll_body) has to be
    /// called.
    pub fn deadline(&self) -> Option<Time> {
        let holds = self.buffered_by_channels() + self.gaps() > 0;
        let times = [
            self.in_flight.deadline(),
            self.reassembly.deadline(),
            self.requests.deadline(),
            self.arrivals.due(),
            self.pinged.map(|(.., due)| due),
            holds.then_some(self.sweep),
            self.held_back.then(|| self.congestion.next_allowance()),
        ];
        times.into_iter().flatten().min()
    }

    /// The next lobby message of the other end.
    pub fn poll_lobby(&mut self) -> Option<Vec<u8>> {
        self.lobby.pop_front()
    }

    /// The next event; also after the exchange has ended.
    pub fn poll_event(&mut self) -> Option<Received> {
        self.events.pop()
    }

    /// Ends the exchange: fails all open requests and drops everything else.
    pub fn close(&mut self) {
        let mut requests = std::mem::take(&mut self.requests);
        while let Some(request) = requests.expired(Time::from_micros(u64::MAX)) {
            let answer = Err(RequestError::Closed);
            self.events.push(Received::Answer { request, answer });
        }
        self.channels.clear();
        self.blobs = Blobs::default();
        self.reassembly = Reassembly::default();
        self.lobby.clear();
    }

    /// The round trip time; `None` before the first measurement.
    pub fn round_trip(&self) -> Option<RoundTrip> {
        self.in_flight.round_trip()
    }

    /// One more than the highest packet number that the other end acknowledged; `None` before the
    /// first acknowledgement.
    pub fn acknowledged(&self) -> Option<u64> {
        self.in_flight.acknowledged()
    }

    /// Whether some packet was overtaken by more others than usual.
    pub fn is_reordered(&self) -> bool {
        self.in_flight.is_reordered()
    }

    /// Acknowledged and lost packets by size.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Bytes buffered in both directions.
    pub fn buffered(&self) -> BufferedBytes {
        BufferedBytes {
            waiting: self.channels.iter().map(Channel::waiting).sum(),
            incomplete: self.reassembly.buffered()
                + self.buffered_by_channels()
                + self.gaps() * GAP_COST,
            blobs: self.blobs.buffered(),
        }
    }

    /// Counts a packet that was built elsewhere and did not wait for the allowance.
    pub fn charge(&mut self, bytes: usize, now: Time) {
        self.congestion.on_unanswered(bytes, now);
    }

    /// How much can be sent until the next tick, besides what waits; packets are `overhead` longer than their bodies.
    pub fn capacity(&mut self, overhead: usize, now: Time, path: &impl Path) -> Capacity {
        let packet = path.max_packet();
        let unreliable = self
            .channels
            .iter()
            .filter(|channel| !channel.is_reliable());
        let waiting: usize = unreliable.map(Channel::waiting).sum();
        let allowed = self.bytes_allowed(now).saturating_sub(waiting);
        let packets = allowed / packet.max(1);
        let message = packet.saturating_sub(overhead + OTHER_FRAMES);
        // Less than a whole packet is enough for a short message.
        let short = allowed.saturating_sub(overhead + OTHER_FRAMES).min(message);
        Capacity {
            message,
            total: message.saturating_mul(packets).max(short),
        }
    }

    /// Whether packets may ask routers to mark them instead of dropping them (ECN): not if the path
    /// seems to drop those that do.
    pub fn wants_marks(&self) -> bool {
        self.marks.are_wanted()
    }

    /// The present sending rate.
    pub fn rate(&self) -> BytesPerSecond {
        self.congestion.rate()
    }

    /// The delay that queues on the way to the other end add at present; `None` if it is not
    /// measured.
    pub fn queue_delay(&self) -> Option<Duration> {
        self.congestion.queue_delay()
    }

    pub(crate) fn channel(&mut self, id: u8) -> Option<&mut Channel> {
        self.channels.iter_mut().find(|channel| channel.id == id)
    }

    pub(crate) fn buffered_by_channels(&self) -> usize {
        self.channels.iter().map(Channel::buffered).sum()
    }

    /// Gaps in what reliable channels received.
    pub(crate) fn gaps(&self) -> usize {
        self.channels.iter().map(Channel::gaps).sum()
    }

    /// Whether this end receives inputs.
    pub(crate) fn is_server(&self) -> bool {
        matches!(self.inputs, Inputs::Taken { .. })
    }

    pub(crate) fn mark(&self, now: Time) -> ActivityMark {
        self.activity.mark(now)
    }

    pub(crate) fn check_stall(&self, now: Time) -> Result<(), Fault> {
        let (span, mark) = (self.config.stalled, self.mark(now));
        let nothing = self.in_flight.bytes() > 0 && self.stall.acknowledges_nothing(span, mark);
        let nothing_reliable =
            self.in_flight.has_reliable() && self.stall.acknowledges_nothing_reliable(span, mark);
        if nothing || nothing_reliable {
            Err(Fault::Stalled)
        } else {
            Ok(())
        }
    }
}

/// The path that packets take, as far as an exchange has to know it.
pub trait Path {
    /// The largest packet that passes, with what [`Exchange::poll_body`] calls its overhead.
    fn max_packet(&self) -> usize;

    /// A packet of this size arrived.
    fn on_acknowledged(&mut self, size: usize, is_probe: bool, now: Time);

    /// A packet of this size was lost.
    fn on_lost(&mut self, size: usize, is_probe: bool, now: Time);
}

/// Bytes that an exchange buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BufferedBytes {
    /// Messages that wait to be sent or acknowledged.
    pub waiting: usize,
    /// Received messages that wait for fragments or for messages before them.
    pub incomplete: usize,
    /// Incoming blobs.
    pub blobs: usize,
}

fn governor(config: &ExchangeConfig, now: Time) -> Governor {
    let policy = config.congestion.unwrap_or_default().build(RateLimits {
        floor: config.min_rate,
        ceiling: config.rate,
        now,
    });
    let rates = (config.min_rate, config.floor, config.rate);
    Governor::new(policy, rates, FIRST_BURST, now)
}

/// Greetings are sent at once, and the first state.
const FIRST_BURST: u64 = 8 * crate::MAX_DATAGRAM as u64;
/// Room in a packet for frames besides an unreliable message.
const OTHER_FRAMES: usize = 72;
/// How often to check for neglected messages.
const SWEEP: Duration = Duration::from_millis(250);
