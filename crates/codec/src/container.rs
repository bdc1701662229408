//! Codes the content of a container as operations on a version that both ends have. Without such a
//! version (in a spawn, or if the container was empty) everything is inserted.

use alloc::{borrow::Cow, sync::Arc, vec::Vec};

use prescient_schema::{Container, Content, Shape};

use crate::{
    kept::HashedContent,
    model::repeats::NONE,
    packet_coder::{Coder, NumberSite, PacketCoder, Topic, first, hash},
    predict::{Width, bit_length},
    script::{Edit, ItemFormat, edits},
};

/// The container that is being coded.
struct Site<'a> {
    container: Container<'a>,
    shapes: &'a [Shape],
    /// The page of the container's field, for its operations.
    field: u32,
    /// The page of the first column of its items.
    first: u32,
}

/// What was coded so far of the container, as context for what follows.
#[derive(Default)]
struct RunningContext {
    /// 0 at the start, then 1 + the last kind of operation.
    before: usize,
    operations: usize,
    columns: Vec<Column>,
}

/// The column in the item coded before.
#[derive(Clone, Copy, Default)]
struct Column {
    differed: bool,
    /// Bit length and sign of the last residual.
    size: u32,
    sign: usize,
}

const CHANGE: i64 = 0;
const INSERT: i64 = 1;
const REMOVE: i64 = 2;

