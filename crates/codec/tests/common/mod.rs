//! A seeded world, a seeded link, and two ends that are compared after every packet.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use std::{collections::BTreeMap, sync::Arc};

use prescient_codec::{
    Ack, Config, DecodeError, Decoder, Encoder, HISTORY, NetEntityId, Policy, Prior, Profile, Slot,
    Tick, Trainer,
    history::{Archive, Capture},
};
use prescient_schema::{
    Class, Content, EntityRef, Field, FieldKind, Level, Library, Priority, Schema,
};

#[derive(Clone, Debug, Default)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66_D123_4567)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

pub fn schema() -> Arc<Schema> {
    let int = |bits, signed| FieldKind::Int { bits, signed };
    let mut fine = Field::new("fine", int(32, true));
    fine.priority = Priority::new(1).unwrap();
    fine.coarser = [0, 2, 4, 6];
    let mut born = Field::new("born", int(16, false));
    born.only_on_spawn = true;
    let mover = Class::new(
        "mover",
        vec![
            Field::new("x", int(32, true)),
            Field::new("heading", int(8, false)),
            Field::new("mode", FieldKind::Enum { values: 5 }),
            Field::new("huge", int(64, true)),
            fine,
            born,
        ],
    );
    let lamp = Class::new(
        "lamp",
        vec![
            Field::new("on", FieldKind::Bool),
            Field::new("colour", FieldKind::Enum { values: 300 }),
        ],
    );
    let item = vec![
        Field::new("what", int(16, false)),
        Field::new("count", int(32, true)),
        Field::new("rank", FieldKind::Enum { values: 3 }),
    ];
    let skill = vec![
        Field::new("key", int(8, false)),
        Field::new("value", int(16, true)),
    ];
    let mut origin = Field::new("origin", FieldKind::Text { max_len: 20 });
    origin.only_on_spawn = true;
    let bearer = Class::new(
        "bearer",
        vec![
            Field::new("x", int(32, true)),
            Field::new("name", FieldKind::Text { max_len: 30 }),
            Field::new("blob", FieldKind::Bytes { max_len: 300 }),
            Field::new("bag", FieldKind::List { item, max_len: 60 }),
            Field::new(
                "skills",
                FieldKind::Map {
                    item: skill,
                    key: 1,
                    max_len: 60,
                },
            ),
            Field::new("target", FieldKind::Reference { class: None }),
            Field::new(
                "lamp",
                FieldKind::Reference {
                    class: Some("lamp".into()),
                },
            ),
            origin,
        ],
    );
    Arc::new(Schema {
        classes: vec![mover, lamp, bearer],
    })
}

/// A world with movers that accelerate, bounce, stop and start, and lamps that rarely change.
pub struct World {
    pub schema: Arc<Schema>,
    pub archive: Archive,
    random: Random,
    entities: BTreeMap<Slot, Body>,
    tick: u32,
    /// All contents so far.
    pub contents: BTreeMap<i64, Content>,
}

struct Body {
    class: u16,
    row: Vec<i64>,
    velocity: i64,
    asleep: bool,
    items: Items,
}

/// The contents of the containers of a bearer.
#[derive(Default)]
struct Items {
    name: String,
    blob: Vec<u8>,
    bag: Vec<[i64; 3]>,
    skills: BTreeMap<i64, i64>,
}

