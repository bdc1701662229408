//! What one context knows about a decision.

/// A cell is a probability in the upper 22 bits and a count in the lower 10: it moves fast while
/// it has seen little.
#[inline]
pub fn adapt(cell: u32, bit: bool) -> u32 {
    let count = cell & COUNT;
    let probability = i64::from(cell >> 10);
    let target = i64::from(u32::from(bit).wrapping_neg() >> 10);
    let step = ((target - probability) * i64::from(RATE[count as usize & 0xFF])) >> 16;
    let moved = (probability + step) as u32;
    moved << 10 | (count + u32::from(count < LIMIT))
}

/// A cell that was taught nothing.
pub const FRESH: u32 = 1 << 31;
/// The bits of a cell that count what it was taught.
pub const COUNT: u32 = 0x3FF;
/// It counts no further.
pub const LIMIT: u32 = 250;
static RATE: [u16; 256] = rates();

const fn rates() -> [u16; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = (65536 * 2 / (2 * i + 3)) as u16;
        i += 1;
    }
    table
}
