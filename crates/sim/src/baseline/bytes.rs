//! Variable-length integers and a bounds-checked reader.

use crate::harness::ReceiveError;

/// Seven bits per byte, low bits first.
pub(super) fn write_varint(output: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        output.push(value as u8 | 0x80);
        value >>= 7;
    }
    output.push(value as u8);
}

/// Maps small magnitudes of either sign to small numbers.
pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
pub(super) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The rest of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], ReceiveError> {
        let (head, tail) = self.0.split_at_checked(length).ok_or(TOO_SHORT)?;
        self.0 = tail;
        Ok(head)
    }

    pub(super) fn byte(&mut self) -> Result<u8, ReceiveError> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn varint(&mut self) -> Result<u64, ReceiveError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ReceiveError::Malformed(
            "a variable-length integer does not end",
        ))
    }

    /// A count of items that take at least one byte each, so that the reader never reserves more
    /// memory than the packet is long.
    pub(super) fn count(&mut self) -> Result<usize, ReceiveError> {
        let count = self.varint()?;
        let possible = usize::try_from(count)
            .ok()
            .filter(|&count| count <= self.0.len());
        possible.ok_or(TOO_SHORT)
    }

    pub(super) fn end(&self) -> Result<(), ReceiveError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(ReceiveError::Malformed("bytes are left over"))
        }
    }
}

const TOO_SHORT: ReceiveError = ReceiveError::Malformed("the packet is too short");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_length_return() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1 << shift) - 1, u64::MAX >> shift] {
                let mut bytes = Vec::new();
                write_varint(&mut bytes, value);
                assert_eq!(Input(&bytes).varint(), Ok(value));
                assert_eq!(zigzag(unzigzag(value)), value);
            }
        }
        assert!(Input(&[0xff; 10]).varint().is_err());
        assert!(Input(&[9, 0]).count().is_err());
    }
}
