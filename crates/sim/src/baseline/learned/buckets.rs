//! Integers as a bucket and a position inside it.
//!
//! The document's table of 64 buckets, extended to 64-bit integers: -1, 0, 1 and -2 have buckets of
//! their own, every further bucket is twice as wide. Buckets are numbered from zero outwards, so
//! that the frequent ones are first when frequencies are summed.

/// Number of buckets.
pub(crate) const BUCKETS: usize = 128;

/// The bucket of a value.
pub(crate) fn bucket(value: i64) -> usize {
    let negative = usize::from(value < 0);
    let magnitude = if value < 0 { !value } else { value };
    2 * (64 - magnitude.leading_zeros()) as usize + negative
}

/// Number of bits of a position in a bucket.
pub(crate) fn position_bits(bucket: usize) -> u32 {
    (bucket as u32 / 2).saturating_sub(1)
}

/// The position of a value in its bucket.
pub(crate) fn position(value: i64) -> u64 {
    let magnitude = if value < 0 { !value } else { value } as u64;
    match magnitude.checked_ilog2() {
        Some(top) => magnitude ^ 1 << top,
        None => 0,
    }
}

/// The value at a position of a bucket.
pub(crate) fn value(bucket: usize, position: u64) -> i64 {
    let magnitude = match bucket / 2 {
        0 => 0,
        bits => (1u64 << (bits - 1) | position) as i64,
    };
    if bucket % 2 == 1 {
        !magnitude
    } else {
        magnitude
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_integer_has_one_place() {
        let edges = (0..64).flat_map(|bit| {
            let power = 1i64.wrapping_shl(bit);
            [
                power,
                power.wrapping_sub(1),
                power.wrapping_neg(),
                !power,
                power.wrapping_add(1),
            ]
        });
        for number in edges.chain(-300..300).chain([i64::MIN, i64::MAX]) {
            let index = bucket(number);
            assert!(index < BUCKETS);
            assert!(position(number) < 1 << position_bits(index));
            assert_eq!(value(index, position(number)), number);
        }
        assert_eq!(
            [0, -1, 1, -2, 2, 3, -3, -4].map(bucket),
            [0, 1, 2, 3, 4, 4, 5, 5]
        );
    }
}
