//! Rates of change that follow from the samples themselves, for nothing.
//!
//! A polynomial through some samples has derivatives, and they are those of the value as far as it
//! is one. Both functions use the newest sample, too, not only those before it.

/// A value at a tick.
pub(crate) type Point = (f64, f64);

/// The rate of change at a sample between two others, from how far the value moves before and after
/// it and in how many ticks, for a curve that does not overshoot: zero where the value turns back,
/// and elsewhere the harmonic mean of both slopes, weighted by their lengths.
pub(crate) fn rate_between((left, short): (f64, f64), (right, long): (f64, f64)) -> f64 {
    if left * right <= 0.0 {
        return 0.0;
    }
    let (weight, other) = (2.0 * long + short, long + 2.0 * short);
    // (weight + other) / (weight / (left / short) + other / (right / long)), with one division.
    (weight + other) * left * right / (weight * short * right + other * long * left)
}

/// The first and second derivative at the newest sample, from the polynomial through the newest
/// ones, newest first: a parabola through three, a line through two.
pub(crate) fn at_newest(newest: Point, before: Option<Point>, oldest: Option<Point>) -> (f64, f64) {
    let Some(before) = before else {
        return (0.0, 0.0);
    };
    let near = (newest.1 - before.1) / (newest.0 - before.0);
    let Some(oldest) = oldest else {
        return (near, 0.0);
    };
    let far = (before.1 - oldest.1) / (before.0 - oldest.0);
    let bend = 2.0 * (near - far) / (newest.0 - oldest.0);
    (near + bend * (newest.0 - before.0) / 2.0, bend)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the parabola's middle is taken for its end (`near + …` without the bend).
    #[test]
    fn a_parabola_is_known_exactly_at_uneven_ticks() {
        let at = |t: f64| (t, 1.0 - 2.0 * t + 3.0 * t * t);
        let (rate, bend) = at_newest(at(9.0), Some(at(7.0)), Some(at(6.0)));
        assert!((rate - 52.0).abs() < 1e-9 && (bend - 6.0).abs() < 1e-9);
    }

    /// Fails if the sign test is left out: the curve then swings beyond its highest sample.
    #[test]
    fn a_curve_does_not_overshoot_where_it_turns() {
        assert_eq!(rate_between((5.0, 1.0), (-1.0, 1.0)), 0.0);
        let straight = rate_between((2.0, 1.0), (6.0, 3.0));
        assert!((straight - 2.0).abs() < 1e-12);
        let bent = rate_between((1.0, 1.0), (8.0, 2.0));
        assert!(bent > 1.0 && bent < 3.0, "{bent}");
    }
}
