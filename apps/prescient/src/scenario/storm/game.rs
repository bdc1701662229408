//! One storm: a server, its clients and their network.

mod agreement;
mod events;
mod faults;
mod visibility;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use prescient::schema::Schema;
use prescient_channels as channels;
use prescient_codec::Profile;
use prescient_replication::{Config, PeerId, Room, ServerConfig, Tick};
use prescient_sim::link::{EndpointId, Network, Time};

use super::client::StormClient;
use super::dice::Dice;
use super::host::Host;
use super::policy::Policy;
use super::promise::Promise;
use super::truth::{Key, NEIGHBOUR, Truth};
use super::verdict::{Fault, Verdict};
use super::verify::Witness;
use super::{links, schemas};
use events::receive;
use faults::room;

/// The server's address.
pub(super) const SERVER: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 4000);

/// The virtual clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(pub Time);

impl Clock {
    /// The time as the transport counts it.
    pub(super) fn transport(self) -> channels::Time {
        channels::Time::from_micros(self.0.as_micros() + (1 << 40))
    }
}

/// A message to a peer: its tick, whether it is state (or an event), its bytes.
pub(super) type Sent = (Tick, bool, Vec<u8>);

/// A storm.
pub(super) struct Game {
    seed: u64,
    schema: Schema,
    config: ServerConfig,
    policy: Policy,
    truth: Truth,
    host: Host,
    server: EndpointId,
    network: Network,
    clients: Vec<StormClient>,
    clock: Clock,
    pub tick: Tick,
    frozen: bool,
    /// Number of ticks without any change.
    still: u32,
    /// The state and events that each connection of each peer must receive.
    promises: BTreeMap<(PeerId, u32), Promise>,
    /// View positions and teams of all peers, connected or not.
    view_positions: BTreeMap<PeerId, ViewPosition>,
    teams: BTreeMap<PeerId, u32>,
    /// Events since the last packets: number, entity, and the only recipient if there is one.
    announced: Vec<(u32, Key, Option<PeerId>)>,
    events: u32,
    restart_at: Option<u32>,
    /// Number of events that the server received, by connection.
    received: BTreeMap<(PeerId, u32), u32>,
    pub messages: BTreeMap<PeerId, Vec<Sent>>,
    pub verdict: Verdict,
}

#[derive(Clone, Copy)]
enum ViewPosition {
    Fixed([f64; 3]),
    Follow(Key),
}

impl Game {
    /// The storm of a seed, with or without hidden entities.
    pub(super) fn new(seed: u64, with_hidden: bool) -> Self {
        let mut dice = Dice::of(seed, 1);
        let (types, schema) = schemas::random(&mut dice);
        let policy = Policy::random(&mut dice);
        let config = ServerConfig::default()
            .with_codec(
                Config::default()
                    .with_profile([Profile::Default, Profile::Best][dice.below(8) / 7]),
            )
            .with_relevance_interval([1, 2, 4, 7][dice.below(4)])
            .with_grid_cell([1.0, 20.0, 100.0][dice.below(3)])
            .with_resync_every([0, 3, 30][dice.below(3)]);
        let clock = Clock(Time::from_secs(1));
        let entropy = Dice::of(seed, 3);
        let host = Host::new(
            schema.clone(),
            config.clone(),
            policy.clone(),
            entropy,
            clock,
        );
        let host = host.expect("a sound schema");
        let mut network = Network::new(seed);
        let server = network.add(SERVER).expect("the address is free");
        let peers = 1 + dice.below(3) as u64;
        let all = (1..=peers).map(PeerId).chain([NEIGHBOUR]);
        let clients = all.map(|peer| {
            let address = SocketAddr::from(([10, 0, peer.0 as u8, 1], 5000));
            let endpoint = network
                .add(address)
                .expect("every client has its own address");
            let joined = network.join(endpoint, server, links::good(), links::good());
            joined.expect("both endpoints exist");
            let mut dice = Dice::of(seed, 100 + peer.0);
            StormClient {
                peer,
                endpoint,
                room: room(&mut dice),
                stalled_until: Time::ZERO,
                away_until: Time::from_millis(
                    1000 + dice.below(2) as u64 * dice.below(2000) as u64,
                ),
                visits: 0,
                visit: None,
                dice,
            }
        });
        let clients = clients.collect();
        Self {
            seed,
            schema,
            config,
            policy,
            truth: Truth::new(seed, types, peers, with_hidden),
            host,
            server,
            network,
            clients,
            clock,
            tick: Tick(0),
            frozen: false,
            still: 0,
            promises: BTreeMap::new(),
            view_positions: BTreeMap::new(),
            teams: BTreeMap::new(),
            announced: Vec::new(),
            events: 0,
            restart_at: dice.of_thousand(200).then(|| 20 + dice.below(100) as u32),
            received: BTreeMap::new(),
            messages: BTreeMap::new(),
            verdict: Verdict::default(),
        }
    }

    /// Plays to the end, where the links heal and all clients must reach the server's state.
    pub(super) fn play(mut self) -> Self {
        let length = 60 + Dice::of(self.seed, 4).below(100) as u32;
        for turn in 0..length {
            self.blow();
            self.turn(turn);
        }
        self.heal();
        for turn in 0..CALM {
            self.turn(length + turn);
        }
        self.frozen = true;
        let mut missing = Vec::new();
        for turn in 0..PATIENCE {
            self.turn(length + CALM + turn);
            missing = self.missing();
            if turn > 10 && missing.is_empty() {
                break;
            }
        }
        for story in missing {
            self.verdict.note(Fault::Failure, || {
                format!("the state still differs in the end: {story}")
            });
        }
        self.conclude();
        self
    }

