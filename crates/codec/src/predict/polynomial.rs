//! Fits polynomials to past samples in exact integer arithmetic.
//!
//! A prediction is `(n₀·f₀ + n₁·f₁ + …) / d`. The integer weights depend only on the times of the
//! samples, so they are computed once per set of ticks. Times are offsets from the predicted tick,
//! which makes the predicted value the constant term of the polynomial, and its derivatives the
//! further ones.

use alloc::vec::Vec;

/// Integer weights over samples: the value is the weighted sum divided by `denominator`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Weights {
    /// One per sample, in the order of the samples.
    pub numerators: Vec<i64>,
    /// Positive.
    pub denominator: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolynomialError {
    /// Two samples have the same time, or there are fewer samples than coefficients.
    Underdetermined,
    /// The order or the times are too large for exact 64-bit weights.
    TooLarge,
}

/// Weights for the `derivative`-th derivative, at time 0, of the polynomial with `coefficients`
/// coefficients that fits the samples best (exactly, if there are as many samples as
/// coefficients; by least squares, if there are more). `offsets` are sample times relative to the
/// predicted tick; derivative 0 is the prediction itself, per tick for higher ones.
pub(crate) fn fit(
    offsets: &[i32],
    coefficients: usize,
    derivative: usize,
) -> Result<Weights, PolynomialError> {
    let values: Vec<Constraint> = offsets
        .iter()
        .map(|&at| Constraint { at, derivative: 0 })
        .collect();
    fit_constraints(&values, coefficients, derivative)
}

/// A value or derivative of the curve at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Constraint {
    /// Time relative to the predicted tick.
    pub at: i32,
    /// 0 for the value, 1 for its rate of change, …
    pub derivative: u32,
}

/// As [`fit`], with derivatives among the samples, which raise the order without older samples.
pub(crate) fn fit_constraints(
    constraints: &[Constraint],
    coefficients: usize,
    derivative: usize,
) -> Result<Weights, PolynomialError> {
    if coefficients == 0 || coefficients > MAX_COEFFICIENTS || constraints.len() > MAX_SAMPLES {
        return Err(PolynomialError::TooLarge);
    }
    if constraints.len() < coefficients {
        return Err(PolynomialError::Underdetermined);
    }
    if constraints.iter().any(|c| c.at.unsigned_abs() > MAX_OFFSET) {
        return Err(PolynomialError::TooLarge);
    }
    if derivative >= coefficients {
        return Ok(Weights {
            numerators: alloc::vec![0; constraints.len()],
            denominator: 1,
        });
    }
    // Rows of S: d^k/ds^k of (1, s, s², …) at each sample time.
    let rows: Vec<Vec<i128>> = constraints
        .iter()
        .map(|c| {
            (0..coefficients as u32)
                .map(|power| monomial(c.at, power, c.derivative))
                .collect()
        })
        .collect();
    // Normal equations: S'S b = S' f. With as many samples as coefficients this is the exact
    // solution; one integer method serves both.
    let exact = constraints.len() == coefficients;
    let (matrix, right): (Vec<Vec<i128>>, Vec<Vec<i128>>) = if exact {
        let identity = (0..coefficients)
            .map(|i| (0..coefficients).map(|j| i128::from(i == j)).collect())
            .collect();
        (rows, identity)
    } else {
        let product = |i: usize, j: usize| rows.iter().map(|row| row[i] * row[j]).sum();
        let normal = (0..coefficients)
            .map(|i| (0..coefficients).map(|j| product(i, j)).collect())
            .collect();
        let transposed = (0..coefficients)
            .map(|i| rows.iter().map(|row| row[i]).collect())
            .collect();
        (normal, transposed)
    };
    let (row, denominator) = solve_row(matrix, right, derivative)?;
    let factor: i128 = (1..=derivative as i128).product();
    reduce(row.into_iter().map(|n| n.checked_mul(factor)), denominator)
}

/// `d^k/ds^k` of `s^power` at `at`.
fn monomial(at: i32, power: u32, k: u32) -> i128 {
    if k > power {
        return 0;
    }
    let factor: i128 = ((power - k + 1)..=power).map(i128::from).product();
    factor * i128::from(at).pow(power - k)
}

/// Row `wanted` of `matrix⁻¹ · right` over a common denominator, by fraction-free elimination.
fn solve_row(
    mut matrix: Vec<Vec<i128>>,
    mut right: Vec<Vec<i128>>,
    wanted: usize,
) -> Result<(Vec<i128>, i128), PolynomialError> {
    let n = matrix.len();
    let mut previous = 1i128;
    for pivot in 0..n {
        let Some(found) = (pivot..n).find(|&row| matrix[row][pivot] != 0) else {
            return Err(PolynomialError::Underdetermined);
        };
        matrix.swap(pivot, found);
        right.swap(pivot, found);
        let (pivot_row, pivot_right) = (matrix[pivot].clone(), right[pivot].clone());
        let head = pivot_row[pivot];
        for row in (0..n).filter(|&row| row != pivot) {
            let scale = matrix[row][pivot];
            let combine = |target: &mut i128, source: i128| {
                let kept = target.checked_mul(head)?;
                let taken = source.checked_mul(scale)?;
                *target = kept.checked_sub(taken)? / previous;
                Some(())
            };
            for (target, &source) in matrix[row].iter_mut().zip(&pivot_row) {
                combine(target, source).ok_or(PolynomialError::TooLarge)?;
            }
            for (target, &source) in right[row].iter_mut().zip(&pivot_right) {
                combine(target, source).ok_or(PolynomialError::TooLarge)?;
            }
        }
        previous = head;
    }
    Ok((right.swap_remove(wanted), matrix[wanted][wanted]))
}

