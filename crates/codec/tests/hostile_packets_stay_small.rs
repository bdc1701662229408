//! What a packet can make a decoder allocate, measured: a fixed part, so much per byte of the
//! packet, and so much per entity that is there already. Without a bound, a well predicted
//! stream unfolds into gigabytes, and one far id into a table of a million rows.
//!
//! Mutations tried: no limit of decisions (fails), no limit of ids (fails).

mod common;

use std::alloc::System;

use common::{Random, World, config, setting};
use prescient_codec::{
    ClientId, Config, Decoder, Encoder, HISTORY, Policy, Profile, Slot, Tick, history::Archive,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

// One test, so that nobody else allocates meanwhile.
#[test]
fn allocations_follow_the_length_of_the_packet() {
    let cases = setting("PRESCIENT_CASES", 4000);
    for profile in [Profile::Default, Profile::Best] {
        let config = config(Policy::Confirmed, profile);
        let mut worst = Worst::default();
        let mut random = Random::new(profile as u64);
        for ticks in [0, 3, 60, 200] {
            let (mut decoder, next) = lived(config, ticks);
            let entities = decoder.world().living_slots().count();
            for case in 0..cases / 8 {
                let packet = hostile(&mut random, case, &next, ticks as u32);
                worst.feed(&mut decoder, &packet, entities);
            }
            worst.climb(&mut decoder, &next, entities, &mut random);
        }
        println!("{profile:?}: {worst:?}");
    }
    the_farthest_id_that_is_accepted_is_near(Config::default());
    large_worlds_are_joined_under_loss(Config::default());
}

#[derive(Debug, Default)]
struct Worst {
    bytes: usize,
    packet: usize,
    /// In 1/1000 of the bound.
    share: usize,
    accepted: usize,
}

impl Worst {
    /// Returns what a packet made the decoder allocate.
    fn feed(&mut self, decoder: &mut Decoder, packet: &[u8], entities: usize) -> usize {
        let region = Region::new(GLOBAL);
        let result = decoder.decode(packet);
        let bytes = region.change().bytes_allocated;
        let bound = FIXED + PER_BYTE * packet.len() + PER_ENTITY * entities;
        assert!(
            bytes <= bound,
            "{} bytes made it allocate {bytes}: {packet:?}",
            packet.len()
        );
        self.accepted += usize::from(result.is_ok());
        if bytes * 1000 / bound > self.share {
            self.share = bytes * 1000 / bound;
            self.bytes = bytes;
            self.packet = packet.len();
        }
        bytes
    }

    /// Looks for the worst body byte by byte.
    fn climb(&mut self, decoder: &mut Decoder, next: &[u8], entities: usize, random: &mut Random) {
        let header = if next[0] == 0 { 17 } else { 5 };
        let mut packet = next[..header].to_vec();
        let mut best = 0;
        for at in header..header + 24 {
            let mut choice = 0;
            for _ in 0..40 {
                let byte = random.next() as u8;
                packet.truncate(at);
                packet.push(byte);
                // A new decoder each time: buffers that have grown hide what they cost.
                let bytes = self.feed(&mut decoder.clone(), &packet, entities);
                if bytes > best {
                    best = bytes;
                    choice = byte;
                }
            }
            packet.truncate(at);
            packet.push(choice);
        }
    }
}

/// Buffers, the first groups of the model, and tables up to the nearest ids.
const FIXED: usize = 4 << 20;
/// 128 decisions, each with its log, its undo, and what it may create.
const PER_BYTE: usize = 64 << 10;
const PER_ENTITY: usize = 4 << 10;

/// A decoder after some ticks under loss, and the packet it expects.
fn lived(config: Config, ticks: usize) -> (Decoder, Vec<u8>) {
    let mut world = World::new(ticks as u64);
    let mut encoder = Encoder::new(world.schema.clone(), config);
    let mut decoder = Decoder::new(world.schema.clone(), config);
    for tick in 0..=ticks {
        world.step(30);
        for slot in world.archive.living_slots() {
            encoder.show(slot, &world.archive);
        }
        let packet = encoder.encode(&world.archive, None).unwrap();
        if tick == ticks {
            return (decoder, packet.bytes);
        }
        if tick % 6 != 5 {
            decoder.decode(&packet.bytes).unwrap();
            let ack = decoder.acknowledgement().unwrap();
            encoder.acknowledge(&ack, &world.archive).unwrap();
        }
    }
    unreachable!("the loop returns")
}

fn hostile(random: &mut Random, case: u64, next: &[u8], ticks: u32) -> Vec<u8> {
    let len = random.below(1401) as usize;
    let header = if next[0] == 0 { 17 } else { 5 };
    let mut packet = next.to_vec();
    match case % 8 {
        0 => vec![0; len],
        1 => vec![0xFF; len],
        2 => (0..len).map(|_| random.next() as u8).collect(),
        3 => {
            packet.truncate(header);
            packet.resize(header + len, 0);
            packet
        }
        4 => {
            packet.truncate(header);
            let byte = random.next() as u8;
            packet.resize(header + len, byte);
            packet
        }
        5 => {
            packet.truncate(header);
            packet.resize_with(header + len, || random.next() as u8);
            packet
        }
        6 => {
            let bit = random.below(packet.len() as u64 * 8) as usize;
            packet[bit / 8] ^= 1 << (bit % 8);
            packet.resize(packet.len() + len, 0);
            packet
        }
        _ => {
            // A new epoch: a model that knows nothing, and a partial or full packet.
            let mut packet = vec![0, 1 + random.below(3) as u8];
            for word in [ticks + 50, ticks + 5000, 0] {
                packet.extend(word.to_le_bytes());
            }
            packet.push(random.below(2) as u8);
            packet.resize_with(packet.len() + 2 + len, || random.next() as u8);
            packet
        }
    }
}

/// Forges packets with one new entity until one is accepted with an id as far as it goes.
fn the_farthest_id_that_is_accepted_is_near(config: Config) {
    let (fresh, real) = lived(config, 0);
    let mut random = Random::new(1);
    let mut decoder = fresh.clone();
    let mut accepted = 0;
    for _ in 0..setting("PRESCIENT_CASES", 4000) * 10 {
        let mut packet = real[..15].to_vec();
        packet.resize_with(15 + 2 + 6, || random.next() as u8);
        let region = Region::new(GLOBAL);
        if decoder.decode(&packet).is_ok() {
            accepted += 1;
            let bytes = region.change().bytes_allocated;
            assert!(bytes < FIXED + PER_BYTE * packet.len(), "{bytes}");
            let highest = decoder.world().living_slots().last();
            assert!(highest.is_none_or(|slot| slot.0 < 10_000), "{highest:?}");
            decoder = fresh.clone();
        }
    }
    println!("{accepted} forged packets accepted");
}

/// The bounds must not be felt by an honest sender of a large world.
fn large_worlds_are_joined_under_loss(config: Config) {
    const ENTITIES: i64 = 12_000;
    let schema = common::schema();
    let mut archive = Archive::new(schema.clone(), HISTORY);
    let mut encoder = Encoder::new(schema.clone(), config);
    let mut decoder = Decoder::new(schema, config);
    let mut random = Random::new(8);
    for tick in 1..200 {
        let mut capture = archive.begin(Tick(tick)).unwrap();
        if tick == 1 {
            for entity in 0..ENTITIES {
                capture.spawn(1, &[entity % 2, entity % 300]).unwrap();
            }
        }
        capture.finish();
        for slot in archive
            .living_slots()
            .take(if tick == 1 { usize::MAX } else { 0 })
        {
            encoder.show(slot, &archive);
        }
        let packet = encoder.encode(&archive, Some(1200)).unwrap();
        assert!(packet.bytes.len() <= 1200);
        // First a blackout, in which the sender goes on to ids that are far from confirmed ones.
        if tick > 30 && !random.chance(20) {
            decoder.decode(&packet.bytes).unwrap();
            if !random.chance(20) {
                let ack = decoder.acknowledgement().unwrap();
                encoder.acknowledge(&ack, &archive).unwrap();
            }
        }
        if packet.full {
            break;
        }
    }
    assert_eq!(decoder.world().living_slots().count() as i64, ENTITIES);
    for slot in 0..ENTITIES as u32 {
        let id: ClientId = encoder.client_id(Slot(slot)).unwrap();
        assert_eq!(decoder.row(id), archive.latest(Slot(slot)));
    }
}
