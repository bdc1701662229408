//! Damaged, forged, spliced and repeated packets against decoders in many states.
//!
//! A refused packet must change nothing. Of those that only the 16-bit check can tell from real
//! ones, one in 65536 may be accepted: more mean that a whole kind of damage goes unnoticed.
//! `PRESCIENT_CASES` sets the number of cases, `PRESCIENT_SEED` the first seed.
//!
//! Mutations tried: leaving the ids out of the check (fails: one lamp's switch is taken for
//! another's), skipping the rollback of a refused packet's folds (fails).

use std::{collections::BTreeMap, sync::Arc};

use crate::common::{Random, State, World, config, is_chance, outcome, setting, state};
use prescient_codec::{
    Config, DecodeError, Decoder, Encoder, HISTORY, Policy, Profile, Slot, Tick, history::Archive,
};
use prescient_schema::{Class, Field, FieldKind, Schema};

#[test]
fn no_kind_of_damage_goes_unnoticed() {
    let cases = setting("PRESCIENT_CASES", 8_000);
    let mut seed = setting("PRESCIENT_SEED", 0);
    let mut tally = Tally::default();
    while tally.cases < cases {
        let mut link = Link::new(seed);
        for tick in 0..LENGTH {
            link.step();
            // New decoders are rarely chosen later, so they get their share at once.
            if tick < 4 || link.random.chance(8) {
                link.harass(&mut tally);
            }
        }
        seed += 1;
    }
    println!("{tally}");
    for (kind, count) in &tally.kinds {
        assert!(is_chance(count.checked, count.fooled), "{kind}: {count:?}");
    }
    assert!(tally.kinds["repeated"].harmless == 0, "{tally}");
    let checked: u64 = tally.kinds.values().map(|count| count.checked).sum();
    assert!(
        checked * 5 > tally.cases,
        "too few reach the check: {tally}"
    );
}

const LENGTH: usize = 150;
/// Bad packets per chosen tick.
const BATCH: usize = 24;

/// An encoder, a decoder, a bad link between them, and everything that was sent.
struct Link {
    scene: Scene,
    random: Random,
    encoder: Encoder,
    decoder: Decoder,
    loss: u64,
    budget: Option<usize>,
    /// What arrived. A lost packet is as good as new when it arrives later.
    delivered: Vec<Vec<u8>>,
    /// The packet that is about to arrive.
    next: Vec<u8>,
    /// Packets of another connection with the same schema.
    foreign: Vec<Vec<u8>>,
}

impl Link {
    fn new(seed: u64) -> Self {
        let mut link = Self::alone(seed);
        let mut other = Self::alone(seed ^ 0xFFFF);
        other.scene = Scene::new(seed + 1, seed);
        other.encoder = Encoder::new(other.scene.archive().schema().clone(), settings(seed));
        other.decoder = Decoder::new(other.scene.archive().schema().clone(), settings(seed));
        for _ in 0..20 {
            other.step();
        }
        link.foreign = other.delivered;
        link
    }

    fn alone(seed: u64) -> Self {
        let scene = Scene::new(seed, seed);
        let schema = scene.archive().schema().clone();
        let config = settings(seed);
        Self {
            scene,
            random: Random::new(seed ^ 0xBAD),
            encoder: Encoder::new(schema.clone(), config),
            decoder: Decoder::new(schema, config),
            loss: [0, 5, 40][seed as usize / 2 % 3],
            budget: [None, Some(40), None, Some(90)][seed as usize / 6 % 4],
            delivered: Vec::new(),
            next: Vec::new(),
            foreign: Vec::new(),
        }
    }

    /// Delivers the waiting packet (or not) and makes the next one.
    fn step(&mut self) {
        if !self.next.is_empty() && !self.random.chance(self.loss) {
            self.decoder.decode(&self.next).unwrap();
            self.delivered.push(self.next.clone());
            if !self.random.chance(self.loss)
                && let Some(ack) = self.decoder.acknowledgement()
            {
                self.encoder
                    .acknowledge(&ack, self.scene.archive())
                    .unwrap();
            }
        }
        self.scene.step(&mut self.random);
        if self.random.chance(1) {
            self.encoder.resync();
        }
        let archive = self.scene.archive();
        for slot in archive.living_slots() {
            self.encoder.show(slot, archive);
        }
        self.next = self.encoder.encode(archive, self.budget).unwrap().bytes;
    }

    /// Feeds bad packets to the decoder before the real one arrives.
    fn harass(&mut self, tally: &mut Tally) {
        let before = state(&self.decoder);
        let expected = outcome(&self.decoder, &self.next).expect("the real packet is accepted");
        let mut decoder = self.decoder.clone();
        for _ in 0..BATCH {
            let (kind, bytes) = self.bad_packet();
            let result = decoder.decode(&bytes);
            let after = state(&decoder);
            tally.note(kind, result.as_ref().err().copied(), &after, &expected);
            if result.is_err() {
                assert_eq!(before, after, "{kind} {bytes:?} left a trace: {result:?}");
            } else {
                decoder = self.decoder.clone();
            }
        }
        decoder.decode(&self.next).unwrap();
        assert_eq!(state(&decoder), expected, "refused packets had an effect");
        let (told, ack) = (decoder.acknowledgement(), {
            let mut clean = self.decoder.clone();
            clean.decode(&self.next).unwrap();
            clean.acknowledgement()
        });
        assert_eq!(told, ack);
        // Continue with the decoder that got the bad packets: damage may show later.
        if self.random.chance(50) && !self.random.chance(self.loss) {
            self.decoder = decoder;
            self.delivered.push(std::mem::take(&mut self.next));
        }
    }