    /// Simulates a tick, and the time until the next.
    fn turn(&mut self, turn: u32) {
        let leap = match self.truth.dice().below(50) {
            0 if !self.frozen => 1 + self.truth.dice().below(40) as u32,
            _ => 1,
        };
        self.tick = Tick(self.tick.0 + u64::from(leap));
        self.still += u32::from(self.frozen);
        if self.restart_at == Some(turn) {
            self.restart();
        } else {
            let step = self.host.server.step(self.tick).expect("ticks grow");
            let stepped = self.truth.step(self.tick, step, self.frozen);
            stepped.expect("the world is sound");
        }
        self.publish();
        self.direct();
        self.announce();
        // Packets are not sent every tick.
        if self.frozen || !self.truth.dice().of_thousand(100) {
            self.send();
        }
        for _ in 0..STEPS_PER_TICK {
            self.clock = Clock(self.clock.0 + STEP_SPAN);
            self.attend();
        }
    }

    /// Replaces the server by a new one with the same world and no connections.
    fn restart(&mut self) {
        let entropy = Dice::of(self.seed, 5);
        *self.policy.notes() = Default::default();
        let (schema, policy) = (self.schema.clone(), self.policy.clone());
        let host = Host::new(schema, self.config.clone(), policy, entropy, self.clock);
        self.host = host.expect("a sound schema");
        self.announced.clear();
        let step = self.host.server.step(self.tick).expect("the first tick");
        let begun = self.truth.begin_anew(self.tick, step);
        begun.expect("the world is sound");
    }

    fn promise(&mut self, peer: PeerId, visit: u32) -> &mut Promise {
        self.promises.entry((peer, visit)).or_default()
    }

    /// Sends state and events, and records what each peer must receive.
    fn send(&mut self) {
        let announced = std::mem::take(&mut self.announced);
        let here: Vec<(PeerId, u32)> = (self.clients.iter())
            .filter_map(|client| Some((client.peer, self.host.visit_of(client.peer)?)))
            .collect();
        let mut saw = BTreeMap::new();
        for &(peer, visit) in &here {
            let promise = self.promise(peer, visit);
            let events = announced.iter().filter(|(_, key, _)| promise.sees(*key));
            let events: Vec<u32> = events.map(|&(number, ..)| number).collect();
            saw.insert(peer, events);
        }
        let rooms: BTreeMap<PeerId, Room> = (self.clients.iter())
            .map(|client| (client.peer, client.room))
            .collect();
        let room = |peer: PeerId| rooms.get(&peer).copied().unwrap_or(Room::UNLIMITED);
        let messages = self.host.send_world(&room, self.clock, &mut self.verdict);
        for (peer, visit) in here {
            let views = self.views(peer);
            let (tick, saw) = (self.tick, &saw[&peer]);
            let promise = self.promises.entry((peer, visit)).or_default();
            promise.show(tick, views);
            for &(number, key, to) in &announced {
                let sees = saw.contains(&number) || promise.sees(key);
                if sees && to.is_none_or(|to| to == peer) {
                    promise.events.insert(number, key);
                }
            }
        }
        for (peer, is_state, message) in messages {
            let log = self.messages.entry(peer).or_default();
            log.push((self.tick, is_state, message));
        }
    }

    /// Lets the server and all clients handle received packets.
    fn attend(&mut self) {
        let Self {
            network,
            clock,
            verdict,
            ..
        } = self;
        let happened = self.host.attend(network, self.server, *clock, verdict);
        for happened in happened {
            self.note(happened);
        }
        for at in 0..self.clients.len() {
            self.attend_client(at);
        }
        let sent = self
            .host
            .transmit(&mut self.network, self.server, self.clock);
        self.verdict.packets += sent;
    }

    fn attend_client(&mut self, at: usize) {
        let (clock, client) = (self.clock, &mut self.clients[at]);
        if client.stalled_until > clock.0 {
            return;
        }
        if client.visit.is_none() && client.away_until <= clock.0 {
            client.come(self.schema.clone(), clock);
        }
        let (peer, visit) = (client.peer, client.visits);
        let promise = self.promises.entry((peer, visit)).or_default();
        let truth = &self.truth;
        let witness = Witness {
            truth,
            promise,
            peer,
            settled: false,
        };
        let mut look = |visit: &super::client::Visit, verdict: &mut Verdict| {
            witness.compare(&visit.view, verdict);
        };
        let over = client.attend(&mut self.network, clock, &mut self.verdict, &mut look);
        if let Some(visit) = &mut client.visit {
            for received in visit.poll(peer, &mut self.verdict) {
                receive(
                    received,
                    &visit.view,
                    truth,
                    promise,
                    peer,
                    &mut self.verdict,
                );
            }
            self.verdict.packets += visit.transmit(&mut self.network, client.endpoint, clock);
        }
        if over {
            client.visit = None;
            client.away_until = clock.0 + Duration::from_millis(client.dice.below(300) as u64);
        }
    }
}

/// Duration of a step of simulated time.
const STEP_SPAN: Duration = Duration::from_millis(5);
/// Steps of simulated time per tick.
const STEPS_PER_TICK: u32 = 8;
/// Ticks for which the world continues after the links have healed.
const CALM: u32 = 6;
/// Ticks after which all clients must have the server's state.
const PATIENCE: u32 = 150;
