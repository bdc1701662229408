//! A tick that one packet cannot hold is told in several, each decodable by itself, in any order.
//! The trouble of `models_never_diverge` includes such ticks; here is what they achieve.

use std::sync::Arc;

use crate::common::{Random, config};
use prescient_codec::history::Archive;
use prescient_codec::{DecodeError, Decoder, Encoder, Policy, Profile, Slot, Tick};
use prescient_schema::{Class, Field, FieldKind, Schema};

/// Walkers that turn at random, so that every tick has surprises of most of them.
struct Crowd {
    archive: Archive,
    random: Random,
    tick: u32,
    slots: Vec<Slot>,
}

impl Crowd {
    fn new(seed: u64, size: usize) -> Self {
        let int = FieldKind::Int {
            bits: 32,
            signed: true,
        };
        let fields = ["x", "y", "aim"].map(|name| Field::new(name, int.clone()));
        let schema = Schema {
            classes: vec![Class::new("walker", fields.into())],
        };
        let mut crowd = Self {
            archive: Archive::new(Arc::new(schema), 128),
            random: Random::new(seed),
            tick: 1,
            slots: Vec::new(),
        };
        let mut capture = crowd.archive.begin(Tick(1)).unwrap();
        for _ in 0..size {
            let row = [0; 3].map(|_: i64| crowd.random.below(1 << 20) as i64);
            crowd.slots.push(capture.spawn(0, &row).unwrap());
        }
        capture.finish();
        crowd
    }

    fn step(&mut self) {
        self.tick += 1;
        let rows: Vec<Vec<i64>> = (self.slots.iter())
            .map(|&slot| self.archive.latest(slot).unwrap().to_vec())
            .collect();
        let mut capture = self.archive.begin(Tick(self.tick.into())).unwrap();
        for (&slot, row) in self.slots.iter().zip(rows) {
            let row: Vec<i64> = (row.iter())
                .map(|value| value + self.random.below(60) as i64)
                .collect();
            capture.write(slot, &row).unwrap();
        }
        capture.finish();
    }

    /// All packets of the present tick, as far as `total` bytes reach.
    fn encode(&self, encoder: &mut Encoder, packet: usize, total: usize) -> Vec<Vec<u8>> {
        let mut packets = vec![encoder.encode(&self.archive, Some(packet)).unwrap().bytes];
        while packets
            .iter()
            .map(Vec::len)
            .sum::<usize>()
            .saturating_add(packet)
            <= total
            && let Some(more) = encoder.encode_more(&self.archive, packet).unwrap()
        {
            packets.push(more.bytes);
        }
        packets
    }

    fn is_shown(&self, decoder: &Decoder) -> bool {
        let newest = decoder.world().newest() == self.archive.newest();
        let shown = self.slots.iter().filter(|&&slot| {
            let row = decoder.world().latest(slot);
            row == self.archive.latest(slot)
        });
        newest && shown.count() == self.slots.len()
    }
}

/// A client joins a large world: soon it knows more entities than a packet can name, all of them as
/// predicted. Fails if they all go into every packet (`as_predicted_that_fit` returns `usize::MAX`):
/// packets then have room for a single new entity.
#[test]
fn packets_are_full_until_a_large_world_is_joined() {
    let mut crowd = Crowd::new(1, 50_000);
    let schema = crowd.archive.schema().clone();
    let config = config(Policy::Confirmed, Profile::Default);
    let mut encoder = Encoder::new(schema.clone(), config);
    let mut decoder = Decoder::new(schema, config);
    for &slot in &crowd.slots {
        encoder.show(slot, &crowd.archive);
    }
    loop {
        let packets = crowd.encode(&mut encoder, 1200, 60_000);
        for packet in &packets {
            decoder.decode(packet).unwrap();
        }
        let bytes = packets.iter().map(Vec::len).sum::<usize>();
        let (sent, least, tick) = (packets.len(), bytes.div_ceil(1200), crowd.tick);
        assert!(
            sent <= 2 * least,
            "tick {tick}: {sent} packets, {bytes} bytes"
        );
        if crowd.is_shown(&decoder) {
            break;
        }
        assert!(tick < 20, "there is room for everything in ten ticks");
        let ack = decoder.acknowledgement().unwrap();
        encoder.acknowledge(&ack, &crowd.archive).unwrap();
        crowd.tick += 1;
        let capture = crowd.archive.begin(Tick(crowd.tick.into())).unwrap();
        capture.finish();
    }
}

