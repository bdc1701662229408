//! Archive, encoder and decoder of one connection. Capturing, encoding and taking the
//! acknowledgement are the server's time.

use std::time::Instant;

use prescient_codec::{Config, Decoder, Encoder, HISTORY, Slot, history::Archive};

use crate::{
    Played,
    script::{Script, Tick},
};

pub struct Connection {
    archive: Archive,
    encoder: Encoder,
    decoder: Decoder,
    slots: Vec<Slot>,
    tick: u32,
}

impl Connection {
    pub fn new(script: &Script) -> Self {
        let schema = &script.schema;
        Self {
            archive: Archive::new(schema.clone(), HISTORY),
            encoder: Encoder::new(schema.clone(), Config::default()),
            decoder: Decoder::new(schema.clone(), Config::default()),
            slots: Vec::new(),
            tick: 0,
        }
    }

    pub fn play(&mut self, tick: &Tick) -> Played {
        self.tick += 1;
        let started = Instant::now();
        if let Some(ack) = self.decoder.acknowledgement() {
            let taken = self.encoder.acknowledge(&ack, &self.archive);
            taken.expect("the packet was sent");
        }
        let now = prescient_codec::Tick(self.tick);
        let mut capture = self.archive.begin(now).expect("ticks increase");
        for &number in &tick.despawned {
            let gone = capture.despawn(self.slots[number]);
            gone.expect("it is alive");
        }
        for (_, row) in &tick.spawned {
            let slot = capture.spawn(0, row).expect("the row fits");
            self.slots.push(slot);
        }
        for (number, row) in &tick.changed {
            let written = capture.write(self.slots[*number], row);
            written.expect("it is alive and the row fits");
        }
        capture.finish();
        for (number, _) in &tick.spawned {
            self.encoder.show(self.slots[*number], &self.archive);
        }
        let packet = self.encoder.encode(&self.archive, None);
        let packet = packet.expect("a tick was captured");
        let time = started.elapsed();

        self.decoder
            .decode(&packet.bytes)
            .expect("nothing was lost");
        Played {
            bytes: packet.bytes.len(),
            time,
        }
    }

    /// What the client shows, sorted.
    pub fn shown(&self) -> Vec<Vec<i64>> {
        let world = self.decoder.world();
        let rows = world.living_slots().filter_map(|slot| world.latest(slot));
        let mut rows: Vec<_> = rows.map(<[i64]>::to_vec).collect();
        rows.sort_unstable();
        rows
    }
}
