//! Any bytes, to a decoder that knows nothing and to one that has lived a while: never a panic,
//! and no trace of what was refused.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use prescient_codec::Decoder;
use prescient_fuzz::{config, schema, state, warm};

static WARM: LazyLock<[(Decoder, Vec<u8>); 2]> = LazyLock::new(|| [warm(false), warm(true)]);

fuzz_target!(|input: (bool, Vec<u8>)| {
    let (best, bytes) = input;
    let mut fresh = Decoder::new(schema(), config(best));
    feed(&mut fresh, &bytes);
    let (warm, real) = &WARM[usize::from(best)];
    feed(&mut warm.clone(), &bytes);
    // Changes to a real packet get past the header.
    let mut changed = real.clone();
    for (index, byte) in bytes.iter().enumerate() {
        match changed.get_mut(index) {
            Some(at) => *at ^= byte,
            None => changed.push(*byte),
        }
    }
    feed(&mut warm.clone(), &changed);
});

fn feed(decoder: &mut Decoder, bytes: &[u8]) {
    let before = state(decoder);
    if decoder.decode(bytes).is_err() {
        assert_eq!(before, state(decoder));
    } else {
        // Whatever it was, the next packet must not find a decoder that panics.
        let _ = decoder.decode(bytes);
    }
}
