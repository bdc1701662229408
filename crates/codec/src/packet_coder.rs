//! Codes the decisions of one packet: joins the range coder, the context model and the log.
//!
//! Every function serves both directions. When encoding, values go in and are returned unchanged;
//! when decoding, what goes in is ignored and what was read is returned. So encoder and decoder
//! cannot disagree.

use alloc::{sync::Arc, vec::Vec};

use prescient_schema::Content;

use crate::{
    check::Checksum,
    kept::HashedContent,
    ledger::{Account, Ledger},
    log::Log,
    model::{
        cells::LINE,
        context_model::{self, ContextModel, Contexts},
        logistic,
        repeats::{NONE, Repeats},
    },
    range::{RangeDecoder, RangeEncoder},
    shared_model::{EntityStates, Rows},
};

/// A range encoder or decoder.
pub(crate) trait Coder {
    /// Whether costs may have to be counted.
    const COUNTS_COST: bool;
    fn bit(&mut self, bit: bool, probability: u16) -> bool;
    fn raw(&mut self, value: u32, count: u32) -> u32;
}

impl Coder for RangeEncoder {
    const COUNTS_COST: bool = true;

    #[inline]
    fn bit(&mut self, bit: bool, probability: u16) -> bool {
        RangeEncoder::bit(self, bit, probability);
        bit
    }

    #[inline]
    fn raw(&mut self, value: u32, count: u32) -> u32 {
        RangeEncoder::raw(self, value, count);
        value
    }
}

impl Coder for RangeDecoder<'_> {
    const COUNTS_COST: bool = false;

    #[inline]
    fn bit(&mut self, _: bool, probability: u16) -> bool {
        RangeDecoder::bit(self, probability)
    }

    #[inline]
    fn raw(&mut self, _: u32, count: u32) -> u32 {
        RangeDecoder::raw(self, count)
    }
}

/// The state of a packet while it is coded.
pub(crate) struct PacketCoder<'a, C, const N: usize> {
    pub coder: C,
    pub context_model: &'a mut ContextModel,
    pub entity_states: &'a EntityStates,
    /// The source of contents.
    pub rows: &'a dyn Rows,
    pub log: &'a mut Log,
    pub ledger: Option<&'a mut Ledger>,
    pub account: Account,
    pub sum: Checksum,
    /// Whether costs are counted.
    pub counting: bool,
    /// The cost so far, in 1/65536 bit.
    pub cost: u64,
    /// The most decisions that a packet may contain.
    pub max_decisions: usize,
    /// Work besides decisions, in the same unit.
    pub copy_work: usize,
    /// Contents that were coded in this packet.
    pub new_contents: Vec<HashedContent>,
    /// Bytes that contents of this packet may still take; 0 once one did not fit.
    pub content_room: usize,
    /// Whether the packet contains what no encoder writes, or a row is missing.
    pub invalid: bool,
}

/// What a decision is about; part of the hash of its contexts.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Topic {
    EntityFlag,
    FieldFlag,
    Exponent,
    Sign,
    Mantissa,
    Symbol,
    List,
    ListMantissa,
    SpawnSymbol,
    Class,
    Level,
    Repeat,
    RareFields,
    SameResidual,
    Quiet,
    QuietMantissa,
    /// From here on about spawns. Fields start without experience there, so one of the contexts is
    /// shared by all of them.
    SpawnFlag = context_model::FIRST_SHARED_SET as u32 / SETS as u32,
    SpawnExponent,
    SpawnSign,
    SpawnMantissa,
    SpawnTail,
}

/// The page of decisions that belong to no field.
const COMMON: u32 = 0;

/// The most contexts of a decision; a profile uses the first `N` of them.
pub(crate) const MAX_CONTEXTS: usize = 5;

/// The lines of the contexts of related decisions.
#[derive(Clone, Copy)]
pub(crate) struct ContextLines<const N: usize> {
    page: u16,
    lines: [u16; N],
    /// The first of their sets of weights.
    set: u8,
}

impl<const N: usize> ContextLines<N> {
    /// A decision that uses the same cell of every line.
    #[inline]
    fn at(&self, index: usize, set: usize) -> Contexts<N> {
        Contexts {
            page: self.page,
            set: self.set + set as u8,
            cells: self.lines.map(|line| line | (index % LINE) as u16),
        }
    }
}

/// The lowest bits of a number.
#[derive(Clone, Copy, Default)]
struct Tail {
    bits: u32,
    value: u64,
}

