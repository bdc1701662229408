//! Measures whether the cost of a world follows its size or its activity.
//!
//! Encodes and decodes a hundred moving entities alone, then among a hundred thousand entities at
//! rest in scattered slots, and prints time and bytes per tick of both. Only the codec runs in
//! between, so caches have its data.
#![expect(
    clippy::disallowed_methods,
    reason = "an example that measures time has to read the clock"
)]

use std::{sync::Arc, time::Instant};

use prescient_codec::{Config, Decoder, Encoder, HISTORY, Slot, Tick, history::Archive};
use prescient_schema::{Class, Field, FieldKind, Schema};

fn main() {
    let alone = run(0);
    let crowd = run(100_000);
    for (name, cost) in [("100 moving", alone), ("and 100,000 idle", crowd)] {
        println!(
            "{name:>16}: capture {:6.1} µs, encode {:6.1} µs, decode {:6.1} µs, {:6.1} bytes a tick",
            cost[0], cost[1], cost[2], cost[3]
        );
    }
    let total = |cost: [f64; 4]| cost[0] + cost[1] + cost[2];
    println!(
        "ratio: time {:.2}, bytes {:.2}",
        total(crowd) / total(alone),
        crowd[3] / alone[3]
    );
}

fn run(idle: usize) -> [f64; 4] {
    let int = FieldKind::Int {
        bits: 32,
        signed: true,
    };
    let names = ["x", "y", "health", "kind"];
    let fields = names.map(|name| Field::new(name, int.clone()));
    let schema = Arc::new(Schema {
        classes: vec![Class::new("thing", fields.into())],
    });
    let config = Config::default();
    let mut archive = Archive::new(schema.clone(), HISTORY);
    let mut encoder = Encoder::new(schema.clone(), config);
    let mut decoder = Decoder::new(schema, config);
    let mut movers: Vec<(Slot, [i64; 2], [i64; 2])> = Vec::new();
    let mut seed = 1u64;
    let mut random = move |bound: u64| {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 33) % bound
    };
    let mut cost = [0.0; 4];
    let mut counted = 0;
    for tick in 1..=1200 {
        let started = Instant::now();
        let mut capture = archive.begin(Tick(tick)).expect("ticks increase");
        let mut spawned = Vec::new();
        if tick == 1 {
            for i in 0..100 + idle {
                let at = [random(10_000) as i64, random(10_000) as i64];
                let slot = capture
                    .spawn(0, &[at[0], at[1], 100, 3])
                    .expect("the row fits");
                spawned.push(slot);
                if i % (idle / 100 + 1) == 0 && movers.len() < 100 {
                    movers.push((slot, at, [random(9) as i64 - 4, random(9) as i64 - 4]));
                }
            }
        }
        for (slot, at, velocity) in &mut movers {
            if random(40) == 0 {
                *velocity = [random(9) as i64 - 4, random(9) as i64 - 4];
            }
            at[0] += velocity[0];
            at[1] += velocity[1];
            capture
                .write(*slot, &[at[0], at[1], 100, 3])
                .expect("the row fits");
        }
        capture.finish();
        let captured = Instant::now();
        for slot in spawned {
            encoder.show(slot, &archive);
        }
        let packet = encoder.encode(&archive, None).expect("a tick was captured");
        let encoded = Instant::now();
        decoder.decode(&packet.bytes).expect("nothing was lost");
        let decoded = Instant::now();
        let ack = decoder.acknowledgement().expect("a packet was applied");
        encoder
            .acknowledge(&ack, &archive)
            .expect("the packet was sent");
        let folded = Instant::now();
        if tick > 400 {
            counted += 1;
            cost[0] += (captured - started).as_secs_f64() * 1e6;
            cost[1] += (encoded - captured + (folded - decoded)).as_secs_f64() * 1e6;
            cost[2] += (decoded - encoded).as_secs_f64() * 1e6;
            cost[3] += packet.bytes.len() as f64;
        }
    }
    cost.map(|sum| sum / f64::from(counted))
}
