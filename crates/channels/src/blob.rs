//! Blobs, for large data such as maps: offered first, and sent only if the receiver accepts them.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::bytes::{Reader, write_number};
use crate::events::{Events, Received};
use crate::exchange::Fault;
use crate::frame::{Body, Chunk};
use crate::in_flight::ReliableContent;
use crate::ranges::Ranges;
use crate::reassembly::Assembly;
use crate::sender::WriteOutcome;

/// A blob of one connection, offered by either end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId {
    pub(crate) number: u64,
    pub(crate) ours: bool,
}

impl BlobId {
    /// The blob with this number among those that this end offered, or (not `ours`) the other end.
    /// For carriers without an [`Exchange`](crate::Exchange).
    pub fn new(number: u64, ours: bool) -> Self {
        Self { number, ours }
    }

    /// Its number among the blobs of the end that offered it.
    pub fn number(self) -> u64 {
        self.number
    }

    /// Whether this end offered it.
    pub fn is_ours(self) -> bool {
        self.ours
    }
}

/// Why a call about a blob failed. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BlobError {
    /// The connection does not exist: it is not established yet, or it has ended.
    #[error("there is no such connection")]
    NotConnected,
    /// The carrier has no blobs.
    #[error("this kind of connection carries no blobs")]
    Unsupported,
    /// The blob has ended, or does not support this operation.
    #[error("there is no such blob, or it does not support this operation")]
    NoSuchBlob,
    /// Too many blobs are offered or being sent.
    #[error("8 blobs are offered or being sent: wait for one to end")]
    TooMany,
    /// The label has more than 64 bytes.
    #[error("{0} bytes are too long for a label, which has room for 64")]
    Label(usize),
    /// It would exceed [the configured memory](crate::ExchangeConfig::with_blob_memory).
    #[error("a blob of {size} bytes does not fit the {room} that are left for blobs")]
    TooLarge {
        /// The blob's size.
        size: u64,
        /// The largest blob that could be accepted now.
        room: u64,
    },
    /// Too many bytes wait to be sent.
    #[error("too much waits to be sent: try again later")]
    Backlogged,
}

crate::debug_as_display!(BlobError);

#[derive(Default)]
pub(crate) struct Blobs {
    next: u64,
    ours: BTreeMap<u64, Ours>,
    /// How many offers were received.
    offered: u64,
    theirs: BTreeMap<u64, Theirs>,
}

/// A blob that we offered.
struct Ours {
    bytes: Vec<u8>,
    accepted: bool,
    sent: u64,
    lost: Ranges,
    acknowledged: Ranges,
    progress: Progress,
}

/// A blob that was offered to us.
enum Theirs {
    Offered {
        size: u64,
    },
    Coming {
        assembly: Assembly,
        progress: Progress,
    },
}

/// How much of a blob has arrived, and how much of that was reported.
#[derive(Default)]
struct Progress {
    done: u64,
    reported: u64,
}

impl Progress {
    /// Adds to the progress; true if it is time to report it.
    fn advance(&mut self, by: u64, size: u64) -> bool {
        self.done += by;
        let step = (size / 100).max(PROGRESS_STEP);
        let report = self.done < size && self.done - self.reported >= step;
        if report {
            self.reported = self.done;
        }
        report
    }
}

impl Blobs {
    /// Offers a blob; returns its id and the message to send.
    pub(crate) fn offer(
        &mut self,
        label: &[u8],
        bytes: Vec<u8>,
    ) -> Result<(BlobId, Vec<u8>), BlobError> {
        if label.len() > MAX_LABEL {
            return Err(BlobError::Label(label.len()));
        }
        if self.ours.len() >= MAX_BLOBS {
            return Err(BlobError::TooMany);
        }
        let number = self.next;
        self.next += 1;
        let blob_message = BlobMessage::Offer {
            size: bytes.len() as u64,
            label,
        };
        let blob_message = blob_message.write(number);
        self.ours.insert(
            number,
            Ours {
                bytes,
                accepted: false,
                sent: 0,
                lost: Ranges::default(),
                acknowledged: Ranges::default(),
                progress: Progress::default(),
            },
        );
        Ok((BlobId { number, ours: true }, blob_message))
    }