impl Items {
    fn change(&mut self, random: &mut Random) {
        match random.below(8) {
            0 => {
                let words = ["", "Ann", "Anne", "Annemarie", "Zoë", "Zo", "a b c d e f g"];
                self.name = words[random.below(7) as usize].into();
            }
            1 => {
                let at = random.below(self.blob.len() as u64 + 1) as usize;
                let end = (at + random.below(9) as usize).min(self.blob.len());
                let new: Vec<u8> = (0..random.below(30)).map(|_| random.next() as u8).collect();
                self.blob.splice(at..end, new);
                self.blob.truncate(300);
            }
            2 => {
                let item = [
                    random.below(9) as i64,
                    random.below(50) as i64,
                    random.below(3) as i64,
                ];
                let at = random.below(self.bag.len() as u64 + 1) as usize;
                self.bag.insert(at, item);
                self.bag.truncate(60);
            }
            3 if !self.bag.is_empty() => {
                self.bag
                    .remove(random.below(self.bag.len() as u64) as usize);
            }
            4 if random.chance(5) => self.bag.clear(),
            5 if !self.skills.is_empty() => {
                let at = random.below(self.skills.len() as u64) as usize;
                let key = *self.skills.keys().nth(at).unwrap();
                if random.chance(30) {
                    self.skills.remove(&key);
                } else {
                    self.skills.insert(key, random.below(1000) as i64 - 500);
                }
            }
            6 if self.skills.len() < 60 => {
                self.skills.insert(random.below(256) as i64, 0);
            }
            _ => {
                for item in &mut self.bag {
                    if random.chance(10) {
                        item[1] += random.below(5) as i64 - 2;
                    }
                }
            }
        }
    }

    fn contents(&self) -> [Content; 4] {
        let skills = self.skills.iter().flat_map(|(&key, &value)| [key, value]);
        [
            Content::Bytes(self.name.as_bytes().into()),
            Content::Bytes(self.blob.as_slice().into()),
            Content::Cells(self.bag.concat().into()),
            Content::Cells(skills.collect()),
        ]
    }
}

fn intern(capture: &mut Capture<'_>, all: &mut BTreeMap<i64, Content>, content: Content) -> i64 {
    let cell = capture.intern(content.clone()).unwrap();
    all.insert(cell, content);
    cell
}

impl World {
    pub fn new(seed: u64) -> Self {
        let schema = schema();
        Self {
            archive: Archive::new(schema.clone(), HISTORY),
            schema,
            random: Random::new(seed),
            entities: BTreeMap::new(),
            tick: 10,
            contents: BTreeMap::new(),
        }
    }

    pub fn step(&mut self, population: usize) {
        let random = &mut self.random;
        self.tick += if random.chance(3) {
            1 + random.below(4) as u32
        } else {
            1
        };
        let mut capture = self.archive.begin(Tick(self.tick.into())).unwrap();
        if self.entities.len() < population && random.chance(40) {
            let class = [0, 0, 1, 2][random.below(4) as usize];
            let row = if class == 0 {
                let huge = if random.chance(10) {
                    random.next() as i64
                } else {
                    7
                };
                vec![
                    random.below(1000) as i64,
                    200,
                    1,
                    huge,
                    0,
                    random.below(60_000) as i64,
                ]
            } else if class == 1 {
                vec![0, random.below(300) as i64]
            } else {
                let origin = Content::Bytes(
                    ["here", "there"][random.below(2) as usize]
                        .as_bytes()
                        .into(),
                );
                let origin = intern(&mut capture, &mut self.contents, origin);
                vec![0, 0, 0, 0, 0, 0, 0, origin]
            };
            let slot = capture.spawn(class, &row).unwrap();
            let items = Items::default();
            let body = Body {
                class,
                row,
                velocity: random.below(9) as i64 - 4,
                asleep: false,
                items,
            };
            self.entities.insert(slot, body);
        }
        let mut left = Vec::new();
        let alive: Vec<(Slot, u16)> = self.entities.iter().map(|(s, b)| (*s, b.class)).collect();
        for (&slot, body) in &mut self.entities {
            if random.chance(1) && random.chance(30) {
                capture.despawn(slot).unwrap();
                left.push(slot);
                continue;
            }
            if random.chance(2) {
                body.asleep = !body.asleep;
            }
            if body.asleep {
                continue;
            }
            if body.class == 2 {
                if random.chance(20) {
                    body.items.change(random);
                    for (at, content) in (1..).zip(body.items.contents()) {
                        body.row[at] = intern(&mut capture, &mut self.contents, content);
                    }
                }
                if random.chance(5) {
                    body.row[0] += 5;
                }
                for (at, of) in [(5, None), (6, Some(1))] {
                    if random.chance(4) {
                        let slot = alive.get(random.below(alive.len() as u64 + 1) as usize);
                        let slot = slot.filter(|(_, class)| of.is_none_or(|of| of == *class));
                        let to = slot.and_then(|(slot, _)| capture.reference(*slot));
                        body.row[at] = to.unwrap_or_default().cell();
                    }
                }
            } else if body.class == 1 {
                if random.chance(3) {
                    body.row[0] ^= 1;
                    body.row[1] = (body.row[1] + random.below(3) as i64) % 300;
                }
            } else {
                if random.chance(10) {
                    body.velocity = random.below(41) as i64 - 20;
                }
                body.row[0] += body.velocity;
                body.row[1] = (body.row[1] + 3) & 255;
                body.row[4] = body.row[0] * 37 + random.below(5) as i64;
                if random.chance(4) {
                    body.row[2] = random.below(5) as i64;
                }
                if random.chance(1) {
                    body.row[3] = random.next() as i64;
                }
            }
            capture.write(slot, &body.row).unwrap();
        }
        capture.finish();
        for slot in left {
            self.entities.remove(&slot);
        }
    }

