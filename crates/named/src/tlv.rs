//! Type-length-value elements, the encoding of all NDN packets.
//!
//! Types and lengths take 1, 3, 5 or 9 bytes, always the shortest form, so comparing the bytes of two
//! elements compares their types, then their lengths, then their values. The order of names depends on it.

use std::ops::Range;

use crate::error::DecodeError;

/// The longest NDN packet, in bytes.
pub const MAX_PACKET: usize = 8800;

/// The number of bytes that [`write_number`] writes.
pub(crate) fn number_len(number: u64) -> usize {
    match number {
        0..=0xfc => 1,
        0xfd..=0xffff => 3,
        0x1_0000..=0xffff_ffff => 5,
        _ => 9,
    }
}

/// Writes a type or a length.
pub(crate) fn write_number(bytes: &mut Vec<u8>, number: u64) {
    match number_len(number) {
        1 => bytes.push(number as u8),
        3 => {
            bytes.push(0xfd);
            bytes.extend_from_slice(&(number as u16).to_be_bytes());
        }
        5 => {
            bytes.push(0xfe);
            bytes.extend_from_slice(&(number as u32).to_be_bytes());
        }
        _ => {
            bytes.push(0xff);
            bytes.extend_from_slice(&number.to_be_bytes());
        }
    }
}

/// Writes an element.
pub(crate) fn write_element(bytes: &mut Vec<u8>, kind: u32, value: &[u8]) {
    write_number(bytes, kind.into());
    write_number(bytes, value.len() as u64);
    bytes.extend_from_slice(value);
}

/// Writes an element; `write` appends its value.
pub(crate) fn write_nested(bytes: &mut Vec<u8>, kind: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let start = bytes.len();
    write(bytes);
    let length = bytes.len() - start;
    write_number(bytes, kind.into());
    write_number(bytes, length as u64);
    let header = bytes.len() - start - length;
    bytes[start..].rotate_right(header);
}

/// Writes an element with a `NonNegativeInteger` as value, in the shortest form.
pub(crate) fn write_integer(bytes: &mut Vec<u8>, kind: u32, number: u64) {
    let (value, start) = integer_bytes(number);
    write_element(bytes, kind, &value[start..]);
}

/// The bytes of a `NonNegativeInteger`: an array, and the index at which they start in it.
pub(crate) fn integer_bytes(number: u64) -> ([u8; 8], usize) {
    let length = match number {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    };
    (number.to_be_bytes(), 8 - length)
}

/// Reads a `NonNegativeInteger` of 1, 2, 4 or 8 bytes.
pub(crate) fn read_integer(kind: u32, value: &[u8]) -> Result<u64, DecodeError> {
    match *value {
        [a] => Ok(a.into()),
        [a, b] => Ok(u16::from_be_bytes([a, b]).into()),
        [a, b, c, d] => Ok(u32::from_be_bytes([a, b, c, d]).into()),
        [a, b, c, d, e, f, g, h] => Ok(u64::from_be_bytes([a, b, c, d, e, f, g, h])),
        _ => Err(DecodeError::BadLength {
            kind,
            length: value.len(),
        }),
    }
}

/// Reads a value of fixed length.
pub(crate) fn read_array<const N: usize>(kind: u32, value: &[u8]) -> Result<[u8; N], DecodeError> {
    value.try_into().map_err(|_| DecodeError::BadLength {
        kind,
        length: value.len(),
    })
}

/// Reads a flag: an element that is present and empty.
pub(crate) fn read_flag(kind: u32, value: &[u8]) -> Result<(), DecodeError> {
    read_array::<0>(kind, value).map(|_| ())
}

/// Whether an unknown element of this type is an error; otherwise it is skipped.
pub(crate) fn is_critical(kind: u32) -> bool {
    kind < 32 || kind & 1 == 1
}

/// A decoded element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element<'a> {
    pub(crate) kind: u32,
    pub(crate) value: &'a [u8],
    /// All its bytes: type, length and value.
    pub(crate) wire: &'a [u8],
}

