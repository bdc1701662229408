//! Any header before a real body: the fields that name packets, ticks and models.
#![no_main]

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prescient_codec::{Decoder, numbers};
use prescient_fuzz::{state, warm};

static WARM: LazyLock<(Decoder, Vec<u8>)> = LazyLock::new(|| warm(false));

#[derive(Arbitrary, Debug)]
enum Head {
    Short {
        sequence: u8,
    },
    Near {
        flags: u8,
        cursor: u16,
        rest: Vec<u8>,
    },
    Far {
        flags: u8,
        low: i8,
        ahead: u64,
        rest: Vec<u8>,
    },
    Long {
        flags: u8,
        epoch: u8,
        sequence: u32,
        tick: u64,
        excluded: Vec<(u64, u64)>,
    },
}

fuzz_target!(|heads: Vec<Head>| {
    let (decoder, real) = &*WARM;
    let mut decoder = decoder.clone();
    for head in heads {
        let mut bytes = Vec::new();
        match head {
            Head::Short { sequence } => bytes.push(sequence & 127),
            Head::Near {
                flags,
                cursor,
                rest,
            } => {
                bytes.push(0x80 | flags & 7);
                bytes.extend_from_slice(&cursor.to_le_bytes());
                bytes.extend(rest);
            }
            Head::Far {
                flags,
                low,
                ahead,
                rest,
            } => {
                bytes.push(0x88 | flags & 7);
                bytes.extend_from_slice(&(90i16.wrapping_add(i16::from(low))).to_le_bytes());
                numbers::put(&mut bytes, ahead);
                bytes.extend(rest);
            }
            Head::Long {
                flags,
                epoch,
                sequence,
                tick,
                excluded,
            } => {
                bytes.extend([
                    0x90 | flags & 1 | u8::from(!excluded.is_empty()) << 2,
                    epoch,
                ]);
                bytes.extend(sequence.to_le_bytes());
                numbers::put(&mut bytes, tick);
                if !excluded.is_empty() {
                    numbers::put(&mut bytes, excluded.len() as u64);
                }
                for (from, more) in excluded {
                    numbers::put(&mut bytes, from);
                    numbers::put(&mut bytes, more);
                }
            }
        }
        bytes.extend_from_slice(&real[1..]);
        let before = state(&decoder);
        if decoder.decode(&bytes).is_err() {
            assert_eq!(before, state(&decoder));
        }
    }
});
