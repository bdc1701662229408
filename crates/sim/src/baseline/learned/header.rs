//! The header of a packet: the ticks that it refers to.
//!
//! Usually three bytes: consecutive samples a few ticks back, and the low half of the tick.

use super::super::{
    archive::{Applications, Past, SAMPLES},
    bytes::{Input, write_varint},
};
use crate::harness::ReceiveError;

/// Older samples are not used: a polynomial through them predicts nothing, and the low half of a
/// tick number must be unambiguous.
const OLDEST: u64 = 4096;

/// Number of known ticks that this packet refers to.
pub(super) fn usable<M>(tick: u64, known: &[&Past<M>]) -> usize {
    known
        .iter()
        .take_while(|past| tick - past.tick <= OLDEST)
        .count()
}

/// First byte: 0, no samples and the whole tick follows; else bits 0-1 number of samples minus
/// one, bit 2 explicit distances follow, bits 3-7 ticks back to the newest.
pub(super) fn write_header<M>(tick: u64, known: &[&Past<M>], output: &mut Vec<u8>) {
    let Some(newest) = known.first() else {
        output.push(0);
        write_varint(output, tick);
        return;
    };
    let back = tick - newest.tick;
    let consecutive = known
        .windows(2)
        .all(|pair| pair[0].tick - pair[1].tick == 1);
    let more = known.len() as u8 - 1;
    if consecutive && back < 32 {
        output.push((back as u8) << 3 | more);
    } else {
        output.push(1 << 2 | more);
        write_varint(output, back);
        for pair in known.windows(2) {
            write_varint(output, pair[0].tick - pair[1].tick);
        }
    }
    output.extend((tick as u16).to_le_bytes());
}

/// The tick and the samples, newest first.
pub(super) fn read_header<'a, M>(
    input: &mut Input,
    past: &'a Applications<M>,
) -> Result<(u64, Vec<&'a Past<M>>), ReceiveError> {
    let first = input.byte()?;
    if first == 0 {
        return Ok((input.varint()?, Vec::new()));
    }
    let more = usize::from(first & 3);
    debug_assert!(more < SAMPLES);
    let mut distances = vec![1; more + 1];
    if first & 4 != 0 {
        for distance in &mut distances {
            *distance = input.varint()?;
        }
    } else {
        distances[0] = u64::from(first >> 3);
    }
    let low = input.take(2)?;
    let low = u16::from_le_bytes([low[0], low[1]]);
    let newest = past
        .newest()
        .ok_or(ReceiveError::MissingBaseline {
            tick: u64::from(low),
        })?
        .tick;
    let tick = newest.wrapping_add(1);
    let tick = tick.wrapping_add(u64::from(low.wrapping_sub(tick as u16)));
    let mut at = tick;
    let mut samples = Vec::with_capacity(distances.len());
    for distance in distances {
        let earlier = at.checked_sub(distance).filter(|_| distance > 0);
        at = earlier.ok_or(ReceiveError::Malformed("a sample is before the first tick"))?;
        samples.push(past.find(at, tick)?);
    }
    if tick - at > 8 * OLDEST {
        return Err(ReceiveError::Malformed("a sample is too old"));
    }
    Ok((tick, samples))
}
