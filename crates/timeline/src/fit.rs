//! Keyframes from simulated values: as few as an error bound and a bounded look-ahead allow.
//!
//! A slide filter over all components at once: a segment is extended as long as a line passes all its
//! samples within the error. It is joined to the segment before it at a crossing of their lines between two
//! samples. Every keyframe is checked at every sample with the same arithmetic that clients use, so that
//! rounding cannot violate the bound.

use std::collections::VecDeque;

use crate::curve::Keyframe;
use crate::time::Time;
use crate::value::{Fraction, Value, ValueError};

/// Turns samples of one property into keyframes, sample by sample.
///
/// 1. [`push`](Self::push) each sample, in order of time.
/// 2. [`poll_keyframe`](Self::poll_keyframe) until there is none, and send them.
/// 3. In the end [`finish`](Self::finish), and poll once more.
///
/// **The bound**: a linear curve of the returned keyframes, which holds its last value, is within `max_error`
/// of all samples but the newest `look_ahead - 1`, and after [`finish`](Self::finish) of all. Later keyframes
/// do not change this. A property at rest costs nothing, and a change is returned at most `look_ahead` samples
/// late. The bound applies at samples, not between them.
///
/// Distances are Euclidean for vectors, and angles in radians for rotations.
#[derive(Clone, Debug)]
pub struct Fitter<V: Value> {
    max_error: f64,
    /// The error bound of each component.
    tolerance: f64,
    look_ahead: usize,
    /// The start of the present segment: the last returned keyframe, or a later time up to which its value
    /// holds.
    start: Option<Point<V>>,
    /// Whether `start` must be returned as a keyframe before the next one.
    holds: bool,
    /// Samples after `start`: `second` of them belong to the present segment, the others to the next.
    /// Without a start, all belong to the next.
    samples: VecDeque<Point<V>>,
    second: usize,
    /// The slopes of lines from the start through the samples of the present segment, for each component.
    cone: Vec<[f64; 2]>,
    /// The lines through the samples of the next segment, for each component.
    lines: Vec<Lines>,
    newest: Option<Point<V>>,
    keyframes: VecDeque<Keyframe<V>>,
}

/// Why a sample or a setting is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// Not later than the one before.
    #[error("{time} is not after the sample before")]
    Unordered {
        /// The sample's time.
        time: Time,
    },
    /// Before [`Time::MIN`] or after [`Time::MAX`].
    #[error("{time} is out of range")]
    TimeOutOfRange {
        /// The sample's time.
        time: Time,
    },
    /// The value is not allowed in a keyframe.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The error bound is negative, or not a number.
    #[error("the error bound is negative, or not a number")]
    MaxError,
    /// The look-ahead is below 2 or above [`MAX_LOOK_AHEAD`].
    #[error("the look-ahead is not between 2 and {MAX_LOOK_AHEAD} samples")]
    LookAhead,
}

/// The longest look-ahead; the work for a sample is at most proportional to it.
pub const MAX_LOOK_AHEAD: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Point<V> {
    time: i64,
    value: V,
}

impl<V: Value> Fitter<V> {
    /// A fitter with an error bound in the value's unit, and a look-ahead in samples.
    ///
    /// # Errors
    ///
    /// If either is out of range.
    pub fn new(max_error: f64, look_ahead: usize) -> Result<Self, FitError> {
        if !max_error.is_finite() || max_error < 0.0 {
            return Err(FitError::MaxError);
        }
        if !(2..=MAX_LOOK_AHEAD).contains(&look_ahead) {
            return Err(FitError::LookAhead);
        }
        Ok(Self {
            max_error,
            // A little less, so that rounding seldom requires further keyframes.
            tolerance: V::error_per_component(max_error) * (1.0 - 1e-6),
            look_ahead,
            start: None,
            holds: false,
            samples: VecDeque::new(),
            second: 0,
            cone: vec![[f64::NEG_INFINITY, f64::INFINITY]; V::COMPONENTS],
            lines: Vec::new(),
            newest: None,
            keyframes: VecDeque::new(),
        })
    }

