//! A 64-bit arithmetic coder with carry, byte by byte.
//!
//! It codes intervals and nothing else. A packet has no end marker: trailing zeros are not sent and
//! read as zeros.

use crate::harness::ReceiveError;

/// The range never falls below this, so totals up to 2^32 keep 16 bits of precision.
const SMALLEST_RANGE: u64 = 1 << 48;

/// Writes one number.
pub(super) struct Encoder {
    low: u64,
    range: u64,
    output: Vec<u8>,
}

impl Encoder {
    pub(super) fn new() -> Self {
        Self {
            low: 0,
            range: u64::MAX,
            output: Vec::new(),
        }
    }

    /// Narrows the interval to `start .. start + size` out of `total`.
    pub(super) fn encode(&mut self, start: u32, size: u32, total: u32) {
        let unit = self.range / u64::from(total);
        self.add(u64::from(start) * unit);
        self.range = unit * u64::from(size);
        while self.range < SMALLEST_RANGE {
            self.output.push((self.low >> 56) as u8);
            self.low <<= 8;
            self.range <<= 8;
        }
    }

    /// Writes the lowest `count` bits of `bits` with equal probabilities.
    pub(super) fn encode_bits(&mut self, bits: u64, count: u32) {
        for shift in (0..count).step_by(16) {
            let width = (count - shift).min(16);
            let part = (bits >> shift) as u32 & ((1 << width) - 1);
            self.encode(part, 1, 1 << width);
        }
    }

    /// Bits spent so far, fractions included.
    pub(super) fn spent(&self) -> f64 {
        8.0 * self.output.len() as f64 + 64.0 - (self.range as f64).log2()
    }

    /// The shortest number inside the final interval.
    pub(super) fn finish(mut self) -> Vec<u8> {
        for bytes in 0..=8 {
            let below = u64::MAX.checked_shr(8 * bytes).unwrap_or(0);
            let step = self.low.wrapping_neg() & below;
            if step < self.range {
                self.add(step);
                self.output
                    .extend(&self.low.to_be_bytes()[..bytes as usize]);
                break;
            }
        }
        while self.output.last() == Some(&0) {
            self.output.pop();
        }
        self.output
    }

    fn add(&mut self, amount: u64) {
        let (sum, carry) = self.low.overflowing_add(amount);
        self.low = sum;
        if carry {
            for byte in self.output.iter_mut().rev() {
                *byte = byte.wrapping_add(1);
                if *byte != 0 {
                    break;
                }
            }
        }
    }
}

/// Reads one number.
pub(super) struct Decoder<'a> {
    /// Distance of the number from the low end of the interval.
    offset: u64,
    range: u64,
    unit: u64,
    input: std::slice::Iter<'a, u8>,
    beyond: u32,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        let mut decoder = Self {
            offset: 0,
            range: u64::MAX,
            unit: 1,
            input: input.iter(),
            beyond: 0,
        };
        for _ in 0..8 {
            decoder.shift();
        }
        decoder
    }

    /// The position of the number in `0..total`; to be followed by [`Decoder::take`].
    pub(super) fn peek(&mut self, total: u32) -> u32 {
        self.unit = self.range / u64::from(total);
        (self.offset / self.unit).min(u64::from(total) - 1) as u32
    }

    /// Narrows to the interval of the peeked position.
    pub(super) fn take(&mut self, start: u32, size: u32) {
        self.offset -= u64::from(start) * self.unit;
        self.range = self.unit * u64::from(size);
        while self.range < SMALLEST_RANGE {
            self.range <<= 8;
            self.shift();
        }
    }

    pub(super) fn decode_bits(&mut self, count: u32) -> u64 {
        let mut bits = 0;
        for shift in (0..count).step_by(16) {
            let width = (count - shift).min(16);
            let part = self.peek(1 << width);
            self.take(part, 1);
            bits |= u64::from(part) << shift;
        }
        bits
    }

    /// Fails if decoding has read further past the end than any encoder's packet requires.
    pub(super) fn check(&self) -> Result<(), ReceiveError> {
        if self.beyond > 1 << 20 {
            return Err(ReceiveError::Malformed("the packet is too short"));
        }
        Ok(())
    }

    fn shift(&mut self) {
        let next = self.input.next().copied();
        self.beyond += u32::from(next.is_none());
        self.offset = self.offset << 8 | u64::from(next.unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Random;

    #[test]
    fn random_intervals_return_and_cost_what_they_should() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let symbols: Vec<(u32, u32, u32)> = (0..random.range(0, 400))
                .map(|_| {
                    let max = 1 << random.range(1, 33);
                    let total = random.range(1, max) as u32;
                    let start = random.range(0, i64::from(total)) as u32;
                    let size = random.range(1, i64::from(total - start) + 1) as u32;
                    (start, size, total)
                })
                .collect();
            let mut encoder = Encoder::new();
            let mut ideal = 0.0;
            for &(start, size, total) in &symbols {
                encoder.encode(start, size, total);
                ideal += (f64::from(total) / f64::from(size)).log2();
            }
            let bytes = encoder.finish();
            assert!(
                (bytes.len() as f64) < ideal / 8.0 + 2.0,
                "{} for {ideal}",
                bytes.len()
            );
            let mut decoder = Decoder::new(&bytes);
            for &(start, size, total) in &symbols {
                let at = decoder.peek(total);
                assert!((start..start + size).contains(&at), "seed {seed}");
                decoder.take(start, size);
            }
        }
    }
}
