//! Tables 6.1 and 6.2: the cost of coding a value by its bucket's frequency and uniform bits within
//! the bucket.

use std::io::{self, Write};

use super::printed::{COLUMNS, EXPONENTIAL, NORMAL};
use crate::table::Table;

/// Prints both tables.
pub(super) fn print(output: &mut impl Write) -> io::Result<()> {
    writeln!(
        output,
        "Bits per value by bucket scheme; in brackets as printed in the document.\n"
    )?;
    for (title, heading, printed, masses) in [
        (
            "Table 6.1, normal distributions",
            "deviation",
            &NORMAL,
            normal as fn(f64) -> Masses,
        ),
        (
            "Table 6.2, exponential distributions",
            "mean",
            &EXPONENTIAL,
            exponential,
        ),
    ] {
        let mut headings = vec![heading];
        headings.extend(COLUMNS);
        let mut table = Table::new(&headings);
        let mut largest: f64 = 0.0;
        for (index, printed) in printed.iter().enumerate() {
            let exponent = index as f64 / 2.0 - 2.0;
            let bits = masses(exponent.exp2()).bits();
            let mut cells = vec![format!("2^{exponent}")];
            for (ours, theirs) in bits.iter().zip(printed) {
                largest = largest.max((ours - theirs).abs());
                cells.push(format!("{ours:.3} ({theirs})"));
            }
            table.row(cells);
        }
        writeln!(output, "{title}")?;
        table.print(output)?;
        writeln!(output, "largest difference {largest:.4} bits\n")?;
    }
    Ok(())
}

/// Probabilities of the integers from 0 upwards; the negative side is the same if `mirrored`.
struct Masses {
    masses: Vec<f64>,
    mirrored: bool,
}

impl Masses {
    /// Entropy, and cost under each scheme, in the order of the columns.
    fn bits(&self) -> [f64; 6] {
        let sides = if self.mirrored { 2.0 } else { 1.0 };
        let information = |mass: f64| if mass > 0.0 { -mass * mass.log2() } else { 0.0 };
        let entropy = sides
            * self
                .masses
                .iter()
                .map(|&mass| information(mass))
                .sum::<f64>();
        let cost = |boundaries: Vec<u64>| {
            let buckets = boundaries.windows(2).map(|edges| {
                let edge = |edge: u64| (edge as usize).min(self.masses.len());
                let mass: f64 = self.masses[edge(edges[0])..edge(edges[1])].iter().sum();
                information(mass) + mass * ((edges[1] - edges[0]) as f64).log2()
            });
            sides * buckets.sum::<f64>()
        };
        [
            entropy,
            cost(scheme_124()),
            cost(scheme_94()),
            cost(scheme_64()),
            cost(scheme_48()),
            cost(scheme_32()),
        ]
    }
}

/// The floor of a normally distributed number.
fn normal(deviation: f64) -> Masses {
    let density = |x: f64| {
        (-0.5 * (x / deviation).powi(2)).exp() / (deviation * std::f64::consts::TAU.sqrt())
    };
    // Simpson's rule with steps well below the deviation.
    let steps = (2.0 * (16.0 / deviation).ceil()).max(2.0);
    let mass = |integer: usize| {
        let width = 1.0 / steps;
        let weighted = (0..=steps as usize).map(|step| {
            let weight = match step {
                0 => 1.0,
                _ if step == steps as usize => 1.0,
                _ if step % 2 == 1 => 4.0,
                _ => 2.0,
            };
            weight * density(integer as f64 + step as f64 * width)
        });
        weighted.sum::<f64>() * width / 3.0
    };
    let reach = (9.0 * deviation).ceil() as usize + 1;
    Masses {
        masses: (0..reach).map(mass).collect(),
        mirrored: true,
    }
}

/// The floor of an exponentially distributed number.
fn exponential(mean: f64) -> Masses {
    let reach = (40.0 * mean).ceil() as usize + 1;
    let share = -(-1.0 / mean).exp_m1();
    let mass = |integer: usize| (-(integer as f64) / mean).exp() * share;
    Masses {
        masses: (0..reach).map(mass).collect(),
        mirrored: false,
    }
}

/// Boundaries from zero to 2^31 of the positive half; the negative half mirrors it.
fn powers(first: f64, step: f64, steps: u32) -> Vec<u64> {
    let powers = (0..=steps).map(|index| (first + step * f64::from(index)).exp2().round() as u64);
    let mut boundaries: Vec<u64> = std::iter::once(0).chain(powers).collect();
    boundaries.dedup();
    boundaries
}

/// Table B.5.
fn scheme_124() -> Vec<u64> {
    powers(0.0, 0.5, 62)
}

/// Table B.4.
fn scheme_94() -> Vec<u64> {
    let mut boundaries = powers(1.0, 2.0 / 3.0, 45);
    boundaries.insert(1, 1);
    boundaries
}

/// Table B.3.
fn scheme_64() -> Vec<u64> {
    powers(0.0, 1.0, 31)
}

/// Table B.2.
fn scheme_48() -> Vec<u64> {
    powers(1.0 / 3.0, 4.0 / 3.0, 23)
}

/// Table B.1.
fn scheme_32() -> Vec<u64> {
    powers(1.0, 2.0, 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boundaries_are_those_of_the_appendix() {
        let schemes = [
            scheme_124(),
            scheme_94(),
            scheme_64(),
            scheme_48(),
            scheme_32(),
        ];
        for (boundaries, buckets) in schemes.iter().zip([124, 94, 64, 48, 32]) {
            assert_eq!(2 * (boundaries.len() - 1), buckets);
            assert_eq!(boundaries.last(), Some(&(1 << 31)));
        }
        assert_eq!(
            scheme_124()[..12],
            [0, 1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45]
        );
        assert_eq!(
            scheme_94()[..12],
            [0, 1, 2, 3, 5, 8, 13, 20, 32, 51, 81, 128]
        );
        assert_eq!(scheme_48()[..9], [0, 1, 3, 8, 20, 51, 128, 323, 813]);
        assert_eq!(scheme_32()[..5], [0, 2, 8, 32, 128]);
        assert!(scheme_94().contains(&1_352_829_926) && scheme_48().contains(&852_229_450));
        assert!(scheme_124().contains(&1_518_500_250) && scheme_124().contains(&11_863_283));
    }

    #[test]
    fn the_printed_tables_are_reproduced() {
        for (printed, masses) in [
            (&NORMAL, normal as fn(f64) -> Masses),
            (&EXPONENTIAL, exponential),
        ] {
            for (index, printed) in printed.iter().enumerate().step_by(6) {
                let bits = masses((index as f64 / 2.0 - 2.0).exp2()).bits();
                for (ours, theirs) in bits.iter().zip(printed) {
                    assert!(
                        (ours - theirs).abs() < 0.006,
                        "row {index}: {ours} for {theirs}"
                    );
                }
            }
        }
    }
}