    /// Adds a sample.
    ///
    /// # Errors
    ///
    /// If it is not later than the one before, or its time or value is not allowed. Then it is ignored.
    pub fn push(&mut self, time: Time, value: V) -> Result<(), FitError> {
        if !time.is_valid() {
            return Err(FitError::TimeOutOfRange { time });
        }
        value.check()?;
        let micros = time.as_micros();
        if self.newest.is_some_and(|newest| micros <= newest.time) {
            return Err(FitError::Unordered { time });
        }
        let near = self.newest.map_or(value, |newest| newest.value);
        let sample = Point {
            time: micros,
            value: value.aligned_with(near),
        };
        self.newest = Some(sample);
        self.take(sample);
        if self.samples.len() >= self.look_ahead {
            self.flush();
        }
        Ok(())
    }

    /// The next keyframe.
    pub fn poll_keyframe(&mut self) -> Option<Keyframe<V>> {
        self.keyframes.pop_front()
    }

    /// Makes keyframes for all samples so far. More samples may follow.
    pub fn finish(&mut self) {
        self.flush();
    }

    fn take(&mut self, sample: Point<V>) {
        let mut waiting = vec![sample];
        while let Some(sample) = waiting.pop() {
            if !self.extend(sample) {
                self.complete();
                waiting.push(sample);
                // Adds the remaining samples again, from the new keyframe on.
                waiting.extend(self.samples.drain(..).rev());
                self.reset();
            }
        }
    }

    /// Adds a sample to the present segment, or to the next one. False if it fits neither: then the two must
    /// be joined first.
    fn extend(&mut self, sample: Point<V>) -> bool {
        if let Some(start) = self.start
            && self.second == self.samples.len()
        {
            if self.narrow_cone(start, sample) {
                self.second += 1;
            } else {
                self.stab(sample);
            }
        } else if !self.stab(sample) {
            return false;
        }
        self.samples.push_back(sample);
        true
    }

    /// Makes the keyframe at the end of the present segment, or at the start of the first.
    fn complete(&mut self) {
        match self.start {
            Some(start) => self.join(start),
            None => self.begin(),
        }
    }

    fn begin(&mut self) {
        if let Some(first) = self.samples.pop_front() {
            let value = self.on_lines(first);
            self.emit(Point { value, ..first });
        }
    }

    fn join(&mut self, start: Point<V>) {
        if let Some(knot) = self.crossing(start) {
            return self.commit(knot, self.second);
        }
        self.end(start);
        if let Some(&first) = self.samples.front() {
            let value = self.on_lines(first);
            self.commit(Point { value, ..first }, 1);
        }
    }

    /// Ends the present segment at its last sample.
    fn end(&mut self, start: Point<V>) {
        let Some(last) = self.second.checked_sub(1).map(|index| self.samples[index]) else {
            return;
        };
        let elapsed = (last.time - start.time) as f64;
        let middle = |(index, [low, high]): (usize, &[f64; 2])| {
            start.value.component(index) + 0.5 * (low + high) * elapsed
        };
        let values: Vec<f64> = self.cone.iter().enumerate().map(middle).collect();
        let value = self.near(&values, last.value);
        self.commit(Point { value, ..last }, self.second);
    }

    /// Makes keyframes for all samples, or none if they are within the error of the last keyframe.
    fn flush(&mut self) {
        while !self.samples.is_empty() && !self.hold() {
            match self.start {
                Some(start) if self.second == self.samples.len() => self.end(start),
                _ => self.complete(),
            }
            let rest: Vec<Point<V>> = self.samples.drain(..).collect();
            self.reset();
            for sample in rest {
                self.take(sample);
            }
        }
    }

    /// Drops all samples if they are within the error of the last keyframe.
    fn hold(&mut self) -> bool {
        let (Some(start), Some(&last)) = (self.start, self.samples.back()) else {
            return false;
        };
        let near = |sample: &Point<V>| start.value.distance(sample.value) <= self.max_error;
        let holds = self.samples.iter().all(near);
        if holds {
            self.holds = true;
            self.start = Some(Point {
                time: last.time,
                ..start
            });
            self.samples.clear();
            self.reset();
        }
        holds
    }

    /// Resets both segments, which have no samples.
    fn reset(&mut self) {
        self.cone.clear();
        self.cone
            .resize(V::COMPONENTS, [f64::NEG_INFINITY, f64::INFINITY]);
        self.lines.clear();
        self.second = 0;
    }