    pub fn truth(&self, slot: Slot, level: Level, encoder: &Encoder) -> Option<Vec<i64>> {
        let class = &self.schema.classes[usize::from(self.archive.class(slot)?)];
        let row = as_sent(&self.archive, encoder, slot)?;
        Some(
            class
                .fields
                .iter()
                .zip(row)
                .map(|(f, v)| f.at_level(level, v))
                .collect(),
        )
    }
}

/// A row as it is sent: references are the receiver's ids of visible entities.
pub fn as_sent(archive: &Archive, encoder: &Encoder, slot: Slot) -> Option<Vec<i64>> {
    let class = &archive.schema().classes[usize::from(archive.class(slot)?)];
    let fields = class.fields.iter().zip(archive.latest(slot)?);
    let as_sent = |(field, &cell): (&Field, &i64)| {
        if !matches!(field.kind, FieldKind::Reference { .. }) {
            return cell;
        }
        let target = archive.entity(EntityRef::from_cell(cell).unwrap());
        let id = target.and_then(|slot| encoder.net_entity_id(slot));
        id.map_or(0, |id| EntityRef::new(id.0, 0).cell())
    };
    Some(fields.map(as_sent).collect())
}

/// The faults of a link.
#[derive(Clone, Copy, Debug)]
pub struct Trouble {
    pub loss: u64,
    pub ack_loss: u64,
    pub delay: u64,
    pub jitter: u64,
    pub duplicates: u64,
    pub corruption: u64,
    /// At this interval, nothing arrives for `blackout` ticks.
    pub blackout_every: u64,
    pub blackout: u64,
    pub budget: Option<usize>,
    /// How many packets may follow the first one of a tick.
    pub more: u64,
    pub levels: bool,
    pub visibility: bool,
}

impl Trouble {
    pub fn random(random: &mut Random) -> Self {
        let pick = |random: &mut Random, values: &[u64]| {
            values[random.below(values.len() as u64) as usize]
        };
        Self {
            loss: pick(random, &[0, 0, 2, 5, 20, 50]),
            ack_loss: pick(random, &[0, 0, 5, 20, 60, 95]),
            delay: pick(random, &[0, 1, 3, 6, 20, 40]),
            jitter: pick(random, &[0, 0, 2, 8]),
            duplicates: pick(random, &[0, 10, 50]),
            corruption: pick(random, &[0, 0, 5, 30]),
            blackout_every: pick(random, &[0, 0, 150, 300]),
            blackout: pick(random, &[10, 80, 200]),
            budget: [None, None, Some(40), Some(120)][random.below(4) as usize],
            more: pick(random, &[0, 0, 1, 5]),
            levels: random.chance(30),
            visibility: random.chance(50),
        }
    }
}

pub struct Run {
    pub encoder: Encoder,
    pub decoder: Decoder,
    pub world: World,
    pub bytes: usize,
    pub packets: usize,
    pub applied: usize,
    pub stalest: u64,
    /// Damaged packets that only the 16-bit check can tell from real ones.
    pub checked: u64,
    /// Of those, the accepted ones. Such an accident ends the run.
    pub fooled: u64,
}

