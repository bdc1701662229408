//! The clients of a swarm, all on one thread.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prescient::{
    Change, Client, ClientEvent, ClientId, ConnectToken, Grant, Object, TokenKey, UnixTime,
    key_from_text,
};
use prescient_net::{Clock, SystemEntropy, resolve};
use prescient_sim::link::{Conditions, Rate, RecordedLink, UdpConditioner};

use super::{SwarmError, SwarmOptions};
use crate::walkers::{Walker, schema, was_true};

/// What the clients saw, all together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Values that were compared with the truth.
    pub checked: u64,
    /// Values that were never true.
    pub desyncs: u64,
    /// Connections that ended early.
    pub disconnects: u64,
    /// Events that arrived.
    pub events: u64,
    /// Objects that a client saw in the end, on average.
    pub visible: f64,
}

/// Clients that joined, or are about to.
pub struct Crowd {
    seats: Vec<Seat>,
    entities: u32,
    /// Between them and the server, if the link is not to be perfect.
    _relay: Option<UdpConditioner>,
}

struct Seat {
    client: Client,
    joined: bool,
    left: bool,
    seen: Seen,
}

impl Crowd {
    /// Starts everybody, and returns when all have joined.
    pub fn gather(options: &SwarmOptions, key: &str, server: &str) -> Result<Self, SwarmError> {
        let key = key_from_text(key).map_err(|_| SwarmError::EndedEarly)?;
        let servers = resolve(server)?;
        let relay = relay(options, servers[0])?;
        let servers: Vec<SocketAddr> = (relay.iter().map(UdpConditioner::address))
            .chain(servers)
            .collect();
        let mut crowd = Self {
            seats: Vec::new(),
            entities: options.entities,
            _relay: relay,
        };
        for number in 0..options.clients {
            let token = token(number.into(), &key, &servers)?;
            crowd.seats.push(Seat {
                client: Client::start(token, schema())?,
                joined: false,
                left: false,
                seen: Seen::default(),
            });
        }
        let clock = Clock::start();
        while !crowd.seats.iter().all(|seat| seat.joined) {
            crowd.listen();
            let missing = crowd.seats.iter().filter(|seat| !seat.joined).count();
            let failed = crowd.seats.iter().any(|seat| seat.left && !seat.joined);
            if failed || clock.now().as_micros() > PATIENCE {
                let clients = options.clients;
                return Err(SwarmError::NotJoined { missing, clients });
            }
        }
        Ok(crowd)
    }

    /// Listens until told to stop.
    pub fn watch(mut self, stop: &AtomicBool) -> Seen {
        while !stop.load(Ordering::Relaxed) {
            self.listen();
        }
        let mut all = Seen::default();
        let seats = self.seats.len().max(1) as f64;
        for seat in self.seats {
            all.checked += seat.seen.checked;
            all.desyncs += seat.seen.desyncs;
            all.disconnects += u64::from(seat.left);
            all.events += seat.seen.events;
            all.visible += seat.client.objects().count() as f64;
        }
        all.visible /= seats;
        all
    }

    fn listen(&mut self) {
        let entities = self.entities;
        for seat in &mut self.seats {
            while let Some(event) = seat.client.poll() {
                seat.handle(event, entities);
            }
        }
        // One of them sleeps for all: packets come to all of them in the same ticks.
        if let Some(seat) = self.seats.first_mut() {
            seat.client.wait(Duration::from_millis(2));
        }
    }
}

impl Seat {
    fn handle(&mut self, event: ClientEvent, entities: u32) {
        match event {
            ClientEvent::Joined => self.joined = true,
            ClientEvent::Failed(_) | ClientEvent::Left(_) => self.left = true,
            ClientEvent::Change(Change::Created(object) | Change::Updated(object)) => {
                self.check(object, entities);
            }
            ClientEvent::Change(Change::Event { .. }) => self.seen.events += 1,
            _ => {}
        }
    }

    /// Whether what is shown was true at a tick not long ago.
    fn check(&mut self, object: Object, entities: u32) {
        let (Some(shown), Some(tick)) = (self.client.get::<Walker>(object), self.client.tick())
        else {
            return;
        };
        self.seen.checked += 1;
        self.seen.desyncs += u64::from(!was_true(&shown, tick, entities));
    }
}

/// What stands between the clients and the server.
fn relay(options: &SwarmOptions, server: SocketAddr) -> Result<Option<UdpConditioner>, SwarmError> {
    let both = Conditions {
        latency: Duration::from_millis(options.latency),
        loss: (options.loss.clamp(0.0, 100.0) * 10_000.0) as u32,
        ..Conditions::default()
    };
    let mut down = both.clone();
    if let Some(path) = &options.link {
        down.rate = Rate::Recorded(RecordedLink::open(path)?);
    }
    if both == Conditions::default() && options.link.is_none() {
        return Ok(None);
    }
    let relay = UdpConditioner::start(server, SEED, both, down);
    relay.map(Some).map_err(SwarmError::Relay)
}

fn token(number: u64, key: &TokenKey, servers: &[SocketAddr]) -> Result<ConnectToken, SwarmError> {
    let grant = Grant {
        client: ClientId(number),
        protocol: prescient::protocol_of(&schema()),
        servers: servers.to_vec(),
        expires: UnixTime(Clock::unix().0 + 60),
        data: Vec::new(),
    };
    Ok(grant.issue(key, &mut SystemEntropy::new()?)?)
}

const SEED: u64 = 1;
/// Until everybody has joined, in microseconds.
const PATIENCE: u64 = 60_000_000;
