//! A plot of a few lines over linear axes, as SVG, for the pages of the book.

use std::fmt::Write;
use std::io;
use std::path::Path;

/// A line through points.
pub(super) struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// Lines over two axes.
pub(super) struct Plot {
    pub title: &'static str,
    pub across: &'static str,
    pub up: &'static str,
    pub lines: Vec<Line>,
}

impl Plot {
    /// Writes it into a folder.
    pub(super) fn write(&self, folder: &Path, name: &str) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join(name), self.to_svg())
    }

    fn to_svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let across = Scale::over(points().map(|point| point.0), [LEFT, LEFT + WIDTH]);
        let up = Scale::over(points().map(|point| point.1), [TOP + HEIGHT, TOP]);
        let mut svg = format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 420" font-family="sans-serif" font-size="12" fill="#333">
<rect width="720" height="420" fill="#fff"/>
<text x="{LEFT}" y="20" font-size="15">{}</text>
<text x="{:.0}" y="408" text-anchor="middle">{}</text>
<text x="{LEFT}" y="36">{}</text>
"##,
            self.title,
            LEFT + WIDTH / 2.0,
            self.across,
            self.up
        );
        // Writing into a string cannot fail.
        for mark in across.marks() {
            let x = across.at(mark);
            let _ = writeln!(
                svg,
                r##"<path d="M{x:.1} {TOP}V{:.1}" stroke="#ddd"/><text x="{x:.1}" y="{:.1}" text-anchor="middle">{mark}</text>"##,
                TOP + HEIGHT,
                TOP + HEIGHT + 16.0
            );
        }
        for mark in up.marks() {
            let y = up.at(mark);
            let _ = writeln!(
                svg,
                r##"<path d="M{LEFT} {y:.1}H{:.1}" stroke="#ddd"/><text x="{:.1}" y="{:.1}" text-anchor="end">{mark}</text>"##,
                LEFT + WIDTH,
                LEFT - 6.0,
                y + 4.0
            );
        }
        for (index, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let position = |&(x, y): &(f64, f64)| format!("{:.1},{:.1}", across.at(x), up.at(y));
            let positions: Vec<String> = line.points.iter().map(position).collect();
            let _ = writeln!(
                svg,
                r##"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"##,
                positions.join(" ")
            );
            let _ = writeln!(
                svg,
                r##"<text x="{:.1}" y="{:.1}" fill="{colour}">{}</text>"##,
                LEFT + WIDTH + 8.0,
                TOP + 14.0 + 18.0 * index as f64,
                line.name
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// A linear scale with a handful of round marks.
struct Scale {
    low: f64,
    high: f64,
    every: f64,
    ends: [f64; 2],
}

impl Scale {
    fn over(values: impl Iterator<Item = f64> + Clone, ends: [f64; 2]) -> Self {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(f64::NEG_INFINITY, f64::max);
        let span = (high - low).max(1e-9);
        let decade = 10f64.powf((span / 5.0).log10().floor());
        let factors = [1.0, 2.0, 5.0, 10.0];
        let enough = factors
            .iter()
            .find(|factor| span / (*factor * decade) <= 7.0);
        let every = enough.unwrap_or(&10.0) * decade;
        Self {
            low: (low / every).floor() * every,
            high: (high / every).ceil() * every,
            every,
            ends,
        }
    }

    fn at(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low).max(1e-9);
        self.ends[0] + share * (self.ends[1] - self.ends[0])
    }

    fn marks(&self) -> impl Iterator<Item = f64> {
        let count = ((self.high - self.low) / self.every).round() as u32;
        (0..=count).map(|number| {
            let mark = self.low + f64::from(number) * self.every;
            // Sums of decimals have tails.
            (mark * 1e6).round() / 1e6
        })
    }
}

const LEFT: f64 = 60.0;
const TOP: f64 = 46.0;
const WIDTH: f64 = 540.0;
const HEIGHT: f64 = 325.0;
const COLOURS: [&str; 6] = [
    "#7a7a7a", "#2471a3", "#c0392b", "#b7950b", "#7d3c98", "#1e8449",
];
