//! Two ends and a link that loses, delays, reorders and repeats in both directions. Models and
//! values are compared after every applied packet.
#![allow(unreachable_pub, reason = "a module of a program of its own")]

use std::{collections::BTreeMap, sync::Arc};

use prescient_codec::{
    Ack, Config, DecodeError, Decoder, Encoder, HISTORY, NetEntityId, Policy, Slot, Tick,
    history::Archive,
};
use prescient_schema::{Content, Level, Schema};
use proptest::prelude::*;

use crate::common::as_sent;

/// The delivery of one packet and of its acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    pub lost: bool,
    pub delay: u32,
    pub repeated: Option<u32>,
    pub ack_lost: bool,
    pub ack_delay: u32,
    pub ack_repeated: Option<u32>,
}

impl Delivery {
    pub const SMOOTH: Self = Self {
        lost: false,
        delay: 0,
        repeated: None,
        ack_lost: false,
        ack_delay: 0,
        ack_repeated: None,
    };
}

/// A link keeps its quality for a while, so that there are good and bad periods.
pub fn delivery() -> impl Strategy<Value = Delivery> {
    let parts = (
        prop::bool::weighted(0.2),
        prop_oneof![3 => 0u32..2, 1 => 0u32..9],
        prop::option::weighted(0.2, 0u32..12),
        prop::bool::weighted(0.25),
        prop_oneof![3 => 0u32..2, 1 => 0u32..9],
        prop::option::weighted(0.2, 0u32..12),
    );
    parts.prop_map(
        |(lost, delay, repeated, ack_lost, ack_delay, ack_repeated)| Delivery {
            lost,
            delay,
            repeated,
            ack_lost,
            ack_delay,
            ack_repeated,
        },
    )
}

pub struct Link {
    pub archive: Archive,
    pub encoder: Encoder,
    pub decoder: Decoder,
    config: Config,
    pub levels: BTreeMap<Slot, Level>,
    /// All contents so far.
    pub contents: BTreeMap<i64, Content>,
    now: u32,
    order: u32,
    down: BTreeMap<(u32, u32), (Vec<u8>, Delivery)>,
    up: BTreeMap<(u32, u32), Ack>,
    sent: BTreeMap<u32, Sent>,
    pub applied: usize,
}

/// The world when a packet was encoded.
struct Sent {
    digest: u64,
    rows: BTreeMap<NetEntityId, ExpectedRow>,
}

/// The row of an entity that the receiver should have.
#[derive(Debug)]
struct ExpectedRow {
    class: u16,
    row: Vec<i64>,
    level: Level,
}

impl Link {
    pub fn new(schema: Arc<Schema>, config: Config) -> Self {
        Self {
            archive: Archive::new(schema.clone(), HISTORY),
            encoder: Encoder::new(schema.clone(), config),
            decoder: Decoder::new(schema, config),
            config,
            levels: BTreeMap::new(),
            contents: BTreeMap::new(),
            now: 0,
            order: 0,
            down: BTreeMap::new(),
            up: BTreeMap::new(),
            sent: BTreeMap::new(),
            applied: 0,
        }
    }

    /// Sends the newest tick and lets one step of time pass.
    pub fn pass(&mut self, delivery: Delivery, budget: Option<usize>) {
        let before = self.encoder.digest();
        let packet = self.encoder.encode(&self.archive, budget).unwrap();
        let digest = match self.config.policy() {
            Policy::Immediate => before,
            _ => self.encoder.digest(),
        };
        let rows = self.archive.living_slots().filter_map(|slot| {
            let id = self.encoder.net_entity_id(slot)?;
            let expected = ExpectedRow {
                class: self.archive.class(slot)?,
                row: as_sent(&self.archive, &self.encoder, slot)?,
                level: self.levels.get(&slot).copied().unwrap_or_default(),
            };
            Some((id, expected))
        });
        let rows = rows.collect();
        self.sent.insert(packet.sequence.0, Sent { digest, rows });
        let copies = [
            (!delivery.lost).then_some(delivery.delay),
            delivery.repeated,
        ];
        for delay in copies.into_iter().flatten() {
            self.order += 1;
            let at = (self.now + delay, self.order);
            self.down.insert(at, (packet.bytes.clone(), delivery));
        }
        while let Some(first) = self.down.first_entry()
            && first.key().0 <= self.now
        {
            let (bytes, delivery) = first.remove();
            self.arrive(&bytes, delivery);
        }
        while let Some(first) = self.up.first_entry()
            && first.key().0 <= self.now
        {
            let ack = first.remove();
            self.encoder.acknowledge(&ack, &self.archive).unwrap();
        }
        self.now += 1;
    }

