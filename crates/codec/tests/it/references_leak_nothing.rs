//! References to other entities: one to an invisible entity is empty, one to an entity in flight is
//! pending, and one whose target becomes visible or invisible is sent again; nothing else reveals
//! invisible entities.
//!
//! Mutations tried: translating old rows with the present visibility (fails), not waking referrers
//! at rest (fails), not updating active ones (fails), references without a generation (fails), ids
//! that are reused while a reference may still name them, also if they were never sent (both fail).

use std::{collections::BTreeMap, sync::Arc};

use crate::common::{Random, as_sent, config};
use prescient_codec::{
    Decoder, Encoder, HISTORY, NetEntityId, Policy, Profile, Slot, Tick, history::Archive,
    history::CaptureError,
};
use prescient_schema::{EntityRef, Ref, Schema, SchemaBuilder, State};

#[derive(State, Clone, Debug, Default, PartialEq)]
#[state(rename = "unit")]
struct Unit {
    x: i32,
    target: EntityRef,
    base: Ref<Base>,
    note: String,
    #[state(only_on_spawn)]
    maker: EntityRef,
}

#[derive(State, Clone, Debug, Default, PartialEq)]
#[state(rename = "base")]
struct Base {
    level: u8,
    guard: Ref<Unit>,
}

const UNIT: u16 = 0;
const BASE: u16 = 1;

struct Ends {
    archive: Archive,
    encoder: Encoder,
    decoder: Decoder,
    tick: u32,
}

impl Ends {
    fn new() -> Self {
        let schema = schema();
        let config = config(Policy::Confirmed, Profile::Default);
        Self {
            archive: Archive::new(schema.clone(), HISTORY),
            encoder: Encoder::new(schema.clone(), config),
            decoder: Decoder::new(schema, config),
            tick: 0,
        }
    }

    fn spawn(&mut self, unit: &Unit) -> Slot {
        self.capture(|capture| capture.spawn_parcel(UNIT, &unit.to_parcel("default")))
    }

    fn set(&mut self, slot: Slot, unit: &Unit) {
        self.capture(|capture| capture.write_parcel(slot, &unit.to_parcel("default")));
    }

