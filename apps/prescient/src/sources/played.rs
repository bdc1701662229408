//! A recording as a source of ticks.

use std::path::Path;
use std::sync::Arc;

use prescient_recording::{Player, RecordedEntity, RecordedId, Recording};
use prescient_sim::trace::Header;
use prescient_sim::world::{Change, Source, SourceError, Spawn, TickUpdate};

use super::{TRACE_NOTE, header, other, read_file};

/// Plays a recording from its first tick to its last.
pub(crate) struct PlayedSource {
    name: String,
    header: Header,
    player: Player,
    before: Vec<(RecordedId, RecordedEntity)>,
}

impl PlayedSource {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> Result<Self, SourceError> {
        let recording = open_recording(path)?;
        let name = path
            .file_stem()
            .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let note = recording.info().note(TRACE_NOTE);
        let header = match note.and_then(|line| Header::parse(line).ok()) {
            Some(header) => header,
            None => {
                let seconds = recording.info().tick_interval.as_secs_f64();
                let hz = if seconds > 0.0 { 1.0 / seconds } else { 0.0 };
                header(&name, &recording.info().schema, hz)
            }
        };
        Ok(Self {
            name: path.display().to_string(),
            header,
            player: Player::new(recording),
            before: Vec::new(),
        })
    }
}

/// Reads a recording, and prints what of it is damaged.
pub(crate) fn open_recording(path: &Path) -> Result<Arc<Recording>, SourceError> {
    let recording = Recording::open(read_file(path)?).map_err(|error| other(path, error))?;
    for damage in recording.damage() {
        eprintln!("prescient: {}: {damage}", path.display());
    }
    Ok(Arc::new(recording))
}

impl Source for PlayedSource {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_tick(&mut self) -> Result<Option<TickUpdate>, SourceError> {
        let failed = |error: prescient_recording::PlayError| SourceError::Other {
            name: self.name.clone(),
            error: error.into(),
        };
        let Some(tick) = self.player.step_forward().map_err(failed)? else {
            return Ok(None);
        };
        let mut update = TickUpdate::at(tick);
        let mut before = std::mem::take(&mut self.before).into_iter().peekable();
        let now = self.player.entities();
        self.before = now.map(|(id, entity)| (id, entity.clone())).collect();
        for (id, entity) in &self.before {
            while let Some((gone, _)) = before.next_if(|(old, _)| old < id) {
                update.despawns.push(gone.0);
            }
            let old = before.next_if(|(old, _)| old == id).map(|(_, old)| old);
            match old {
                Some(old) if old.class == entity.class => {
                    let pairs = (0..).zip(entity.row.iter().zip(&old.row));
                    let changed = pairs.filter(|(_, (new, old))| new != old);
                    let values: Vec<_> = changed.map(|(at, (&new, _))| (at, new)).collect();
                    if !values.is_empty() {
                        update.changes.push(Change { id: id.0, values });
                    }
                }
                old => {
                    update.despawns.extend(old.map(|_| id.0));
                    update.spawns.push(Spawn {
                        id: id.0,
                        class: entity.class,
                        row: entity.row.clone(),
                    });
                }
            }
        }
        update.despawns.extend(before.map(|(gone, _)| gone.0));
        Ok(Some(update))
    }
}