    /// Accepts an offer if all accepted blobs then fit `memory`.
    pub(crate) fn accept(
        &mut self,
        blob: BlobId,
        memory: usize,
        events: &mut Events,
    ) -> Result<Vec<u8>, BlobError> {
        let coming = self.buffered();
        let Some(theirs) = self.theirs.get_mut(&blob.number).filter(|_| !blob.ours) else {
            return Err(BlobError::NoSuchBlob);
        };
        let Theirs::Offered { size } = *theirs else {
            return Err(BlobError::NoSuchBlob);
        };
        let room = memory.saturating_sub(coming) as u64;
        let fits = usize::try_from(size).ok().filter(|_| size <= room);
        let total = fits.ok_or(BlobError::TooLarge { size, room })?;
        *theirs = Theirs::Coming {
            assembly: Assembly::new(total),
            progress: Progress::default(),
        };
        if total == 0 {
            self.theirs.remove(&blob.number);
            events.push(Received::BlobArrived {
                blob,
                bytes: Vec::new(),
            });
        }
        Ok(BlobMessage::Accept.write(blob.number))
    }

    /// Withdraws, refuses or stops a blob; returns the message to send.
    pub(crate) fn cancel(&mut self, blob: BlobId) -> Result<Vec<u8>, BlobError> {
        let (known, blob_message) = match blob.ours {
            true => (
                self.ours.remove(&blob.number).is_some(),
                BlobMessage::Withdraw,
            ),
            false => (
                self.theirs.remove(&blob.number).is_some(),
                BlobMessage::Refuse,
            ),
        };
        known
            .then(|| blob_message.write(blob.number))
            .ok_or(BlobError::NoSuchBlob)
    }

    /// Handles a message about a blob.
    pub(crate) fn handle_message(
        &mut self,
        message: &[u8],
        events: &mut Events,
    ) -> Result<(), Fault> {
        let (number, blob_message) = BlobMessage::read(message).ok_or(Fault::Violation)?;
        let blob = BlobId {
            number,
            ours: matches!(blob_message, BlobMessage::Accept | BlobMessage::Refuse),
        };
        match blob_message {
            BlobMessage::Offer { size, label } => {
                if number != self.offered || self.theirs.len() >= MAX_BLOBS {
                    return Err(Fault::Violation);
                }
                self.offered += 1;
                self.theirs.insert(number, Theirs::Offered { size });
                let label = label.to_vec();
                events.push(Received::BlobOffered { blob, label, size });
            }
            BlobMessage::Accept => {
                if number >= self.next {
                    return Err(Fault::Violation);
                }
                if let Some(ours) = self.ours.get_mut(&number) {
                    ours.accepted = true;
                    self.finish_if_done(number, events);
                }
            }
            BlobMessage::Withdraw => {
                if number >= self.offered {
                    return Err(Fault::Violation);
                }
                if self.theirs.remove(&number).is_some() {
                    events.push(Received::BlobCancelled { blob });
                }
            }
            BlobMessage::Refuse => {
                if number >= self.next {
                    return Err(Fault::Violation);
                }
                if self.ours.remove(&number).is_some() {
                    events.push(Received::BlobCancelled { blob });
                }
            }
        }
        Ok(())
    }

    pub(crate) fn handle_chunk(
        &mut self,
        chunk: &Chunk<'_>,
        events: &mut Events,
    ) -> Result<(), Fault> {
        let number = chunk.blob;
        let blob = BlobId {
            number,
            ours: false,
        };
        match self.theirs.get_mut(&number) {
            // The blob was cancelled, or is complete and this is a retransmission.
            None if number < self.offered => return Ok(()),
            None | Some(Theirs::Offered { .. }) => return Err(Fault::Violation),
            Some(Theirs::Coming { assembly, progress }) => {
                let new = assembly.add(chunk.offset, chunk.bytes)?;
                let size = assembly.total() as u64;
                if progress.advance(new, size) {
                    let done = assembly.received();
                    events.push(Received::BlobProgress { blob, done, size });
                }
                if !assembly.is_complete() {
                    return Ok(());
                }
            }
        }
        if let Some(Theirs::Coming { assembly, .. }) = self.theirs.remove(&number) {
            let bytes = assembly.into_bytes();
            events.push(Received::BlobArrived { blob, bytes });
        }
        Ok(())
    }

    /// Whether the other end has accepted none of our blobs.
    pub(crate) fn are_idle(&self) -> bool {
        !self.ours.values().any(|ours| ours.accepted)
    }

