//! Framing of packets in byte streams, such as TCP and Unix sockets.

use crate::error::DecodeError;
use crate::tlv::{MAX_PACKET, Reader, kind};

/// Splits a byte stream into packets. Bytes may arrive in portions of any size.
///
/// ```
/// use prescient_named::Deframer;
///
/// let mut deframer = Deframer::default();
/// deframer.push(&[6, 2, 0xaa]);
/// assert_eq!(deframer.next_packet()?, None);
/// deframer.push(&[0xbb, 6]);
/// assert_eq!(deframer.next_packet()?, Some(&[6, 2, 0xaa, 0xbb][..]));
/// assert_eq!(deframer.next_packet()?, None);
/// # Ok::<(), prescient_named::DecodeError>(())
/// ```
#[derive(Debug, Default)]
pub struct Deframer {
    bytes: Vec<u8>,
    /// The number of bytes that were returned as packets.
    done: usize,
}

impl Deframer {
    /// Adds received bytes. If all packets are taken before the next call, less than one packet is stored.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.done);
        self.done = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete packet. After an error the start of the next packet is unknown: close the stream.
    pub fn next_packet(&mut self) -> Result<Option<&[u8]>, DecodeError> {
        let rest = &self.bytes[self.done..];
        let Some(length) = packet_len(rest)? else {
            return Ok(None);
        };
        let start = self.done;
        if length > rest.len() {
            return Ok(None);
        }
        self.done += length;
        Ok(Some(&self.bytes[start..start + length]))
    }
}

/// The length of the packet at the start of `bytes`; `None` if its type and length are incomplete.
fn packet_len(bytes: &[u8]) -> Result<Option<usize>, DecodeError> {
    let mut reader = Reader::new(bytes);
    let mut number = || match reader.number() {
        Ok(number) => Ok(Some((number, reader.left()))),
        Err(DecodeError::Truncated) => Ok(None),
        Err(error) => Err(error),
    };
    let Some((kind, _)) = number()? else {
        return Ok(None);
    };
    // Refuses other elements at once, before their end has arrived.
    let kind = u32::try_from(kind).map_err(|_| DecodeError::BadType)?;
    if !matches!(kind, kind::INTEREST | kind::DATA | kind::LP_PACKET) {
        return Err(DecodeError::Unexpected { kind });
    }
    let Some((length, left)) = number()? else {
        return Ok(None);
    };
    let header = bytes.len() - left;
    let whole = usize::try_from(length).map_or(usize::MAX, |length| length.saturating_add(header));
    if whole > MAX_PACKET {
        return Err(DecodeError::TooLong {
            length: whole,
            limit: MAX_PACKET,
        });
    }
    Ok(Some(whole))
}
