//! How one entity's values become decisions: what is expected of it, and how it differs.

use alloc::{sync::Arc, vec::Vec};

use prescient_schema::{Content, Shape};

use crate::{
    kept::KeptRow,
    ledger::{Account, Cause},
    log::Surprise,
    model::repeats::{NONE, Repeats},
    past::Past,
    predict::{CostSample, Dissent, Predictor, bit_length, residual, wrap},
    session::{Coder, NumberSite, Session, Topic, hash, hash_pair},
    twin::{FieldState, Head},
};

/// The entity being coded.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub id: u32,
    pub class: u16,
    /// Its precision until now.
    pub level: u8,
    /// Was at rest.
    pub woken: bool,
    /// Folds since its last surprise.
    pub behind: u32,
    pub states: &'a [FieldState],
}

/// What was seen so far of the entity being coded.
#[derive(Clone, Copy, Default)]
struct Trail {
    /// How many ticks ahead of the newest known row this is.
    ahead: u32,
    flags: usize,
    surprises: usize,
    /// How many of them came before the rare fields.
    surprises_before: usize,
    /// Bit length of the last surprise.
    exponent: u32,
    /// The largest so far.
    largest: u32,
    /// 0 without a surprise, 1 if it was positive, 2 if negative.
    sign: usize,
}

