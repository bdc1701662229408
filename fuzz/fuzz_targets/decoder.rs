//! Any bytes, packet after packet, for a new decoder and a warmed-up one: no panic, and a refused
//! packet leaves the state unchanged. The checksum is compiled out, so many packets are applied,
//! and later ones meet a decoder with wrong state.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use prescient_codec::Decoder;
use prescient_fuzz::{Watched, config, schema, warm};

static WARM: LazyLock<[(Decoder, Vec<u8>); 2]> = LazyLock::new(|| [warm(false), warm(true)]);

fuzz_target!(|input: (bool, Vec<Vec<u8>>)| {
    let (best, packets) = input;
    let (warm, real) = &WARM[usize::from(best)];
    let mut fresh = Watched::new(Decoder::new(schema(), config(best)));
    let (mut any, mut changed) = (Watched::new(warm.clone()), Watched::new(warm.clone()));
    for (count, bytes) in packets.iter().take(20).enumerate() {
        feed(&mut fresh, bytes);
        feed(&mut any, bytes);
        // Changes of a real packet get past the header, if it is not late.
        let mut packet = real.clone();
        packet[1] = packet[1].wrapping_add(count as u8);
        for (index, byte) in bytes.iter().enumerate() {
            match packet.get_mut(index) {
                Some(at) => *at ^= byte,
                None => packet.push(*byte),
            }
        }
        feed(&mut changed, &packet);
    }
});

fn feed(watched: &mut Watched, packet: &[u8]) {
    if watched.feed(packet) {
        // The same packet again is late, or malformed if its cursor is no longer known.
        assert!(!watched.feed(packet));
    }
}
