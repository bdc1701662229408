//! What a player shows of a recording is what was captured, at every tick, in every order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use prescient_codec::{HISTORY, Tick, history::Archive};
use prescient_recording::{
    FieldDifference, PlayError, Player, RecordedEntity, RecordedId, Recorder, Recording,
    RecordingConfig, compare,
};
use prescient_schema::{Ref, Schema, SchemaBuilder, State};
use prescient_sim::world::{CapturedWorld, open};

type Truth = BTreeMap<RecordedId, RecordedEntity>;

/// A recorded world, and its entities at every tick.
struct Recorded {
    bytes: Vec<u8>,
    truth: BTreeMap<u64, Truth>,
}

fn record(name: &str, config: RecordingConfig) -> Recorded {
    let mut source = open(name).unwrap();
    let schema = source.schema().unwrap();
    let mut captured = CapturedWorld::new(schema.clone());
    let mut recorder = Recorder::new(schema, config).unwrap();
    let mut bytes = recorder.take_bytes();
    let mut truth = BTreeMap::new();
    while let Some(update) = source.next_tick().unwrap() {
        let tick = update.tick;
        captured.apply(update).unwrap();
        let id = |slot| captured.id(slot);
        recorder.record_with(captured.archive(), id).unwrap();
        bytes.extend(recorder.take_bytes());
        let entities = captured.world().iter().map(|(id, entity)| {
            let (class, row) = (entity.class, entity.row.to_vec());
            (RecordedId(id), RecordedEntity { class, row })
        });
        truth.insert(tick, entities.collect());
    }
    bytes.extend(recorder.finish());
    Recorded { bytes, truth }
}

fn shown(player: &Player) -> Truth {
    let entities = player.entities();
    entities.map(|(id, entity)| (id, entity.clone())).collect()
}

fn small() -> Recorded {
    let config = RecordingConfig::default()
        .with_tick_interval(Duration::from_millis(100))
        .with_max_segment_ticks(20)
        .with_block_ticks(7)
        .with_note("map", "plain");
    record("world:rts?seed=3&ticks=90&count=12", config)
}

/// Fails if `back` adds instead of subtracting, if `show` keeps the entities of another segment, or
/// if identities are written in the order of slots instead of ids in packets.
#[test]
fn every_tick_is_shown_in_every_order() {
    let Recorded { bytes, truth } = small();
    let recording = Arc::new(Recording::open(bytes).unwrap());
    assert!(recording.is_finished() && recording.damage().is_empty());
    assert_eq!(recording.tick_count(), truth.len() as u64);
    assert!(recording.snapshots().count() >= 4);
    assert_eq!(recording.info().note("map"), Some("plain"));
    let mut player = Player::new(recording.clone());
    assert_eq!(player.tick(), None);
    for (&tick, entities) in &truth {
        assert_eq!(player.step_forward(), Ok(Some(tick)));
        assert_eq!(&shown(&player), entities, "forwards, tick {tick}");
    }
    assert_eq!(player.step_forward(), Ok(None));
    for (&tick, entities) in truth.iter().rev() {
        assert_eq!(player.tick(), Some(tick));
        assert_eq!(&shown(&player), entities, "backwards, tick {tick}");
        player.step_back().unwrap();
    }
    assert_eq!(player.step_back(), Ok(None));
    let mut cold = Player::new(recording);
    let ticks: Vec<u64> = truth.keys().copied().collect();
    for at in 0..200 {
        let tick = ticks[at * 37 % ticks.len()];
        assert_eq!(cold.seek(tick), Ok(tick));
        assert_eq!(&shown(&cold), &truth[&tick], "sought, tick {tick}");
    }
}

