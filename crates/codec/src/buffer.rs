//! Buffers that are reused from packet to packet.
//!
//! The packets that send a world to a new client are a hundred times as long as those that follow.
//! A server that kept the memory they took, for each of its clients, would hold little else.

use alloc::vec::Vec;

/// Empties a buffer and keeps its memory, unless that is much more than was used.
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

/// Gives back most of the memory that is not in use, if that is more than three quarters.
pub(crate) fn shrink_to_use<T>(buffer: &mut Vec<T>) {
    let (used, room) = (buffer.len(), buffer.capacity());
    if room * size_of::<T>() > SMALL && used < room / 4 {
        buffer.shrink_to(used + used / 2);
    }
}

pub(crate) fn bytes<T>(buffer: &Vec<T>) -> usize {
    buffer.capacity() * size_of::<T>()
}

/// Smaller buffers are never shrunk, so that a connection in its steady state does not allocate.
const SMALL: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if `shrink` shrinks at a half instead of a quarter (a steady use then loses memory),
    /// or never.
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