    fn capture<T>(
        &mut self,
        write: impl FnOnce(&mut prescient_codec::history::Capture<'_>) -> Result<T, CaptureError>,
    ) -> T {
        self.tick += 1;
        let mut capture = self.archive.begin(Tick(self.tick.into())).unwrap();
        let result = write(&mut capture).unwrap();
        capture.finish();
        result
    }

    fn show(&mut self, slot: Slot) -> NetEntityId {
        self.encoder.show(slot, &self.archive).unwrap()
    }

    /// Captures a tick without changes if the last one was sent, and sends the newest.
    fn exchange(&mut self) -> usize {
        self.send(None, true)
    }

    fn send(&mut self, budget: Option<usize>, arrives: bool) -> usize {
        let packet = match self.encoder.encode(&self.archive, budget) {
            Ok(packet) => packet,
            Err(_) => {
                self.capture(|_| Ok(()));
                self.encoder.encode(&self.archive, budget).unwrap()
            }
        };
        if arrives {
            self.decoder.decode(&packet.bytes).unwrap();
            for id in self.decoder.covered() {
                let slot = self.encoder.slot(id).unwrap();
                let as_sent = as_sent(&self.archive, &self.encoder, slot).unwrap();
                assert_eq!(self.decoder.row(id), Some(&as_sent[..]));
            }
            assert_eq!(self.encoder.digest(), self.decoder.digest());
            let ack = self.decoder.acknowledgement().unwrap();
            self.encoder.acknowledge(&ack, &self.archive).unwrap();
        }
        packet.bytes.len()
    }

    fn read(&self, id: NetEntityId) -> Unit {
        let row = self.decoder.row(id).unwrap();
        Unit::from_row_in("default", row, self.decoder.world()).unwrap()
    }

    fn reference(&self, slot: Slot) -> EntityRef {
        self.archive.reference(slot).unwrap()
    }
}

fn schema() -> Arc<Schema> {
    let schema = SchemaBuilder::new().state::<Unit>().state::<Base>();
    Arc::new(schema.build().unwrap())
}

fn aiming_at(target: EntityRef) -> Unit {
    Unit {
        target,
        ..Unit::default()
    }
}

#[test]
fn a_reference_that_is_sent_once_follows_who_is_seen() {
    let mut ends = Ends::new();
    let target = ends.spawn(&Unit::default());
    let referrer = ends.spawn(&Unit {
        maker: ends.reference(target),
        ..Unit::default()
    });
    let id = ends.show(referrer);
    for time in 0..400 {
        let seen = match time / 90 % 2 {
            0 => ends.show(target).0 + 1,
            _ => {
                ends.encoder.hide(target);
                0
            }
        };
        ends.exchange();
        assert_eq!(ends.read(id).maker.cell(), i64::from(seen), "{time}");
    }
}

#[test]
fn a_reference_to_a_hidden_entity_is_empty() {
    let mut ends = Ends::new();
    let target = ends.spawn(&Unit::default());
    let referrer = ends.spawn(&aiming_at(ends.reference(target)));
    let id = ends.show(referrer);
    ends.exchange();
    assert_eq!(ends.read(id).target, EntityRef::NONE);
    let seen = ends.show(target);
    ends.exchange();
    let as_sent = ends.read(id).target;
    assert_eq!(as_sent, EntityRef::new(seen.0, 0));
    assert_eq!(ends.decoder.world().entity(as_sent), Some(Slot(seen.0)));
    assert!(!ends.decoder.is_pending(as_sent));
    ends.encoder.hide(target);
    ends.exchange();
    assert_eq!(ends.read(id).target, EntityRef::NONE);
}

#[test]
fn a_reference_to_an_entity_in_flight_is_pending() {
    let mut ends = Ends::new();
    let referrer = ends.spawn(&Unit::default());
    let id = ends.show(referrer);
    ends.exchange();
    let mut random = Random::new(3);
    let crowd = ends.capture(|capture| {
        let unit = |_| {
            let unit = Unit {
                x: random.next() as i32,
                note: format!("{}", random.next()),
                ..Unit::default()
            };
            capture.spawn_parcel(UNIT, &unit.to_parcel("default"))
        };
        (0..300).map(unit).collect::<Result<Vec<_>, _>>()
    });
    for &slot in &crowd {
        ends.show(slot);
    }
    let last = *crowd.last().unwrap();
    ends.set(referrer, &aiming_at(ends.reference(last)));
    let expected = EntityRef::new(ends.encoder.net_entity_id(last).unwrap().0, 0);
    let mut pending = 0;
    for _ in 0..200 {
        ends.send(Some(200), true);
        let as_sent = ends.read(id).target;
        if as_sent.is_none() && pending == 0 {
            continue;
        }
        assert_eq!(as_sent, expected);
        if !ends.decoder.is_pending(as_sent) {
            assert!(pending > 10);
            return;
        }
        pending += 1;
    }
    panic!("it never came");
}

#[test]
fn referrers_wake_when_visibility_of_their_target_changes() {
    // At rest, active but unchanged, and moving.
    for wait in [120, 5, 0] {
        let mut ends = Ends::new();
        let target = ends.spawn(&Unit::default());
        let base = ends.capture(|capture| {
            let guard = Ref::to(capture.reference(target).unwrap());
            capture.spawn_parcel(BASE, &Base { level: 1, guard }.to_parcel("default"))
        });
        let referrer = ends.spawn(&aiming_at(ends.reference(target)));
        let (unit, building) = (ends.show(referrer), ends.show(base));
        let guard = |ends: &Ends| {
            let row = ends.decoder.row(building).unwrap();
            Base::from_row("default", row).unwrap().guard.entity_ref()
        };
        ends.exchange();
        for round in 0..4 {
            for _ in 0..wait {
                ends.exchange();
            }
            let idle = ends.encoder.estimate(referrer, &ends.archive);
            assert_eq!(idle == Some(0), wait > 100, "{idle:?}");
            let seen = ends.show(target);
            if round % 2 == 1 {
                ends.send(None, false);
            }
            ends.exchange();
            assert_eq!(ends.read(unit).target, EntityRef::new(seen.0, 0));
            assert_eq!(guard(&ends), EntityRef::new(seen.0, 0));
            for _ in 0..wait {
                ends.exchange();
            }
            if round % 2 == 1 {
                // Invisible and visible again between two packets, perhaps with another id.
                ends.encoder.hide(target);
                ends.show(target);
                ends.exchange();
            }
            ends.encoder.hide(target);
            if round % 2 == 0 {
                ends.send(None, false);
            }
            ends.exchange();
            assert_eq!(ends.read(unit).target, EntityRef::NONE);
            assert_eq!(guard(&ends), EntityRef::NONE);
        }
    }
}

#[test]
fn references_do_not_name_a_later_entity_in_the_slot() {
    let mut ends = Ends::new();
    let first = ends.spawn(&Unit::default());
    let old = ends.reference(first);
    let referrer = ends.spawn(&aiming_at(old));
    let still = ends.spawn(&aiming_at(old));
    let (id, idle) = (ends.show(referrer), ends.show(still));
    ends.show(first);
    ends.exchange();
    assert!(!ends.read(id).target.is_none());
    ends.capture(|capture| capture.despawn(first));
    for tick in 0..300 {
        // The old reference may still be written.
        let unit = Unit {
            x: tick,
            ..aiming_at(old)
        };
        ends.set(referrer, &unit);
        ends.exchange();
        assert_eq!(ends.read(id).target, EntityRef::NONE);
    }
    let heir = ends.spawn(&Unit::default());
    assert_eq!(heir, first, "the archive gives away its oldest free slot");
    let seen = ends.show(heir);
    for _ in 0..100 {
        ends.exchange();
        assert!(ends.decoder.row(seen).is_some());
        assert_eq!(ends.read(id).target, EntityRef::NONE);
        assert_eq!(ends.read(idle).target, EntityRef::NONE);
    }
    assert_eq!(ends.archive.entity(old), None);
    let new = ends.reference(heir);
    assert_ne!(new, old);
    ends.set(referrer, &aiming_at(new));
    ends.exchange();
    assert_eq!(ends.read(id).target, EntityRef::new(seen.0, 0));
    assert_eq!(ends.read(idle).target, EntityRef::NONE);
}

#[test]
fn only_what_exists_and_fits_can_be_referred_to() {
    let mut ends = Ends::new();
    let unit = ends.spawn(&Unit::default());
    let right = ends.reference(unit);
    ends.tick += 1;
    let mut capture = ends.archive.begin(Tick(ends.tick.into())).unwrap();
    let wrong = |to| Err(CaptureError::WrongReference { field: 1, to });
    for to in [EntityRef::new(7, 0), EntityRef::new(unit.0, 1)] {
        let row = aiming_at(to).to_row("default");
        assert_eq!(capture.write(unit, &row), wrong(to));
        assert_eq!(capture.set(unit, 1, to.cell()), wrong(to));
    }
    let base = Unit {
        base: Ref::to(right),
        ..Unit::default()
    };
    let error = CaptureError::WrongReference {
        field: 2,
        to: right,
    };
    assert_eq!(capture.write(unit, &base.to_row("default")), Err(error));
    capture
        .write(unit, &aiming_at(right).to_row("default"))
        .unwrap();
    capture.finish();
}

/// Two worlds that differ in what is hidden, and one link.
#[test]
fn packets_are_the_same_with_and_without_the_hidden() {
    let mut random = Random::new(11);
    let (mut bare, mut full) = (Ends::new(), Ends::new());
    // Visible units by their index in `seen`; hidden ones only in the full world.
    let mut seen: Vec<(Slot, Slot)> = Vec::new();
    let mut hidden: Vec<Slot> = Vec::new();
    let mut units: Vec<(Unit, Option<usize>)> = Vec::new();
    for tick in 1..600 {
        for ends in [&mut bare, &mut full] {
            ends.tick = tick;
        }
        let mut one = bare.archive.begin(Tick(tick.into())).unwrap();
        let mut two = full.archive.begin(Tick(tick.into())).unwrap();
        for _ in 0..random.below(3) {
            if hidden.len() < 60 {
                let unit = Unit::default().to_parcel("default");
                hidden.push(two.spawn_parcel(UNIT, &unit).unwrap());
            }
        }
        if hidden.len() > 40 {
            let at = random.below(hidden.len() as u64) as usize;
            two.despawn(hidden.swap_remove(at)).unwrap();
        }
        if seen.len() < 30 && random.chance(30) {
            let unit = Unit::default().to_parcel("default");
            let slots = (
                one.spawn_parcel(UNIT, &unit).unwrap(),
                two.spawn_parcel(UNIT, &unit).unwrap(),
            );
            seen.push(slots);
            units.push((Unit::default(), None));
        }
        for at in 0..seen.len() {
            let quiet = at % 3 == 0 && tick > 100;
            if random.chance(15) && !quiet {
                units[at].0.x += random.below(9) as i32;
                units[at].1 = match random.below(3) {
                    0 => None,
                    _ => Some(random.below(seen.len() as u64) as usize),
                };
            }
            if random.chance(3) && !quiet {
                units[at].0.note = format!("number {}", random.below(5));
            }
            let (unit, target) = &mut units[at];
            unit.target = match target {
                Some(target) => one.reference(seen[*target].0).unwrap(),
                None => EntityRef::NONE,
            };
            one.write_parcel(seen[at].0, &unit.to_parcel("default"))
                .unwrap();
            // Where references of the bare world are empty, those of the full one often name hidden
            // units.
            let hidden_target = hidden.get(random.below(90) as usize);
            unit.target = match (target, hidden_target) {
                (Some(target), _) => two.reference(seen[*target].1).unwrap(),
                (None, Some(hidden)) => two.reference(*hidden).unwrap(),
                (None, None) => EntityRef::NONE,
            };
            two.write_parcel(seen[at].1, &unit.to_parcel("default"))
                .unwrap();
        }
        for &slot in &hidden {
            let target = seen.first().map(|seen| two.reference(seen.1).unwrap());
            let unit = Unit {
                x: random.next() as i32,
                ..aiming_at(target.unwrap_or_default())
            };
            two.write_parcel(slot, &unit.to_parcel("default")).unwrap();
        }
        one.finish();
        two.finish();
        for (at, &(a, b)) in seen.iter().enumerate() {
            if (tick as usize / 50 + at).is_multiple_of(5) {
                bare.encoder.hide(a);
                full.encoder.hide(b);
            } else {
                let ids = (bare.show(a), full.show(b));
                assert_eq!(ids.0, ids.1);
            }
        }
        let budget = (tick % 100 < 50).then_some(60);
        let packet = bare.encoder.encode(&bare.archive, budget).unwrap();
        let other = full.encoder.encode(&full.archive, budget).unwrap();
        assert_eq!(packet.bytes, other.bytes, "tick {tick}");
        if random.chance(80) {
            bare.decoder.decode(&packet.bytes).unwrap();
            let ack = bare.decoder.acknowledgement().unwrap();
            if random.chance(80) {
                bare.encoder.acknowledge(&ack, &bare.archive).unwrap();
                full.encoder.acknowledge(&ack, &full.archive).unwrap();
            }
        }
    }
}

/// A reference at the receiver names the entity that it named when its referrer was last sent, also
/// when ids are reused and referrers wait for their packet.
#[test]
fn stale_references_never_name_another_entity() {
    let mut resolved = 0;
    for seed in 0..if cfg!(debug_assertions) { 6 } else { 60 } {
        let mut random = Random::new(seed);
        let mut ends = Ends::new();
        let mut alive: BTreeMap<Slot, Unit> = BTreeMap::new();
        // By packet: for each id, its entity and the target of its reference.
        type SentReferences = BTreeMap<u32, (EntityRef, Option<EntityRef>)>;
        let mut truths: BTreeMap<u32, SentReferences> = BTreeMap::new();
        let mut shown: SentReferences = BTreeMap::new();
        for tick in 1..400 {
            ends.tick = tick;
            let mut capture = ends.archive.begin(Tick(tick.into())).unwrap();
            if alive.len() < 40 && random.chance(70) {
                let slot = capture.spawn_parcel(UNIT, &Unit::default().to_parcel("default"));
                alive.insert(slot.unwrap(), Unit::default());
            }
            let slots: Vec<Slot> = alive.keys().copied().collect();
            for &slot in &slots {
                if random.chance(1) {
                    capture.despawn(slot).unwrap();
                    alive.remove(&slot);
                }
            }
            for (&slot, unit) in &mut alive {
                if random.chance(40) {
                    unit.x = random.next() as i32;
                }
                if random.chance(10) {
                    let to = slots[random.below(slots.len() as u64) as usize];
                    unit.target = capture.reference(to).unwrap_or_default();
                }
                capture
                    .write_parcel(slot, &unit.to_parcel("default"))
                    .unwrap();
            }
            capture.finish();
            for &slot in alive.keys() {
                match random.below(40) {
                    0 => ends.encoder.hide(slot),
                    1..=9 => drop(ends.show(slot)),
                    _ => {}
                }
            }
            let budget = Some(40 + seed as usize % 5 * 20);
            let packet = ends.encoder.encode(&ends.archive, budget).unwrap();
            let mut truth = SentReferences::new();
            for (&slot, unit) in &alive {
                if let Some(id) = ends.encoder.net_entity_id(slot) {
                    let target = ends.archive.entity(unit.target);
                    let target = target.filter(|&to| ends.encoder.net_entity_id(to).is_some());
                    truth.insert(
                        id.0,
                        (ends.reference(slot), target.map(|to| ends.reference(to))),
                    );
                }
            }
            truths.insert(packet.sequence.0, truth);
            if random.chance(20) {
                continue;
            }
            let done = ends.decoder.decode(&packet.bytes).unwrap();
            let world = ends.decoder.world();
            shown.retain(|&id, _| world.class(Slot(id)).is_some());
            for id in ends.decoder.covered() {
                shown.insert(id.0, truths[&done.sequence.0][&id.0]);
            }
            for (&id, (_, target)) in &shown {
                let as_sent = ends.read(NetEntityId(id)).target;
                assert_eq!(
                    as_sent.is_none(),
                    target.is_none(),
                    "seed {seed}, tick {tick}"
                );
                if let Some(at) = ends.decoder.world().entity(as_sent) {
                    let is = shown[&at.0].0;
                    assert_eq!(
                        Some(is),
                        *target,
                        "seed {seed}, tick {tick}: {id} → {as_sent:?}"
                    );
                    resolved += 1;
                }
            }
            if random.chance(80) {
                let ack = ends.decoder.acknowledgement().unwrap();
                ends.encoder.acknowledge(&ack, &ends.archive).unwrap();
            }
        }
    }
    assert!(resolved > 1000, "{resolved}");
}