/// Five ticks per frame, beginning with the shown part, change nothing that is shown. Fails if `load_some`
/// decodes a whole segment, or forgets those before the shown one.
#[test]
fn a_recording_is_decoded_bit_by_bit() {
    let Recorded { bytes, truth } = small();
    let recording = Arc::new(Recording::open(bytes).unwrap());
    let mut player = Player::new(recording.clone());
    let mut all = Player::new(recording);
    all.load_all(&mut |_| {}).unwrap();
    player.seek(50).unwrap();
    let (mut calls, mut before) = (0, player.held_bytes());
    while player.load_some(5) {
        calls += 1;
        assert_eq!(shown(&player), truth[&50]);
        let grown = player.held_bytes() - before;
        before = player.held_bytes();
        assert!(grown < all.held_bytes() / 4, "{grown}");
    }
    assert!((10..=25).contains(&calls), "{calls}");
    assert_eq!(player.held_bytes(), all.held_bytes());
    assert_eq!(player.seek(3), Ok(3));
    assert_eq!(shown(&player), truth[&3]);
}

/// Fails if `play` ignores the sign of its speed, or does not add fractions of ticks up.
#[test]
fn playing_follows_time_at_any_speed() {
    let Recorded { bytes, truth } = small();
    let recording = Arc::new(Recording::open(bytes).unwrap());
    let (first, last) = recording.tick_range().unwrap();
    let mut player = Player::new(recording.clone());
    player.seek(first).unwrap();
    for _ in 0..30 {
        player.play(Duration::from_millis(10), 2.0).unwrap();
    }
    assert_eq!(player.tick(), Some(first + 6));
    player.play(Duration::from_secs(1), -0.25).unwrap();
    let tick = player.tick().unwrap();
    assert!((first + 3..=first + 4).contains(&tick), "{tick}");
    assert_eq!(&shown(&player), &truth[&tick]);
    assert_eq!(player.play(Duration::from_secs(3600), 9.0), Ok(last));
    assert_eq!(player.play(Duration::from_secs(3600), -9.0), Ok(first));
    assert_eq!(player.play(Duration::from_secs(1), f64::NAN), Ok(first));
}

/// Fails if an open reads past the end of a cut file, or drops a complete block before the cut.
#[test]
fn a_recording_cut_anywhere_opens_up_to_its_last_complete_block() {
    let Recorded { bytes, truth } = small();
    let whole = Recording::open(bytes.clone()).unwrap();
    let info = whole.info().schema.to_bytes().len();
    let mut seen = 0;
    for end in 0..bytes.len() {
        let Ok(recording) = Recording::open(&bytes[..end]) else {
            assert!(end < info + 100, "cut at {end}: the header is complete");
            continue;
        };
        assert!(!recording.is_finished());
        let ticks = recording.tick_count();
        assert!(ticks >= seen, "cut at {end}: {ticks} ticks, {seen} before");
        // The parts of blocks are cut off, and nothing else.
        let lost = recording
            .damage()
            .iter()
            .map(|damage| damage.end - damage.offset);
        assert!(lost.sum::<usize>() < 3000, "cut at {end}");
        if ticks == seen {
            continue;
        }
        seen = ticks;
        let mut player = Player::new(Arc::new(recording));
        player.load_all(&mut |_| {}).unwrap();
        let last = player.seek(u64::MAX).unwrap();
        assert_eq!(&shown(&player), &truth[&last], "cut at {end}");
        assert_eq!(truth.range(..=last).count() as u64, ticks, "cut at {end}");
    }
    assert_eq!(seen, truth.len() as u64);
    println!(
        "figure: a recording of {seen} ticks cut at each of {} bytes: no tick of a complete block is lost",
        bytes.len()
    );
}

