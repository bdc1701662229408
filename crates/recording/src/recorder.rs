//! Writes a world's ticks as a recording.

use std::sync::Arc;
use std::time::Duration;

use prescient_codec::{
    Config, EncodeError, Encoder, Layout, NetEntityId, Policy, Profile, Slot, Tick,
    history::Archive,
};
use prescient_schema::{Schema, Shape};
use thiserror::Error;

use crate::block::{Block, BlockKind, TickRange};
use crate::info::RecordingInfo;
use crate::recording::{MAGIC, VERSION};
use prescient_codec::numbers;

/// The settings of a [`Recorder`].
#[derive(Clone, Debug)]
pub struct RecordingConfig {
    tick_interval: Duration,
    notes: Vec<(String, String)>,
    profile: Profile,
    snapshot_ratio: u32,
    max_segment_ticks: u32,
    max_segment_bytes: usize,
    block_bytes: usize,
    block_ticks: u32,
}

impl Default for RecordingConfig {
    fn default() -> Self {
        Self {
            tick_interval: Duration::from_nanos(33_333_333),
            notes: Vec::new(),
            profile: Profile::default(),
            snapshot_ratio: DEFAULT_SNAPSHOT_RATIO,
            max_segment_ticks: 1 << 14,
            max_segment_bytes: usize::MAX,
            block_bytes: 2048,
            block_ticks: 32,
        }
    }
}

impl RecordingConfig {
    /// Sets the time from one tick to the next, a thirtieth of a second by default. Players use it
    /// to seek by time.
    pub fn with_tick_interval(mut self, interval: Duration) -> Self {
        self.tick_interval = interval;
        self
    }

    /// Adds a note, such as the name of the map.
    pub fn with_note(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.notes.push((key.into(), value.into()));
        self
    }

    /// Sets the trade between size and speed, [`Profile::Default`] unless this is called.
    pub fn with_profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets after how many times its own bytes a snapshot is followed by the next one, at least 1;
    /// [`DEFAULT_SNAPSHOT_RATIO`] by default. Smaller values make the first seek into a part of the
    /// recording faster and the recording larger.
    pub fn with_snapshot_ratio(mut self, ratio: u32) -> Self {
        self.snapshot_ratio = ratio;
        self
    }

    /// Sets after how many ticks there is a snapshot in any case, at least 1; 16,384 by default.
    pub fn with_max_segment_ticks(mut self, ticks: u32) -> Self {
        self.max_segment_ticks = ticks;
        self
    }

    /// Sets after how many bytes there is a snapshot in any case, at least 1; without limit by default.
    /// The first seek into a part of the recording decodes from the last snapshot, which takes about a
    /// microsecond per byte. [`FAST_SEEK_BYTES`] makes it about five times as fast, and recordings of large
    /// worlds 30 to 60 % longer.
    pub fn with_max_segment_bytes(mut self, bytes: usize) -> Self {
        self.max_segment_bytes = bytes;
        self
    }

    /// Sets how many ticks a program that is killed loses at most, from 1 to 1024; 32 by default. Every
    /// block takes 13 bytes, and is also closed at two kilobytes.
    pub fn with_block_ticks(mut self, ticks: u32) -> Self {
        self.block_ticks = ticks;
        self
    }

    /// Checks the values.
    pub fn check(&self) -> Result<(), RecordingConfigError> {
        let rules = [
            (
                (1..=MAX_TICK_INTERVAL).contains(&self.tick_interval.as_nanos()),
                "tick_interval",
                "from a nanosecond to a day",
            ),
            (self.snapshot_ratio > 0, "snapshot_ratio", AT_LEAST_1),
            (self.max_segment_ticks > 0, "max_segment_ticks", AT_LEAST_1),
            (self.max_segment_bytes > 0, "max_segment_bytes", AT_LEAST_1),
            (
                (1..=MAX_BLOCK_TICKS).contains(&self.block_ticks),
                "block_ticks",
                "from 1 to 1024",
            ),
        ];
        match rules.iter().find(|(holds, ..)| !holds) {
            Some(&(_, setting, rule)) => Err(RecordingConfigError { setting, rule }),
            None => Ok(()),
        }
    }
}

