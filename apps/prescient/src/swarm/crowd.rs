//! The clients of a swarm, all on one thread.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prescient::{
    Change, Client, ClientEvent, ClientId, ClientOptions, ConnectToken, EntityHandle, Grant,
    Reconnect, TokenKey, UnixTime, key_from_text,
};
use prescient_net::{Clock, SystemEntropy, resolve};
use prescient_sim::link::{Conditions, Rate, RecordedLink, UdpConditioner};

use super::ready::Ready;
use super::{SwarmError, SwarmOptions};
use crate::walkers::{is_true, schema};

/// Totals of what the clients received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Values that were verified.
    pub checked: u64,
    /// Values that were wrong.
    pub desyncs: u64,
    /// Connections that ended early.
    pub disconnects: u64,
    /// Events that arrived at clients that remained connected.
    pub events: u64,
    /// Entities visible to a client at the end, on average.
    pub visible: f64,
}

/// Clients that joined, or are joining.
pub(super) struct Crowd {
    members: Vec<Member>,
    ready: Ready,
    /// Totals of the clients that left on schedule.
    former: Seen,
    /// Number of clients created so far.
    count: u64,
    entities: u32,
    key: TokenKey,
    servers: Vec<SocketAddr>,
    /// Relay to the server, unless the link is perfect.
    relay: Option<UdpConditioner>,
}

struct Member {
    client: Client,
    joined: bool,
    left: bool,
    seen: Seen,
}

impl Crowd {
    /// Starts the clients one after the other, and returns when all have joined.
    pub(super) fn gather(
        options: &SwarmOptions,
        key: &str,
        server: &str,
    ) -> Result<Self, SwarmError> {
        let key = key_from_text(key).map_err(|_| SwarmError::EndedEarly)?;
        let servers = resolve(server)?;
        let relay = relay(options, servers[0])?;
        let servers: Vec<SocketAddr> = (relay.iter().map(UdpConditioner::address))
            .chain(servers)
            .collect();
        let mut crowd = Self {
            members: Vec::new(),
            ready: Ready::new().map_err(SwarmError::Sockets)?,
            former: Seen::default(),
            count: 0,
            entities: options.entities,
            key,
            servers,
            relay,
        };
        let clock = Clock::start();
        let total = options.clients as usize;
        while crowd.members.len() < total || !crowd.members.iter().all(|member| member.joined) {
            let due = clock.now().as_micros() * ARRIVALS_PER_SECOND / 1_000_000;
            while crowd.members.len() < total && (crowd.members.len() as u64) <= due {
                let member = crowd.newcomer(crowd.members.len())?;
                crowd.members.push(member);
            }
            crowd.listen();
            let joined = crowd.members.iter().filter(|member| member.joined).count();
            let failed = crowd
                .members
                .iter()
                .any(|member| member.left && !member.joined);
            if failed || clock.now().as_micros() > PATIENCE {
                let missing = total - joined;
                let clients = options.clients;
                return Err(SwarmError::NotJoined { missing, clients });
            }
        }
        // Tokens have to name the server as well, or it would refuse them. A client that does not
        // reach the relay, which is the first address, tries the next and bypasses the relay.
        let relayed = crowd.relay.as_ref().map(UdpConditioner::clients);
        match relayed.filter(|relayed| *relayed < total) {
            Some(relayed) => Err(SwarmError::Bypassed {
                bypassing: total - relayed,
            }),
            None => Ok(crowd),
        }
    }

    /// Polls the clients until `stop` is set, while some of them leave and are replaced.
    pub(super) fn watch(
        mut self,
        options: &SwarmOptions,
        stop: &AtomicBool,
    ) -> Result<Seen, SwarmError> {
        let clock = Clock::start();
        let staying = options.staying() as usize;
        let turns = self.members.len() - staying;
        let mut gone = 0;
        while !stop.load(Ordering::Relaxed) {
            self.listen();
            let due = clock.now().as_micros() * u64::from(options.churn) / 1_000_000;
            // One at a time, so that the others are polled in between.
            if gone < due && turns > 0 {
                self.replace(staying + gone as usize % turns)?;
                gone += 1;
            }
        }
        let mut all = self.former;
        all.visible = 0.0;
        let members = self.members.len().max(1) as f64;
        for (number, member) in self.members.iter().enumerate() {
            all.add(member, number < staying);
            all.visible += member.client.entities().count() as f64;
        }
        all.visible /= members;
        Ok(all)
    }

