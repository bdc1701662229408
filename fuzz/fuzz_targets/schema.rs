//! A schema from a peer: any bytes are decoded or refused, a valid schema has one encoding only,
//! and both ends work with it.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use prescient_codec::{Config, Decoder, Encoder, HISTORY, Tick, history::Archive};
use prescient_fuzz::schema;
use prescient_schema::{Contract, Projection, Schema, Tolerance};

fuzz_target!(|input: (bool, Vec<u8>)| {
    let (changed, mut bytes) = input;
    if changed {
        // Changes of a real schema get past its beginning.
        let mut real = schema().to_bytes();
        for (at, byte) in real.iter_mut().zip(&bytes) {
            *at ^= byte;
        }
        bytes = real;
    }
    let contracts = [Contract {
        name: "c".into(),
        fast_forward: |past, _, out| out.copy_from_slice(past),
    }];
    let Ok(read) = Schema::from_bytes(&bytes, &contracts) else {
        return;
    };
    assert_eq!(read.to_bytes(), bytes, "two encodings of one schema");
    let own = schema();
    let differences = read.differences(&own);
    assert_eq!(
        differences.is_empty(),
        read.fingerprint() == own.fingerprint()
    );
    for tolerance in [Tolerance::Exact, Tolerance::Additive] {
        for (server, client) in [(&read, &*own), (&*own, &read), (&read, &read)] {
            let _ = Projection::between((server, tolerance), (client, tolerance));
        }
    }
    connect(Arc::new(read));
});

/// Sends an entity of every class, with all cells zero, from an encoder to a decoder.
fn connect(schema: Arc<Schema>) {
    let mut archive = Archive::new(schema.clone(), HISTORY);
    let mut encoder = Encoder::new(schema.clone(), Config::default());
    let mut decoder = Decoder::new(schema.clone(), Config::default());
    for tick in 1..4 {
        let mut capture = archive.begin(Tick(tick)).expect("ticks increase");
        for (class, declared) in schema.classes.iter().enumerate().take(8) {
            let row = vec![0; declared.fields.len()];
            capture
                .spawn(class as u16, &row)
                .expect("zero fits everything");
        }
        capture.finish();
        for slot in archive.living_slots() {
            encoder.show(slot, &archive);
        }
        let packet = encoder.encode(&archive, None).expect("a new tick");
        decoder.decode(&packet.bytes).expect("real");
        let ack = decoder.acknowledgement().expect("applied");
        encoder.acknowledge(&ack, &archive).expect("honest");
    }
}
