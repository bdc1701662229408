//! Large things such as maps: offered first, and sent only to who wants them.

use std::collections::BTreeMap;

use thiserror::Error;

use super::Fault;
use super::events::{Events, Received};
use super::frame::{Body, Chunk};
use super::in_flight::ReliableContent;
use super::ranges::Ranges;
use super::reassembly::Assembly;
use super::sender::WriteOutcome;
use crate::bytes::{Reader, write_number};

/// A blob of one connection, offered by this end or by the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId {
    pub(crate) number: u64,
    pub(crate) ours: bool,
}

/// Why a call about a blob was refused. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BlobError {
    /// There is no such connection, not yet or no longer.
    #[error("there is no such connection")]
    NotConnected,
    /// There is no such blob any more, or it is not one to do this with.
    #[error("there is no such blob, or nothing of this kind to do with it")]
    NoSuchBlob,
    /// As many blobs are offered or under way as may be.
    #[error("8 blobs are offered or under way: wait for one to end")]
    TooMany,
    /// The label has more than 64 bytes.
    #[error("{0} bytes are too long for a label, which has room for 64")]
    Label(usize),
    /// It would take more memory than [`blob_memory`](crate::LinkConfig::blob_memory) allows.
    #[error("a blob of {size} bytes does not fit the {room} that are left for blobs")]
    TooLarge {
        /// Its size.
        size: u64,
        /// What could be accepted now.
        room: u64,
    },
    /// Too much waits to be sent.
    #[error("too much waits to be sent: try again later")]
    Backlogged,
}

/// All blobs of a connection.
#[derive(Default)]
pub(crate) struct Blobs {
    next: u64,
    ours: BTreeMap<u64, Ours>,
    /// How many offers came.
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

/// How far it is, and how far it was when the game was last told.
#[derive(Default)]
struct Progress {
    done: u64,
    told: u64,
}

impl Progress {
    /// Goes on; true if it is time to tell the game.
    fn go_on(&mut self, by: u64, size: u64) -> bool {
        self.done += by;
        let step = (size / 100).max(PROGRESS_STEP);
        let tell = self.done < size && self.done - self.told >= step;
        if tell {
            self.told = self.done;
        }
        tell
    }
}

impl Blobs {
    /// Offers a blob; returns what to call it and what to say.
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

    /// Accepts an offer, if all that is coming then takes no more than `memory`.
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

    /// Withdraws, refuses or stops a blob; returns what to say.
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

    /// Takes a message about blobs.
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
            // It was cancelled, or is a repeat of what is complete.
            None if number < self.offered => return Ok(()),
            None | Some(Theirs::Offered { .. }) => return Err(Fault::Violation),
            Some(Theirs::Coming { assembly, progress }) => {
                let new = assembly.add(chunk.offset, chunk.bytes)?;
                let size = assembly.total() as u64;
                if progress.go_on(new, size) {
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

    /// Whether the other end wants nothing of ours.
    pub(crate) fn are_idle(&self) -> bool {
        !self.ours.values().any(|ours| ours.accepted)
    }

    /// Adds a chunk of some blob to a packet.
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
        if ours.progress.go_on(new, size) {
            let blob = BlobId { number, ours: true };
            let done = ours.progress.done;
            events.push(Received::BlobProgress { blob, done, size });
        }
        self.finish_if_done(number, events);
    }

    /// What was not acknowledged by another packet meanwhile is sent again.
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

    /// Bytes of blobs that are coming.
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

/// What is said about a blob.
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
/// Shorter chunks are sent only at the end of a blob or of something lost.
const MIN_CHUNK: u64 = 256;
/// The game is told of progress every hundredth, and not more often than this.
const PROGRESS_STEP: u64 = 1 << 16;
