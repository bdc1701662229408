//! A connection once it has keys, the same for both ends: packet protection, exchange of messages,
//! keep-alives, timeouts and closing.

use std::net::SocketAddr;
use std::time::Duration;

use prescient_channels::{
    Arrival, Capacity, CloseReason, Exchange, Fault, Now, PacketBuffer, Received, Statistics, Time,
};

use crate::config::LinkConfig;
use crate::meter::Meter;
use crate::mtu::PathMtu;
use crate::packet::{Header, PacketKind};
use crate::packet_protection::{Exhausted, Opened, PacketProtection, Rejected, TAG_LEN};
use crate::queues::Outbox;

/// A datagram to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The destination.
    pub to: SocketAddr,
    /// The whole UDP payload.
    pub bytes: PacketBuffer,
    /// Whether routers may mark it instead of dropping it: it should be sent as ECN-capable, ECT(0),
    /// if the socket can do that.
    pub is_ecn_capable: bool,
}

pub(crate) struct Connection {
    protection: PacketProtection,
    /// The connection id that the other end expects in packets; only clients send one.
    name: Option<u64>,
    pub(crate) peer: SocketAddr,
    last_received: Time,
    sent: Time,
    state: ConnectionState,
    exchange: Exchange,
    mtu: PathMtu,
    counts: Statistics,
    meter_sent: Meter,
    meter_received: Meter,
}

/// Phase of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConnectionState {
    /// A server that does not know yet whether the client has its keys; sends nothing.
    Unconfirmed,
    /// A client that does not know yet whether the server has its packets; sends keep-alives often.
    Confirming,
    /// Sends keep-alives at the configured interval.
    Open,
    /// No packet of the other end arrived for a while; it may recover.
    Silent,
    /// Repeats close packets, which are not acknowledged.
    Closing {
        reason: CloseReason,
        left: u32,
        next: Time,
    },
}

/// Result of [`wake`](Connection::wake).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerOutcome {
    Alive,
    /// Nothing was received for [`LinkConfig::quiet`].
    Silent,
    /// Nothing was received for [`LinkConfig::timeout`].
    TimedOut,
    /// No packet numbers are left.
    Exhausted,
    /// The connection must be closed for this reason.
    Broken(CloseReason),
    /// All close packets were sent.
    Closed,
}

impl Connection {
    /// The server's end, before the client's first sealed packet.
    pub(crate) fn of_server(
        protection: PacketProtection,
        peer: SocketAddr,
        config: &LinkConfig,
        now: Time,
    ) -> Self {
        Self::new(
            protection,
            None,
            peer,
            ConnectionState::Unconfirmed,
            config,
            now,
        )
    }

    pub(crate) fn of_client(
        protection: PacketProtection,
        name: u64,
        peer: SocketAddr,
        config: &LinkConfig,
        now: Time,
    ) -> Self {
        Self::new(
            protection,
            Some(name),
            peer,
            ConnectionState::Confirming,
            config,
            now,
        )
    }

    fn new(
        protection: PacketProtection,
        name: Option<u64>,
        peer: SocketAddr,
        state: ConnectionState,
        config: &LinkConfig,
        now: Time,
    ) -> Self {
        let exchange = match name {
            Some(_) => Exchange::of_client(&config.exchange, now),
            None => Exchange::of_server(&config.exchange, now),
        };
        Self {
            protection,
            name,
            peer,
            last_received: now,
            sent: now,
            state,
            exchange,
            mtu: PathMtu::new(peer, now),
            counts: Statistics::default(),
            meter_sent: Meter::new(now),
            meter_received: Meter::new(now),
        }
    }

