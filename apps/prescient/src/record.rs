//! `prescient record`: writes a recording of a live session, or of a world.

use std::fs::File;
use std::io::{self, Write};
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use prescient::{
    Client, ClientEvent, ClientOptions, RecordingError, ViewRecorder, loopback_token,
    token_from_text,
};
use prescient_net::Clock;
use prescient_recording::{FAST_SEEK_BYTES, Recorder, RecorderStatistics, RecordingConfig};
use prescient_sim::world::{CapturedWorld, Source, SourceError};
use serde_json::json;

use crate::interrupt::{Interrupt, InterruptError};
use crate::options::ProfileName;
use crate::progress::spinner;
use crate::sources::{self, TRACE_NOTE};
use crate::walkers::schema;

/// Options of `prescient record`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RecordOptions {
    /// A `prescient serve` server on this machine as host:port, a trace file, a built-in world
    /// (world:rts?ticks=500), a recording, or an MCAP file that `prescient replay` wrote.
    #[arg(required_unless_present = "token_file")]
    source: Option<String>,
    /// File with a token for a server on another machine, as `prescient token` makes it.
    #[arg(long, value_name = "FILE", conflicts_with = "source")]
    token_file: Option<PathBuf>,
    /// File to write the recording to.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Seconds to record of a live session; by default until Ctrl-C or until the server ends.
    #[arg(long)]
    seconds: Option<u64>,
    /// Ticks per second of a live session.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1000))]
    hz: u32,
    /// A snapshot is written after N times its own bytes: smaller values make the first seek into a
    /// part of the recording faster and the file larger.
    #[arg(long, value_name = "N", default_value_t = prescient_recording::DEFAULT_SNAPSHOT_RATIO)]
    snapshot_ratio: u32,
    /// Write a snapshot after every 48 KiB, so that the first seek into a part takes less than 50
    /// milliseconds. Recordings of large worlds become 30 to 60 % longer.
    #[arg(long)]
    fast_seeks: bool,
    /// Speed against size.
    #[arg(long, value_enum, default_value_t = ProfileName::Default)]
    profile: ProfileName,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Why nothing more was recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordCommandError {
    /// The source cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The recording cannot be written.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The file cannot be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// Its path as given.
        path: String,
        /// The cause.
        error: io::Error,
    },
    /// The token cannot be read.
    #[error("cannot read the token {path}: {error}")]
    Token {
        /// Its path as given.
        path: String,
        /// The cause.
        error: String,
    },
    /// The server cannot be reached, or refused the client.
    #[error(transparent)]
    Join(#[from] prescient::JoinError),
    /// Ctrl-C cannot be handled.
    #[error(transparent)]
    Interrupt(#[from] InterruptError),
}

/// Records until the source ends.
pub(crate) fn record(options: &RecordOptions) -> Result<(), RecordCommandError> {
    let is_live = options.token_file.is_some() || options.source.as_deref().is_some_and(is_address);
    let statistics = match is_live {
        true => record_live(options)?,
        false => record_world(options)?,
    };
    let RecorderStatistics {
        ticks,
        bytes,
        snapshots,
        snapshot_bytes,
    } = statistics;
    let path = options.output.display().to_string();
    if options.json {
        let line = json!({
            "recording": path,
            "ticks": ticks,
            "bytes": bytes,
            "snapshots": snapshots,
            "snapshot_bytes": snapshot_bytes,
        });
        println!("{line}");
    } else {
        let mean = bytes as f64 / ticks.max(1) as f64;
        println!(
            "{path}: {ticks} ticks, {bytes} bytes ({mean:.1} per tick), {snapshots} snapshots of \
             {snapshot_bytes} bytes in total"
        );
    }
    Ok(())
}

fn record_world(options: &RecordOptions) -> Result<RecorderStatistics, RecordCommandError> {
    let name = options.source.as_deref().unwrap_or_default();
    let mut source = sources::open(name)?;
    let mut output = Output::create(options)?;
    let bar = spinner(name, "record");
    let statistics = record_source(
        source.as_mut(),
        config(options),
        &mut |bytes| output.write(bytes),
        &mut |tick| bar.set_position(tick),
    )?;
    bar.finish_and_clear();
    Ok(statistics)
}

/// Records all ticks of a source.
pub(crate) fn record_source(
    source: &mut dyn Source,
    config: RecordingConfig,
    write: &mut dyn FnMut(&[u8]) -> Result<(), RecordCommandError>,
    progress: &mut dyn FnMut(u64),
) -> Result<RecorderStatistics, RecordCommandError> {
    let schema = source.schema()?;
    let header = source.header();
    let hz = header.tick_hz.unwrap_or(1.0);
    let config = config
        .with_tick_interval(Duration::from_secs_f64(1.0 / hz))
        .with_note("name", header.name.clone())
        .with_note(TRACE_NOTE, header.to_line());
    let mut captured = CapturedWorld::new(schema.clone());
    let mut recorder = Recorder::new(schema, config).map_err(RecordingError::from)?;
    write(&recorder.take_bytes())?;
    while let Some(update) = source.next_tick()? {
        progress(update.tick);
        captured.apply(update).map_err(RecordingError::from)?;
        let recorded = recorder.record_with(captured.archive(), |slot| captured.id(slot));
        recorded.map_err(RecordingError::from)?;
        write(&recorder.take_bytes())?;
    }
    let statistics = recorder.statistics();
    let rest = recorder.finish();
    write(&rest)?;
    Ok(RecorderStatistics {
        bytes: statistics.bytes + rest.len() as u64,
        ..statistics
    })
}

fn record_live(options: &RecordOptions) -> Result<RecorderStatistics, RecordCommandError> {
    let interrupt = Interrupt::listen()?;
    let token = match &options.token_file {
        None => {
            let address = options.source.as_deref().unwrap_or_default();
            loopback_token(address).map_err(prescient::JoinError::from)?
        }
        Some(path) => {
            let failed = |error: String| RecordCommandError::Token {
                path: path.display().to_string(),
                error,
            };
            let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
            token_from_text(&text).map_err(|error| failed(error.to_string()))?
        }
    };
    let mut output = Output::create(options)?;
    let schema = schema();
    let settings = ClientOptions::default().with_cancel(interrupt.cancel());
    let mut client = Client::join_with(token, schema.clone(), settings)?;
    let interval = Duration::from_secs(1) / options.hz;
    let mut recorder = ViewRecorder::new(&schema, config(options).with_tick_interval(interval))
        .map_err(RecordingError::from)?;
    let clock = Clock::start();
    let begun = clock.now();
    let over = options.seconds.map(Duration::from_secs);
    let mut is_left = false;
    while !is_left && !interrupt.is_asked() {
        if over.is_some_and(|over| clock.now().since(begun) >= over) {
            break;
        }
        client.wait(interval / 4);
        while let Some(event) = client.poll() {
            is_left |= matches!(event, ClientEvent::Left(_) | ClientEvent::Failed(_));
        }
        if recorder.record(&client)? {
            output.write(&recorder.take_bytes())?;
        }
    }
    let statistics = recorder.statistics();
    let rest = recorder.finish();
    output.write(&rest)?;
    if !is_left {
        client.leave();
    }
    Ok(RecorderStatistics {
        bytes: statistics.bytes + rest.len() as u64,
        ..statistics
    })
}

fn config(options: &RecordOptions) -> RecordingConfig {
    let config = RecordingConfig::default()
        .with_snapshot_ratio(options.snapshot_ratio)
        .with_profile(options.profile.into());
    match options.fast_seeks {
        true => config.with_max_segment_bytes(FAST_SEEK_BYTES),
        false => config,
    }
}

/// Whether a source is a server and no file.
fn is_address(source: &str) -> bool {
    let is_file = std::path::Path::new(source).exists();
    !source.starts_with("world:") && !is_file && source.to_socket_addrs().is_ok()
}

/// The file of a recording.
struct Output {
    path: String,
    file: File,
}

impl Output {
    fn create(options: &RecordOptions) -> Result<Self, RecordCommandError> {
        let path = options.output.display().to_string();
        match File::create(&options.output) {
            Ok(file) => Ok(Self { path, file }),
            Err(error) => Err(RecordCommandError::Write { path, error }),
        }
    }

    /// Writes whole blocks, unbuffered: a program that is killed later loses none of them.
    fn write(&mut self, bytes: &[u8]) -> Result<(), RecordCommandError> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| RecordCommandError::Write {
            path: self.path.clone(),
            error,
        })
    }
}
