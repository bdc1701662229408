//! A vehicle without its turret is not a vehicle: the entities of a group are covered by the same
//! packets, however small these are.

use std::collections::BTreeMap;

use crate::pair::{Pair, int};
use prescient_codec::Slot;
use prescient_schema::Class;

#[test]
fn a_group_is_covered_whole_or_not_at_all() {
    for budget in [24, 40, 70] {
        let mut class = Class::new("part", vec![int("crew", 16), int("x", 32), int("y", 32)]);
        class.group = Some(0);
        // Groups 1 to 8 of one to four parts, and eight parts without a group.
        let mut rows: Vec<[i64; 3]> = Vec::new();
        for crew in 1..=8 {
            rows.extend((0..1 + crew % 4).map(|part| [crew, 10 * crew, part]));
        }
        rows.extend((0..8).map(|part| [0, part, 0]));
        let starts: Vec<&[i64]> = rows.iter().map(|row| &row[..]).collect();
        let mut pair = Pair::new(class, &starts);
        let mut noise = 9u64;
        let mut seen: BTreeMap<i64, u32> = BTreeMap::new();
        let (mut partial, mut largest) = (0, 0);
        for time in 0..400u32 {
            largest = largest.max(pair.exchange(Some(budget)));
            let covered: Vec<_> = pair.decoder.covered().collect();
            let is_covered = |slot: u32| {
                let id = pair.encoder.net_entity_id(Slot(slot)).unwrap();
                covered.binary_search(&id).is_ok()
            };
            for crew in 1..=8 {
                let members = (0u32..).zip(&rows).filter(|(_, row)| row[0] == crew);
                let covered: Vec<bool> = members.map(|(slot, _)| is_covered(slot)).collect();
                let count = covered.iter().filter(|&&covered| covered).count();
                assert!(
                    count == 0 || count == covered.len(),
                    "budget {budget}, time {time}: {count} of {} of crew {crew}",
                    covered.len()
                );
                if count > 0 {
                    seen.insert(crew, time);
                } else {
                    partial += 1;
                }
            }
            for row in &mut rows {
                noise = noise.wrapping_mul(6364136223846793005).wrapping_add(1);
                row[1] += (noise >> 50) as i64 % 900 - 450;
                row[2] += (noise >> 30) as i64 % 90 - 45;
            }
            pair.capture((0..).zip(rows.iter().map(|row| &row[..])));
        }
        assert!(partial > 0, "budget {budget} was never too small");
        for crew in 1..=8 {
            assert!(seen[&crew] > 300, "crew {crew} starved: {seen:?}");
        }
        // The largest group has four parts, and each of them may need some twenty bytes.
        assert!(largest <= budget.max(100), "{largest} bytes");
    }
}

/// If so many entities wait to be spawned that only some are considered, those are considered with
/// their groups. Fails if `Encoder::preselect` does not check groups.
#[test]
fn a_crowd_of_groups_appears_whole() {
    let mut class = Class::new("part", vec![int("crew", 16), int("x", 32), int("y", 32)]);
    class.group = Some(0);
    // Parts of a group have distant ids.
    let rows: Vec<[i64; 3]> = (0..4 * CREWS)
        .map(|number| [1 + number % CREWS, 977 * number % 10_000, number / CREWS])
        .collect();
    let starts: Vec<&[i64]> = rows.iter().map(|row| &row[..]).collect();
    let mut pair = Pair::new(class, &starts);
    let mut known = vec![false; rows.len()];
    let mut packets = 0;
    while known.contains(&false) {
        packets += 1;
        assert!(packets < 1000, "an entity never appears");
        pair.exchange(Some(90));
        let covered: Vec<_> = pair.decoder.covered().collect();
        for (slot, known) in (0..).zip(&mut known) {
            let id = pair.encoder.net_entity_id(Slot(slot)).unwrap();
            *known |= covered.binary_search(&id).is_ok();
        }
        let crew = |number: i64| (0..4).map(move |part| (part * CREWS + number) as usize);
        for number in 0..CREWS {
            let there = crew(number).filter(|&part| known[part]).count();
            assert!(
                there == 0 || there == 4,
                "{there} of crew {number} after {packets} packets"
            );
        }
        pair.capture((0..).zip(rows.iter().map(|row| &row[..])));
    }
    assert!(packets > 20, "{packets} packets were enough for all");
}

const CREWS: i64 = 400;
