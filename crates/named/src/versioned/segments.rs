//! Contents that are longer than a packet, in segments.
//!
//! Segments are named `/<name>/seg=0`, `/<name>/seg=1` and so on; each states the number of the last.

use std::collections::BTreeMap;
use std::time::Duration;

use prescient_channels::Time;
use thiserror::Error;

use crate::data::{Data, DataBuilder};
use crate::error::{EncodeError, NameError, VerifyError};
use crate::interest::InterestBuilder;
use crate::name::{ComponentKind, Name, NameRef};
use crate::signature::{Signer, Verifier};
use crate::sync::Random;

/// The most bytes of content in a segment.
pub const MAX_SEGMENT: usize = 7000;

/// The most segments of a content.
pub const MAX_SEGMENTS: usize = 4096;

/// The lifetime of an Interest for a segment.
const LIFETIME: Duration = Duration::from_secs(1);

/// The most segments that are requested at once.
const WINDOW: usize = 8;

/// A content in segments, signed and ready to be sent.
#[derive(Clone, Debug)]
pub struct SegmentedContent {
    name: Name,
    packets: Vec<Vec<u8>>,
}

impl SegmentedContent {
    /// Splits a content. `freshness` is how long caches may answer Interests that ask for fresh Data; contents
    /// that never change have names of their own and may be fresh for hours.
    pub fn new(
        name: Name,
        content: &[u8],
        freshness: Duration,
        signer: &Signer,
    ) -> Result<Self, SegmentError> {
        let count = content.len().div_ceil(MAX_SEGMENT).max(1);
        if count > MAX_SEGMENTS {
            return Err(SegmentError::TooLong(content.len()));
        }
        let last = segment_name(name.view(), count as u64 - 1)?;
        let mut packets = Vec::with_capacity(count);
        for number in 0..count {
            let start = number * MAX_SEGMENT;
            let end = content.len().min(start + MAX_SEGMENT);
            let mut packet = Vec::new();
            DataBuilder::new(segment_name(name.view(), number as u64)?.view())
                .freshness(freshness)
                .final_block(last.view())
                .content(&content[start..end])
                .sign(signer, &mut packet)?;
            packets.push(packet);
        }
        Ok(Self { name, packets })
    }

    /// The name without the segment.
    pub fn name(&self) -> NameRef<'_> {
        self.name.view()
    }

    /// The packet of a segment.
    pub fn segment(&self, number: usize) -> Option<&[u8]> {
        self.packets.get(number).map(Vec::as_slice)
    }

    /// The packet that answers an Interest for this name: a segment, or the first one for the name without a
    /// segment.
    pub fn answer(&self, name: NameRef<'_>) -> Option<&[u8]> {
        if name == self.name.view() {
            return self.segment(0);
        }
        let rest = name.starts_with(self.name.view());
        let last = name.last().filter(|_| rest)?;
        let is_segment =
            last.kind == ComponentKind::SEGMENT && name.prefix(name.len() - 1) == self.name.view();
        let number = is_segment.then(|| last.number()).flatten()?;
        self.segment(usize::try_from(number).ok()?)
    }
}

/// Why a content was not split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// It would have more than [`MAX_SEGMENTS`] segments.
    #[error("{0} bytes are more than {MAX_SEGMENTS} segments hold")]
    TooLong(usize),
    /// The name leaves no room for a segment.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A packet would be too long because of its name.
    #[error(transparent)]
    Packet(#[from] EncodeError),
}

/// Requests the segments of a content, up to eight at once, and joins them.
///
/// Call [`poll_transmit`](Self::poll_transmit) until it returns false, [`handle_data`](Self::handle_data) with
/// received Data, and `poll_transmit` again at [`next_timeout`](Self::next_timeout), until
/// [`content`](Self::content) returns the whole.
#[derive(Debug)]
pub struct SegmentFetch {
    name: Name,
    verifier: Verifier,
    /// The number of segments, once known.
    count: Option<usize>,
    segments: BTreeMap<usize, Vec<u8>>,
    /// When the Interests for segments expire.
    pending: BTreeMap<usize, Time>,
    random: Random,
}

