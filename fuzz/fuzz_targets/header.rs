//! Any header before a real body: the fields that name packets, ticks and models.
#![no_main]

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prescient_codec::Decoder;
use prescient_fuzz::{state, warm};

static WARM: LazyLock<(Decoder, Vec<u8>)> = LazyLock::new(|| warm(false));

#[derive(Arbitrary, Debug)]
enum Head {
    Short {
        ahead: u8,
        low: i8,
        flags: Option<u8>,
        rest: Vec<u8>,
    },
    Long {
        epoch: u8,
        sequence: u32,
        tick: u32,
        cursor: u32,
        flags: u8,
        excluded: Vec<(u8, u8)>,
    },
}

fuzz_target!(|heads: Vec<Head>| {
    let (decoder, real) = &*WARM;
    let mut decoder = decoder.clone();
    for head in heads {
        let mut bytes = Vec::new();
        match head {
            Head::Short {
                ahead,
                low,
                flags,
                rest,
            } => {
                bytes.push(ahead & 127 | u8::from(flags.is_some()) << 7);
                bytes.extend_from_slice(&(90i16.wrapping_add(i16::from(low))).to_le_bytes());
                bytes.extend(flags);
                bytes.extend(rest);
            }
            Head::Long {
                epoch,
                sequence,
                tick,
                cursor,
                flags,
                excluded,
            } => {
                bytes.extend([0, epoch]);
                for word in [sequence, tick, cursor] {
                    bytes.extend(word.to_le_bytes());
                }
                bytes.push(flags & 3 | (excluded.len() as u8) << 2);
                for (from, to) in excluded {
                    bytes.extend(u32::from(from).to_le_bytes());
                    bytes.extend(u32::from(to).to_le_bytes());
                }
            }
        }
        bytes.extend_from_slice(&real[3..]);
        let before = state(&decoder);
        if decoder.decode(&bytes).is_err() {
            assert_eq!(before, state(&decoder));
        }
    }
});
