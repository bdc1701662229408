//! Clients that join and never apply what they are sent.
//!
//! They speak the transport honestly, so that the server has no other reason to close them, and
//! come back as often as it does: as many are there all the time as were asked for.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use prescient::{ConnectToken, LinkConfig, TokenKey};
use prescient_net::{BlockingClient, Clock};
use prescient_transport::{ChannelId, ClientEvent, CloseReason, Received};

use super::SwarmError;
use super::crowd::token;
use crate::walkers::schema;

/// What a ghost does once it has joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum GhostKind {
    /// Acknowledges packets, but never that state was applied.
    Deaf,
    /// Answers nothing at all.
    Vanished,
    /// Says of all state that it cannot be decoded, and asks for everything anew.
    Refusing,
}

/// What became of the ghosts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Haunted {
    /// Connections that the server closed because nothing was applied.
    pub not_applying: u64,
    /// Connections that ended for another reason, before the ghosts were told to go.
    pub otherwise: u64,
}

/// When ghosts are there.
pub struct Hours(AtomicU8);

impl Hours {
    /// Not yet.
    pub const fn new() -> Self {
        Self(AtomicU8::new(EARLY))
    }

    /// Ghosts come.
    pub fn begin(&self) {
        self.0.store(NOW, Ordering::Relaxed);
    }

    /// Ghosts go.
    pub fn end(&self) {
        self.0.store(OVER, Ordering::Relaxed);
    }

    fn is(&self, hour: u8) -> bool {
        self.0.load(Ordering::Relaxed) == hour
    }
}

/// The number of the first ghost: players have lower ones.
pub const FIRST_GHOST: u64 = 1 << 32;

/// Keeps ghosts at a server from when they shall come until they shall go.
pub fn haunt(
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
    // Goodbyes are said a few times, in case that one gets lost.
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

    /// Takes in what came; why the connection ended, if it has.
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
            // A connection that has just been made has room.
            let _ = self.net.with(sent);
        }
    }

    fn receive(&mut self, channel: ChannelId, mut message: Vec<u8>) {
        if channel == ChannelId::ORDERED {
            // That it is welcome comes first.
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
                    .with(|client, now| client.send(ChannelId::SEQUENCED, &answer, now));
            }
        }
    }
}

/// Who has no machine of his own leaves the server its time.
fn rest() {
    #[expect(clippy::disallowed_methods, reason = "ghosts have all the time")]
    std::thread::sleep(PAUSE);
}

const EARLY: u8 = 0;
const NOW: u8 = 1;
const OVER: u8 = 2;
const PAUSE: Duration = Duration::from_millis(20);
/// As long as a client takes to say goodbye, and then some.
const GOODBYES: Duration = Duration::from_secs(1);
/// A flood of them would be stopped by other means.
const ARRIVALS_PER_SECOND: usize = 200;
