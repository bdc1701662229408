//! A small game over bad links.
#![allow(dead_code, unreachable_pub, reason = "every test uses another part")]

pub mod battle;

use std::collections::BTreeMap;
use std::time::Duration;

use prescient_codec::DecodeError;
use prescient_replication::{
    About, Change, Client, ClientError, Delivery, EntityHandle, PeerId, Relevance, Room, Rooms,
    Server, ServerConfig, Tick, Transmit,
};
use prescient_schema::{Ref, Schema, SchemaBuilder, State};
use prescient_sim::link::{Conditions, LinkConditioner, Time};
use prescient_sim::world::Random;

#[derive(State, Clone, Debug, Default, PartialEq)]
#[state(rename = "unit", tables(public, private))]
pub struct Unit {
    #[state(step = 0.01, position, tables(public))]
    pub position: [f32; 2],
    #[state(tables(public))]
    pub health: u8,
    #[state(tables(public))]
    pub target: Ref<Unit>,
    #[state(tables(private))]
    pub gold: u16,
}

pub fn schema() -> Schema {
    let schema = SchemaBuilder::new().state::<Unit>().build();
    schema.expect("a sound schema")
}

/// Encodes the newest tick, and returns all messages that wait for peers.
pub fn encode(server: &mut Server, rooms: &Rooms<'_>) -> Vec<(PeerId, Vec<u8>)> {
    server.encode(rooms);
    let peers: Vec<_> = server.peers().collect();
    let mut messages = Vec::new();
    for peer in peers {
        while let Some(transmit) = server.poll_transmit(peer) {
            messages.push((peer, transmit.into_message()));
        }
    }
    messages
}

/// The next message for a peer.
pub fn poll(server: &mut Server, peer: PeerId) -> Option<Vec<u8>> {
    server.poll_transmit(peer).map(Transmit::into_message)
}

/// Exchanges all messages that precede state.
pub fn greet(server: &mut Server, peer: PeerId, client: &mut Client) {
    while let Some(message) = client.poll_message() {
        server.handle(peer, &message).expect("an honest message");
    }
    while let Some(message) = poll(server, peer) {
        client.handle(&message).expect("an honest message");
    }
}

/// The random decisions of a game, from a seed.
pub struct Dice(Random);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.range(0, limit as i64) as u64
    }

    pub fn chance(&mut self, percent: u32) -> bool {
        self.0.chance(percent * 10_000)
    }
}

/// Duration of a tick on the links.
pub const TICK: Duration = Duration::from_millis(1);

/// A link with a latency of one tick and no faults.
pub fn good() -> Conditions {
    Conditions::default().with_latency(TICK)
}

/// A link that loses a fifth of all packets, and delays, reorders and repeats.
pub fn bad() -> Conditions {
    good()
        .with_reordering_jitter(4 * TICK)
        .with_loss(200_000)
        .with_duplication(100_000, 4 * TICK)
}

/// A received event, with the value of its entity at that time.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    pub tick: Tick,
    pub about: About<EntityHandle>,
    pub unit: Option<Unit>,
    pub payload: Vec<u8>,
}

/// A client behind a link.
pub struct TestClient {
    pub peer: PeerId,
    pub client: Client,
    pub down: LinkConditioner,
    pub up: LinkConditioner,
    /// Carries reliable messages: late, but without loss.
    pub events_down: LinkConditioner,
    /// The entities as the program knows them from changes.
    pub entities: BTreeMap<EntityHandle, Unit>,
    pub events: Vec<Heard>,
    /// The longest message of state.
    pub largest: usize,
}

impl TestClient {
    /// Puts what the server has for the client onto the links.
    pub fn take_from(&mut self, server: &mut Server, now: Time) {
        while let Some(transmit) = server.poll_transmit(self.peer) {
            let message = transmit.message();
            match transmit.delivery {
                Delivery::Reliable | Delivery::Unordered => self.events_down.send(now, message),
                Delivery::Unreliable | Delivery::Sequenced => {
                    self.largest = self.largest.max(message.len());
                    self.down.send(now, message);
                }
            }
        }
    }

    pub fn new(peer: PeerId, seed: u64, link: &Conditions) -> Self {
        let late = good().with_reordering_jitter(11 * TICK);
        let seed = seed * 100 + peer.0;
        Self {
            peer,
            client: Client::new(schema(), Default::default()).expect("a sound schema"),
            down: LinkConditioner::new(seed, link.clone()),
            up: LinkConditioner::new(!seed, link.clone()),
            events_down: LinkConditioner::new(seed, late),
            entities: BTreeMap::new(),
            events: Vec::new(),
            largest: 0,
        }
    }

