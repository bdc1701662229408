//! Any bytes as a prior: an error, or a prior with which both ends agree.
#![no_main]

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prescient_codec::{Decoder, Encoder, Prior, Profile, Trainer};
use prescient_fuzz::{World, config, schema};
use prescient_schema::Fingerprint;

#[derive(Arbitrary, Debug)]
struct Input {
    best: bool,
    /// Number of bytes kept from the start of a real prior, and the bytes after them.
    kept: u16,
    tail: Vec<u8>,
    changes: Vec<(u16, u8)>,
}

static REAL: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| [false, true].map(real));

fn real(best: bool) -> Vec<u8> {
    let mut trainer = Trainer::new(config(best));
    let mut world = World::new(schema());
    let mut encoder = trainer
        .encoder(world.archive.schema().clone())
        .expect("first");
    let mut decoder = trainer
        .decoder(world.archive.schema().clone())
        .expect("first");
    play(&mut world, &mut encoder, &mut decoder, 60);
    trainer.learn(&encoder);
    trainer.finish().to_bytes()
}

fn play(world: &mut World, encoder: &mut Encoder, decoder: &mut Decoder, ticks: u8) {
    for tick in 0..ticks {
        world.step(tick.wrapping_mul(73));
        world.show(encoder);
        let packet = encoder.encode(&world.archive, None).expect("a new tick");
        decoder.decode(&packet.bytes).expect("the same prior");
        assert_eq!(encoder.digest(), decoder.digest());
        let ack = decoder.acknowledgement().expect("applied");
        encoder.acknowledge(&ack, &world.archive).expect("honest");
    }
}

fuzz_target!(|input: Input| {
    let real = &REAL[usize::from(input.best)];
    let mut bytes = real[..real.len() - 16].to_vec();
    for (at, value) in input.changes {
        let at = usize::from(at) % bytes.len();
        bytes[at] = value;
    }
    if !input.tail.is_empty() {
        bytes.truncate(usize::from(input.kept));
        bytes.extend(input.tail);
    }
    let seal = Fingerprint::of_bytes(&bytes);
    bytes.extend(seal.to_be_bytes());
    let Ok(prior) = Prior::from_bytes(&bytes) else {
        return;
    };
    assert_eq!(prior.to_bytes(), bytes);
    let mut world = World::new(schema());
    let schema = world.archive.schema().clone();
    let config = config(prior.profile() == Profile::Best);
    let mut encoder = Encoder::with_prior(schema.clone(), config, &prior).expect("its profile");
    let mut decoder = Decoder::with_prior(schema, config, &prior).expect("its profile");
    play(&mut world, &mut encoder, &mut decoder, 12);
});