/// Fails if a block's checksum is not compared, or if blocks after damage are appended to the segment
/// before it.
#[test]
fn flipped_bits_lose_nothing_before_them_and_are_reported() {
    let Recorded { bytes, truth } = small();
    let mut blocks = 0;
    for at in (0..bytes.len() - 13).step_by(5) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        let Ok(recording) = Recording::open(damaged) else {
            continue;
        };
        blocks += 1;
        assert_eq!(recording.damage().len(), 1, "bit flipped in byte {at}");
        let damage = recording.damage()[0];
        assert!((damage.offset..damage.end).contains(&at), "byte {at}");
        // A wrong length in the last segment looks as if the file ended.
        let text = damage.to_string();
        assert!(
            text.contains("damaged") || text.contains("cut off"),
            "{text}"
        );
        let mut player = Player::new(Arc::new(recording));
        let mut ticks = 0;
        while let Some(tick) = player.step_forward().unwrap() {
            assert_eq!(&shown(&player), &truth[&tick], "byte {at}, tick {tick}");
            ticks += 1;
        }
        let before = damage.after.map_or(0, |tick| truth.range(..=tick).count());
        assert!(ticks >= before && ticks < truth.len(), "byte {at}");
    }
    assert!(blocks > 100, "only {blocks} places were tried");
    println!("figure: a bit flipped at {blocks} places: reported, and no tick before it is lost");
}