    /// Polls everything, as a program would, and keeps the program's own copy.
    pub fn poll(&mut self) {
        while let Some(change) = self.client.poll_change() {
            match change {
                Change::Created(entity) => {
                    let unit = self.client.get(entity).expect("it was just created");
                    assert_eq!(self.entities.insert(entity, unit), None, "created twice");
                }
                Change::Updated(entity) => {
                    let unit = self.client.get(entity).expect("it was just updated");
                    let known = self.entities.insert(entity, unit);
                    assert!(known.is_some(), "updated before it was created");
                }
                Change::Removed(entity) => {
                    assert!(
                        self.entities.remove(&entity).is_some(),
                        "removed, not known"
                    );
                }
                Change::TableAdded { .. }
                | Change::TableRemoved { .. }
                | Change::AuthorityChanged { .. }
                | Change::Entered => {}
                Change::Event {
                    tick,
                    about,
                    payload,
                } => {
                    let unit = match about {
                        About::Entity(entity) => {
                            // One that has left meanwhile can still be read.
                            let unit = self.entities.get(&entity).cloned();
                            let unit = unit.or_else(|| self.client.get(entity));
                            Some(unit.expect("no stranger"))
                        }
                        About::Nothing | About::Gone => None,
                    };
                    self.events.push(Heard {
                        tick,
                        about,
                        unit,
                        payload,
                    });
                }
                other => panic!("a change that no program knows: {other:?}"),
            }
        }
    }
}

/// A server, its clients, and the links between them.
pub struct TestWorld {
    pub server: Server,
    pub clients: Vec<TestClient>,
    pub dice: Dice,
    pub budget: Option<usize>,
    /// Whether links damage packets, so that some are refused.
    pub damaged: bool,
    pub tick: u32,
}

impl TestWorld {
    pub fn new(seed: u64, peers: u64, link: Conditions, policy: impl Relevance + 'static) -> Self {
        let config = ServerConfig::default();
        let mut server = Server::new(schema(), config, policy).expect("a sound schema");
        let test_client = |peer| TestClient::new(PeerId(peer), seed, &link);
        let clients = (1..=peers).map(test_client).collect();
        (1..=peers).for_each(|peer| server.connect(PeerId(peer)));
        let mut test_world = Self {
            server,
            clients,
            dice: Dice::new(seed),
            budget: None,
            damaged: false,
            tick: 0,
        };
        for test_client in &mut test_world.clients {
            greet(
                &mut test_world.server,
                test_client.peer,
                &mut test_client.client,
            );
            assert!(test_client.client.is_welcome());
        }
        test_world
    }

    /// The server handles the clients' reliable messages.
    pub fn listen(&mut self) {
        for test_client in &mut self.clients {
            while let Some(message) = test_client.client.poll_message() {
                let taken = self.server.handle(test_client.peer, &message);
                taken.expect("an honest message");
            }
        }
    }

    /// Replaces all links by good ones.
    pub fn heal(&mut self) {
        let now = self.now();
        for test_client in &mut self.clients {
            for lane in [
                &mut test_client.down,
                &mut test_client.up,
                &mut test_client.events_down,
            ] {
                lane.change(now, good());
            }
        }
    }

    pub fn now(&self) -> Time {
        Time::from_micros(u64::from(self.tick) * TICK.as_micros() as u64)
    }

    /// Sends the state of the newest tick, and delivers everything that is due.
    pub fn exchange(&mut self) {
        let (now, budget) = (self.now(), self.budget);
        self.server
            .encode(&|_| budget.map_or(Room::UNLIMITED, Room::one));
        for test_client in &mut self.clients {
            test_client.take_from(&mut self.server, now);
            while let Some(message) = test_client.down.poll(now) {
                match test_client.client.handle(&message) {
                    Ok(()) | Err(ClientError::State(DecodeError::Late) | ClientError::Early) => {}
                    Err(_) if self.damaged => {}
                    Err(error) => panic!("an honest packet was refused: {error}"),
                }
            }
            while let Some(event) = test_client.events_down.poll(now) {
                test_client.client.handle(&event).expect("an honest event");
            }
            if let Some(ack) = test_client.client.acknowledgement() {
                test_client.up.send(now, &ack);
            }
            while let Some(message) = test_client.up.poll(now) {
                let taken = self.server.handle(test_client.peer, &message);
                taken.expect("an honest answer");
            }
            test_client.take_from(&mut self.server, now);
            test_client.poll();
        }
        self.listen();
    }
}