/// Fails if a tick ends with its first packet (`encode_more` returns `None`), or if packets that
/// arrive in another order are refused (`check_order` accepts only sequences above the newest).
#[test]
fn a_tick_of_three_thousand_bytes_is_current_at_once() {
    for seed in 0..20 {
        let mut crowd = Crowd::new(seed, 1300);
        let schema = crowd.archive.schema().clone();
        let config = config(Policy::Confirmed, Profile::Default);
        let mut encoder = Encoder::new(schema.clone(), config);
        let mut decoder = Decoder::new(schema, config);
        let (mut bytes, mut ticks) = (0, 0);
        for tick in 0..60 {
            for &slot in &crowd.slots {
                encoder.show(slot, &crowd.archive);
            }
            let mut packets = crowd.encode(&mut encoder, 1100, 20_000);
            assert!(packets.iter().all(|packet| packet.len() <= 1100));
            if tick > 30 {
                bytes += packets.iter().map(Vec::len).sum::<usize>();
                ticks += 1;
            }
            let turn = crowd.random.below(packets.len() as u64) as usize;
            packets.rotate_left(turn);
            for packet in &packets {
                decoder.decode(packet).unwrap();
                assert_eq!(decoder.decode(packet), Err(DecodeError::Late));
            }
            assert!(crowd.is_shown(&decoder), "seed {seed}, tick {tick}");
            let ack = decoder.acknowledgement().unwrap();
            encoder.acknowledge(&ack, &crowd.archive).unwrap();
            crowd.step();
        }
        let mean = bytes / ticks;
        assert!((3000..6000).contains(&mean), "{mean} bytes a tick");
    }
}

/// Fails if a packet is applied after an acknowledgement that names a later one but not it
/// (`acknowledged` ignored): the sender has counted it as lost, and the models would differ.
#[test]
fn what_was_acknowledged_as_missing_stays_missing() {
    for seed in 0..20 {
        let mut crowd = Crowd::new(seed, 300);
        let schema = crowd.archive.schema().clone();
        let config = config(Policy::Confirmed, Profile::Default);
        let mut encoder = Encoder::new(schema.clone(), config);
        let mut decoder = Decoder::new(schema, config);
        for _ in 0..40 {
            for &slot in &crowd.slots {
                encoder.show(slot, &crowd.archive);
            }
            let packets = crowd.encode(&mut encoder, 500, 20_000);
            let (first, others) = packets.split_first().unwrap();
            for packet in others {
                decoder.decode(packet).unwrap();
            }
            let ack = decoder.acknowledgement();
            let arrives_late = decoder.decode(first);
            if let Some(ack) = ack.filter(|_| !others.is_empty()) {
                assert_eq!(arrives_late, Err(DecodeError::Late));
                encoder.acknowledge(&ack, &crowd.archive).unwrap();
                assert!(!ack.applied.contains(others.len() as u32));
            }
            crowd.step();
        }
        // The last packets were decoded with the model of both.
        assert!(encoder.statistics().folded > 40);
    }
}

/// The further packets cover only what the first ones left out. Fails if `Remainder::remove` keeps
/// what was covered, or if spawns in flight are sent again with every packet.
#[test]
fn nothing_is_told_twice_in_a_tick() {
    let crowd = Crowd::new(5, 2000);
    let schema = crowd.archive.schema().clone();
    let config = config(Policy::Confirmed, Profile::Default);
    let mut encoder = Encoder::new(schema.clone(), config);
    let mut decoder = Decoder::new(schema, config);
    for &slot in &crowd.slots {
        encoder.show(slot, &crowd.archive);
    }
    let mut covered = 0;
    for packet in crowd.encode(&mut encoder, 1100, 1 << 20) {
        decoder.decode(&packet).unwrap();
        covered += decoder.covered().count();
    }
    assert_eq!(covered, 2000);
    assert!(crowd.is_shown(&decoder));
    assert!(encoder.encode_more(&crowd.archive, 1100).unwrap().is_none());
}

/// Fails if the bytes of several packets are many more than those of one that holds everything, for
/// example because what a tick covered is not one fold (`continues` always false in
/// `SharedModel::fold`).
#[test]
fn several_packets_cost_little_more_than_one() {
    let mut crowd = Crowd::new(3, 1300);
    let schema = crowd.archive.schema().clone();
    let config = config(Policy::Confirmed, Profile::Default);
    let mut ends = [usize::MAX, 1100].map(|packet| {
        let encoder = Encoder::new(schema.clone(), config);
        (packet, encoder, Decoder::new(schema.clone(), config), 0)
    });
    for tick in 0..100 {
        for (packet, encoder, decoder, bytes) in &mut ends {
            for &slot in &crowd.slots {
                encoder.show(slot, &crowd.archive);
            }
            for packet in crowd.encode(encoder, *packet, usize::MAX) {
                decoder.decode(&packet).unwrap();
                *bytes += if tick > 30 { packet.len() } else { 0 };
            }
            let ack = decoder.acknowledgement().unwrap();
            encoder.acknowledge(&ack, &crowd.archive).unwrap();
        }
        crowd.step();
    }
    let [one, several] = ends.map(|(.., bytes)| bytes);
    println!("{several} bytes in several packets, {one} in one");
    assert!(
        several < one * 11 / 10,
        "{several} bytes, {one} in one packet"
    );
}
