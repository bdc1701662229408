//! Every kind of field, with everything that can be declared on it, over a link that loses, delays,
//! reorders and repeats in both directions. After every applied packet both models are equal, and
//! every covered value is the true one at its level.
//!
//! Each seed is a round of proptest with a generator of its own, so that a failure names the seed
//! that repeats it. `PRESCIENT_SEEDS` sets the number of seeds, `PRESCIENT_SEED` the first. Schemas
//! are made at run time; types with `#[derive(State)]` are in `every_type_of_state_survives`.
//!
//! Mutations tried: rates of change in the order of their declaration (fails), coarser levels for
//! fields that are only sent on spawn (fails), references that are only sent on spawn and do not
//! follow visibility (fails).

use crate::schemas;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::common::{Random, config, setting};
use crate::link::{Delivery, Link, delivery};
use crate::motions::{Company, Motion, advance, motion, obey, start};
use prescient_codec::{Policy, Profile, Slot};
use prescient_schema::{Level, Schema};
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

/// An event in a world, or in what a receiver sees of it.
#[derive(Clone, Copy, Debug)]
enum Event {
    Spawn {
        class: u8,
        seed: u64,
    },
    Despawn(u8),
    Move {
        entity: u8,
        field: u8,
        how: Motion,
    },
    /// From now on its fields follow their declarations, unless they have a motion.
    Obey(u8),
    Hide(u8),
    Show(u8),
    Level(u8, u8),
    Resync,
}

#[derive(Clone, Debug)]
struct TickState {
    events: Vec<Event>,
    /// Ticks skipped before this one.
    gap: u32,
    delivery: Delivery,
    budget: Option<usize>,
}

fn event() -> impl Strategy<Value = Event> {
    let entity = 0u8..16;
    prop_oneof![
        3 => (0u8..3, any::<u64>()).prop_map(|(class, seed)| Event::Spawn { class, seed }),
        1 => entity.clone().prop_map(Event::Despawn),
        10 => (entity.clone(), 0u8..16, motion())
            .prop_map(|(entity, field, how)| Event::Move { entity, field, how }),
        2 => entity.clone().prop_map(Event::Obey),
        1 => entity.clone().prop_map(Event::Hide),
        1 => entity.clone().prop_map(Event::Show),
        2 => (entity, 0u8..4).prop_map(|(entity, level)| Event::Level(entity, level)),
        1 => prop::bool::weighted(0.2)
            .prop_map(|resync| if resync { Event::Resync } else { Event::Despawn(200) }),
    ]
}

fn tick_state() -> impl Strategy<Value = TickState> {
    let parts = (
        vec(event(), 0..4),
        prop_oneof![9 => Just(0u32), 1 => 0u32..5],
        delivery(),
        prop::option::weighted(0.15, 12usize..120),
    );
    parts.prop_map(|(events, gap, delivery, budget)| TickState {
        events,
        gap,
        delivery,
        budget,
    })
}

#[derive(Clone, Debug)]
struct Case {
    schema: Arc<Schema>,
    ticks: Vec<TickState>,
    seed: u64,
}

fn case(bits: u8) -> impl Strategy<Value = Case> {
    let parts = (
        schemas::schema(bits),
        vec(tick_state(), 1..160),
        any::<u64>(),
    );
    parts.prop_map(|(schema, ticks, seed)| Case {
        schema,
        ticks,
        seed,
    })
}

#[test]
fn datagrams() {
    round(Policy::Confirmed, 4);
}

#[test]
fn streams() {
    round(Policy::Immediate, 2);
}

#[test]
fn packets_for_anybody() {
    round(Policy::Stateless, 2);
}

/// Plays cases in both profiles; 64 seeds make a round, which has integers of every width.
fn round(policy: Policy, cases: u32) {
    let seeds = setting("PRESCIENT_SEEDS", 64);
    let first = setting("PRESCIENT_SEED", 0);
    let met = std::cell::RefCell::new(BTreeSet::new());
    let mut applied = 0;
    for seed in first..first + seeds {
        for profile in [Profile::Default, Profile::Best] {
            let settings = Config {
                cases,
                failure_persistence: None,
                max_shrink_iters: 2000,
                ..Config::default()
            };
            let mut bytes = [profile as u8; 32];
            bytes[..8].copy_from_slice(&seed.to_le_bytes());
            let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
            let mut runner = TestRunner::new_with_rng(settings, random);
            let counted = std::cell::Cell::new(0);
            let result = runner.run(&case(1 + (seed % 64) as u8), |case| {
                met.borrow_mut().extend(schemas::ingredients(&case.schema));
                counted.set(counted.get() + play(&case, policy, profile));
                Ok(())
            });
            applied += counted.get();
            if let Err(error) = result {
                panic!(
                    "PRESCIENT_SEED={seed} PRESCIENT_SEEDS=1 repeats this, {policy:?}, \
                     {profile:?}: {error}"
                );
            }
        }
    }
    println!("{policy:?}: {applied} packets applied");
    let met = met.into_inner();
    let missed: Vec<String> = schemas::needed()
        .into_iter()
        .filter(|need| !met.contains(need))
        .collect();
    assert!(seeds < 64 || missed.is_empty(), "never met: {missed:?}");
}

