//! The session of the golden vectors: soldiers with a name and a target who walk, turn, appear and go.
#![allow(dead_code, reason = "the test and the example use different parts")]

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use prescient_codec::{HISTORY, Tick, history::Archive};
use prescient_recording::{Player, Recorder, Recording, RecordingConfig};
use prescient_schema::{Ref, SchemaBuilder, State};

#[derive(State, Clone, Debug, PartialEq)]
struct Soldier {
    #[state(step = 0.25, position)]
    position: [f32; 2],
    name: String,
    target: Ref<Soldier>,
}

/// Where the vectors are.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../vectors/recording/v2"
    ))
}

/// The session as the recorder writes it now.
pub(crate) fn record() -> Vec<u8> {
    let schema = SchemaBuilder::new().state::<Soldier>().build();
    let schema = Arc::new(schema.expect("sound"));
    let mut archive = Archive::new(schema.clone(), HISTORY);
    let config = RecordingConfig::default()
        .with_tick_interval(Duration::from_millis(200))
        .with_max_segment_ticks(15)
        .with_block_ticks(6)
        .with_note("map", "plain");
    let mut recorder = Recorder::new(schema, config).expect("sound settings");
    let mut bytes = recorder.take_bytes();
    let mut slots = Vec::new();
    for number in 0..40u32 {
        // Ticks have gaps.
        let tick = Tick(u64::from(number + number / 10 * 3));
        let mut capture = archive.begin(tick).expect("ticks increase");
        if number % 9 == 8 {
            capture.despawn(slots.remove(0)).expect("it lives");
        }
        if number % 4 == 0 {
            let parcel = soldier(number, Ref::NONE).to_parcel("default");
            slots.push(capture.spawn_parcel(0, &parcel).expect("sound"));
        }
        for (at, &slot) in slots.iter().enumerate() {
            let target = slots[(at + number as usize / 7) % slots.len()];
            let target = Ref::to(capture.reference(target).expect("it lives"));
            let parcel = soldier(number + 100 * at as u32, target).to_parcel("default");
            capture.write_parcel(slot, &parcel).expect("sound");
        }
        capture.finish();
        recorder.record(&archive).expect("a new tick");
        bytes.extend(recorder.take_bytes());
    }
    bytes.extend(recorder.finish());
    bytes
}

fn soldier(number: u32, target: Ref<Soldier>) -> Soldier {
    Soldier {
        position: [
            number as f32 * 0.5,
            (number * number % 23) as f32 - 0.25 * (number % 3) as f32,
        ],
        name: format!("soldier {}", number / 5),
        target,
    }
}

/// What a recording contains, a line per entity and tick.
pub(crate) fn rows(bytes: &[u8]) -> String {
    let recording = Arc::new(Recording::open(bytes).expect("a recording"));
    assert!(recording.is_finished() && recording.damage().is_empty());
    let mut player = Player::new(recording);
    let mut text = String::new();
    while let Some(tick) = player.step_forward().expect("intact") {
        for (id, entity) in player.entities() {
            let name = player.content(entity.row[2]);
            let _ = writeln!(
                text,
                "{tick} {} {} {:?} {name:?}",
                id.0, entity.class, entity.row
            );
        }
    }
    text
}

/// Bytes in hexadecimal, 32 per line.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(32) {
        for byte in line {
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\n');
    }
    text
}

/// Reads what [`to_hex`] wrote.
pub(crate) fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("digits");
        u8::from_str_radix(pair, 16).expect("digits")
    };
    digits.chunks(2).map(byte).collect()
}
