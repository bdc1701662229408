//! A peer's entities are sent coarser and more rarely by their priority, and stay exact within
//! that.

use crate::common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{Dice, TICK, bad, encode};
use prescient_codec::DecodeError;
use prescient_replication::{
    Candidate, Client, ClientError, EntityHandle, Link, Observer, PeerError, PeerId, Priority,
    Quality, QualityError, Room, Server, ServerConfig, Tick, Visibility,
};
use prescient_schema::{Level, Ref, Schema, SchemaBuilder, State};
use prescient_sim::link::{LinkConditioner, Time};
use prescient_tests::seeds::over_seeds;

/// Ten of each priority, as their visibility says.
#[derive(State, Clone, Debug, Default, PartialEq)]
struct Drone {
    #[state(only_on_spawn)]
    number: u16,
    #[state(step = 0.01, position, levels(0, 3, 5, 7))]
    position: [f32; 2],
    heading: i16,
}

/// Four of them are a group.
#[derive(State, Clone, Debug, Default, PartialEq)]
#[state(priority = 3)]
struct Wagon {
    #[state(only_on_spawn)]
    number: u16,
    #[state(group)]
    train: u16,
    #[state(step = 0.01, position, levels(0, 3, 5, 7))]
    position: [f32; 2],
}

const PEER: PeerId = PeerId(1);
const DRONES: u16 = 40;
const WAGONS: u16 = 12;

fn schema() -> Schema {
    let schema = SchemaBuilder::new().state::<Drone>().state::<Wagon>();
    schema.build().expect("a sound schema")
}

fn priority(value: u8) -> Priority {
    Priority::new(value).expect("below 4")
}

/// The priority of a drone, and that which wagons declare.
fn priority_of(number: u16) -> Priority {
    match number < WAGON {
        true => priority((number / 10) as u8),
        false => priority(3),
    }
}

/// The number of the first wagon.
const WAGON: u16 = 1000;

struct Policy {
    queries: Arc<AtomicU64>,
    links: Arc<AtomicU64>,
}

impl prescient_replication::Relevance for Policy {
    fn visibility(
        &self,
        observer: &Observer,
        candidate: &Candidate,
        _: Option<Visibility>,
    ) -> Option<Visibility> {
        self.queries.fetch_add(1, Ordering::Relaxed);
        if let Some(link) = observer.link {
            self.links.store(u64::from(link.loss), Ordering::Relaxed);
        }
        Some(match candidate.priority.get() {
            // Drones have slots in the order of their numbers, and declare nothing.
            0 => {
                let number = candidate.entity.index().expect("an entity") as u16;
                Visibility::PUBLIC.with_priority(priority_of(number))
            }
            _ => Visibility::PUBLIC,
        })
    }

    fn reach(&self, _: &Observer) -> Option<f64> {
        Some(1e6)
    }
}

struct Game {
    server: Server,
    client: Client,
    dice: Dice,
    tick: u64,
    drones: Vec<(Ref<Drone>, Drone)>,
    wagons: Vec<(Ref<Wagon>, Wagon)>,
    /// The true rows and the quality at each tick.
    past: BTreeMap<Tick, (BTreeMap<u16, Vec<i64>>, Quality)>,
    quality: Quality,
    queries: Arc<AtomicU64>,
    links: Arc<AtomicU64>,
}

impl Game {
    fn new(seed: u64) -> Self {
        let (queries, links) = (Arc::default(), Arc::default());
        let policy = Policy {
            queries: Arc::clone(&queries),
            links: Arc::clone(&links),
        };
        let mut server = Server::new(schema(), ServerConfig::default(), policy).expect("sound");
        let mut client = Client::new(schema(), Default::default()).expect("sound");
        server.connect(PEER);
        common::greet(&mut server, PEER, &mut client);
        server
            .set_view_position(PEER, Default::default())
            .expect("connected");
        Self {
            server,
            client,
            dice: Dice::new(seed),
            tick: 0,
            drones: Vec::new(),
            wagons: Vec::new(),
            past: BTreeMap::new(),
            quality: Quality::FULL,
            queries,
            links,
        }
    }

    fn set_quality(&mut self, quality: Quality) {
        self.server.set_quality(PEER, quality).expect("possible");
        self.quality = quality;
    }

