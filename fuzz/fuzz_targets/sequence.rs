//! A script of network faults for a codec connection. After every packet that arrives unchanged,
//! both models are equal and the covered entities have the sender's state. The checksum is compiled
//! out, so corrupted packets may be applied; from then on the ends disagree, must not panic, and
//! agree again from the next epoch on.
#![no_main]

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prescient_codec::{Ack, DecodeError, Decoder, Encoder, NetEntityId, Slot};
use prescient_fuzz::{World, config, holds_contents, schema, state, told};

#[derive(Arbitrary, Debug)]
enum Action {
    /// A tick is captured and encoded.
    Encode {
        whim: u8,
        budget: Option<u8>,
    },
    /// Several quiet ticks, each delivered and acknowledged: the world comes to rest.
    Calm(u8),
    /// The packet under way that is this many behind the newest arrives and remains in the queue.
    Deliver(u8),
    /// It is lost.
    Drop(u8),
    /// It arrives corrupted.
    Corrupt {
        which: u8,
        at: u16,
        flip: u8,
    },
    /// The receiver makes an acknowledgement.
    Report,
    /// An acknowledgement arrives.
    Acknowledge(u8),
    Hide(u8),
    Show(u8),
    Resync,
}

#[derive(Arbitrary, Debug)]
struct Script {
    best: bool,
    steps: Vec<Action>,
}

struct Sent {
    sequence: u32,
    epoch: u8,
    bytes: Vec<u8>,
    digest: u64,
    truth: BTreeMap<NetEntityId, Vec<i64>>,
}

struct Pair {
    world: World,
    encoder: Encoder,
    decoder: Decoder,
    hidden: Vec<Slot>,
    down: Vec<Sent>,
    up: Vec<Ack>,
    /// A corrupted packet was applied, and no new epoch has begun since.
    estranged: bool,
    /// The last epoch in which the sender got an acknowledgement from an estranged receiver.
    misled: Option<u8>,
}

fuzz_target!(|script: Script| {
    let schema = schema();
    let config = config(script.best);
    let mut pair = Pair {
        world: World::new(schema.clone()),
        encoder: Encoder::new(schema.clone(), config),
        decoder: Decoder::new(schema, config),
        hidden: Vec::new(),
        down: Vec::new(),
        up: Vec::new(),
        estranged: false,
        misled: None,
    };
    let mut calm = CALM;
    for step in script.steps.into_iter().take(300) {
        match step {
            Action::Encode { whim, budget } => {
                pair.encode(whim, budget.map(|bytes| 20 + usize::from(bytes)))
            }
            Action::Calm(ticks) => {
                let ticks = (ticks % 80).min(calm);
                calm -= ticks;
                for _ in 0..ticks {
                    pair.encode(0, None);
                    pair.deliver(0);
                    pair.up.extend(pair.decoder.acknowledgement());
                    pair.acknowledge(0);
                }
            }
            Action::Deliver(which) => pair.deliver(which),
            Action::Drop(which) => drop(pair.take(which)),
            Action::Corrupt { which, at, flip } => pair.corrupt(which, at, flip),
            Action::Report => pair.up.extend(pair.decoder.acknowledgement()),
            Action::Acknowledge(which) => pair.acknowledge(which),
            Action::Hide(which) => {
                let slot = Slot(u32::from(which) % 32);
                pair.encoder.hide(slot);
                pair.hidden.push(slot);
            }
            Action::Show(which) => pair.hidden.retain(|slot| slot.0 != u32::from(which) % 32),
            Action::Resync => pair.encoder.resync(),
        }
    }
});

/// Maximum number of quiet ticks of a script; more would only take time.
const CALM: u8 = 250;

impl Pair {
    fn encode(&mut self, whim: u8, budget: Option<usize>) {
        self.world.step(whim);
        let archive = &self.world.archive;
        for slot in archive.living_slots() {
            if !self.hidden.contains(&slot) {
                self.encoder.show(slot, archive);
            }
        }
        let packet = self.encoder.encode(archive, budget).expect("a new tick");
        let truth = archive
            .living_slots()
            .filter_map(|slot| {
                let row = told(archive, &self.encoder, slot)?;
                Some((self.encoder.net_entity_id(slot)?, row))
            })
            .collect();
        self.down.push(Sent {
            sequence: packet.sequence.0,
            epoch: self.encoder.statistics().resyncs as u8,
            bytes: packet.bytes,
            digest: self.encoder.digest(),
            truth,
        });
    }

    fn find(&self, which: u8) -> Option<usize> {
        let last = self.down.len().checked_sub(1)?;
        Some(last - usize::from(which) % self.down.len())
    }

    fn take(&mut self, which: u8) -> Option<Sent> {
        Some(self.down.remove(self.find(which)?))
    }

    fn deliver(&mut self, which: u8) {
        let Some(at) = self.find(which) else { return };
        let sent = &self.down[at];
        let before = state(&self.decoder);
        let ack = self.decoder.acknowledgement();
        let begins = ack.map_or(0, |ack| ack.epoch) != sent.epoch;
        let heals = begins && self.misled != Some(sent.epoch);
        match self.decoder.decode(&sent.bytes) {
            Ok(_) if self.estranged && !heals => {}
            Ok(done) => {
                if self.estranged {
                    self.estranged = false;
                    self.up.clear();
                }
                assert_eq!(done.sequence.0, sent.sequence);
                assert_eq!(self.decoder.digest(), sent.digest, "models differ");
                for id in self.decoder.covered() {
                    assert_eq!(
                        self.decoder.row(id),
                        sent.truth.get(&id).map(|row| &row[..])
                    );
                    assert!(holds_contents(&self.decoder, id));
                }
                if done.full {
                    let shown = self.decoder.world().living_slots();
                    assert!(
                        shown
                            .map(|slot| NetEntityId(slot.0))
                            .eq(sent.truth.keys().copied())
                    );
                }
            }
            Err(error) => {
                assert!(self.estranged || error == DecodeError::Late, "{error}");
                assert_eq!(before, state(&self.decoder));
            }
        }
    }

    fn corrupt(&mut self, which: u8, at: u16, flip: u8) {
        let Some(sent) = self.find(which).map(|at| &self.down[at]) else {
            return;
        };
        let mut bytes = sent.bytes.clone();
        let index = usize::from(at) % bytes.len();
        bytes[index] ^= flip;
        let before = state(&self.decoder);
        match self.decoder.decode(&bytes) {
            Ok(_) => self.estranged |= flip != 0,
            Err(_) => assert_eq!(before, state(&self.decoder)),
        }
    }

    fn acknowledge(&mut self, which: u8) {
        let Some(last) = self.up.len().checked_sub(1) else {
            return;
        };
        let ack = self.up[last - usize::from(which) % self.up.len()];
        let taken = self.encoder.acknowledge(&ack, &self.world.archive);
        if self.estranged {
            self.misled = Some(self.encoder.statistics().resyncs as u8);
        } else {
            taken.expect("an honest acknowledgement");
        }
    }
}
