//! The rows that a receiver has of recent ticks are those of the sender at the ticks at which
//! packets covered the entity, and no others.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::common::{Random, World, as_sent, config, ends};
use prescient_codec::{
    Ack, DecodeError, Decoder, HISTORY, HistoryDepth, HistoryTooShort, NetEntityId, Policy,
    Profile, Slot, Tick,
};
use prescient_schema::{EntityRef, Library};
use prescient_tests::seeds::over_seeds;

/// The true rows of a tick by the receiver's ids, with the entity that each of them was.
type Truth = BTreeMap<NetEntityId, (EntityRef, Vec<i64>)>;

/// A receiver behind a link that loses, delays and reorders packets, of which most are too small
/// for all entities.
///
/// Every sample is compared with the truth of its tick, and the ticks of all samples with those at
/// which packets covered the entity since it appeared. Fails if
/// - `Coverage::includes` is always true (rows of deferred ticks), or false for `All` (ticks of
///   full packets, most of which state no change of an entity, are missing),
/// - `Decoder::commit` adds the entities that the packet moved instead of those that it covered,
/// - `Capture::spawn_at` does not set `born` and `hot_since` (rows from before the entity appeared),
/// - `Decoder::set_history` does nothing (ticks are missing),
/// - `Coverage::drop_before` drops one tick more.
#[test]
fn samples_are_the_sender_s_rows_of_covered_ticks() {
    let counts = Cell::new([0; 4]);
    over_seeds(20, |seed| {
        let mut run = Run::new(seed);
        for _ in 0..420 {
            run.step();
        }
        let [deferred, silent, reused, appeared] = counts.get();
        counts.set([
            deferred + run.deferred,
            silent + run.silent,
            reused + run.reused,
            appeared + run.appeared,
        ]);
    });
    let [deferred, silent, reused, appeared] = counts.get();
    println!("{deferred} deferred, {silent} silent, {reused} ids reused, {appeared} appeared late");
    assert!(
        deferred > 1000,
        "{deferred} ticks of entities were deferred"
    );
    assert!(silent > 1000, "{silent} ticks of entities were silent");
    assert!(reused > 20, "{reused} ids were given to another entity");
    assert!(appeared > 100, "{appeared} entities appeared late");
}

/// A history is never shorter than predictions need. Fails if `HistoryDepth::new` accepts less, or
/// refuses that.
#[test]
fn a_history_has_a_minimum() {
    let short = HISTORY - 1;
    assert_eq!(
        HistoryDepth::new(short),
        Err(HistoryTooShort { ticks: short })
    );
    assert_eq!(HistoryDepth::new(HISTORY), Ok(HistoryDepth::MIN));
    assert_eq!(HistoryDepth::new(1000).map(HistoryDepth::ticks), Ok(1000));
}

struct Run {
    seed: u64,
    world: World,
    encoder: prescient_codec::Encoder,
    decoder: Decoder,
    depth: u32,
    budget: Option<usize>,
    random: Random,
    hidden: BTreeSet<Slot>,
    truths: BTreeMap<Tick, Truth>,
    down: Vec<(u32, Vec<u8>)>,
    up: VecDeque<Ack>,
    now: u32,
    /// For each shown entity, the ticks at which it was covered, oldest first.
    confirmed: BTreeMap<NetEntityId, Vec<Tick>>,
    owners: BTreeMap<NetEntityId, EntityRef>,
    deferred: u32,
    silent: u32,
    reused: u32,
    appeared: u32,
}

impl Run {
    fn new(seed: u64) -> Self {
        let world = World::new(seed);
        let config = config(Policy::Confirmed, Profile::Default);
        let (encoder, mut decoder) = ends(None, &world.schema, config);
        let depth = [HISTORY, 150, 200, 1000][seed as usize % 4];
        decoder.set_history(HistoryDepth::new(depth).unwrap());
        Self {
            seed,
            world,
            encoder,
            decoder,
            depth,
            budget: [Some(40), Some(60), Some(90), None][seed as usize / 4 % 4],
            random: Random::new(seed),
            hidden: BTreeSet::new(),
            truths: BTreeMap::new(),
            down: Vec::new(),
            up: VecDeque::new(),
            now: 0,
            confirmed: BTreeMap::new(),
            owners: BTreeMap::new(),
            deferred: 0,
            silent: 0,
            reused: 0,
            appeared: 0,
        }
    }

