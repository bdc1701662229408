//! Case 35: the memory and work of a server for peers that never apply what they are sent. A single
//! test, because memory is counted for the whole process.

mod common;

use std::alloc::System;

use common::{Dice, Unit, encode, greet, schema};
use prescient_replication::{
    Client, Everything, PeerId, PeerStatistics, Room, Server, ServerConfig, Tick,
};
use prescient_schema::Ref;
use prescient_tests::seeds::over_seeds;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn held() -> usize {
    let stats = MEMORY.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// How a peer responds to state.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Habit {
    /// Applies and acknowledges it.
    Honest,
    /// Sends nothing. A peer that acknowledges packets only in the transport and one that vanished
    /// are the same here.
    Deaf,
    /// Requests a resync, because it cannot decode.
    Refusing,
    /// Applies a few packets, and nothing after that.
    Fickle,
}

/// Many units of which most move, and peers that see all of them.
struct Field {
    server: Server,
    units: Vec<(Ref<Unit>, Unit)>,
    /// With the tick at which each joined.
    peers: Vec<(Habit, u32, Client)>,
    dice: Dice,
    tick: u32,
}

impl Field {
    fn new(seed: u64, units: usize) -> Self {
        let mut field = Self {
            server: Server::new(schema(), ServerConfig::default(), Everything).expect("sound"),
            units: Vec::new(),
            peers: Vec::new(),
            dice: Dice::new(seed),
            tick: 0,
        };
        field.step(|step, dice, all| {
            for _ in 0..units {
                let position = [dice.below(900) as f32, dice.below(900) as f32];
                let unit = Unit {
                    position,
                    health: dice.below(250) as u8,
                    ..Unit::default()
                };
                let entity = step.spawn(&unit).expect("sound");
                all.push((entity, unit));
            }
        });
        // The world's own memory does not grow from here on.
        (0..130).for_each(|_| field.walk());
        field
    }

    fn step(
        &mut self,
        act: impl FnOnce(
            &mut prescient_replication::WorldStep<'_>,
            &mut Dice,
            &mut Vec<(Ref<Unit>, Unit)>,
        ),
    ) {
        self.tick += 1;
        let mut step = self.server.step(Tick(self.tick.into())).expect("in order");
        act(&mut step, &mut self.dice, &mut self.units);
        step.finish();
    }

    fn walk(&mut self) {
        self.step(|step, dice, all| {
            for (at, (entity, unit)) in all.iter_mut().enumerate() {
                if at % 3 > 0 {
                    unit.position[at % 2] += 0.05 * (1 + at % 7) as f32;
                    if dice.chance(2) {
                        unit.position[0] -= 3.0;
                    }
                }
                step.set(*entity, unit).expect("sound");
            }
        });
    }

    fn join(&mut self, habit: Habit) -> PeerId {
        let peer = PeerId(self.peers.len() as u64);
        let mut client = Client::new(schema(), Default::default()).expect("sound");
        self.server.connect(peer);
        greet(&mut self.server, peer, &mut client);
        self.peers.push((habit, self.tick, client));
        peer
    }

    /// A tick of the world, and the peers' responses.
    fn pass(&mut self) {
        self.walk();
        for (peer, mut message) in encode(&mut self.server, &|_| Room::one(PACKET)) {
            let (habit, joined, client) = &mut self.peers[peer.0 as usize];
            match habit {
                Habit::Honest => client.handle(&message).expect("in order"),
                Habit::Fickle
                    if client
                        .tick()
                        .is_none_or(|tick| tick.0 < (*joined + 9).into()) =>
                {
                    client.handle(&message).expect("in order");
                }
                Habit::Deaf | Habit::Fickle => continue,
                Habit::Refusing => {
                    // The first byte is the type of the message.
                    message[1..].iter_mut().for_each(|byte| *byte ^= 0x55);
                    client.handle(&message).expect_err("nonsense");
                }
            }
            while client.poll_change().is_some() {}
            if let Some(ack) = client.acknowledgement() {
                self.server.handle(peer, &ack).expect("sound");
            }
        }
    }

    fn statistics(&self, peer: PeerId) -> PeerStatistics {
        self.server.statistics(peer).expect("it is there")
    }

    /// Bytes that the server frees when it removes a peer.
    fn part(&mut self, peer: PeerId) -> usize {
        let before = held();
        self.server.disconnect(peer);
        before - held()
    }
}

const PACKET: usize = 1100;
/// At 30 Hz.
const SECOND: u32 = 30;

/// Fails if `Pace::turn` is always `Full` (4 MB for a deaf peer of 300 units), if `Pace::note_sent`
/// never drops logs, or if `Peer::acknowledge` counts a request for a resync as progress.
#[test]
fn a_peer_that_applies_nothing_costs_no_more_than_others() {
    over_seeds(20, |seed| compare(seed, 300));
    over_seeds(2, |seed| compare(seed, 3000));
}

/// An honest peer beside unresponsive ones of all ages up to 20 seconds, when they would be closed.
fn compare(seed: u64, units: usize) {
    let mut field = Field::new(seed, units);
    let honest = field.join(Habit::Honest);
    let mut ghosts = Vec::new();
    for age in (0..=20 * SECOND).rev() {
        if [0, 3, 10, 20, 29, 40, 90, 300, 600].contains(&age) {
            for habit in [Habit::Deaf, Habit::Refusing, Habit::Fickle] {
                ghosts.push((habit, age, field.join(habit)));
            }
        }
        field.pass();
    }
    let usual = field.statistics(honest);
    let own = field.part(honest);
    for (habit, age, ghost) in ghosts {
        let it = field.statistics(ghost);
        let cost = field.part(ghost);
        let what = format!("{habit:?} for {age} ticks beside {units} units");
        // A peer that joins a large world and stops a moment later costs up to 2.1 times what
        // others do, for less than a second.
        if habit != Habit::Fickle || units < 3000 || age >= SECOND {
            assert!(cost <= 2 * own, "{what}: {cost} bytes, {own} for others");
        }
        assert!(habit == Habit::Fickle || it.codec.applied == 0, "{what}");
        if age == 20 * SECOND {
            assert!(it.unapplied >= 20, "{what}: {} packets", it.unapplied);
            let max = if habit == Habit::Fickle { 120 } else { 60 };
            assert!(it.packets <= max, "{what}: {} packets", it.packets);
            let (work, usual) = (it.codec.coded, usual.codec.coded);
            assert!(
                2 * work <= usual,
                "{what}: {work} coded, {usual} for others"
            );
        }
    }
}