pub fn run(seed: u64, ticks: usize, trouble: Trouble, config: Config) -> Run {
    run_from(None, seed, ticks, trouble, config)
}

/// Two ends that start from a prior, or from nothing.
pub fn ends(prior: Option<&Prior>, schema: &Arc<Schema>, config: Config) -> (Encoder, Decoder) {
    match prior {
        Some(prior) => (
            Encoder::with_prior(schema.clone(), config, prior).unwrap(),
            Decoder::with_prior(schema.clone(), config, prior).unwrap(),
        ),
        None => (
            Encoder::new(schema.clone(), config),
            Decoder::new(schema.clone(), config),
        ),
    }
}

/// A prior trained on a world of this seed.
pub fn trained(seed: u64, ticks: usize, profile: Profile) -> Prior {
    let mut trainer = Trainer::new(config(Policy::Immediate, profile));
    let mut world = World::new(seed);
    let mut encoder = trainer.encoder(world.schema.clone()).unwrap();
    for _ in 0..ticks {
        world.step(20);
        for slot in world.archive.living_slots() {
            encoder.show(slot, &world.archive);
        }
        encoder.encode(&world.archive, None).unwrap();
    }
    trainer.learn(&encoder);
    trainer.finish()
}

/// Digests of the sender's model by fold cursor, against which the receiver is compared.
pub fn run_from(
    prior: Option<&Prior>,
    seed: u64,
    ticks: usize,
    trouble: Trouble,
    config: Config,
) -> Run {
    let mut world = World::new(seed);
    let mut random = Random::new(seed ^ 0xF00D);
    let (mut encoder, mut decoder) = ends(prior, &world.schema, config);
    let mut down: Vec<Flight> = Vec::new();
    let mut up: Vec<(u64, u64, Ack)> = Vec::new();
    let mut digests: BTreeMap<u32, u64> = BTreeMap::new();
    let mut truths: BTreeMap<u32, BTreeMap<NetEntityId, (u16, Vec<i64>)>> = BTreeMap::new();
    let mut hidden: Vec<Slot> = Vec::new();
    let mut seen: BTreeMap<NetEntityId, u64> = BTreeMap::new();
    let mut order = 0;
    let (mut bytes, mut packets, mut applied, mut stalest) = (0, 0, 0, 0);
    let (mut checked, mut fooled) = (0, 0);
    'ticks: for now in 0..ticks as u64 {
        let dark = trouble.blackout_every > 0
            && now % trouble.blackout_every
                >= trouble.blackout_every.saturating_sub(trouble.blackout)
            && now > trouble.blackout_every;
        world.step(12 + (seed % 30) as usize);
        up.sort_by_key(|(at, order, _)| (*at, *order));
        while up.first().is_some_and(|(at, ..)| *at <= now) {
            let (_, _, ack) = up.remove(0);
            encoder.acknowledge(&ack, &world.archive).unwrap();
        }
        let slots: Vec<Slot> = world.archive.living_slots().collect();
        for slot in slots {
            if trouble.visibility && random.chance(1) {
                if let Some(at) = hidden.iter().position(|&h| h == slot) {
                    hidden.swap_remove(at);
                } else {
                    hidden.push(slot);
                    encoder.hide(slot);
                }
            }
            if !hidden.contains(&slot)
                && encoder.show(slot, &world.archive).is_some()
                && trouble.levels
                && random.chance(2)
            {
                let level = Level::new(random.below(4) as u8).unwrap();
                encoder.set_level(slot, level, &world.archive);
            }
        }
        let digest = encoder.digest();
        let mut of_tick = vec![encoder.encode(&world.archive, trouble.budget).unwrap()];
        for _ in 0..trouble.more {
            let budget = trouble.budget.unwrap_or(0);
            of_tick.extend(encoder.encode_more(&world.archive, budget).unwrap());
        }
        let digest = if config.policy() == Policy::Immediate {
            digest
        } else {
            encoder.digest()
        };
        let mut truth = BTreeMap::new();
        for slot in world.archive.living_slots() {
            if let Some(id) = encoder.net_entity_id(slot) {
                let row = as_sent(&world.archive, &encoder, slot).unwrap();
                truth.insert(id, (world.archive.class(slot).unwrap(), row));
            }
        }
        for packet in of_tick {
            if let Some(budget) = trouble.budget {
                assert!(
                    packet.bytes.len() <= budget.max(110) || packet.oversize,
                    "{} bytes",
                    packet.bytes.len()
                );
            }
            digests.insert(packet.sequence.0, digest);
            truths.insert(packet.sequence.0, truth.clone());
            bytes += packet.bytes.len();
            packets += 1;
            for copy in 0..1 + u64::from(random.chance(trouble.duplicates)) {
                if dark || random.chance(trouble.loss) {
                    continue;
                }
                let mut wire = packet.bytes.clone();
                let mut intact = None;
                if random.chance(trouble.corruption) {
                    let at = random.below(wire.len() as u64) as usize;
                    intact = Some(wire.clone());
                    wire[at] ^= 1 << random.below(8);
                }
                let late = random.below(trouble.jitter + 1) + copy * random.below(100);
                order += 1;
                down.push(Flight {
                    arrives: now + trouble.delay + late,
                    order: order + random.below(4 * trouble.more + 1),
                    wire,
                    intact,
                });
            }
        }
        down.sort_by_key(|flight| (flight.arrives, flight.order));
        while down.first().is_some_and(|flight| flight.arrives <= now) {
            let Flight { wire, intact, .. } = down.remove(0);
            let before = decoder.digest();
            let expected = intact.as_ref().map(|intact| outcome(&decoder, intact));
            let result = decoder.decode(&wire);
            if let Some(expected) = expected {
                let changed = result.is_ok() && expected != Some(state(&decoder));
                checked += u64::from(changed || result == Err(DecodeError::CheckFailed));
                if changed {
                    fooled += 1;
                    break 'ticks;
                }
            }
            match result {
                Ok(done) => {
                    applied += 1;
                    check(
                        seed,
                        &decoder,
                        &done,
                        &truths,
                        trouble.levels,
                        &world,
                        &digests,
                    );
                    let covered = decoder.covered().collect::<Vec<_>>();
                    for id in covered {
                        seen.insert(id, done.tick.0);
                    }
                    let alive: Vec<NetEntityId> = decoder
                        .world()
                        .living_slots()
                        .map(|slot| NetEntityId(slot.0))
                        .collect();
                    seen.retain(|id, _| alive.contains(id));
                    for last in seen.values() {
                        stalest = stalest.max(done.tick.0 - last);
                    }
                }
                Err(error) => {
                    if trouble.corruption == 0 {
                        assert_eq!(
                            error,
                            DecodeError::Late,
                            "seed {seed}, tick {now}, {trouble:?}"
                        );
                    }
                    assert_eq!(
                        before,
                        decoder.digest(),
                        "seed {seed}: {error} left a trace"
                    );
                }
            }
            // Packets that arrive together are mostly acknowledged together.
            let is_last = down.first().is_none_or(|flight| flight.arrives > now);
            if (trouble.more == 0 || is_last || random.chance(30))
                && let Some(ack) = decoder.acknowledgement()
                && !dark
                && !random.chance(trouble.ack_loss)
            {
                order += 1;
                up.push((
                    now + trouble.delay + random.below(trouble.jitter + 1),
                    order,
                    ack,
                ));
            }
        }
    }
    Run {
        encoder,
        decoder,
        world,
        bytes,
        packets,
        applied,
        stalest,
        checked,
        fooled,
    }
}

