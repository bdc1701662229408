//! Forged packets: a header that fits the receiver, with any body. Without checksums
//! (`cfg(fuzzing)`) every body is a valid sequence of decisions, so these packets are decoded
//! deeply.

use arbitrary::Arbitrary;

/// A forged packet, independent of its receiver.
#[derive(Arbitrary, Clone, Debug)]
pub struct Forgery {
    /// Sequence numbers that it skips.
    pub ahead: u8,
    /// Ticks that it skips.
    pub pause: u8,
    /// How many packets its cursor is behind the newest.
    pub behind: u8,
    pub full: bool,
    /// Packets that are not folded, counted back from the cursor.
    pub excluded: Vec<(u8, u8)>,
    /// A new epoch, if not 0.
    pub epoch: u8,
    pub body: Body,
}

/// The bytes after a header.
#[derive(Arbitrary, Clone, Debug)]
pub enum Body {
    Any(Vec<u8>),
    /// The body of the newest honest packet, with changed and additional bytes.
    Changed {
        bytes: Vec<(u8, u8)>,
        more: Vec<u8>,
    },
}

/// The state of the receiver, which a forger needs.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    pub epoch: u8,
    /// The newest applied packet and tick.
    pub newest: u32,
    pub tick: u32,
    /// The newest honest packet.
    pub honest: &'a [u8],
}

impl Forgery {
    /// The bytes of the packet.
    pub fn to_bytes(&self, target: Target<'_>) -> Vec<u8> {
        let sequence = target.newest.saturating_add(1 + u32::from(self.ahead % 4));
        let pause = match self.pause {
            0..200 => self.pause % 3,
            long => long,
        };
        let tick = target.tick.saturating_add(1 + u32::from(pause));
        let epoch = target.epoch.wrapping_add(self.epoch % 3);
        let cursor = match (epoch == target.epoch, self.behind) {
            (true, 0..250) => target.newest.saturating_sub(u32::from(self.behind % 16)),
            _ => 0,
        };
        let excluded = &self.excluded[..self.excluded.len().min(8)];
        let mut bytes = vec![0, epoch];
        for word in [sequence, tick, cursor] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.push(u8::from(self.full) | (excluded.len() as u8) << 2);
        for &(back, length) in excluded {
            let from = cursor.saturating_sub(u32::from(back % 16));
            for word in [from, from.saturating_add(u32::from(length % 4))] {
                bytes.extend(word.to_le_bytes());
            }
        }
        // The checksum, which is not verified.
        bytes.extend([0, 0]);
        match &self.body {
            Body::Any(body) => bytes.extend(body),
            Body::Changed {
                bytes: changes,
                more,
            } => {
                let mut body = body_of(target.honest).to_vec();
                for &(at, flip) in changes {
                    let at = usize::from(at).checked_rem(body.len());
                    if let Some(byte) = at.and_then(|at| body.get_mut(at)) {
                        *byte ^= flip;
                    }
                }
                bytes.extend(body);
                bytes.extend(more);
            }
        }
        bytes
    }
}

/// The body of an honest packet.
fn body_of(packet: &[u8]) -> &[u8] {
    let gaps = |at: usize| 8 * usize::from(packet.get(at).map_or(0, |flags| flags >> 2));
    let header = match packet.first() {
        None => 0,
        Some(0) => 15 + gaps(14) + 2,
        Some(first) if first & 0x80 == 0 => 3 + 2,
        Some(_) => {
            let steady = packet.get(3).is_some_and(|flags| flags & 2 != 0);
            4 + gaps(3) + if steady { 0 } else { 4 } + 2
        }
    };
    packet.get(header..).unwrap_or_default()
}
