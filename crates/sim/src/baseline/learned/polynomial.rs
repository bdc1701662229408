//! Polynomial predictors over any set of past ticks, in integers.
//!
//! The polynomial through the newest samples of an entity, evaluated at the tick to predict, is a
//! dot product with coefficients that depend on the ticks alone (the document's rows of the
//! inverse Vandermonde matrix). They are computed once per packet as fractions with one
//! denominator, which is 1 whenever the ticks are consecutive.

/// The predictor through `coefficients.len()` samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Polynomial {
    coefficients: Vec<i64>,
    denominator: i64,
}

impl Polynomial {
    /// For samples `ago` ticks before, newest first. `None` if the coefficients are too large for
    /// exact arithmetic; both ends compute the same.
    pub(super) fn new(ago: &[u64]) -> Option<Self> {
        let mut fractions = Vec::new();
        let mut denominator = 1i128;
        for (j, &own) in ago.iter().enumerate() {
            let (mut numerator, mut divisor) = (1i128, 1i128);
            for (k, &other) in ago.iter().enumerate() {
                if k != j {
                    numerator = numerator.checked_mul(i128::from(other))?;
                    divisor = divisor.checked_mul(i128::from(other) - i128::from(own))?;
                }
            }
            let common = gcd(numerator, divisor) * divisor.signum();
            let (numerator, divisor) = (numerator / common, divisor / common);
            denominator = (denominator / gcd(denominator, divisor)).checked_mul(divisor)?;
            fractions.push((numerator, divisor));
        }
        let room = 1 << 40;
        let scaled = fractions.iter().map(|&(numerator, divisor)| {
            let coefficient = numerator.checked_mul(denominator / divisor)?;
            (coefficient.abs() < room).then_some(coefficient as i64)
        });
        let coefficients = scaled.collect::<Option<Vec<_>>>()?;
        (denominator < room).then_some(Self {
            coefficients,
            denominator: denominator as i64,
        })
    }

    /// The prediction from as many samples as there are coefficients, newest first. Rounds half up;
    /// wraps at 64 bits.
    pub(super) fn predict(&self, samples: &[i64]) -> i64 {
        let pairs = self.coefficients.iter().zip(samples);
        if self.denominator == 1 {
            let product = |(&coefficient, &sample): (&i64, &i64)| coefficient.wrapping_mul(sample);
            return pairs.map(product).fold(0, i64::wrapping_add);
        }
        let product = |(&coefficient, &sample)| i128::from(coefficient) * i128::from(sample);
        let sum: i128 = pairs.map(product).sum();
        let denominator = i128::from(self.denominator);
        (2 * sum + denominator).div_euclid(2 * denominator) as i64
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_polynomial_of_its_own_order_is_predicted_exactly() {
        let curves: [fn(i64) -> i64; 4] = [
            |_| -7,
            |t| 3 * t - 2,
            |t| t * t - 9 * t,
            |t| t * t * t - 2 * t,
        ];
        for ago in [[1, 2, 3, 4], [3, 4, 5, 6], [2, 5, 6, 11], [1, 7, 20, 300]] {
            for (order, curve) in curves.iter().enumerate() {
                for samples in order + 1..=4 {
                    let polynomial = Polynomial::new(&ago[..samples]).unwrap();
                    let now = 1000;
                    let values = ago[..samples].iter().map(|&ago| curve(now - ago as i64));
                    let values: Vec<i64> = values.collect();
                    assert_eq!(polynomial.predict(&values), curve(now), "{ago:?} {order}");
                }
            }
        }
    }

    #[test]
    fn consecutive_ticks_need_no_division() {
        let coefficients = |ago: &[u64]| Polynomial::new(ago).unwrap().coefficients;
        assert_eq!(coefficients(&[1, 2, 3, 4]), [4, -6, 4, -1]);
        assert_eq!(coefficients(&[3, 4, 5]), [10, -15, 6]);
        assert_eq!(Polynomial::new(&[2, 4, 6]).unwrap().denominator, 1);
        assert!(Polynomial::new(&[1, 4095, 4096, 2048]).is_some_and(|p| p.denominator > 1));
    }
}
