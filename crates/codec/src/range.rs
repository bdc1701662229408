//! A binary range coder: turns decisions with probabilities into bytes and back. It knows nothing
//! of fields or models. Carries are resolved before a byte leaves the pending window, so a
//! [`Checkpoint`] is a handful of words and a packet can be cut at any decision.

use alloc::vec::Vec;

/// Probability that a decision is `true`, in 1/65536; never 0 and never 65536.
pub(crate) type Probability = u16;

#[derive(Clone, Debug)]
pub(crate) struct RangeEncoder {
    low: u64,
    range: u32,
    cache: u8,
    /// Bytes that wait for a carry: the cache byte and the run of 0xFF after it.
    pending: u32,
    /// Whether no byte was written. The first one would always be zero and is not sent.
    is_first: bool,
    out: Vec<u8>,
    start: usize,
    /// Bytes at the beginning of `out` that are not part of the packet.
    headroom: usize,
}

/// A state of a [`RangeEncoder`]; see [`RangeEncoder::rewind`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checkpoint {
    low: u64,
    range: u32,
    cache: u8,
    pending: u32,
    is_first: bool,
    len: usize,
}

impl RangeEncoder {
    /// Appends to `out`, which may have a header already, after `headroom` bytes that are not part of
    /// the packet.
    pub(crate) fn new(out: Vec<u8>, headroom: usize) -> Self {
        let start = out.len();
        Self {
            low: 0,
            range: u32::MAX,
            cache: 0,
            pending: 1,
            is_first: true,
            out,
            start,
            headroom,
        }
    }

    /// Codes one decision.
    #[inline]
    pub(crate) fn bit(&mut self, bit: bool, probability: Probability) {
        let bound = (self.range >> 16) * u32::from(probability);
        let rest = self.range - bound;
        // The outcome is hard to predict for the processor, too; so there is no branch.
        let taken = u32::from(bit).wrapping_neg();
        self.low += u64::from(rest & taken);
        self.range = rest ^ ((rest ^ bound) & taken);
        if self.range < TOP {
            self.normalise();
        }
    }

    /// Codes the low `count` bits of `value` (at most 16) as equally likely.
    #[inline]
    pub(crate) fn raw(&mut self, value: u32, count: u32) {
        debug_assert!(count <= 16 && value >> count == 0);
        self.range >>= count;
        self.low += u64::from(self.range) * u64::from(value);
        if self.range < TOP {
            self.normalise();
        }
    }

    #[inline(never)]
    fn normalise(&mut self) {
        while self.range < TOP {
            self.range <<= 8;
            self.shift();
        }
    }

    /// An upper bound on the length of the packet if the stream ended now, with its header.
    pub(crate) fn len_bound(&self) -> usize {
        self.out.len() - self.headroom + self.pending as usize + TAIL
    }

    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            low: self.low,
            range: self.range,
            cache: self.cache,
            pending: self.pending,
            is_first: self.is_first,
            len: self.out.len(),
        }
    }

    /// Undoes everything coded since the checkpoint.
    pub(crate) fn rewind(&mut self, to: Checkpoint) {
        self.low = to.low;
        self.range = to.range;
        self.cache = to.cache;
        self.pending = to.pending;
        self.is_first = to.is_first;
        self.out.truncate(to.len);
    }

    /// Ends the stream with the fewest bytes that name a point in the final interval.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let last = self.low + u64::from(self.range) - 1;
        for bytes in 0..=4u32 {
            let mask = (1u64 << (8 * (4 - bytes))) - 1;
            let point = (self.low + mask) & !mask;
            if point <= last {
                self.low = point;
                for _ in 0..=bytes {
                    self.shift();
                }
                break;
            }
        }
        let mut trimmed = 0;
        while trimmed < SLACK - 4 && self.out.len() > self.start && self.out.last() == Some(&0) {
            self.out.pop();
            trimmed += 1;
        }
        self.out
    }

    fn shift(&mut self) {
        if self.low < 0xFF00_0000 || self.low > 0xFFFF_FFFF {
            let carry = (self.low >> 32) as u8;
            if !self.is_first {
                self.out.push(self.cache.wrapping_add(carry));
            }
            self.is_first = false;
            for _ in 1..self.pending {
                self.out.push(0xFFu8.wrapping_add(carry));
            }
            self.pending = 0;
            self.cache = (self.low >> 24) as u8;
        }
        self.pending += 1;
        self.low = (self.low & 0x00FF_FFFF) << 8;
    }
}

/// Turns bytes back into decisions. Reads zeros behind the end, where the encoder trims them.
#[derive(Clone, Debug)]
pub(crate) struct RangeDecoder<'a> {
    input: &'a [u8],
    position: usize,
    range: u32,
    code: u32,
}

