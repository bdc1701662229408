//! Opens a recording: finds its blocks, and says what of it is damaged.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::block::{Block, BlockKind, MARKER, NoBlock, TickRange};
use crate::info::RecordingInfo;

/// Why bytes are not a recording.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// They do not begin like one.
    #[error("this is not a recording")]
    NoRecording,
    /// They have another version of the format.
    #[error("the recording has version {0} of the format, but this program reads {VERSION}")]
    Version(u8),
    /// Its ticks were written by another version of the codec.
    #[error("the recording was written by version {recorded} of the codec, but this is {here}")]
    Codec {
        /// The version that wrote it.
        recorded: u8,
        /// The version of this program.
        here: u8,
    },
    /// The first block, which says what the recording is, is incomplete or damaged.
    #[error("the recording is damaged or cut off before its first tick")]
    Info,
    /// The schema inside cannot be used.
    #[error("the recording's schema: {0}")]
    Schema(prescient_schema::DecodeError),
}

/// A part of a recording that cannot be played. Everything before it can, and so can everything from
/// the next snapshot on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where it begins in the file.
    pub offset: usize,
    /// Where the next part that can be played begins, or the end of the file.
    pub end: usize,
    /// What is wrong.
    pub fault: Fault,
    /// The last tick before it.
    pub after: Option<u64>,
}

/// What is wrong with a part of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The file ends inside a block: the recording program was killed, or the file was cut.
    CutOff,
    /// A block's bytes do not match its checksum.
    Checksum,
    /// A block is intact but does not belong here.
    OutOfPlace,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { offset, end, .. } = self;
        let what = match self.fault {
            Fault::CutOff => "is cut off",
            Fault::Checksum => "is damaged",
            Fault::OutOfPlace => "has a block that does not belong there",
        };
        write!(f, "the recording {what} at byte {offset}")?;
        match self.after {
            Some(tick) => write!(f, ", after tick {tick}")?,
            None => write!(f, ", before its first tick")?,
        }
        write!(f, "; {} bytes are not played", end - offset)
    }
}

/// A recording, of which any number of [`Player`](crate::Player)s can show ticks.
#[derive(Debug)]
pub struct Recording {
    bytes: Arc<[u8]>,
    info: RecordingInfo,
    segments: Vec<Segment>,
    damage: Vec<Damage>,
    is_finished: bool,
}

/// A snapshot and the ticks up to the next.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub first: u64,
    pub last: u64,
    pub ticks: u64,
    /// The payloads of its blocks.
    pub blocks: Vec<Range<usize>>,
}

impl Recording {
    /// Opens a recording. Damaged and missing parts do not prevent this, except in the first block;
    /// [`damage`](Self::damage) lists them.
    pub fn open(bytes: impl Into<Arc<[u8]>>) -> Result<Self, OpenError> {
        let bytes: Arc<[u8]> = bytes.into();
        let rest = bytes.strip_prefix(&MAGIC).ok_or(OpenError::NoRecording)?;
        let (&version, rest) = rest.split_first().ok_or(OpenError::Info)?;
        if version != VERSION {
            return Err(OpenError::Version(version));
        }
        let (block, len) = Block::read(rest).map_err(|_| OpenError::Info)?;
        if block.kind != BlockKind::Info {
            return Err(OpenError::Info);
        }
        let info = RecordingInfo::read(block.payload)?;
        let begin = bytes.len() - rest.len() + len;
        let mut recording = Self {
            bytes,
            info,
            segments: Vec::new(),
            damage: Vec::new(),
            is_finished: false,
        };
        recording.find_blocks(begin);
        Ok(recording)
    }

    /// What the recording says about itself.
    pub fn info(&self) -> &RecordingInfo {
        &self.info
    }

    /// The parts that cannot be played, in order.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Whether the recorder was [finished](crate::Recorder::finish).
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// The first tick and the last, if there is any.
    pub fn tick_range(&self) -> Option<(u64, u64)> {
        Some((self.segments.first()?.first, self.segments.last()?.last))
    }

    /// The number of ticks.
    pub fn tick_count(&self) -> u64 {
        self.segments.iter().map(|segment| segment.ticks).sum()
    }

