//! Recording a server's world, or what a client shows.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use prescient_codec::history::{Archive, CaptureError};
use prescient_codec::{HISTORY, Slot};
use prescient_recording::{
    RecordError, Recorder, RecorderStatistics, RecordingConfig, RecordingConfigError,
};
use prescient_replication::{EntityHandle, World};
use prescient_schema::{Content, Parcel, Schema, Shape};

use crate::client::Client;
use crate::server::Server;

/// Why a recording ended early.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file cannot be written. What was written before can be played.
    #[error("cannot write the recording: {0}")]
    Write(#[from] io::Error),
    /// A tick cannot be encoded.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A setting cannot work. Nothing was written.
    #[error(transparent)]
    Config(#[from] RecordingConfigError),
    /// What a client shows cannot be captured.
    #[error("cannot capture what the client shows: {0}")]
    Capture(#[from] CaptureError),
    /// The client shows an entity of a type that the schema does not have.
    #[error("the schema has no class {0:?}")]
    UnknownClass(String),
}

prescient_schema::debug_as_display!(RecordingError);

/// A recording that a server writes.
pub(crate) struct ServerRecording {
    /// `None` once it was finished.
    recorder: Option<Recorder>,
    output: Box<dyn Write + Send>,
    error: Option<RecordingError>,
}

impl ServerRecording {
    /// Records the newest tick of a world, if there is a new one.
    pub(crate) fn record(&mut self, world: &World) {
        let Some(recorder) = self.recorder.as_mut().filter(|_| self.error.is_none()) else {
            return;
        };
        let recorded = match recorder.record(world.archive()) {
            Ok(()) | Err(RecordError::NothingNew) => Ok(()),
            Err(error) => Err(error.into()),
        };
        let written = recorded.and_then(|()| {
            let bytes = recorder.take_bytes();
            self.output.write_all(&bytes).map_err(RecordingError::from)
        });
        self.error = written.err();
    }

    fn finish(&mut self) -> Result<RecorderStatistics, RecordingError> {
        let Some(recorder) = self.recorder.take() else {
            return Ok(RecorderStatistics::default());
        };
        let statistics = recorder.statistics();
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let rest = recorder.finish();
        self.output.write_all(&rest)?;
        self.output.flush()?;
        Ok(RecorderStatistics {
            bytes: statistics.bytes + rest.len() as u64,
            ..statistics
        })
    }
}

impl Drop for ServerRecording {
    fn drop(&mut self) {
        // There is no caller to report an error to, and the file can be played up to it.
        let _ = self.finish();
    }
}

impl Server {
    /// Records all of the first world into a file, from the next [`send`](Self::send) on, until the
    /// server is dropped or [`stop_recording`](Self::stop_recording). Replaces an earlier recording.
    ///
    /// Every `send` writes the new tick, as soon as a block of ticks is complete: for a program that is
    /// killed, at most the last 32 ticks are missing. See [`recording`](crate::recording) for opening
    /// and playing it.
    ///
    /// ```no_run
    /// # use prescient::{Everything, Schema, Server, State};
    /// # #[derive(State)]
    /// # struct Crate { #[state(step = 0.01, position)] position: [f32; 3] }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let mut server = Server::offline(Schema::of::<Crate>()?, Everything)?;
    /// server.record(std::fs::File::create("match.prec")?)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn record(&mut self, output: impl Write + Send + 'static) -> Result<(), RecordingError> {
        let config = RecordingConfig::default().with_tick_interval(self.tick_interval());
        self.record_with(output, config)
    }

    /// Like [`record`](Self::record), with settings. The tick interval is that of the configuration.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use prescient::recording::RecordingConfig;
    /// # use prescient::{Everything, RecordingError, Schema, Server, State};
    /// # #[derive(State)]
    /// # struct Crate { #[state(step = 0.01)] x: f32 }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let mut server = Server::offline(Schema::of::<Crate>()?, Everything)?;
    /// let config = RecordingConfig::default().with_tick_interval(Duration::from_millis(50));
    /// let begun: Result<(), RecordingError> = server.record_with(std::io::sink(), config);
    /// # begun?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn record_with(
        &mut self,
        output: impl Write + Send + 'static,
        config: RecordingConfig,
    ) -> Result<(), RecordingError> {
        let schema = self.world().archive().schema().clone();
        let mut recorder = Recorder::new(schema, config)?;
        let mut output: Box<dyn Write + Send> = Box::new(output);
        output.write_all(&recorder.take_bytes())?;
        self.recording = Some(ServerRecording {
            recorder: Some(recorder),
            output,
            error: None,
        });
        Ok(())
    }

    /// Completes the recording and returns its size, or why it ended early; `None` if there is none.
    pub fn stop_recording(&mut self) -> Option<Result<RecorderStatistics, RecordingError>> {
        self.recording
            .take()
            .map(|mut recording| recording.finish())
    }
}

