//! The memory that a packet can make a decoder allocate, measured: a constant, so much per byte of
//! the packet, and so much per known entity. Without a bound, a well predicted stream would expand
//! to gigabytes, and one distant id to a table of a million rows.
//!
//! Mutations tried: no limit of decisions (fails), no limit of ids (fails).

mod common;

use std::alloc::System;

use common::{Random, World, config, setting};
use prescient_codec::{
    Config, DecodeError, Decoder, Encoder, HISTORY, NetEntityId, Policy, Profile, Slot, Tick,
    history::Archive, numbers,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

// One test, so that nothing else allocates meanwhile.
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
    what_unfolds_too_far_is_refused(Config::default());
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
    /// Decodes a packet and returns the bytes that the decoder allocated.
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

    /// Searches for the worst body, byte by byte.
    fn climb(&mut self, decoder: &mut Decoder, next: &[u8], entities: usize, random: &mut Random) {
        let header = header_len(next);
        let mut packet = next[..header].to_vec();
        let mut best = 0;
        for at in header..header + 12 {
            let mut choice = 0;
            for _ in 0..8 {
                let byte = random.next() as u8;
                packet.truncate(at);
                packet.push(byte);
                // A new decoder each time: buffers that have grown already hide their cost.
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

/// Buffers, the first pages of the model, and tables up to the nearest ids.
const FIXED: usize = 2 << 20;
/// 128 decisions, each with its log, its undo log, and what it may create.
const PER_BYTE: usize = 32 << 10;
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
    let header = header_len(next);
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
            // A new epoch: a fresh model, and a partial or full packet.
            let mut packet = vec![0x90 | random.below(2) as u8, 1 + random.below(3) as u8];
            packet.extend((ticks + 50).to_le_bytes());
            numbers::put(&mut packet, u64::from(ticks) + 5000);
            packet.resize_with(packet.len() + 2 + len, || random.next() as u8);
            packet
        }
    }
}

/// Bytes before the body of a packet of an early tick that excludes nothing.
fn header_len(packet: &[u8]) -> usize {
    match packet[0] {
        0..0x80 => 3,
        flags if flags & 0x10 != 0 => 9,
        _ => 5,
    }
}

/// To forge a distant id: a sender whose receiver has many entities spawns one more. Without
/// learning, all decisions are equally likely for this and for an empty receiver, and entities at
/// rest are not mentioned, so the body means the same to both.
fn the_farthest_id_that_is_accepted_is_near(config: Config) {
    let config = config.with_learning(false);
    let forger = Forger::new(config, 1 << 16);
    let mut random = Random::new(1);
    let fresh = Decoder::new(common::schema(), config);
    let mut farther: Vec<Vec<u32>> = vec![
        vec![NEARBY],
        vec![NEARBY + 1],
        vec![(1 << 16) - 1],
        vec![0, NEARBY + 64],
        vec![NEARBY - 1, NEARBY + 64],
        vec![5, 6, 7, NEARBY + 3 * 64],
    ];
    for exponent in 13..16 {
        let some = || vec![(1 << exponent) + random.below(1 << exponent) as u32];
        farther.extend(std::iter::repeat_with(some).take(8));
    }
    for ids in farther {
        let result = fresh.clone().decode(&forger.forge(&ids));
        assert_eq!(result, Err(DecodeError::Malformed), "{ids:?}");
    }
    for ids in [
        vec![NEARBY - 1],
        vec![0, NEARBY + 63],
        vec![5, 6, 7, NEARBY + 3 * 64 - 1],
    ] {
        let packet = forger.forge(&ids);
        let bytes = try_every_check(&fresh, packet, &ids);
        println!("ids {ids:?} made it allocate {bytes} bytes");
        assert!(bytes < FIXED, "{bytes}");
    }
}

/// The first id that is refused by a decoder without entities.
const NEARBY: u32 = 1 << 13;

/// The bytes that a decoder allocates to accept a forged packet, tried with every check, as an
/// attacker can.
fn try_every_check(fresh: &Decoder, mut packet: Vec<u8>, ids: &[u32]) -> usize {
    let mut decoder = fresh.clone();
    for check in 0..=u16::MAX {
        packet[7..9].copy_from_slice(&check.to_le_bytes());
        let region = Region::new(GLOBAL);
        let result = decoder.decode(&packet);
        let bytes = region.change().bytes_allocated;
        if result.is_ok() {
            let shown = decoder.world().living_slots().map(|slot| slot.0);
            assert!(shown.eq(ids.iter().copied()), "{ids:?}");
            return bytes;
        }
        assert_eq!(result, Err(DecodeError::CheckFailed), "{ids:?}");
    }
    panic!("no check fits");
}

/// An encoder whose receiver has many entities, all at rest.
#[derive(Clone)]
struct Forger {
    archive: Archive,
    encoder: Encoder,
    decoder: Decoder,
    tick: u32,
}

impl Forger {
    fn new(config: Config, entities: usize) -> Self {
        let schema = common::schema();
        let mut forger = Self {
            archive: Archive::new(schema.clone(), HISTORY),
            encoder: Encoder::new(schema.clone(), config),
            decoder: Decoder::new(schema, config),
            tick: 0,
        };
        forger.exchange(entities);
        for _ in 0..64 {
            forger.exchange(0);
        }
        forger
    }

    /// The next tick, with this many spawns. Returns its packet.
    fn exchange(&mut self, spawns: usize) -> Vec<u8> {
        self.tick += 1;
        let mut capture = self.archive.begin(Tick(self.tick.into())).unwrap();
        let made: Vec<Slot> = (0..spawns)
            .map(|_| capture.spawn(1, &[1, 7]).unwrap())
            .collect();
        capture.finish();
        for slot in made {
            self.encoder.show(slot, &self.archive);
        }
        let packet = self.encoder.encode(&self.archive, None).unwrap().bytes;
        self.decoder.decode(&packet).unwrap();
        let ack = self.decoder.acknowledgement().unwrap();
        self.encoder.acknowledge(&ack, &self.archive).unwrap();
        packet
    }

    /// The first packet of a connection, which spawns entities with these ids.
    fn forge(&self, ids: &[u32]) -> Vec<u8> {
        let mut forger = self.clone();
        for &id in ids {
            let slot = forger.encoder.slot(NetEntityId(id)).unwrap();
            forger.encoder.hide(slot);
        }
        // Once their despawns are confirmed, their ids are reused.
        forger.exchange(0);
        forger.exchange(0);
        let packet = forger.exchange(ids.len());
        for &id in ids {
            let slot = forger.encoder.slot(NetEntityId(id)).unwrap();
            assert!(slot.0 >= 1 << 16, "{id} was not given anew");
        }
        // A long header, full, of epoch 0.
        let mut forged = vec![0x91, 0];
        forged.extend(1u32.to_le_bytes());
        numbers::put(&mut forged, forger.tick.into());
        // The check is unknown.
        assert_eq!(forged.len(), 7, "the tick takes one byte");
        forged.extend([0, 0]);
        assert!(packet[0] & 0x80 == 0, "a header without flags is 3 bytes");
        forged.extend_from_slice(&packet[3..]);
        forged
    }
}

/// Thousands of equal entities fit into a few bytes; an honest sender pads them.
fn what_unfolds_too_far_is_refused(config: Config) {
    let schema = common::schema();
    let mut archive = Archive::new(schema.clone(), HISTORY);
    let mut encoder = Encoder::new(schema.clone(), config);
    let mut capture = archive.begin(Tick(1)).unwrap();
    for _ in 0..8000 {
        capture.spawn(1, &[1, 7]).unwrap();
    }
    capture.finish();
    for slot in archive.living_slots() {
        encoder.show(slot, &archive);
    }
    let honest = encoder.encode(&archive, None).unwrap().bytes;
    let mut bare = honest.clone();
    while bare.last() == Some(&0) {
        bare.pop();
    }
    println!("{} bytes say {}", honest.len(), bare.len());
    assert!(bare.len() + 100 < honest.len());
    let mut decoder = Decoder::new(schema, config);
    let mut worst = Worst::default();
    worst.feed(&mut decoder, &bare, 0);
    assert_eq!(decoder.decode(&bare), Err(DecodeError::Malformed));
    worst.feed(&mut decoder, &honest, 0);
    assert_eq!(worst.accepted, 1);
}

/// The bounds must not hinder an honest sender of a large world.
fn large_worlds_are_joined_under_loss(config: Config) {
    const ENTITIES: i64 = 10_000;
    let schema = common::schema();
    let mut archive = Archive::new(schema.clone(), HISTORY);
    let mut encoder = Encoder::new(schema.clone(), config);
    let mut decoder = Decoder::new(schema, config);
    let mut random = Random::new(8);
    for tick in 1..200 {
        let mut capture = archive.begin(Tick(tick)).unwrap();
        if tick == 1 {
            for entity in 0..ENTITIES {
                let colour = entity * entity * 7919 % 300;
                capture.spawn(1, &[entity % 2, colour]).unwrap();
            }
        }
        capture.finish();
        for slot in archive
            .living_slots()
            .take(if tick == 1 { usize::MAX } else { 0 })
        {
            encoder.show(slot, &archive);
        }
        let packet = encoder.encode(&archive, Some(3000)).unwrap();
        assert!(packet.bytes.len() <= 3000);
        // First a blackout, during which the sender uses ids that are far from confirmed ones.
        if tick > 6 && !random.chance(20) {
            decoder.decode(&packet.bytes).unwrap();
            if packet.full {
                break;
            }
            if !random.chance(20) {
                let ack = decoder.acknowledgement().unwrap();
                encoder.acknowledge(&ack, &archive).unwrap();
            }
        }
    }
    assert_eq!(decoder.world().living_slots().count() as i64, ENTITIES);
    for slot in 0..ENTITIES as u32 {
        let id: NetEntityId = encoder.net_entity_id(Slot(slot)).unwrap();
        assert_eq!(decoder.row(id), archive.latest(Slot(slot)));
    }
}