/// Reads a sequence of elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next element; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Element<'a>>, DecodeError> {
        if self.is_empty() {
            return Ok(None);
        }
        self.element().map(Some)
    }

    pub(crate) fn element(&mut self) -> Result<Element<'a>, DecodeError> {
        let before = self.rest;
        let kind = self.number()?;
        let kind = u32::try_from(kind).map_err(|_| DecodeError::BadType)?;
        if kind == 0 {
            return Err(DecodeError::BadType);
        }
        let length = self.number()?;
        let length = usize::try_from(length).map_err(|_| DecodeError::Truncated)?;
        let (value, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(Element {
            kind,
            value,
            wire: &before[..before.len() - rest.len()],
        })
    }

    pub(crate) fn number(&mut self) -> Result<u64, DecodeError> {
        let [first] = self.take::<1>()?;
        let number = match first {
            0xfd => u16::from_be_bytes(self.take()?).into(),
            0xfe => u32::from_be_bytes(self.take()?).into(),
            0xff => u64::from_be_bytes(self.take()?),
            _ => return Ok(first.into()),
        };
        let length = match first {
            0xfd => 3,
            0xfe => 5,
            _ => 9,
        };
        if number_len(number) != length {
            return Err(DecodeError::NotShortest);
        }
        Ok(number)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, rest) = self
            .rest
            .split_first_chunk()
            .ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }
}

/// The value of the single element that `bytes` consist of, which must have this type.
pub(crate) fn read_packet(bytes: &[u8], expected: u32) -> Result<&[u8], DecodeError> {
    if bytes.len() > MAX_PACKET {
        return Err(DecodeError::TooLong {
            length: bytes.len(),
            limit: MAX_PACKET,
        });
    }
    let mut reader = Reader::new(bytes);
    let packet = reader.element()?;
    if packet.kind != expected {
        return Err(DecodeError::Unexpected { kind: packet.kind });
    }
    if !reader.is_empty() {
        return Err(DecodeError::Trailing);
    }
    Ok(packet.value)
}

/// The range of the name's components in an Interest or Data that was decoded before.
pub(crate) fn name_place(packet: &[u8]) -> Range<usize> {
    let find = || {
        let value = Reader::new(packet).element()?.value;
        let name = Reader::new(value).element()?;
        let end = packet.len() - value.len() + name.wire.len();
        Ok::<_, DecodeError>(end - name.value.len()..end)
    };
    find().unwrap_or_default()
}

/// Reads elements in the order of the specification. An element that is unknown, repeated or out of order
/// is an error if it is critical, and is skipped otherwise.
pub(crate) struct Fields<'a> {
    reader: Reader<'a>,
    /// Known types in the specification's order.
    order: &'static [u32],
    /// The number of types in `order` that can no longer follow.
    passed: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8], order: &'static [u32]) -> Self {
        Self {
            reader: Reader::new(bytes),
            order,
            passed: 0,
        }
    }

    /// The number of bytes after the last element that was read.
    pub(crate) fn left(&self) -> usize {
        self.reader.left()
    }

    /// The next element of a known type.
    pub(crate) fn next(&mut self) -> Result<Option<Element<'a>>, DecodeError> {
        while let Some(element) = self.reader.next()? {
            let later = &self.order[self.passed..];
            if let Some(place) = later.iter().position(|&kind| kind == element.kind) {
                self.passed += place + 1;
                return Ok(Some(element));
            }
            if is_critical(element.kind) {
                return Err(DecodeError::Unexpected { kind: element.kind });
            }
        }
        Ok(None)
    }
}