    /// A tick, in which everything moves unless it is `still`.
    fn step(&mut self, still: bool) {
        self.tick += 1;
        let mut step = self.server.step(Tick(self.tick)).expect("in order");
        if self.tick == 1 {
            for number in 0..DRONES {
                let drone = Drone {
                    number,
                    ..Drone::default()
                };
                self.drones
                    .push((step.spawn(&drone).expect("sound"), drone));
            }
            for number in WAGON..WAGON + WAGONS {
                let train = 1 + (number - WAGON) / 4;
                let wagon = Wagon {
                    number,
                    train,
                    ..Wagon::default()
                };
                self.wagons
                    .push((step.spawn(&wagon).expect("sound"), wagon));
            }
        }
        let dice = &mut self.dice;
        let mut walk = |position: &mut [f32; 2]| {
            for axis in position {
                *axis += (dice.below(2000) as f32 - 1000.0) / 100.0;
            }
        };
        // All begin at one place, so that their ids are in the order of their numbers.
        if !still && self.tick > 1 {
            for (entity, drone) in &mut self.drones {
                walk(&mut drone.position);
                step.set(*entity, drone).expect("sound");
            }
            for (entity, wagon) in &mut self.wagons {
                walk(&mut wagon.position);
                step.set(*entity, wagon).expect("sound");
            }
        }
        step.finish();
        let drones = self.drones.iter();
        let drones = drones.map(|(_, drone)| (drone.number, drone.to_row("default")));
        let wagons = self.wagons.iter();
        let wagons = wagons.map(|(_, wagon)| (wagon.number, wagon.to_row("default")));
        let rows = drones.chain(wagons).collect();
        self.past.insert(Tick(self.tick), (rows, self.quality));
    }

    /// Delivers the newest tick and its acknowledgement at once; returns the bytes.
    fn deliver(&mut self, budget: Option<usize>) -> usize {
        let mut bytes = 0;
        for (_, message) in encode(&mut self.server, &|_| {
            budget.map_or(Room::UNLIMITED, Room::one)
        }) {
            bytes += message.len();
            self.client.handle(&message).expect("in order");
        }
        if let Some(ack) = self.client.acknowledgement() {
            self.server.handle(PEER, &ack).expect("honest");
        }
        while self.client.poll_change().is_some() {}
        bytes
    }

    /// The ticks of the shown values, by number.
    fn ticks(&self) -> BTreeMap<u16, u64> {
        let tick = |entity| {
            let tick = self.client.tick_of(entity, 0).expect("shown");
            (self.number(entity), tick.0)
        };
        self.client.entities().map(tick).collect()
    }

    fn number(&self, entity: EntityHandle) -> u16 {
        self.client.row(entity, 0).expect("shown")[0] as u16
    }

    /// Every shown row is the true one of its tick, at the level of that time. Returns how many are
    /// coarser than the truth.
    fn check(&self) -> usize {
        let mut coarse = 0;
        let schema = self.server.world().schema();
        for entity in self.client.entities() {
            let number = self.number(entity);
            let tick = self.client.tick_of(entity, 0).expect("shown");
            let (rows, quality) = &self.past[&tick];
            let class = &schema.classes[usize::from(number >= WAGON)];
            let at = |level: u8| -> Vec<i64> {
                let level = Level::new(level).expect("below 4");
                let fields = class.fields.iter().zip(&rows[&number]);
                fields
                    .map(|(field, &value)| field.at_level(level, value))
                    .collect()
            };
            let shown = self.client.row(entity, 0).expect("shown");
            let wanted = quality.level_bias(priority_of(number)).min(3);
            // A spawn is exact.
            assert!(
                shown == at(wanted) || shown == at(0),
                "{number} at {tick:?}: {shown:?}, {:?} at level {wanted}",
                at(wanted)
            );
            coarse += usize::from(shown != at(0));
            if priority_of(number).get() == 0 {
                assert_eq!(
                    Some(tick),
                    self.client.tick(),
                    "priority 0 is never delayed"
                );
                assert_eq!(shown, at(0));
            }
        }
        let ticks = self.ticks();
        for (_, wagon) in &self.wagons {
            let first = WAGON + 4 * (wagon.train - 1);
            assert_eq!(
                ticks.get(&wagon.number),
                ticks.get(&first),
                "a train was cut"
            );
        }
        coarse
    }
}

fn random_quality(dice: &mut Dice) -> Quality {
    (1..4).map(priority).fold(Quality::FULL, |quality, of| {
        let divisor = [1, 1, 2, 3, 4, 8][dice.below(6) as usize];
        quality
            .with_level_bias(of, dice.below(4) as u8)
            .with_rate_divisor(of, divisor)
    })
}

