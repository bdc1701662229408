//! A plot of a few lines on logarithmic scales, as SVG.
#![allow(unreachable_pub, reason = "a module of a program of its own")]

use std::fmt::Write;

/// A line through points.
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// Lines over one axis.
pub struct Plot {
    pub title: String,
    /// Label of the horizontal axis.
    pub across: String,
    pub lines: Vec<Line>,
}

impl Plot {
    pub fn to_svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let across = Scale::over(points().map(|point| point.0), [LEFT, LEFT + WIDTH]);
        let up = Scale::over(points().map(|point| point.1), [TOP + HEIGHT, TOP]);
        let mut svg = format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 420" font-family="sans-serif" font-size="12" fill="#333">
<rect width="720" height="420" fill="#fff"/>
<text x="{LEFT}" y="24" font-size="15">{}</text>
<text x="{:.0}" y="408" text-anchor="middle">{}</text>
"##,
            self.title,
            LEFT + WIDTH / 2.0,
            self.across
        );
        // Writing into a string cannot fail.
        for decade in across.decades() {
            let x = across.at(decade);
            let _ = writeln!(
                svg,
                r##"<path d="M{x:.1} {TOP}V{:.1}" stroke="#ddd"/><text x="{x:.1}" y="{:.1}" text-anchor="middle">{decade}</text>"##,
                TOP + HEIGHT,
                TOP + HEIGHT + 16.0
            );
        }
        for decade in up.decades() {
            let y = up.at(decade);
            let _ = writeln!(
                svg,
                r##"<path d="M{LEFT} {y:.1}H{:.1}" stroke="#ddd"/><text x="{:.1}" y="{:.1}" text-anchor="end">{decade}</text>"##,
                LEFT + WIDTH,
                LEFT - 6.0,
                y + 4.0
            );
        }
        for (line, colour) in self.lines.iter().zip(COLOURS.iter().cycle()) {
            let position = |&(x, y): &(f64, f64)| format!("{:.1},{:.1}", across.at(x), up.at(y));
            let positions: Vec<String> = line.points.iter().map(position).collect();
            let _ = writeln!(
                svg,
                r##"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"##,
                positions.join(" ")
            );
            if let Some(&(_, last)) = line.points.last() {
                let _ = writeln!(
                    svg,
                    r##"<text x="{:.1}" y="{:.1}" fill="{colour}">{}</text>"##,
                    LEFT + WIDTH + 8.0,
                    up.at(last) + 4.0,
                    line.name
                );
            }
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// A logarithmic scale over whole decades.
struct Scale {
    low: i32,
    high: i32,
    ends: [f64; 2],
}

impl Scale {
    fn over(values: impl Iterator<Item = f64> + Clone, ends: [f64; 2]) -> Self {
        let logs = values.map(|value| value.max(1e-3).log10());
        let low = logs.clone().fold(f64::INFINITY, f64::min).floor() as i32;
        let high = logs.fold(f64::NEG_INFINITY, f64::max).ceil() as i32;
        Self {
            low,
            high: high.max(low + 1),
            ends,
        }
    }

    fn at(&self, value: f64) -> f64 {
        let share =
            (value.max(1e-3).log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        self.ends[0] + share * (self.ends[1] - self.ends[0])
    }

    fn decades(&self) -> impl Iterator<Item = f64> {
        (self.low..=self.high).map(|power| 10f64.powi(power))
    }
}

const LEFT: f64 = 70.0;
const TOP: f64 = 40.0;
const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 330.0;
const COLOURS: [&str; 4] = ["#7a7a7a", "#c0392b", "#2471a3", "#1e8449"];
