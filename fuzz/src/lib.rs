//! What the targets share: a schema, a small world, and a connection that has lived a while.

use std::sync::Arc;

use prescient_codec::{
    ClientId, Config, Decoder, Encoder, HISTORY, Profile, Slot, Tick, history::Archive,
};
use prescient_schema::{Class, Derivative, Field, Kind, Priority, Schema};

/// A class with everything, and one with next to nothing.
pub fn schema() -> Arc<Schema> {
    let int = |bits, signed| Kind::Int { bits, signed };
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
        Field::new("mode", Kind::Enum { values: 5 }),
        Field::new("huge", int(64, true)),
        fine,
        born,
    ];
    let lamp = vec![
        Field::new("on", Kind::Bool),
        Field::new("colour", Kind::Enum { values: 300 }),
    ];
    Arc::new(Schema {
        classes: vec![Class::new("mover", mover), Class::new("lamp", lamp)],
    })
}

/// The settings of one or the other profile.
pub fn config(best: bool) -> Config {
    Config {
        profile: if best {
            Profile::Best
        } else {
            Profile::Default
        },
        ..Config::default()
    }
}

/// An archive with movers and lamps.
pub struct World {
    pub archive: Archive,
    tick: u32,
}

impl World {
    pub fn new(schema: Arc<Schema>) -> Self {
        Self {
            archive: Archive::new(schema, HISTORY),
            tick: 0,
        }
    }

    /// One tick, in which `whim` decides what is out of the ordinary.
    pub fn step(&mut self, whim: u8) {
        self.tick += 1 + u32::from(whim >> 6 == 3);
        let slots: Vec<Slot> = self.archive.living_slots().collect();
        let rows: Vec<Vec<i64>> = slots
            .iter()
            .map(|&slot| self.archive.latest(slot).unwrap_or(&[]).to_vec())
            .collect();
        let mut capture = self.archive.begin(Tick(self.tick)).expect("ticks increase");
        for (index, (&slot, mut row)) in slots.iter().zip(rows).enumerate() {
            let hit = index == usize::from(whim >> 2 & 15);
            if row.len() == 2 {
                row[0] ^= i64::from(hit);
                row[1] = (row[1] + i64::from(hit)) % 300;
            } else {
                row[1] += i64::from(hit) * i64::from(whim as i8) % 7;
                row[0] += row[1] / 2;
                row[4] = row[0] * 9;
                row[2] = (row[2] + i64::from(hit && whim & 1 == 1)) % 5;
            }
            capture.write(slot, &row).expect("fits");
        }
        if whim & 3 == 1 && slots.len() < 24 {
            let number = i64::from(self.tick);
            let made = if whim & 4 == 0 {
                capture.spawn(0, &[number, 3, 1, number << 40, 0, number & 0xFFFF])
            } else {
                capture.spawn(1, &[1, number % 300])
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

    /// Shows everything.
    pub fn show(&self, encoder: &mut Encoder) {
        for slot in self.archive.living_slots() {
            encoder.show(slot, &self.archive);
        }
    }
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

/// Everything a caller can see of a decoder, and its model.
pub fn state(decoder: &Decoder) -> (u64, Option<Tick>, Vec<(Slot, Vec<i64>)>, Vec<ClientId>) {
    let world = decoder.world();
    let rows = world
        .living_slots()
        .map(|slot| (slot, world.latest(slot).unwrap_or(&[]).to_vec()))
        .collect();
    let covered = decoder.covered().collect::<Vec<_>>();
    (decoder.digest(), world.newest(), rows, covered)
}
