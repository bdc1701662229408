//! Two ends without a link between them: every packet arrives and is acknowledged at once.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use std::sync::Arc;

use prescient_codec::{Config, Decoder, Encoder, HISTORY, Slot, Tick, history::Archive};
use prescient_schema::{Class, Field, FieldKind, Schema};

pub struct Pair {
    pub archive: Archive,
    pub encoder: Encoder,
    pub decoder: Decoder,
    pub tick: u32,
}

impl Pair {
    /// A world of one class with these rows in slots 0, 1, …
    pub fn new(class: Class, rows: &[&[i64]]) -> Self {
        let schema = Arc::new(Schema {
            classes: vec![class],
        });
        let config = Config::default();
        let mut pair = Self {
            archive: Archive::new(schema.clone(), HISTORY),
            encoder: Encoder::new(schema.clone(), config),
            decoder: Decoder::new(schema, config),
            tick: 1,
        };
        let mut capture = pair.archive.begin(Tick(1)).unwrap();
        for row in rows {
            capture.spawn(0, row).unwrap();
        }
        capture.finish();
        pair
    }

    /// The next tick with new rows for some slots.
    pub fn capture<'r>(&mut self, rows: impl IntoIterator<Item = (u32, &'r [i64])>) {
        self.tick += 1;
        let mut capture = self.archive.begin(Tick(self.tick.into())).unwrap();
        for (slot, row) in rows {
            capture.write(Slot(slot), row).unwrap();
        }
        capture.finish();
    }

    /// Sends the newest tick. Returns the length of the packet.
    pub fn exchange(&mut self, budget: Option<usize>) -> usize {
        for slot in self.archive.living_slots() {
            self.encoder.show(slot, &self.archive);
        }
        let packet = self.encoder.encode(&self.archive, budget).unwrap();
        self.decoder.decode(&packet.bytes).unwrap();
        let ack = self.decoder.acknowledgement().unwrap();
        self.encoder.acknowledge(&ack, &self.archive).unwrap();
        packet.bytes.len()
    }

    /// The receiver's row of a slot of the sender.
    pub fn shown(&self, slot: u32) -> &[i64] {
        let id = self.encoder.net_entity_id(Slot(slot)).unwrap();
        self.decoder.row(id).unwrap()
    }
}

pub fn int(name: &str, bits: u8) -> Field {
    let signed = true;
    Field::new(name, FieldKind::Int { bits, signed })
}
