//! A buffer that a packet is built in, from the inside out.

use std::ops::{Deref, DerefMut};

/// Bytes with free space in front of them: each layer puts its header before what it was given, and
/// nothing is copied on the way from the encoder to the socket.
///
/// It derefs to its bytes, without the free space. Two buffers are equal if their bytes are.
#[derive(Clone, Default)]
pub struct PacketBuffer {
    /// The free space, and the bytes after it.
    all: Vec<u8>,
    start: usize,
}

impl PacketBuffer {
    /// Free space that suffices for a message of state: for the headers of a packet, and for the
    /// other frames that the packet usually has.
    pub const HEADROOM: usize = 128;

    /// Takes over a vector of which the first `headroom` bytes are free space.
    pub fn with_headroom(all: Vec<u8>, headroom: usize) -> Self {
        let start = headroom.min(all.len());
        Self { all, start }
    }

    /// Bytes of free space.
    pub fn headroom(&self) -> usize {
        self.start
    }

    /// Puts a header before the bytes. They are copied only if the free space does not suffice.
    pub fn prepend(&mut self, header: &[u8]) {
        if self.start < header.len() {
            let mut all = Vec::with_capacity(Self::HEADROOM + header.len() + self.len() + TRAILER);
            all.resize(Self::HEADROOM + header.len(), 0);
            all.extend_from_slice(self);
            (self.start, self.all) = (Self::HEADROOM + header.len(), all);
        }
        let end = self.start;
        self.start -= header.len();
        self.all[self.start..end].copy_from_slice(header);
    }

    /// Adds bytes at the end.
    pub fn append(&mut self, trailer: &[u8]) {
        self.all.extend_from_slice(trailer);
    }

    /// The bytes as a vector; they are moved if there is free space.
    pub fn into_vec(mut self) -> Vec<u8> {
        self.all.drain(..self.start);
        self.all
    }
}

impl From<Vec<u8>> for PacketBuffer {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            all: bytes,
            start: 0,
        }
    }
}

impl Deref for PacketBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.all[self.start..]
    }
}

impl DerefMut for PacketBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.all[self.start..]
    }
}

impl PartialEq for PacketBuffer {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for PacketBuffer {}

impl std::fmt::Debug for PacketBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

/// Space after the bytes for an authentication tag.
const TRAILER: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a header that does not fit overwrites bytes, or if one that fits moves them.
    #[test]
    fn headers_go_before_the_bytes() {
        let mut all = vec![0; 4];
        all.extend_from_slice(b"state");
        let mut buffer = PacketBuffer::with_headroom(all, 4);
        let place = buffer.as_ptr();
        buffer.prepend(b"abc");
        assert_eq!((&*buffer, buffer.headroom()), (&b"abcstate"[..], 1));
        assert_eq!(buffer[3..].as_ptr(), place);
        buffer.prepend(b"12");
        assert_eq!(&*buffer, b"12abcstate");
        assert_eq!(buffer.headroom(), PacketBuffer::HEADROOM);
        buffer.append(b"!");
        assert_eq!(buffer.into_vec(), b"12abcstate!");
    }
}
