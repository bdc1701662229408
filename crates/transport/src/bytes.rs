//! Reading fields one after another from bytes that may end anywhere.

/// What is left to read. Every method is `None` when there is too little of it, and then the
/// caller gives up.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
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
