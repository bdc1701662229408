//! Shared by the targets: a schema, a small world, and a warmed-up connection.

pub mod forgery;
pub mod pair;

use std::sync::Arc;

use prescient_codec::{
    Config, Decoder, Encoder, HISTORY, NetEntityId, Profile, Slot, Tick,
    history::{Archive, Capture},
};
use prescient_schema::{
    Class, Content, Derivative, EntityRef, Field, FieldKind, Library, Priority, Schema,
};

/// A class with numbers and symbols, one with two fields, and one with containers and references.
pub fn schema() -> Arc<Schema> {
    let int = |bits, signed| FieldKind::Int { bits, signed };
    let mut fine = Field::new("fine", int(32, true));
    fine.priority = Priority::new(1).expect("1 is a priority");
    fine.coarser = [0, 2, 4, 6];
    let mut born = Field::new("born", int(16, false));
    born.only_on_spawn = true;
    let mut rate = Field::new("rate", int(16, true));
    rate.derivative_of = Some(Derivative {
        of: 0,
        numerator: 1,
        denominator: 2,
    });
    let mover = vec![
        Field::new("x", int(32, true)),
        rate,
        Field::new("mode", FieldKind::Enum { values: 5 }),
        Field::new("huge", int(64, true)),
        fine,
        born,
    ];
    let lamp = vec![
        Field::new("on", FieldKind::Bool),
        Field::new("colour", FieldKind::Enum { values: 300 }),
    ];
    let item = vec![
        Field::new("what", int(16, false)),
        Field::new("count", int(32, true)),
        Field::new("rank", FieldKind::Enum { values: 3 }),
    ];
    let skill = vec![
        Field::new("key", int(8, false)),
        Field::new("value", int(16, true)),
    ];
    let lamp_only = Some("lamp".into());
    let bearer = vec![
        Field::new("name", FieldKind::Text { max_len: 20 }),
        Field::new("blob", FieldKind::Bytes { max_len: 60 }),
        Field::new("bag", FieldKind::List { item, max_len: 12 }),
        Field::new(
            "skills",
            FieldKind::Map {
                item: skill,
                key: 1,
                max_len: 12,
            },
        ),
        Field::new("target", FieldKind::Reference { class: None }),
        Field::new("lamp", FieldKind::Reference { class: lamp_only }),
    ];
    let classes = [("mover", mover), ("lamp", lamp), ("bearer", bearer)];
    Arc::new(Schema {
        classes: classes
            .map(|(name, fields)| Class::new(name, fields))
            .into(),
    })
}

/// The configuration of a profile.
pub fn config(best: bool) -> Config {
    Config::default().with_profile(if best {
        Profile::Best
    } else {
        Profile::Default
    })
}

/// An archive with movers, lamps and bearers.
pub struct World {
    pub archive: Archive,
    tick: u32,
}

const MOVER: u16 = 0;
const LAMP: u16 = 1;
const BEARER: u16 = 2;

impl World {
    pub fn new(schema: Arc<Schema>) -> Self {
        Self {
            archive: Archive::new(schema, HISTORY),
            tick: 0,
        }
    }

    /// Simulates one tick; `whim` selects the irregular changes.
    pub fn step(&mut self, whim: u8) {
        self.step_to(self.tick + 1 + u32::from(whim >> 6 == 3), whim);
    }

