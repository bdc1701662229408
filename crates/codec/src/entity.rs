//! Codes the values of one entity as differences from their prediction.

use alloc::{sync::Arc, vec::Vec};

use prescient_schema::{Content, Shape};

use crate::{
    kept::{HashedContent, KeptRow},
    ledger::{Account, Cause},
    log::{RelationSample, Surprise},
    model::repeats::{NONE, Repeats},
    packet_coder::{Coder, NumberSite, PacketCoder, Topic, first, hash, hash_pair},
    past::Past,
    predict::{CostSample, Dissent, Predictor, bit_length, relation::Relation},
    shared_model::{FieldState, Head, relations},
};

/// The entity being coded.
#[derive(Clone, Copy)]
pub(crate) struct CodedEntity<'a> {
    pub id: u32,
    pub class: u16,
    /// Its precision before the packet.
    pub level: u8,
    /// Whether it was at rest.
    pub woken: bool,
    /// Folds since its last surprise.
    pub behind: u32,
    pub states: &'a [FieldState],
}

/// What was coded so far of the entity, as context for its next fields.
#[derive(Clone, Copy, Default)]
struct RunningContext {
    /// Ticks from the newest known row to the packet's tick, at most 15.
    ahead: u32,
    flags: usize,
    surprises: usize,
    /// Bit length of the last surprise.
    exponent: u32,
    /// The largest bit length so far.
    largest: u32,
    /// 0 without a surprise, 1 if it was positive, 2 if negative.
    sign: usize,
}

/// The prediction of a field.
struct Expected<'a> {
    field: u16,
    state: &'a FieldState,
    predictor: Predictor,
    guess: i64,
}

