//! A round trip of many ticks costs a little more than a shorter one, wherever ticks begin.

use std::{collections::VecDeque, sync::Arc};

use crate::{common::Random, pair::int};
use prescient_codec::{Ack, Config, Decoder, Encoder, Slot, Tick, history::Archive};
use prescient_schema::{Class, Schema};

/// Bytes per tick of two boats that drift, once round trips of this many packets have passed, with
/// ticks from `first` on in steps of `stride`.
fn cost(delay: usize, first: u64, stride: u64) -> usize {
    let fields = ["x", "y", "heel"].map(|name| int(name, 32));
    let schema = Arc::new(Schema {
        classes: vec![Class::new("boat", fields.into())],
    });
    let history = (2 * delay as u64 * stride).max(128) as u32;
    let config = Config::default().with_history(history);
    let mut archive = Archive::new(schema.clone(), config.history());
    let mut encoder = Encoder::new(schema.clone(), config);
    let mut decoder = Decoder::new(schema, config);
    let mut random = Random::new(9);
    let mut boats = [[0i64; 3]; 2];
    let mut under_way = VecDeque::new();
    let (mut bytes, mut counted) = (0, 0);
    for time in 0..3 * delay + 300 {
        let mut capture = archive.begin(Tick(first + stride * time as u64)).unwrap();
        for (slot, boat) in (0..).map(Slot).zip(&mut boats) {
            for value in boat.iter_mut() {
                *value = (*value + random.below(21) as i64 - 10).clamp(-500, 500);
            }
            match time {
                0 => drop(capture.spawn(0, boat).unwrap()),
                _ => capture.write(slot, boat).unwrap(),
            }
        }
        capture.finish();
        for slot in archive.living_slots() {
            encoder.show(slot, &archive);
        }
        let packet = encoder.encode(&archive, None).unwrap();
        decoder.decode(&packet.bytes).unwrap();
        if time >= 2 * delay {
            bytes += packet.bytes.len();
            counted += 1;
        }
        under_way.push_back(decoder.acknowledgement().unwrap().to_bytes());
        if under_way.len() >= delay
            && let Some(ack) = under_way.pop_front()
        {
            let ack = Ack::from_bytes(&ack).unwrap();
            encoder.acknowledge(&ack, &archive).unwrap();
        }
    }
    assert_eq!(encoder.statistics().resyncs, 0, "{delay} {first} {stride}");
    bytes / counted
}

/// Fails if packets or rows are forgotten after a fixed number of ticks (`HISTORY` or `WINDOW` in
/// place of `Config::history`).
#[test]
fn cost_grows_slowly_with_the_round_trip() {
    let costs = [60, 200, 700].map(|delay| cost(delay, 1, 1));
    println!("{costs:?} bytes at round trips of 60, 200 and 700 ticks");
    assert!(costs[1] * 5 <= costs[0] * 8, "{costs:?}");
    assert!(costs[2] * 5 <= costs[0] * 8, "{costs:?}");
}

/// Fails if a tick is cut to 32 bits, or if a stride is not expected (`Anchor::tick_after` with 1).
#[test]
fn ticks_may_begin_anywhere_and_go_in_strides() {
    let plain = cost(10, 1, 1);
    assert_eq!(cost(10, 1 << 40, 1), plain);
    assert_eq!(cost(10, u64::MAX - 1000, 1), plain);
    assert_eq!(cost(10, 1_790_000_000_000, 50), plain);
}
