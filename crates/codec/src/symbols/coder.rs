//! A range coder for symbols: 64 bits of range, renormalised by 32 bits at a time, so that most
//! symbols move no bytes. It knows nothing of statistics.
//!
//! As in the binary coder, carries are resolved before a word leaves the pending window.

use alloc::vec::Vec;

/// Turns symbols into bytes.
#[derive(Clone, Debug)]
pub struct SymbolEncoder {
    low: u64,
    range: u64,
    /// Whether `low` has passed 2^64 since the last word.
    carry: bool,
    /// The last word, which a carry may still change, and the run of all ones after it.
    cache: u32,
    pending: u32,
    /// Whether no word is cached yet.
    is_first: bool,
    out: Vec<u8>,
    start: usize,
}

impl SymbolEncoder {
    /// Appends to `out`, which may have a header already.
    pub fn new(out: Vec<u8>) -> Self {
        let start = out.len();
        Self {
            low: 0,
            range: u64::MAX,
            carry: false,
            cache: 0,
            pending: 0,
            is_first: true,
            out,
            start,
        }
    }

    /// Codes a symbol that has `frequency` of 2^15 shares, the first of which is `cumulative`.
    #[inline]
    pub fn symbol(&mut self, cumulative: u32, frequency: u32) {
        debug_assert!(frequency > 0 && cumulative + frequency <= TOTAL);
        let share = self.range >> TOTAL_BITS;
        self.advance(share * u64::from(cumulative), share * u64::from(frequency));
    }

    /// Codes the low `count` bits of `value` (at most 32) as equally likely.
    #[inline]
    pub fn raw(&mut self, value: u32, count: u32) {
        debug_assert!(count <= 32 && u64::from(value) >> count == 0);
        let share = self.range >> count;
        self.advance(share * u64::from(value), share);
    }

    #[inline]
    fn advance(&mut self, by: u64, range: u64) {
        let (low, carry) = self.low.overflowing_add(by);
        self.low = low;
        self.carry |= carry;
        self.range = range;
        if range <= u64::from(u32::MAX) {
            self.range <<= 32;
            self.shift();
        }
    }

    /// An upper bound on the length if the stream ended now, including what `out` had before.
    pub fn len_bound(&self) -> usize {
        self.out.len() + 4 * self.pending as usize + TAIL
    }

    /// Ends the stream with the fewest bytes that name a point in the final interval.
    pub fn finish(mut self) -> Vec<u8> {
        let low = u128::from(self.carry) << 64 | u128::from(self.low);
        let last = low + u128::from(self.range) - 1;
        let words = usize::from(!self.is_first) + self.pending as usize;
        let whole = self.out.len() + 4 * words;
        for bytes in 0..=8 {
            let mask = (1u128 << (8 * (8 - bytes))) - 1;
            let point = (low + mask) & !mask;
            if point <= last {
                self.low = point as u64;
                self.carry = point >> 64 != 0;
                // The two words of the point, and one more that pushes the last of them out.
                (0..3).for_each(|_| self.shift());
                self.out.truncate(whole + bytes);
                break;
            }
        }
        let mut trimmed = 0;
        while trimmed < TRIMMED && self.out.len() > self.start && self.out.last() == Some(&0) {
            self.out.pop();
            trimmed += 1;
        }
        self.out
    }

    #[inline(never)]
    fn shift(&mut self) {
        let word = (self.low >> 32) as u32;
        if self.carry || word != u32::MAX {
            if !self.is_first {
                let cache = self.cache.wrapping_add(u32::from(self.carry));
                self.out.extend_from_slice(&cache.to_be_bytes());
            }
            for _ in 0..self.pending {
                let ones = u32::MAX.wrapping_add(u32::from(self.carry));
                self.out.extend_from_slice(&ones.to_be_bytes());
            }
            (self.pending, self.carry, self.is_first) = (0, false, false);
            self.cache = word;
        } else {
            self.pending += 1;
        }
        self.low <<= 32;
    }
}

/// Turns bytes back into symbols. Reads zeros behind the end, where the encoder trims them.
#[derive(Clone, Debug)]
pub struct SymbolDecoder<'a> {
    input: &'a [u8],
    position: usize,
    range: u64,
    code: u64,
}

impl<'a> SymbolDecoder<'a> {
    /// Reads what [`SymbolEncoder::finish`] appended.
    pub fn new(input: &'a [u8]) -> Self {
        let mut decoder = Self {
            input,
            position: 0,
            range: u64::MAX,
            code: 0,
        };
        let first = decoder.word();
        decoder.code = u64::from(first) << 32 | u64::from(decoder.word());
        decoder
    }

    /// One of the shares of the next symbol, of 2^15. Call [`accept`](Self::accept) with the
    /// symbol's shares then.
    #[inline]
    pub fn share(&self) -> u32 {
        let share = self.code / (self.range >> TOTAL_BITS);
        share.min(u64::from(TOTAL) - 1) as u32
    }

    /// Removes the symbol with these shares.
    #[inline]
    pub fn accept(&mut self, cumulative: u32, frequency: u32) {
        let share = self.range >> TOTAL_BITS;
        self.advance(share * u64::from(cumulative), share * u64::from(frequency));
    }