/// Type numbers.
pub(crate) mod kind {
    pub(crate) const IMPLICIT_DIGEST: u32 = 0x01;
    pub(crate) const PARAMETERS_DIGEST: u32 = 0x02;
    pub(crate) const INTEREST: u32 = 0x05;
    pub(crate) const DATA: u32 = 0x06;
    pub(crate) const NAME: u32 = 0x07;
    pub(crate) const NONCE: u32 = 0x0a;
    pub(crate) const INTEREST_LIFETIME: u32 = 0x0c;
    pub(crate) const MUST_BE_FRESH: u32 = 0x12;
    pub(crate) const META_INFO: u32 = 0x14;
    pub(crate) const CONTENT: u32 = 0x15;
    pub(crate) const SIGNATURE_INFO: u32 = 0x16;
    pub(crate) const SIGNATURE_VALUE: u32 = 0x17;
    pub(crate) const CONTENT_TYPE: u32 = 0x18;
    pub(crate) const FRESHNESS_PERIOD: u32 = 0x19;
    pub(crate) const FINAL_BLOCK_ID: u32 = 0x1a;
    pub(crate) const SIGNATURE_TYPE: u32 = 0x1b;
    pub(crate) const KEY_LOCATOR: u32 = 0x1c;
    pub(crate) const KEY_DIGEST: u32 = 0x1d;
    pub(crate) const FORWARDING_HINT: u32 = 0x1e;
    pub(crate) const CAN_BE_PREFIX: u32 = 0x21;
    pub(crate) const HOP_LIMIT: u32 = 0x22;
    pub(crate) const APPLICATION_PARAMETERS: u32 = 0x24;
    pub(crate) const SIGNATURE_NONCE: u32 = 0x26;
    pub(crate) const SIGNATURE_TIME: u32 = 0x28;
    pub(crate) const SIGNATURE_SEQUENCE: u32 = 0x2a;
    pub(crate) const INTEREST_SIGNATURE_INFO: u32 = 0x2c;
    pub(crate) const INTEREST_SIGNATURE_VALUE: u32 = 0x2e;

    pub(crate) const FRAGMENT: u32 = 0x50;
    pub(crate) const SEQUENCE: u32 = 0x51;
    pub(crate) const FRAGMENT_INDEX: u32 = 0x52;
    pub(crate) const FRAGMENT_COUNT: u32 = 0x53;
    pub(crate) const PIT_TOKEN: u32 = 0x62;
    pub(crate) const LP_PACKET: u32 = 0x64;
    pub(crate) const NACK: u32 = 0x0320;
    pub(crate) const NACK_REASON: u32 = 0x0321;
    pub(crate) const CONGESTION_MARK: u32 = 0x0340;

    pub(crate) const CONTROL_RESPONSE: u32 = 0x65;
    pub(crate) const STATUS_CODE: u32 = 0x66;
    pub(crate) const STATUS_TEXT: u32 = 0x67;
    pub(crate) const CONTROL_PARAMETERS: u32 = 0x68;
    pub(crate) const FACE_ID: u32 = 0x69;
    pub(crate) const COST: u32 = 0x6a;
    pub(crate) const FLAGS: u32 = 0x6c;
    pub(crate) const EXPIRATION_PERIOD: u32 = 0x6d;
    pub(crate) const ORIGIN: u32 = 0x6f;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a longer form is accepted (`number_len(number) != length` not compared).
    #[test]
    fn every_number_has_one_form() {
        let edges = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        for number in edges.chain([0xfc, 0xfd, u64::MAX]) {
            let mut bytes = Vec::new();
            write_number(&mut bytes, number);
            assert_eq!(bytes.len(), number_len(number));
            assert_eq!(Reader::new(&bytes).number(), Ok(number));
            let cut = &bytes[..bytes.len() - 1];
            assert_eq!(Reader::new(cut).number(), Err(DecodeError::Truncated));
        }
        for longer in [
            &[0xfd, 0, 0xfc][..],
            &[0xfe, 0, 0, 0xff, 0xff],
            &[0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff],
        ] {
            let read = Reader::new(longer).number();
            assert_eq!(read, Err(DecodeError::NotShortest));
        }
    }

    /// Fails if `rotate_right` moves the value instead of the header.
    #[test]
    fn a_nested_element_is_one_that_is_written_at_once() {
        for length in [0, 1, 252, 253, 70_000] {
            let value = vec![7; length];
            let (mut nested, mut whole) = (vec![9], vec![9]);
            write_nested(&mut nested, 0x0320, |bytes| bytes.extend_from_slice(&value));
            write_element(&mut whole, 0x0320, &value);
            assert_eq!(nested, whole);
        }
    }
}
