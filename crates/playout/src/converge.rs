//! Mending wrong guesses without a jump.
//!
//! What is shown is the best present guess plus a *correction*: the distance that it was from it
//! when a newer sample told that it was wrong, which then shrinks to nothing. So every method of
//! showing mends its errors in the same way, and always towards what is right now.

use std::time::Duration;

use prescient_schema::{Converge, Show};

/// How fast corrections shrink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// After this time, a third of an exponential correction (1/e) is left.
    pub exponential: Duration,
    /// How long a blend or a cubic takes.
    pub blend: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            exponential: Duration::from_millis(100),
            blend: Duration::from_millis(250),
        }
    }
}

/// The correction of one number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Correction {
    /// The distance when the error was found, and how fast the old motion moved away from the new.
    distance: f64,
    speed: f64,
    /// Seconds since then.
    age: f64,
    settled: f64,
}

impl Correction {
    /// Adds an error: what was shown is `distance` from what should be, and moves away from it at
    /// `speed` per second. Beyond the declared limit, and if it is no number, the error is mended at
    /// once.
    pub fn add(&mut self, show: &Show, pace: &Pace, distance: f64, speed: f64) {
        let how = show.converge.unwrap_or(Converge::Exponential);
        let (before, moving) = (self.settled, self.speed_now(how, pace));
        let distance = before + distance;
        let limit = show.snap_beyond.unwrap_or(f64::INFINITY);
        let is_sound = distance.is_finite() && speed.is_finite() && distance.abs() <= limit;
        *self = Self::default();
        if is_sound && how != Converge::Snap {
            self.distance = distance;
            self.settled = distance;
            self.speed = moving + speed;
        }
    }

    /// Lets time pass; returns what is to be added to the guess.
    pub fn advance(&mut self, show: &Show, pace: &Pace, seconds: f64) -> f64 {
        if self.distance == 0.0 && self.speed == 0.0 {
            return 0.0;
        }
        self.age += seconds;
        let how = show.converge.unwrap_or(Converge::Exponential);
        self.settled = self.at(how, pace, self.age);
        let is_over = match how {
            Converge::Exponential => self.age > 20.0 * pace.exponential.as_secs_f64(),
            _ => self.age >= pace.blend.as_secs_f64(),
        };
        if is_over || !self.settled.is_finite() {
            *self = Self::default();
        }
        self.settled
    }

    /// What is to be added to the guess now.
    pub fn now(&self) -> f64 {
        self.settled
    }

    fn at(&self, how: Converge, pace: &Pace, age: f64) -> f64 {
        let blend = pace.blend.as_secs_f64();
        match how {
            Converge::Snap => 0.0,
            Converge::Exponential => {
                self.distance * libm::exp(-age / pace.exponential.as_secs_f64().max(SHORTEST))
            }
            _ if age >= blend => 0.0,
            Converge::Projective => (1.0 - age / blend) * (self.distance + self.speed * age),
            Converge::Cubic => {
                let (from, to) = ((self.distance, self.speed), (0.0, 0.0));
                crate::interpolate::hermite(from, to, blend, age / blend)
            }
        }
    }

    /// How fast the correction itself moves.
    fn speed_now(&self, how: Converge, pace: &Pace) -> f64 {
        if self.distance == 0.0 && self.speed == 0.0 {
            return 0.0;
        }
        let later = self.at(how, pace, self.age + SHORTEST);
        (later - self.at(how, pace, self.age)) / SHORTEST
    }
}

/// The exponentially smoothed moving average: a share `alpha` of what was received and the rest of
/// what is shown. Differences beyond the limit are taken over at once, and so is everything if
/// `alpha` is no share.
pub fn average(alpha: f64, limit: f64, shown: f64, received: f64) -> f64 {
    let is_share = (0.0..=1.0).contains(&alpha);
    if is_share && shown.is_finite() && (received - shown).abs() <= limit {
        return alpha * received + (1.0 - alpha) * shown;
    }
    received
}

/// Seconds over which speeds are measured.
const SHORTEST: f64 = 1e-4;

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Converge; 3] = [Converge::Exponential, Converge::Projective, Converge::Cubic];

    fn show(converge: Converge, snap_beyond: Option<f64>) -> Show {
        Show {
            method: None,
            converge: Some(converge),
            snap_beyond,
        }
    }

    /// Fails if `add` forgets what was left of an earlier error (`before` left out), or if a
    /// correction never ends.
    #[test]
    fn a_correction_starts_where_it_was_seen_and_ends() {
        for how in ALL {
            let (show, pace) = (show(how, None), Pace::default());
            let mut correction = Correction::default();
            correction.add(&show, &pace, 2.0, 0.0);
            assert_eq!(correction.now(), 2.0);
            let before = correction.advance(&show, &pace, 0.05);
            assert!(before < 2.0 && before > 0.0);
            correction.add(&show, &pace, -0.5, 0.0);
            assert_eq!(correction.now(), before - 0.5);
            for _ in 0..300 {
                correction.advance(&show, &pace, 0.01);
            }
            assert_eq!(correction.now(), 0.0);
        }
    }

    /// A cubic leaves with the old motion's speed; the others need not.
    ///
    /// Fails if `Cubic` ignores `speed`.
    #[test]
    fn a_cubic_leaves_with_the_old_speed() {
        let (show, pace) = (show(Converge::Cubic, None), Pace::default());
        let mut correction = Correction::default();
        correction.add(&show, &pace, 1.0, 3.0);
        let moved = correction.advance(&show, &pace, 0.001) - 1.0;
        assert!((moved - 0.003).abs() < 0.0002, "{moved}");
    }

    /// Fails if the limit is compared without `abs`, or if NaN passes it.
    #[test]
    fn errors_beyond_the_limit_and_no_numbers_are_mended_at_once() {
        let (show, pace) = (show(Converge::Exponential, Some(1.0)), Pace::default());
        for (distance, speed) in [(-1.5, 0.0), (f64::NAN, 0.0), (0.5, f64::INFINITY)] {
            let mut correction = Correction::default();
            correction.add(&show, &pace, distance, speed);
            assert_eq!(correction.now(), 0.0);
        }
        assert_eq!(average(0.25, 1.0, 4.0, 4.8), 4.2);
        assert_eq!(average(0.25, 1.0, 4.0, 5.1), 5.1);
        assert_eq!(average(f64::NAN, 1.0, 4.0, 4.5), 4.5);
    }
}
