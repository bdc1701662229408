//! A receiver in another process.
//!
//! The strongest proof that a receiver needs nothing but schema and bytes: it runs in an address
//! space of its own. It reads length-prefixed packets, and replies with an acknowledgement and a
//! digest of its whole state.

use std::io::{self, Read, Write};

use super::{ReceiveError, Receiver};

/// The receiver's reply to a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The applied tick, if any.
    pub applied: Option<u64>,
    /// [`digest`] of all entities.
    pub digest: u64,
    /// The acknowledgement for the sender.
    pub acknowledgement: Option<Vec<u8>>,
}

/// Why the exchange ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// A pipe broke or ended in the middle.
    #[error("the pipe broke: {0}")]
    Io(#[from] io::Error),
    /// A packet is invalid.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// A length prefix is too large.
    #[error("a message of {0} bytes is longer than any packet may be")]
    Length(u32),
}

const MAX_BLOCK: u32 = 1 << 28;

/// A digest of entities that is independent of their order and keys.
pub fn digest<'a>(entities: impl Iterator<Item = (u16, &'a [i64])>) -> u64 {
    entities.fold(0, |sum: u64, (class, row)| {
        sum.wrapping_add(entity_digest(class, row))
    })
}

fn entity_digest(class: u16, row: &[i64]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ u64::from(class);
    for &value in row {
        hash = (hash ^ value as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
    }
    hash.wrapping_mul(0xff51_afd7_ed55_8ccd)
}

/// Writes a packet for [`serve_receiver`].
pub fn write_packet(output: &mut impl Write, packet: &[u8]) -> io::Result<()> {
    write_block(output, packet)?;
    output.flush()
}

/// Applies packets from `input` and replies to each on `output` until the input ends.
pub fn serve_receiver(
    receiver: &mut dyn Receiver,
    input: &mut impl Read,
    output: &mut impl Write,
) -> Result<(), ProcessError> {
    while let Some(packet) = read_block(input)? {
        let applied = match receiver.receive(&packet) {
            Ok(applied) => Some(applied.tick),
            Err(ReceiveError::MissingBaseline { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let mut sum = 0u64;
        receiver.visit_all(&mut |_, class, row| sum = sum.wrapping_add(entity_digest(class, row)));
        let acknowledgement = receiver.acknowledgement();
        write_reply(
            output,
            &Reply {
                applied,
                digest: sum,
                acknowledgement,
            },
        )?;
    }
    Ok(())
}

fn write_reply(output: &mut impl Write, reply: &Reply) -> io::Result<()> {
    output.write_all(&[u8::from(reply.applied.is_some())])?;
    output.write_all(&reply.applied.unwrap_or(0).to_le_bytes())?;
    output.write_all(&reply.digest.to_le_bytes())?;
    output.write_all(&[u8::from(reply.acknowledgement.is_some())])?;
    write_block(output, reply.acknowledgement.as_deref().unwrap_or(&[]))?;
    output.flush()
}

/// Reads a reply of [`serve_receiver`].
pub fn read_reply(input: &mut impl Read) -> Result<Reply, ProcessError> {
    let mut word = [0; 8];
    let mut flag = [0];
    input.read_exact(&mut flag)?;
    input.read_exact(&mut word)?;
    let applied = (flag[0] != 0).then(|| u64::from_le_bytes(word));
    input.read_exact(&mut word)?;
    let digest = u64::from_le_bytes(word);
    input.read_exact(&mut flag)?;
    let block = read_block(input)?
        .ok_or(io::ErrorKind::UnexpectedEof)
        .map_err(io::Error::from)?;
    Ok(Reply {
        applied,
        digest,
        acknowledgement: (flag[0] != 0).then_some(block),
    })
}

fn write_block(output: &mut impl Write, block: &[u8]) -> io::Result<()> {
    let length = u32::try_from(block.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    output.write_all(&length.to_le_bytes())?;
    output.write_all(block)
}

/// `None` at the end of the input.
fn read_block(input: &mut impl Read) -> Result<Option<Vec<u8>>, ProcessError> {
    let mut length = [0; 4];
    match input.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = u32::from_le_bytes(length);
    if length > MAX_BLOCK {
        return Err(ProcessError::Length(length));
    }
    let mut block = vec![0; length as usize];
    input.read_exact(&mut block)?;
    Ok(Some(block))
}
