//! What was shown, and what should have been: the differences of all numbers of an entity, mended.

use std::time::Duration;

use prescient_schema::{Declaration, NumberVisitor, ShowMethod, State};

use crate::converge::{Correction, Pace};
use crate::interpolate::{dot, unit};
use crate::layout::Layout;

/// The corrections of one entity.
#[derive(Clone, Debug)]
pub(crate) struct Mending {
    corrections: Vec<Correction>,
    last: Duration,
}

impl Mending {
    pub(crate) fn new<T: State>(layout: &Layout<T>) -> Self {
        Self {
            corrections: vec![Correction::default(); layout.width()],
            last: Duration::ZERO,
        }
    }

    /// The guess was `before` and is `after` now.
    pub(crate) fn note<T: State + Clone>(&mut self, layout: &Layout<T>, before: &T, after: &T) {
        let mut mend = Mend {
            column: 0,
            before: Numbers::of(before, layout.table()).numbers,
            pace: &layout.pace,
            corrections: &mut self.corrections,
        };
        let mut after = after.clone();
        after.visit_numbers(&Declaration::PLAIN, layout.table(), &mut mend);
    }

    /// Adds to a guess what is left to mend.
    pub(crate) fn apply<T: State>(&mut self, layout: &Layout<T>, guess: &mut T, now: Duration) {
        let mut draw = Draw {
            column: 0,
            seconds: now.saturating_sub(self.last).as_secs_f64(),
            pace: &layout.pace,
            corrections: &mut self.corrections,
        };
        self.last = self.last.max(now);
        guess.visit_numbers(&Declaration::PLAIN, layout.table(), &mut draw);
    }

    pub(crate) fn reset(&mut self) {
        self.corrections.fill(Correction::default());
    }
}

/// The numbers of a state by column, and which columns have one.
pub(crate) struct Numbers {
    pub numbers: Vec<f64>,
    pub shown: Vec<bool>,
}

impl Numbers {
    pub(crate) fn of<T: State + Clone>(state: &T, table: &str) -> Self {
        let mut all = Self {
            numbers: Vec::new(),
            shown: Vec::new(),
        };
        state
            .clone()
            .visit_numbers(&Declaration::PLAIN, table, &mut all);
        all
    }

    /// The largest distance between two numbers; NaN if one of them is.
    pub(crate) fn distance(&self, other: &Self) -> f64 {
        let pairs = self.numbers.iter().zip(&other.numbers);
        let gaps = pairs.filter(|(one, other)| one != other);
        gaps.map(|(one, other)| (one - other).abs())
            .fold(0.0, larger)
    }

    pub(crate) fn are_finite(&self) -> bool {
        self.numbers.iter().all(|number| number.is_finite())
    }
}

/// The larger number; NaN if one of them is, which `max` would drop.
pub(crate) fn larger(one: f64, other: f64) -> f64 {
    if other > one || other.is_nan() {
        other
    } else {
        one
    }
}

/// The table whose numbers are shown.
pub(crate) fn first_table<T: State>() -> &'static str {
    T::TABLES.first().copied().unwrap_or_default()
}

impl NumberVisitor for Numbers {
    fn skip(&mut self, columns: usize) {
        self.numbers.extend(std::iter::repeat_n(0.0, columns));
        self.shown.extend(std::iter::repeat_n(false, columns));
    }

    fn number(&mut self, _: &Declaration, value: f64) -> f64 {
        self.numbers.push(value);
        self.shown.push(true);
        value
    }

    fn rotation(&mut self, how: &Declaration, value: [f64; 4]) -> [f64; 4] {
        value.map(|part| self.number(how, part))
    }
}

/// Notes how far a correction moved each number.
struct Mend<'a> {
    column: usize,
    before: Vec<f64>,
    pace: &'a Pace,
    corrections: &'a mut [Correction],
}

impl NumberVisitor for Mend<'_> {
    fn skip(&mut self, columns: usize) {
        self.column += columns;
    }

    fn number(&mut self, how: &Declaration, value: f64) -> f64 {
        let at = self.column;
        self.column += 1;
        if let (Some(before), Some(correction)) =
            (self.before.get(at), self.corrections.get_mut(at))
            && *before != value
            && how.show.method != Some(ShowMethod::Stepped)
        {
            correction.add(&how.show, self.pace, before - value, 0.0);
        }
        value
    }

    fn rotation(&mut self, how: &Declaration, value: [f64; 4]) -> [f64; 4] {
        // A quaternion and its negative are one rotation.
        if let Some(before) = self.before.get_mut(self.column..self.column + 4)
            && let Ok(parts) = <[f64; 4]>::try_from(&*before)
            && dot(parts, value) < 0.0
        {
            before.iter_mut().for_each(|part| *part = -*part);
        }
        value.map(|part| self.number(how, part))
    }
}

/// Adds what is left of the corrections.
struct Draw<'a> {
    column: usize,
    seconds: f64,
    pace: &'a Pace,
    corrections: &'a mut [Correction],
}

impl NumberVisitor for Draw<'_> {
    fn skip(&mut self, columns: usize) {
        self.column += columns;
    }

    fn number(&mut self, how: &Declaration, value: f64) -> f64 {
        let correction = self.corrections.get_mut(self.column);
        self.column += 1;
        value + correction.map_or(0.0, |it| it.advance(&how.show, self.pace, self.seconds))
    }

    fn rotation(&mut self, how: &Declaration, value: [f64; 4]) -> [f64; 4] {
        let mended = value.map(|part| self.number(how, part));
        if mended == value { value } else { unit(mended) }
    }
}