    /// The same at a given tick, which must be later than the last.
    pub fn step_to(&mut self, tick: u32, whim: u8) {
        self.tick = tick;
        let number = i64::from(self.tick);
        let slots: Vec<Slot> = self.archive.living_slots().collect();
        let entities: Vec<(Slot, u16, Vec<i64>)> = slots
            .iter()
            .filter_map(|&slot| {
                let row = self.archive.latest(slot)?.to_vec();
                Some((slot, self.archive.class(slot)?, row))
            })
            .collect();
        let mut contents = Vec::new();
        for (.., row) in entities.iter().filter(|(_, class, _)| *class == BEARER) {
            contents.push([0, 1, 2, 3].map(|at| self.archive.content(row[at]).cloned()));
        }
        let mut contents = contents.into_iter();
        let mut capture = self
            .archive
            .begin(Tick(self.tick.into()))
            .expect("ticks increase");
        for (index, (slot, class, mut row)) in entities.into_iter().enumerate() {
            let hit = index == usize::from(whim >> 2 & 15);
            match class {
                LAMP => {
                    row[0] ^= i64::from(hit);
                    row[1] = (row[1] + i64::from(hit)) % 300;
                }
                MOVER => {
                    row[1] += i64::from(hit) * i64::from(whim as i8) % 7;
                    row[0] += row[1] / 2;
                    row[4] = row[0] * 9;
                    row[2] = (row[2] + i64::from(hit && whim & 1 == 1)) % 5;
                }
                _ => {
                    let held = contents.next().unwrap_or_default();
                    if hit {
                        stir(
                            &mut capture,
                            &mut row,
                            held,
                            number ^ i64::from(whim),
                            &slots,
                        );
                    }
                }
            }
            capture.write(slot, &row).expect("fits");
        }
        if whim & 3 == 1 && slots.len() < 24 {
            let made = match whim >> 2 & 3 {
                0 | 1 => capture.spawn(MOVER, &[number, 3, 1, number << 40, 0, number & 0xFFFF]),
                2 => capture.spawn(LAMP, &[1, number % 300]),
                _ => capture.spawn(BEARER, &[0; 6]),
            };
            made.expect("fits");
        }
        if whim & 31 == 3
            && let Some(&slot) = slots.get(usize::from(whim >> 5))
        {
            capture.despawn(slot).expect("lives");
        }
        capture.finish();
    }

    /// Makes all entities visible.
    pub fn show(&self, encoder: &mut Encoder) {
        for slot in self.archive.living_slots() {
            encoder.show(slot, &self.archive);
        }
    }
}

/// Changes the contents and references of a bearer.
fn stir(
    capture: &mut Capture<'_>,
    row: &mut [i64],
    held: [Option<Content>; 4],
    number: i64,
    slots: &[Slot],
) {
    let [name, blob, bag, skills] = held;
    let bytes = |content: Option<Content>| match content {
        Some(Content::Bytes(bytes)) => bytes.into_vec(),
        _ => Vec::new(),
    };
    let cells = |content: Option<Content>| match content {
        Some(Content::Cells(cells)) => cells.into_vec(),
        _ => Vec::new(),
    };
    let content = match number & 3 {
        0 => {
            let name = format!("{}{}", String::from_utf8_lossy(&bytes(name)), number & 63);
            Content::Bytes(name.bytes().rev().take(20).collect())
        }
        1 => {
            let mut blob = bytes(blob);
            let at = number as usize % (blob.len() + 1);
            blob.splice(at..at, number.to_le_bytes());
            blob.truncate(60);
            Content::Bytes(blob.into())
        }
        2 => {
            let mut bag = cells(bag);
            let at = number as usize / 4 % (bag.len() / 3 + 1) * 3;
            match number >> 4 & 3 {
                0 if at < bag.len() => drop(bag.drain(at..at + 3)),
                1 if at < bag.len() => bag[at + 1] += number,
                _ => drop(bag.splice(at..at, [number & 0xFFFF, 1, number & 1])),
            }
            bag.truncate(36);
            Content::Cells(bag.into())
        }
        _ => {
            let skills = cells(skills);
            let pairs = skills.chunks(2).map(|pair| (pair[0], pair[1]));
            let mut skills: std::collections::BTreeMap<i64, i64> = pairs.collect();
            if skills.len() < 12 {
                skills.insert(number >> 2 & 15, number & 0x7FFF);
            } else {
                skills.pop_first();
            }
            Content::Cells(
                skills
                    .into_iter()
                    .flat_map(|(key, value)| [key, value])
                    .collect(),
            )
        }
    };
    row[(number & 3) as usize] = capture
        .intern(content)
        .expect("no two contents with one cell");
    let to = slots.get(number as usize >> 2 & 31).copied();
    let to = to.filter(|slot| capture.class(*slot).is_some());
    let is_lamp = to.is_some_and(|slot| capture.class(slot) == Some(LAMP));
    let to = to
        .and_then(|slot| capture.reference(slot))
        .unwrap_or_default();
    row[4] = to.cell();
    if is_lamp {
        row[5] = to.cell();
    }
}

