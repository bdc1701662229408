//! Entities gain and lose optional tables while they live, and every client shows exactly those that
//! it may see.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Dice, TICK, bad, encode, good, greet, poll};
use prescient_codec::DecodeError;
use prescient_replication::{
    Candidate, Change, Client, ClientError, Delivery, EntityHandle, Everything, FromClient,
    Observer, PeerId, Relevance, Room, Server, ServerConfig, Tick, Visibility, WorldError,
    WorldStep,
};
use prescient_schema::{EntityRef, Parcel, Ref, Schema, State};
use prescient_sim::link::{Conditions, LinkConditioner, Time};
use prescient_tests::seeds::over_seeds;

#[derive(State, Clone, Debug, Default, PartialEq)]
#[state(rename = "unit")]
struct Unit {
    #[state(only_on_spawn)]
    number: u16,
    #[state(step = 0.01, position)]
    position: [f32; 2],
    #[state(table)]
    shield: Option<Shield>,
    #[state(table, step = 0.5)]
    heat: Option<f32>,
    #[state(table)]
    cargo: Option<Cargo>,
}

const SHIELD: usize = 1;
const HEAT: usize = 2;

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Shield {
    strength: u16,
    #[state(step = 0.01)]
    angle: f32,
}

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Cargo {
    #[state(max_len = 12)]
    name: String,
    crates: u8,
}

fn schema() -> Schema {
    Schema::of::<Unit>().expect("a sound schema")
}

/// A client behind a link, and its program's own record of tables.
struct Player {
    peer: PeerId,
    client: Client,
    down: LinkConditioner,
    up: LinkConditioner,
    known: BTreeMap<EntityHandle, BTreeSet<usize>>,
}

impl Player {
    /// Takes what the server has for the player: reliable messages at once, others over the link.
    fn take_from(&mut self, server: &mut Server, now: Time) {
        while let Some(transmit) = server.poll_transmit(self.peer) {
            let message = transmit.message();
            match transmit.delivery {
                Delivery::Reliable | Delivery::Unordered => {
                    self.client.handle(message).expect("in order")
                }
                Delivery::Unreliable | Delivery::Sequenced => self.down.send(now, message),
            }
        }
    }

    fn new(peer: u64, seed: u64, link: &Conditions) -> Self {
        let seed = seed * 100 + peer;
        Self {
            peer: PeerId(peer),
            client: Client::new(schema(), Default::default()).expect("a sound schema"),
            down: LinkConditioner::new(seed, link.clone()),
            up: LinkConditioner::new(!seed, link.clone()),
            known: BTreeMap::new(),
        }
    }

    /// Follows all changes, and compares the result with what the client says.
    fn poll(&mut self) {
        while let Some(change) = self.client.poll_change() {
            match change {
                Change::Created(entity) => {
                    let tables = self.client.tables(entity).collect();
                    assert_eq!(self.known.insert(entity, tables), None, "created twice");
                }
                Change::Removed(entity) => {
                    assert!(self.known.remove(&entity).is_some(), "removed, not known");
                }
                Change::TableAdded { entity, table } => {
                    let known = self.known.get_mut(&entity).expect("created before");
                    assert!(known.insert(table), "added twice");
                }
                Change::TableRemoved { entity, table } => {
                    let known = self.known.get_mut(&entity).expect("created before");
                    assert!(known.remove(&table), "removed, not there");
                }
                _ => {}
            }
        }
        let entities = self.client.entities();
        let tables = entities.map(|entity| (entity, self.client.tables(entity).collect()));
        let tables: BTreeMap<EntityHandle, BTreeSet<usize>> = tables.collect();
        assert_eq!(tables, self.known);
    }

    /// What it shows, by number.
    fn shown(&self) -> BTreeMap<u16, Unit> {
        let units = self.client.entities().map(|entity| {
            let unit: Unit = self.client.get(entity).expect("it is shown");
            let tables = [
                true,
                unit.shield.is_some(),
                unit.heat.is_some(),
                unit.cargo.is_some(),
            ];
            for (table, &there) in tables.iter().enumerate() {
                assert_eq!(self.client.has_table(entity, table), there);
                assert_eq!(self.client.row(entity, table).is_some(), there);
            }
            (unit.number, unit)
        });
        units.collect()
    }
}

