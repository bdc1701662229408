//! Acknowledgements of snapshots.
//!
//! Every acknowledgement repeats the last 64, so losing one delays the sender's knowledge by a tick
//! at most.

use super::bytes::{Input, write_varint};
use crate::harness::ReceiveError;

/// The newest applied tick and which of the 64 before it were applied too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Acknowledgement {
    pub(super) newest: u64,
    earlier: u64,
}

impl Acknowledgement {
    pub(super) fn after(previous: Option<Self>, tick: u64) -> Self {
        let earlier = previous.map_or(0, |previous| {
            let distance = tick - previous.newest;
            let shifted = u32::try_from(distance)
                .ok()
                .and_then(|by| previous.earlier.checked_shl(by));
            let itself = if distance <= 64 {
                1 << (distance - 1)
            } else {
                0
            };
            shifted.unwrap_or(0) | itself
        });
        Self {
            newest: tick,
            earlier,
        }
    }

    pub(super) fn contains(&self, tick: u64) -> bool {
        match self.newest.checked_sub(tick) {
            Some(0) => true,
            Some(distance @ 1..=64) => self.earlier >> (distance - 1) & 1 == 1,
            _ => false,
        }
    }

    pub(super) fn write(self) -> Vec<u8> {
        let mut output = Vec::new();
        write_varint(&mut output, self.newest);
        output.extend(self.earlier.to_le_bytes());
        output
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self, ReceiveError> {
        let mut input = Input(bytes);
        let newest = input.varint()?;
        let mut earlier = [0; 8];
        earlier.copy_from_slice(input.take(8)?);
        input.end()?;
        Ok(Self {
            newest,
            earlier: u64::from_le_bytes(earlier),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_repeats_what_earlier_ones_said() {
        let mut acknowledgement = None;
        for tick in [3, 4, 7, 70] {
            acknowledgement = Some(Acknowledgement::after(acknowledgement, tick));
        }
        let bytes = acknowledgement.unwrap().write();
        let read = Acknowledgement::read(&bytes).unwrap();
        let contained: Vec<u64> = (0..80).filter(|&tick| read.contains(tick)).collect();
        assert_eq!(contained, [7, 70]);
        assert_eq!(
            Acknowledgement::after(Some(read), 71).earlier.count_ones(),
            2
        );
    }
}
