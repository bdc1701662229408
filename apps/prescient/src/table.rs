//! Text tables whose columns line up.

use std::io::{self, Write};

use crate::colour;
use crate::text::COLUMNS;

/// Rows of cells; the first column is left-aligned, the others right-aligned.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self {
            rows: vec![headings.iter().map(|heading| heading.to_string()).collect()],
        }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Prints it, to standard output. Columns beyond the width of a terminal follow below, again with
    /// the first one.
    pub(crate) fn print(&self, output: &mut impl Write) -> io::Result<()> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let (mut shown, mut width) = (vec![0], widths.first().copied().unwrap_or(0));
        for (column, more) in widths.iter().enumerate().skip(1) {
            if width + 2 + more > COLUMNS && shown.len() > 1 {
                self.print_columns(&shown, &widths, output)?;
                (shown, width) = (vec![0], widths[0]);
            }
            shown.push(column);
            width += 2 + more;
        }
        self.print_columns(&shown, &widths, output)
    }

    fn print_columns(
        &self,
        columns: &[usize],
        widths: &[usize],
        output: &mut impl Write,
    ) -> io::Result<()> {
        for (at, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for &column in columns {
                let (Some(cell), Some(&width)) = (row.get(column), widths.get(column)) else {
                    continue;
                };
                let padded = if column == 0 {
                    format!("{cell:<width$}")
                } else {
                    format!("  {cell:>width$}")
                };
                line.push_str(&padded);
            }
            match at {
                0 => writeln!(output, "{}", colour::heading(line.trim_end()))?,
                _ => writeln!(output, "{}", line.trim_end())?,
            }
        }
        Ok(())
    }
}

/// A number of bytes in a unit that fits, rounded.
pub(crate) fn byte_text(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        _ if bytes < 1e3 => format!("{bytes} B"),
        _ if bytes < 1e6 => format!("{} kB", number(Some(bytes / 1e3))),
        _ => format!("{} MB", number(Some(bytes / 1e6))),
    }
}

/// A number rounded to about three digits, or a dash.
pub(crate) fn number(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(value) if value.abs() >= 100.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}