    /// Adds a chunk of a blob to a packet.
    pub(crate) fn write(
        &mut self,
        body: &mut Body,
        reliable: &mut Vec<ReliableContent>,
    ) -> WriteOutcome {
        let accepted = self.ours.iter_mut().filter(|(_, ours)| ours.accepted);
        for (&blob, ours) in accepted {
            let size = ours.bytes.len() as u64;
            let lost = ours.lost.first();
            let next = lost.or_else(|| (ours.sent < size).then_some((ours.sent, size)));
            let Some((start, end)) = next else {
                continue;
            };
            let space = body.left_for_chunk(blob, start) as u64;
            if space < (end - start).min(MIN_CHUNK) {
                return WriteOutcome::NoRoom;
            }
            let end = end.min(start + space);
            let bytes = &ours.bytes[start as usize..end as usize];
            body.chunk(&Chunk {
                blob,
                offset: start,
                bytes,
            });
            ours.lost.remove(start, end);
            ours.sent = ours.sent.max(end);
            reliable.push(ReliableContent::Chunk { blob, start, end });
            return WriteOutcome::Something;
        }
        WriteOutcome::Nothing
    }

    pub(crate) fn acknowledged(&mut self, number: u64, start: u64, end: u64, events: &mut Events) {
        let Some(ours) = self.ours.get_mut(&number) else {
            return;
        };
        let new = ours.acknowledged.insert(start, end);
        ours.lost.remove(start, end);
        let size = ours.bytes.len() as u64;
        if ours.progress.advance(new, size) {
            let blob = BlobId { number, ours: true };
            let done = ours.progress.done;
            events.push(Received::BlobProgress { blob, done, size });
        }
        self.finish_if_done(number, events);
    }

    /// Retransmits what was not acknowledged by another packet meanwhile.
    pub(crate) fn lost(&mut self, number: u64, start: u64, end: u64) {
        let Some(ours) = self.ours.get_mut(&number) else {
            return;
        };
        ours.lost.insert(start, end);
        for (start, end) in ours.acknowledged.iter() {
            ours.lost.remove(start, end);
        }
    }

    fn finish_if_done(&mut self, number: u64, events: &mut Events) {
        let done = |ours: &Ours| ours.accepted && ours.progress.done == ours.bytes.len() as u64;
        if self.ours.get(&number).is_some_and(done) {
            self.ours.remove(&number);
            let blob = BlobId { number, ours: true };
            events.push(Received::BlobDelivered { blob });
        }
    }

    /// Bytes reserved for incoming blobs.
    pub(crate) fn buffered(&self) -> usize {
        self.theirs.values().map(Theirs::buffered).sum()
    }
}

impl Theirs {
    fn buffered(&self) -> usize {
        match self {
            Self::Offered { .. } => 0,
            Self::Coming { assembly, .. } => assembly.total(),
        }
    }
}

/// A message about a blob.
enum BlobMessage<'a> {
    Offer { size: u64, label: &'a [u8] },
    Accept,
    Withdraw,
    Refuse,
}

impl<'a> BlobMessage<'a> {
    fn write(&self, number: u64) -> Vec<u8> {
        let kind = match self {
            Self::Offer { .. } => 0,
            Self::Accept => 1,
            Self::Withdraw => 2,
            Self::Refuse => 3,
        };
        let mut message = vec![kind];
        write_number(&mut message, number);
        if let Self::Offer { size, label } = self {
            write_number(&mut message, *size);
            message.extend_from_slice(label);
        }
        message
    }

    fn read(message: &'a [u8]) -> Option<(u64, Self)> {
        let mut reader = Reader::new(message);
        let kind = reader.u8()?;
        let number = reader.number()?;
        let blob_message = match kind {
            0 => Self::Offer {
                size: reader.number()?,
                label: reader.rest(),
            },
            1 => Self::Accept,
            2 => Self::Withdraw,
            3 => Self::Refuse,
            _ => return None,
        };
        reader.end()?;
        let sound = !matches!(blob_message, Self::Offer { label, .. } if label.len() > MAX_LABEL);
        sound.then_some((number, blob_message))
    }
}

const MAX_BLOBS: usize = 8;
const MAX_LABEL: usize = 64;
/// Shorter chunks are sent only at the end of a blob or of a lost range.
const MIN_CHUNK: u64 = 256;
/// Progress is reported every hundredth, but not more often than this.
const PROGRESS_STEP: u64 = 1 << 16;
