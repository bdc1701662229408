//! Everything that has ticks: traces, built-in worlds, recordings and MCAP files, by one interface.

mod mcap_file;
mod played;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use prescient_schema::{FieldKind, Schema};
use prescient_sim::trace::{ClassHeader, FieldHeader, FieldType, Header};
use prescient_sim::world::{Source, SourceError};

pub(crate) use mcap_file::write_mcap;
use played::PlayedSource;
pub(crate) use played::open_recording;

/// The note of a recording that contains the header of the trace it was made from.
pub(crate) const TRACE_NOTE: &str = "trace";

/// Opens `world:NAME?options`, or a file of any kind that has ticks, recognised by its first bytes.
pub(crate) fn open(name: &str) -> Result<Box<dyn Source>, SourceError> {
    if name.starts_with("world:") {
        return prescient_sim::world::open(name);
    }
    let mut begin = [0; 8];
    let read = File::open(name).and_then(|mut file| file.read_exact(&mut begin));
    match &begin {
        _ if read.is_err() => prescient_sim::world::open(name),
        b"\x89PRSREC\n" => Ok(Box::new(PlayedSource::open(Path::new(name))?)),
        b"\x89MCAP0\r\n" => Ok(Box::new(mcap_file::McapSource::open(Path::new(name))?)),
        _ => prescient_sim::world::open(name),
    }
}

/// Whether a file is a recording.
pub(crate) fn is_recording(path: &Path) -> bool {
    let mut begin = [0; 8];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && begin == *b"\x89PRSREC\n"
}

fn other(path: &Path, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> SourceError {
    SourceError::Other {
        name: path.display().to_string(),
        error: error.into(),
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, SourceError> {
    std::fs::read(path).map_err(|error| SourceError::Open {
        name: path.display().to_string(),
        error,
    })
}

/// The header of a trace with the classes of a schema. Texts, lists and references are numbers there.
fn header(name: &str, schema: &Schema, tick_hz: f64) -> Header {
    let classes = schema.classes.iter().map(|class| {
        let names = |fields: &[u16]| {
            let field = |&at: &u16| class.fields[usize::from(at)].name.clone();
            fields.iter().map(field).collect::<Vec<_>>()
        };
        let fields = class.fields.iter().map(|field| {
            let (kind, values) = match &field.kind {
                FieldKind::Enum { values } => (FieldType::Enum, Some(*values)),
                FieldKind::Variant { names } => (FieldType::Enum, Some(names.len() as u32)),
                FieldKind::Bool => (FieldType::Bool, None),
                _ => (FieldType::Int, None),
            };
            let scale = match &field.kind {
                FieldKind::Step { step, .. } => Some(step.as_f64()),
                _ => None,
            };
            FieldHeader {
                name: field.name.clone(),
                kind,
                values,
                scale,
            }
        });
        ClassHeader {
            name: class.name.replace(char::is_whitespace, "_"),
            owner: class.owner.map(|at| names(&[at]).remove(0)),
            position: names(&class.position),
            fields: fields.collect(),
        }
    });
    Header {
        format: "trace/1".into(),
        name: name.into(),
        source: "a recording of prescient".into(),
        tick_hz: Some(tick_hz),
        classes: classes.collect(),
    }
}
