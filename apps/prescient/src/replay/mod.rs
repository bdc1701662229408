//! `prescient replay`: shows recordings, and writes them in other formats.

mod export;
mod overlay;
mod seeks;
mod terminal;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use prescient_recording::{PlayError, Player, Recording};
use prescient_sim::world::SourceError;
use serde_json::json;

use crate::sources::{is_recording, open_recording};
use crate::table::Table;

/// Options of `prescient replay`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReplayOptions {
    /// A recording; for `--output`, also a trace, a built-in world, or an MCAP file that this command
    /// wrote.
    file: PathBuf,
    /// Another recording of the same session, such as a client's beside the server's: shown beside the
    /// first, and compared with it.
    other: Option<PathBuf>,
    /// Write another format, by the file's ending: .trace.zst, .csv, .mcap (with zstd), or .html (a
    /// page that plays the recording, or overlays both).
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show the tick at this time and exit.
    #[arg(long, value_name = "SECONDS", conflicts_with = "tick")]
    at: Option<f64>,
    /// Show this tick, or the last before it, and exit.
    #[arg(long)]
    tick: Option<u64>,
    /// Speed of playing: 1 as it was, 4 faster, -1 backwards.
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    speed: f64,
    /// Print what the recording is, and exit.
    #[arg(long)]
    info: bool,
    /// Measure the time of N seeks to random ticks, each into a part that was not decoded yet, and then
    /// again after everything was.
    #[arg(long, value_name = "N")]
    seeks: Option<u32>,
    /// The field by which the entities of two recordings are matched; by default their ids.
    #[arg(long, value_name = "FIELD")]
    key: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Why a recording cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It cannot be opened.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// It cannot be played.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// This file has no snapshots to seek to.
    #[error("{0} is no recording; make one of it with `prescient record`")]
    NoRecording(String),
    /// The output's name says no format.
    #[error("{0}: the name must end with .trace.zst, .csv, .mcap or .html")]
    Format(String),
    /// No class has a position.
    #[error("{0}: no class has a position, or numbers named x and y")]
    NoPosition(String),
    /// The MCAP file cannot be written.
    #[error(transparent)]
    Mcap(#[from] mcap::McapError),
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
}

/// Shows, measures or converts.
pub(crate) fn replay(options: &ReplayOptions) -> Result<(), ReplayError> {
    if let Some(output) = &options.output {
        return export::export(options, output);
    }
    let recordings = open_all(options)?;
    if options.info {
        let mut output = io::stdout().lock();
        for recording in &recordings {
            print_info(recording, options.json, &mut output)?;
        }
        return Ok(());
    }
    if let Some(count) = options.seeks {
        return seeks::measure(&recordings[0], count, options);
    }
    let mut players: Vec<Player> = recordings.into_iter().map(Player::new).collect();
    let wanted = match (options.at, options.tick) {
        (Some(seconds), _) => {
            let time = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
            Some(players[0].recording().tick_at(time))
        }
        (None, tick) => tick,
    };
    let mut output = io::stdout().lock();
    if let Some(tick) = wanted {
        for player in &mut players {
            player.seek(tick)?;
        }
        terminal::print(&players, options, &mut output)?;
        return Ok(());
    }
    match io::stdout().is_terminal() {
        true => terminal::play(&mut players, options, &mut output),
        false => {
            for player in &players {
                print_info(player.recording(), options.json, &mut output)?;
            }
            Ok(())
        }
    }
}

fn open_all(options: &ReplayOptions) -> Result<Vec<Arc<Recording>>, ReplayError> {
    let paths = std::iter::once(&options.file).chain(&options.other);
    paths
        .map(|path| match is_recording(path) {
            true => Ok(open_recording(path)?),
            false if path.exists() => Err(ReplayError::NoRecording(path.display().to_string())),
            false => Ok(open_recording(path)?),
        })
        .collect()
}

fn print_info(recording: &Recording, json: bool, output: &mut impl Write) -> io::Result<()> {
    let info = recording.info();
    let seconds = recording.duration().as_secs_f64();
    if json {
        let line = json!({
            "ticks": recording.tick_count(),
            "tick_range": recording.tick_range(),
            "seconds": seconds,
            "snapshots": recording.snapshots().count(),
            "finished": recording.is_finished(),
            "damage": recording.damage().iter().map(|damage| damage.to_string()).collect::<Vec<_>>(),
            "classes": info.schema.classes.iter().map(|class| &class.name).collect::<Vec<_>>(),
            "name": info.note("name"),
        });
        return writeln!(output, "{line}");
    }
    let (first, last) = recording.tick_range().unwrap_or_default();
    writeln!(
        output,
        "{} ticks from {first} to {last}, {seconds:.1} s, {} snapshots{}",
        recording.tick_count(),
        recording.snapshots().count(),
        if recording.is_finished() {
            ""
        } else {
            ", not finished"
        },
    )?;
    let mut table = Table::new(&["class", "fields"]);
    for class in &info.schema.classes {
        table.row([class.name.clone(), class.fields.len().to_string()]);
    }
    table.print(output)
}
