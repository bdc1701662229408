//! Messages into the bodies of packets and back: the part of a connection that knows no keys and
//! no addresses.
//!
//! Opened bodies and calls of the game go in; bodies and events come out. A body is made when it is
//! polled, of everything that waits.

mod arrivals;
pub(crate) mod blob;
pub(crate) mod channel;
pub(crate) mod events;
mod frame;
mod in_flight;
pub(crate) mod inputs;
mod packing;
mod ranges;
mod reassembly;
mod receive;
mod receive_activity;
mod receiver;
pub(crate) mod request;
pub(crate) mod round_trip;
mod send;
mod sender;
mod stall;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use arrivals::Arrivals;
use blob::Blobs;
use channel::{BLOBS, Channel, ChannelId, Delivery, LOBBY, REQUESTS};
use events::Events;
pub(crate) use events::Received;
use frame::MAX_FRAMES;
use in_flight::InFlight;
use inputs::Inputs;
use reassembly::Reassembly;
use receive_activity::ReceiveActivity;
use receiver::{ActivityMark, GAP_COST};
use request::{RequestError, Requests};
use round_trip::RoundTrip;
use stall::Stall;

use crate::allowance::Allowance;
use crate::clock::RemoteClock;
use crate::config::LinkConfig;
use crate::congestion::{Congestion, FixedRate};
use crate::error::CloseReason;
use crate::mtu::PathMtu;
use crate::ping::{Ping, Pinger};
use crate::statistics::{BytesPerSecond, PacketOutcome, Sizes};
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
    in_flight: InFlight,
    congestion: Box<dyn Congestion>,
    /// There may be something to say that the congestion controller does not allow yet.
    held_back: bool,
    mtu: PathMtu,
    channels: Vec<Channel>,
    reassembly: Reassembly,
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
    /// How many messages and chunks may come; of a client only.
    allowance: Option<Allowance>,
    /// The game has enough of the other end's for now.
    is_paused: bool,
    /// Packets with more in them than may come.
    refused: u64,
    /// What was said around the game, until it is looked at.
    lobby: VecDeque<Vec<u8>>,
    activity: ReceiveActivity,
    stall: Stall,
    /// When to look for neglected messages.
    sweep: Time,
    sizes: Sizes,
}

impl Exchange {
    pub(crate) fn new(config: &LinkConfig, peer: SocketAddr, inputs: Inputs, now: Time) -> Self {
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
            config: *config,
            arrivals: Arrivals::default(),
            in_flight: InFlight::default(),
            congestion: Box::new(FixedRate::new(
                config.rate,
                config.floor,
                burst(config),
                now,
            )),
            held_back: false,
            mtu: PathMtu::new(peer, now),
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
        }
    }

    /// Takes note of a packet; one with a body is noted by [`handle_body`](Self::handle_body).
    pub(crate) fn note(&mut self, sequence: u64, asks: bool, now: Time) {
        self.activity.note(sequence, now);
        self.arrivals.note(sequence, asks, now);
    }

    /// Does what time demands.
    pub(crate) fn handle_timeout(&mut self, now: Time) -> Result<(), Fault> {
        let mut lost = Vec::new();
        if self.in_flight.handle_timeout(now, &mut lost) {
            self.probe = true;
            let reliable: Vec<_> = self.in_flight.oldest_reliable().copied().collect();
            for reliable in reliable {
                self.lose(reliable);
            }
        }
        for packet in lost {
            self.settle(packet, PacketOutcome::Lost, now);
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

    /// Takes no more messages and inputs until told otherwise: packets with messages are as good as
    /// lost, inputs are joined.
    pub(crate) fn pause(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    /// Packets that were refused and inputs that were joined because there were too many.
    pub(crate) fn excess(&self) -> (u64, u64) {
        (self.refused, self.inputs.joined())
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
        let holds = self.buffered_by_channels() + self.gaps() > 0;
        let times = [
            self.in_flight.deadline(),
            self.reassembly.deadline(),
            self.requests.deadline(),
            self.arrivals.due(),
            self.pinged.map(|(_, at)| at.now),
            holds.then_some(self.sweep),
            self.held_back.then(|| self.congestion.next_allowance()),
            self.mtu.next_timeout(),
        ];
        times.into_iter().flatten().min()
    }

    /// The other end is elsewhere now, or we are.
    pub(crate) fn path_changed(&mut self, peer: SocketAddr, now: Time) {
        self.mtu.on_path_changed(peer, now);
    }

    /// How large datagrams may be.
    pub(crate) fn datagram(&self) -> usize {
        self.mtu.size()
    }

    /// What the other end said around the game.
    pub(crate) fn poll_lobby(&mut self) -> Option<Vec<u8>> {
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
        self.reassembly = Reassembly::default();
        self.lobby.clear();
    }

    pub(crate) fn round_trip(&self) -> Option<RoundTrip> {
        self.in_flight.round_trip()
    }

    /// What became of our packets, by their size.
    pub(crate) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Bytes that are held for the game or for the other end.
    pub(crate) fn buffered(&self) -> BufferedBytes {
        BufferedBytes {
            waiting: self.channels.iter().map(Channel::waiting).sum(),
            incomplete: self.reassembly.buffered()
                + self.buffered_by_channels()
                + self.gaps() * GAP_COST,
            blobs: self.blobs.buffered(),
        }
    }

    /// Counts a packet that was made elsewhere and did not wait to be allowed.
    pub(crate) fn charge(&mut self, bytes: usize, now: Time) {
        self.congestion.on_unanswered(bytes, now);
    }

    /// Whether something that was said on a channel was not sent yet.
    pub(crate) fn is_waiting(&self, channel: ChannelId) -> bool {
        let mut channels = self.channels.iter();
        channels.any(|one| one.id == channel.0 && !one.is_idle())
    }

    /// How fast packets may go out.
    pub(crate) fn rate(&self) -> BytesPerSecond {
        self.congestion.rate()
    }

    fn channel(&mut self, id: u8) -> Option<&mut Channel> {
        self.channels.iter_mut().find(|channel| channel.id == id)
    }

    fn buffered_by_channels(&self) -> usize {
        self.channels.iter().map(Channel::buffered).sum()
    }

    /// Gaps in what reliable channels received.
    fn gaps(&self) -> usize {
        self.channels.iter().map(Channel::gaps).sum()
    }

    fn mark(&self, now: Time) -> ActivityMark {
        self.activity.mark(now)
    }

    fn check_stall(&self, now: Time) -> Result<(), Fault> {
        let (span, mark) = (self.config.stalled, self.mark(now));
        let deaf = self.in_flight.bytes() > 0 && self.stall.acknowledges_nothing(span, mark);
        let choosy =
            self.in_flight.has_reliable() && self.stall.acknowledges_nothing_reliable(span, mark);
        if deaf || choosy {
            Err(Fault::Stalled)
        } else {
            Ok(())
        }
    }
}

/// Bytes that an exchange holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BufferedBytes {
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
const SWEEP: Duration = Duration::from_millis(250);