/// A setting that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the setting `{setting}` must be {rule}")]
pub struct RecordingConfigError {
    setting: &'static str,
    rule: &'static str,
}

impl RecordingConfigError {
    /// The name of the setting.
    pub fn setting(&self) -> &'static str {
        self.setting
    }
}

const AT_LEAST_1: &str = "at least 1";
const MAX_BLOCK_TICKS: u32 = 1024;
/// A day, in nanoseconds.
const MAX_TICK_INTERVAL: u128 = 86_400_000_000_000;

/// For [`RecordingConfig::with_max_segment_bytes`]: the first seek into a part takes less than 50
/// milliseconds on an idle core, also in large worlds.
pub const FAST_SEEK_BYTES: usize = 48 << 10;

/// Bytes between two snapshots, as a multiple of the bytes of the first one.
pub const DEFAULT_SNAPSHOT_RATIO: u32 = 24;

/// Why a tick was not recorded. The recording stays usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The newest tick was recorded already, or there is none yet.
    #[error("the world has no tick that was not recorded yet")]
    NothingNew,
    /// The archive has another schema than the recorder was made for.
    #[error("the recorder was made for another world")]
    OtherWorld,
    /// The codec cannot encode the tick.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// Counters of a [`Recorder`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecorderStatistics {
    /// Recorded ticks.
    pub ticks: u64,
    /// Bytes of all blocks that are complete; [`Recorder::finish`] adds the last ones.
    pub bytes: u64,
    /// Snapshots.
    pub snapshots: u64,
    /// Bytes of all snapshots.
    pub snapshot_bytes: u64,
}

/// Records the ticks of an [`Archive`], such as that of a server's world.
pub struct Recorder {
    config: RecordingConfig,
    layout: Arc<Layout>,
    has_references: bool,
    /// `None` before the first tick.
    segment: Option<SegmentWriter>,
    recorded: Option<Tick>,
    is_snapshot_requested: bool,
    block: Option<OpenBlock>,
    output: Vec<u8>,
    statistics: RecorderStatistics,
}

/// The stretch from a snapshot to the next one.
struct SegmentWriter {
    encoder: Encoder,
    ids: IdRuns,
    ticks: u32,
    snapshot_bytes: usize,
    /// Without those of the snapshot.
    bytes: usize,
}

/// A block that is not written yet.
struct OpenBlock {
    kind: BlockKind,
    range: TickRange,
    records: Vec<u8>,
}

impl Recorder {
    /// A recorder of archives that have this very schema ([`Archive::schema`]). Contracts are not
    /// used, so that the recording opens without them.
    ///
    /// # Errors
    ///
    /// If a setting [cannot work](RecordingConfig::check).
    pub fn new(schema: Arc<Schema>, config: RecordingConfig) -> Result<Self, RecordingConfigError> {
        config.check()?;
        let mut plain = Schema::clone(&schema);
        for class in &mut plain.classes {
            class.contract = None;
        }
        let fields = plain.classes.iter().flat_map(|class| &class.fields);
        let mut shapes = fields.map(|field| field.kind.shape());
        let has_references = shapes.any(|shape| shape == Shape::Reference);
        let info = RecordingInfo {
            schema: plain,
            tick_interval: config.tick_interval,
            notes: config.notes.clone(),
            profile: config.profile,
        };
        let mut payload = Vec::new();
        info.write(&mut payload);
        let mut output = MAGIC.to_vec();
        output.push(VERSION);
        let block = Block {
            kind: BlockKind::Info,
            payload: &payload,
        };
        block.write(&mut output);
        Ok(Self {
            layout: Arc::new(Layout::without_contracts(schema)),
            has_references,
            segment: None,
            recorded: None,
            is_snapshot_requested: false,
            block: None,
            statistics: RecorderStatistics {
                bytes: output.len() as u64,
                ..RecorderStatistics::default()
            },
            output,
            config,
        })
    }

