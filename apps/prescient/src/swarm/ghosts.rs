//! Clients that join and never apply the state they receive.
//!
//! They follow the transport protocol, so that the server has no other reason to close them, and
//! reconnect whenever it does: the requested number is connected all the time.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use prescient::{ConnectToken, LinkConfig, TokenKey};
use prescient_channels::{ChannelId, CloseReason, Received};
use prescient_net::{BlockingClient, Clock};
use prescient_transport::ClientEvent;

use super::SwarmError;
use super::crowd::token;
use crate::walkers::schema;

/// The behaviour of a ghost once it has joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum GhostKind {
    /// Acknowledge packets, but never that state was applied.
    Deaf,
    /// Answer nothing at all.
    Vanished,
    /// Report all state as undecodable and request a resync.
    Refusing,
}

/// How the ghosts' connections ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Haunted {
    /// Connections that the server closed because the client applied no state.
    pub not_applying: u64,
    /// Connections that ended for another reason, before the ghosts were to leave.
    pub otherwise: u64,
}

/// Whether ghosts are to be connected.
pub(super) struct Hours(AtomicU8);

impl Hours {
    /// Ghosts are not to join yet.
    pub(super) const fn new() -> Self {
        Self(AtomicU8::new(EARLY))
    }

    /// Ghosts join.
    pub(super) fn begin(&self) {
        self.0.store(NOW, Ordering::Relaxed);
    }

    /// Ghosts leave.
    pub(super) fn end(&self) {
        self.0.store(OVER, Ordering::Relaxed);
    }

    fn is(&self, hour: u8) -> bool {
        self.0.load(Ordering::Relaxed) == hour
    }
}

/// Client id of the first ghost; players have lower ones.
pub(super) const FIRST_GHOST: u64 = 1 << 32;

/// Keeps ghosts connected to a server between `Hours::begin` and `Hours::end`.
pub(super) fn haunt(
    count: usize,
    kind: GhostKind,
    key: &TokenKey,
    servers: &[SocketAddr],
    hours: &Hours,
) -> Result<Haunted, SwarmError> {
    let clock = Clock::start();
    while hours.is(EARLY) {
        rest();
    }
    let came = clock.now();
    let mut haunted = Haunted::default();
    let mut ghosts: Vec<Ghost> = Vec::new();
    let mut number = FIRST_GHOST;
    while hours.is(NOW) {
        let due = clock.now().since(came).as_millis() as usize * ARRIVALS_PER_SECOND / 1000;
        while ghosts.len() < count && number < FIRST_GHOST + due as u64 {
            ghosts.push(Ghost::new(token(number, key, servers)?, kind)?);
            number += 1;
        }
        ghosts.retain_mut(|ghost| match ghost.poll() {
            None => true,
            Some(CloseReason::NotApplying) => {
                haunted.not_applying += 1;
                false
            }
            Some(_) => {
                haunted.otherwise += 1;
                false
            }
        });
        rest();
    }
    for ghost in &mut ghosts {
        let net = &mut ghost.net;
        net.with(|client, now| client.close(CloseReason::Finished, now));
    }
    // Close packets are sent a few times, in case one is lost.
    let gone = clock.now().after(GOODBYES);
    while clock.now() < gone {
        for ghost in &mut ghosts {
            while ghost.net.poll().is_some() {}
        }
        rest();
    }
    Ok(haunted)
}

struct Ghost {
    net: BlockingClient,
    view: prescient_replication::Client,
    kind: GhostKind,
    greeted: bool,
}

impl Ghost {
    fn new(token: ConnectToken, kind: GhostKind) -> Result<Self, SwarmError> {
        let view = prescient_replication::Client::new(schema(), Default::default());
        let net = BlockingClient::start(token, prescient::protocol(), LinkConfig::default());
        Ok(Self {
            net: net.map_err(prescient::JoinError::from)?,
            view: view.map_err(prescient::JoinError::from)?,
            kind,
            greeted: false,
        })
    }

    /// Handles received messages; returns the reason if the connection ended.
    fn poll(&mut self) -> Option<CloseReason> {
        if self.greeted && self.kind == GhostKind::Vanished {
            return None;
        }
        while let Some(event) = self.net.poll() {
            match event {
                ClientEvent::Connected { .. } => self.send_hello(),
                ClientEvent::Received(Received::Message { channel, message }) => {
                    self.receive(channel, message);
                }
                ClientEvent::Closed(reason) => return Some(reason),
                ClientEvent::Failed(_) => return Some(CloseReason::TimedOut),
                _ => {}
            }
        }
        None
    }

    fn send_hello(&mut self) {
        while let Some(message) = self.view.poll_message() {
            let sent = |client: &mut prescient_transport::Client, now| {
                client.send(ChannelId::ORDERED, &message, now)
            };
            // A new connection has room in its send queue.
            let _ = self.net.with(sent);
        }
    }

    fn receive(&mut self, channel: ChannelId, mut message: Vec<u8>) {
        if channel == ChannelId::ORDERED {
            // The welcome message is the first.
            let _ = self.view.handle(&message);
            self.greeted |= self.view.is_welcome();
        } else if self.kind == GhostKind::Refusing {
            if let Some(last) = message.last_mut() {
                *last ^= 1;
            }
            let _ = self.view.handle(&message);
            if let Some(answer) = self.view.acknowledgement() {
                let _ = self
                    .net
                    .with(|client, now| client.send(ChannelId::UNRELIABLE, &answer, now));
            }
        }
    }
}

/// Sleeps, to leave the server its CPU time.
fn rest() {
    #[expect(clippy::disallowed_methods, reason = "ghosts have no deadlines")]
    std::thread::sleep(PAUSE);
}

const EARLY: u8 = 0;
const NOW: u8 = 1;
const OVER: u8 = 2;
const PAUSE: Duration = Duration::from_millis(20);
/// Longer than it takes to send all close packets.
const GOODBYES: Duration = Duration::from_secs(1);
/// Below the rate at which the server limits handshakes.
const ARRIVALS_PER_SECOND: usize = 200;
