//! What both ends do with a connection once it has keys: seal, open, keep alive, notice silence,
//! and take leave.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use crate::config::LinkConfig;
use crate::error::CloseReason;
use crate::packet::{Kind, MAX_DATAGRAM};
use crate::session::{Exhausted, Opened, Rejected, Session, TAG_LEN};
use crate::time::Time;

/// The longest payload of a packet, in either direction.
pub const MAX_PAYLOAD: usize = MAX_DATAGRAM - 13 - TAG_LEN;

/// A datagram that wants to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub to: SocketAddr,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// What a connection has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets sent, of all kinds.
    pub packets_sent: u64,
    /// Their bytes, without IP and UDP headers.
    pub bytes_sent: u64,
    /// Authentic packets received, of all kinds.
    pub packets_received: u64,
    /// Their bytes, without IP and UDP headers.
    pub bytes_received: u64,
    /// Packets that had been received before, or were too old to tell.
    pub replayed: u64,
    /// Packets that the other end did not seal like this: damaged or forged.
    pub forged: u64,
}

/// Datagrams that wait to be polled, up to a limit.
pub(crate) struct Outbox {
    waiting: VecDeque<Transmit>,
    limit: usize,
}

impl Outbox {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            limit,
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= self.limit
    }

    /// Takes a datagram, or drops it as the network might.
    pub(crate) fn offer(&mut self, to: SocketAddr, bytes: Vec<u8>) {
        if !self.is_full() {
            self.waiting.push_back(Transmit { to, bytes });
        }
    }

    pub(crate) fn poll(&mut self) -> Option<Transmit> {
        self.waiting.pop_front()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}

pub(crate) struct Connection {
    session: Session,
    /// What the other end calls this connection, if it has more than one.
    name: Option<u64>,
    pub(crate) peer: SocketAddr,
    heard: Time,
    sent: Time,
    manner: Manner,
    pub(crate) statistics: Statistics,
}

/// How a connection behaves when nobody sends anything.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Says nothing: a server that does not know yet whether the client has its keys.
    Mute,
    /// Says often that it is there: a client that does not know yet whether the server noticed.
    Eager,
    /// Says now and then that it is there.
    Steady,
    /// Nothing is heard of the other end, which may come back.
    Silent,
    /// Says goodbye, a few times because nobody answers to that.
    Leaving {
        reason: CloseReason,
        left: u32,
        next: Time,
    },
}

/// What is to become of a connection after its timer went off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Lives,
    /// Nothing was heard for a while.
    Silent,
    /// Nothing was heard for too long.
    Dead,
    /// It has no number left to say anything with.
    Exhausted,
    /// It said goodbye often enough.
    Left,
}

impl Connection {
    /// The server's end, before it heard of the client.
    pub(crate) fn of_server(session: Session, peer: SocketAddr, now: Time) -> Self {
        Self::new(session, None, peer, Manner::Mute, now)
    }

    /// The client's end.
    pub(crate) fn of_client(session: Session, name: u64, peer: SocketAddr, now: Time) -> Self {
        Self::new(session, Some(name), peer, Manner::Eager, now)
    }

    fn new(
        session: Session,
        name: Option<u64>,
        peer: SocketAddr,
        manner: Manner,
        now: Time,
    ) -> Self {
        Self {
            session,
            name,
            peer,
            heard: now,
            sent: now,
            manner,
            statistics: Statistics::default(),
        }
    }

    /// Whether the other end has the keys and nobody has left.
    pub(crate) fn is_mute(&self) -> bool {
        self.manner == Manner::Mute
    }

    /// Whether nothing was heard for a while.
    pub(crate) fn is_silent(&self) -> bool {
        self.manner == Manner::Silent
    }

    pub(crate) fn is_leaving(&self) -> bool {
        matches!(self.manner, Manner::Leaving { .. })
    }