/// Records what a client shows: one peer's view of a world.
///
/// It captures the first table of every shown entity. References and the tick are those of the
/// client.
pub struct ViewRecorder {
    schema: Arc<Schema>,
    classes: BTreeMap<String, u16>,
    archive: Archive,
    recorder: Recorder,
    shown: BTreeMap<EntityHandle, (Slot, u64)>,
    ids: BTreeMap<Slot, u64>,
    next_id: u64,
}

impl ViewRecorder {
    /// A recorder for clients with this schema.
    ///
    /// # Errors
    ///
    /// If a setting [cannot work](RecordingConfig::check).
    pub fn new(schema: &Schema, config: RecordingConfig) -> Result<Self, RecordingConfigError> {
        let schema = Arc::new(schema.clone());
        let names = schema.classes.iter().map(|class| class.name.clone());
        Ok(Self {
            classes: names.zip(0..).collect(),
            archive: Archive::new(schema.clone(), HISTORY),
            recorder: Recorder::new(schema.clone(), config)?,
            schema,
            shown: BTreeMap::new(),
            ids: BTreeMap::new(),
            next_id: 1,
        })
    }

    /// Records what the client shows, if its tick is new. Returns whether it was.
    pub fn record(&mut self, client: &Client) -> Result<bool, RecordingError> {
        let view = client.view();
        let Some(tick) = view.tick() else {
            return Ok(false);
        };
        if self.archive.newest().is_some_and(|newest| newest >= tick) {
            return Ok(false);
        }
        let mut entities: Vec<(EntityHandle, u16)> = Vec::new();
        for entity in view.entities() {
            let Some(name) = view.type_name(entity) else {
                continue;
            };
            let class = self.classes.get(name).copied();
            let class = class.ok_or_else(|| RecordingError::UnknownClass(name.to_owned()))?;
            entities.push((entity, class));
        }
        let mut capture = self.archive.begin(tick)?;
        let mut gone = std::mem::take(&mut self.shown);
        for &(entity, class) in &entities {
            let Some(row) = view.row(entity, 0) else {
                continue;
            };
            let captured = match gone.remove(&entity) {
                Some(captured) => captured,
                None => {
                    let parcel = parcel(&self.schema, class, row, &|_| 0, view);
                    let slot = capture.spawn_parcel(class, &parcel)?;
                    let id = self.next_id;
                    self.next_id += 1;
                    self.ids.insert(slot, id);
                    (slot, id)
                }
            };
            self.shown.insert(entity, captured);
        }
        for (_, (slot, _)) in gone {
            capture.despawn(slot)?;
            self.ids.remove(&slot);
        }
        // References may lead to entities that appear at the same tick.
        for (entity, class) in entities {
            let (Some(row), Some(&(slot, _))) = (view.row(entity, 0), self.shown.get(&entity))
            else {
                continue;
            };
            let reference = |cell: i64| {
                let to = prescient_schema::EntityRef::from_cell(cell);
                let target = to.and_then(|to| view.resolve(to));
                let captured = target.and_then(|target| self.shown.get(&target));
                let there = captured.and_then(|&(slot, _)| capture.reference(slot));
                there.map_or(0, |there| there.cell())
            };
            let parcel = parcel(&self.schema, class, row, &reference, view);
            capture.write_parcel(slot, &parcel)?;
        }
        capture.finish();
        let ids = &self.ids;
        self.recorder
            .record_with(&self.archive, |slot| ids.get(&slot).copied())?;
        Ok(true)
    }

    /// Takes the bytes to append to the file.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        self.recorder.take_bytes()
    }

    /// Counters since the recorder was made.
    pub fn statistics(&self) -> RecorderStatistics {
        self.recorder.statistics()
    }

    /// Completes the recording and returns its last bytes.
    pub fn finish(self) -> Vec<u8> {
        self.recorder.finish()
    }
}

/// A client's row as a row of another archive.
fn parcel(
    schema: &Schema,
    class: u16,
    row: &[i64],
    reference: &dyn Fn(i64) -> i64,
    view: &prescient_replication::Client,
) -> Parcel {
    let mut contents: Vec<Content> = Vec::new();
    let fields = &schema.classes[usize::from(class)].fields;
    let cells = row.iter().zip(fields).map(|(&cell, field)| {
        match field.kind.shape() {
            Shape::Reference => return reference(cell),
            Shape::Content if cell != 0 => contents.extend(view.content(cell).cloned()),
            _ => {}
        }
        cell
    });
    Parcel {
        row: cells.collect(),
        contents,
    }
}
