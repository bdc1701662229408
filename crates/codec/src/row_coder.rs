//! Codes single rows, each in a message of its own: for events.
//!
//! A row is coded like that of an entity that appears, with the same contexts and from the row of
//! its class before it. A [`RowCoder`] of a stream learns from every message; it needs a carrier
//! that delivers each message once and in order. A stateless one codes every message by itself.

use alloc::{sync::Arc, vec::Vec};
use core::fmt;

use prescient_schema::{Content, Parcel};

use crate::{
    check::Checksum,
    config::{Config, DEFAULT_CONTEXTS, Policy, Profile},
    header::Header,
    history::Window,
    kept::{HashedContent, KeptRow},
    layout::Layout,
    ledger::{Account, Cause},
    log::Log,
    model::{context_model::ContextModel, repeats::NONE},
    packet_coder::{Coder, NumberSite, PacketCoder, Topic},
    predict::{ROWS, Samples},
    range::{RangeDecoder, RangeEncoder},
    shared_model::{EntityKey, Rows, SharedModel, Views},
    units::{Sequence, Tick},
};

/// One end of a stream of rows, or of rows that are coded one by one.
///
/// Both ends of a stream begin with the same layout. The n-th message teaches the sender when it is
/// written and the receiver when it is read, and nothing else does, so both models are equal before
/// every message. A message that is not delivered breaks the stream until the sender
/// [restarts](Self::restart) it; the check in every message covers all messages before it.
pub struct RowCoder {
    model: SharedModel,
    mode: Mode,
    log: Log,
    /// Hash of all messages of the stream so far, and the tick of the last one.
    history: u64,
    tick: u32,
    is_fresh: bool,
}

/// How messages are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Each teaches the models for the next.
    Stream,
    /// Each by itself.
    Alone,
    /// Each by itself, without tick and check.
    Bare,
}

/// A row that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedRow {
    /// Its tick.
    pub tick: u32,
    /// Its class.
    pub class: u16,
    /// Its values. References hold the ids that the sender wrote, plus one; 0 for none.
    pub parcel: Parcel,
    /// The decisions that reading it took.
    pub work: usize,
}

/// Why a row cannot be sent. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowError {
    /// The message would be longer than allowed; this is its length.
    TooLong(usize),
    /// The values do not fit the class.
    Invalid,
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(length) => write!(f, "{length} bytes are more than a message may have"),
            Self::Invalid => f.write_str("the values do not fit the class"),
        }
    }
}

impl core::error::Error for RowError {}

/// Bytes are not what an encoder writes at this point of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedRow;

impl fmt::Display for MalformedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes are no row of this schema")
    }
}

impl core::error::Error for MalformedRow {}

impl RowCoder {
    /// One end of a stream.
    pub fn of_stream(layout: Arc<Layout>) -> Self {
        Self::new(layout, Mode::Stream)
    }

    /// Codes every row by itself; the ticks of two ends may differ by less than 2^15.
    pub fn stateless(layout: Arc<Layout>) -> Self {
        Self::new(layout, Mode::Alone)
    }

    /// Codes every row by itself, without a tick and without a check: for carriers that repeat and
    /// number what they carry.
    pub fn bare(layout: Arc<Layout>) -> Self {
        Self::new(layout, Mode::Bare)
    }

    fn new(layout: Arc<Layout>, mode: Mode) -> Self {
        let policy = match mode {
            Mode::Stream => Policy::Immediate,
            Mode::Alone | Mode::Bare => Policy::Stateless,
        };
        let config = Config::new()
            .with_policy(policy)
            .with_profile(Profile::Default);
        let pages = layout.pages;
        let mut model = SharedModel::new(layout, &config, false);
        // What a prior knows is about entities.
        let classes = &mut model.entity_states.classes;
        classes.iter_mut().for_each(|class| class.reference = None);
        let learning = config.context_learning();
        model.context_model = ContextModel::new(pages, learning, DEFAULT_CONTEXTS, PAGE_BITS, None);
        Self {
            model,
            mode,
            log: Log::default(),
            history: 0,
            tick: 0,
            is_fresh: true,
        }
    }

