//! Table 7.2 and the learning curve: the particle system by every method.

use std::io::{self, Write};

use prescient_sim::{
    baseline::{METHODS, MethodOptions},
    harness::{Measurement, RunOptions, Series},
};

use super::printed::PARTICLES;
use crate::{
    CommandError,
    measure::measure_one,
    table::{Table, number},
};

/// The table leaves out this many frames; the learning curve shows them.
const FIRST_FRAMES: usize = 10;

/// Prints the table and the curve.
pub(super) fn print(output: &mut impl Write) -> Result<(), CommandError> {
    let mut runs = Vec::new();
    let ours = METHODS
        .iter()
        .copied()
        .filter(|&method| method == "prescient");
    for method in PARTICLES.iter().map(|&(method, ..)| method).chain(ours) {
        let options = (RunOptions::default(), MethodOptions::default());
        let measured = measure_one("world:particles?ticks=1000", method, &options.0, &options.1)?;
        runs.push((method, measured));
    }
    print_table(&runs, output)?;
    print_curve(&runs, output)?;
    Ok(())
}

fn print_table(runs: &[(&str, Measurement)], output: &mut impl Write) -> io::Result<()> {
    writeln!(
        output,
        "Table 7.2, particle system, 1000 particles, frames 11 to 1000; in brackets as printed \
         (another machine)."
    )?;
    let headings = [
        "method",
        "bytes/frame",
        "deviation",
        "encode ms",
        "decode ms",
    ];
    let mut table = Table::new(&headings);
    for (method, measured) in runs {
        let printed = PARTICLES.iter().find(|row| row.0 == *method);
        let beside = |ours: Option<f64>, theirs: Option<f64>| {
            let theirs = theirs.map_or(String::new(), |theirs| format!(" ({theirs})"));
            format!("{}{theirs}", number(ours))
        };
        let bytes = later(&measured.bytes);
        let milliseconds = |series: &Series| later(series).mean().map(|us| us / 1000.0);
        table.row([
            method.to_string(),
            beside(bytes.mean(), printed.map(|row| row.1)),
            beside(bytes.deviation(), printed.map(|row| row.2)),
            beside(milliseconds(&measured.encode_us), printed.map(|row| row.3)),
            beside(milliseconds(&measured.decode_us), printed.map(|row| row.4)),
        ]);
    }
    table.print(output)?;
    writeln!(output)
}

fn print_curve(runs: &[(&str, Measurement)], output: &mut impl Write) -> io::Result<()> {
    writeln!(
        output,
        "Learning: bytes of the first ten frames (figure 7.2)"
    )?;
    let headings = (1..=FIRST_FRAMES).map(|frame| frame.to_string());
    let headings: Vec<String> = std::iter::once("frame".into()).chain(headings).collect();
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    for (method, measured) in runs {
        let frames = measured.bytes.values().iter().take(FIRST_FRAMES);
        table.row(std::iter::once(method.to_string()).chain(frames.map(f64::to_string)));
    }
    table.print(output)
}

fn later(series: &Series) -> Series {
    let mut later = Series::default();
    series
        .values()
        .iter()
        .skip(FIRST_FRAMES)
        .for_each(|&value| later.push(value));
    later
}
