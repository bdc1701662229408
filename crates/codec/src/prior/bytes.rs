//! The bytes of a prior file; `docs/wire/schema.md` describes them.

use alloc::{string::String, vec::Vec};
use core::fmt;

use prescient_schema::Fingerprint;

use super::{ClassPrior, FieldPrior, PageNumber, Prior};
use crate::{
    config::Profile,
    model::{
        cells::FRESH,
        context_model::{GROWTH, MAX_INPUTS, WEIGHT_LIMIT, Weights, fresh_weights},
        repeats::{REPEATS, Repeats},
        start::{TrainedPage, is_page_size},
    },
    numbers,
    predict::Costs,
};

/// Why bytes are not a valid prior.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PriorError {
    /// They do not start like a prior.
    NoPrior,
    /// They have another version of the format. Train a new prior.
    Version(u8),
    /// They were cut off or damaged.
    Damaged,
    /// They contain invalid values, or more than a prior may.
    Malformed,
}

impl fmt::Display for PriorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPrior => f.write_str("this is not a prior"),
            Self::Version(version) => write!(
                f,
                "the prior has version {version} of the format, but this program reads {VERSION}"
            ),
            Self::Damaged => f.write_str("the prior is cut off or damaged"),
            Self::Malformed => f.write_str("the prior contains invalid values"),
        }
    }
}

impl core::error::Error for PriorError {}

impl Prior {
    /// The bytes of a prior file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer(MAGIC.to_vec());
        out.0.extend([VERSION, self.profile as u8]);
        out.weights(&self.weights, self.profile.contexts());
        out.number(self.pages.len() as u64);
        for page in self.pages.iter() {
            out.page(page);
        }
        out.number(u64::from(self.common));
        out.number(self.classes.len() as u64);
        for class in &self.classes {
            out.class(class);
        }
        let seal = Fingerprint::of_bytes(&out.0);
        out.0.extend(seal.to_be_bytes());
        out.0
    }

    /// Reads and checks what [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PriorError> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(PriorError::NoPrior)?;
        let version = *rest.first().ok_or(PriorError::Damaged)?;
        if version != VERSION {
            return Err(PriorError::Version(version));
        }
        let (body, seal) = bytes.split_last_chunk().ok_or(PriorError::Damaged)?;
        let fingerprint = Fingerprint::from_be_bytes(*seal);
        if Fingerprint::of_bytes(body) != fingerprint {
            return Err(PriorError::Damaged);
        }
        let body = body.get(MAGIC.len() + 1..).ok_or(PriorError::Damaged)?;
        let prior = Reader::read(body, fingerprint);
        // Every prior has exactly one encoding, so that fingerprints of equal priors are equal.
        let canonical = prior.filter(|prior| prior.to_bytes() == bytes);
        canonical.ok_or(PriorError::Malformed)
    }

    /// Computes the fingerprint.
    pub(super) fn sealed(self) -> Self {
        let bytes = self.to_bytes();
        Self {
            fingerprint: Fingerprint::of_bytes(&bytes[..bytes.len() - size_of::<u128>()]),
            ..self
        }
    }
}

struct Writer(Vec<u8>);

struct Reader<'a> {
    bytes: &'a [u8],
    pages: usize,
    cells: usize,
}

impl Reader<'_> {
    fn read(bytes: &[u8], fingerprint: Fingerprint) -> Option<Prior> {
        let mut from = Reader {
            bytes,
            pages: 0,
            cells: 0,
        };
        let profile = match from.byte()? {
            0 => Profile::Default,
            1 => Profile::Best,
            _ => return None,
        };
        let weights = from.weights(profile.contexts())?;
        let pages: Vec<TrainedPage> = from.list(Reader::page)?;
        from.pages = pages.len();
        let prior = Prior {
            profile,
            weights: weights.into(),
            pages: pages.into(),
            common: from.page_number()?,
            classes: from.list(Reader::class)?,
            fingerprint,
        };
        from.bytes.is_empty().then_some(prior)
    }
}

impl Writer {
    fn weights(&mut self, weights: &[Weights], inputs: usize) {
        for (set, fresh) in weights.iter().zip(fresh_weights(inputs)) {
            for (weight, fresh) in set.iter().zip(fresh).take(inputs) {
                self.signed(i64::from(weight - fresh));
            }
        }
    }
}

impl Reader<'_> {
    fn weights(&mut self, inputs: usize) -> Option<Vec<Weights>> {
        let mut weights = fresh_weights(inputs);
        for weight in weights
            .iter_mut()
            .flat_map(|set| &mut set[..inputs.min(MAX_INPUTS)])
        {
            let moved = i64::from(*weight).checked_add(self.signed()?)?;
            *weight = i32::try_from(moved).ok()?;
            if !(-WEIGHT_LIMIT..=WEIGHT_LIMIT).contains(weight) {
                return None;
            }
        }
        Some(weights)
    }
}