    /// A point between the last sample of the present segment and the first of the next, on a line that fits
    /// the one segment and on a line that fits the other.
    fn crossing(&self, start: Point<V>) -> Option<Point<V>> {
        let next = self.samples[self.second].time;
        let last = match self.second.checked_sub(1) {
            Some(index) => self.samples[index].time,
            None => start.time,
        };
        if self.samples.len() - self.second < 2 || last == start.time {
            return None;
        }
        let (mut earliest, mut latest) = (0.0, (next - last) as f64);
        // Lower and upper bounds, as lines over the time since `last`: value at `last`, slope.
        let bounds = |index: usize| {
            let [low, high] = self.cone[index];
            let base = start.value.component(index);
            let elapsed = (last - start.time) as f64;
            let [upper, lower] = self.lines[index].at_and_slope(last);
            // Before the extreme lines cross, the steeper one is the lower bound.
            (
                [[base + low * elapsed, low], upper],
                [[base + high * elapsed, high], lower],
            )
        };
        for index in 0..V::COMPONENTS {
            let (low, high) = bounds(index);
            for [value_low, slope_low] in low {
                for [value_high, slope_high] in high {
                    let (gap, change) = (value_high - value_low, slope_high - slope_low);
                    // gap + change * x >= 0
                    let zero = -gap / change;
                    if change > 0.0 {
                        earliest = zero.max(earliest);
                    } else if change < 0.0 {
                        latest = zero.min(latest);
                    } else if gap < 0.0 {
                        return None;
                    }
                }
            }
        }
        let middle = (0.5 * (earliest + latest)).round();
        if !(earliest..=latest).contains(&middle) {
            return None;
        }
        let values: Vec<f64> = (0..V::COMPONENTS)
            .map(|index| {
                let (low, high) = bounds(index);
                let at = |[value, slope]: [f64; 2]| value + slope * middle;
                0.5 * (at(low[0]).max(at(low[1])) + at(high[0]).min(at(high[1])))
            })
            .collect();
        Some(Point {
            time: last + middle as i64,
            value: V::from_components(&values),
        })
    }

    /// Whether a line from the start passes this sample and those of the present segment; if so, narrows the
    /// slopes.
    fn narrow_cone(&mut self, start: Point<V>, sample: Point<V>) -> bool {
        let elapsed = (sample.time - start.time) as f64;
        let narrowed = |(index, [low, high]): (usize, &[f64; 2])| {
            let rise = sample.value.component(index) - start.value.component(index);
            let low = low.max((rise - self.tolerance) / elapsed);
            let high = high.min((rise + self.tolerance) / elapsed);
            (low <= high).then_some([low, high])
        };
        let narrowed: Option<Vec<[f64; 2]>> = self.cone.iter().enumerate().map(narrowed).collect();
        let fits = narrowed.is_some();
        self.cone = narrowed.unwrap_or_else(|| std::mem::take(&mut self.cone));
        fits
    }

    /// Whether a line passes this sample and those of the next segment; if so, narrows the lines.
    fn stab(&mut self, sample: Point<V>) -> bool {
        if self.lines.is_empty() {
            let gate = |index| Lines::new(self.gate(sample, index));
            self.lines = (0..V::COMPONENTS).map(gate).collect();
            return true;
        }
        let gates = || self.samples.range(self.second..);
        let fits = |(index, lines): (usize, &Lines)| {
            let gate = self.gate(sample, index);
            lines.narrowed(gate, gates().map(|&sample| self.gate(sample, index)))
        };
        let narrowed: Option<Vec<Lines>> = self.lines.iter().enumerate().map(fits).collect();
        let fits = narrowed.is_some();
        self.lines = narrowed.unwrap_or_else(|| std::mem::take(&mut self.lines));
        fits
    }

    fn gate(&self, sample: Point<V>, index: usize) -> Gate {
        let value = sample.value.component(index);
        Gate {
            time: sample.time,
            low: value - self.tolerance,
            high: value + self.tolerance,
        }
    }

    /// The middle of the lines at a sample's time.
    fn on_lines(&self, sample: Point<V>) -> V {
        let middle = |lines: &Lines| lines.middle(sample.time);
        let values: Vec<f64> = self.lines.iter().map(middle).collect();
        self.near(&values, sample.value)
    }

    /// The value of these components, or the sample's if that is not within the error.
    fn near(&self, numbers: &[f64], sample: V) -> V {
        let value = V::from_components(numbers);
        let near = value.check().is_ok() && value.distance(sample) <= self.max_error;
        if near { value } else { sample }
    }

