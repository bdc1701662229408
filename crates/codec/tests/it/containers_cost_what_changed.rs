//! A container costs what changed in it, not what it contains: one changed item of two hundred
//! costs at most three times as much as a number in a field of its own, also on a link that loses a
//! fifth of all packets.
//!
//! Lost changes have to be sent again, so under loss a packet has several changed items, but still
//! one number: there the cost is counted per item.

use std::{collections::BTreeMap, sync::Arc};

use crate::common::{Random, config};
use prescient_codec::{
    Decoder, Encoder, HISTORY, Policy, Profile, Slot, Tick, history::Archive, ledger::Cause,
};
use prescient_schema::{Content, Library, SchemaBuilder, State};

#[derive(State, Clone, Debug, Default, PartialEq)]
#[state(rename = "store")]
struct Store {
    number: i32,
    list: Vec<i32>,
    stacks: Vec<Stack>,
    map: BTreeMap<u16, i32>,
    text: String,
}

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Stack {
    what: u16,
    count: i32,
    worn: bool,
}

/// Bits of each field of a store per packet, including flags, over a run on a bad link.
struct Cost {
    fields: Vec<f64>,
    /// Bytes per packet.
    packets: f64,
    /// Changes in a packet: those since the version that the receiver is known to have.
    changes: f64,
}

fn run(profile: Profile, loss: u64, change: impl Fn(&mut Store, &mut Random)) -> Cost {
    let mut random = Random::new(7);
    let schema = Arc::new(SchemaBuilder::new().state::<Store>().build().unwrap());
    let config = config(Policy::Confirmed, profile);
    let mut archive = Archive::new(schema.clone(), HISTORY);
    let mut encoder = Encoder::new(schema.clone(), config);
    let mut decoder = Decoder::new(schema.clone(), config);
    encoder.keep_ledger(true);
    let mut store = Store {
        number: 0,
        list: (0..200).map(|_| random.below(1000) as i32).collect(),
        stacks: (0..200)
            .map(|what| Stack {
                what,
                count: random.below(1000) as i32,
                worn: false,
            })
            .collect(),
        map: (0..200)
            .map(|key| (key * 7, random.below(1000) as i32))
            .collect(),
        text: "The quick brown fox jumps over the lazy dog".into(),
    };
    let mut slot = None;
    let (mut applied, mut bytes, mut changes) = (0, 0, 0);
    for tick in 1..=TICKS {
        if tick > 1 {
            change(&mut store, &mut random);
        }
        let mut capture = archive.begin(Tick(tick.into())).unwrap();
        let parcel = store.to_parcel("default");
        match slot {
            None => slot = Some(capture.spawn_parcel(0, &parcel).unwrap()),
            Some(slot) => capture.write_parcel(slot, &parcel).unwrap(),
        }
        capture.finish();
        let id = encoder.show(slot.unwrap(), &archive).unwrap();
        changes += tick - encoder.cursor().0;
        let packet = encoder.encode(&archive, None).unwrap();
        assert_eq!(packet.sequence.0, tick);
        bytes += packet.bytes.len();
        if random.chance(loss) {
            continue;
        }
        decoder.decode(&packet.bytes).unwrap();
        applied += 1;
        let row = decoder.row(id).unwrap();
        let read = Store::from_row_in("default", row, decoder.world()).unwrap();
        assert_eq!(read, store, "tick {tick}");
        assert_eq!(encoder.digest(), decoder.digest(), "tick {tick}");
        if !random.chance(loss) {
            let ack = decoder.acknowledgement().unwrap();
            encoder.acknowledge(&ack, &archive).unwrap();
        }
    }
    assert!(applied * 4 > TICKS * 3 || loss > 25);
    let mut fields = vec![0.0; schema.classes[0].fields.len()];
    for (account, cost) in encoder.ledger().unwrap().entries() {
        if let (Some(field), Cause::Flag | Cause::Surprise) = (account.field, account.cause) {
            fields[usize::from(field)] += cost as f64 / 65536.0 / f64::from(TICKS);
        }
    }
    Cost {
        fields,
        packets: bytes as f64 / f64::from(TICKS),
        changes: f64::from(changes) / f64::from(TICKS),
    }
}

const TICKS: u32 = 2000;

