//! Packets can make a decoder hold only a limited number of bytes, measured by the allocator: in
//! logs of packets that the sender has not confirmed, in contents that rows of recent ticks name,
//! and in a long history. A packet that needs more is refused, and both ends continue as after a lost packet. There
//! is one test only, because memory is counted for the whole process.

mod common;

use std::{alloc::System, sync::Arc};

use common::Random;
use prescient_codec::{
    Config, DecodeError, Decoder, Encoder, HISTORY, HistoryDepth, NetEntityId, Slot, Tick,
    history::Archive,
};
use prescient_schema::{Class, Content, Field, FieldKind, Library, Schema};
use prescient_tests::seeds::over_seeds;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The first fails with more bytes than allowed if `Decoder::room_for` does not count logs, the
/// second if `Archive::bytes_at` does not count contents; both if `Decoder::decode_with` does not
/// call `room_for`. The second hardly makes progress if `bytes_at` counts what the packet makes
/// obsolete. The third fails if `Decoder::shown_bytes` does not count the coverage, and is refused
/// nothing if `Decoder::set_history` does nothing.
#[test]
fn a_decoder_holds_no_more_than_it_is_allowed() {
    over_seeds(20, logs);
    over_seeds(20, contents);
    over_seeds(3, history);
}

/// A crowd in random motion whose packets are not confirmed for a while.
fn logs(seed: u64) {
    let max_bytes = 2 << 20;
    let mut pair = Pair::new(vec![int("x"), int("y")], max_bytes);
    let mut random = Random::new(seed);
    for _ in 0..300 {
        pair.rows.push((vec![0, 0], None));
    }
    let mut stray = |pair: &mut Pair| {
        for (row, _) in &mut pair.rows {
            for value in row {
                *value += random.below(1 << 16) as i64 - (1 << 15);
            }
        }
    };
    let mut refused = 0;
    for tick in 0..140 {
        stray(&mut pair);
        let taken = pair.tick(tick % 70 == 0);
        refused += u32::from(taken == Err(DecodeError::Full));
    }
    assert!(refused > 40, "seed {seed}: {refused} packets were refused");
    pair.recovers(seed, stray);
}

/// Long lists in which an item changes at every tick, so that every tick has contents of its own.
fn contents(seed: u64) {
    let max_bytes = 1 << 20;
    let item = vec![int("item")];
    let list = Field::new(
        "list",
        FieldKind::List {
            item,
            max_len: 2000,
        },
    );
    let mut pair = Pair::new(vec![list], max_bytes);
    let mut random = Random::new(seed);
    for _ in 0..10 {
        pair.rows.push((vec![0], Some(vec![0; 2000])));
    }
    let mut refused = 0;
    for _ in 0..2 * HISTORY {
        for (_, list) in &mut pair.rows {
            let list = list.as_mut().unwrap();
            list[200 * random.below(10) as usize] += 1;
        }
        refused += u32::from(pair.tick(true) == Err(DecodeError::Full));
    }
    let applied = 2 * HISTORY - refused;
    // The lists of about five ticks fit, and as many more once those are dropped.
    assert!(applied > 10, "seed {seed}: {applied} packets were applied");
    assert!(refused > 100, "seed {seed}: {refused} packets were refused");
    pair.recovers(seed, |_| {});
}

/// Packets that are too small for all of a crowd and cover most of it, for longer than there is
/// room.
fn history(seed: u64) {
    let max_bytes = 1 << 20;
    let mut pair = Pair::new(vec![int("x")], max_bytes);
    pair.decoder
        .set_history(HistoryDepth::new(1 << 20).unwrap());
    pair.budget = Some(100);
    let mut random = Random::new(seed);
    for _ in 0..1000 {
        pair.rows.push((vec![0], None));
    }
    // Each changes often enough to stay active.
    let mut stray = |pair: &mut Pair| {
        let turn = pair.tick as usize % 30;
        for (row, _) in pair.rows.iter_mut().skip(turn).step_by(30) {
            row[0] += random.below(1 << 16) as i64 - (1 << 15);
        }
    };
    let mut applied = 0;
    while pair.tick(true) != Err(DecodeError::Full) {
        stray(&mut pair);
        applied += 1;
        assert!(applied < 2000, "seed {seed}: nothing is refused");
    }
    assert!(applied > HISTORY, "seed {seed}: {applied} were applied");
    pair.decoder.set_history(HistoryDepth::MIN);
    pair.budget = None;
    pair.recovers(seed, stray);
}

