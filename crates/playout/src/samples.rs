//! The numbers of recent samples, and the values between, before and after them.

use prescient_schema::{Show, ShowMethod};

use crate::derivative::{Point, at_newest, rate_between};
use crate::interpolate::{dot, hermite, linear, slerp};
use crate::layout::Velocity;

/// Rows of numbers, oldest first; what is no number at a tick is NaN. A ring of rows, so that the row
/// of a tick is one slice.
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    width: usize,
    /// Their length, in rows, is a power of two.
    ticks: Vec<u64>,
    numbers: Vec<f64>,
    head: usize,
    len: usize,
}

/// Where a tick is among samples.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    /// Before the oldest one, or nowhere.
    Before,
    /// Between two.
    Between(Segment<'a>),
    /// So many ticks after the newest one.
    After(f64),
}

/// The samples around a tick, and what all columns have in common there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    from: &'a [f64],
    to: &'a [f64],
    /// The samples before and after these two, with the length in between.
    before: Option<(&'a [f64], f64)>,
    after: Option<(&'a [f64], f64)>,
    span: f64,
    share: f64,
}

impl Samples {
    pub(crate) fn new(width: usize) -> Self {
        Self {
            width,
            ticks: Vec::new(),
            numbers: Vec::new(),
            head: 0,
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn newest(&self) -> Option<u64> {
        let newest = self.len.checked_sub(1)?;
        Some(self.tick(newest))
    }

    /// Adds the newest row.
    pub(crate) fn push(&mut self, tick: u64, numbers: &[f64]) {
        if self.len == MAX_SAMPLES {
            self.drop_oldest();
        }
        if self.len == self.ticks.len() {
            self.grow();
        }
        let at = self.slot(self.len);
        self.ticks[at] = tick;
        self.numbers[at * self.width..][..self.width].copy_from_slice(numbers);
        self.len += 1;
    }

    fn grow(&mut self) {
        let rows = (self.ticks.len() * 2).max(FIRST_ROWS);
        let mut larger = Self::new(self.width);
        larger.ticks = vec![0; rows];
        larger.numbers = vec![f64::NAN; rows * self.width];
        for index in 0..self.len {
            larger.ticks[index] = self.tick(index);
            larger.numbers[index * self.width..][..self.width].copy_from_slice(self.row(index));
        }
        larger.len = self.len;
        *self = larger;
    }

    /// Drops what no frame at this tick or later needs: a curve needs one sample before the two that
    /// it is drawn between.
    pub(crate) fn drop_before(&mut self, tick: f64) {
        while self.len > KEPT && self.tick(2) as f64 <= tick {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        self.head = self.slot(1);
        self.len -= 1;
    }

    fn slot(&self, index: usize) -> usize {
        (self.head + index) & (self.ticks.len() - 1)
    }

    fn tick(&self, index: usize) -> u64 {
        self.ticks[self.slot(index)]
    }

    fn row(&self, index: usize) -> &[f64] {
        &self.numbers[self.slot(index) * self.width..][..self.width]
    }

    pub(crate) fn place(&self, tick: f64) -> Place<'_> {
        let Some(newest) = self.newest() else {
            return Place::Before;
        };
        // Also if the tick is no number.
        if tick.is_nan() || tick < self.tick(0) as f64 {
            return Place::Before;
        }
        if tick >= newest as f64 {
            return Place::After(tick - newest as f64);
        }
        // Most frames are drawn near the newest sample.
        let mut index = self.len - 2;
        while self.tick(index) as f64 > tick {
            index -= 1;
        }
        let (from, to) = (self.tick(index) as f64, self.tick(index + 1) as f64);
        let span = to - from;
        let before = index.checked_sub(1);
        let after = Some(index + 2).filter(|&after| after < self.len);
        Place::Between(Segment {
            from: self.row(index),
            to: self.row(index + 1),
            before: before.map(|at| (self.row(at), from - self.tick(at) as f64)),
            after: after.map(|at| (self.row(at), self.tick(at) as f64 - to)),
            span,
            share: (tick - from) / span,
        })
    }

    /// The number of a column at a place, or beyond the newest sample by `ahead` ticks if it is
    /// dead-reckoned; `None` if it is stepped or unknown.
    pub(crate) fn number(
        &self,
        column: usize,
        show: &Show,
        velocity: Option<Velocity>,
        place: Place<'_>,
        ahead: f64,
    ) -> Option<f64> {
        let method = show.method.unwrap_or(ShowMethod::Hermite);
        let (shown, fallback) = match method {
            ShowMethod::Stepped => return None,
            ShowMethod::Velocity | ShowMethod::Acceleration => {
                let bends = method == ShowMethod::Acceleration;
                self.ahead(column, show, velocity, ahead, bends)?
            }
            ShowMethod::Linear | ShowMethod::Hermite => match place {
                Place::Before => (self.at(0, column)?, f64::NAN),
                Place::After(beyond) => {
                    self.ahead(column, show, velocity, beyond.min(ahead), false)?
                }
                Place::Between(segment) => {
                    let is_curve = method == ShowMethod::Hermite;
                    segment.number(column, show, velocity, is_curve)?
                }
            },
        };
        match shown.is_finite() {
            true => Some(shown),
            false => Some(fallback).filter(|number| number.is_finite()),
        }
    }

    /// A value after the newest sample, and that sample.
    fn ahead(
        &self,
        column: usize,
        show: &Show,
        velocity: Option<Velocity>,
        ticks: f64,
        bends: bool,
    ) -> Option<(f64, f64)> {
        let last = self.len().checked_sub(1)?;
        let newest = self.point(last, column)?;
        let limit = show.snap_beyond.unwrap_or(f64::INFINITY);
        let known = |back: usize| {
            let point = self.point(last.checked_sub(back)?, column)?;
            ((point.1 - newest.1).abs() <= limit).then_some(point)
        };
        let before = known(1);
        let oldest = known(2).filter(|_| bends && before.is_some());
        let (rate, bend) = match velocity {
            None => at_newest(newest, before, oldest),
            Some(velocity) => {
                let rate = |point: usize| Some(self.at(point, velocity.column)? * velocity.factor);
                let (now, earlier) = (rate(last)?, before.and_then(|_| rate(last - 1)));
                let bend = match (earlier, before) {
                    (Some(earlier), Some(before)) if bends => {
                        (now - earlier) / (newest.0 - before.0)
                    }
                    _ => 0.0,
                };
                (now, bend)
            }
        };
        Some((newest.1 + (rate + bend * ticks / 2.0) * ticks, newest.1))
    }

    /// The rotation in four columns; `None` if it is stepped or unknown.
    pub(crate) fn rotation(
        &self,
        column: usize,
        show: &Show,
        place: Place<'_>,
        ahead: f64,
    ) -> Option<[f64; 4]> {
        let (from, share) = match show.method.unwrap_or(ShowMethod::Hermite) {
            ShowMethod::Stepped => return None,
            ShowMethod::Velocity | ShowMethod::Acceleration => self.beyond(ahead)?,
            ShowMethod::Linear | ShowMethod::Hermite => match place {
                Place::Before => (0, 0.0),
                Place::After(beyond) => self.beyond(beyond.min(ahead))?,
                Place::Between(segment) => {
                    let from = four(segment.from, column)?;
                    return Some(match four(segment.to, column) {
                        Some(to) => slerp(from, to, segment.share),
                        None => from,
                    });
                }
            },
        };
        let from_rotation = self.rotation_at(from, column)?;
        match self.rotation_at(from + 1, column) {
            Some(to) if share != 0.0 => Some(slerp(from_rotation, to, share)),
            _ => Some(from_rotation),
        }
    }

    /// The newest two samples, and the share that is so many ticks after them.
    fn beyond(&self, ticks: f64) -> Option<(usize, f64)> {
        match self.len() {
            0 => None,
            1 => Some((0, 0.0)),
            len => {
                let (from, to) = (self.tick(len - 2) as f64, self.tick(len - 1) as f64);
                Some((len - 2, 1.0 + ticks / (to - from)))
            }
        }
    }

    /// The rotation nearest to the newest sample's that means the same: a quaternion and its
    /// negative are one rotation, and a row may have either.
    pub(crate) fn aligned(&self, column: usize, rotation: [f64; 4]) -> [f64; 4] {
        let newest = self.len().checked_sub(1);
        match newest.and_then(|newest| self.rotation_at(newest, column)) {
            Some(before) if dot(before, rotation) < 0.0 => rotation.map(|part| -part),
            _ => rotation,
        }
    }

    fn rotation_at(&self, index: usize, column: usize) -> Option<[f64; 4]> {
        (index < self.len).then(|| four(self.row(index), column))?
    }

    fn point(&self, index: usize, column: usize) -> Option<Point> {
        let number = self.at(index, column).filter(|number| number.is_finite())?;
        Some((self.tick(index) as f64, number))
    }

    fn at(&self, index: usize, column: usize) -> Option<f64> {
        (index < self.len).then(|| self.row(index).get(column).copied())?
    }
}

impl Segment<'_> {
    /// A value between two samples, and the earlier sample.
    fn number(
        &self,
        column: usize,
        show: &Show,
        velocity: Option<Velocity>,
        is_curve: bool,
    ) -> Option<(f64, f64)> {
        let here = *self.from.get(column)?;
        let next = *self.to.get(column)?;
        let limit = show.snap_beyond.unwrap_or(f64::INFINITY);
        let gap = next - here;
        if !here.is_finite() {
            return None;
        }
        // Also if the next one is no number.
        if !gap.is_finite() || gap.abs() > limit {
            return Some((here, here));
        }
        if !is_curve {
            return Some((linear(here, next, self.share), here));
        }
        let rates = match velocity {
            Some(velocity) => {
                let rate = |row: &[f64]| Some(row.get(velocity.column)? * velocity.factor);
                (rate(self.from)?, rate(self.to)?)
            }
            None => {
                let slope = gap / self.span;
                let near = |gap: &f64| gap.abs() <= limit;
                let left = self.before.and_then(|(row, span)| {
                    let gap = here - row.get(column)?;
                    Some((gap, span)).filter(|(gap, _)| near(gap))
                });
                let right = self.after.and_then(|(row, span)| {
                    let gap = row.get(column)? - next;
                    Some((gap, span)).filter(|(gap, _)| near(gap))
                });
                let middle = (gap, self.span);
                (
                    left.map_or(slope, |left| rate_between(left, middle)),
                    right.map_or(slope, |right| rate_between(middle, right)),
                )
            }
        };
        let curve = hermite((here, rates.0), (next, rates.1), self.span, self.share);
        if curve.is_finite() {
            return Some((curve, here));
        }
        // A rate that is no number leaves the line.
        Some((linear(here, next, self.share), here))
    }
}

/// A rotation in four columns of a row.
fn four(row: &[f64], column: usize) -> Option<[f64; 4]> {
    let parts = row.get(column..column + 4)?;
    let parts = <[f64; 4]>::try_from(parts).ok()?;
    parts.iter().all(|part| part.is_finite()).then_some(parts)
}

/// Samples that are kept at most: more than a second of 60 ticks.
const MAX_SAMPLES: usize = 72;
/// Samples that are kept at least, for rates of change.
const KEPT: usize = 3;
/// Rows for which there is room at first.
const FIRST_ROWS: usize = 8;
