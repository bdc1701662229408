//! Sources of ticks: a recording or a synthetic world, named by one string.

use std::{collections::BTreeMap, fs::File, path::Path, sync::Arc};

use prescient_schema::Schema;

use super::{Change, Idle, Particles, Rts, Spawn, TickUpdate};
use crate::trace::{Header, Reader, TraceError};

/// A deterministic stream of ticks.
pub trait Source {
    /// Name and classes, as in the header of a trace.
    fn header(&self) -> &Header;

    /// The next tick, or `None` at the end.
    fn next_tick(&mut self) -> Result<Option<TickUpdate>, SourceError>;

    /// The schema of the header.
    fn schema(&self) -> Result<Arc<Schema>, SourceError> {
        let schema = self.header().schema().map_err(TraceError::from);
        Ok(Arc::new(schema.map_err(|error| self.failed(error))?))
    }

    /// Adds the name of the source to an error.
    fn failed(&self, error: TraceError) -> SourceError {
        SourceError::Trace {
            name: self.header().name.clone(),
            error,
        }
    }
}

/// Why a source cannot be opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The file cannot be opened.
    #[error("{name}: {error}")]
    Open {
        /// The path as given.
        name: String,
        /// The cause.
        error: std::io::Error,
    },
    /// The file is not a valid trace.
    #[error("{name}: {error}")]
    Trace {
        /// The path as given.
        name: String,
        /// Line and reason.
        error: TraceError,
    },
    /// A source outside this crate failed.
    #[error("{name}: {error}")]
    Other {
        /// The path as given.
        name: String,
        /// The cause.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No such synthetic world.
    #[error("unknown world {0:?}; there are world:particles, world:rts and world:idle")]
    UnknownWorld(String),
    /// The part after `?` is invalid.
    #[error("cannot read {0:?}; expected name=number with one of seed, ticks, count, moving")]
    Option(String),
}

/// The options of a synthetic world: `world:rts?seed=7&ticks=500&count=100`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorldSpec {
    /// Seed of all random decisions.
    pub seed: u64,
    /// Number of ticks; the world's own default if absent.
    pub ticks: Option<u64>,
    /// Number of entities (of those at rest in `idle`); the world's own default if absent.
    pub count: Option<u64>,
    /// Number of moving entities in `idle`; its own default if absent.
    pub moving: Option<u64>,
}

impl WorldSpec {
    fn parse(text: &str) -> Result<Self, SourceError> {
        let mut spec = Self {
            seed: 1,
            ..Self::default()
        };
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let bad = || SourceError::Option(part.to_owned());
            let (name, value) = part.split_once('=').ok_or_else(bad)?;
            let value = value.parse().map_err(|_| bad())?;
            match name {
                "seed" => spec.seed = value,
                "ticks" => spec.ticks = Some(value),
                "count" => spec.count = Some(value),
                "moving" => spec.moving = Some(value),
                _ => return Err(bad()),
            }
        }
        Ok(spec)
    }
}

/// Opens `world:NAME?options` or the trace at this path.
pub fn open(name: &str) -> Result<Box<dyn Source>, SourceError> {
    let Some(world) = name.strip_prefix("world:") else {
        return Ok(Box::new(Recording::open(Path::new(name))?));
    };
    let (world, options) = world.split_once('?').unwrap_or((world, ""));
    let spec = WorldSpec::parse(options)?;
    match world {
        "particles" => Ok(Box::new(Particles::new(spec))),
        "rts" => Ok(Box::new(Rts::new(spec))),
        "idle" => Ok(Box::new(Idle::new(spec))),
        _ => Err(SourceError::UnknownWorld(world.to_owned())),
    }
}

/// A trace file.
pub struct Recording {
    name: String,
    reader: Reader<File>,
}

impl Recording {
    /// Opens the file and reads its header.
    pub fn open(path: &Path) -> Result<Self, SourceError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| SourceError::Open {
            name: name.clone(),
            error,
        })?;
        match Reader::new(file) {
            Ok(reader) => Ok(Self { name, reader }),
            Err(error) => Err(SourceError::Trace { name, error }),
        }
    }
}

impl Source for Recording {
    fn header(&self) -> &Header {
        self.reader.header()
    }

    fn next_tick(&mut self) -> Result<Option<TickUpdate>, SourceError> {
        self.reader.next_tick().map_err(|error| self.failed(error))
    }

    fn failed(&self, error: TraceError) -> SourceError {
        SourceError::Trace {
            name: self.name.clone(),
            error,
        }
    }
}

/// The last reported row of every entity, so that a synthetic world reports only changes.
#[derive(Default)]
pub(super) struct Rows(BTreeMap<u64, Vec<i64>>);

impl Rows {
    pub(super) fn spawn(&mut self, spawn: Spawn, update: &mut TickUpdate) {
        self.0.insert(spawn.id, spawn.row.clone());
        update.spawns.push(spawn);
    }

    pub(super) fn remove(&mut self, id: u64) {
        self.0.remove(&id);
    }

    pub(super) fn change(&mut self, id: u64, row: Vec<i64>, update: &mut TickUpdate) {
        let Some(known) = self.0.get_mut(&id) else {
            return;
        };
        let pairs = known.iter().zip(&row).enumerate();
        let values: Vec<_> = pairs
            .filter(|(_, (old, new))| old != new)
            .map(|(field, (_, &new))| (field as u16, new))
            .collect();
        if !values.is_empty() {
            *known = row;
            update.changes.push(Change { id, values });
        }
    }
}