/// Returns how many packets were applied.
fn play(case: &Case, policy: Policy, profile: Profile) -> usize {
    let mut link = Link::new(case.schema.clone(), config(policy, profile));
    let mut world = World {
        random: Random::new(case.seed),
        ..World::default()
    };
    for tick_state in &case.ticks {
        world.step(tick_state, &mut link);
        for slot in link.archive.living_slots() {
            if !world.hidden.contains(&slot) {
                link.encoder.show(slot, &link.archive);
            }
        }
        for (&slot, &level) in &link.levels {
            link.encoder.set_level(slot, level, &link.archive);
        }
        // Nothing is lost on a stream.
        let delivery = match policy {
            Policy::Immediate => Delivery::SMOOTH,
            _ => tick_state.delivery,
        };
        link.pass(delivery, tick_state.budget);
    }
    let calm = TickState {
        events: Vec::new(),
        gap: 0,
        delivery: Delivery::SMOOTH,
        budget: None,
    };
    world.motions.clear();
    world.obeying.clear();
    for _ in 0..4 {
        world.step(&calm, &mut link);
        link.pass(Delivery::SMOOTH, None);
    }
    link.compare_all();
    link.applied
}

#[derive(Default)]
struct World {
    random: Random,
    company: Company,
    motions: BTreeMap<(Slot, usize), Motion>,
    hidden: BTreeSet<Slot>,
    obeying: BTreeSet<Slot>,
    tick: u64,
}

impl World {
    fn step(&mut self, tick_state: &TickState, link: &mut Link) {
        let schema = link.archive.schema().clone();
        let tick = link.next_tick(tick_state.gap);
        let passed = (tick.0 - self.tick) as u32;
        self.tick = tick.0;
        let slots: Vec<Slot> = link.archive.living_slots().collect();
        let mut rows: BTreeMap<Slot, (usize, Vec<i64>)> = BTreeMap::new();
        for &slot in &slots {
            let class = usize::from(link.archive.class(slot).unwrap());
            rows.insert(slot, (class, link.archive.latest(slot).unwrap().to_vec()));
        }
        let name = |slot: &Slot| schema.classes[rows[slot].0].name.clone();
        self.company.alive = slots.iter().map(|slot| (*slot, name(slot))).collect();
        let mut capture = link.archive.begin(tick).unwrap();
        for &event in &tick_state.events {
            let find = |entity: u8| slots.get(usize::from(entity)).copied();
            match event {
                Event::Spawn { class, seed } if rows.len() < 12 => {
                    let class = usize::from(class) % schema.classes.len();
                    let mut random = Random::new(seed);
                    let fields = schema.classes[class].fields.iter();
                    let company = &mut self.company;
                    let begin = |field| {
                        let value = start(field, &mut random);
                        let how = Motion::Noise(8);
                        advance(
                            field,
                            value,
                            how,
                            tick.0,
                            &mut random,
                            &mut capture,
                            company,
                        )
                    };
                    let row: Vec<i64> = fields.map(begin).collect();
                    let slot = capture.spawn(class as u16, &row).unwrap();
                    rows.insert(slot, (class, row));
                    self.hidden.remove(&slot);
                    self.obeying.remove(&slot);
                    link.levels.remove(&slot);
                    self.motions.retain(|(moved, _), _| *moved != slot);
                }
                Event::Despawn(entity) => {
                    if let Some(slot) = find(entity).filter(|slot| rows.remove(slot).is_some()) {
                        capture.despawn(slot).unwrap();
                        self.company.alive.retain(|(alive, _)| *alive != slot);
                        link.levels.remove(&slot);
                    }
                }
                Event::Move { entity, field, how } => {
                    if let Some((class, _)) = find(entity).and_then(|slot| rows.get(&slot)) {
                        let field = usize::from(field) % schema.classes[*class].fields.len();
                        self.motions
                            .insert((slots[usize::from(entity)], field), how);
                    }
                }
                Event::Obey(entity) => self.obeying.extend(find(entity)),
                Event::Hide(entity) => {
                    if let Some(slot) = find(entity) {
                        self.hidden.insert(slot);
                        link.levels.remove(&slot);
                        link.encoder.hide(slot);
                    }
                }
                Event::Show(entity) => {
                    find(entity).map(|slot| self.hidden.remove(&slot));
                }
                Event::Level(entity, level) => {
                    let slot = find(entity).filter(|slot| !self.hidden.contains(slot));
                    if let Some(slot) = slot.filter(|slot| rows.contains_key(slot)) {
                        link.levels.insert(slot, Level::new(level).unwrap());
                    }
                }
                Event::Resync => link.encoder.resync(),
                Event::Spawn { .. } => {}
            }
        }
        for (slot, (class, row)) in &mut rows {
            let class = &schema.classes[*class];
            let old = row.clone();
            for (at, field) in class.fields.iter().enumerate() {
                let how = self.motions.get(&(*slot, at)).copied();
                let how = how.unwrap_or(Motion::Hold);
                let Self {
                    random, company, ..
                } = self;
                row[at] = advance(
                    field,
                    old[at],
                    how,
                    self.tick,
                    random,
                    &mut capture,
                    company,
                );
            }
            if self.obeying.contains(slot) {
                let moves = |at: usize| self.motions.contains_key(&(*slot, at));
                obey(class, &old, passed, row, moves);
            }
            if *row != old {
                capture.write(*slot, row).unwrap();
            }
        }
        capture.finish();
        link.contents.clone_from(&self.company.contents);
    }
}