    /// Whether the other end has the keys and no end has closed.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(
            self.state,
            ConnectionState::Unconfirmed | ConnectionState::Closing { .. }
        )
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.state == ConnectionState::Silent
    }

    pub(crate) fn is_leaving(&self) -> bool {
        matches!(self.state, ConnectionState::Closing { .. })
    }

    /// The exchange of messages, while the connection is open.
    pub(crate) fn exchange(&mut self) -> Option<&mut Exchange> {
        self.is_open().then_some(&mut self.exchange)
    }

    /// How much can be sent now.
    pub(crate) fn capacity(&mut self, now: Time) -> Capacity {
        let overhead = self.overhead(PacketKind::Frames);
        self.exchange.capacity(overhead, now, &self.mtu)
    }

    /// The next lobby message of the other end.
    pub(crate) fn poll_lobby(&mut self) -> Option<Vec<u8>> {
        self.exchange.poll_lobby()
    }

    /// The smoothed round trip time.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        let round_trip = self.exchange.round_trip();
        round_trip.map(|round_trip| round_trip.smoothed)
    }

    /// The next event; also after the connection ended.
    pub(crate) fn poll_event(&mut self) -> Option<Received> {
        self.exchange.poll_event()
    }

    /// Builds a packet of what waits to be sent, if anything does.
    pub(crate) fn poll_transmit(&mut self, at: Now) -> Result<Option<Transmit>, Exhausted> {
        if !self.is_open() {
            return Ok(None);
        }
        // The length of the header depends on the key.
        self.protection.rekey_if_due(at.now);
        let overhead = self.overhead(PacketKind::Frames);
        let sequence = self.protection.next_sequence();
        let (exchange, mtu) = (&mut self.exchange, &mut self.mtu);
        let body = exchange.poll_body(sequence, overhead, at, mtu);
        let body = body.or_else(|| {
            let size = mtu.next_probe(at.now)?;
            Some(exchange.probe(sequence, size, overhead, at.now, mtu))
        });
        let Some(body) = body else {
            return Ok(None);
        };
        let to = self.peer;
        let bytes = self.seal(PacketKind::Frames, body, to, at.now)?;
        Ok(Some(Transmit {
            to,
            bytes,
            is_ecn_capable: self.exchange.wants_marks(),
        }))
    }

    /// Handles the frames of an opened packet.
    pub(crate) fn handle_frames(&mut self, opened: &Opened, at: Arrival) -> Result<(), Fault> {
        let next = self.protection.next_sequence();
        let (sequence, body) = (opened.sequence, &opened.payload);
        let path = &mut self.mtu;
        let handled = self.exchange.handle_body(sequence, body, next, at, path);
        if let Some(end) = self.exchange.acknowledged() {
            self.protection
                .on_acknowledged(end, self.exchange.is_reordered());
        }
        handled
    }

    /// Continues on a validated path.
    pub(crate) fn move_to(&mut self, peer: SocketAddr, now: Time) {
        self.peer = peer;
        self.mtu.on_path_changed(peer, now);
    }

    /// How many bytes the next datagram adds to its payload, if it is of this kind.
    pub(crate) fn overhead(&self, kind: PacketKind) -> usize {
        Header::len(self.name.is_some(), self.protection.number_bytes(kind)) + TAG_LEN
    }

    /// Seals a packet and queues it for `to`.
    pub(crate) fn send(
        &mut self,
        kind: PacketKind,
        payload: &[u8],
        to: SocketAddr,
        now: Time,
        outbox: &mut Outbox,
    ) -> Result<(), Exhausted> {
        let bytes = self.seal(kind, payload.to_vec().into(), to, now)?;
        outbox.offer(to, bytes);
        Ok(())
    }

    fn seal(
        &mut self,
        kind: PacketKind,
        payload: PacketBuffer,
        to: SocketAddr,
        now: Time,
    ) -> Result<PacketBuffer, Exhausted> {
        let bytes = self.protection.seal(kind, self.name, payload, now)?;
        self.counts.packets_sent += 1;
        self.counts.bytes_sent += bytes.len() as u64;
        self.meter_sent.note(bytes.len(), to, now);
        if kind != PacketKind::Frames {
            self.exchange.charge(bytes.len(), now);
        }
        // A path challenge to an unvalidated address does not replace a keep-alive to the peer.
        if to == self.peer {
            self.sent = now;
        }
        Ok(bytes)
    }

    /// Opens a packet. Unless it is authentic, only statistics change.
    pub(crate) fn open(&mut self, bytes: &[u8], now: Time) -> Result<Opened, Rejected> {
        let opened = self.protection.open(bytes, self.name.is_none());
        match &opened {
            Ok(opened) => {
                self.counts.packets_received += 1;
                self.counts.bytes_received += bytes.len() as u64;
                self.counts.out_of_order += u64::from(!opened.newest);
                self.meter_received.note(bytes.len(), self.peer, now);
                self.last_received = now;
                if matches!(
                    self.state,
                    ConnectionState::Unconfirmed
                        | ConnectionState::Confirming
                        | ConnectionState::Silent
                ) {
                    self.state = ConnectionState::Open;
                }
                if opened.kind != PacketKind::Frames {
                    self.exchange.note(opened.sequence, now);
                }
            }
            Err(Rejected::Replayed) => self.counts.duplicate += 1,
            Err(Rejected::Late) => self.counts.late += 1,
            Err(Rejected::Forged | Rejected::Malformed) => self.counts.forged += 1,
        }
        opened
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let buffered = self.exchange.buffered();
        let sizes = self.exchange.sizes();
        let received = self.counts.packets_received;
        let mut statistics = self.counts;
        (statistics.refused, statistics.joined_inputs) = self.exchange.excess();
        statistics.missing = self.protection.numbers_seen().saturating_sub(received);
        statistics.acknowledged = sizes.acknowledged.iter().sum();
        statistics.lost = sizes.lost.iter().sum();
        statistics.sizes = sizes;
        statistics.round_trip = self.exchange.round_trip();
        statistics.rate_allowed = self.exchange.rate();
        statistics.datagram = self.mtu.size();
        statistics.rate_sent = self.meter_sent.rate();
        statistics.rate_received = self.meter_received.rate();
        statistics.waiting = buffered.waiting;
        statistics.incomplete = buffered.incomplete;
        statistics.blobs = buffered.blobs;
        statistics
    }

    pub(crate) fn is_worn_out(&self) -> bool {
        self.protection.is_worn_out()
    }

    /// Starts closing; the next [`wake`](Self::wake) sends the first close packet.
    pub(crate) fn leave(&mut self, reason: CloseReason, now: Time) {
        if !self.is_leaving() {
            self.exchange.close();
            self.state = ConnectionState::Closing {
                reason,
                left: CLOSE_PACKETS,
                next: now,
            };
        }
    }

    /// When [`wake`](Self::wake) has to be called.
    pub(crate) fn deadline(&self, config: &LinkConfig) -> Time {
        let dead = self.dead(config);
        let quiet = match self.state {
            ConnectionState::Unconfirmed => return dead,
            ConnectionState::Closing { next, .. } => return next,
            ConnectionState::Confirming | ConnectionState::Silent => dead,
            ConnectionState::Open => dead.min(self.last_received.after(config.quiet)),
        };
        let times = [self.exchange.deadline(), self.mtu.next_timeout()];
        let due = times.into_iter().flatten().min().unwrap_or(dead);
        quiet.min(self.keep_alive_at(config)).min(due)
    }

    /// When the connection times out.
    fn dead(&self, config: &LinkConfig) -> Time {
        self.last_received.after(match self.state {
            ConnectionState::Unconfirmed | ConnectionState::Confirming => config.connect_timeout,
            _ => config.timeout,
        })
    }

    /// When to send a keep-alive if nothing else is sent. A client of a silent server probes often,
    /// because it has only that one; a server may have many silent clients, each of which probes.
    fn keep_alive_at(&self, config: &LinkConfig) -> Time {
        self.sent.after(match self.state {
            ConnectionState::Confirming => config.retry,
            ConnectionState::Silent if self.name.is_some() => PROBE_SPACING.min(config.keep_alive),
            _ => config.keep_alive,
        })
    }

    /// Does everything that is due.
    pub(crate) fn wake(
        &mut self,
        config: &LinkConfig,
        now: Time,
        outbox: &mut Outbox,
    ) -> TimerOutcome {
        self.meter_sent.advance(now);
        self.meter_received.advance(now);
        let dead = now >= self.dead(config);
        match &mut self.state {
            ConnectionState::Closing { next, .. } if now < *next => return TimerOutcome::Alive,
            ConnectionState::Closing { left: 0, .. } => return TimerOutcome::Closed,
            ConnectionState::Closing { reason, left, next } => {
                let code = reason.to_code().to_le_bytes();
                *left -= 1;
                *next = now.after(CLOSE_SPACING);
                return self.send_control(PacketKind::Close, &code, now, outbox);
            }
            _ if dead => return TimerOutcome::TimedOut,
            ConnectionState::Unconfirmed => return TimerOutcome::Alive,
            ConnectionState::Open if now >= self.last_received.after(config.quiet) => {
                self.state = ConnectionState::Silent;
                return TimerOutcome::Silent;
            }
            ConnectionState::Confirming | ConnectionState::Open | ConnectionState::Silent => {}
        }
        if let Err(fault) = self.exchange.handle_timeout(now, &mut self.mtu) {
            return TimerOutcome::Broken(fault.into());
        }
        if now < self.keep_alive_at(config) {
            return TimerOutcome::Alive;
        }
        if self.state == ConnectionState::Confirming {
            return self.send_control(PacketKind::KeepAlive, &[], now, outbox);
        }
        self.exchange.ping();
        TimerOutcome::Alive
    }

    fn send_control(
        &mut self,
        kind: PacketKind,
        payload: &[u8],
        now: Time,
        outbox: &mut Outbox,
    ) -> TimerOutcome {
        match self.send(kind, payload, self.peer, now, outbox) {
            Ok(()) => TimerOutcome::Alive,
            Err(Exhausted) => TimerOutcome::Exhausted,
        }
    }
}

/// The reason in a close packet; `None` if it is malformed.
pub(crate) fn close_reason(payload: &[u8]) -> Option<CloseReason> {
    let code = payload.try_into().ok().map(u32::from_le_bytes)?;
    Some(CloseReason::from_code(code))
}

const PROBE_SPACING: Duration = Duration::from_millis(100);
const CLOSE_PACKETS: u32 = 4;
const CLOSE_SPACING: Duration = Duration::from_millis(60);