/// Why Data was not accepted as a segment. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FetchError {
    /// It is not a segment of this content, or of one that has another number of segments.
    #[error("not a segment of this content")]
    OtherContent,
    /// The signature is not valid.
    #[error(transparent)]
    Untrusted(#[from] VerifyError),
}

impl SegmentFetch {
    /// Begins to fetch. `key` must be unpredictable.
    pub fn new(name: Name, verifier: Verifier, key: [u8; 16]) -> Result<Self, NameError> {
        segment_name(name.view(), u64::MAX)?;
        Ok(Self {
            name,
            verifier,
            count: None,
            segments: BTreeMap::new(),
            pending: BTreeMap::new(),
            random: Random::new(key),
        })
    }

    /// The name without the segment.
    pub fn name(&self) -> NameRef<'_> {
        self.name.view()
    }

    /// Replaces the content of `bytes` by the next Interest to send. False if there is none at this time.
    pub fn poll_transmit(&mut self, now: Time, bytes: &mut Vec<u8>) -> bool {
        bytes.clear();
        self.pending.retain(|_, expires| *expires > now);
        if self.pending.len() >= WINDOW {
            return false;
        }
        let count = self.count.unwrap_or(1);
        let is_missing = |number: &usize| {
            !self.segments.contains_key(number) && !self.pending.contains_key(number)
        };
        let Some(number) = (0..count).find(is_missing) else {
            return false;
        };
        // One millisecond later than the forwarders forget it.
        let expires = now.after(LIFETIME + Duration::from_millis(1));
        self.pending.insert(number, expires);
        let nonce = self.random.nonce();
        let Ok(name) = segment_name(self.name.view(), number as u64) else {
            return false;
        };
        let interest = InterestBuilder::new(name.view())
            .lifetime(LIFETIME)
            .nonce(nonce);
        interest.encode(bytes).is_ok()
    }

    /// When to call [`poll_transmit`](Self::poll_transmit) again.
    pub fn next_timeout(&self) -> Option<Time> {
        self.pending.values().min().copied()
    }

    /// Handles Data.
    pub fn handle_data(&mut self, data: &Data<'_>) -> Result<(), FetchError> {
        let name = data.name();
        let last = name.last().ok_or(FetchError::OtherContent)?;
        let end = data.final_block().and_then(|end| end.get(0));
        let is_ours = name.len() == self.name.view().len() + 1
            && name.starts_with(self.name.view())
            && last.kind == ComponentKind::SEGMENT;
        let count = end
            .filter(|end| is_ours && end.kind == ComponentKind::SEGMENT)
            .and_then(|end| end.number())
            .filter(|last| *last < MAX_SEGMENTS as u64)
            .map(|last| last as usize + 1);
        let count = count.ok_or(FetchError::OtherContent)?;
        let number = last.number().unwrap_or(u64::MAX);
        let fits = self.count.is_none_or(|known| known == count)
            && number < count as u64
            && data.content().len() <= MAX_SEGMENT;
        if !fits {
            return Err(FetchError::OtherContent);
        }
        data.verify(&self.verifier)?;
        self.count = Some(count);
        self.pending.remove(&(number as usize));
        let segment = data.content().to_vec();
        self.segments.entry(number as usize).or_insert(segment);
        Ok(())
    }

    /// The whole content, once all segments have arrived.
    pub fn content(&self) -> Option<Vec<u8>> {
        let is_whole = self.count == Some(self.segments.len());
        is_whole.then(|| self.segments.values().flatten().copied().collect())
    }
}

fn segment_name(name: NameRef<'_>, number: u64) -> Result<Name, NameError> {
    let mut name = name.to_name();
    name.push_number(ComponentKind::SEGMENT, number)?;
    Ok(name)
}