impl Writer {
    /// A page that grew repeats itself: runs of cells that equal the cell a quarter of the page
    /// before are only counted.
    fn page(&mut self, page: &TrainedPage) {
        let cells = page.cells();
        self.number(u64::from(cells.len().ilog2()));
        self.number(u64::from(page.updates()));
        let quarter = cells.len() / GROWTH as usize;
        let repeats =
            |at: usize| cells[at] == at.checked_sub(quarter).map_or(FRESH, |at| cells[at]);
        let mut at = 0;
        while at < cells.len() {
            let run = (at..cells.len()).take_while(|&at| repeats(at)).count();
            at += run;
            let new = (at..cells.len()).take_while(|&at| !repeats(at)).count();
            self.number(run as u64);
            self.number(new as u64);
            for cell in &cells[at..at + new] {
                self.0.extend(TrainedPage::pack(*cell).to_le_bytes());
            }
            at += new;
        }
    }
}

impl Reader<'_> {
    fn page(&mut self) -> Option<TrainedPage> {
        let size = 1usize.checked_shl(self.small()?)?;
        let updates = self.small()?;
        self.cells = self.cells.checked_add(size)?;
        if !is_page_size(size) || self.cells > MAX_CELLS {
            return None;
        }
        let mut cells = Vec::with_capacity(size);
        let quarter = size / GROWTH as usize;
        while cells.len() < size {
            let run: usize = self.small()?;
            let new: usize = self.small()?;
            if run.max(new) > size || cells.len() + run + new > size || run + new == 0 {
                return None;
            }
            for _ in 0..run {
                let before = cells.len().checked_sub(quarter);
                cells.push(before.map_or(FRESH, |at| cells[at]));
            }
            for _ in 0..new {
                cells.push(TrainedPage::unpack(u16::from_le_bytes(*self.take()?)));
            }
        }
        TrainedPage::new(cells, updates)
    }
}

impl Writer {
    fn class(&mut self, class: &ClassPrior) {
        self.name(&class.name);
        self.number(u64::from(class.page));
        self.number(u64::from(class.surprises));
        self.0.push(u8::from(class.has_spawn));
        self.number(class.fields.len() as u64);
        for field in &class.fields {
            self.field(field);
        }
    }
}

impl Reader<'_> {
    fn class(&mut self) -> Option<ClassPrior> {
        Some(ClassPrior {
            name: self.name()?,
            page: self.page_number()?,
            surprises: self.small()?,
            has_spawn: match self.byte()? {
                0 => false,
                1 => true,
                _ => return None,
            },
            fields: self.list(Reader::field)?,
        })
    }
}

impl Writer {
    fn field(&mut self, field: &FieldPrior) {
        self.name(&field.name);
        self.0.extend(field.kind.to_le_bytes());
        self.number(u64::from(field.page));
        self.number(field.columns.len() as u64);
        for &page in &field.columns {
            self.number(u64::from(page));
        }
        self.0.extend(field.costs.0.map(|cost| cost as u8));
        for (&value, &count) in field.repeats.values.iter().zip(&field.repeats.counts) {
            self.signed(value);
            self.0.push(count);
        }
        self.number(u64::from(field.surprises));
        self.signed(field.spawn_value);
    }
}

impl Reader<'_> {
    fn field(&mut self) -> Option<FieldPrior> {
        Some(FieldPrior {
            name: self.name()?,
            kind: u64::from_le_bytes(*self.take()?),
            page: self.page_number()?,
            columns: self.list(Reader::page_number)?,
            costs: Costs(self.take()?.map(|cost: u8| cost as i8)),
            repeats: self.repeats()?,
            surprises: self.small()?,
            spawn_value: self.signed()?,
        })
    }

    fn repeats(&mut self) -> Option<Repeats> {
        let mut repeats = Repeats::default();
        for at in 0..REPEATS {
            repeats.values[at] = self.signed()?;
            repeats.counts[at] = self.byte()?;
        }
        Some(repeats)
    }
}

impl Writer {
    fn number(&mut self, value: u64) {
        numbers::put(&mut self.0, value);
    }

    fn signed(&mut self, value: i64) {
        numbers::put_signed(&mut self.0, value);
    }

    fn name(&mut self, name: &str) {
        numbers::put_bytes(&mut self.0, name.as_bytes());
    }
}

impl<'a> Reader<'a> {
    fn number(&mut self) -> Option<u64> {
        numbers::take(&mut self.bytes)
    }

    fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        T::try_from(self.number()?).ok()
    }

    fn signed(&mut self) -> Option<i64> {
        numbers::take_signed(&mut self.bytes)
    }

    fn name(&mut self) -> Option<String> {
        let name = numbers::take_bytes(&mut self.bytes)?;
        Some(core::str::from_utf8(name).ok()?.into())
    }

    fn page_number(&mut self) -> Option<PageNumber> {
        let number: PageNumber = self.small()?;
        (number as usize <= self.pages).then_some(number)
    }

    /// Allocates as it reads: the length is not to be trusted.
    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length: usize = self.small()?;
        let mut items = Vec::new();
        for _ in 0..length {
            items.push(read(self)?);
        }
        Some(items)
    }

    fn byte(&mut self) -> Option<u8> {
        let [byte] = *self.take()?;
        Some(byte)
    }

    fn take<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(taken)
    }
}

/// First bytes of every prior file.
const MAGIC: [u8; 8] = *b"prescnt\x1a";
/// Changes with the meaning of any later byte, and with the contexts of decisions.
const VERSION: u8 = 2;
/// Limit on the cells of all pages: 64 MiB.
const MAX_CELLS: usize = 1 << 24;
