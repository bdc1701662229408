//! Writes a trace, so that a synthetic world or a live session can be stored and measured again.

use std::io::{self, Write};

use super::Header;
use crate::world::TickUpdate;

/// Writes ticks after a header.
pub struct Writer<W: Write> {
    output: zstd::Encoder<'static, W>,
    classes: Vec<String>,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    pub fn new(output: W, header: &Header) -> io::Result<Self> {
        let mut output = zstd::Encoder::new(output, 9)?;
        writeln!(output, "{}", header.to_line())?;
        let classes = header
            .classes
            .iter()
            .map(|class| class.name.clone())
            .collect();
        Ok(Self { output, classes })
    }

    /// Writes one tick. The caller keeps ticks increasing and does not reuse ids too soon.
    pub fn write(&mut self, update: &TickUpdate) -> io::Result<()> {
        let output = &mut self.output;
        writeln!(output, "T {}", update.tick)?;
        for id in &update.despawns {
            writeln!(output, "- {id}")?;
        }
        for spawn in &update.spawns {
            write!(
                output,
                "+ {} {}",
                spawn.id,
                self.classes[usize::from(spawn.class)]
            )?;
            for value in &spawn.row {
                write!(output, " {value}")?;
            }
            writeln!(output)?;
        }
        for change in &update.changes {
            write!(output, "= {}", change.id)?;
            for (field, value) in &change.values {
                write!(output, " {field}:{value}")?;
            }
            writeln!(output)?;
        }
        Ok(())
    }

    /// Completes the file and returns the underlying writer.
    pub fn finish(self) -> io::Result<W> {
        self.output.finish()
    }
}
