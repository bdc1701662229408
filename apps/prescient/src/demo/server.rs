//! The server of the demo.

use std::time::Duration;

use prescient::{
    About, EntityRef, Everything, Limits, Ref, Server, ServerEvent, ServerOptions, Tick, TokenKey,
    WorldError,
};
use prescient_net::Clock;

use super::board::Board;
use super::creature::{Creature, schema};
use super::pond::{HZ, Pond};
use super::truth::{Row, row_of};

/// The server with its world.
pub(super) struct DemoServer {
    server: Server,
    pond: Pond,
    creatures: Vec<Ref<Creature>>,
    ticks: u64,
}

impl DemoServer {
    /// A server on a free port of this machine.
    pub(super) fn open(key: TokenKey) -> Result<Self, prescient::ServeError> {
        // All clients have the same address.
        let limits = Limits::default()
            .with_connections_per_address(usize::MAX)
            .with_handshakes_per_address(u32::MAX);
        let options = ServerOptions::default().with_limits(limits);
        Ok(Self {
            server: Server::bind("127.0.0.1:0", key, schema(), Everything, options)?,
            pond: Pond::new(SEED),
            creatures: Vec::new(),
            ticks: 0,
        })
    }

    /// The address for clients.
    pub(super) fn address(&self) -> std::net::SocketAddr {
        self.server.address().expect("it was bound to one")
    }

    /// Runs until the demo is over, and returns the number of ticks.
    pub(super) fn run(mut self, board: &Board) -> Result<u64, WorldError> {
        let clock = Clock::start();
        let every = Duration::from_micros(1_000_000 / u64::from(HZ));
        let mut due = clock.now();
        while !board.is_over() {
            self.tick(board)?;
            // After a delay the next tick is due now; missed ticks are not made up for.
            due = due.after(every).max(clock.now());
            self.server.wait(due.since(clock.now()));
        }
        self.server.shut_down();
        Ok(self.ticks)
    }

    fn tick(&mut self, board: &Board) -> Result<(), WorldError> {
        let mut tapped = Vec::new();
        while let Some(event) = self.server.poll() {
            if let ServerEvent::Event {
                about: About::Entity(entity),
                ..
            } = event
            {
                tapped.push(entity);
            }
        }
        for &entity in &tapped {
            if let Some(number) = self.number_of(entity) {
                self.pond.tap(number);
            }
        }
        self.pond.step();
        self.ticks += 1;
        let creatures = self.pond.creatures();
        let mut step = self.server.step()?;
        for (number, creature) in creatures.iter().enumerate() {
            match self.creatures.get(number) {
                Some(&entity) => step.set(entity, creature)?,
                None => self.creatures.push(step.spawn(creature)?),
            }
        }
        step.finish();
        for &entity in &tapped {
            self.server.send_entity_event(entity, TAPPED)?;
        }
        let rows: Vec<Row> = creatures.iter().map(row_of).collect();
        let positions: Vec<_> = (tapped.iter())
            .filter_map(|&entity| rows.get(self.number_of(entity)?))
            .map(|row| [row[0], row[1]])
            .collect();
        // Before any client can have received it.
        board.write(|notes| {
            notes.truth.push(Tick(self.ticks), rows);
            positions
                .into_iter()
                .for_each(|position| notes.ripples.push(position));
        });
        self.server.send();
        Ok(())
    }

    fn number_of(&self, entity: EntityRef) -> Option<usize> {
        let mut creatures = self.creatures.iter();
        creatures.position(|creature| creature.entity_ref() == entity)
    }
}

/// Payload of a tap's event, from a client to the server and from there to all clients.
pub(super) const TAPPED: &[u8] = b"tapped";
const SEED: u64 = 7;