    /// The ticks of its snapshots.
    pub fn snapshots(&self) -> impl Iterator<Item = u64> {
        self.segments.iter().map(|segment| segment.first)
    }

    /// The time of a tick since the first.
    pub fn time_of(&self, tick: u64) -> Duration {
        let first = self.tick_range().map_or(0, |(first, _)| first);
        let nanos = self.info.tick_interval.as_nanos() * u128::from(tick.saturating_sub(first));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The time from the first tick to the last.
    pub fn duration(&self) -> Duration {
        self.time_of(self.tick_range().map_or(0, |(_, last)| last))
    }

    /// The tick at a time since the first.
    pub fn tick_at(&self, time: Duration) -> u64 {
        let first = self.tick_range().map_or(0, |(first, _)| first);
        let interval = self.info.tick_interval.as_nanos().max(1);
        let ticks = u64::try_from(time.as_nanos() / interval).unwrap_or(u64::MAX);
        first.saturating_add(ticks)
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    pub(crate) fn payload(&self, range: &Range<usize>) -> &[u8] {
        &self.bytes[range.clone()]
    }

    fn find_blocks(&mut self, mut at: usize) {
        let bytes = self.bytes.clone();
        // Checksums are computed at most this often per byte, whatever the file contains.
        let mut work = bytes.len() * 4;
        while at < bytes.len() && !self.is_finished {
            let fault = match Block::read(&bytes[at..]) {
                Ok((block, len)) if self.take(block, at + len) => {
                    at += len;
                    continue;
                }
                Ok(_) => Fault::OutOfPlace,
                Err(NoBlock::Incomplete) => Fault::CutOff,
                Err(NoBlock::Wrong) => Fault::Checksum,
            };
            let end = next_snapshot(&bytes, at + 1, &mut work);
            // A wrong length makes a damaged block appear cut off.
            let fault = match fault {
                Fault::CutOff if end < bytes.len() => Fault::Checksum,
                fault => fault,
            };
            self.damage.push(Damage {
                offset: at,
                end,
                fault,
                after: self.segments.last().map(|segment| segment.last),
            });
            at = end;
        }
    }

    /// Takes a block that ends at `end` in the file; false if it does not belong there.
    fn take(&mut self, block: Block<'_>, end: usize) -> bool {
        let payload = end - block.payload.len()..end;
        let mut from = block.payload;
        let last = self.segments.last().map(|segment| segment.last);
        let mut range = || {
            let range = TickRange::read(&mut from)?;
            last.is_none_or(|last| range.first > last).then_some(range)
        };
        match block.kind {
            BlockKind::Info => false,
            BlockKind::End => {
                self.is_finished = true;
                true
            }
            BlockKind::Snapshot => {
                let Some(range) = range() else { return false };
                self.segments.push(Segment {
                    first: range.first,
                    last: range.last,
                    ticks: range.count,
                    blocks: vec![payload],
                });
                true
            }
            BlockKind::Delta => {
                let Some(range) = range() else { return false };
                let Some(segment) = self.segments.last_mut() else {
                    return false;
                };
                segment.last = range.last;
                segment.ticks += range.count;
                segment.blocks.push(payload);
                true
            }
        }
    }
}

/// Where the next intact snapshot begins, or the end of the file.
fn next_snapshot(bytes: &[u8], from: usize, work: &mut usize) -> usize {
    let mut at = from;
    while let Some(found) = bytes.get(at..).and_then(find_marker) {
        at += found;
        let len = bytes
            .get(at + 5..at + 9)
            .and_then(|len| len.try_into().ok());
        let len = len.map_or(0, |len| u32::from_le_bytes(len) as usize);
        let Some(left) = work.checked_sub(len.min(bytes.len() - at)) else {
            break;
        };
        *work = left;
        let block = Block::read(&bytes[at..]);
        if block.is_ok_and(|(block, _)| block.kind == BlockKind::Snapshot) {
            return at;
        }
        at += 1;
    }
    bytes.len()
}

fn find_marker(bytes: &[u8]) -> Option<usize> {
    bytes.windows(MARKER.len()).position(|four| four == MARKER)
}

/// The first bytes of every recording.
pub(crate) const MAGIC: [u8; 8] = *b"\x89PRSREC\n";
/// The version of the format.
pub(crate) const VERSION: u8 = 2;