    /// Begins the stream anew with the next message, which tells the receiver so.
    pub fn restart(&mut self) {
        let layout = self.model.entity_states.layout.clone();
        *self = Self::new(layout, self.mode);
    }

    /// Bytes that the model holds.
    pub fn bytes(&self) -> usize {
        let classes = self.model.entity_states.classes.iter();
        let kept = classes.filter_map(|class| class.reference.as_ref());
        self.model.bytes() + kept.map(|row| row.bytes()).sum::<usize>()
    }

    /// Appends a row of a class to `head`, in at most `max_len` bytes in all. References in it are
    /// ids of the receiver plus one.
    pub fn encode(
        &mut self,
        head: Vec<u8>,
        tick: u32,
        class: u16,
        parcel: &Parcel,
        max_len: usize,
    ) -> Result<Vec<u8>, RowError> {
        if !self.fits(class, parcel) {
            return Err(RowError::Invalid);
        }
        let start = head.len();
        let contents = Contents::of(parcel);
        let mut coder = RangeEncoder::new(head, 0);
        match self.mode {
            Mode::Stream => coder.bit(self.is_fresh, RARELY),
            Mode::Alone | Mode::Bare => self.tick = tick,
        }
        let mut row = Vec::new();
        let truth = Some((tick, class, &parcel.row[..]));
        let coded = self.code(coder, &contents, usize::MAX, truth, &mut row);
        let work = coded.work;
        let mut bytes = coded.coder.finish();
        let shortest = start + work.saturating_sub(max_work(0)).div_ceil(WORK_PER_BYTE);
        if bytes.len() < shortest {
            bytes.resize(shortest, 0);
        }
        match () {
            () if coded.is_invalid => Err(RowError::Invalid),
            () if bytes.len() > max_len => Err(RowError::TooLong(bytes.len())),
            () => {
                self.learn(tick, coded.history);
                Ok(bytes)
            }
        }
    }

    /// Reads what [`encode`](Self::encode) appended. `near` is a tick near that of the message. After
    /// an error a stream is broken: it cannot be read any further unless the sender restarts it.
    pub fn decode(&mut self, bytes: &[u8], near: u32) -> Result<DecodedRow, MalformedRow> {
        let mut coder = RangeDecoder::new(bytes);
        if self.mode == Mode::Stream && coder.bit(RARELY) {
            self.restart();
        }
        if self.mode != Mode::Stream {
            self.tick = near;
        }
        let mut row = Vec::new();
        let max_work = max_work(bytes.len());
        let coded = self.code(coder, &Contents::default(), max_work, None, &mut row);
        if coded.is_invalid || coded.coder.overrun() || coded.work > max_work {
            return Err(MalformedRow);
        }
        let decoded = DecodedRow {
            tick: coded.tick,
            class: coded.class,
            parcel: coded.parcel,
            work: coded.work,
        };
        if !self.fits(decoded.class, &decoded.parcel) {
            return Err(MalformedRow);
        }
        self.learn(decoded.tick, coded.history);
        Ok(decoded)
    }

    /// Codes a row in either direction, without learning from it.
    fn code<C: Coder>(
        &mut self,
        coder: C,
        contents: &Contents,
        max_work: usize,
        truth: Option<(u32, u16, &[i64])>,
        row: &mut Vec<i64>,
    ) -> Coded<C> {
        let header = Header {
            epoch: 0,
            sequence: Sequence(0),
            tick: Tick(0),
            cursor: Sequence(0),
            full: true,
            excluded: Vec::new(),
        };
        self.log.begin(&header, Tick(0));
        let mark = self.model.context_model.mark();
        let mut packet_coder = PacketCoder::<C, DEFAULT_CONTEXTS> {
            coder,
            context_model: &mut self.model.context_model,
            entity_states: &self.model.entity_states,
            rows: contents,
            log: &mut self.log,
            ledger: None,
            account: ACCOUNT,
            sum: Checksum::new(self.history),
            counting: false,
            cost: 0,
            max_decisions: max_work,
            copy_work: 0,
            new_contents: Vec::new(),
            content_room: MAX_CONTENTS,
            invalid: false,
        };
        let tick = truth.map_or(self.tick, |(tick, ..)| tick);
        let tick = match self.mode {
            Mode::Stream => packet_coder.tick_after(self.tick, tick),
            Mode::Alone => packet_coder.tick_near(self.tick, tick),
            Mode::Bare => tick,
        };
        packet_coder.sum.add(u64::from(tick));
        let class = packet_coder.class(truth.map_or(0, |(_, class, _)| class));
        let mut parcel = Parcel::default();
        if !packet_coder.invalid {
            let values = truth.map(|(.., row)| row);
            packet_coder.appear(0, class, Cause::Spawn, values, row);
        }
        if !packet_coder.invalid && truth.is_none() {
            parcel = packet_coder.parcel(class, row);
        }
        let history = packet_coder.sum.value();
        if self.mode != Mode::Bare {
            let check = (history >> 24) as u32 & 0xFF;
            let found = packet_coder.coder.raw(check, 8);
            packet_coder.require(found == check);
        }
        let (work, is_invalid) = (packet_coder.work(), packet_coder.invalid);
        let coder = packet_coder.coder;
        self.model.context_model.rewind(mark);
        Coded {
            coder,
            tick,
            class,
            parcel,
            history,
            work,
            is_invalid,
        }
    }

