//! What one entity was at recent ticks, and what is shown of it now.

use std::marker::PhantomData;

use prescient_schema::{Declaration, NumberVisitor, State};

use crate::converge::{Correction, Pace};
use crate::error::TrackError;
use crate::interpolate::unit;
use crate::layout::Layout;
use crate::moment::Moment;
use crate::samples::{Place, Samples};

/// The samples of one entity, as numbers by column, and what is left to mend of earlier guesses.
///
/// Add every sample once ([`push`](Self::push)); ask for what is shown once per frame
/// ([`shown`](Self::shown)).
#[derive(Clone, Debug)]
pub struct Track<T> {
    samples: Samples,
    corrections: Vec<Correction>,
    /// Whether any correction is left.
    is_mending: bool,
    /// The last frame.
    last: Option<Moment>,
    state: PhantomData<fn() -> T>,
}

impl<T: State> Track<T> {
    /// A track without samples.
    pub fn new(layout: &Layout<T>) -> Self {
        Self {
            samples: Samples::new(layout.width()),
            corrections: vec![Correction::default(); layout.width()],
            is_mending: false,
            last: None,
            state: PhantomData,
        }
    }

    /// The tick of the newest sample.
    pub fn newest(&self) -> Option<u64> {
        self.samples.newest()
    }

    /// The number of samples that are kept. Those that no frame needs again are dropped.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.samples.len() == 0
    }

    /// Adds the sample of a tick. If what was shown in the last frame turns out to be wrong, the
    /// difference is what the next frames mend.
    pub fn push(&mut self, layout: &Layout<T>, tick: u64, mut sample: T) -> Result<(), TrackError> {
        if let Some(newest) = self.samples.newest().filter(|&newest| newest >= tick) {
            return Err(TrackError::NotLater { newest });
        }
        let mut numbers = vec![f64::NAN; layout.width()];
        let mut extract = Extract {
            column: 0,
            samples: &self.samples,
            numbers: &mut numbers,
        };
        visit(&mut sample, layout, &mut extract);
        let last = self.last.filter(|_| self.samples.len() > 0);
        let before = last.map(|last| self.guesses(layout, &mut sample, &last));
        self.samples.push(tick, &numbers);
        if let (Some(before), Some(last)) = (before, last) {
            let after = self.guesses(layout, &mut sample, &last);
            let mut mend = Mend {
                column: 0,
                before: &before,
                after: &after,
                pace: &layout.pace,
                corrections: &mut self.corrections,
            };
            visit(&mut sample, layout, &mut mend);
            self.is_mending = self.corrections.iter().any(|it| it.now() != 0.0);
        }
        Ok(())
    }

    /// What is shown in a frame: `sample` with its numbers replaced. Pass the newest sample whose
    /// tick is not after [`Moment::playback`], or without one the oldest: what is stepped remains as
    /// it is there. A track without samples returns `sample` unchanged.
    ///
    /// A frame that is earlier than the last one shows the past, as far as it is kept, and mends
    /// nothing.
    pub fn shown(&mut self, layout: &Layout<T>, mut sample: T, moment: &Moment) -> T {
        if self.samples.len() == 0 {
            return sample;
        }
        let mut draw = Draw {
            column: 0,
            guesses: Guesses::new(&self.samples, layout, moment),
            seconds: moment.seconds_since(self.last.as_ref()),
            pace: &layout.pace,
            corrections: match self.is_mending {
                true => &mut self.corrections,
                false => &mut [],
            },
            is_mending: false,
        };
        visit(&mut sample, layout, &mut draw);
        self.is_mending = draw.is_mending;
        self.last = Some(*moment);
        self.samples.drop_before(moment.playback);
        sample
    }

    /// What would be shown of each column without corrections, and how fast it moves per second.
    fn guesses(&self, layout: &Layout<T>, sample: &mut T, moment: &Moment) -> Vec<(f64, f64)> {
        let mut out = vec![(f64::NAN, 0.0); layout.width()];
        let earlier = moment.earlier(PROBE_TICKS);
        let mut note = Note {
            column: 0,
            now: Guesses::new(&self.samples, layout, moment),
            before: Guesses::new(&self.samples, layout, &earlier),
            seconds: PROBE_TICKS * moment.tick_seconds,
            out: &mut out,
        };
        visit(sample, layout, &mut note);
        out
    }
}

fn visit<T: State>(sample: &mut T, layout: &Layout<T>, visitor: &mut impl NumberVisitor) {
    sample.visit_numbers(&Declaration::PLAIN, layout.table(), visitor);
}

/// The values of a moment, without corrections.
struct Guesses<'a, T> {
    samples: &'a Samples,
    layout: &'a Layout<T>,
    place: Place<'a>,
    /// Ticks beyond the newest sample, where something is guessed.
    ahead: f64,
}

