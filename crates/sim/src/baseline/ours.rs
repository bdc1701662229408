//! Our own method behind the common interface.

use std::{collections::BTreeMap, sync::Arc};

use prescient_codec::{
    Ack, DecodeError, Decoder, Encoder, NetEntityId, Slot, Tick,
    history::{Archive, CaptureError},
};
use prescient_schema::Schema;

use crate::{
    harness::{Applied, LedgerRow, ReceiveError, Receiver, Sender},
    world::{TickChanges, World},
};

/// Captures every tick into an archive and encodes it for one receiver.
pub struct OurSender {
    schema: Arc<Schema>,
    archive: Archive,
    encoder: Encoder,
    slots: BTreeMap<u64, Slot>,
    ids: BTreeMap<Slot, u64>,
    oversize: bool,
    refused: Option<CaptureError>,
}

impl OurSender {
    /// A sender with a new encoder, whose [`Config::history`](prescient_codec::Config::history) this
    /// is.
    pub fn new(schema: Arc<Schema>, encoder: Encoder, history: u32) -> Self {
        Self {
            archive: Archive::new(schema.clone(), history),
            schema,
            encoder,
            slots: BTreeMap::new(),
            ids: BTreeMap::new(),
            oversize: false,
            refused: None,
        }
    }

    /// Its encoder.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }
}

impl Sender for OurSender {
    fn send(
        &mut self,
        tick: u64,
        world: &World,
        changes: &TickChanges,
        budget: Option<usize>,
    ) -> Vec<u8> {
        let mut capture = match self.archive.begin(Tick(tick)) {
            Ok(capture) => capture,
            Err(refused) => {
                self.refused = Some(refused);
                return Vec::new();
            }
        };
        // The harness verifies every value, so it would detect one that is refused.
        for id in &changes.despawned {
            if let Some(slot) = self.slots.remove(id) {
                self.ids.remove(&slot);
                let _ = capture.despawn(slot);
            }
        }
        let mut spawned = Vec::new();
        for &id in &changes.spawned {
            if let Some(slot) = self.slots.remove(&id) {
                self.ids.remove(&slot);
                let _ = capture.despawn(slot);
            }
            if let Some(entity) = world.get(id)
                && let Ok(slot) = capture.spawn(entity.class, &entity.row)
            {
                self.slots.insert(id, slot);
                self.ids.insert(slot, id);
                spawned.push(slot);
            }
        }
        for id in &changes.changed {
            if let (Some(&slot), Some(entity)) = (self.slots.get(id), world.get(*id)) {
                let _ = capture.write(slot, &entity.row);
            }
        }
        capture.finish();
        for slot in spawned {
            self.encoder.show(slot, &self.archive);
        }
        match self.encoder.encode(&self.archive, budget) {
            Ok(packet) => {
                self.oversize = packet.oversize;
                packet.bytes
            }
            Err(_) => Vec::new(),
        }
    }

    fn refusal(&self) -> Option<String> {
        self.refused.map(|refused| refused.to_string())
    }

    fn acknowledge(&mut self, acknowledgement: &[u8]) {
        if let Some(ack) = Ack::from_bytes(acknowledgement) {
            let _ = self.encoder.acknowledge(&ack, &self.archive);
        }
    }

    fn truth_id(&self, key: u64) -> Option<u64> {
        let slot = self.encoder.slot(NetEntityId(u32::try_from(key).ok()?))?;
        self.ids.get(&slot).copied()
    }

    fn model_bytes(&self) -> usize {
        self.encoder.model_bytes()
    }

    fn folded(&self) -> Option<u64> {
        Some(self.encoder.statistics().folded)
    }

    fn ledger(&self) -> Option<Vec<LedgerRow>> {
        let ledger = self.encoder.ledger()?;
        let rows = ledger.entries().map(|(account, cost)| {
            let class = account
                .class
                .map(|class| &self.schema.classes[usize::from(class)]);
            let field = account
                .field
                .and_then(|f| class?.fields.get(usize::from(f)));
            LedgerRow {
                class: class.map_or_else(String::new, |class| class.name.clone()),
                field: field.map_or_else(String::new, |field| field.name.clone()),
                cause: account.cause.name().to_owned(),
                bits: cost as f64 / 65536.0,
            }
        });
        Some(rows.collect())
    }

    fn is_oversize(&self) -> bool {
        self.oversize
    }

    fn obeys_budget(&self) -> bool {
        true
    }
}

/// Decodes packets; has nothing but the schema and the optional prior.
pub struct OurReceiver {
    decoder: Decoder,
}

impl OurReceiver {
    /// A receiver for an [`OurSender`] whose encoder has the same configuration.
    pub fn new(decoder: Decoder) -> Self {
        Self { decoder }
    }

    fn visit(&self, id: NetEntityId, visit: &mut dyn FnMut(u64, u16, &[i64])) {
        let world = self.decoder.world();
        if let (Some(class), Some(row)) = (world.class(Slot(id.0)), self.decoder.row(id)) {
            visit(u64::from(id.0), class, row);
        }
    }
}

impl Receiver for OurReceiver {
    fn receive(&mut self, packet: &[u8]) -> Result<Applied, ReceiveError> {
        match self.decoder.decode(packet) {
            Ok(applied) => Ok(Applied {
                tick: applied.tick.0,
                full: applied.full,
            }),
            Err(DecodeError::Late) => Err(ReceiveError::Malformed("late")),
            Err(DecodeError::UnknownModel) => Err(ReceiveError::Malformed("unknown model")),
            Err(DecodeError::CheckFailed) => Err(ReceiveError::Malformed("check failed")),
            Err(_) => Err(ReceiveError::Malformed("not one of our packets")),
        }
    }

    fn acknowledgement(&mut self) -> Option<Vec<u8>> {
        self.decoder
            .acknowledgement()
            .map(|ack| ack.to_bytes().to_vec())
    }

    fn visit_covered(&self, visit: &mut dyn FnMut(u64, u16, &[i64])) {
        for id in self.decoder.covered() {
            self.visit(id, visit);
        }
    }

    fn visit_all(&self, visit: &mut dyn FnMut(u64, u16, &[i64])) {
        for slot in self.decoder.world().living_slots() {
            self.visit(NetEntityId(slot.0), visit);
        }
    }
}