impl<C: Coder, const N: usize> PacketCoder<'_, C, N> {
    /// Codes whether an active entity differs from its prediction.
    pub(crate) fn entity_flag(&mut self, head: &Head, neighbour: bool, differs: bool) -> bool {
        let history = self.entity_states.surprise_history(head);
        let bucket = usize::from(AGES[history.trailing_zeros() as usize]);
        let recent = (history & 0xFF).count_ones().min(3) as usize;
        let indices = [
            bucket * 4 + recent,
            (history as usize & 31) << 1 | usize::from(neighbour),
            history as usize & 63,
            bucket << 1 | usize::from(neighbour),
            history.count_ones() as usize,
        ];
        if self.counting {
            self.account = Account {
                class: Some(head.class),
                field: None,
                cause: Cause::Flag,
            };
        }
        let key = self.class_key(head.class);
        self.flag(Topic::EntityFlag, key, &indices, differs)
    }

    /// Codes the fields of an entity that differs from its prediction or was at rest. When
    /// encoding, `truth` has the values at the precision `level`, and `row` the prediction unless
    /// the entity was at rest. `row` gets the values in both directions.
    pub(crate) fn fields(
        &mut self,
        entity: &CodedEntity<'_>,
        past: &Past<'_>,
        level: u8,
        truth: Option<&[i64]>,
        row: &mut Vec<i64>,
    ) {
        let CodedEntity { woken, states, .. } = *entity;
        let changes_level = self.level(entity, level);
        if truth.is_none() || woken {
            row.clear();
            row.extend_from_slice(past.newest());
        }
        let mut running = RunningContext {
            ahead: past.plan.ahead.min(15),
            ..RunningContext::default()
        };
        let class = &self.entity_states.classes[usize::from(entity.class)];
        let (common, rare) = class.ranking.split();
        // At least one field differs; if no other did, the last one does and needs no flag.
        let mut due = !woken && !changes_level;
        let first_surprise = self.log.surprises.len();
        self.some_fields(
            entity,
            past,
            common,
            due && rare.is_empty(),
            &mut running,
            truth,
            row,
        );
        if !rare.is_empty() {
            due &= running.surprises == 0;
            let differs = |&field: &u16| {
                let at = usize::from(field);
                truth.is_some_and(|truth| truth[at] != row[at])
            };
            let differs = rare.iter().any(differs);
            if due || self.rare_flag(entity.class, &running, woken, differs) {
                self.some_fields(entity, past, rare, true, &mut running, truth, row);
            } else if truth.is_none() {
                for &field in rare {
                    let at = usize::from(field);
                    let state = states.get(at).unwrap_or(&FieldState::NEW);
                    let predictor = past.choose(at, state);
                    if predictor != Predictor::Hold {
                        row[at] = past.guess(predictor, at, row);
                    }
                }
            }
        }
        if row != past.newest() {
            self.log.moved.push(entity.id);
        }
        if !woken {
            self.sample_relations(entity, past, first_surprise, row);
        }
    }

    /// Notes what relations between fields can be learned from, now that the whole row is known.
    fn sample_relations(
        &mut self,
        entity: &CodedEntity<'_>,
        past: &Past<'_>,
        first_surprise: usize,
        row: &[i64],
    ) {
        let class = entity.class;
        let relations = &self.entity_states.classes[usize::from(class)].relations;
        if !relations.wants_samples() || !self.log.relations.has_room(class) {
            return;
        }
        let ahead = past.plan.ahead;
        let values = |field: u16| [past.rows[0][usize::from(field)], row[usize::from(field)]];
        for (field, relation) in (0..).zip(relations.adopted()) {
            let Some(Relation { source, .. }) = *relation else {
                continue;
            };
            let at = usize::from(field);
            let state = entity.states.get(at).unwrap_or(&FieldState::NEW);
            let own = past.guess(past.choose_own(at, state), at, row);
            let sample = RelationSample {
                class,
                field,
                source: Some(source),
                own: bit_length(past.class.widths[at].difference(row[at], own)),
                ahead,
                len: 0,
            };
            let values = values(field).into_iter().chain(values(source));
            self.log.relations.push(sample, values);
        }
        let Some((focus, field)) = relations.focus(past.class) else {
            return;
        };
        let surprises = &self.log.surprises[first_surprise..];
        let found = surprises.iter().find(|surprise| surprise.field == field);
        if let Some(surprise) = found
            && surprise.last & 0x7F >= FOCUS_BITS
        {
            let sample = RelationSample {
                class,
                field,
                source: None,
                own: surprise.last & 0x7F,
                ahead,
                len: 0,
            };
            let sources = relations::sources(past.class, focus);
            let fields = core::iter::once(field).chain(sources.iter().copied());
            self.log.relations.push(sample, fields.flat_map(values));
        }
    }

    /// Codes some fields of an entity. If `due`, at least one of them differs.
    #[inline(always)]
    #[expect(clippy::too_many_arguments)]
    fn some_fields(
        &mut self,
        entity: &CodedEntity<'_>,
        past: &Past<'_>,
        fields: &[u16],
        due: bool,
        running: &mut RunningContext,
        truth: Option<&[i64]>,
        row: &mut [i64],
    ) {
        let before = running.surprises;
        for (step, &field) in fields.iter().enumerate() {
            let at = usize::from(field);
            let state = entity.states.get(at).unwrap_or(&FieldState::NEW);
            let predictor = past.choose(at, state);
            let (guess, actual) = match truth {
                Some(truth) => (row[at], truth[at]),
                None => {
                    if predictor != Predictor::Hold {
                        row[at] = past.guess(predictor, at, row);
                    }
                    (row[at], row[at])
                }
            };
            if self.counting {
                self.account = Account {
                    class: Some(entity.class),
                    field: Some(field),
                    cause: Cause::Flag,
                };
            }
            let key = past.class.first_page + u32::from(field);
            let certain = due && step + 1 == fields.len() && running.surprises == before;
            let differs =
                certain || self.field_flag(key, state, entity, running, predictor, actual != guess);
            running.flags = running.flags << 1 | usize::from(differs);
            if differs {
                self.account.cause = Cause::Surprise;
                let surprise = Expected {
                    field,
                    state,
                    predictor,
                    guess,
                };
                row[at] = self.surprise(entity, past, &surprise, running, truth, row);
            }
        }
    }

    /// Codes a field that differs from its prediction.
    #[inline]
    fn surprise(
        &mut self,
        entity: &CodedEntity<'_>,
        past: &Past<'_>,
        expected: &Expected<'_>,
        running: &mut RunningContext,
        truth: Option<&[i64]>,
        row: &[i64],
    ) -> i64 {
        let Expected { field, guess, .. } = *expected;
        let at = usize::from(field);
        let key = past.class.first_page + u32::from(field);
        let actual = truth.map_or(guess, |truth| truth[at]);
        let repeats = &self.entity_states.classes[usize::from(entity.class)].fields[at].repeats;
        let mut surprise = Surprise {
            id: entity.id,
            field,
            last: 0,
            residual: 0,
            costs: None,
        };
        let value = match past.class.shapes[at] {
            Shape::Content => self.container(entity.class, field, past.kept, guess, truth),
            Shape::Reference => {
                let value = self.refer(key, repeats, guess, actual);
                // References recur by value and not by difference.
                surprise.residual = value;
                value
            }
            Shape::Symbol { values } => {
                let value = self.changed_symbol(key, values, running, guess, actual);
                if past.class.has_contract {
                    let guesses = past.guesses(at, row);
                    let width = past.class.widths[at];
                    surprise.costs = Some(CostSample::new(value, &guesses, width));
                }
                value
            }
            Shape::Number { .. } => {
                let width = past.class.widths[at];
                let error = width.difference(actual, guess);
                let likely = match expected.state.last {
                    1 => 1,
                    0x81 => -1,
                    _ => 0,
                };
                // The disagreement of the predictors says little about an error of one.
                let error = if likely != 0
                    && self.same_residual(key, expected, running, error == likely)
                {
                    likely
                } else {
                    let guesses = past.guesses(at, row);
                    let dissent = guesses.dissent(guess, width);
                    let error = self
                        .field_residual(key, expected, running, dissent, repeats, likely, error);
                    let value = guess.wrapping_add(error);
                    surprise.costs = Some(CostSample::new(value, &guesses, width));
                    error
                };
                running.exponent = u32::from(bit_length(error));
                running.largest = running.largest.max(running.exponent);
                running.sign = if error < 0 { 2 } else { 1 };
                surprise.residual = error;
                surprise.last = running.exponent as u8 | if error < 0 { 0x80 } else { 0 };
                let value = width.wrap(guess.wrapping_add(error));
                self.require(width.difference(value, guess) == error);
                value
            }
        };
        self.require(value != guess);
        self.log.surprises.push(surprise);
        self.sum.add(u64::from(entity.id) << 16 | u64::from(field));
        self.sum.add(value as u64);
        running.surprises += 1;
        value
    }

    /// Codes whether the precision of an entity changes, and the new one.
    fn level(&mut self, entity: &CodedEntity<'_>, level: u8) -> bool {
        if !self.entity_states.layout.classes[usize::from(entity.class)].has_levels {
            return false;
        }
        self.account = Account {
            class: Some(entity.class),
            field: None,
            cause: Cause::Flag,
        };
        let key = self.class_key(entity.class);
        let at = usize::from(entity.level & 3) << 1 | usize::from(entity.woken);
        let differs = self.flag(Topic::Level, key, &[at, 0, 0, 0, 0], level != entity.level);
        if differs {
            let contexts = [u32::from(entity.level) + 1; 5];
            let level = self.symbol(Topic::Level, key, &contexts, 4, i64::from(level)) as u8;
            self.require(level != entity.level);
            self.log.levels.push((entity.id, level));
            self.sum.add(u64::from(entity.id) << 16 | u64::from(level));
        }
        differs
    }

    /// Codes all values of a spawn as differences from an earlier spawn.
    pub(crate) fn spawn(
        &mut self,
        id: u32,
        class: u16,
        cause: Cause,
        reference: Option<&KeptRow>,
        truth: Option<&[i64]>,
        row: &mut Vec<i64>,
    ) {
        let entity_states = self.entity_states;
        let layout = &entity_states.layout.classes[usize::from(class)];
        let before = reference.and_then(|reference| reference.of(layout));
        row.clear();
        row.resize(layout.shapes.len(), 0);
        let mut running = RunningContext::default();
        for &field in &layout.order {
            let at = usize::from(field);
            let shape = layout.shapes[at];
            let guess = before.map_or(0, |before| before[at]);
            let actual = truth.map_or(guess, |truth| truth[at]);
            let key = layout.first_page + u32::from(field);
            self.account = Account {
                class: Some(class),
                field: Some(field),
                cause,
            };
            let so_far = running.surprises.min(3);
            let indices = [
                running.flags & 15,
                running.flags & 63,
                so_far,
                so_far << 2 | running.flags & 3,
                0,
            ];
            let differs = self.flag(Topic::SpawnFlag, key, &indices, actual != guess);
            running.flags = running.flags << 1 | usize::from(differs);
            row[at] = guess;
            if differs {
                running.surprises += 1;
                row[at] = match shape {
                    Shape::Symbol { values: 2 } => 1 - guess,
                    Shape::Symbol { values } => {
                        let from = hash(guess as u64);
                        let contexts = [from, 0, from, 0, 0];
                        self.symbol(Topic::SpawnSymbol, key, &contexts, values, actual)
                    }
                    Shape::Number { .. } => {
                        let site = NumberSite {
                            exponent: Topic::SpawnExponent,
                            sign: Some(Topic::SpawnSign),
                            mantissa: Topic::SpawnMantissa,
                            field: key,
                            pivot: if running.exponent > 0 {
                                running.exponent - 1
                            } else {
                                6
                            },
                            scale: first([running.exponent, 0, 0, running.exponent, 0]),
                            signs: first([running.sign, 0, 0, running.sign, 0]),
                        };
                        let width = layout.widths[at];
                        let error = self.number(&site, &NONE, width.difference(actual, guess));
                        running.exponent = u32::from(bit_length(error));
                        running.sign = if error < 0 { 2 } else { 1 };
                        let value = width.wrap(guess.wrapping_add(error));
                        self.require(width.difference(value, guess) == error);
                        value
                    }
                    Shape::Content => {
                        let kept = reference.map_or(&[][..], KeptRow::contents);
                        self.container(class, field, kept, guess, truth)
                    }
                    Shape::Reference => self.refer_first(key, id, guess, actual),
                };
                self.require(row[at] != guess);
            }
            self.sum.add(row[at] as u64);
        }
    }

    /// Codes whether any of the rare fields differs.
    fn rare_flag(
        &mut self,
        class: u16,
        running: &RunningContext,
        woken: bool,
        differs: bool,
    ) -> bool {
        self.account = Account {
            class: Some(class),
            field: None,
            cause: Cause::Flag,
        };
        let so_far = running.surprises.min(7);
        let indices = [
            so_far << 1 | usize::from(woken),
            running.flags & 255,
            running.flags & 31,
            running.flags & 0xFFF,
            so_far,
        ];
        let key = self.class_key(class);
        self.flag(Topic::RareFields, key, &indices, differs)
    }

    #[inline(always)]
    fn field_flag(
        &mut self,
        key: u32,
        state: &FieldState,
        entity: &CodedEntity<'_>,
        running: &RunningContext,
        predictor: Predictor,
        differs: bool,
    ) -> bool {
        let (echo, run) = state.periodic_guess(entity.behind);
        let history = usize::from(state.surprised);
        let so_far = running.surprises.min(3);
        let indices = [
            usize::from(entity.woken) << 13
                | (history & 63) << 5
                | usize::from(echo) << 4
                | run.min(15) as usize,
            (running.ahead as usize) << 10
                | (running.flags & 63) << 4
                | (history & 3) << 2
                | so_far,
            history | usize::from(entity.woken) << 8,
            usize::from(state.recent) << 3 | predictor as usize,
            running.flags & 63,
        ];
        self.flag(Topic::FieldFlag, key, &indices, differs)
    }

    /// A symbol other than the predicted one.
    fn changed_symbol(
        &mut self,
        key: u32,
        values: u32,
        running: &RunningContext,
        guess: i64,
        actual: i64,
    ) -> i64 {
        if values == 2 {
            return 1 - guess;
        }
        let from = hash(guess as u64);
        let with_flags = hash_pair(from, running.flags as u32 & 15);
        let contexts = [from, with_flags, 0, running.flags as u32 & 63, 0];
        self.symbol(Topic::Symbol, key, &contexts, values, actual)
    }

    /// Whether a residual of 1 or -1 recurs: many values change by the same step every time.
    #[inline]
    fn same_residual(
        &mut self,
        key: u32,
        expected: &Expected<'_>,
        running: &RunningContext,
        same_residual: bool,
    ) -> bool {
        let recent = usize::from(expected.state.recent);
        let indices = [
            recent * 3 + running.sign,
            (running.flags & 31) << 4
                | usize::from(expected.state.last >> 7) << 3
                | expected.predictor as usize,
            recent,
            running.flags & 63,
            0,
        ];
        self.flag(Topic::SameResidual, key, &indices, same_residual)
    }

    /// The residual, which is not `excluded`.
    #[expect(clippy::too_many_arguments)]
    fn field_residual(
        &mut self,
        key: u32,
        expected: &Expected<'_>,
        running: &RunningContext,
        dissent: Dissent,
        repeats: &Repeats,
        excluded: i64,
        error: i64,
    ) -> i64 {
        let (state, predictor) = (expected.state, expected.predictor);
        let last = u32::from(state.last & 0x7F);
        let recent = usize::from(state.recent);
        let last_sign = match state.last {
            0 => 0,
            byte if byte & 0x80 != 0 => 2,
            _ => 1,
        };
        let site = NumberSite::<N> {
            exponent: Topic::Exponent,
            sign: Some(Topic::Sign),
            mantissa: Topic::Mantissa,
            field: key,
            pivot: match last {
                0 => running.exponent.saturating_sub(1),
                bits => bits - 1,
            },
            scale: first([
                last << 4 | (recent as u32 & 15) << 1 | u32::from(state.surprised & 1),
                dissent.scale << 8 | running.largest,
                running.ahead << 10 | running.exponent << 3 | predictor as u32,
                running.largest << 6 | last,
                dissent.scale << 6 | last,
            ]),
            signs: first([
                recent * 3 + running.sign,
                dissent.side,
                last_sign * 8 + predictor as usize,
                dissent.side * 3 + running.sign,
                recent * 8 + predictor as usize,
            ]),
        };
        self.number_but(&site, repeats, excluded, error)
    }

    /// The cell of a container whose content differs from the predicted one.
    fn container(
        &mut self,
        class: u16,
        field: u16,
        kept: &[HashedContent],
        guess: i64,
        truth: Option<&[i64]>,
    ) -> i64 {
        let empty = || Some(Arc::new(Content::Cells([].into())));
        let find = |cell: i64| match cell {
            0 => empty(),
            _ => self.find(cell, kept),
        };
        let old = find(guess);
        let new = truth.map(|truth| find(truth[usize::from(field)]));
        let (Some(old), Some(new)) = (old, new.map_or(Some(None), |new| new.map(Some))) else {
            // The content of a row is missing: the two ends differ.
            self.invalid = true;
            return guess;
        };
        self.content(class, field, &old, new.as_deref()).cell
    }

    /// A reference, as the receiver's id.
    fn refer(&mut self, key: u32, repeats: &Repeats, guess: i64, actual: i64) -> i64 {
        if guess != 0 && self.flag(Topic::Sign, key, &[0; 5], actual == 0) {
            return 0;
        }
        let site = NumberSite {
            exponent: Topic::Exponent,
            sign: None,
            mantissa: Topic::Mantissa,
            field: key,
            pivot: 4,
            scale: [0; N],
            signs: [0; N],
        };
        let cell = self.number(&site, repeats, actual);
        self.checked_reference(cell)
    }

    /// A reference of a spawn, relative to the spawn's own id: related entities often appear
    /// together.
    fn refer_first(&mut self, key: u32, id: u32, guess: i64, actual: i64) -> i64 {
        if guess != 0 && self.flag(Topic::SpawnSign, key, &[8; 5], actual == 0) {
            return 0;
        }
        let site = NumberSite {
            exponent: Topic::SpawnExponent,
            sign: Some(Topic::SpawnSign),
            mantissa: Topic::SpawnMantissa,
            field: key,
            pivot: 0,
            scale: [0; N],
            signs: [9; N],
        };
        let own = i64::from(id) + 1;
        // Numbers are never 0, but the distance may be.
        let distance = actual - own;
        let distance = self.number(&site, &NONE, distance + i64::from(distance >= 0));
        let distance = distance.wrapping_sub(i64::from(distance > 0));
        self.checked_reference(own.wrapping_add(distance))
    }

    fn checked_reference(&mut self, cell: i64) -> i64 {
        if !(1..=1 << 32).contains(&cell) {
            self.invalid = true;
            return 0;
        }
        cell
    }

    pub(crate) fn class_key(&self, class: u16) -> u32 {
        self.entity_states.layout.classes[usize::from(class)].own_page()
    }
}

/// Least bit length of a residual from which relations are searched for.
const FOCUS_BITS: u8 = 3;

/// Buckets of the folds since the last surprise: the longer ago, the coarser.
static AGES: [u8; 33] = [
    0, 1, 2, 3, 4, 5, 5, 6, 6, 6, 7, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8,
    9,
];