    fn arrive(&mut self, bytes: &[u8], delivery: Delivery) {
        let before = self.decoder.digest();
        match self.decoder.decode(bytes) {
            Ok(done) => {
                self.applied += 1;
                self.compare(done.sequence.0, done.full);
            }
            Err(error) => {
                assert_eq!(error, DecodeError::Late);
                assert_eq!(self.decoder.digest(), before, "a late packet left a trace");
            }
        }
        let Some(ack) = self.decoder.acknowledgement() else {
            return;
        };
        let copies = [
            (!delivery.ack_lost).then_some(delivery.ack_delay),
            delivery.ack_repeated,
        ];
        for delay in copies.into_iter().flatten() {
            self.order += 1;
            self.up.insert((self.now + delay, self.order), ack);
        }
    }

    fn compare(&self, sequence: u32, full: bool) {
        let sent = &self.sent[&sequence];
        assert_eq!(self.decoder.digest(), sent.digest, "models differ");
        let shown = self.decoder.world();
        if full {
            let shown = shown.living_slots().map(|slot| NetEntityId(slot.0));
            assert!(
                shown.eq(sent.rows.keys().copied()),
                "not everybody is there"
            );
        }
        for id in self.decoder.covered() {
            let expected = &sent.rows[&id];
            let got = self.decoder.row(id).unwrap();
            assert_eq!(shown.class(Slot(id.0)), Some(expected.class));
            // A spawn is exact, whatever its level is later.
            let levels = [expected.level, Level::EXACT];
            assert!(
                levels
                    .iter()
                    .any(|&level| self.at_level(expected, level) == got),
                "packet {sequence}, {id:?}: {got:?} is not {expected:?}"
            );
            self.compare_contents(expected.class, got);
        }
    }

    fn compare_contents(&self, class: u16, row: &[i64]) {
        let fields = &self.archive.schema().classes[usize::from(class)].fields;
        for (field, cell) in fields.iter().zip(row) {
            if field.kind.container().is_some() && *cell != 0 {
                let held = prescient_schema::Library::content(self.decoder.world(), *cell);
                assert_eq!(held, Some(&self.contents[cell]), "{}", field.name);
            }
        }
    }

    fn at_level(&self, expected: &ExpectedRow, level: Level) -> Vec<i64> {
        let fields = &self.archive.schema().classes[usize::from(expected.class)].fields;
        let cells = fields.iter().zip(&expected.row);
        cells
            .map(|(field, &cell)| field.at_level(level, cell))
            .collect()
    }

    /// After a good period the whole world is shown, at the requested levels.
    pub fn compare_all(&self) {
        let (_, sent) = self.sent.last_key_value().unwrap();
        let shown = self.decoder.world().living_slots();
        assert!(
            shown
                .map(|slot| NetEntityId(slot.0))
                .eq(sent.rows.keys().copied())
        );
        for (id, expected) in &sent.rows {
            let level = match self.config.policy() {
                Policy::Stateless => Level::EXACT,
                _ => expected.level,
            };
            let got = self.decoder.row(*id).unwrap();
            assert_eq!(self.at_level(expected, level), got, "{id:?}: {expected:?}");
            self.compare_contents(expected.class, got);
        }
    }

    /// The next tick to capture, some ticks after the last.
    pub fn next_tick(&self, gap: u32) -> Tick {
        Tick(self.archive.newest().map_or(0, |tick| tick.0) + 1 + u64::from(gap))
    }
}