struct Game {
    server: Server,
    players: Vec<Player>,
    units: Vec<(Ref<Unit>, Unit)>,
    spawned: u16,
    tick: u32,
    budget: Option<usize>,
    /// The truth of each tick.
    past: BTreeMap<Tick, BTreeMap<u16, Unit>>,
}

impl Game {
    fn new(seed: u64, players: u64, link: &Conditions, policy: impl Relevance + 'static) -> Self {
        let server = Server::new(schema(), ServerConfig::default(), policy);
        let mut server = server.expect("a sound schema");
        let mut all: Vec<_> = (1..=players)
            .map(|peer| Player::new(peer, seed, link))
            .collect();
        for player in &mut all {
            server.connect(player.peer);
            greet(&mut server, player.peer, &mut player.client);
        }
        Self {
            server,
            players: all,
            units: Vec::new(),
            spawned: 0,
            tick: 0,
            budget: None,
            past: BTreeMap::new(),
        }
    }

    /// A tick in which `act` happens to the units.
    fn step(&mut self, act: impl FnOnce(&mut WorldStep<'_>, &mut Vec<(Ref<Unit>, Unit)>)) {
        self.tick += 1;
        let mut step = self.server.step(Tick(self.tick.into())).expect("ascending");
        act(&mut step, &mut self.units);
        step.finish();
        let truth = self
            .units
            .iter()
            .map(|(_, unit)| (unit.number, unit.clone()));
        self.past.insert(Tick(self.tick.into()), truth.collect());
    }

    fn spawn(&mut self, owner: Option<PeerId>, unit: Unit) {
        let number = self.spawned;
        self.spawned += 1;
        self.step(|step, units| {
            let unit = Unit { number, ..unit };
            let entity = match owner {
                Some(owner) => step.spawn_for(owner, &unit),
                None => step.spawn(&unit),
            };
            units.push((entity.expect("sound"), unit));
        });
    }

    /// Spawns, moves and despawns units, which gain and lose tables in both ways.
    fn random_tick(&mut self, dice: &mut Dice) {
        if self.units.len() < 3 || self.units.len() < 12 && dice.chance(10) {
            let unit = random_unit(dice);
            let owner = dice.chance(50).then(|| PeerId(1 + dice.below(3)));
            return self.spawn(owner, unit);
        }
        self.step(|step, units| {
            if dice.chance(4) {
                let (gone, _) = units.swap_remove(dice.below(units.len() as u64) as usize);
                step.despawn(gone.entity_ref()).expect("there");
            }
            if dice.chance(10) {
                let parent = units[dice.below(units.len() as u64) as usize]
                    .0
                    .entity_ref();
                let child = units[dice.below(units.len() as u64) as usize]
                    .0
                    .entity_ref();
                // A unit cannot be its own parent; that is refused.
                let _ = step.set_parent(child, dice.chance(60).then_some(parent));
            }
            for (entity, unit) in units {
                let entity = *entity;
                if dice.chance(50) {
                    unit.position[0] += 0.25;
                }
                if let Some(shield) = &mut unit.shield
                    && dice.chance(30)
                {
                    shield.strength += 1;
                }
                match dice.below(12) {
                    0 => unit.shield = toggled(&unit.shield, random_unit(dice).shield),
                    1 => unit.heat = toggled(&unit.heat, Some(dice.below(20) as f32)),
                    2 => unit.cargo = toggled(&unit.cargo, random_unit(dice).cargo),
                    3 => {
                        // Several changes in a tick: the last counts.
                        let table = unit.heat.is_some();
                        let had = step.remove_table(entity.entity_ref(), HEAT);
                        assert_eq!(had, Ok(table));
                        unit.heat = dice.chance(50).then_some(2.5);
                    }
                    _ => {}
                }
                step.set(entity, unit).expect("sound");
                if dice.chance(5) {
                    let shield = Shield {
                        strength: 7,
                        angle: 0.25,
                    };
                    let parcel = shield.to_parcel("default");
                    let set = step.set_table(entity.entity_ref(), SHIELD, &parcel);
                    set.expect("sound");
                    unit.shield = Some(shield);
                }
                assert_eq!(
                    step.has_table(entity.entity_ref(), SHIELD),
                    unit.shield.is_some()
                );
            }
        });
    }

    fn now(&self) -> Time {
        Time::from_micros(u64::from(self.tick) * TICK.as_micros() as u64)
    }

    /// Sends the newest tick and delivers everything that is due; `look` sees every client after
    /// each packet that it applied.
    fn exchange(&mut self, mut look: impl FnMut(&Player)) {
        let (now, budget) = (self.now(), self.budget);
        self.server
            .encode(&|_| budget.map_or(Room::UNLIMITED, Room::one));
        for player in &mut self.players {
            player.take_from(&mut self.server, now);
            while let Some(message) = player.down.poll(now) {
                match player.client.handle(&message) {
                    Ok(()) => {
                        player.poll();
                        look(player);
                    }
                    Err(ClientError::State(DecodeError::Late)) => {}
                    Err(error) => panic!("an honest packet was refused: {error}"),
                }
            }
            if let Some(ack) = player.client.acknowledgement() {
                player.up.send(now, &ack);
            }
            while let Some(message) = player.up.poll(now) {
                let taken = self.server.handle(player.peer, &message);
                taken.expect("an honest answer");
            }
            while let Some(message) = player.client.poll_message() {
                let taken = self.server.handle(player.peer, &message);
                taken.expect("an honest message");
            }
            player.take_from(&mut self.server, now);
        }
    }
}

fn toggled<T>(now: &Option<T>, next: Option<T>) -> Option<T> {
    match now {
        Some(_) => None,
        None => next,
    }
}

fn random_unit(dice: &mut Dice) -> Unit {
    Unit {
        number: 0,
        position: [dice.below(50) as f32, 0.5],
        shield: dice.chance(70).then(|| Shield {
            strength: dice.below(500) as u16,
            angle: dice.below(300) as f32,
        }),
        heat: dice.chance(30).then_some(1.5),
        cargo: dice.chance(50).then(|| Cargo {
            name: format!("box {}", dice.below(4)),
            crates: dice.below(9) as u8,
        }),
    }
}

/// Three clients: the first sees everything, the second no shields, the third shields only while
/// they are `open`. After every packet each shows the truth of its tick, with all tables that it may
/// see and no other, and its changes told of each table that came or went.
///
/// Fails if `Peer::update_visibility` ignores `Touched::Gained`, if `Visibility::shows` ignores
/// `hidden`, if `EntityRecord::set_slot` keeps a lost table, if `WorldStep::set_tables` leaves an
/// absent table alone, or if `ShownWorld::note_table` reports tables of entities that are still to
/// be reported.
#[test]
fn clients_show_the_tables_of_each_tick() {
    over_seeds(20, |seed| {
        let open = Arc::new(AtomicBool::new(true));
        let gate = open.clone();
        let policy = move |observer: &Observer, _: &Candidate, _: Option<Visibility>| {
            let hidden = Visibility::FULL.without_table(SHIELD);
            Some(match observer.peer.0 {
                1 => Visibility::PUBLIC,
                2 => hidden,
                _ if gate.load(Ordering::Relaxed) => Visibility::FULL,
                _ => hidden,
            })
        };
        let mut game = Game::new(seed, 3, &bad(), policy);
        let mut dice = Dice::new(seed);
        let mut was_open = BTreeMap::new();
        let mut looks = 0;
        for _ in 0..400 {
            game.random_tick(&mut dice);
            if dice.chance(5) {
                open.fetch_xor(true, Ordering::Relaxed);
                game.server.reevaluate_relevance();
            }
            was_open.insert(Tick(game.tick.into()), open.load(Ordering::Relaxed));
            let past = game.past.clone();
            game.exchange(|player| {
                let tick = player.client.tick().expect("something was applied");
                if player.client.complete_tick() != Some(tick) {
                    return;
                }
                let mut truth = past[&tick].clone();
                let hides =
                    player.peer == PeerId(2) || player.peer == PeerId(3) && !was_open[&tick];
                for unit in truth.values_mut().filter(|_| hides) {
                    unit.shield = None;
                }
                assert_eq!(player.shown(), truth, "{:?} at {tick:?}", player.peer);
                looks += 1;
            });
        }
        assert!(looks > 500, "only {looks} looks");
    });
}

/// In packets that are too small, each table is as it was at its own tick, and in the end everything
/// is shown. Fails if `ShownWorld::detach` forgets another table entity of the same table.
#[test]
fn small_packets_carry_tables_in_turn() {
    over_seeds(20, |seed| {
        let mut game = Game::new(seed, 2, &bad(), Everything);
        game.budget = Some(60);
        let mut dice = Dice::new(seed);
        for _ in 0..300 {
            game.random_tick(&mut dice);
            let past = game.past.clone();
            game.exchange(|player| {
                for entity in player.client.entities() {
                    let shown: Unit = player.client.get(entity).expect("shown");
                    let tick = |table| player.client.tick_of(entity, table);
                    let at = |table| &past[&tick(table).expect("shown")][&shown.number];
                    assert_eq!(at(0).position, shown.position);
                    if shown.shield.is_some() {
                        assert_eq!(at(SHIELD).shield, shown.shield);
                    }
                    if shown.heat.is_some() {
                        assert_eq!(at(HEAT).heat, shown.heat);
                    }
                    if shown.cargo.is_some() {
                        assert_eq!(at(3).cargo, shown.cargo);
                    }
                }
            });
        }
        let now = game.now();
        for player in &mut game.players {
            player.down.change(now, good());
            player.up.change(now, good());
        }
        for _ in 0..100 {
            game.step(|_, _| {});
            game.exchange(|_| {});
        }
        let truth = &game.past[&Tick(game.tick.into())];
        for player in &game.players {
            assert_eq!(player.shown(), *truth);
        }
    });
}

/// Position and shield of a unit always tell the same number, and packets are too small for all
/// units. Fails if `Encoder::group` is `None` for tables.
#[test]
fn the_tables_of_an_entity_travel_together() {
    over_seeds(20, |seed| {
        let mut game = Game::new(seed, 1, &bad(), Everything);
        game.budget = Some(25);
        let mut dice = Dice::new(seed);
        let (mut shields, mut partial) = (0, 0);
        for _ in 0..300 {
            if game.units.len() < 12 {
                game.spawn(None, Unit::default());
            } else {
                game.step(|step, units| {
                    for (entity, unit) in units {
                        let number = dice.below(300) as u16;
                        unit.position[0] = f32::from(number);
                        let has_shield = unit.shield.is_some() != dice.chance(5);
                        unit.shield = has_shield.then_some(Shield {
                            strength: number,
                            angle: 0.0,
                        });
                        step.set(*entity, unit).expect("sound");
                    }
                });
            }
            let past = game.past.clone();
            game.exchange(|player| {
                let newest = player.client.tick().expect("applied");
                partial += u32::from(player.client.complete_tick() != Some(newest));
                for entity in player.client.entities() {
                    let shown: Unit = player.client.get(entity).expect("shown");
                    // A lost table disappears by itself, before or after the others change.
                    let is_kept_since = |table| {
                        let tick = player.client.tick_of(entity, table).expect("shown");
                        let mut since = past.range(tick..=newest);
                        since.all(|(_, units)| units[&shown.number].shield.is_some())
                    };
                    match shown.shield {
                        Some(ref shield) if is_kept_since(SHIELD) => {
                            assert_eq!(f32::from(shield.strength), shown.position[0]);
                            shields += 1;
                        }
                        Some(_) => {}
                        None => assert!(!is_kept_since(0), "it came without its shield"),
                    }
                }
            });
        }
        assert!(shields > 500 && partial > 100, "{shields} in {partial}");
    });
}

/// The bytes for a client that may not see a table, whether entities gain, change and lose it or
/// never have it. Fails if `Peer::show_table` shows a gained table without asking `shows`.
#[test]
fn a_hidden_table_leaves_no_trace() {
    over_seeds(20, |seed| {
        let bytes = |shields: bool| {
            let policy = |observer: &Observer, _: &Candidate, _: Option<Visibility>| {
                Some(match observer.peer {
                    PeerId(1) => Visibility::FULL.without_table(SHIELD),
                    _ => Visibility::FULL,
                })
            };
            let mut game = Game::new(seed, 2, &good(), policy);
            let (mut dice, mut others) = (Dice::new(seed), Dice::new(!seed));
            let (mut all, mut has_shield) = (Vec::new(), false);
            for tick in 0..250 {
                let unit = Unit {
                    shield: None,
                    ..random_unit(&mut dice)
                };
                if game.units.len() < 10 {
                    game.spawn(None, unit);
                } else {
                    game.step(|step, units| {
                        if dice.chance(10) {
                            let at = dice.below(units.len() as u64) as usize;
                            let (gone, _) = units.swap_remove(at);
                            step.despawn(gone.entity_ref()).expect("there");
                        }
                        for (entity, unit) in units {
                            if dice.chance(60) {
                                unit.position[0] += 0.5;
                            }
                            if dice.chance(10) {
                                unit.heat = toggled(&unit.heat, Some(3.0));
                            }
                            let shield = match others.below(4) {
                                0 => random_unit(&mut others).shield,
                                1 => None,
                                _ => unit.shield.clone(),
                            };
                            if shields {
                                unit.shield = shield;
                            }
                            step.set(*entity, unit).expect("sound");
                        }
                    });
                }
                if tick == 200 {
                    // A client that joins late is shown everything at once.
                    game.server.connect(PeerId(1));
                    game.players[0] = Player::new(1, seed, &good());
                    greet(&mut game.server, PeerId(1), &mut game.players[0].client);
                }
                for (peer, message) in encode(&mut game.server, &|_| Room::UNLIMITED) {
                    let client = &mut game.players[peer.0 as usize - 1].client;
                    client.handle(&message).expect("in order");
                    let ack = client.acknowledgement().expect("something arrived");
                    game.server.handle(peer, &ack).expect("honest");
                    if peer == PeerId(1) {
                        all.push(message);
                    }
                }
                let seen = game.players[1].shown();
                has_shield |= seen.values().any(|unit| unit.shield.is_some());
            }
            assert_eq!(has_shield, shields, "the other client sees them");
            all
        };
        assert_eq!(bytes(true), bytes(false));
    });
}

#[derive(State, Clone, Debug, Default, PartialEq)]
#[state(rename = "unit")]
struct Bare {
    #[state(only_on_spawn)]
    number: u16,
    #[state(step = 0.01, position)]
    position: [f32; 2],
}

/// Moves ten entities of a type and returns the bytes of each packet.
fn bytes_of<T: State>(value: impl Fn(u16, f32) -> T) -> Vec<usize> {
    let schema = Schema::of::<T>().expect("a sound schema");
    let server = Server::new(schema.clone(), ServerConfig::default(), Everything);
    let mut server = server.expect("a sound schema");
    let mut client = Client::new(schema, Default::default()).expect("a sound schema");
    server.connect(PeerId(1));
    greet(&mut server, PeerId(1), &mut client);
    let mut dice = Dice::new(5);
    let mut units: Vec<(Ref<T>, f32)> = Vec::new();
    let mut bytes = Vec::new();
    for tick in 1..300 {
        let mut step = server.step(Tick(tick)).expect("ascending");
        if tick == 1 {
            for number in 0..10 {
                units.push((step.spawn(&value(number, 0.0)).expect("sound"), 0.0));
            }
        }
        for (number, (entity, x)) in (0..).zip(&mut units) {
            *x += dice.below(3) as f32;
            step.set(*entity, &value(number, *x)).expect("sound");
        }
        step.finish();
        for (peer, message) in encode(&mut server, &|_| Room::UNLIMITED) {
            client.handle(&message).expect("in order");
            let ack = client.acknowledgement().expect("something arrived");
            server.handle(peer, &ack).expect("honest");
            bytes.push(message.len());
        }
    }
    bytes
}

/// Optional tables that nobody has cost nothing, and those that stay as they are cost nothing after
/// a while. Fails if `WorldStep::set_tables` removes and adds a table that the entity keeps.
#[test]
fn a_constant_set_of_tables_costs_nothing() {
    let bare = bytes_of(|number, x| Bare {
        number,
        position: [x, 1.0],
    });
    let without = bytes_of(|number, x| Unit {
        number,
        position: [x, 1.0],
        ..Unit::default()
    });
    let with = bytes_of(|number, x| Unit {
        number,
        position: [x, 1.0],
        shield: Some(Shield::default()),
        heat: Some(0.5),
        cargo: Some(Cargo::default()),
    });
    assert_eq!(bare[1..], without[1..], "besides the spawns");
    let later = |bytes: &[usize]| bytes[150..].iter().sum::<usize>();
    let (bare, with) = (later(&bare), later(&with));
    // What was learned from their spawns still shifts a few bits.
    assert!(
        bare.abs_diff(with) < bare / 100,
        "{with} bytes with tables at rest, {bare} without"
    );
}

/// A client with authority adds and removes tables by the values that it sets; a table stays when
/// the authority ends. Fails if `AuthorityReports::take` ignores despawns, or takes those of an
/// ended authority for removed tables (`reported.contains` left out).
#[test]
fn clients_with_authority_add_and_remove_tables() {
    over_seeds(20, |seed| {
        let mut game = Game::new(seed, 2, &bad(), Everything);
        let mut dice = Dice::new(seed);
        game.spawn(None, random_unit(&mut dice));
        let grant = |game: &mut Game, granted: bool| {
            game.step(|step, units| {
                let entity = units[0].0.entity_ref();
                let done = match granted {
                    true => step.grant_authority(entity, PeerId(1)),
                    false => step.revoke_authority(entity),
                };
                done.expect("it is there");
            });
        };
        grant(&mut game, true);
        let mut reported = Unit::default();
        for round in 0..260 {
            // The last value has reached the server before the authority ends.
            if round == 200 {
                let now = game.now();
                for player in &mut game.players {
                    player.down.change(now, good());
                    player.up.change(now, good());
                }
            }
            let now = game.now();
            let player = &mut game.players[0];
            let own = player.client.entities().next();
            if let Some(entity) = own.filter(|&entity| player.client.has_authority(entity)) {
                let unit: Unit = player.client.get(entity).expect("shown");
                if round < 200 {
                    reported = Unit {
                        number: unit.number,
                        shield: toggled(&unit.shield, random_unit(&mut dice).shield),
                        ..random_unit(&mut dice)
                    };
                    player.client.set(entity, &reported).expect("it is ours");
                    assert_eq!(player.client.get(entity), Some(reported.clone()));
                }
                if let Some(report) = player.client.report(Some(500)) {
                    player.up.send(now, &report);
                }
            }
            match round {
                230 => grant(&mut game, false),
                231 => grant(&mut game, true),
                _ => game.step(|_, _| {}),
            }
            game.exchange(|_| {});
        }
        for player in &game.players {
            let shown: Vec<Unit> = player.shown().into_values().collect();
            assert_eq!(shown, [reported.clone()], "{:?}", player.peer);
        }
    });
}

/// Fails if `Peer::hide_table` does not note the released id: then rows of lost tables that the
/// client still shows count as wrong.
#[test]
fn audits_agree_while_tables_come_and_go() {
    over_seeds(20, |seed| {
        let mut game = Game::new(seed, 1, &bad(), Everything);
        let mut dice = Dice::new(seed);
        let mut audits = 0;
        for tick in 0..200 {
            // No unit is despawned.
            if game.units.len() < 6 {
                game.spawn(None, random_unit(&mut dice));
            } else {
                game.step(|step, units| {
                    for (entity, unit) in units {
                        unit.position[0] += 0.5;
                        if dice.chance(20) {
                            unit.shield = toggled(&unit.shield, Some(Shield::default()));
                        }
                        step.set(*entity, unit).expect("sound");
                    }
                });
            }
            game.exchange(|_| {});
            if tick % 10 == 9 {
                game.server.audit(PeerId(1)).expect("it is here");
                let request = poll(&mut game.server, PeerId(1)).expect("just asked");
                // What the client shows is some ticks old.
                let client = &mut game.players[0].client;
                client.handle(&request).expect("honest");
                let report = client.poll_message().expect("an answer");
                let found = game.server.handle(PeerId(1), &report);
                let honest = FromClient::AuditReport {
                    differences: Vec::new(),
                    last: true,
                };
                assert_eq!(found, Ok(honest));
                audits += 1;
            }
        }
        assert_eq!(audits, 20);
    });
}

/// Fails if `ShownWorld::restart` keeps tables of the world before.
#[test]
fn tables_stay_in_their_world() {
    over_seeds(20, |seed| {
        let mut game = Game::new(seed, 1, &bad(), Everything);
        let other = Server::new(schema(), ServerConfig::default(), Everything);
        let mut other = other.expect("a sound schema");
        let mut others = Vec::new();
        let mut dice = Dice::new(seed);
        for _ in 0..6 {
            for _ in 0..60 {
                game.random_tick(&mut dice);
                game.exchange(|_| {});
            }
            let transfer = game.server.transfer_out(PeerId(1)).expect("it is here");
            std::mem::swap(&mut game.server, &mut other);
            std::mem::swap(&mut game.units, &mut others);
            game.server.transfer_in(PeerId(1), transfer);
        }
        let now = game.now();
        game.players[0].down.change(now, good());
        game.players[0].up.change(now, good());
        for _ in 0..30 {
            game.step(|_, _| {});
            game.exchange(|_| {});
        }
        assert_eq!(game.players[0].shown(), game.past[&Tick(game.tick.into())]);
    });
}

#[derive(State)]
struct Wagon {
    speed: u8,
    #[state(table)]
    load: Option<Load>,
}

#[derive(State)]
struct Load {
    from: Ref<Wagon>,
}

/// Fails if `WorldStep::set_tables` does not check the rows of tables that are to be gained before it
/// writes the first table.
#[test]
fn a_value_is_set_with_all_its_tables_or_not_at_all() {
    let schema = Schema::of::<Wagon>().expect("a sound schema");
    let mut server = Server::new(schema, ServerConfig::default(), Everything).expect("sound");
    let mut step = server.step(Tick(1)).expect("the first");
    let wagon = |speed, from: Option<Ref<Wagon>>| Wagon {
        speed,
        load: from.map(|from| Load { from }),
    };
    let entity = step.spawn(&wagon(1, None)).expect("sound");
    let nobody = Ref::to(EntityRef::new(99, 0));
    assert!(step.set(entity, &wagon(2, Some(nobody))).is_err());
    assert!(!step.has_table(entity.entity_ref(), 1));
    step.finish();
    let archive = server.world().archive();
    let slot = archive.entity(entity.entity_ref()).expect("it is there");
    assert_eq!(archive.latest(slot), Some(&[1][..]));
    let mut step = server.step(Tick(2)).expect("the next");
    assert_eq!(step.set(entity, &wagon(2, Some(entity))), Ok(()));
    assert!(step.has_table(entity.entity_ref(), 1));
}

/// Fails if `remove_table` removes any table, or if `set_table` accepts any index.
#[test]
fn a_refused_table_changes_nothing() {
    let mut server = Server::new(schema(), ServerConfig::default(), Everything).expect("sound");
    let mut step = server.step(Tick(1)).expect("the first");
    let required = [Unit::default().to_parcel("default")];
    let entity = step.spawn_rows("unit", None, &required).expect("sound");
    let row = |row: &[i64]| Parcel {
        row: row.to_vec(),
        ..Parcel::default()
    };
    let wrong = |table| Err(WorldError::WrongTable { entity, table });
    assert_eq!(step.set_table(entity, 4, &row(&[])), wrong(4));
    assert_eq!(
        step.set_table(entity, usize::MAX, &row(&[])),
        wrong(usize::MAX)
    );
    assert_eq!(step.remove_table(entity, 0), wrong(0).map(|()| false));
    assert_eq!(step.remove_table(entity, 4), wrong(4).map(|()| false));
    assert_eq!(step.remove_table(entity, SHIELD), Ok(false));
    // Too few columns, and a strength beyond 16 bits.
    assert!(step.set_table(entity, SHIELD, &row(&[1])).is_err());
    assert!(step.set_table(entity, SHIELD, &row(&[70_000, 0])).is_err());
    // A content that is not there.
    assert!(step.set_table(entity, 3, &row(&[12_345, 0])).is_err());
    assert!(!(1..4).any(|table| step.has_table(entity, table)));
    let nobody = EntityRef::new(9, 0);
    assert_eq!(
        step.set_table(nobody, SHIELD, &row(&[1, 2])),
        Err(WorldError::NoSuchEntity(nobody))
    );
    let found = step.spawn_rows("unit", None, &[required[0].clone(), row(&[1, 2])]);
    let expected = WorldError::WrongTables {
        expected: 1,
        found: 2,
    };
    assert_eq!(found, Err(expected));
    assert_eq!(step.set_table(entity, SHIELD, &row(&[1, 2])), Ok(()));
    assert_eq!(step.set_rows(entity, &required), Ok(()), "tables stay");
    step.finish();
    let world = server.world();
    assert!(world.has_table(entity, SHIELD) && !world.has_table(entity, HEAT));
    assert_eq!(world.archive().living_slots().count(), 2);
}
