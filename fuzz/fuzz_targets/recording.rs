//! Any bytes as a recording, beginning like a real one or not: no panic, and a player that plays forwards
//! shows at every tick what one that seeks there shows. Checksums are not compared, so that changes reach
//! what is behind them.
#![no_main]

use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prescient_fuzz::{World, schema};
use prescient_recording::{
    Player, RecordedEntity, RecordedId, Recorder, Recording, RecordingConfig,
};

#[derive(Arbitrary, Debug)]
struct Input {
    /// Number of bytes kept from the start of a real recording, and the bytes after them.
    kept: u16,
    tail: Vec<u8>,
    changes: Vec<(u16, u8)>,
    seeks: Vec<u8>,
}

static REAL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut world = World::new(schema());
    let config = RecordingConfig::default()
        .with_max_segment_ticks(10)
        .with_block_ticks(3);
    let schema = world.archive.schema().clone();
    let mut recorder = Recorder::new(schema, config).expect("sound settings");
    let mut bytes = recorder.take_bytes();
    for tick in 0..35u8 {
        world.step(tick.wrapping_mul(73));
        recorder.record(&world.archive).expect("a new tick");
        bytes.extend(recorder.take_bytes());
    }
    bytes.extend(recorder.finish());
    bytes
});

fn shown(player: &Player) -> Vec<(RecordedId, RecordedEntity)> {
    let entities = player.entities();
    entities.map(|(id, entity)| (id, entity.clone())).collect()
}

fuzz_target!(|input: Input| {
    let mut bytes = REAL.clone();
    for (at, value) in input.changes {
        let at = usize::from(at) % bytes.len();
        bytes[at] = value;
    }
    if !input.tail.is_empty() {
        bytes.truncate(usize::from(input.kept));
        bytes.extend(input.tail);
    }
    let Ok(recording) = Recording::open(bytes) else {
        return;
    };
    let recording = Arc::new(recording);
    for damage in recording.damage() {
        assert!(damage.offset < damage.end);
    }
    let mut player = Player::new(recording.clone());
    let mut ticks = Vec::new();
    while let Ok(Some(tick)) = player.step_forward() {
        assert!(ticks.last().is_none_or(|(last, _)| *last < tick));
        ticks.push((tick, shown(&player)));
        if ticks.len() == 200 {
            break;
        }
    }
    let mut sought = Player::new(recording);
    for at in input.seeks.into_iter().take(20).map(usize::from) {
        let Some((tick, entities)) = ticks.get(at % ticks.len().max(1)) else {
            break;
        };
        assert_eq!(sought.seek(*tick), Ok(*tick));
        assert_eq!(&shown(&sought), entities);
    }
    while let Ok(Some(_)) = sought.step_back() {}
});