    fn bad_packet(&mut self) -> (&'static str, Vec<u8>) {
        let random = &mut self.random;
        let mut bytes = self.next.clone();
        let len = bytes.len() as u64;
        let earlier = &self.delivered;
        let pick = |random: &mut Random, from: &[Vec<u8>]| {
            from[random.below(from.len() as u64) as usize].clone()
        };
        match random.below(9) {
            0 => {
                let len = random.below(40);
                ("random", (0..len).map(|_| random.next() as u8).collect())
            }
            1 => {
                // A valid header followed by random bytes.
                let keep = random.below(len.min(20)) as usize;
                let len = keep + random.below(60) as usize;
                bytes.truncate(keep);
                bytes.resize_with(len, || random.next() as u8);
                ("nonsense", bytes)
            }
            2 => {
                bytes.truncate(random.below(len) as usize);
                ("truncated", bytes)
            }
            3 | 4 => {
                let bit = random.below(len * 8);
                bytes[bit as usize / 8] ^= 1 << (bit % 8);
                ("bit flip", bytes)
            }
            5 => {
                for _ in 0..2 + random.below(4) {
                    let bit = random.below(len * 8);
                    bytes[bit as usize / 8] ^= 1 << (bit % 8);
                }
                ("bit flips", bytes)
            }
            6 if !earlier.is_empty() => {
                let other = pick(random, earlier);
                let cut = random.below(len + 1) as usize;
                bytes.truncate(cut);
                bytes.extend_from_slice(other.get(cut..).unwrap_or(&[]));
                ("spliced", bytes)
            }
            7 if !earlier.is_empty() => ("repeated", pick(random, earlier)),
            8 if !self.foreign.is_empty() => {
                // Behind the header and its check: with the donor's header it could be a real
                // packet.
                let other = pick(random, &self.foreign);
                let usual = if bytes[0] < 0x80 { 3 } else { 11 };
                let header = len.min(usual);
                let cut = (header + random.below(len + 1 - header)) as usize;
                bytes.truncate(cut);
                bytes.extend_from_slice(other.get(cut..).unwrap_or(&[]));
                ("foreign", bytes)
            }
            _ => {
                let at = random.below(len) as usize;
                bytes.remove(at);
                ("byte lost", bytes)
            }
        }
    }
}

fn settings(seed: u64) -> Config {
    let profile = if seed % 5 == 4 {
        Profile::Best
    } else {
        Profile::Default
    };
    config(Policy::Confirmed, profile)
}

/// A world to send: the busy one that all tests share, or a street of lamps, of which one is
/// switched now and then. Its packets are a byte or two long, so that a flipped bit often makes
/// another valid packet.
enum Scene {
    Busy(World, usize),
    Lamps(Archive, u32),
}

impl Scene {
    fn new(seed: u64, kind: u64) -> Self {
        if kind.is_multiple_of(2) {
            return Self::Busy(World::new(seed), 3 + (seed % 30) as usize);
        }
        let lamp = Class::new(
            "lamp",
            vec![
                Field::new("on", FieldKind::Bool),
                Field::new("also", FieldKind::Bool),
                Field::new("colour", FieldKind::Enum { values: 5 }),
            ],
        );
        let schema = Arc::new(Schema {
            classes: vec![lamp],
        });
        Self::Lamps(Archive::new(schema, HISTORY), 0)
    }

    fn archive(&self) -> &Archive {
        match self {
            Self::Busy(world, _) => &world.archive,
            Self::Lamps(archive, _) => archive,
        }
    }

    fn step(&mut self, random: &mut Random) {
        match self {
            Self::Busy(world, population) => world.step(*population),
            Self::Lamps(archive, tick) => {
                *tick += 1;
                let slots: Vec<Slot> = archive.living_slots().collect();
                let mut next = Vec::new();
                for &slot in &slots {
                    if random.chance(3) {
                        let mut row = archive.latest(slot).unwrap().to_vec();
                        let field = random.below(3) as usize;
                        row[field] = if field == 2 {
                            (row[2] + 1) % 5
                        } else {
                            1 - row[field]
                        };
                        next.push((slot, row));
                    }
                }
                let mut capture = archive.begin(Tick((*tick).into())).unwrap();
                for (slot, row) in next {
                    capture.write(slot, &row).unwrap();
                }
                if slots.len() < 40 {
                    capture.spawn(0, &[0, 0, 0]).unwrap();
                }
                if random.chance(2) && slots.len() > 8 {
                    let slot = slots[random.below(slots.len() as u64) as usize];
                    capture.despawn(slot).unwrap();
                }
                capture.finish();
            }
        }
    }
}

#[derive(Debug, Default)]
struct Tally {
    cases: u64,
    kinds: BTreeMap<&'static str, Count>,
}

#[derive(Debug, Default)]
struct Count {
    /// Late, or without a valid header.
    refused: u64,
    /// Only the check can detect it.
    checked: u64,
    /// The check cannot detect it, either.
    fooled: u64,
    /// Has the same effect as the real packet.
    harmless: u64,
}

impl Tally {
    fn note(
        &mut self,
        kind: &'static str,
        error: Option<DecodeError>,
        after: &State,
        expected: &State,
    ) {
        self.cases += 1;
        let count = self.kinds.entry(kind).or_default();
        match error {
            Some(DecodeError::CheckFailed) => count.checked += 1,
            Some(_) => count.refused += 1,
            None if after == expected => count.harmless += 1,
            None => {
                count.checked += 1;
                count.fooled += 1;
            }
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (kind, count) in &self.kinds {
            writeln!(f, "{kind:>10}: {count:?}")?;
        }
        write!(f, "{} cases", self.cases)
    }
}
