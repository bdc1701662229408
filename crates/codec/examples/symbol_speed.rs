//! What a symbol of sixteen values costs to code, to learn and to decode, in nanoseconds.
//!
//! `cargo run --release -p prescient-codec --features __symbols --example symbol_speed`

use std::time::Instant;

use prescient_codec::symbols::{Distribution, MixingWeight, SymbolDecoder, SymbolEncoder};

/// Statistics of a field of one entity, by the symbol before, and of all entities together.
struct Statistics {
    own: Vec<[Distribution; 16]>,
    common: [Distribution; 16],
    weight: MixingWeight,
}

impl Statistics {
    fn new(entities: usize) -> Self {
        let fresh = [Distribution::uniform(16); 16];
        Self {
            own: vec![fresh; entities],
            common: fresh,
            weight: MixingWeight::EVEN,
        }
    }

    fn learn(&mut self, number: usize, entity: usize, before: usize, value: usize) {
        let (own, common) = (&mut self.own[entity][before], &mut self.common[before]);
        if number.is_multiple_of(4) {
            self.weight.learn(own, common, value);
        }
        own.learn(value);
        common.learn(value);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "an example that measures time; nothing depends on it"
)]
fn timed<T>(what: &str, symbols: usize, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = work();
    let nanos = begun.elapsed().as_nanos() as f64 / symbols as f64;
    println!("{what:8} {nanos:6.2} ns per symbol");
    result
}

fn main() {
    const ENTITIES: usize = 100;
    const PACKETS: usize = 10_000;
    let mut state = 1u64;
    let mut packets = Vec::with_capacity(PACKETS);
    for _ in 0..PACKETS {
        let packet: Vec<usize> = (0..ENTITIES)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                ((state >> 33) as u32 | 1 << 15).trailing_zeros() as usize
            })
            .collect();
        packets.push(packet);
    }
    let symbols = ENTITIES * PACKETS;
    let none = vec![0; ENTITIES];
    let before = |number: usize| {
        if number == 0 {
            &none
        } else {
            &packets[number - 1]
        }
    };

    // The statistics of packets already sent, as folds would have left them.
    let mut statistics = Statistics::new(ENTITIES);
    timed("learn", symbols, || {
        for (number, packet) in packets.iter().enumerate() {
            for (entity, (&value, &before)) in packet.iter().zip(before(number)).enumerate() {
                statistics.learn(number + entity, entity, before, value);
            }
        }
    });
    let written = timed("encode", symbols, || {
        let mut written = Vec::with_capacity(PACKETS);
        for (number, packet) in packets.iter().enumerate() {
            let mut encoder = SymbolEncoder::new(Vec::with_capacity(64));
            for (entity, (&value, &before)) in packet.iter().zip(before(number)).enumerate() {
                let own = &statistics.own[entity][before];
                let mixture = own.mix(&statistics.common[before], statistics.weight);
                let (from, count) = mixture.shares(value);
                encoder.symbol(from, count);
            }
            written.push(encoder.finish());
        }
        written
    });
    let bytes: usize = written.iter().map(Vec::len).sum();
    timed("decode", symbols, || {
        for (number, (packet, bytes)) in packets.iter().zip(&written).enumerate() {
            let mut decoder = SymbolDecoder::new(bytes);
            for (entity, (&expected, &before)) in packet.iter().zip(before(number)).enumerate() {
                let own = &statistics.own[entity][before];
                let mixture = own.mix(&statistics.common[before], statistics.weight);
                let value = mixture.value(decoder.share());
                let (from, count) = mixture.shares(value);
                decoder.accept(from, count);
                assert_eq!(value, expected);
            }
        }
    });
    let bits = bytes as f64 * 8.0 / symbols as f64;
    println!("{bits:.3} bits per symbol; the entropy is 2");
}