/// Over a bad link, with another quality every few ticks. Fails if `ReceiverView::level` ignores the
/// quality while `update_level` does not, if `leave_out` leaves a packet full (`is_whole` always
/// true: then clients take old values for new), or if it treats the entities of a group one by one
/// (`group_of` always `None`).
#[test]
fn values_are_exact_within_their_level() {
    over_seeds(20, |seed| {
        let mut game = Game::new(seed);
        let mut dice = Dice::new(seed + 1000);
        let mut down = LinkConditioner::new(seed, bad());
        let mut up = LinkConditioner::new(!seed, bad());
        let (mut coarse, mut delayed) = (0, 0);
        for _ in 0..300 {
            if dice.chance(20) {
                let quality = random_quality(&mut dice);
                game.set_quality(quality);
            }
            game.step(dice.chance(10));
            let now = Time::from_micros(game.tick * TICK.as_micros() as u64);
            for (_, message) in encode(&mut game.server, &|_| Room::UNLIMITED) {
                down.send(now, &message);
            }
            while let Some(message) = down.poll(now) {
                match game.client.handle(&message) {
                    Ok(()) | Err(ClientError::State(DecodeError::Late)) => {}
                    Err(error) => panic!("an honest packet was refused: {error}"),
                }
                while game.client.poll_change().is_some() {}
                coarse += game.check();
                let shown = game.client.tick();
                delayed += game
                    .client
                    .entities()
                    .filter(|&entity| game.client.tick_of(entity, 0) != shown)
                    .count();
            }
            if let Some(ack) = game.client.acknowledgement() {
                up.send(now, &ack);
            }
            while let Some(message) = up.poll(now) {
                game.server.handle(PEER, &message).expect("honest");
            }
        }
        assert!(
            coarse > 1000 && delayed > 500,
            "{coarse} coarse, {delayed} delayed"
        );
    });
}

/// In every packet as many as in any other, each in every fourth. Fails if the turn does not depend
/// on the id (`round.is_multiple_of` in `begin_round`), or `note_sent` leaves entities due.
#[test]
fn turns_are_spread_evenly() {
    let mut game = Game::new(1);
    let slow = (1..4).map(priority).fold(Quality::FULL, |quality, of| {
        quality.with_rate_divisor(of, 4)
    });
    for _ in 0..10 {
        game.step(false);
        game.deliver(None);
    }
    game.set_quality(slow);
    for time in 0..40 {
        game.step(false);
        game.deliver(None);
        game.check();
        if time < 8 {
            continue;
        }
        let now = game.tick;
        let ticks = game.ticks();
        let drones = ticks.iter().filter(|(number, _)| **number < WAGON);
        let current = drones.filter(|(_, tick)| **tick == now).count();
        // A quarter of 30, and all 10 of priority 0.
        assert!((17..=18).contains(&current), "{current} at {now}");
        assert!(ticks.values().all(|&tick| now - tick < 4), "{ticks:?}");
    }
    // Back at full quality, the next packet has all.
    game.set_quality(Quality::FULL);
    game.step(false);
    game.deliver(None);
    assert_eq!(game.client.complete_tick(), Some(Tick(game.tick)));
}

/// If packets are too small, whatever is due stays due. Fails if `begin_round` makes entities that
/// missed their turn wait for the next (all grades not due before the loop).
#[test]
fn nobody_starves() {
    over_seeds(20, |seed| {
        let mut game = Game::new(seed);
        let mut dice = Dice::new(seed);
        let mut stalest = 0;
        for time in 0..400 {
            if dice.chance(5) {
                let quality = random_quality(&mut dice);
                game.set_quality(quality);
            }
            game.step(false);
            game.deliver(Some(120));
            if time < 100 {
                continue;
            }
            let ticks = game.ticks();
            assert_eq!(ticks.len(), usize::from(DRONES + WAGONS));
            stalest = ticks
                .values()
                .fold(stalest, |stalest, tick| stalest.max(game.tick - tick));
        }
        assert!(stalest <= 40, "{stalest} ticks");
    });
}

/// Fails if `leave_out` leaves out spawns or despawns that are not due.
#[test]
fn appearing_and_disappearing_are_not_delayed() {
    let mut game = Game::new(1);
    let rare = Quality::FULL.with_rate_divisor(priority(3), 32);
    game.set_quality(rare);
    game.step(false);
    game.deliver(None);
    for tick in 2..100u32 {
        let there = usize::from(DRONES + WAGONS);
        game.step(false);
        if tick % 2 == 0 {
            game.tick += 1;
            let mut step = game.server.step(Tick(game.tick)).expect("in order");
            let number = WAGON + 500;
            let wagon = Wagon {
                number,
                ..Wagon::default()
            };
            let entity = step.spawn(&wagon).expect("sound");
            step.finish();
            game.deliver(None);
            assert_eq!(game.client.entities().count(), there + 1);
            game.tick += 1;
            let mut step = game.server.step(Tick(game.tick)).expect("in order");
            step.despawn(entity.entity_ref()).expect("there");
            step.finish();
        }
        game.deliver(None);
        assert_eq!(game.client.entities().count(), there);
    }
}