impl<C: Coder, const N: usize> Session<'_, C, N> {
    /// Whether an active entity differs from what is expected of it.
    pub fn entity_flag(&mut self, head: &Head, neighbour: bool, differs: bool) -> bool {
        let history = self.book.surprise_history(head);
        let age = history.trailing_zeros() as usize;
        let bucket = match age {
            0..=4 => age,
            5..=6 => 5,
            7..=9 => 6,
            10..=15 => 7,
            16..=31 => 8,
            _ => 9,
        };
        let recent = (history & 0xFF).count_ones().min(3) as usize;
        let indices = [
            bucket * 4 + recent,
            (history as usize & 31) << 1 | usize::from(neighbour),
            history as usize & 63,
            bucket << 1 | usize::from(neighbour),
            history.count_ones() as usize,
        ];
        self.account = Account {
            class: Some(head.class),
            field: None,
            cause: Cause::Flag,
        };
        let key = self.class_key(head.class);
        self.flag(Topic::EntityFlag, key, &indices, differs)
    }

    /// The fields of an entity that differs from what is expected of it (or was at rest).
    /// `truth` goes in when encoding, at the precision `level`; `row` comes out either way.
    pub fn fields(
        &mut self,
        entity: &Subject<'_>,
        past: &Past<'_>,
        level: u8,
        truth: Option<&[i64]>,
        row: &mut Vec<i64>,
    ) {
        let Subject {
            id,
            class,
            woken,
            states,
            ..
        } = *entity;
        let book = self.book;
        let layout = past.class;
        let changes_level = self.level(entity, level);
        row.clear();
        row.extend_from_slice(past.newest());
        let mut trail = Trail {
            ahead: past.plan.ahead.min(15),
            ..Trail::default()
        };
        let (common, rare) = book.classes[usize::from(class)].ranking.split();
        // Some field must differ; if none has when the last one is reached, it does.
        let mut due = !woken && !changes_level;
        for (step, &field) in common.iter().chain(rare).enumerate() {
            if step == common.len() {
                let differs = |&field: &u16| {
                    let at = usize::from(field);
                    let state = states.get(at).copied().unwrap_or_default();
                    let guess = past.guess(past.choose(at, &state), at, row);
                    truth.is_some_and(|truth| truth[at] != guess)
                };
                let surprise = trail.surprises == 0 && due
                    || self.rest_flag(class, &trail, woken, rare.iter().any(differs));
                if !surprise {
                    for &field in rare {
                        let at = usize::from(field);
                        let state = states.get(at).copied().unwrap_or_default();
                        row[at] = past.guess(past.choose(at, &state), at, row);
                    }
                    break;
                }
                due = true;
                trail.surprises_before = trail.surprises;
            }
            let at = usize::from(field);
            let shape = layout.shapes[at];
            let state = states.get(at).copied().unwrap_or_default();
            let predictor = past.choose(at, &state);
            let guess = past.guess(predictor, at, row);
            let actual = truth.map_or(guess, |truth| truth[at]);
            let certain = due
                && trail.surprises == trail.surprises_before
                && step + 1 == layout.updates.len();
            self.account = Account {
                class: Some(class),
                field: Some(field),
                cause: Cause::Flag,
            };
            let key = layout.first_page + u32::from(field);
            let differs =
                certain || self.field_flag(key, &state, entity, &trail, predictor, actual != guess);
            trail.flags = trail.flags << 1 | usize::from(differs);
            row[at] = guess;
            if differs {
                self.account.cause = Cause::Surprise;
                let repeats = &book.classes[usize::from(class)].fields[at].repeats;
                let guesses = past.guesses(at, row);
                let dissent = guesses.dissent(guess, shape);
                row[at] = match shape {
                    Shape::Content => self.renew(class, field, past.kept, guess, truth),
                    Shape::Reference => self.refer(key, repeats, guess, actual),
                    _ => self.correct(
                        key, shape, &state, &mut trail, predictor, dissent, repeats, guess, actual,
                    ),
                };
                let error = match shape {
                    Shape::Number { .. } => residual(row[at], guess, shape),
                    // Who is referred to often is known by the number itself.
                    Shape::Reference => row[at],
                    Shape::Symbol { .. } | Shape::Content => 0,
                };
                let last = match shape {
                    Shape::Number { .. } => bit_length(error) | if error < 0 { 0x80 } else { 0 },
                    _ => 0,
                };
                let costs = CostSample::new(row[at], &guesses, shape);
                self.log.surprises.push(Surprise {
                    id,
                    field,
                    last,
                    residual: error,
                    costs,
                });
                self.sum.add(u64::from(id) << 16 | u64::from(field));
                self.sum.add(row[at] as u64);
                trail.surprises += 1;
            }
        }
        if row != past.newest() {
            self.log.moved.push(id);
        }
    }

    /// Whether the precision of an entity changes with this update, and to what.
    fn level(&mut self, entity: &Subject<'_>, level: u8) -> bool {
        if !self.book.layout.classes[usize::from(entity.class)].has_levels {
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
            self.log.levels.push((entity.id, level));
            self.sum.add(u64::from(entity.id) << 16 | u64::from(level));
        }
        differs
    }

    /// All values of an entity that appears, as differences from one that appeared before.
    pub fn spawn(
        &mut self,
        id: u32,
        class: u16,
        cause: Cause,
        reference: Option<&KeptRow>,
        truth: Option<&[i64]>,
        row: &mut Vec<i64>,
    ) {
        let book = self.book;
        let layout = &book.layout.classes[usize::from(class)];
        row.clear();
        row.resize(layout.shapes.len(), 0);
        let mut trail = Trail::default();
        for &field in &layout.order {
            let at = usize::from(field);
            let shape = layout.shapes[at];
            let guess = reference.map_or(0, |reference| reference[at]);
            let actual = truth.map_or(guess, |truth| truth[at]);
            let key = layout.first_page + u32::from(field);
            self.account = Account {
                class: Some(class),
                field: Some(field),
                cause,
            };
            let so_far = trail.surprises.min(3);
            let indices = [
                so_far,
                trail.flags & 15,
                trail.flags & 63,
                so_far << 2 | trail.flags & 3,
                0,
            ];
            let differs = self.flag(Topic::SpawnFlag, key, &indices, actual != guess);
            trail.flags = trail.flags << 1 | usize::from(differs);
            row[at] = guess;
            if differs {
                trail.surprises += 1;
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
                            pivot: if trail.exponent > 0 {
                                trail.exponent - 1
                            } else {
                                6
                            },
                            scale: [0, trail.exponent, 0, trail.exponent, 0],
                            signs: [0, trail.sign, 0, trail.sign, 0],
                        };
                        let error = self.number(&site, &NONE, residual(actual, guess, shape));
                        trail.exponent = u32::from(bit_length(error));
                        trail.sign = if error < 0 { 2 } else { 1 };
                        wrap(guess.wrapping_add(error), shape)
                    }
                    Shape::Content => {
                        let kept = reference.map_or(&[][..], KeptRow::contents);
                        self.renew(class, field, kept, guess, truth)
                    }
                    Shape::Reference => self.refer_first(key, id, guess, actual),
                };
            }
            self.sum.add(row[at] as u64);
        }
    }

    /// Whether any of the rare fields differs.
    fn rest_flag(&mut self, class: u16, trail: &Trail, woken: bool, differs: bool) -> bool {
        self.account = Account {
            class: Some(class),
            field: None,
            cause: Cause::Flag,
        };
        let so_far = trail.surprises.min(7);
        let indices = [
            so_far << 1 | usize::from(woken),
            trail.flags & 255,
            trail.flags & 31,
            trail.flags & 0xFFF,
            so_far,
        ];
        let key = self.class_key(class);
        self.flag(Topic::Rest, key, &indices, differs)
    }

    fn field_flag(
        &mut self,
        key: u32,
        state: &FieldState,
        entity: &Subject<'_>,
        trail: &Trail,
        predictor: Predictor,
        differs: bool,
    ) -> bool {
        let (echo, run) = state.echo(entity.behind);
        let history = usize::from(state.surprised);
        let [newest, second] = state.residuals();
        let so_far = trail.surprises.min(3);
        let indices = [
            history | usize::from(entity.woken) << 8,
            (trail.ahead as usize) << 9 | (trail.flags & 31) << 4 | (history & 3) << 2 | so_far,
            (history & 7) << 5 | usize::from(echo) << 4 | run.min(15) as usize,
            (newest * 7 + second) << 3 | predictor as usize,
            trail.flags & 63,
        ];
        self.flag(Topic::FieldFlag, key, &indices, differs)
    }

    /// The value of a field that is not what was guessed.
    #[expect(clippy::too_many_arguments)]
    fn correct(
        &mut self,
        key: u32,
        shape: Shape,
        state: &FieldState,
        trail: &mut Trail,
        predictor: Predictor,
        dissent: Dissent,
        repeats: &Repeats,
        guess: i64,
        actual: i64,
    ) -> i64 {
        match shape {
            Shape::Symbol { values: 2 } => 1 - guess,
            Shape::Symbol { values } => {
                let from = hash(guess as u64);
                let company = hash_pair(from, trail.flags as u32 & 15);
                let contexts = [from, 0, company, trail.flags as u32 & 63, 0];
                self.symbol(Topic::Symbol, key, &contexts, values, actual)
            }
            Shape::Content | Shape::Reference => guess,
            Shape::Number { .. } => {
                let last = u32::from(state.last & 0x7F);
                let [newest, second] = state.residuals();
                let second = second as u32;
                let last_sign = match state.last {
                    0 => 0,
                    byte if byte & 0x80 != 0 => 2,
                    _ => 1,
                };
                let site = NumberSite {
                    exponent: Topic::Exponent,
                    sign: Some(Topic::Sign),
                    mantissa: Topic::Mantissa,
                    field: key,
                    pivot: match last {
                        0 => trail.exponent.saturating_sub(1),
                        bits => bits - 1,
                    },
                    scale: [
                        last << 4 | second << 1 | u32::from(state.surprised & 1),
                        trail.ahead << 10 | trail.exponent << 3 | predictor as u32,
                        dissent.scale,
                        trail.largest << 6 | last,
                        dissent.scale << 6 | last,
                    ],
                    signs: [
                        (newest * 7 + second as usize) * 3 + trail.sign,
                        last_sign * 8 + predictor as usize,
                        dissent.side,
                        dissent.side * 3 + trail.sign,
                        (newest * 7 + second as usize) * 8 + predictor as usize,
                    ],
                };
                let error = residual(actual, guess, shape);
                let error = match state.last {
                    1 => self.likely_again(&site, repeats, 1, error),
                    0x81 => self.likely_again(&site, repeats, -1, error),
                    _ => self.number(&site, repeats, error),
                };
                trail.exponent = u32::from(bit_length(error));
                trail.largest = trail.largest.max(trail.exponent);
                trail.sign = if error < 0 { 2 } else { 1 };
                wrap(guess.wrapping_add(error), shape)
            }
        }
    }

    /// What a container holds that is not what it held.
    fn renew(
        &mut self,
        class: u16,
        field: u16,
        kept: &[Arc<Content>],
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
            // A content that a row names is gone: the two ends no longer agree.
            self.invalid = true;
            return guess;
        };
        self.content(class, field, &old, new.as_deref()).cell()
    }

    /// An entity that a field refers to, by the receiver's number.
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
            scale: [0; 5],
            signs: [0; 5],
        };
        let cell = self.number(&site, repeats, actual);
        self.checked_reference(cell)
    }

    /// The same for an entity that appears: what it refers to often appeared with it.
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
            scale: [0; 5],
            signs: [9; 5],
        };
        let own = i64::from(id) + 1;
        // The distance may be 0, which no number is.
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

    /// A residual after one of 1 or -1: much that changes changes by that every time.
    fn likely_again(&mut self, site: &NumberSite, repeats: &Repeats, last: i64, error: i64) -> i64 {
        if self.flag(Topic::Again, site.field, &site.signs, error == last) {
            return last;
        }
        self.number_but(site, repeats, last, error)
    }

    fn class_key(&self, class: u16) -> u32 {
        self.book.layout.classes[usize::from(class)].own_page()
    }
}