    /// Learns from the message that was coded last.
    fn learn(&mut self, tick: u32, history: u64) {
        if self.mode != Mode::Stream {
            return;
        }
        (self.tick, self.history, self.is_fresh) = (tick, history, false);
        let context_model = &mut self.model.context_model;
        context_model.replay::<DEFAULT_CONTEXTS>(&self.log.decisions);
        context_model.commit();
        for (class, row) in self.log.references.drain(..) {
            if row.bytes() <= MAX_KEPT {
                self.model.entity_states.classes[usize::from(class)].reference = Some(row);
            }
        }
    }

    /// Whether values have the columns of a class and are admitted by them.
    fn fits(&self, class: u16, parcel: &Parcel) -> bool {
        let layout = &self.model.entity_states.layout;
        let Some(class) = layout.schema.classes.get(usize::from(class)) else {
            return false;
        };
        let mut contents = parcel.contents.iter();
        let mut admits = |(&value, field): (&i64, &prescient_schema::Field)| {
            field.kind.admits(value)
                && match field.kind.container() {
                    Some(container) if value != 0 => contents
                        .next()
                        .is_some_and(|content| container.admits(content)),
                    _ => true,
                }
        };
        parcel.row.len() == class.fields.len()
            && parcel.row.iter().zip(&class.fields).all(&mut admits)
    }
}

/// The outcome of coding a row.
struct Coded<C> {
    coder: C,
    tick: u32,
    class: u16,
    parcel: Parcel,
    history: u64,
    work: usize,
    is_invalid: bool,
}

impl<C: Coder, const N: usize> PacketCoder<'_, C, N> {
    /// A tick, as its distance from the one before.
    fn tick_after(&mut self, before: u32, tick: u32) -> u32 {
        let distance = i64::from(tick.wrapping_sub(before) as i32);
        let site = NumberSite {
            exponent: Topic::List,
            sign: None,
            mantissa: Topic::ListMantissa,
            field: 0,
            pivot: 0,
            scale: [0; N],
            signs: [0; N],
        };
        // Numbers are never 0.
        let folded = (distance << 1 ^ distance >> 63) + 1;
        let folded = self.number(&site, &NONE, folded) - 1;
        self.require((0..1 << 32).contains(&folded));
        let distance = folded >> 1 ^ -(folded & 1);
        before.wrapping_add(distance as u32)
    }

    /// The low bits of a tick; the others are those of a tick that is near.
    fn tick_near(&mut self, near: u32, tick: u32) -> u32 {
        let low = self.coder.raw(tick & 0xFFFF, 16) as u16;
        near.wrapping_add(i32::from(low.wrapping_sub(near as u16) as i16) as u32)
    }

    /// The values of a row that was read, with its contents.
    fn parcel(&mut self, class: u16, row: &[i64]) -> Parcel {
        let states = self.entity_states;
        let kept = states.classes[usize::from(class)].reference.as_deref();
        let kept = kept.map_or(&[][..], KeptRow::contents);
        let columns = &states.layout.classes[usize::from(class)].contents;
        let cells = columns.iter().map(|&column| row[usize::from(column)]);
        let contents = cells.filter(|&cell| cell != 0).map(|cell| {
            let content = self.find(cell, kept);
            content.map(|content| Content::clone(&content))
        });
        let contents: Option<Vec<Content>> = contents.collect();
        self.require(contents.is_some());
        Parcel {
            row: row.to_vec(),
            contents: contents.unwrap_or_default(),
        }
    }
}