/// What does not move comes to rest, whatever its turn. Fails if `leave_out` does not cover quiet
/// entities (`is_quiet` always false).
#[test]
fn what_is_still_costs_nothing() {
    let mut game = Game::new(1);
    let slow = (1..4).map(priority).fold(Quality::FULL, |quality, of| {
        quality.with_rate_divisor(of, 4).with_level_bias(of, 2)
    });
    game.set_quality(slow);
    for _ in 0..30 {
        game.step(false);
        game.deliver(None);
    }
    let mut bytes = 0;
    for time in 0..120 {
        // Trains take turns as wholes, so they are despawned here.
        if time == 0 {
            game.tick += 1;
            let mut step = game.server.step(Tick(game.tick)).expect("in order");
            for (wagon, _) in game.wagons.drain(..) {
                step.despawn(wagon.entity_ref()).expect("there");
            }
        } else {
            game.step(true);
        }
        bytes = game.deliver(None);
    }
    assert!(bytes <= 8, "{bytes} bytes of nothing");
    // Nothing is left out, because nothing is active.
    assert_eq!(game.client.complete_tick(), Some(Tick(game.tick)));
}

/// Coarser and rarer is cheaper, and no query of the policy. Fails if `Server::set_quality` requests
/// an evaluation, if a change of the link does (`==` for `looks_like`), or if `Peer::encode` does
/// not set the quality.
#[test]
fn quality_saves_bytes_and_asks_nobody() {
    let mut game = Game::new(1);
    let total = |game: &mut Game, quality: &dyn Fn(u32) -> Quality| {
        let mut bytes = 0;
        for time in 0..100 {
            game.set_quality(quality(time));
            let link = Link {
                round_trip_micros: Some(40_000 + u64::from(time)),
                loss: time,
                bytes_per_second: 1 << 20,
            };
            game.server.set_link(PEER, Some(link)).expect("connected");
            game.step(false);
            bytes += game.deliver(None);
        }
        bytes
    };
    let all = |bias: u8, divisor: u8| {
        (1..4).map(priority).fold(Quality::FULL, |quality, of| {
            let coarser = quality.with_level_bias(of, bias);
            coarser.with_rate_divisor(of, divisor)
        })
    };
    let full = total(&mut game, &|_| Quality::FULL);
    let coarse = total(&mut game, &|_| all(2, 1));
    let rare = total(&mut game, &|_| all(0, 4));
    println!("{full} bytes, {coarse} coarse, {rare} rare");
    assert!(coarse < full, "{coarse} of {full}");
    assert!(rare * 10 < full * 6, "{rare} of {full}");
    assert!(
        game.links.load(Ordering::Relaxed) > 0,
        "policies see the link"
    );
    // Nothing moves, so only the quality and the link could be reasons for queries.
    for _ in 0..10 {
        game.step(true);
        game.deliver(None);
    }
    let before = game.queries.load(Ordering::Relaxed);
    for time in 0..20 {
        game.set_quality(all(time % 4, 1 + time % 3));
        let link = Link {
            loss: u32::from(time),
            ..Link::default()
        };
        game.server.set_link(PEER, Some(link)).expect("connected");
        game.step(true);
        game.deliver(None);
    }
    assert_eq!(game.queries.load(Ordering::Relaxed), before);
}

/// Fails if a check of `Quality::check` is left out, or `Server::set_quality` does not call it.
#[test]
fn impossible_qualities_are_refused() {
    let mut game = Game::new(1);
    let mut set = |quality| game.server.set_quality(PEER, quality);
    let (zero, one) = (priority(0), priority(1));
    let never = Err(PeerError::Quality(QualityError::PriorityZero));
    assert_eq!(set(Quality::FULL.with_level_bias(zero, 1)), never);
    assert_eq!(set(Quality::FULL.with_rate_divisor(zero, 2)), never);
    let bias = Err(PeerError::Quality(QualityError::LevelBias(4)));
    assert_eq!(set(Quality::FULL.with_level_bias(one, 4)), bias);
    for divisor in [0, 33, 255] {
        let refused = Err(PeerError::Quality(QualityError::RateDivisor(divisor)));
        assert_eq!(set(Quality::FULL.with_rate_divisor(one, divisor)), refused);
    }
    assert_eq!(set(Quality::FULL.with_rate_divisor(one, 32)), Ok(()));
    let nobody = PeerId(99);
    let missing = Err(PeerError::NoSuchPeer(nobody));
    assert_eq!(game.server.set_quality(nobody, Quality::FULL), missing);
}
