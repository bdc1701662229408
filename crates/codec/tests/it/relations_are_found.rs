//! Fields that follow from others get cheap by themselves, nobody declares that they do, and both
//! ends agree on it whatever is lost.

use std::{collections::VecDeque, sync::Arc};

use crate::{
    common::{Random, setting},
    pair::{Pair, int},
};
use prescient_codec::{Ack, Config, Decoder, Encoder, HISTORY, Slot, Tick, history::Archive};
use prescient_schema::{Class, Schema};

fn car_class() -> Class {
    let fields = ["place", "speed", "push", "clock", "stamp"];
    Class::new("car", fields.map(|name| int(name, 48)).into())
}

/// A car in which everything follows from its speed and its clock, or nothing from anything.
struct Car {
    row: [i64; 5],
    related: bool,
}

impl Car {
    fn new(related: bool) -> Self {
        Self {
            row: [0; 5],
            related,
        }
    }

    fn drive(&mut self, random: &mut Random) {
        let mut wander = |reach: u64| random.below(2 * reach) as i64 - reach as i64;
        let [place, speed, push, clock, stamp] = &mut self.row;
        let before = *speed;
        *speed = (*speed + wander(300)).clamp(-9_000, 9_000);
        *clock += 5_000 + wander(1_000);
        if self.related {
            *place += 3 * *speed;
            *push = 2 * (*speed - before);
            *stamp = *clock;
        } else {
            *place += 3 * wander(4_000);
            *push = 2 * wander(300);
            *stamp += 5_000 + wander(1_000);
        }
    }
}

/// Fails if a relation is never adopted, or does not predict (`Past::choose` without relations).
#[test]
fn what_follows_from_other_fields_costs_little() {
    let cost = |related: bool| -> usize {
        let mut pair = Pair::new(car_class(), &[&[0; 5]]);
        let mut random = Random::new(5);
        let mut car = Car::new(related);
        let mut late = 0;
        for time in 0..600 {
            let len = pair.exchange(None);
            assert_eq!(pair.shown(0), car.row);
            late += if time >= 300 { len } else { 0 };
            car.drive(&mut random);
            pair.capture([(0, &car.row[..])]);
        }
        late / 300
    };
    let (with, without) = (cost(true), cost(false));
    println!("{with} bytes a tick where fields follow from others, {without} where they do not");
    assert!(with * 3 < without * 2, "{with} {without}");
}

/// Fails if a relation that stopped holding is kept (`follow` without `MIN_GAIN`).
#[test]
fn a_relation_that_stops_holding_is_dropped() {
    let mut pair = Pair::new(car_class(), &[&[0; 5]]);
    let mut random = Random::new(6);
    let mut car = Car::new(true);
    let mut costs = [0; 3];
    for time in 0..900 {
        car.related = time < 300;
        let len = pair.exchange(None);
        assert_eq!(pair.shown(0), car.row);
        costs[time / 300] += len;
        car.drive(&mut random);
        pair.capture([(0, &car.row[..])]);
    }
    let mut never = Pair::new(car_class(), &[&[0; 5]]);
    let mut car = Car::new(false);
    let mut without = 0;
    for _ in 0..300 {
        without += never.exchange(None);
        car.drive(&mut random);
        never.capture([(0, &car.row[..])]);
    }
    println!("{costs:?} bytes in turn, {without} without any relation");
    assert!(costs[2] < without * 21 / 20, "{costs:?} {without}");
}

/// Fails if the search is learned from before a packet is confirmed, is not rolled back
/// (`Undo::Search` or `Undo::Relation` not recorded), or if the order of fields is not restored.
#[test]
fn both_ends_find_the_same_relations_whatever_is_lost() {
    let seeds = setting(
        "PRESCIENT_SEEDS",
        if cfg!(debug_assertions) { 12 } else { 100 },
    );
    for seed in 0..seeds {
        let mut random = Random::new(seed);
        let schema = Arc::new(Schema {
            classes: vec![car_class()],
        });
        let mut archive = Archive::new(schema.clone(), HISTORY);
        let mut encoder = Encoder::new(schema.clone(), Config::default());
        let mut decoder = Decoder::new(schema, Config::default());
        let loss = random.below(40);
        let delay = 1 + random.below(20) as usize;
        let budget = random.chance(50).then(|| 20 + random.below(80) as usize);
        let count = 1 + random.below(12) as usize;
        let mut cars: Vec<Car> = (0..count).map(|_| Car::new(true)).collect();
        let mut under_way: VecDeque<Option<Vec<u8>>> = VecDeque::new();
        let (mut applied, mut is_fooled) = (0, false);
        for tick in 1..=400u64 {
            let mut capture = archive.begin(Tick(tick)).unwrap();
            for (slot, car) in (0..).map(Slot).zip(&mut cars) {
                car.related ^= random.below(200) == 0;
                car.drive(&mut random);
                match tick {
                    1 => drop(capture.spawn(0, &car.row).unwrap()),
                    _ => capture.write(slot, &car.row).unwrap(),
                }
            }
            capture.finish();
            for slot in archive.living_slots() {
                encoder.show(slot, &archive);
            }
            let model = encoder.digest();
            let packet = encoder.encode(&archive, budget).unwrap().bytes;
            if random.chance(5) {
                // A damaged packet is refused, and leaves no trace.
                let mut damaged = packet.clone();
                let at = random.below(damaged.len() as u64) as usize;
                damaged[at] ^= 1 << random.below(8);
                let before = decoder.digest();
                is_fooled = decoder.decode(&damaged).is_ok();
                if is_fooled {
                    // One in 65536 gets past the check.
                    break;
                }
                assert_eq!(decoder.digest(), before, "seed {seed}, tick {tick}");
            }
            if !random.chance(loss) {
                decoder.decode(&packet).unwrap();
                assert_eq!(decoder.digest(), model, "seed {seed}, tick {tick}");
                applied += 1;
            }
            let ack = decoder.acknowledgement().map(Ack::to_bytes);
            under_way.push_back(ack.filter(|_| !random.chance(loss)));
            if under_way.len() > delay
                && let Some(Some(bytes)) = under_way.pop_front()
            {
                let ack = Ack::from_bytes(&bytes).unwrap();
                encoder.acknowledge(&ack, &archive).unwrap();
            }
        }
        assert!(applied > 100 || is_fooled, "seed {seed}: {applied}");
    }
}