/// The contents of one row.
#[derive(Default)]
struct Contents(Vec<HashedContent>);

impl Contents {
    fn of(parcel: &Parcel) -> Self {
        let contents = parcel.contents.iter();
        Self(contents.cloned().map(HashedContent::new).collect())
    }
}

/// There are no rows of earlier ticks.
impl Rows for Contents {
    fn row<'a>(&'a self, _: EntityKey, _: Tick, _: u8, _: &'a mut Vec<i64>) -> Option<&'a [i64]> {
        None
    }

    fn rows<'a, 's: 'a>(
        &'s self,
        _: EntityKey,
        _: &Samples,
        _: u8,
        _: &'a mut [Vec<i64>; ROWS],
        _: &mut Window<'s>,
    ) -> Option<Views<'a>> {
        None
    }

    fn frame(&self, _: Tick) -> u32 {
        0
    }

    fn latest<'a>(&'a self, _: EntityKey, _: u8, _: &'a mut Vec<i64>) -> Option<&'a [i64]> {
        None
    }

    fn changed_after(&self, _: u32, _: Tick) -> bool {
        false
    }

    fn content(&self, cell: i64) -> Option<&Arc<Content>> {
        let found = self.0.iter().find(|content| content.cell == cell);
        found.map(|content| &content.content)
    }
}

/// The decisions that a message of this length may contain. A sender whose message contains more pads
/// it with zeros.
fn max_work(bytes: usize) -> usize {
    WORK_PER_BYTE * (bytes + FREE_BYTES)
}

const WORK_PER_BYTE: usize = 32;
const FREE_BYTES: usize = 64;

const ACCOUNT: Account = Account {
    class: None,
    field: None,
    cause: Cause::Header,
};

/// Probability of a restart, in 1/65536.
const RARELY: u16 = 1;
/// Binary logarithm of the most cells of a page: events are few, and a receiver holds a model for
/// each of its peers.
const PAGE_BITS: u32 = 10;
/// Bytes that the contents of a row may take.
const MAX_CONTENTS: usize = 1 << 20;
/// A row that takes more is not kept to predict the next one.
const MAX_KEPT: usize = 4 << 10;

#[cfg(test)]
mod tests {
    use alloc::vec;

    use prescient_schema::{Class, Field, FieldKind, Schema, Step};

    use super::*;

    fn layout() -> Arc<Layout> {
        let step = Step::parse("0.01").expect("a step");
        let fields = vec![
            Field::new("x", FieldKind::Step { step, bits: 32 }),
            Field::new("who", FieldKind::Reference { class: None }),
            Field::new("text", FieldKind::Text { max_len: 64 }),
            Field::new("kind", FieldKind::Enum { values: 5 }),
        ];
        let small = vec![Field::new("hit", FieldKind::Bool)];
        let classes = vec![Class::new("shot", fields), Class::new("hit", small)];
        let schema = Schema { classes };
        Arc::new(Layout::new(Arc::new(schema)))
    }

    fn random(seed: &mut u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *seed >> 33
    }

    fn some_row(seed: &mut u64) -> (u16, Parcel) {
        if random(seed).is_multiple_of(4) {
            let row = vec![random(seed) as i64 & 1];
            return (
                1,
                Parcel {
                    row,
                    contents: Vec::new(),
                },
            );
        }
        let length = random(seed) as usize % 20;
        let text: Vec<u8> = (0..length)
            .map(|_| b'a' + (random(seed) % 5) as u8)
            .collect();
        let text = Content::Bytes(text.into());
        let row = vec![
            random(seed) as i64 % 10_000 - 5_000,
            random(seed) as i64 % 40,
            text.cell(),
            random(seed) as i64 % 5,
        ];
        let contents = Some(text).filter(|text| !text.is_empty());
        let contents = contents.into_iter().collect();
        (0, Parcel { row, contents })
    }