/// A row as the receiver gets it: references are the receiver's ids of visible entities.
pub fn told(archive: &Archive, encoder: &Encoder, slot: Slot) -> Option<Vec<i64>> {
    let class = &archive.schema().classes[usize::from(archive.class(slot)?)];
    let cells = class.fields.iter().zip(archive.latest(slot)?);
    let told = cells.map(|(field, &cell)| {
        if !matches!(field.kind, FieldKind::Reference { .. }) {
            return cell;
        }
        let target = EntityRef::from_cell(cell).and_then(|target| archive.entity(target));
        let id = target.and_then(|slot| encoder.net_entity_id(slot));
        id.map_or(0, |id| EntityRef::new(id.0, 0).cell())
    });
    Some(told.collect())
}

/// Whether the contents of all containers of a row are available and valid.
pub fn holds_contents(decoder: &Decoder, id: NetEntityId) -> bool {
    let world = decoder.world();
    let Some((class, row)) = world.class(Slot(id.0)).zip(decoder.row(id)) else {
        return false;
    };
    let fields = world.schema().classes[usize::from(class)].fields.iter();
    fields
        .zip(row)
        .all(|(field, &cell)| match field.kind.container() {
            Some(container) if cell != 0 => world
                .content(cell)
                .is_some_and(|content| container.admits(content)),
            _ => true,
        })
}

/// A decoder that has applied some packets, and the next packet of its connection.
pub fn warm(best: bool) -> (Decoder, Vec<u8>) {
    let schema = schema();
    let mut world = World::new(schema.clone());
    let mut encoder = Encoder::new(schema.clone(), config(best));
    let mut decoder = Decoder::new(schema, config(best));
    for tick in 0..90u8 {
        world.step(tick.wrapping_mul(73));
        world.show(&mut encoder);
        let budget = (tick % 7 == 0).then_some(60);
        let packet = encoder.encode(&world.archive, budget).expect("a new tick");
        if tick == 89 {
            return (decoder, packet.bytes);
        }
        if tick % 5 != 1 {
            decoder.decode(&packet.bytes).expect("real");
            let ack = decoder.acknowledgement().expect("applied");
            encoder.acknowledge(&ack, &world.archive).expect("honest");
        }
    }
    unreachable!("the loop returns")
}

/// A decoder of which a refused packet must not change the state.
pub struct Watched {
    pub decoder: Decoder,
    /// Its state after the last packet, if computed: that takes longer than decoding most packets.
    seen: Option<State>,
}

impl Watched {
    pub fn new(decoder: Decoder) -> Self {
        Self {
            decoder,
            seen: None,
        }
    }

    /// Decodes a packet; returns whether it was applied.
    pub fn feed(&mut self, packet: &[u8]) -> bool {
        let before = self.seen.take().unwrap_or_else(|| state(&self.decoder));
        let applied = self.feed_unwatched(packet);
        if !applied {
            assert_eq!(before, state(&self.decoder));
            self.seen = Some(before);
        }
        applied
    }

    /// The same without the check of the state, for a packet that is most likely applied.
    pub fn feed_unwatched(&mut self, packet: &[u8]) -> bool {
        self.seen = None;
        self.decoder.decode(packet).is_ok()
    }
}

/// The observable state of a decoder, and a digest of its model.
pub type State = (u64, Option<Tick>, Vec<(Slot, Vec<i64>)>, Vec<NetEntityId>);

/// The current state of a decoder.
pub fn state(decoder: &Decoder) -> State {
    let world = decoder.world();
    let rows = world
        .living_slots()
        .map(|slot| (slot, world.latest(slot).unwrap_or(&[]).to_vec()))
        .collect();
    let covered = decoder.covered().collect::<Vec<_>>();
    (decoder.digest(), world.newest(), rows, covered)
}
