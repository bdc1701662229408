//! If packets cannot cover all entities, weights decide which go first, and none waits for ever.

use std::sync::Arc;

use prescient_codec::{
    Config, Decoder, Encoder, HISTORY, NetEntityId, Slot, Tick, Weight, history::Archive,
};
use prescient_schema::{Class, Field, FieldKind, Schema};

const ENTITIES: usize = 200;
const BUDGET: usize = 60;

struct World {
    archive: Archive,
    encoder: Encoder,
    decoder: Decoder,
    slots: Vec<Slot>,
    ids: Vec<NetEntityId>,
    tick: u32,
    noise: u64,
}

/// Every entity moves at random, so all of them are due in every packet; every fourth has a higher
/// weight.
fn world() -> World {
    let kind = FieldKind::Int {
        bits: 32,
        signed: true,
    };
    let class = Class::new("mote", vec![Field::new("x", kind)]);
    let schema = Arc::new(Schema {
        classes: vec![class],
    });
    let mut archive = Archive::new(schema.clone(), HISTORY);
    let mut encoder = Encoder::new(schema.clone(), Config::default());
    let mut capture = archive.begin(Tick(1)).expect("the first");
    let slots: Vec<Slot> = (0..ENTITIES)
        .map(|x| capture.spawn(0, &[x as i64 * 1000]).expect("sound"))
        .collect();
    capture.finish();
    let show = |(at, &slot): (usize, &Slot)| {
        let id = encoder.show(slot, &archive).expect("it is there");
        encoder.set_weight(
            slot,
            Weight::new(if is_heavy(at) { 8 } else { 1 }).expect("not 0"),
        );
        id
    };
    let ids = slots.iter().enumerate().map(show).collect();
    World {
        decoder: Decoder::new(schema, Config::default()),
        archive,
        encoder,
        slots,
        ids,
        tick: 1,
        noise: 7,
    }
}

fn is_heavy(at: usize) -> bool {
    at % 4 == 3
}

impl World {
    /// Sends a packet and returns the entities that it covered.
    fn exchange(&mut self) -> Vec<usize> {
        let packet = self.encoder.encode(&self.archive, Some(BUDGET));
        let packet = packet.expect("a new tick");
        assert!(packet.bytes.len() <= BUDGET);
        self.decoder.decode(&packet.bytes).expect("in order");
        let ack = self.decoder.acknowledgement().expect("applied");
        let taken = self.encoder.acknowledge(&ack, &self.archive);
        taken.expect("honest");
        let covered: Vec<NetEntityId> = self.decoder.covered().collect();
        let numbered = self.ids.iter().enumerate();
        let inside = numbered.filter(|(_, id)| covered.contains(id));
        inside.map(|(at, _)| at).collect()
    }

    fn step(&mut self) {
        self.tick += 1;
        let mut capture = self
            .archive
            .begin(Tick(self.tick.into()))
            .expect("in order");
        for &slot in &self.slots {
            self.noise = self.noise.wrapping_mul(6364136223846793005).wrapping_add(1);
            let value = (self.noise >> 34) as i64;
            capture.write(slot, &[value]).expect("sound");
        }
        capture.finish();
    }
}

/// Fails if `WaitingEntity::turn` ignores weights.
#[test]
fn the_heavy_appear_first() {
    let mut world = world();
    let mut seen = [false; ENTITIES];
    let all =
        |seen: &[bool], heavy: bool| (0..ENTITIES).all(|at| seen[at] || is_heavy(at) != heavy);
    let mut packets = 0;
    while !all(&seen, true) {
        for at in world.exchange() {
            seen[at] = true;
        }
        world.step();
        packets += 1;
        assert!(packets < 200, "they never come");
    }
    let light = (0..ENTITIES)
        .filter(|&at| seen[at] && !is_heavy(at))
        .count();
    assert!(light < 20, "{light} light ones came before");
    while !all(&seen, false) {
        for at in world.exchange() {
            seen[at] = true;
        }
        world.step();
        packets += 1;
        assert!(packets < 2000, "some never come");
    }
}

/// Fails if weights are added to the time instead of multiplied, or if entities of low weight
/// starve.
#[test]
fn the_heavy_come_more_often_and_the_light_ones_too() {
    let mut world = world();
    let mut count = [0u32; ENTITIES];
    for round in 0..3000 {
        for at in world.exchange() {
            count[at] += u32::from(round >= 1000);
        }
        world.step();
    }
    let mean = |heavy: bool| {
        let chosen = (0..ENTITIES).filter(|&at| is_heavy(at) == heavy);
        let counts: Vec<u32> = chosen.map(|at| count[at]).collect();
        f64::from(counts.iter().sum::<u32>()) / counts.len() as f64
    };
    let ratio = mean(true) / mean(false);
    assert!((6.0..10.0).contains(&ratio), "{ratio} times as often");
    assert!(count.iter().all(|&count| count > 0), "an entity starves");
}