impl<C: Coder, const N: usize> PacketCoder<'_, C, N> {
    /// Codes the content of a container, given its old content. `truth` is the new one when
    /// encoding.
    pub(crate) fn content(
        &mut self,
        class: u16,
        field: u16,
        base: &Content,
        truth: Option<&Content>,
    ) -> HashedContent {
        let layout = &*self.entity_states.layout;
        let (class, at) = (usize::from(class), usize::from(field));
        let kind = &layout.schema.classes[class].fields[at].kind;
        let Some(container) = kind.container() else {
            self.invalid = true;
            return HashedContent::new(Content::Cells([].into()));
        };
        let items = &layout.classes[class].items[at];
        let site = Site {
            container,
            shapes: &items.shapes,
            field: layout.classes[class].first_page + u32::from(field),
            first: items.first_page,
        };
        // A few decisions can copy a long content, so its length counts as work.
        self.count_copied(base.len());
        if self.is_exhausted() {
            self.invalid = true;
            return HashedContent::new(Content::Cells([].into()));
        }
        let old = widen(base);
        let new = truth.map(widen);
        let script = new.as_ref().map(|new| {
            let bytes = container.item.is_empty();
            let format = ItemFormat {
                width: container.width(),
                key: container.key,
                min_run: if bytes { 4 } else { 1 },
                in_place: !bytes,
            };
            edits(&old, new, format)
        });
        let cells = self.edit(&site, &old, script.as_deref(), new.as_deref());
        let content = if container.item.is_empty() {
            Content::Bytes(cells.iter().map(|&cell| cell as u8).collect())
        } else {
            Content::Cells(cells.into())
        };
        let admitted = container.admits(&content);
        let made = HashedContent::new(content);
        let taken = |known: &Arc<Content>| *known != made.content;
        if !admitted || self.rows.content(made.cell).is_some_and(taken) {
            self.invalid = true;
        }
        self.invalid |= made.bytes() > self.content_room;
        self.content_room = self.content_room.saturating_sub(made.bytes());
        self.new_contents.push(made.clone());
        made
    }

    fn edit(
        &mut self,
        site: &Site<'_>,
        old: &[i64],
        script: Option<&[Edit]>,
        truth: Option<&[i64]>,
    ) -> Vec<i64> {
        let width = site.container.width();
        let count = old.len() / width;
        let truth = |item: usize| truth.map(|cells| &cells[item * width..][..width]);
        let mut script = script.unwrap_or_default().iter();
        let mut running = RunningContext {
            columns: alloc::vec![Column::default(); width],
            ..RunningContext::default()
        };
        let mut out = Vec::with_capacity(old.len());
        let mut at = 0;
        loop {
            let edit = script.next();
            if !self.has_more(site, &running, edit.is_some()) {
                break;
            }
            let gap = edit.map_or(0, |edit| edit.at() - at);
            let gap = self.skip(site, &running, count - at, gap);
            out.extend_from_slice(&old[at * width..(at + gap) * width]);
            at += gap;
            let kind = match edit {
                Some(Edit::Insert { .. }) => INSERT,
                Some(Edit::Remove { .. }) => REMOVE,
                _ => CHANGE,
            };
            let kind = self.kind(site, &running, at < count, kind);
            match kind {
                CHANGE => {
                    let new = match edit {
                        Some(Edit::Change { new, .. }) => truth(*new),
                        _ => None,
                    };
                    self.change(
                        site,
                        &mut running,
                        &old[at * width..][..width],
                        new,
                        &mut out,
                    );
                    at += 1;
                }
                INSERT => {
                    let new = match edit {
                        Some(Edit::Insert { new, .. }) => new.clone(),
                        _ => 0..0,
                    };
                    let room = site.container.max_len.saturating_sub(out.len() / width);
                    let run = self.run(site, INSERT, new.len(), room);
                    for step in 0..run {
                        let new = truth(new.start + step);
                        self.insert(site, &mut running, new, &mut out);
                        if self.invalid || self.is_exhausted() {
                            break;
                        }
                    }
                }
                _ => {
                    let gone = match edit {
                        Some(Edit::Remove { old }) => old.len(),
                        _ => 0,
                    };
                    at += self.run(site, REMOVE, gone, count - at);
                }
            }
            // The check covers the operations, because others may produce the same content.
            self.sum
                .add((kind as u64) << 62 | (out.len() as u64) << 31 | at as u64);
            running.before = 1 + kind as usize;
            running.operations += 1;
            if self.invalid || self.is_exhausted() {
                self.invalid = true;
                return Vec::new();
            }
        }
        out.extend_from_slice(&old[at * width..]);
        out
    }

    fn has_more(&mut self, site: &Site<'_>, running: &RunningContext, more: bool) -> bool {
        let so_far = running.operations.min(3);
        let at = running.before << 2 | so_far;
        let indices = [at, running.before, so_far, at, 0];
        self.flag(Topic::EntityFlag, site.field, &indices, more)
    }

    /// The number of unchanged items before the next operation, of `left` remaining ones.
    fn skip(
        &mut self,
        site: &Site<'_>,
        running: &RunningContext,
        left: usize,
        gap: usize,
    ) -> usize {
        if left == 0 {
            return 0;
        }
        let flag = |rank: usize| {
            let at = 16 + (running.before << 1 | rank);
            [at, 16 + rank, at, at, 16]
        };
        if self.flag(Topic::EntityFlag, site.field, &flag(0), gap == 0) {
            return 0;
        }
        if left == 1 || self.flag(Topic::EntityFlag, site.field, &flag(1), gap == left) {
            return left;
        }
        let before = running.before as u32;
        let gap = self.count(site, 5, first([before, 0, before, 0, 0]), gap);
        if gap >= left {
            self.invalid = true;
            return 0;
        }
        gap
    }

    fn kind(&mut self, site: &Site<'_>, running: &RunningContext, any: bool, kind: i64) -> i64 {
        if !any {
            return INSERT;
        }
        let before = running.before as u32;
        let contexts = [before, 0, before, 0, 0];
        self.symbol(Topic::Symbol, site.field, &contexts, 3, kind)
    }

    /// The number of items to insert or remove.
    fn run(&mut self, site: &Site<'_>, kind: i64, run: usize, max: usize) -> usize {
        let context = 8 + kind as u32;
        let run = self.count(site, 0, [context; N], run);
        if run > max {
            self.invalid = true;
            return 0;
        }
        run
    }

    /// A number of at least 1.
    fn count(&mut self, site: &Site<'_>, pivot: u32, scale: [u32; N], value: usize) -> usize {
        let number = NumberSite {
            exponent: Topic::Exponent,
            sign: None,
            mantissa: Topic::Mantissa,
            field: site.field,
            pivot,
            scale,
            signs: [0; N],
        };
        let count = usize::try_from(self.number(&number, &NONE, value as i64));
        self.require(count.is_ok());
        count.unwrap_or(1)
    }

    /// Codes a changed item: its columns after the key.
    fn change(
        &mut self,
        site: &Site<'_>,
        running: &mut RunningContext,
        old: &[i64],
        new: Option<&[i64]>,
        out: &mut Vec<i64>,
    ) {
        let key = site.container.key;
        if key == old.len() || site.shapes.is_empty() {
            self.invalid = true;
            return;
        }
        out.extend_from_slice(&old[..key]);
        let mut differed = 0usize;
        for at in key..old.len() {
            let actual = new.map_or(old[at], |new| new[at]);
            let field = site.first + at as u32;
            let column = running.columns[at];
            let certain = differed == 0 && at + 1 == old.len();
            let is_first = usize::from(running.operations == 0);
            let last = usize::from(column.differed) << 1 | is_first;
            let indices = [
                (differed & 3) << 2 | last,
                last,
                differed & 15,
                last,
                differed & 63,
            ];
            let differs =
                certain || self.flag(Topic::FieldFlag, field, &indices, actual != old[at]);
            differed = differed << 1 | usize::from(differs);
            running.columns[at].differed = differs;
            out.push(old[at]);
            if !differs {
                continue;
            }
            let value = match site.shapes[at] {
                // Contents whose cells collide are confused, so the old value may be any integer.
                Shape::Symbol { values: 2 } => 1i64.wrapping_sub(old[at]),
                Shape::Symbol { values } => {
                    let from = hash(old[at] as u64);
                    self.symbol(Topic::Symbol, field, &[from, 0, from, 0, 0], values, actual)
                }
                shape => {
                    let size = column.size;
                    let number = NumberSite {
                        exponent: Topic::Exponent,
                        sign: Some(Topic::Sign),
                        mantissa: Topic::Mantissa,
                        field,
                        pivot: size.max(3) - 1,
                        scale: first([size, 0, size, 0, 0]),
                        signs: first([column.sign, 0, column.sign, 0, 0]),
                    };
                    self.residual(&number, shape, old[at], actual, &mut running.columns[at])
                }
            };
            self.require(value != old[at]);
            if let Some(cell) = out.last_mut() {
                *cell = value;
            }
        }
    }

    /// Codes an inserted item: its columns, as differences from the item before it.
    fn insert(
        &mut self,
        site: &Site<'_>,
        running: &mut RunningContext,
        new: Option<&[i64]>,
        out: &mut Vec<i64>,
    ) {
        let Some(before) = out.len().checked_sub(site.container.width()) else {
            return self.insert_after(site, running, None, new, out);
        };
        self.insert_after(site, running, Some(before), new, out);
    }

    fn insert_after(
        &mut self,
        site: &Site<'_>,
        running: &mut RunningContext,
        before: Option<usize>,
        new: Option<&[i64]>,
        out: &mut Vec<i64>,
    ) {
        if site.shapes.is_empty() {
            let byte = new.map_or(0, |new| new[0]);
            let byte = self.byte(site, byte, out);
            out.push(byte);
            return;
        }
        let mut differed = 0usize;
        for at in 0..site.shapes.len() {
            let guess = before.map_or(0, |before| out[before + at]);
            let actual = new.map_or(guess, |new| new[at]);
            let field = site.first + at as u32;
            let column = running.columns[at];
            let last = usize::from(column.differed);
            let indices = [
                (differed & 3) << 1 | last,
                last,
                differed & 15,
                last,
                differed & 63,
            ];
            let differs = self.flag(Topic::SpawnFlag, field, &indices, actual != guess);
            differed = differed << 1 | usize::from(differs);
            running.columns[at].differed = differs;
            out.push(guess);
            if !differs {
                continue;
            }
            let value = match site.shapes[at] {
                Shape::Symbol { values: 2 } => 1i64.wrapping_sub(guess),
                Shape::Symbol { values } => {
                    let from = hash(guess as u64);
                    let contexts = [from, 0, from, 0, 0];
                    self.symbol(Topic::SpawnSymbol, field, &contexts, values, actual)
                }
                shape => {
                    let number = NumberSite {
                        exponent: Topic::SpawnExponent,
                        sign: Some(Topic::SpawnSign),
                        mantissa: Topic::SpawnMantissa,
                        field,
                        pivot: column.size.max(3) - 1,
                        scale: first([column.size, 0, 0, column.size, 0]),
                        signs: first([column.sign, 0, 0, column.sign, 0]),
                    };
                    self.residual(&number, shape, guess, actual, &mut running.columns[at])
                }
            };
            self.require(value != guess);
            if let Some(cell) = out.last_mut() {
                *cell = value;
            }
        }
    }

    fn residual(
        &mut self,
        number: &NumberSite<N>,
        shape: Shape,
        guess: i64,
        actual: i64,
        column: &mut Column,
    ) -> i64 {
        let width = Width::new(shape);
        let error = self.number(number, &NONE, width.difference(actual, guess));
        column.size = u32::from(bit_length(error));
        column.sign = if error < 0 { 2 } else { 1 };
        let value = width.wrap(guess.wrapping_add(error));
        self.require(width.difference(value, guess) == error);
        value
    }

    /// A byte, with the bytes before it as context.
    fn byte(&mut self, site: &Site<'_>, byte: i64, before: &[i64]) -> i64 {
        let back = |count: usize| {
            let at = before.len().checked_sub(count);
            at.map_or(256, |at| before[at] as u64)
        };
        let (one, two) = (hash(back(1)), hash(back(2) << 16 | back(1) | 1 << 40));
        let contexts = [one, 0, two, 0, one];
        self.symbol(Topic::SpawnSymbol, site.field, &contexts, 256, byte)
    }
}

fn widen(content: &Content) -> Cow<'_, [i64]> {
    match content {
        Content::Bytes(bytes) => bytes.iter().map(|&byte| i64::from(byte)).collect(),
        Content::Cells(cells) => Cow::Borrowed(cells),
    }
}