    /// Makes a keyframe, with others before it if the line to it misses a sample, and drops the first
    /// samples.
    fn commit(&mut self, to: Point<V>, count: usize) {
        let passed: Vec<Point<V>> = self.samples.drain(..count).collect();
        self.second = self.second.saturating_sub(count);
        self.bridge(&passed, to);
    }

    fn bridge(&mut self, passed: &[Point<V>], to: Point<V>) {
        let Some(from) = self.start else {
            return self.emit(to);
        };
        let misses = |sample: &Point<V>| {
            let at = Fraction {
                elapsed: sample.time - from.time,
                length: to.time - from.time,
            };
            let line = V::linear(from.value, to.value, at);
            line.distance(sample.value) > self.max_error
        };
        if to.value.check().is_ok() && !passed.iter().any(misses) {
            return self.emit(to);
        }
        let middle = passed.len() / 2;
        let Some(&sample) = passed.get(middle) else {
            // Without samples in between, the value itself is not allowed.
            return;
        };
        self.bridge(&passed[..middle], sample);
        if sample.time < to.time {
            self.bridge(&passed[middle + 1..], to);
        }
    }

    fn emit(&mut self, point: Point<V>) {
        if self.holds
            && let Some(start) = self.start
        {
            self.keyframes.push_back(start.keyframe());
        }
        self.holds = false;
        self.start = Some(point);
        self.keyframes.push_back(point.keyframe());
    }
}

impl<V: Value> Point<V> {
    fn keyframe(self) -> Keyframe<V> {
        Keyframe::new(Time::from_micros(self.time), self.value)
    }
}

/// The range of values through which a line must pass at a time.
#[derive(Clone, Copy, Debug)]
struct Gate {
    time: i64,
    low: f64,
    high: f64,
}

/// The steepest and the flattest line through all gates. Every line between the two passes them, too.
#[derive(Clone, Copy, Debug)]
struct Lines {
    first: Gate,
    /// Value at the first gate, slope; `None` with one gate, which any slope passes.
    extremes: Option<[[f64; 2]; 2]>,
}

impl Lines {
    fn new(gate: Gate) -> Self {
        Self {
            first: gate,
            extremes: None,
        }
    }

    /// Adds a gate; `None` if no line passes all. The steepest line connects the low end of an earlier gate
    /// and the high end of a later one.
    fn narrowed(&self, gate: Gate, gates: impl Iterator<Item = Gate> + Clone) -> Option<Self> {
        let through =
            |value: f64, slope: f64| [value - slope * (gate.time - self.first.time) as f64, slope];
        let rise = |other: Gate, from: f64, to: f64| (to - from) / (gate.time - other.time) as f64;
        let steepest = || {
            let slopes = gates.clone().map(|other| rise(other, other.low, gate.high));
            through(gate.high, slopes.fold(f64::INFINITY, f64::min))
        };
        let flattest = || {
            let slopes = gates.clone().map(|other| rise(other, other.high, gate.low));
            through(gate.low, slopes.fold(f64::NEG_INFINITY, f64::max))
        };
        let Some([mut upper, mut lower]) = self.extremes else {
            let extremes = Some([steepest(), flattest()]);
            return Some(Self { extremes, ..*self });
        };
        let at = |[value, slope]: [f64; 2]| value + slope * (gate.time - self.first.time) as f64;
        if at(upper) < gate.low || at(lower) > gate.high {
            return None;
        }
        if at(upper) > gate.high {
            upper = steepest();
        }
        if at(lower) < gate.low {
            lower = flattest();
        }
        let extremes = Some([upper, lower]);
        Some(Self { extremes, ..*self })
    }

    /// The line between the extremes.
    fn middle(&self, time: i64) -> f64 {
        let [upper, lower] = self.at_and_slope(time);
        0.5 * (upper[0] + lower[0])
    }

    /// Value at a time and slope, of the steepest line and of the flattest.
    fn at_and_slope(&self, time: i64) -> [[f64; 2]; 2] {
        let elapsed = (time - self.first.time) as f64;
        match self.extremes {
            Some(lines) => lines.map(|[value, slope]| [value + slope * elapsed, slope]),
            None => [[0.5 * (self.first.low + self.first.high), 0.0]; 2],
        }
    }
}
