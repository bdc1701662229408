//! A few decisions can change one item of a list of thousands, for which the list is copied. A
//! packet must be as long as the copies it causes require, also from an honest sender, and a
//! shorter one is refused before anything is copied.
//!
//! Mutations tried: copies that do not count (fails).

mod common;

use std::{alloc::System, sync::Arc};

use common::{Random, config};
use prescient_codec::{
    DecodeError, Decoder, Encoder, HISTORY, Policy, Profile, Slot, Tick, history::Archive,
};
use prescient_schema::{Class, Content, Field, FieldKind, Schema};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const ENTITIES: u32 = 50;
const ITEMS: i64 = 30_000;
/// As in `hostile_packets_stay_small`.
const FIXED: usize = 2 << 20;
const PER_BYTE: usize = 32 << 10;

#[test]
fn what_is_copied_is_paid_for() {
    let int = FieldKind::Int {
        bits: 32,
        signed: true,
    };
    let list = FieldKind::List {
        item: vec![Field::new("item", int)],
        max_len: 65536,
    };
    let schema = Arc::new(Schema {
        classes: vec![Class::new("archive", vec![Field::new("list", list)])],
    });
    let config = config(Policy::Confirmed, Profile::Default);
    let mut archive = Archive::new(schema.clone(), HISTORY);
    let mut encoder = Encoder::new(schema.clone(), config);
    let mut decoder = Decoder::new(schema, config);
    // All contents are equal, so that the first packet is short.
    let mut cells: Vec<i64> = (0..ITEMS).collect();
    for tick in 1..=5 {
        let mut capture = archive.begin(Tick(tick)).unwrap();
        if tick == 1 {
            let cell = capture
                .intern(Content::Cells(cells.clone().into()))
                .unwrap();
            for _ in 0..ENTITIES {
                capture.spawn(0, &[cell]).unwrap();
            }
        }
        capture.finish();
        for slot in 0..ENTITIES {
            encoder.show(Slot(slot), &archive);
        }
        let packet = encoder.encode(&archive, None).unwrap();
        decoder.decode(&packet.bytes).unwrap();
        let ack = decoder.acknowledgement().unwrap();
        encoder.acknowledge(&ack, &archive).unwrap();
    }
    let mut capture = archive.begin(Tick(6)).unwrap();
    for slot in 0..ENTITIES {
        cells[100] += 1;
        let cell = capture
            .intern(Content::Cells(cells.clone().into()))
            .unwrap();
        capture.write(Slot(slot), &[cell]).unwrap();
    }
    capture.finish();
    let honest = encoder.encode(&archive, None).unwrap().bytes;
    let mut bare = honest.clone();
    while bare.last() == Some(&0) {
        bare.pop();
    }
    println!("{} bytes say {}", honest.len(), bare.len());
    assert!(bare.len() * 3 < honest.len());
    assert_eq!(
        feed(&mut decoder.clone(), &bare),
        Err(DecodeError::Malformed)
    );
    let mut random = Random::new(1);
    for _ in 0..300 {
        let mut packet = honest.clone();
        let bit = 40 + random.below(bare.len() as u64 * 8 - 40) as usize;
        packet[bit / 8] ^= 1 << (bit % 8);
        packet.truncate(bare.len() + random.below(300) as usize);
        let _ = feed(&mut decoder.clone(), &packet);
    }
    feed(&mut decoder, &honest).unwrap();
    for slot in 0..ENTITIES {
        let id = encoder.net_entity_id(Slot(slot)).unwrap();
        assert_eq!(decoder.row(id), archive.latest(Slot(slot)));
    }
}

fn feed(decoder: &mut Decoder, packet: &[u8]) -> Result<(), DecodeError> {
    let region = Region::new(GLOBAL);
    let result = decoder.decode(packet);
    let bytes = region.change().bytes_allocated;
    let bound = FIXED + PER_BYTE * packet.len();
    assert!(bytes <= bound, "{} bytes allocate {bytes}", packet.len());
    result.map(drop)
}