    fn step(&mut self) {
        self.now += 1;
        self.world.step(20);
        while self.up.len() > 3 {
            let ack = self.up.pop_front().unwrap();
            self.encoder.acknowledge(&ack, &self.world.archive).unwrap();
        }
        self.look();
        let packet = self.encoder.encode(&self.world.archive, self.budget);
        let packet = packet.unwrap();
        self.note_truth();
        if !self.random.chance(15) {
            let late = self.random.below(3) as u32;
            self.down.push((self.now + 2 + late, packet.bytes));
        }
        for (_, packet) in self
            .down
            .extract_if(.., |(at, _)| *at <= self.now)
            .collect::<Vec<_>>()
        {
            match self.decoder.decode(&packet) {
                Ok(_) => self.check(),
                Err(error) => assert_eq!(error, DecodeError::Late, "seed {}", self.seed),
            }
            if !self.random.chance(10) {
                self.up.extend(self.decoder.acknowledgement());
            }
        }
    }

    /// Entities come into view and leave it.
    fn look(&mut self) {
        for slot in self.world.archive.living_slots() {
            if self.random.chance(1) && !self.hidden.remove(&slot) {
                self.hidden.insert(slot);
                self.encoder.hide(slot);
            }
            if !self.hidden.contains(&slot) {
                self.encoder.show(slot, &self.world.archive);
            }
        }
    }

    fn note_truth(&mut self) {
        let archive = &self.world.archive;
        let truth = archive.living_slots().filter_map(|slot| {
            let id = self.encoder.net_entity_id(slot)?;
            let row = as_sent(archive, &self.encoder, slot)?;
            Some((id, (archive.reference(slot)?, row)))
        });
        self.truths
            .insert(archive.newest().unwrap(), truth.collect());
    }

    /// Compares the ticks of all samples after a packet was applied, and now and then their rows.
    fn check(&mut self) {
        let (seed, shown) = (self.seed, self.decoder.world());
        let tick = shown.newest().unwrap();
        let truth = &self.truths[&tick];
        let oldest = Tick(tick.0.saturating_sub(self.depth.into()));
        for slot in &shown.changes(tick).unwrap().despawned {
            self.confirmed.remove(&NetEntityId(slot.0));
        }
        for slot in &shown.changes(tick).unwrap().spawned {
            let id = NetEntityId(slot.0);
            let owner = truth[&id].0;
            let before = self.owners.insert(id, owner);
            self.reused += u32::from(before.is_some_and(|before| before != owner));
            self.appeared += u32::from(self.now > 50);
            assert_eq!(self.confirmed.insert(id, Vec::new()), None);
        }
        for id in self.decoder.covered() {
            let changed = &shown.changes(tick).unwrap().changed;
            self.silent += u32::from(!changed.contains(&Slot(id.0)));
            self.confirmed.get_mut(&id).unwrap().push(tick);
        }
        for (&id, ticks) in &mut self.confirmed {
            ticks.retain(|&tick| tick >= oldest);
            self.deferred += u32::from(ticks.last() != Some(&tick));
            let samples: Vec<_> = self.decoder.samples(id).collect();
            let found = samples.iter().map(|(tick, _)| *tick);
            assert!(
                found.eq(ticks.iter().copied()),
                "seed {seed}, {id:?} at {tick:?}: {samples:?} at {ticks:?}"
            );
            if !self.now.is_multiple_of(7) {
                continue;
            }
            let class = &shown.schema().classes[usize::from(shown.class(Slot(id.0)).unwrap())];
            for (tick, row) in samples {
                let (owner, truth) = &self.truths[&tick][&id];
                assert_eq!(row, truth, "seed {seed}, {id:?} at {tick:?}");
                assert_eq!(*owner, self.owners[&id], "seed {seed}, {id:?} at {tick:?}");
                for (field, cell) in class.fields.iter().zip(row) {
                    if field.kind.container().is_some() && *cell != 0 {
                        let content = self.world.contents.get(cell);
                        assert_eq!(shown.content(*cell), content, "seed {seed}, {id:?}");
                    }
                }
            }
            let newest_first = self.decoder.samples(id).rev().map(|(tick, _)| tick);
            assert!(newest_first.eq(ticks.iter().rev().copied()), "seed {seed}");
        }
        let gone = NetEntityId(shown.living_slots().last().map_or(0, |slot| slot.0 + 1));
        assert_eq!(self.decoder.samples(gone).count(), 0);
        self.truths = self.truths.split_off(&oldest);
    }
}
