//! Compressors that keep their state between packets.
//!
//! A flush after every packet makes it decodable at once and keeps the compressor's history; every
//! packet must then arrive, in order. zlib is the `zlib-rs` implementation with default settings:
//! the four bytes at the end of a sync flush are sent and counted.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use zstd::stream::raw::{Decoder, Encoder, InBuffer, Operation, OutBuffer};

use crate::harness::ReceiveError;

/// Compresses packets that arrive reliably and in order.
pub(super) trait Pack {
    fn pack(&mut self, plain: &[u8]) -> Vec<u8>;
}

/// Decompresses the packets of a [`Pack`].
pub(super) trait Unpack {
    fn unpack(&mut self, packed: &[u8]) -> Result<Vec<u8>, ReceiveError>;
}

/// Maximum size of a tick; protects the receiver's memory.
const LARGEST: usize = 1 << 28;
/// One zlib stream, sync-flushed after every packet.
pub(super) struct Zlib(Compress);

impl Zlib {
    pub(super) fn new(level: u32) -> Self {
        Self(Compress::new(Compression::new(level), true))
    }
}

impl Pack for Zlib {
    fn pack(&mut self, plain: &[u8]) -> Vec<u8> {
        let mut packed = Vec::with_capacity(plain.len() / 8 + 64);
        let start = self.0.total_in();
        loop {
            let taken = (self.0.total_in() - start) as usize;
            self.0
                .compress_vec(&plain[taken..], &mut packed, FlushCompress::Sync)
                .expect("deflate accepts any input");
            // Everything is flushed when all input was taken and there is room left.
            let taken = (self.0.total_in() - start) as usize;
            if taken == plain.len() && packed.len() < packed.capacity() {
                return packed;
            }
            packed.reserve(packed.capacity());
        }
    }
}

/// Reads a [`Zlib`] stream.
pub(super) struct Unzlib(Decompress);

impl Unzlib {
    pub(super) fn new() -> Self {
        Self(Decompress::new(true))
    }
}

impl Unpack for Unzlib {
    fn unpack(&mut self, packed: &[u8]) -> Result<Vec<u8>, ReceiveError> {
        let mut plain = Vec::with_capacity(4096);
        let start = self.0.total_in();
        loop {
            let taken = (self.0.total_in() - start) as usize;
            let status = self
                .0
                .decompress_vec(&packed[taken..], &mut plain, FlushDecompress::Sync);
            status.map_err(|_| ReceiveError::Malformed("not a zlib stream"))?;
            let now = (self.0.total_in() - start) as usize;
            let room = plain.len() < plain.capacity();
            if now == packed.len() && room {
                return Ok(plain);
            }
            if plain.len() > LARGEST || (room && now == taken) {
                return Err(ReceiveError::Malformed("the zlib stream is incomplete"));
            }
            plain.reserve(plain.capacity());
        }
    }
}

/// One zstd stream, flushed after every packet.
pub(super) struct Zstd(Encoder<'static>);

impl Zstd {
    pub(super) fn new(level: i32) -> Self {
        Self(Encoder::new(level).expect("the level is one that zstd has"))
    }
}

impl Pack for Zstd {
    fn pack(&mut self, plain: &[u8]) -> Vec<u8> {
        let mut packed = vec![0; plain.len() + plain.len() / 128 + 1024];
        let mut output = OutBuffer::around(&mut packed[..]);
        let mut input = InBuffer::around(plain);
        while input.pos() < plain.len() {
            self.0
                .run(&mut input, &mut output)
                .expect("zstd accepts any input");
        }
        while self.0.flush(&mut output).expect("zstd accepts any input") > 0 {}
        let length = output.pos();
        packed.truncate(length);
        packed
    }
}

/// Reads a [`Zstd`] stream.
pub(super) struct Unzstd(Decoder<'static>);

impl Unzstd {
    pub(super) fn new() -> Self {
        Self(Decoder::new().expect("zstd has memory"))
    }
}

impl Unpack for Unzstd {
    fn unpack(&mut self, packed: &[u8]) -> Result<Vec<u8>, ReceiveError> {
        let mut plain = Vec::new();
        let mut chunk = vec![0; 1 << 16];
        let mut input = InBuffer::around(packed);
        loop {
            let mut output = OutBuffer::around(&mut chunk[..]);
            let step = self.0.run(&mut input, &mut output);
            step.map_err(|_| ReceiveError::Malformed("not a zstd stream"))?;
            let length = output.pos();
            plain.extend(&chunk[..length]);
            if plain.len() > LARGEST {
                return Err(ReceiveError::Malformed(
                    "the decompressed packet is too large",
                ));
            }
            if input.pos() == packed.len() && length < chunk.len() {
                return Ok(plain);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_any_size_return_from_the_same_stream() {
        let noise = |length: usize| {
            let mut random = crate::world::Random::new(length as u64);
            (0..length)
                .map(|_| random.bits() as u8)
                .collect::<Vec<u8>>()
        };
        let ends: [(Box<dyn Pack>, Box<dyn Unpack>); 3] = [
            (Box::new(Zlib::new(6)), Box::new(Unzlib::new())),
            (Box::new(Zlib::new(9)), Box::new(Unzlib::new())),
            (Box::new(Zstd::new(3)), Box::new(Unzstd::new())),
        ];
        for (mut pack, mut unpack) in ends {
            for length in [1, 5, 4096, 100, 4092, 70_000, 65_536, 3, 300_000, 2] {
                for plain in [noise(length), vec![0; length]] {
                    let packed = pack.pack(&plain);
                    assert_eq!(unpack.unpack(&packed).unwrap(), plain);
                }
            }
        }
    }
}