struct Pair {
    archive: Archive,
    encoder: Encoder,
    decoder: Decoder,
    /// The row of each entity, and the content of its container.
    rows: Vec<(Vec<i64>, Option<Vec<i64>>)>,
    tick: u32,
    max_bytes: usize,
    budget: Option<usize>,
    /// Bytes that the decoder holds.
    held: isize,
}

impl Pair {
    fn new(fields: Vec<Field>, max_bytes: usize) -> Self {
        let classes = vec![Class::new("thing", fields)];
        let schema = Arc::new(Schema { classes });
        let mut decoder = Decoder::new(schema.clone(), Config::default());
        decoder.set_max_bytes(max_bytes);
        Self {
            archive: Archive::new(schema.clone(), HISTORY),
            encoder: Encoder::new(schema, Config::default()),
            decoder,
            rows: Vec::new(),
            tick: 0,
            max_bytes,
            budget: None,
            held: 0,
        }
    }

    /// The next tick; its acknowledgement may get lost.
    fn tick(&mut self, acknowledged: bool) -> Result<(), DecodeError> {
        self.tick += 1;
        let mut capture = self.archive.begin(Tick(self.tick.into())).unwrap();
        for (slot, (row, list)) in (0..).map(Slot).zip(&mut self.rows) {
            if let Some(list) = list {
                row[0] = capture.intern(Content::Cells(list[..].into())).unwrap();
            }
            match capture.class(slot) {
                Some(_) => capture.write(slot, row).unwrap(),
                None => assert_eq!(capture.spawn(0, row), Ok(slot)),
            }
        }
        capture.finish();
        if self.tick == 1 {
            for slot in (0..self.rows.len() as u32).map(Slot) {
                self.encoder.show(slot, &self.archive);
            }
        }
        let packet = self.encoder.encode(&self.archive, self.budget).unwrap();
        let region = Region::new(GLOBAL);
        let taken = self.decoder.decode(&packet.bytes).map(drop);
        let change = region.change();
        self.held += change.bytes_allocated as isize - change.bytes_deallocated as isize;
        // The rest is the model, and buffers as large as the longest packet needs.
        let max_bytes = (2 * self.max_bytes + (1 << 20)) as isize;
        assert!(self.held < max_bytes, "{} bytes are held", self.held);
        assert!(self.decoder.held_bytes() < self.max_bytes + self.max_bytes / 4);
        if taken.is_ok() {
            assert_eq!(self.encoder.digest(), self.decoder.digest());
        }
        if let Some(ack) = self.decoder.acknowledgement().filter(|_| acknowledged) {
            self.encoder.acknowledge(&ack, &self.archive).unwrap();
        }
        taken
    }

    /// Once acknowledgements arrive again, the whole world is shown as it is.
    fn recovers(&mut self, seed: u64, mut meanwhile: impl FnMut(&mut Self)) {
        for _ in 0..HISTORY + 10 {
            meanwhile(self);
            let _ = self.tick(true);
        }
        assert_eq!(self.tick(true), Ok(()), "seed {seed}");
        for slot in 0..self.rows.len() as u32 {
            let id: NetEntityId = self.encoder.net_entity_id(Slot(slot)).unwrap();
            let shown = self.decoder.row(id).unwrap();
            let truth = self.archive.latest(Slot(slot)).unwrap();
            assert_eq!(shown, truth, "seed {seed}");
            if let (_, Some(list)) = &self.rows[slot as usize] {
                let shown = self.decoder.world().content(shown[0]);
                assert_eq!(shown, Some(&Content::Cells(list[..].into())));
            }
        }
    }
}

fn int(name: &str) -> Field {
    let (bits, signed) = (32, true);
    Field::new(name, FieldKind::Int { bits, signed })
}
