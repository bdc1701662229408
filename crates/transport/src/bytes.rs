//! Numbers of variable length, and reading fields one after another from bytes that may end
//! anywhere.

/// Seven bits a byte, low bits first; all but the last have their high bit set.
pub(crate) fn write_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// What is left to read. Every method is `None` when there is too little of it, and then the
/// caller gives up.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Reads something off the front of `bytes`, which stay as they are if that fails.
    pub(crate) fn take<T>(
        bytes: &mut &'a [u8],
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let mut reader = Self(bytes);
        let value = read(&mut reader)?;
        *bytes = reader.0;
        Some(value)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub(crate) fn slice(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number of variable length, in the one form that it is written in.
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits || (byte == 0 && shift > 0) {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// Whether everything left is zero: padding says nothing, and nothing hides in it.
    pub(crate) fn only_zeros(self) -> Option<()> {
        self.0.iter().all(|&byte| byte == 0).then_some(())
    }

    pub(crate) fn left(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a number may have several forms (`byte == 0 && shift > 0` left out), or if bits
    /// that do not fit are dropped.
    #[test]
    fn every_number_has_one_form() {
        for shift in 0..64 {
            for value in [1 << shift, (1 << shift) - 1, u64::MAX >> shift] {
                let mut bytes = Vec::new();
                write_varint(&mut bytes, value);
                let mut reader = Reader::new(&bytes);
                assert_eq!(reader.varint(), Some(value));
                assert_eq!(reader.end(), Some(()));
                assert_eq!(Reader::new(&bytes[..bytes.len() - 1]).varint(), None);
            }
        }
        assert_eq!(Reader::new(&[0x80, 0]).varint(), None);
        let mut long = [0xff; 10];
        long[9] = 1;
        assert_eq!(Reader::new(&long).varint(), Some(u64::MAX));
        long[9] = 3;
        assert_eq!(Reader::new(&long).varint(), None);
        assert_eq!(Reader::new(&[0xff; 11]).varint(), None);
    }
}
