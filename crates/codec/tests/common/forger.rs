//! A sender that forges an entity's class, with correct checks: a real encoder that is given two
//! worlds in turn.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use std::sync::Arc;

use prescient_codec::{
    Ack, AppliedSet, Config, Encoder, HISTORY, Sequence, Slot, Tick, history::Archive,
};
use prescient_schema::Schema;

/// Two worlds that differ in the entity in slot 0, and an encoder that takes them for one.
pub struct Forger {
    /// Each world, with the class and row of its only entity.
    worlds: [World; 2],
    encoder: Encoder,
    tick: u32,
}

struct World {
    archive: Archive,
    class: u16,
    row: Vec<i64>,
}

/// Which of the two worlds a packet is about.
#[derive(Clone, Copy, Debug)]
pub enum Which {
    First,
    Second,
}

impl Forger {
    /// Both worlds begin at tick `start + 1`.
    pub fn new(
        schema: &Arc<Schema>,
        config: Config,
        start: u32,
        entities: [(u16, &[i64]); 2],
    ) -> Self {
        let world = |(class, row): (u16, &[i64])| World {
            archive: Archive::new(schema.clone(), HISTORY),
            class,
            row: row.to_vec(),
        };
        Self {
            worlds: entities.map(world),
            encoder: Encoder::new(schema.clone(), config),
            tick: start,
        }
    }

    /// The six packets of a known attack: an entity is spawned, and again under another class; once
    /// the model has it under the first class, it changes as one of that class.
    pub fn attack(&mut self, changed: &[i64]) -> Vec<Vec<u8>> {
        let mut packets = vec![self.packet(Which::First), self.packet(Which::Second)];
        for _ in 0..3 {
            self.acknowledge(packets.len());
            packets.push(self.packet(Which::Second));
        }
        self.acknowledge(packets.len());
        self.worlds[0].row = changed.to_vec();
        packets.push(self.packet(Which::First));
        packets
    }

    /// The next tick of both worlds, and the packet of one of them.
    pub fn packet(&mut self, which: Which) -> Vec<u8> {
        self.tick += 1;
        for world in &mut self.worlds {
            let mut capture = world.archive.begin(Tick(self.tick.into())).unwrap();
            match capture.class(Slot(0)) {
                Some(_) => capture.write(Slot(0), &world.row).unwrap(),
                None => drop(capture.spawn(world.class, &world.row).unwrap()),
            }
            capture.finish();
        }
        let archive = &self.worlds[which as usize].archive;
        self.encoder.show(Slot(0), archive);
        self.encoder.encode(archive, None).unwrap().bytes
    }

    /// Acknowledges the first packets to the encoder, applied or not.
    pub fn acknowledge(&mut self, packets: usize) {
        let ack = Ack {
            epoch: 0,
            newest: Sequence(packets as u32),
            applied: AppliedSet::ALL,
            resync: false,
        };
        let archive = &self.worlds[Which::Second as usize].archive;
        self.encoder.acknowledge(&ack, archive).unwrap();
    }
}