/// A packet in flight.
struct Flight {
    arrives: u64,
    order: u64,
    wire: Vec<u8>,
    /// The sent bytes, if others will arrive.
    intact: Option<Vec<u8>>,
}

/// The visible state of a decoder, and its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub digest: u64,
    pub tick: Option<Tick>,
    pub rows: Vec<(Slot, u16, Vec<i64>)>,
    pub covered: Vec<NetEntityId>,
    pub newest: u32,
}

pub fn state(decoder: &Decoder) -> State {
    let world = decoder.world();
    let row = |slot| {
        let row = world.latest(slot).unwrap().to_vec();
        (slot, world.class(slot).unwrap(), row)
    };
    State {
        digest: decoder.digest(),
        tick: world.newest(),
        rows: world.living_slots().map(row).collect(),
        covered: decoder.covered().collect(),
        newest: (decoder.clone().acknowledgement()).map_or(0, |ack| ack.newest.0),
    }
}

/// The state of a decoder after a packet; `None` if it refuses the packet.
pub fn outcome(decoder: &Decoder, packet: &[u8]) -> Option<State> {
    let mut decoder = decoder.clone();
    decoder.decode(packet).ok().map(|_| state(&decoder))
}

/// Whether a good 16-bit check may accept this many of `checked` packets: at most five standard
/// deviations above the mean.
pub fn is_chance(checked: u64, fooled: u64) -> bool {
    let expected = checked as f64 / 65536.0;
    (fooled as f64) <= expected + 5.0 * expected.sqrt() + 2.0
}