impl<'a, T: State> Guesses<'a, T> {
    fn new(samples: &'a Samples, layout: &'a Layout<T>, moment: &Moment) -> Self {
        let newest = samples.newest().unwrap_or_default() as f64;
        let limit = layout.max_ahead / moment.tick_seconds;
        Self {
            samples,
            layout,
            place: samples.place(moment.playback),
            ahead: (moment.present - newest).max(0.0).min(limit),
        }
    }

    fn number(&self, column: usize, how: &Declaration) -> Option<f64> {
        let velocity = self.layout.velocity_of(column);
        self.samples
            .number(column, &how.show, velocity, self.place, self.ahead)
    }

    fn rotation(&self, column: usize, how: &Declaration) -> Option<[f64; 4]> {
        self.samples
            .rotation(column, &how.show, self.place, self.ahead)
    }
}

/// Reads the numbers of a sample.
struct Extract<'a> {
    column: usize,
    samples: &'a Samples,
    numbers: &'a mut [f64],
}

impl NumberVisitor for Extract<'_> {
    fn skip(&mut self, columns: usize) {
        self.column += columns;
    }

    fn number(&mut self, _: &Declaration, value: f64) -> f64 {
        if let Some(cell) = self.numbers.get_mut(self.column) {
            *cell = value;
        }
        self.column += 1;
        value
    }

    fn rotation(&mut self, how: &Declaration, value: [f64; 4]) -> [f64; 4] {
        let aligned = self.samples.aligned(self.column, value);
        for part in aligned {
            self.number(how, part);
        }
        value
    }
}

/// Notes what would be shown, and how fast it moves.
struct Note<'a, T> {
    column: usize,
    now: Guesses<'a, T>,
    before: Guesses<'a, T>,
    seconds: f64,
    out: &'a mut [(f64, f64)],
}

impl<T: State> Note<'_, T> {
    fn put(&mut self, now: f64, before: f64) {
        if let Some(cell) = self.out.get_mut(self.column) {
            *cell = (now, (now - before) / self.seconds);
        }
        self.column += 1;
    }
}

impl<T: State> NumberVisitor for Note<'_, T> {
    fn skip(&mut self, columns: usize) {
        self.column += columns;
    }

    fn number(&mut self, how: &Declaration, value: f64) -> f64 {
        let now = self.now.number(self.column, how).unwrap_or(f64::NAN);
        let before = self.before.number(self.column, how).unwrap_or(now);
        self.put(now, before);
        value
    }

    fn rotation(&mut self, how: &Declaration, value: [f64; 4]) -> [f64; 4] {
        let now = self.now.rotation(self.column, how);
        let before = self.before.rotation(self.column, how).or(now);
        match (now, before) {
            (Some(now), Some(before)) => (0..4).for_each(|at| self.put(now[at], before[at])),
            _ => self.skip(4),
        }
        value
    }
}

/// Notes the difference between two guesses as what is to be mended.
struct Mend<'a> {
    column: usize,
    before: &'a [(f64, f64)],
    after: &'a [(f64, f64)],
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
        // A number that was not shown, or is not any more, leaves nothing to mend.
        if let (Some(before), Some(after)) = (self.before.get(at), self.after.get(at))
            && let Some(correction) = self.corrections.get_mut(at)
            && before != after
        {
            let (distance, speed) = (before.0 - after.0, before.1 - after.1);
            correction.add(&how.show, self.pace, distance, speed);
        }
        value
    }

    fn rotation(&mut self, how: &Declaration, value: [f64; 4]) -> [f64; 4] {
        value.map(|part| self.number(how, part))
    }
}

/// Replaces the numbers of a sample by what is shown.
struct Draw<'a, T> {
    column: usize,
    guesses: Guesses<'a, T>,
    seconds: f64,
    pace: &'a Pace,
    /// Empty if there is nothing to mend.
    corrections: &'a mut [Correction],
    /// Whether anything is left to mend.
    is_mending: bool,
}

impl<T: State> Draw<'_, T> {
    fn mend(&mut self, how: &Declaration) -> f64 {
        let correction = self.corrections.get_mut(self.column);
        self.column += 1;
        let mend = correction.map_or(0.0, |it| it.advance(&how.show, self.pace, self.seconds));
        self.is_mending |= mend != 0.0;
        mend
    }
}

impl<T: State> NumberVisitor for Draw<'_, T> {
    fn skip(&mut self, columns: usize) {
        self.column += columns;
    }

    fn number(&mut self, how: &Declaration, value: f64) -> f64 {
        let guess = self.guesses.number(self.column, how);
        let mend = self.mend(how);
        guess.map_or(value, |guess| guess + mend)
    }

    fn rotation(&mut self, how: &Declaration, value: [f64; 4]) -> [f64; 4] {
        let guess = self.guesses.rotation(self.column, how);
        let mend: [f64; 4] = std::array::from_fn(|_| self.mend(how));
        match guess {
            Some(guess) if mend == [0.0; 4] => guess,
            Some(guess) => unit(std::array::from_fn(|at| guess[at] + mend[at])),
            None => value,
        }
    }
}

/// Ticks over which the speed of a guess is measured.
const PROBE_TICKS: f64 = 1.0 / 64.0;