    /// Seals a packet and puts it out for `to`.
    pub(crate) fn send(
        &mut self,
        kind: Kind,
        payload: &[u8],
        to: SocketAddr,
        now: Time,
        outbox: &mut Outbox,
    ) -> Result<u64, Exhausted> {
        let (sequence, bytes) = self.session.seal(kind, self.name, payload, now)?;
        self.statistics.packets_sent += 1;
        self.statistics.bytes_sent += bytes.len() as u64;
        // A question to an address that may be nobody's does not tell the peer that we live.
        if to == self.peer {
            self.sent = now;
        }
        outbox.offer(to, bytes);
        Ok(sequence)
    }

    /// Opens a packet. Only an authentic one changes anything but statistics.
    pub(crate) fn open(&mut self, bytes: &[u8], now: Time) -> Result<Opened, Rejected> {
        let opened = self.session.open(bytes, self.name.is_none());
        match &opened {
            Ok(_) => {
                self.statistics.packets_received += 1;
                self.statistics.bytes_received += bytes.len() as u64;
                self.heard = now;
                if matches!(self.manner, Manner::Mute | Manner::Eager | Manner::Silent) {
                    self.manner = Manner::Steady;
                }
            }
            Err(Rejected::Replayed) => self.statistics.replayed += 1,
            Err(Rejected::Forged | Rejected::Malformed) => self.statistics.forged += 1,
        }
        opened
    }

    pub(crate) fn is_worn_out(&self) -> bool {
        self.session.is_worn_out()
    }

    /// Begins to take leave; the first goodbye goes out with the next [`wake`](Self::wake).
    pub(crate) fn leave(&mut self, reason: CloseReason, now: Time) {
        if !self.is_leaving() {
            self.manner = Manner::Leaving {
                reason,
                left: GOODBYES,
                next: now,
            };
        }
    }

    /// When [`wake`](Self::wake) has something to do.
    pub(crate) fn deadline(&self, config: &LinkConfig) -> Time {
        let dead = self.dead(config);
        match self.manner {
            Manner::Mute => dead,
            Manner::Eager => dead.min(self.sent.after(config.retry)),
            Manner::Steady => dead
                .min(self.heard.after(config.quiet))
                .min(self.sent.after(config.keep_alive)),
            Manner::Silent => dead.min(self.sent.after(self.probing(config))),
            Manner::Leaving { next, .. } => next,
        }
    }

    /// When the other end is given up.
    fn dead(&self, config: &LinkConfig) -> Time {
        self.heard.after(match self.manner {
            Manner::Mute | Manner::Eager => config.connect_timeout,
            _ => config.timeout,
        })
    }

    /// How often a silent peer is looked for. A client has only one server and wants it back at
    /// once; a server may have many clients, each of which looks for it.
    fn probing(&self, config: &LinkConfig) -> Duration {
        match self.name {
            Some(_) => PROBE_SPACING.min(config.keep_alive),
            None => config.keep_alive,
        }
    }

    /// Does what is due.
    pub(crate) fn wake(&mut self, config: &LinkConfig, now: Time, outbox: &mut Outbox) -> Fate {
        if now < self.deadline(config) {
            return Fate::Lives;
        }
        let dead = self.dead(config);
        let sent = match &mut self.manner {
            Manner::Leaving { left: 0, .. } => return Fate::Left,
            Manner::Leaving { reason, left, next } => {
                let code = reason.to_code().to_le_bytes();
                *left -= 1;
                *next = now.after(GOODBYE_SPACING);
                self.send(Kind::Close, &code, self.peer, now, outbox)
            }
            _ if now >= dead => return Fate::Dead,
            Manner::Steady if now >= self.heard.after(config.quiet) => {
                self.manner = Manner::Silent;
                return Fate::Silent;
            }
            _ => self.send(Kind::KeepAlive, &[], self.peer, now, outbox),
        };
        match sent {
            Ok(_) => Fate::Lives,
            Err(Exhausted) => Fate::Exhausted,
        }
    }
}

/// The reason in a close packet; none if it is not one.
pub(crate) fn close_reason(payload: &[u8]) -> Option<CloseReason> {
    let code = payload.try_into().ok().map(u32::from_le_bytes)?;
    Some(CloseReason::from_code(code))
}

const PROBE_SPACING: Duration = Duration::from_millis(100);
const GOODBYES: u32 = 4;
const GOODBYE_SPACING: Duration = Duration::from_millis(60);