/// A number from the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(default)
}

fn check(
    seed: u64,
    decoder: &Decoder,
    done: &prescient_codec::Applied,
    truths: &BTreeMap<u32, BTreeMap<NetEntityId, (u16, Vec<i64>)>>,
    levels: bool,
    world: &World,
    digests: &BTreeMap<u32, u64>,
) {
    let sequence = done.sequence.0;
    assert_eq!(
        digests[&sequence],
        decoder.digest(),
        "seed {seed}, packet {sequence}: models differ"
    );
    let truth = &truths[&sequence];
    if done.full {
        let shown: Vec<NetEntityId> = decoder
            .world()
            .living_slots()
            .map(|slot| NetEntityId(slot.0))
            .collect();
        assert!(
            shown.iter().eq(truth.keys()),
            "seed {seed}, packet {sequence}: {shown:?} {:?}",
            truth.keys()
        );
    }
    for id in decoder.covered() {
        let (class, row) = truth.get(&id).unwrap_or_else(|| {
            panic!("seed {seed}, packet {sequence}: {id:?} is not in the world")
        });
        assert_eq!(
            decoder.world().class(Slot(id.0)),
            Some(*class),
            "seed {seed}"
        );
        let got = decoder.row(id).unwrap();
        let exact = |level: Level| -> Vec<i64> {
            let fields = &world.schema.classes[usize::from(*class)].fields;
            fields
                .iter()
                .zip(row)
                .map(|(f, &v)| f.at_level(level, v))
                .collect()
        };
        let fields = &world.schema.classes[usize::from(*class)].fields;
        for (field, cell) in fields.iter().zip(got) {
            if field.kind.container().is_some() && *cell != 0 {
                let held = decoder.world().content(*cell);
                assert_eq!(
                    held,
                    world.contents.get(cell),
                    "seed {seed}, {}",
                    field.name
                );
            }
        }
        if !levels {
            assert_eq!(got, row, "seed {seed}, packet {sequence}, {id:?}");
        } else {
            let any = (0..4).any(|l| exact(Level::new(l).unwrap()) == got);
            assert!(
                any,
                "seed {seed}, packet {sequence}, {id:?}: {got:?} is no level of {row:?}"
            );
        }
    }
}

pub fn quiet() -> Trouble {
    Trouble {
        loss: 0,
        ack_loss: 0,
        delay: 0,
        jitter: 0,
        duplicates: 0,
        corruption: 0,
        blackout_every: 0,
        blackout: 0,
        budget: None,
        more: 0,
        levels: false,
        visibility: false,
    }
}

pub fn config(policy: Policy, profile: Profile) -> Config {
    Config::default().with_policy(policy).with_profile(profile)
}

pub fn is_refusal(error: DecodeError) -> bool {
    error != DecodeError::Late
}
