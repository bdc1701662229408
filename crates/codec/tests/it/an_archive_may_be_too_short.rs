//! An acknowledgement may name a tick that the sender's archive has dropped. The sender then starts
//! a new epoch and does not predict from a missing row.

use std::collections::VecDeque;

use crate::pair::{Pair, int};
use prescient_codec::{HISTORY, history::Archive};
use prescient_schema::Class;

/// Fails with a panic if `Archive::rows` returns empty rows for a tick that was dropped.
#[test]
fn a_forgotten_baseline_starts_a_new_epoch() {
    for (depth, delay) in [(2, 3), (4, 20), (8, 9), (HISTORY, HISTORY + 10)] {
        let class = Class::new("dot", vec![int("x", 32), int("y", 32)]);
        let mut pair = Pair::new(class, &[]);
        let schema = pair.archive.schema().clone();
        pair.archive = Archive::new(schema, depth);
        let mut capture = pair.archive.begin(prescient_codec::Tick(1)).unwrap();
        for _ in 0..3 {
            capture.spawn(0, &[5, 5]).unwrap();
        }
        capture.finish();
        let mut acknowledgements = VecDeque::new();
        for time in 0..400i64 {
            let rows = [[time * 3, 7], [9, time * time], [time / 50, 1]];
            pair.capture((0..).zip(rows.iter().map(|row| &row[..])));
            for slot in pair.archive.living_slots() {
                pair.encoder.show(slot, &pair.archive);
            }
            let packet = pair.encoder.encode(&pair.archive, None).unwrap();
            pair.decoder.decode(&packet.bytes).unwrap();
            for (slot, row) in (0..).zip(&rows) {
                assert_eq!(pair.shown(slot), row, "depth {depth}, delay {delay}");
            }
            acknowledgements.push_back(pair.decoder.acknowledgement().unwrap());
            if acknowledgements.len() > delay as usize {
                let old = acknowledgements.pop_front().unwrap();
                pair.encoder.acknowledge(&old, &pair.archive).unwrap();
            }
        }
    }
}
