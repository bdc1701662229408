//! Once a connection is in its steady state, a tick is coded without allocations: a server of a
//! hundred clients must not wait for the allocator a hundred times a tick.
//!
//! What the API forces is not counted: the bytes of a packet are one allocation, a `Vec` that never
//! grows. A capture shares unchanged rows with the past and may allocate chunks for the others,
//! which is counted separately; the decoder captures what it shows, so it may allocate as often as
//! the sender's capture of the same rows.

use std::{alloc::System, sync::Arc};

use prescient_codec::{Config, Decoder, Encoder, HISTORY, Slot, Tick, history::Archive};
use prescient_schema::{Class, Field, FieldKind, Schema};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

// One test, so that nothing else allocates meanwhile.
#[test]
fn a_settled_connection_allocates_nothing() {
    let schema = schema();
    let config = Config::default();
    let mut archive = Archive::new(schema.clone(), HISTORY);
    let mut encoder = Encoder::new(schema.clone(), config);
    let mut decoder = Decoder::new(schema, config);
    let mut movers = vec![Mover::default(); MOVERS];
    let mut slots: Vec<Slot> = Vec::new();
    let mut counts = Counts::default();
    for tick in 1..=SETTLED + COUNTED {
        let mut made = Counts::default();
        for (number, mover) in movers.iter_mut().enumerate() {
            mover.step(number as i64, i64::from(tick));
        }
        made.capture = allocations(|| {
            let mut capture = archive.begin(Tick(tick.into())).unwrap();
            for (number, mover) in movers.iter().enumerate() {
                match slots.get(number) {
                    Some(&slot) => capture.write(slot, &mover.0).unwrap(),
                    None => slots.push(capture.spawn(0, &mover.0).unwrap()),
                }
            }
            capture.finish();
        });
        if tick == 1 {
            for &slot in &slots {
                encoder.show(slot, &archive);
            }
        }
        let mut packet = None;
        made.encode = allocations(|| packet = Some(encoder.encode(&archive, None).unwrap()));
        let packet = packet.unwrap();
        made.decode = allocations(|| {
            decoder.decode(&packet.bytes).unwrap();
        });
        made.acknowledge = allocations(|| {
            let ack = decoder.acknowledgement().unwrap();
            encoder.acknowledge(&ack, &archive).unwrap();
        });
        if tick > SETTLED {
            counts.encode += made.encode.saturating_sub(PACKET);
            counts.decode += made.decode.saturating_sub(made.capture);
            counts.acknowledge += made.acknowledge;
            counts.capture += made.capture;
        }
    }
    let shown: Vec<_> = decoder.world().living_slots().collect();
    assert_eq!(shown.len(), MOVERS);
    println!("in {COUNTED} ticks, beyond what the API forces: {counts:?}");
    let judged = [
        ("encode", counts.encode),
        ("decode", counts.decode),
        ("acknowledge", counts.acknowledge),
    ];
    for (step, count) in judged {
        assert_eq!(count, 0, "{step} allocates");
    }
}

/// Allocations of each step.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    encode: usize,
    decode: usize,
    acknowledge: usize,
    capture: usize,
}

fn allocations(work: impl FnOnce()) -> usize {
    let region = Region::new(GLOBAL);
    work();
    let change = region.change();
    change.allocations + change.reallocations
}

fn schema() -> Arc<Schema> {
    let int = FieldKind::Int {
        bits: 32,
        signed: true,
    };
    let fields = vec![
        Field::new("x", int.clone()),
        Field::new("y", int.clone()),
        Field::new("health", int),
        Field::new("mode", FieldKind::Enum { values: 6 }),
    ];
    Arc::new(Schema {
        classes: vec![Class::new("mover", fields)],
    })
}

/// Position, health and mode, and then the velocity.
#[derive(Clone, Copy, Debug, Default)]
struct Mover([i64; 4], [i64; 2]);

impl Mover {
    /// Moves, turns now and then, and never stands still.
    fn step(&mut self, number: i64, tick: i64) {
        let noise = (number * 7919 + tick * 104_729).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64);
        if tick == 1 || noise.rotate_left(9) & 15 == 0 {
            self.1 = [3 + (noise >> 8 & 63), -90 + (noise >> 16 & 63)];
        }
        if noise.rotate_left(23) & 63 == 0 {
            self.0[2] -= noise >> 30 & 15;
            self.0[3] = (noise >> 40 & 7) % 6;
        }
        self.0[0] += self.1[0];
        self.0[1] += self.1[1];
    }
}

const MOVERS: usize = 50;
/// Pages of the model grow a few times per connection, here up to tick 400.
const SETTLED: u32 = 600;
const COUNTED: u32 = 200;
/// The allocation of a packet's bytes.
const PACKET: usize = 1;