    /// Fails if one end learns something that the other does not (for example, if `decode` learns
    /// before it is known that the message is sound), or if a row that is too long teaches the sender.
    #[test]
    fn rows_come_back_from_a_stream() {
        let (mut out, mut back) = (RowCoder::of_stream(layout()), RowCoder::of_stream(layout()));
        let mut seed = 3;
        for tick in 0..2_000 {
            let (class, parcel) = some_row(&mut seed);
            if random(&mut seed).is_multiple_of(50) {
                out.restart();
            }
            let refused = out.encode(vec![9], tick, class, &parcel, 1);
            assert!(matches!(refused, Err(RowError::TooLong(_))));
            let bytes = out.encode(vec![9], tick, class, &parcel, 1_000);
            let bytes = bytes.expect("a sound row");
            let read = back.decode(&bytes[1..], 0).expect("the same row");
            assert_eq!((read.tick, read.class), (tick, class));
            assert_eq!(read.parcel, parcel);
        }
    }

    /// Fails if a stateless coder keeps anything, or derives a tick from its own last one.
    #[test]
    fn rows_come_back_alone() {
        let (mut out, mut back) = (RowCoder::stateless(layout()), RowCoder::stateless(layout()));
        let (mut bare, mut bare_back) = (RowCoder::bare(layout()), RowCoder::bare(layout()));
        let mut seed = 5;
        for tick in (0..200_000).step_by(100) {
            let (class, parcel) = some_row(&mut seed);
            let bytes = out.encode(Vec::new(), tick, class, &parcel, 1_000);
            let bytes = bytes.expect("a sound row");
            if random(&mut seed).is_multiple_of(2) {
                let near = tick
                    .wrapping_add(random(&mut seed) as u32 % 60_000)
                    .wrapping_sub(30_000);
                let read = back.decode(&bytes, near).expect("the same row");
                let shorter = bare.encode(Vec::new(), tick, class, &parcel, 1_000);
                let shorter = shorter.expect("a sound row");
                assert!(shorter.len() < bytes.len());
                let bare_read = bare_back.decode(&shorter, tick).expect("the same row");
                assert_eq!(bare_read.parcel, read.parcel);
                assert_eq!((read.tick, read.class), (tick, class));
                assert_eq!(read.parcel, parcel);
            }
        }
    }

    /// Fails if a message has no check (9 of 10 truncated ones would pass), or if anything panics.
    #[test]
    fn damaged_rows_are_refused() {
        let mut seed = 7;
        let (mut passed, mut tried) = (0, 0);
        for _ in 0..3_000 {
            let (class, parcel) = some_row(&mut seed);
            let mut out = RowCoder::of_stream(layout());
            let bytes = out.encode(Vec::new(), 7, class, &parcel, 1_000);
            let bytes = bytes.expect("a sound row");
            let mut damaged = bytes.clone();
            match random(&mut seed) % 2 {
                0 => damaged.truncate(random(&mut seed) as usize % bytes.len()),
                _ => {
                    damaged[random(&mut seed) as usize % bytes.len()] ^=
                        1 << (random(&mut seed) % 8)
                }
            }
            tried += 1;
            // A changed last byte may still mean the same.
            let read = RowCoder::of_stream(layout()).decode(&damaged, 0);
            passed += usize::from(read.is_ok_and(|read| read.parcel != parcel));
        }
        assert!(passed * 100 < tried, "{passed} of {tried}");
    }

    /// Fails if `fits` checks nothing.
    #[test]
    fn rows_of_another_class_are_refused() {
        let mut out = RowCoder::of_stream(layout());
        let row = |row: Vec<i64>| Parcel {
            row,
            contents: Vec::new(),
        };
        for (class, parcel) in [
            (0, row(vec![1])),
            (1, row(vec![2])),
            (2, row(vec![])),
            (0, row(vec![0, 0, 77, 0])),
            (0, row(vec![0, -1, 0, 0])),
        ] {
            let refused = out.encode(Vec::new(), 1, class, &parcel, 1_000);
            assert_eq!(refused, Err(RowError::Invalid));
        }
    }
}
