//! Integers of variable length for formats around packets: small ones take few bytes.
//!
//! Priors, acknowledgements, recordings and packed keyframes are written with them. Every number has
//! exactly one form, and a reader refuses all others.

use alloc::vec::Vec;

/// Writes seven bits per byte, the lowest first; the highest bit is set in all but the last byte.
pub fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads what [`put`] wrote and advances `from`; `None` for anything else.
pub fn take(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        let part = u64::from(byte & 0x7F);
        if part << shift >> shift != part || (byte == 0 && shift > 0) {
            return None;
        }
        number |= part << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Writes a signed number, zigzag: 0, -1, 1, -2, …
pub fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, (number << 1 ^ number >> 63) as u64);
}

/// Reads what [`put_signed`] wrote.
pub fn take_signed(from: &mut &[u8]) -> Option<i64> {
    let number = take(from)?;
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}

/// Writes bytes with their length.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads what [`put_bytes`] wrote.
pub fn take_bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take(from)?).ok()?;
    let (bytes, rest) = from.split_at_checked(len)?;
    *from = rest;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails without the test that no bits are shifted out (`2 << 63` is read as 0), and without the
    /// one that refuses a last byte of zero.
    #[test]
    fn numbers_come_back_and_have_one_form() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            assert_eq!(take(&mut &bytes[..]), Some(number));
            assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None);
            let mut bytes = Vec::new();
            put_signed(&mut bytes, number as i64);
            assert_eq!(take_signed(&mut &bytes[..]), Some(number as i64));
        }
        let too_long = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2];
        assert_eq!(take(&mut &too_long[..]), None);
        assert_eq!(take(&mut &[0x85, 0x00][..]), None);
        assert_eq!(take_bytes(&mut &[3, 1, 2][..]), None);
    }
}
