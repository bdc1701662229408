//! Blocks: the units of a file that are complete or not there.
//!
//! A block has a marker, so that a reader finds the next one after damage, and a checksum over
//! everything else. A file that ends inside a block lost that block only.

use prescient_codec::numbers;

/// What a block contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// What the recording is; the first block.
    Info = 1,
    /// Ticks, the first of which can be decoded by itself.
    Snapshot = 2,
    /// Ticks that follow those of the block before.
    Delta = 3,
    /// The recorder was finished; the last block.
    End = 4,
}

/// A complete block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block<'a> {
    pub kind: BlockKind,
    pub payload: &'a [u8],
}

/// Why there is no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoBlock {
    /// The bytes end before the block does.
    Incomplete,
    /// The marker, the kind, the length or the checksum is wrong.
    Wrong,
}

impl<'a> Block<'a> {
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&MARKER);
        let begin = out.len();
        out.push(self.kind as u8);
        // Recorders close blocks long before this length.
        out.extend_from_slice(&(self.payload.len() as u32).to_le_bytes());
        let mut sum = crc32fast::Hasher::new();
        sum.update(&out[begin..]);
        sum.update(self.payload);
        out.extend_from_slice(&sum.finalize().to_le_bytes());
        out.extend_from_slice(self.payload);
    }

    /// Reads the block at the beginning of `bytes`, and returns its length with its header.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<(Self, usize), NoBlock> {
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else {
            let is_prefix = MARKER.starts_with(&bytes[..bytes.len().min(MARKER.len())])
                || bytes.starts_with(&MARKER);
            return Err(if is_prefix {
                NoBlock::Incomplete
            } else {
                NoBlock::Wrong
            });
        };
        let [m0, m1, m2, m3, kind, l0, l1, l2, l3, s0, s1, s2, s3] = *header;
        if [m0, m1, m2, m3] != MARKER {
            return Err(NoBlock::Wrong);
        }
        let block_kind = match kind {
            1 => BlockKind::Info,
            2 => BlockKind::Snapshot,
            3 => BlockKind::Delta,
            4 => BlockKind::End,
            _ => return Err(NoBlock::Wrong),
        };
        let len = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let payload = rest.get(..len).ok_or(NoBlock::Incomplete)?;
        let mut sum = crc32fast::Hasher::new();
        sum.update(&[kind, l0, l1, l2, l3]);
        sum.update(payload);
        if !sum_matches(sum.finalize(), [s0, s1, s2, s3]) {
            return Err(NoBlock::Wrong);
        }
        let block = Self {
            kind: block_kind,
            payload,
        };
        Ok((block, HEADER + len))
    }
}

/// Compares a block's checksum. Fuzzing accepts any, because random changes would not get past it.
fn sum_matches(computed: u32, written: [u8; 4]) -> bool {
    cfg!(fuzzing) || computed == u32::from_le_bytes(written)
}

/// The ticks of a block, before its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TickRange {
    pub first: u64,
    pub last: u64,
    pub count: u64,
}

impl TickRange {
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        numbers::put(out, self.first);
        numbers::put(out, self.last - self.first);
        numbers::put(out, self.count);
    }

    pub(crate) fn read(from: &mut &[u8]) -> Option<Self> {
        let first = numbers::take(from)?;
        let last = first.checked_add(numbers::take(from)?)?;
        let count = numbers::take(from)?;
        let is_possible = count > 0 && count - 1 <= last - first;
        is_possible.then_some(Self { first, last, count })
    }
}

/// The first bytes of every block.
pub(crate) const MARKER: [u8; 4] = [0xB7, b'T', b'k', 0x1E];
/// Bytes of a block before its payload.
pub(crate) const HEADER: usize = 13;