/// The contexts of a number.
#[derive(Clone, Copy)]
pub(crate) struct NumberSite<const N: usize> {
    pub exponent: Topic,
    pub sign: Option<Topic>,
    pub mantissa: Topic,
    pub field: u32,
    /// The most likely exponent, with which the search starts.
    pub pivot: u32,
    pub scale: [u32; N],
    pub signs: [usize; N],
}

/// The first `N` contexts.
#[inline(always)]
pub(crate) fn first<T: Copy, const N: usize>(contexts: [T; MAX_CONTEXTS]) -> [T; N] {
    core::array::from_fn(|i| contexts[i])
}

impl<C: Coder, const N: usize> PacketCoder<'_, C, N> {
    /// Bits below the leading one that are modelled, if there are no more than these; otherwise one
    /// less.
    const SPELLED_BITS: u32 = if N > 2 { 4 } else { 2 };

    /// Codes, learns and logs one decision.
    #[inline(never)]
    pub(crate) fn decide(&mut self, contexts: &Contexts<N>, bit: bool) -> bool {
        let forecast = self.context_model.forecast(contexts);
        let probability = forecast.probability;
        let bit = self.coder.bit(bit, probability);
        self.log.decisions.push(contexts, forecast, bit);
        self.context_model.learn(contexts, forecast, bit);
        if C::COUNTS_COST && self.counting {
            self.add_decision_cost(bit, probability);
        }
        bit
    }

    #[inline]
    fn add_decision_cost(&mut self, bit: bool, probability: u16) {
        let paid = if bit {
            probability
        } else {
            (65536 - u32::from(probability)) as u16
        };
        self.add_cost(u64::from(logistic::cost(paid)));
    }

    /// Refuses the packet unless `holds`. A packet must not code a value in another way than an
    /// encoder would, because other decisions would teach the two ends different things.
    #[inline]
    pub(crate) fn require(&mut self, holds: bool) {
        self.invalid |= !holds;
    }

    /// Decisions so far, and other work in the same unit.
    pub(crate) fn work(&self) -> usize {
        self.log.decisions.count() + self.copy_work
    }

    /// Whether the packet contains more work than is allowed.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.work() > self.max_decisions
    }

    /// Counts the copying of integers as work.
    pub(crate) fn count_copied(&mut self, cells: usize) {
        self.copy_work += cells / CELLS_PER_DECISION;
    }

    /// Resolves a container's cell (a content hash) to its content: in the archive, in a kept row,
    /// or in this packet.
    pub(crate) fn find(&self, cell: i64, kept: &[HashedContent]) -> Option<Arc<Content>> {
        let is_it = |hashed: &&HashedContent| hashed.cell == cell;
        let kept = || kept.iter().find(is_it);
        let new_contents = || self.new_contents.iter().rev().find(is_it);
        let elsewhere = || kept().or_else(new_contents).map(|hashed| &hashed.content);
        self.rows.content(cell).or_else(elsewhere).cloned()
    }

    #[inline]
    fn add_cost(&mut self, cost: u64) {
        if !self.counting {
            return;
        }
        self.cost += cost;
        if self.ledger.is_some() {
            self.add_to_ledger(cost);
        }
    }

    #[cold]
    fn add_to_ledger(&mut self, cost: u64) {
        if let Some(ledger) = &mut self.ledger {
            ledger.add(self.account, cost);
        }
    }

    /// The lines of a topic for these contexts.
    #[inline(always)]
    pub(crate) fn context_lines(
        &mut self,
        topic: Topic,
        field: u32,
        contexts: &[u32; N],
    ) -> ContextLines<N> {
        ContextLines {
            page: field as u16,
            lines: core::array::from_fn(|i| line(topic, i, contexts[i])),
            set: (topic as usize * SETS) as u8,
        }
    }

    /// A flag; the index of each context selects a line and a cell in it.
    #[inline(always)]
    pub(crate) fn flag(
        &mut self,
        topic: Topic,
        field: u32,
        indices: &[usize; MAX_CONTEXTS],
        bit: bool,
    ) -> bool {
        self.flag_in(topic, field, &first(*indices), bit)
    }

    /// As [`flag`](Self::flag), with the contexts of the profile only.
    #[inline(always)]
    pub(crate) fn flag_in(
        &mut self,
        topic: Topic,
        field: u32,
        indices: &[usize; N],
        bit: bool,
    ) -> bool {
        let cell = |i: usize| {
            let context = (indices[i] / LINE) as u32;
            line(topic, i, context) | (indices[i] % LINE) as u16
        };
        let contexts = Contexts {
            page: field as u16,
            set: (topic as usize * SETS) as u8,
            cells: core::array::from_fn(cell),
        };
        self.decide(&contexts, bit)
    }

    /// A number other than zero.
    pub(crate) fn number(&mut self, site: &NumberSite<N>, repeats: &Repeats, value: i64) -> i64 {
        self.number_but(site, repeats, 0, value)
    }

    /// A number that is neither zero nor `excluded`, which is one of -1, 0 and 1.
    pub(crate) fn number_but(
        &mut self,
        site: &NumberSite<N>,
        repeats: &Repeats,
        excluded: i64,
        value: i64,
    ) -> i64 {
        let magnitude = value.unsigned_abs().max(1);
        let exponent = 63 - magnitude.leading_zeros();
        let exponent = self.exponent(site, exponent);
        let negative = match site.sign {
            _ if exponent == 0 && excluded != 0 => excluded > 0,
            Some(topic) => self.flag_in(topic, site.field, &site.signs, value < 0),
            None => false,
        };
        if exponent >= SPELLED
            && let Some(known) = self.repeat(site, repeats, exponent, negative, value)
        {
            return known;
        }
        let top = 1u64 << exponent;
        let rest = self.mantissa(site, exponent, negative, magnitude & (top - 1));
        let magnitude = (top | rest) as i64;
        let number = if negative {
            magnitude.wrapping_neg()
        } else {
            magnitude
        };
        let spelled_out =
            exponent >= SPELLED && repeats.alike(exponent, negative).any(|r| r == number);
        self.require(!spelled_out);
        number
    }

    /// A number below 64: first whether it is at least the pivot, then step by step up or down from
    /// there.
    fn exponent(&mut self, site: &NumberSite<N>, exponent: u32) -> u32 {
        let mut at = site.pivot.min(MAX_EXPONENT);
        if at == 0 || self.reaches(site, 0, at, exponent >= at) {
            while at < MAX_EXPONENT && self.reaches(site, 1, at + 1, exponent > at) {
                at += 1;
            }
            at
        } else {
            at -= 1;
            while at > 0 && !self.reaches(site, 2, at, exponent >= at) {
                at -= 1;
            }
            at
        }
    }

    /// Whether an exponent is at least `min`; `way` is the direction of the search.
    #[inline]
    fn reaches(&mut self, site: &NumberSite<N>, way: u32, min: u32, bit: bool) -> bool {
        let context = (way << 2) | (min / LINE as u32);
        let contexts = site.scale.map(|scale| scale << 4 | context);
        let context_lines = self.context_lines(site.exponent, site.field, &contexts);
        self.decide(&context_lines.at(min as usize, way as usize), bit)
    }

    /// Whether a large residual is one of the recurring ones.
    fn repeat(
        &mut self,
        site: &NumberSite<N>,
        repeats: &Repeats,
        exponent: u32,
        negative: bool,
        value: i64,
    ) -> Option<i64> {
        for (rank, known) in repeats.alike(exponent, negative).enumerate() {
            let index = rank << 3 | (exponent as usize & 7);
            let indices = [rank, index, rank, index, rank];
            if self.flag(Topic::Repeat, site.field, &indices, known == value) {
                return Some(known);
            }
        }
        None
    }

    /// The bits below the leading one: the upper ones modelled, the others as equally likely.
    fn mantissa(&mut self, site: &NumberSite<N>, exponent: u32, negative: bool, value: u64) -> u64 {
        if exponent == 0 {
            return 0;
        }
        let modelled = if exponent <= Self::SPELLED_BITS {
            exponent
        } else {
            Self::SPELLED_BITS - 1
        };
        let scale = |i: usize| site.scale.get(i).copied().unwrap_or(0);
        let contexts = first([
            exponent,
            exponent << 1 | u32::from(negative),
            exponent << 8 | scale(0) >> 4,
            exponent << 16 | scale(2),
            exponent,
        ]);
        let groups = self.context_lines(site.mantissa, site.field, &contexts);
        let mut below = exponent - modelled;
        let mut result = self.tree(&groups, modelled, value >> below);
        let tail = match site.mantissa {
            Topic::SpawnMantissa => self.tail(site, below, value),
            _ => Tail::default(),
        };
        below -= tail.bits;
        while below > 0 {
            let chunk = below.min(16);
            below -= chunk;
            let piece = (value >> (below + tail.bits)) as u32 & ((1 << chunk) - 1);
            let piece = self.coder.raw(piece, chunk);
            self.add_cost(u64::from(chunk) << 16);
            result = result << chunk | u64::from(piece);
        }
        result << tail.bits | tail.value
    }

    /// The lowest one among `below` bits and the zeros under it: spawns are often placed on a grid.
    fn tail(&mut self, site: &NumberSite<N>, below: u32, value: u64) -> Tail {
        for bit in 0..below {
            let at = bit as usize;
            let by_size = (site.scale[0] as usize) << 6 | at;
            let indices = [by_size, at, at, by_size, at];
            if self.flag(
                Topic::SpawnTail,
                site.field,
                &indices,
                value >> bit & 1 == 1,
            ) {
                return Tail {
                    bits: bit + 1,
                    value: 1 << bit,
                };
            }
        }
        Tail {
            bits: below,
            value: 0,
        }
    }

    /// A value of `bits` bits (at most 4), from the highest to the lowest.
    fn tree(&mut self, groups: &ContextLines<N>, bits: u32, value: u64) -> u64 {
        let mut node = 1u64;
        for depth in 0..bits {
            let bit = value >> (bits - 1 - depth) & 1 == 1;
            let bit = self.decide(&groups.at(node as usize, depth as usize), bit);
            node = node << 1 | u64::from(bit);
        }
        node - (1 << bits)
    }

    /// A symbol below `values`.
    pub(crate) fn symbol(
        &mut self,
        topic: Topic,
        field: u32,
        contexts: &[u32; MAX_CONTEXTS],
        values: u32,
        value: i64,
    ) -> i64 {
        let width = 32 - values.saturating_sub(1).leading_zeros();
        let mut left = width;
        let mut result = 0u64;
        while left > 0 {
            let digit = (left - 1) % 4 + 1;
            left -= digit;
            // The contexts of a lower digit include the higher digits.
            let path = hash(result << 8 | u64::from(left));
            let keys = contexts.map(|c| {
                if left + digit == width {
                    c
                } else {
                    hash_pair(c, path)
                }
            });
            let groups = self.context_lines(topic, field, &first(keys));
            let piece = value as u64 >> left & ((1 << digit) - 1);
            result = result << digit | self.tree(&groups, digit, piece);
        }
        if result >= u64::from(values.max(1)) {
            self.invalid = true;
            return 0;
        }
        result as i64
    }

    /// Whether a list has another item.
    pub(crate) fn more(&mut self, list: List, more: bool) -> bool {
        self.flag(Topic::List, COMMON, &[list as usize; MAX_CONTEXTS], more)
    }

    /// A distance of at least 1 in a list.
    pub(crate) fn gap(&mut self, list: List, distance: u32) -> u32 {
        let site = NumberSite {
            exponent: Topic::List,
            sign: None,
            mantissa: Topic::ListMantissa,
            field: COMMON,
            pivot: 0,
            scale: [list as u32 + 1; N],
            signs: [0; N],
        };
        self.distance(&site, distance)
    }

    /// A distance of at least 1.
    pub(crate) fn distance(&mut self, site: &NumberSite<N>, distance: u32) -> u32 {
        match u32::try_from(self.number(site, &NONE, i64::from(distance))) {
            Ok(distance) => distance,
            Err(_) => {
                self.invalid = true;
                1
            }
        }
    }
}

/// The lists of a packet.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum List {
    Despawns,
    Wakes,
    Covered,
    Spawns,
}

/// Sets of weights per topic.
const SETS: usize = 8;

const MAX_EXPONENT: u32 = 63;

/// Integers whose copying counts as one decision.
const CELLS_PER_DECISION: usize = 16;

/// Residuals below 2^5 are modelled to the last bit and do not need the list of recurring ones.
const SPELLED: u32 = 5;

/// The line of the `nth` context of a topic.
#[inline(always)]
fn line(topic: Topic, nth: usize, context: u32) -> u16 {
    context_model::line((topic as u64) << 40 | (nth as u64) << 36 | u64::from(context))
}

/// Hashes a value to a context.
#[inline]
pub(crate) fn hash(value: u64) -> u32 {
    (value.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u32
}

pub(crate) fn hash_pair(a: u32, b: u32) -> u32 {
    hash(u64::from(a) << 16 | u64::from(b) | 1 << 40)
}
