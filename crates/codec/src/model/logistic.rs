//! Conversions between probabilities and log-odds, in integers.
//!
//! Contexts are mixed in the log-odds domain. Both directions are tables built at compile time from
//! integer arithmetic alone, so they are the same on every platform.

/// Log-odds in 1/256 nats, clamped to ±2047.
pub(crate) type LogOdds = i32;

/// The probability, in 1/65536, of log-odds in 1/256 nats; clamps outside ±2047.
#[inline]
pub(crate) fn squash(odds: LogOdds) -> u16 {
    SQUASH[(odds.clamp(-2047, 2047) + 2048) as usize]
}

/// The log-odds of a probability in 1/4096.
#[inline]
pub(crate) fn stretch(probability: u16) -> LogOdds {
    LogOdds::from(STRETCH[usize::from(probability & 0xFFF)])
}

/// Bits that a decision of this probability (1/65536) costs, in 1/65536 bit.
#[inline]
pub(crate) fn cost(probability: u16) -> u32 {
    COST[usize::from(probability >> 4)]
}

static SQUASH: [u16; 4096] = squash_table();
static STRETCH: [i16; 4096] = stretch_table();
static COST: [u32; 4096] = cost_table();

const ONE: u128 = 1 << 60;

/// `1 / (1 + e^-x)` for x = (i - 2048) / 256.
const fn squash_table() -> [u16; 4096] {
    // e^(-1/256) in 2^-60: the alternating series 1 - x + x²/2 - x³/6 + … for x = 1/256.
    let mut step = ONE;
    let mut term = ONE;
    let mut n = 1;
    while n < 9 {
        term /= 256 * n;
        if n % 2 == 1 {
            step -= term;
        } else {
            step += term;
        }
        n += 1;
    }
    let mut table = [0u16; 4096];
    let mut decay = ONE;
    let mut i = 0;
    while i <= 2048 {
        // p(x) = 1 / (1 + decay), p(-x) = decay / (1 + decay)
        let high = (ONE << 16) / (ONE + decay);
        let low = (decay << 16) / (ONE + decay);
        if 2048 + i < 4096 {
            table[2048 + i] = if high > 65535 { 65535 } else { high as u16 };
        }
        table[2048 - i] = if low < 1 { 1 } else { low as u16 };
        decay = (decay * step) / ONE;
        i += 1;
    }
    table
}

/// The inverse of [`squash_table`] at the middle of each of 4096 cells of probability.
const fn stretch_table() -> [i16; 4096] {
    let squash = squash_table();
    let mut table = [0i16; 4096];
    let mut at = 0;
    let mut i = 0;
    while i < 4096 {
        let target = (i as u32) * 16 + 8;
        while at < 4095 && (squash[at] as u32) < target {
            at += 1;
        }
        table[i] = at as i16 - 2048;
        i += 1;
    }
    table
}

/// `-log2` of the middle of each cell, by repeated squaring.
const fn cost_table() -> [u32; 4096] {
    let mut table = [0u32; 4096];
    let mut i = 0;
    while i < 4096 {
        // value = (2i + 1) / 8192, brought into [1, 2) by a shift.
        let value = 2 * i as u64 + 1;
        let top = 63 - value.leading_zeros();
        let mut mantissa = value << (31 - top);
        let mut fraction = 0u32;
        let mut bit = 0;
        while bit < 16 {
            mantissa = (mantissa * mantissa) >> 31;
            fraction <<= 1;
            if mantissa >= 1 << 32 {
                fraction |= 1;
                mantissa >>= 1;
            }
            bit += 1;
        }
        table[i] = (13 - top) * 65536 - fraction;
        i += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_follow_the_functions_they_stand_for() {
        for i in -2047..=2047 {
            let exact = 65536.0 / (1.0 + (-f64::from(i) / 256.0).exp());
            assert!((f64::from(squash(i)) - exact).abs() <= 1.5, "squash {i}");
        }
        for i in 1..4095u16 {
            let p = (f64::from(i) + 0.5) / 4096.0;
            let exact = (p / (1.0 - p)).ln() * 256.0;
            assert!((f64::from(stretch(i)) - exact).abs() <= 3.0, "stretch {i}");
            let bits = -p.log2() * 65536.0;
            assert!((f64::from(cost(i << 4)) - bits).abs() <= 2.0, "cost {i}");
        }
    }
}
