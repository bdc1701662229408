//! Reading and writing fields of packets; input may end anywhere.

/// Writes a number as a LEB128 varint: seven bits per byte, the lowest first.
pub fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// How many bytes [`write_number`] writes.
pub fn number_len(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

/// The bytes that are left to read. Every method returns `None` if too few are left; the caller
/// then gives up.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from the start.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Reads from the front of `bytes`, which are unchanged if that fails.
    pub fn take<T>(bytes: &mut &'a [u8], read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let mut reader = Self(bytes);
        let value = read(&mut reader)?;
        *bytes = reader.0;
        Some(value)
    }

    /// The remaining bytes, for parsers that consume a slice.
    pub fn bytes(&mut self) -> &mut &'a [u8] {
        &mut self.0
    }

    /// The next bytes, of a fixed number.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    /// The next bytes, of a given number.
    pub fn slice(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// The next number of two bytes, little endian.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// The next number of four bytes, little endian.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next number of eight bytes, little endian.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number in its shortest form; see [`write_number`].
    pub fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for place in 0..NUMBER_LEN {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            // The shortest form has no zero as its last byte, and the tenth byte has only one bit.
            if (place > 0 && byte == 0) || (place == NUMBER_LEN - 1 && byte > 1) {
                return None;
            }
            number |= bits << (7 * place);
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// All bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// Whether all remaining bytes are zero, as padding must be, so that it can carry nothing.
    pub fn only_zeros(self) -> Option<()> {
        self.0.iter().all(|&byte| byte == 0).then_some(())
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.0.len()
    }

    /// `None` unless all bytes were read.
    pub fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// The longest varint of 64 bits.
const NUMBER_LEN: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a zero as last byte is allowed (`byte == 0` left out of `number`).
    #[test]
    fn every_number_has_one_form() {
        let edges = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        for number in edges.chain([u64::MAX]) {
            let mut bytes = Vec::new();
            write_number(&mut bytes, number);
            assert_eq!(bytes.len(), number_len(number));
            assert_eq!(Reader::new(&bytes).number(), Some(number));
            assert_eq!(Reader::new(&bytes[..bytes.len() - 1]).number(), None);
            *bytes.last_mut().expect("not empty") |= 0x80;
            bytes.push(0);
            assert_eq!(Reader::new(&bytes).number(), None, "longer than needed");
        }
        assert_eq!(Reader::new(&[0xff; 11]).number(), None);
        let too_much = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        assert_eq!(Reader::new(&too_much).number(), None);
    }
}