impl<'a> RangeDecoder<'a> {
    pub(crate) fn new(input: &'a [u8]) -> Self {
        let mut decoder = Self {
            input,
            position: 0,
            range: u32::MAX,
            code: 0,
        };
        for _ in 0..4 {
            decoder.code = decoder.code << 8 | u32::from(decoder.byte());
        }
        decoder
    }

    /// Decodes one decision.
    #[inline]
    pub(crate) fn bit(&mut self, probability: Probability) -> bool {
        let bound = (self.range >> 16) * u32::from(probability);
        let rest = self.range - bound;
        let bit = self.code >= rest;
        let taken = u32::from(bit).wrapping_neg();
        self.code = self.code.wrapping_sub(rest & taken);
        self.range = rest ^ ((rest ^ bound) & taken);
        self.refill();
        bit
    }

    /// Decodes `count` equally likely bits (at most 16).
    #[inline]
    pub(crate) fn raw(&mut self, count: u32) -> u32 {
        self.range >>= count;
        let value = (self.code / self.range).min((1 << count) - 1);
        self.code = self.code.wrapping_sub(value * self.range);
        self.refill();
        value
    }

    /// Whether more was decoded than any encoder writes: the packet is forged or cut off.
    pub(crate) fn overrun(&self) -> bool {
        self.position > self.input.len() + SLACK
    }

    #[inline]
    fn refill(&mut self) {
        while self.range < TOP {
            self.range <<= 8;
            self.code = self.code << 8 | u32::from(self.byte());
        }
    }

    #[inline]
    fn byte(&mut self) -> u8 {
        let byte = self.input.get(self.position).copied().unwrap_or(0);
        self.position = self.position.saturating_add(1);
        byte
    }
}

const TOP: u32 = 1 << 24;
/// The most bytes that finishing a stream adds.
const TAIL: usize = 5;
/// Bytes that a decoder may read behind the end: four of look-ahead, and the trimmed zeros.
const SLACK: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn splitmix(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    #[test]
    fn decisions_come_back_for_every_skew_and_length() {
        let mut seed = 7;
        for length in (0..200).chain([1000, 20_000]) {
            let mut encoder = RangeEncoder::new(alloc::vec![0; 3], 0);
            let mut expected = Vec::new();
            for _ in 0..length {
                let r = splitmix(&mut seed);
                if r & 7 == 0 {
                    let count = (r >> 8) as u32 % 17;
                    let value = (r >> 16) as u32 & ((1 << count) - 1);
                    encoder.raw(value, count);
                    expected.push((value, count, 0));
                } else {
                    let p = [1, 65535, 32768, (r >> 40) as u16 | 1][(r >> 3) as usize & 3];
                    let bit = ((r >> 20) as u16) < p;
                    encoder.bit(bit, p);
                    expected.push((u32::from(bit), 0, p));
                }
            }
            let bound = encoder.len_bound();
            let bytes = encoder.finish();
            assert!(bytes.len() <= bound);
            let mut decoder = RangeDecoder::new(&bytes[3..]);
            for (value, count, p) in expected {
                if p == 0 {
                    assert_eq!(decoder.raw(count), value);
                } else {
                    assert_eq!(decoder.bit(p), value == 1);
                }
            }
            assert!(!decoder.overrun());
        }
    }

    #[test]
    fn a_rewound_stream_is_the_stream_without_the_detour() {
        let mut seed = 11;
        for _ in 0..300 {
            let mut straight = RangeEncoder::new(Vec::new(), 0);
            let mut detour = RangeEncoder::new(Vec::new(), 0);
            for _ in 0..splitmix(&mut seed) % 60 {
                let r = splitmix(&mut seed);
                straight.bit(r & 1 == 1, (r >> 32) as u16 | 1);
                detour.bit(r & 1 == 1, (r >> 32) as u16 | 1);
                if r & 6 == 0 {
                    let here = detour.checkpoint();
                    for _ in 0..r >> 60 {
                        detour.bit(false, 65535);
                        detour.raw((splitmix(&mut seed) & 0xFFFF) as u32, 16);
                    }
                    detour.rewind(here);
                }
            }
            assert_eq!(straight.finish(), detour.finish());
        }
    }

    #[test]
    fn a_stream_may_start_at_the_top_of_the_interval() {
        for length in 0..400 {
            let mut encoder = RangeEncoder::new(Vec::new(), 0);
            let probability = |i: usize| [1u16, 300, 2400, 9][i % 4];
            for i in 0..length {
                encoder.bit(i == length - 1, probability(i));
            }
            let bytes = encoder.finish();
            let mut decoder = RangeDecoder::new(&bytes);
            for i in 0..length {
                assert_eq!(
                    decoder.bit(probability(i)),
                    i == length - 1,
                    "{i} of {length}"
                );
            }
        }
    }

    #[test]
    fn certain_decisions_cost_almost_nothing() {
        let mut encoder = RangeEncoder::new(Vec::new(), 0);
        for _ in 0..10_000 {
            encoder.bit(true, 65535);
        }
        assert!(encoder.finish().len() <= 1);
    }
}