    /// Records the archive's newest tick, with all living entities. Ticks may be skipped.
    pub fn record(&mut self, archive: &Archive) -> Result<(), RecordError> {
        let cell = |slot| Some(archive.reference(slot)?.cell() as u64);
        self.record_with(archive, cell)
    }

    /// Records the archive's newest tick. `id_of` is asked once for every entity that appears, and at
    /// snapshots for all: the identity of the entity in the recording, or `None` to leave it out. No
    /// two entities may ever have the same identity; if the schema has references, 0 is not allowed.
    pub fn record_with(
        &mut self,
        archive: &Archive,
        id_of: impl Fn(Slot) -> Option<u64>,
    ) -> Result<(), RecordError> {
        if !Arc::ptr_eq(archive.schema(), self.layout.schema()) {
            return Err(RecordError::OtherWorld);
        }
        let tick = archive.newest().ok_or(RecordError::NothingNew)?;
        if self.recorded.is_some_and(|recorded| recorded >= tick) {
            return Err(RecordError::NothingNew);
        }
        let has_references = self.has_references;
        let id_of = |slot| id_of(slot).filter(|&id| id != 0 || !has_references);
        let mut encoded = None;
        if !self.is_snapshot_due(archive) {
            encoded = self.encode_delta(archive, &id_of);
        }
        let (kind, record) = match encoded {
            Some(record) => (BlockKind::Delta, record),
            None => (BlockKind::Snapshot, self.encode_snapshot(archive, &id_of)?),
        };
        self.append(kind, tick, &record);
        self.recorded = Some(tick);
        self.is_snapshot_requested = false;
        self.statistics.ticks += 1;
        Ok(())
    }

    /// Makes the next tick a snapshot.
    pub fn request_snapshot(&mut self) {
        self.is_snapshot_requested = true;
    }

    /// Takes the bytes to append to the file; only whole blocks.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Counters since the recorder was made.
    pub fn statistics(&self) -> RecorderStatistics {
        self.statistics
    }

    /// Completes the recording and returns its last bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.close_block();
        let end = Block {
            kind: BlockKind::End,
            payload: &[],
        };
        end.write(&mut self.output);
        self.output
    }

    fn is_snapshot_due(&self, archive: &Archive) -> bool {
        let (Some(segment), Some(recorded)) = (&self.segment, self.recorded) else {
            return true;
        };
        // If the archive does not reach back to the last recorded tick, changes since then may be
        // missing from it.
        let is_kept = archive
            .ticks()
            .next()
            .is_some_and(|first| first <= recorded);
        let ratio = self.config.snapshot_ratio as usize;
        self.is_snapshot_requested
            || !is_kept
            || segment.bytes >= segment.snapshot_bytes.saturating_mul(ratio)
            || segment.ticks >= self.config.max_segment_ticks
            || segment.bytes >= self.config.max_segment_bytes
    }

    /// A record of the newest tick that follows the last recorded one; `None` if it needs a snapshot.
    fn encode_delta(
        &mut self,
        archive: &Archive,
        id_of: &dyn Fn(Slot) -> Option<u64>,
    ) -> Option<Vec<u8>> {
        let segment = self.segment.as_mut()?;
        let recorded = self.recorded?;
        let mut spawned: Vec<Slot> = Vec::new();
        for tick in archive.ticks().filter(|&tick| tick > recorded) {
            spawned.extend(&archive.changes(tick)?.spawned);
        }
        spawned.retain(|&slot| archive.class(slot).is_some());
        spawned.sort_unstable();
        spawned.dedup();
        let record = segment.encode(archive, spawned, id_of).ok().flatten()?;
        segment.bytes += record.len();
        segment.ticks += 1;
        Some(record)
    }

    fn encode_snapshot(
        &mut self,
        archive: &Archive,
        id_of: &dyn Fn(Slot) -> Option<u64>,
    ) -> Result<Vec<u8>, RecordError> {
        let config = Config::default()
            .with_policy(Policy::Immediate)
            .with_profile(self.config.profile);
        let mut segment = SegmentWriter {
            encoder: Encoder::with_layout(self.layout.clone(), config),
            ids: IdRuns::default(),
            ticks: 1,
            snapshot_bytes: 0,
            bytes: 0,
        };
        let living = archive.living_slots().collect();
        let record = segment.encode(archive, living, id_of)?;
        // Without a budget, a new encoder covers everything.
        let record = record.ok_or(EncodeError::MissingRow)?;
        segment.snapshot_bytes = record.len();
        self.segment = Some(segment);
        self.statistics.snapshots += 1;
        self.statistics.snapshot_bytes += record.len() as u64;
        Ok(record)
    }

    fn append(&mut self, kind: BlockKind, tick: Tick, record: &[u8]) {
        if kind == BlockKind::Snapshot {
            self.close_block();
        }
        let tick = tick.0;
        let block = self.block.get_or_insert_with(|| OpenBlock {
            kind,
            range: TickRange {
                first: tick,
                last: tick,
                count: 0,
            },
            records: Vec::new(),
        });
        block.range.last = tick;
        block.range.count += 1;
        block.records.extend_from_slice(record);
        let is_long = block.records.len() >= self.config.block_bytes;
        if is_long || block.range.count >= u64::from(self.config.block_ticks) {
            self.close_block();
        }
    }

    fn close_block(&mut self) {
        let Some(block) = self.block.take() else {
            return;
        };
        let mut payload = Vec::with_capacity(block.records.len() + 16);
        block.range.write(&mut payload);
        payload.extend_from_slice(&block.records);
        let before = self.output.len();
        let kind = block.kind;
        let payload = &payload;
        Block { kind, payload }.write(&mut self.output);
        self.statistics.bytes += (self.output.len() - before) as u64;
    }
}

