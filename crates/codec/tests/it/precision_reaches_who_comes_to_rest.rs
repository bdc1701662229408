//! A level that is set while an entity comes to rest is applied: an entity that rests at another
//! precision is woken.
//!
//! Mutation tried: checking only whether it rests when the level is set (fails).

use crate::pair::{Pair, int};
use prescient_codec::Slot;
use prescient_schema::{Class, Level, Priority};

#[test]
fn whenever_it_is_asked_for() {
    for asked in 40..80 {
        for late in 0..9 {
            let mut fine = int("fine", 16);
            fine.priority = Priority::new(1).unwrap();
            fine.coarser = [0, 2, 4, 6];
            let mut pair = Pair::new(Class::new("thing", vec![fine]), &[&[1001]]);
            let coarse = Level::new(3).unwrap();
            for time in 0..120 {
                if time == 2 {
                    pair.encoder.set_level(Slot(0), coarse, &pair.archive);
                }
                if time == asked {
                    pair.encoder.set_level(Slot(0), Level::EXACT, &pair.archive);
                }
                // The packets right after that are lost, while older ones are confirmed.
                pair.encoder.show(Slot(0), &pair.archive);
                let packet = pair.encoder.encode(&pair.archive, None).unwrap();
                let ack = pair.decoder.acknowledgement();
                if !(asked..asked + late).contains(&time) {
                    pair.decoder.decode(&packet.bytes).unwrap();
                }
                if let Some(ack) = ack {
                    pair.encoder.acknowledge(&ack, &pair.archive).unwrap();
                }
                pair.capture([]);
            }
            assert_eq!(pair.shown(0), [1001], "asked at {asked}, {late} lost");
        }
    }
}