    /// Decodes `count` equally likely bits (at most 32).
    #[inline]
    pub fn raw(&mut self, count: u32) -> u32 {
        let share = self.range >> count;
        let value = (self.code / share).min((1 << count) - 1);
        self.advance(share * value, share);
        value as u32
    }

    #[inline]
    fn advance(&mut self, by: u64, range: u64) {
        self.code = self.code.wrapping_sub(by);
        self.range = range;
        if range <= u64::from(u32::MAX) {
            self.range <<= 32;
            self.code = self.code << 32 | u64::from(self.word());
        }
    }

    /// Whether more was decoded than any encoder writes: the packet is forged or cut off.
    pub fn overrun(&self) -> bool {
        self.position > self.input.len() + SLACK
    }

    #[inline]
    fn word(&mut self) -> u32 {
        let rest = self.input.get(self.position..).unwrap_or(&[]);
        self.position = self.position.saturating_add(4);
        match rest.first_chunk() {
            Some(word) => u32::from_be_bytes(*word),
            None => {
                let bytes = (0..4).map(|at| rest.get(at).copied().unwrap_or(0));
                bytes.fold(0, |word, byte| word << 8 | u32::from(byte))
            }
        }
    }
}

/// Shares of all symbols together.
pub(super) const TOTAL: u32 = 1 << TOTAL_BITS;
const TOTAL_BITS: u32 = 15;
/// The most bytes that finishing a stream adds to the pending words: the cached one and a point.
const TAIL: usize = 12;
/// Zeros at the end that are left out at most.
const TRIMMED: usize = 4;
/// Bytes that a decoder may read behind the end: two words of look-ahead, and the trimmed zeros.
const SLACK: usize = 8 + TRIMMED;

#[cfg(test)]
mod tests {
    use super::super::tests::Random;
    use super::*;

    /// Symbols, near-certain and near-impossible ones among them, and raw bits come back, after a
    /// header and for every length. Fails if a carry is lost (`self.carry |= carry` in `advance`).
    #[test]
    fn symbols_come_back_for_every_skew_and_length() {
        let mut random = Random(5);
        for length in (0..300).chain([1000, 30_000]) {
            let mut encoder = SymbolEncoder::new(alloc::vec![7; 3]);
            let mut expected = Vec::new();
            for _ in 0..length {
                let kind = random.below(8);
                if kind == 0 {
                    let count = random.below(33) as u32;
                    let value = (random.next() as u32) & (((1u64 << count) - 1) as u32);
                    encoder.raw(value, count);
                    expected.push((value, count, 0));
                    continue;
                }
                // The last share makes long runs of ones and carries.
                let (cumulative, frequency) = match kind {
                    1 => (TOTAL - 1, 1),
                    2 => (0, TOTAL - 1),
                    3 => (0, TOTAL),
                    _ => {
                        let first = random.below(u64::from(TOTAL)) as u32;
                        (first, 1 + random.below(u64::from(TOTAL - first)) as u32)
                    }
                };
                encoder.symbol(cumulative, frequency);
                expected.push((cumulative, 99, frequency));
            }
            let bound = encoder.len_bound();
            let bytes = encoder.finish();
            assert!(bytes.len() <= bound, "{} of {bound}", bytes.len());
            let mut decoder = SymbolDecoder::new(&bytes[3..]);
            for (value, count, frequency) in expected {
                if frequency == 0 {
                    assert_eq!(decoder.raw(count), value);
                } else {
                    let share = decoder.share();
                    assert!((value..value + frequency).contains(&share), "{length}");
                    decoder.accept(value, frequency);
                }
            }
            assert!(!decoder.overrun());
        }
    }

    /// Fails if `finish` does not truncate, or writes more bytes than it needs.
    #[test]
    fn certain_symbols_cost_almost_nothing() {
        let mut encoder = SymbolEncoder::new(Vec::new());
        (0..10_000).for_each(|_| encoder.symbol(0, TOTAL - 1));
        assert!(encoder.finish().len() <= 1);
        assert!(SymbolEncoder::new(Vec::new()).finish().is_empty());
    }

    /// The code is as long as the information in it. Fails if `share` is computed from fewer bits of
    /// the range.
    #[test]
    fn the_code_is_as_long_as_its_information() {
        let mut random = Random(9);
        let mut encoder = SymbolEncoder::new(Vec::new());
        let mut bits = 0.0;
        for _ in 0..50_000 {
            let frequency = 1 + random.below(400) as u32;
            encoder.symbol(random.below(u64::from(TOTAL - frequency)) as u32, frequency);
            bits -= (f64::from(frequency) / f64::from(TOTAL)).log2();
        }
        let spent = encoder.finish().len() as f64 * 8.0;
        assert!(spent < bits * 1.00001 + 16.0, "{spent} for {bits}");
    }

    /// Anything can be decoded without a panic, and is found out. Fails if `overrun` never says so.
    #[test]
    fn random_bytes_are_decoded_and_overrun() {
        let mut random = Random(13);
        for _ in 0..300 {
            let bytes: Vec<u8> = (0..random.below(20)).map(|_| random.next() as u8).collect();
            let mut decoder = SymbolDecoder::new(&bytes);
            for _ in 0..200 {
                let share = decoder.share();
                let first = share / 2048 * 2048;
                decoder.accept(first, 2048);
                decoder.raw(5);
            }
            assert!(decoder.overrun());
        }
    }
}
