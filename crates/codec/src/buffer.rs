//! Room that is used from packet to packet.
//!
//! The packets that tell a newcomer of a world are a hundred times as long as those that follow.
//! A server that kept the room they took, for each of its clients, would hold mostly that.

use alloc::vec::Vec;

/// Empties a buffer and keeps its memory, unless it has lately been much more than is used.
pub(crate) fn clear<T>(buffer: &mut Vec<T>) {
    let used = buffer.len();
    buffer.clear();
    shrink(buffer, used);
}

/// Gives back half of a buffer's memory if less than a quarter of it was used.
pub(crate) fn shrink<T>(buffer: &mut Vec<T>, used: usize) {
    let room = buffer.capacity();
    if room * size_of::<T>() > SMALL && used < room / 4 {
        buffer.shrink_to(room / 2);
    }
}

/// Bytes that a buffer holds.
pub(crate) fn bytes<T>(buffer: &Vec<T>) -> usize {
    buffer.capacity() * size_of::<T>()
}

/// Bytes that are not worth the trouble: a settled connection shall not allocate.
const SMALL: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if `ease` shrinks at a half instead of a quarter (the room of a steady use goes), or
    /// never.
    #[test]
    fn room_follows_use() {
        let mut buffer = Vec::new();
        buffer.extend(0..100_000);
        for _ in 0..20 {
            clear(&mut buffer);
            buffer.extend(0..1100);
        }
        let room = buffer.capacity();
        assert!((1100..=4400).contains(&room), "{room} for 1100");
        for used in (0..100).map(|round| 1100 + round % 20 * 100) {
            clear(&mut buffer);
            buffer.extend(0..used);
            assert_eq!(buffer.capacity(), room);
        }
    }
}