fn reduce(
    numerators: impl Iterator<Item = Option<i128>>,
    denominator: i128,
) -> Result<Weights, PolynomialError> {
    let sign = denominator.signum();
    let wide: Vec<i128> = numerators
        .map(|n| {
            n.and_then(|n| n.checked_mul(sign))
                .ok_or(PolynomialError::TooLarge)
        })
        .collect::<Result<_, _>>()?;
    let denominator = denominator.checked_abs().ok_or(PolynomialError::TooLarge)?;
    let common = wide.iter().fold(denominator, |a, &b| gcd(a, b));
    let narrow = |n: i128| i64::try_from(n / common).map_err(|_| PolynomialError::TooLarge);
    Ok(Weights {
        numerators: wide.into_iter().map(narrow).collect::<Result<_, _>>()?,
        denominator: narrow(denominator)?,
    })
}

pub(super) fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    (a as i128).max(1)
}

/// Polynomials of degree up to 5.
pub(crate) const MAX_COEFFICIENTS: usize = 6;
const MAX_SAMPLES: usize = 32;
/// Farthest sample, in ticks.
const MAX_OFFSET: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    impl Weights {
        /// The weighted sum of `samples`, divided and rounded to nearest (ties towards +∞),
        /// saturating at the ends of `i64`.
        fn apply(&self, samples: &[i64]) -> i64 {
            let terms = self.numerators.iter().zip(samples);
            let sum = terms
                .map(|(&weight, &sample)| i128::from(weight) * i128::from(sample))
                .fold(0, i128::saturating_add);
            let denominator = i128::from(self.denominator);
            let twice = sum.saturating_mul(2).saturating_add(denominator);
            let rounded = twice.div_euclid(2 * denominator);
            rounded.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
        }
    }

    #[test]
    fn a_polynomial_is_predicted_exactly_from_any_ticks() {
        let f = |t: i64| 3 * t * t * t - 7 * t * t + 2 * t - 40;
        let f1 = |t: i64| 9 * t * t - 14 * t + 2;
        for now in [0i64, 10, 1000] {
            for offsets in [[-1, -2, -3, -4], [-6, -7, -9, -30], [5, -1, -2, -40]] {
                let samples: Vec<i64> = offsets.iter().map(|&o| f(now + i64::from(o))).collect();
                assert_eq!(fit(&offsets, 4, 0).unwrap().apply(&samples), f(now));
                assert_eq!(fit(&offsets, 4, 1).unwrap().apply(&samples), f1(now));
            }
        }
    }

    #[test]
    fn least_squares_averages_noise_and_keeps_the_line() {
        let offsets = [-1, -2, -3, -4, -5];
        let line: Vec<i64> = offsets.iter().map(|&o| 100 + 7 * i64::from(o)).collect();
        assert_eq!(fit(&offsets, 2, 0).unwrap().apply(&line), 100);
        assert_eq!(fit(&offsets, 1, 0).unwrap().apply(&[10, 12, 8, 11, 9]), 10);
    }

    #[test]
    fn explicit_derivatives_raise_the_order() {
        // Two values and two rates determine a cubic (equation 5.38 of the learned protocol).
        let f = |t: i64| t * t * t - 2 * t;
        let f1 = |t: i64| 3 * t * t - 2;
        let constraints = [(-1, 0), (-2, 0), (-1, 1), (-2, 1)]
            .map(|(at, derivative)| Constraint { at, derivative });
        let weights = fit_constraints(&constraints, 4, 0).unwrap();
        for now in [-5i64, 0, 9] {
            let samples = [f(now - 1), f(now - 2), f1(now - 1), f1(now - 2)];
            assert_eq!(weights.apply(&samples), f(now));
        }
    }

    #[test]
    fn impossible_fits_are_refused() {
        assert_eq!(fit(&[-1, -1], 2, 0), Err(PolynomialError::Underdetermined));
        assert_eq!(fit(&[-1], 2, 0), Err(PolynomialError::Underdetermined));
        assert_eq!(fit(&[-1; 40], 2, 0), Err(PolynomialError::TooLarge));
        assert_eq!(fit(&[i32::MIN, -1], 2, 0), Err(PolynomialError::TooLarge));
        let rates = [-1, -2, -3].map(|at| Constraint { at, derivative: 1 });
        assert_eq!(
            fit_constraints(&rates, 3, 0),
            Err(PolynomialError::Underdetermined)
        );
    }

    #[test]
    fn extreme_samples_saturate() {
        let weights = fit(&[-1, -2], 2, 0).unwrap();
        assert_eq!(weights.apply(&[i64::MAX, i64::MIN]), i64::MAX);
        assert_eq!(weights.apply(&[i64::MIN, i64::MAX]), i64::MIN);
    }
}