impl SegmentWriter {
    /// Encodes the newest tick, with entities that appear in it; `None` if the packet would not cover
    /// everything.
    fn encode(
        &mut self,
        archive: &Archive,
        appearing: Vec<Slot>,
        id_of: &dyn Fn(Slot) -> Option<u64>,
    ) -> Result<Option<Vec<u8>>, EncodeError> {
        let mut shown: Vec<(NetEntityId, u64)> = Vec::with_capacity(appearing.len());
        for slot in appearing {
            if let Some(id) = id_of(slot)
                && let Some(net_id) = self.encoder.show(slot, archive)
            {
                shown.push((net_id, id));
            }
        }
        shown.sort_unstable_by_key(|(net_id, _)| net_id.0);
        let packet = self.encoder.encode(archive, None)?;
        if !packet.full {
            return Ok(None);
        }
        let mut record = Vec::with_capacity(packet.bytes.len() + 4);
        numbers::put_bytes(&mut record, &packet.bytes);
        let ids: Vec<u64> = shown.iter().map(|&(_, id)| id).collect();
        self.ids.write(&ids, &mut record);
        Ok(Some(record))
    }
}

/// The identities of entities that appear, in the order of their ids in packets: as runs of
/// successive numbers, each with its distance from the end of the run before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdRuns {
    expected: u64,
}

impl IdRuns {
    fn write(&mut self, mut ids: &[u64], out: &mut Vec<u8>) {
        while let Some(&first) = ids.first() {
            let successive = |&(at, &id): &(usize, &u64)| id.wrapping_sub(first) == at as u64;
            let run = ids.iter().enumerate().take_while(successive).count();
            numbers::put_signed(out, first.wrapping_sub(self.expected) as i64);
            numbers::put(out, run as u64 - 1);
            self.expected = first.wrapping_add(run as u64);
            ids = &ids[run..];
        }
    }

    /// Reads as many identities as [`write`](Self::write) was given.
    pub(crate) fn read(&mut self, count: usize, from: &mut &[u8]) -> Option<Vec<u64>> {
        let mut ids = Vec::new();
        while ids.len() < count {
            let distance = numbers::take_signed(from)?;
            let first = self.expected.wrapping_add(distance as u64);
            let run = numbers::take(from)?.checked_add(1)?;
            if run > (count - ids.len()) as u64 {
                return None;
            }
            ids.extend((0..run).map(|at| first.wrapping_add(at)));
            self.expected = first.wrapping_add(run);
        }
        Some(ids)
    }
}