/// Blocks with a right checksum and senseless contents or declared ticks. Fails with a panic if
/// `decode_to` unwraps, and if `Decoding::next` does not compare the ticks with the declared ones.
#[test]
fn forged_blocks_are_errors() {
    let Recorded { bytes, truth } = small();
    let recording = Recording::open(bytes.clone()).unwrap();
    let first = recording.snapshots().nth(1).unwrap();
    let marker = [0xB7, b'T', b'k', 0x1E];
    let starts = |at: &usize| bytes[*at..].starts_with(&marker);
    let blocks: Vec<usize> = (0..bytes.len() - 13).filter(starts).collect();
    let mut refused = 0;
    for &at in &blocks[1..] {
        let len = u32::from_le_bytes(bytes[at + 5..at + 9].try_into().unwrap()) as usize;
        for place in [13, 13 + len / 3, 12 + len] {
            let mut forged = bytes.clone();
            forged[at + place.min(12 + len)] ^= 0x10;
            let sum = crc(&forged[at + 4..at + 9], &forged[at + 13..at + 13 + len]);
            forged[at + 9..at + 13].copy_from_slice(&sum);
            let recording = Recording::open(forged).unwrap();
            let mut player = Player::new(Arc::new(recording));
            let mut last = None;
            loop {
                match player.step_forward() {
                    Ok(Some(tick)) => {
                        assert!(last.is_none_or(|last| last < tick), "{last:?}, then {tick}");
                        last = Some(tick);
                    }
                    Ok(None) => break,
                    Err(PlayError::Malformed { after }) => {
                        assert!(after.is_none_or(|after| truth.contains_key(&after)));
                        refused += 1;
                        break;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            assert!(last.is_none() || last >= truth.keys().next().copied());
        }
    }
    assert!(first > 0 && refused > blocks.len() / 2, "{refused} refused");
}

fn crc(head: &[u8], payload: &[u8]) -> [u8; 4] {
    let mut sum = !0u32;
    for &byte in head.iter().chain(payload) {
        sum ^= u32::from(byte);
        for _ in 0..8 {
            sum = sum >> 1 ^ (0xEDB8_8320 & (sum & 1).wrapping_neg());
        }
    }
    (!sum).to_le_bytes()
}

/// Fails if `compare` looks at the entities of the first player only.
#[test]
fn two_players_are_compared() {
    let Recorded { bytes, truth } = small();
    let recording = Arc::new(Recording::open(bytes).unwrap());
    let mut players = [Player::new(recording.clone()), Player::new(recording)];
    let ticks: Vec<u64> = truth.keys().copied().collect();
    for player in &mut players {
        player.seek(ticks[40]).unwrap();
    }
    assert_eq!(compare(&players[0], &players[1]), []);
    players[1].seek(ticks[70]).unwrap();
    let differences = compare(&players[0], &players[1]);
    let (before, after) = (&truth[&ticks[40]], &truth[&ticks[70]]);
    let gone = before.keys().filter(|id| !after.contains_key(id)).count();
    let new = after.keys().filter(|id| !before.contains_key(id)).count();
    let count =
        |which: fn(&FieldDifference) -> bool| differences.iter().filter(|d| which(d)).count();
    assert_eq!(count(|d| matches!(d, FieldDifference::OnlyFirst(_))), gone);
    assert_eq!(count(|d| matches!(d, FieldDifference::OnlySecond(_))), new);
    let is_value = |d: &FieldDifference| matches!(d, FieldDifference::Value { .. });
    assert!(differences.iter().any(is_value));
    let nothing = Player::new(players[1].recording().clone());
    let only_second = after.keys().map(|&id| FieldDifference::OnlySecond(id));
    assert_eq!(
        compare(&nothing, &players[1]),
        only_second.collect::<Vec<_>>()
    );
}

#[derive(State, Clone, Debug, PartialEq)]
#[state(predict_with = fall)]
struct Soldier {
    #[state(step = 0.01, position)]
    position: [f32; 2],
    name: String,
    target: Ref<Soldier>,
}

fn fall(soldier: &Soldier, ticks: u32) -> Soldier {
    let mut soldier = soldier.clone();
    soldier.position[1] -= ticks as f32 * 0.1;
    soldier
}

/// A recording of a world with a contract, texts and references opens without the function, by the
/// bytes alone. Fails if the recorder's layout uses contracts, or if a reference names the id in
/// packets.
#[test]
fn contracts_are_not_needed_and_references_keep_their_targets() {
    let schema = Arc::new(SchemaBuilder::new().state::<Soldier>().build().unwrap());
    let mut archive = Archive::new(schema.clone(), HISTORY);
    let config = RecordingConfig::default().with_max_segment_ticks(25);
    let mut recorder = Recorder::new(schema, config).unwrap();
    let mut bytes = recorder.take_bytes();
    let mut slots = Vec::new();
    let mut truth = Vec::new();
    for (at, tick) in (1..).zip(1..80u32) {
        let mut capture = archive.begin(Tick(at)).unwrap();
        if tick % 9 == 0 {
            capture.despawn(slots.remove(0)).unwrap();
        }
        if tick % 4 == 1 {
            let soldier = soldier(tick, Ref::NONE);
            slots.push(
                capture
                    .spawn_parcel(0, &soldier.to_parcel("default"))
                    .unwrap(),
            );
        }
        let mut rows = BTreeMap::new();
        for (at, &slot) in slots.iter().enumerate() {
            let target = slots[(at + tick as usize / 10) % slots.len()];
            let target = Ref::to(capture.reference(target).unwrap());
            let soldier = soldier(tick + 100 * at as u32, target);
            capture
                .write_parcel(slot, &soldier.to_parcel("default"))
                .unwrap();
            rows.insert(capture.reference(slot).unwrap().cell() as u64, soldier);
        }
        capture.finish();
        recorder.record(&archive).unwrap();
        bytes.extend(recorder.take_bytes());
        truth.push(rows);
    }
    bytes.extend(recorder.finish());
    let recording = Arc::new(Recording::open(bytes).unwrap());
    assert!(recording.info().schema.classes[0].contract.is_none());
    let mut player = Player::new(recording);
    for rows in &truth {
        player.step_forward().unwrap();
        let entities = player
            .entities()
            .map(|(id, _)| (id.0, player.get(id).unwrap()));
        assert_eq!(&entities.collect::<BTreeMap<u64, Soldier>>(), rows);
    }
    for rows in truth.iter().rev() {
        let entities = player
            .entities()
            .map(|(id, _)| (id.0, player.get(id).unwrap()));
        assert_eq!(&entities.collect::<BTreeMap<u64, Soldier>>(), rows);
        player.step_back().unwrap();
    }
}

fn soldier(number: u32, target: Ref<Soldier>) -> Soldier {
    Soldier {
        position: [number as f32 * 0.5, 7.0],
        name: format!("soldier {}", number / 3),
        target,
    }
}

/// A recorder that was not asked for longer than the archive's history starts again with a snapshot.
#[test]
fn ticks_may_be_skipped() {
    let mut source = open("world:rts?seed=9&ticks=700&count=20").unwrap();
    let schema = source.schema().unwrap();
    let mut captured = CapturedWorld::new(schema.clone());
    let mut recorder = Recorder::new(schema, RecordingConfig::default()).unwrap();
    let mut bytes = recorder.take_bytes();
    let mut truth = BTreeMap::new();
    let mut number = 0;
    while let Some(update) = source.next_tick().unwrap() {
        let tick = update.tick;
        captured.apply(update).unwrap();
        number += 1;
        if (100..400).contains(&number) || number % 3 == 0 {
            continue;
        }
        recorder
            .record_with(captured.archive(), |slot| captured.id(slot))
            .unwrap();
        let rows = captured
            .world()
            .iter()
            .map(|(id, entity)| (id, entity.row.to_vec()));
        truth.insert(tick, rows.collect::<Vec<_>>());
    }
    bytes.extend(recorder.finish());
    let mut player = Player::new(Arc::new(Recording::open(bytes).unwrap()));
    for (&tick, rows) in &truth {
        assert_eq!(player.step_forward(), Ok(Some(tick)));
        let entities = player
            .entities()
            .map(|(id, entity)| (id.0, entity.row.clone()));
        assert_eq!(&entities.collect::<Vec<_>>(), rows, "tick {tick}");
    }
}

/// Fails if the version is not compared.
#[test]
fn other_bytes_are_refused() {
    let Recorded { bytes, .. } = small();
    for other in [&b""[..], b"hello, this is no recording", &[0; 100]] {
        let error = Recording::open(other).unwrap_err();
        assert_eq!(error.to_string(), "this is not a recording");
    }
    let mut newer = bytes.clone();
    newer[8] = 9;
    let error = Recording::open(newer).unwrap_err().to_string();
    assert!(error.contains("version 9"), "{error}");
    let config = RecordingConfig::default();
    let mut empty = Recorder::new(Arc::new(Schema::default()), config).unwrap();
    let mut bytes = empty.take_bytes();
    bytes.extend(empty.finish());
    let recording = Arc::new(Recording::open(bytes).unwrap());
    assert_eq!(Player::new(recording).seek(0), Err(PlayError::Empty));
}

/// Fails if `is_snapshot_due` does not look at the bytes since the snapshot.
#[test]
fn segments_end_after_their_bytes() {
    let world = "world:rts?seed=3&ticks=90&count=12";
    let few = record(world, RecordingConfig::default());
    let many = record(
        world,
        RecordingConfig::default().with_max_segment_bytes(100),
    );
    let snapshots = |bytes: &[u8]| Recording::open(bytes).unwrap().snapshots().count();
    let (few, many) = (snapshots(&few.bytes), snapshots(&many.bytes));
    assert!(many >= 2 * few, "{few} and {many} snapshots");
}

/// Fails if `Recorder::new` does not check its configuration, or a rule is dropped.
#[test]
fn settings_that_cannot_work_are_refused() {
    let default = RecordingConfig::default;
    let wrong = [
        (
            default().with_tick_interval(Duration::ZERO),
            "tick_interval",
        ),
        (default().with_tick_interval(Duration::MAX), "tick_interval"),
        (default().with_snapshot_ratio(0), "snapshot_ratio"),
        (default().with_max_segment_ticks(0), "max_segment_ticks"),
        (default().with_max_segment_bytes(0), "max_segment_bytes"),
        (default().with_block_ticks(0), "block_ticks"),
        (default().with_block_ticks(1025), "block_ticks"),
    ];
    for (config, setting) in wrong {
        let refused = Recorder::new(Arc::new(Schema::default()), config);
        assert_eq!(refused.err().map(|error| error.setting()), Some(setting));
    }
    assert_eq!(default().with_block_ticks(1024).check(), Ok(()));
}
