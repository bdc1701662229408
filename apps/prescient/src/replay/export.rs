//! Recordings in other formats.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use prescient_sim::trace::{Header, Writer};
use prescient_sim::world::{Source, TickUpdate, World};

use super::overlay;
use super::{ReplayError, ReplayOptions};
use crate::sources::{self, write_mcap};

/// Writes what the output's name says.
pub(super) fn export(options: &ReplayOptions, output: &Path) -> Result<(), ReplayError> {
    let name = output.display().to_string();
    if name.ends_with(".html") {
        let pages = overlay::page(options)?;
        std::fs::write(output, pages)?;
        return Ok(());
    }
    let mut source = sources::open(&options.file.display().to_string())?;
    if name.ends_with(".trace.zst") {
        let mut writer = Writer::new(File::create(output)?, source.header())?;
        while let Some(update) = source.next_tick()? {
            writer.write(&update)?;
        }
        writer.finish()?.flush()?;
        Ok(())
    } else if name.ends_with(".csv") {
        write_csv(source.as_mut(), BufWriter::new(File::create(output)?))
    } else if name.ends_with(".mcap") {
        let mut ticks: Vec<TickUpdate> = Vec::new();
        while let Some(update) = source.next_tick()? {
            ticks.push(update);
        }
        let file = BufWriter::new(File::create(output)?);
        Ok(write_mcap(source.header(), &ticks, file)?)
    } else {
        Err(ReplayError::Format(name))
    }
}

/// One line per changed value, in the field's unit.
fn write_csv(source: &mut dyn Source, mut output: impl Write) -> Result<(), ReplayError> {
    let header = source.header().clone();
    let hz = header.tick_hz.unwrap_or(1.0);
    let mut world = World::default();
    writeln!(output, "tick,seconds,entity,class,field,value")?;
    while let Some(update) = source.next_tick()? {
        let (tick, seconds) = (update.tick, update.tick as f64 / hz);
        let changed = update.changes.clone();
        let changes = world.apply(update);
        for id in &changes.despawned {
            writeln!(output, "{tick},{seconds},{id},,despawned,1")?;
        }
        let whole = changes.spawned.iter().map(|&id| (id, None));
        let parts = changed
            .into_iter()
            .map(|change| (change.id, Some(change.values)));
        for (id, values) in whole.chain(parts) {
            let Some(entity) = world.get(id) else {
                continue;
            };
            let values = values.unwrap_or_else(|| (0..).zip(entity.row.iter().copied()).collect());
            for (field, value) in values {
                let (class, name, text) = cell(&header, entity.class, field, value);
                writeln!(output, "{tick},{seconds},{id},{class},{name},{text}")?;
            }
        }
    }
    output.flush()?;
    Ok(())
}

fn cell(header: &Header, class: u16, field: u16, value: i64) -> (String, String, String) {
    let class = &header.classes[usize::from(class)];
    let field = &class.fields[usize::from(field)];
    let text = match field.scale {
        Some(scale) => (value as f64 * scale).to_string(),
        None => value.to_string(),
    };
    (quoted(&class.name), quoted(&field.name), text)
}

/// A text as a cell of a table.
fn quoted(text: &str) -> String {
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