    /// A client leaves, and a new one takes its index.
    fn replace(&mut self, member: usize) -> Result<(), SwarmError> {
        let newcomer = self.newcomer(member)?;
        let former = std::mem::replace(&mut self.members[member], newcomer);
        self.former.add(&former, false);
        // `leave` blocks for a while; the other clients must be polled meanwhile.
        std::thread::spawn(|| former.client.leave());
        Ok(())
    }

    /// A new client that starts to join, for this index.
    fn newcomer(&mut self, member: usize) -> Result<Member, SwarmError> {
        let (number, key, servers) = (self.count, self.key.clone(), self.servers.clone());
        let token = token(number, &key, &servers)?;
        self.count += 1;
        let again = move || self::token(number, &key, &servers).ok();
        let options = ClientOptions::default().with_reconnect(Reconnect::new(again));
        let client = Client::start_with(token, schema(), options)?;
        let watched = self.ready.watch(member, &client);
        watched.map_err(SwarmError::Sockets)?;
        Ok(Member {
            client,
            joined: false,
            left: false,
            seen: Seen::default(),
        })
    }

    fn listen(&mut self) {
        for number in self.ready.next(self.members.len()) {
            let Some(member) = self.members.get_mut(number) else {
                continue;
            };
            while let Some(event) = member.client.poll() {
                if event == ClientEvent::Reconnected {
                    // Without it the client is still polled at regular intervals.
                    let _ = self.ready.watch(number, &member.client);
                }
                member.handle(event, self.entities);
            }
        }
    }
}

impl Seen {
    fn add(&mut self, member: &Member, stayed: bool) {
        self.checked += member.seen.checked;
        self.desyncs += member.seen.desyncs;
        self.disconnects += u64::from(member.left);
        self.events += if stayed { member.seen.events } else { 0 };
    }
}

impl Member {
    fn handle(&mut self, event: ClientEvent, entities: u32) {
        match event {
            ClientEvent::Joined => self.joined = true,
            ClientEvent::Failed(_) | ClientEvent::Left(_) | ClientEvent::Disconnected(_) => {
                self.left = true;
            }
            ClientEvent::Change(Change::Created(entity) | Change::Updated(entity)) => {
                self.check(entity, entities);
            }
            ClientEvent::Change(Change::Event { .. }) => self.seen.events += 1,
            _ => {}
        }
    }

    /// Whether the client's state equals the server's at the tick it is shown as of.
    fn check(&mut self, entity: EntityHandle, entities: u32) {
        let is_true = is_true(&self.client, entity, entities);
        self.seen.checked += u64::from(is_true.is_some());
        self.seen.desyncs += u64::from(is_true == Some(false));
    }
}

/// The relay that simulates the link.
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

/// A token for client `number`.
pub(super) fn token(
    number: u64,
    key: &TokenKey,
    servers: &[SocketAddr],
) -> Result<ConnectToken, SwarmError> {
    let grant = Grant {
        client: ClientId(number),
        protocol: prescient::protocol(),
        servers: servers.to_vec(),
        expires: UnixTime(Clock::unix().0 + 60),
        data: Vec::new(),
    };
    Ok(grant.issue(key, &mut SystemEntropy::new()?)?)
}

const SEED: u64 = 1;
/// A new client is sent everything it sees until it acknowledges it, which costs many times a
/// later packet. Real players do not all join in the same tick.
const ARRIVALS_PER_SECOND: u64 = 50;
/// Time limit for all clients to join, in microseconds.
const PATIENCE: u64 = 60_000_000;