#[test]
fn one_item_of_two_hundred_costs_at_most_three_numbers() {
    for profile in [Profile::Default, Profile::Best] {
        for loss in [0, 20] {
            let step = |random: &mut Random| random.below(41) as i32 - 20;
            let number = run(profile, loss, |store, random| {
                store.number += step(random);
            });
            let list = run(profile, loss, |store, random| {
                store.list[random.below(200) as usize] += step(random);
            });
            let stacks = run(profile, loss, |store, random| {
                store.stacks[random.below(200) as usize].count += step(random);
            });
            let map = run(profile, loss, |store, random| {
                let key = random.below(200) as u16 * 7;
                *store.map.get_mut(&key).unwrap() += step(random);
            });
            let scalar = number.fields[0];
            println!(
                "{profile:?}, {loss} % loss: a number {scalar:.1} bits in {:.1} bytes",
                number.packets
            );
            for (name, cost, field) in
                [("list", &list, 1), ("stacks", &stacks, 2), ("map", &map, 3)]
            {
                let each = cost.fields[field] / cost.changes;
                println!(
                    "  {name}: {each:.1} bits each, {:.2} of them in {:.1} bytes: {:.2} numbers",
                    cost.changes,
                    cost.packets,
                    each / scalar
                );
                assert!(each <= 3.0 * scalar);
                assert!(cost.packets <= 3.0 * number.packets);
            }
        }
    }
}

#[test]
fn queues_appends_and_texts_cost_what_is_new() {
    let queue = run(Profile::Default, 20, |store, random| {
        store.list.remove(0);
        store.list.push(random.below(1000) as i32);
    });
    let log = run(Profile::Default, 20, |store, random| {
        if store.list.len() == 400 {
            store.list.clear();
        }
        store.list.push(random.below(1000) as i32);
    });
    let map = run(Profile::Default, 20, |store, random| {
        let key = random.below(2000) as u16;
        if store.map.remove(&key).is_none() {
            store.map.insert(key, 5);
        }
    });
    let words = ["fox", "dog", "cat", "owl", "lazy", "quick", "brown"];
    let text = run(Profile::Default, 20, |store, random| {
        let mut parts: Vec<&str> = store.text.split(' ').collect();
        let at = random.below(parts.len() as u64) as usize;
        parts[at] = words[random.below(7) as usize];
        store.text = parts.join(" ");
    });
    println!(
        "bits per change: queue {:.1}, log {:.1}, map {:.1}, text {:.1}",
        queue.fields[1], log.fields[1], map.fields[3], text.fields[4]
    );
    // A new number below a thousand has ten bits; under loss some changes are sent twice.
    assert!(queue.fields[1] < 30.0);
    assert!(log.fields[1] < 30.0);
    assert!(map.fields[3] < 45.0);
    assert!(text.fields[4] < 45.0);
}

#[test]
fn contents_are_forgotten_with_the_last_row_that_names_them() {
    let schema = Arc::new(SchemaBuilder::new().state::<Store>().build().unwrap());
    let mut archive = Archive::new(schema.clone(), HISTORY);
    let mut first = None;
    let mut size = Vec::new();
    for tick in 1..1000u32 {
        let store = Store {
            list: vec![tick as i32; 100],
            text: "the same".into(),
            ..Store::default()
        };
        let parcel = store.to_parcel("default");
        let mut capture = archive.begin(Tick(tick.into())).unwrap();
        if tick == 1 {
            capture.spawn_parcel(0, &parcel).unwrap();
            first = Some((parcel.row[1], parcel.row[4]));
        } else {
            capture.write_parcel(Slot(0), &parcel).unwrap();
        }
        capture.finish();
        size.push(archive.bytes());
        let (list, text) = first.unwrap();
        assert_eq!(archive.content(list).is_some(), tick <= HISTORY + 2);
        assert!(archive.content(text).is_some());
        for back in 0..HISTORY.min(tick - 1) {
            let row = archive.row(Slot(0), Tick((tick - back).into())).unwrap();
            assert!(archive.content(row[1]).is_some(), "{tick} {back}");
        }
    }
    assert_eq!(size[400], size[998]);
    // Resting entities keep their contents for ever; unused contents are dropped.
    let mut capture = archive.begin(Tick(1000)).unwrap();
    let unused = capture
        .intern(Content::Bytes(b"unused".as_slice().into()))
        .unwrap();
    capture.finish();
    let list = archive.latest(Slot(0)).unwrap()[1];
    for tick in 1001..1500 {
        archive.begin(Tick(tick)).unwrap().finish();
    }
    assert!(archive.content(list).is_some());
    assert!(archive.content(unused).is_none());
    let mut capture = archive.begin(Tick(1500)).unwrap();
    capture.despawn(Slot(0)).unwrap();
    capture.finish();
    for tick in 1501..1700 {
        archive.begin(Tick(tick)).unwrap().finish();
    }
    assert!(archive.content(list).is_none());
}
