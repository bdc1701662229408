//! Queries besides packets: the cost of an entity, and the derivative of a field.

use crate::common::{Random, World, config};
use crate::pair::{Pair, int};
use prescient_codec::{Decoder, Encoder, NetEntityId, Policy, Profile, Slot};
use prescient_schema::Class;

#[test]
fn estimates_add_up_to_what_packets_cost() {
    let mut world = World::new(5);
    let config = config(Policy::Confirmed, Profile::Default);
    let mut encoder = Encoder::new(world.schema.clone(), config);
    let mut decoder = Decoder::new(world.schema.clone(), config);
    let (mut estimated, mut real) = (0.0, 0.0);
    for time in 0..300 {
        world.step(25);
        for slot in world.archive.living_slots() {
            encoder.show(slot, &world.archive);
        }
        let digest = encoder.digest();
        let slots: Vec<Slot> = world.archive.living_slots().collect();
        let mut bits = 0.0;
        for slot in slots {
            bits += encoder.estimate(slot, &world.archive).unwrap() as f64 / 65536.0;
        }
        assert_eq!(encoder.digest(), digest, "asking taught something");
        let packet = encoder.encode(&world.archive, None).unwrap();
        decoder.decode(&packet.bytes).unwrap();
        let ack = decoder.acknowledgement().unwrap();
        encoder.acknowledge(&ack, &world.archive).unwrap();
        if time >= 100 {
            estimated += bits;
            real += 8.0 * (packet.bytes.len() as f64 - 3.0);
        }
    }
    println!("estimated {estimated:.0} bits, sent {real:.0}");
    assert!((estimated / real - 1.0).abs() < 0.06, "{estimated} {real}");
}

#[test]
fn an_unknown_entity_has_no_estimate() {
    let mut pair = Pair::new(Class::new("one", vec![int("a", 32)]), &[&[1]]);
    assert_eq!(pair.encoder.estimate(Slot(0), &pair.archive), None);
    pair.exchange(None);
    assert_eq!(pair.encoder.estimate(Slot(9), &pair.archive), None);
}

#[test]
fn derivatives_of_polynomials_are_exact() {
    let at = |t: i64| [5 * t * t - 40 * t + 9, 3 - 7 * t, 11];
    let fields = vec![int("parabola", 32), int("line", 32), int("level", 32)];
    let mut pair = Pair::new(Class::new("curve", fields), &[&at(1)]);
    let mut random = Random::new(3);
    let mut time = 1;
    for step in 0..40 {
        pair.exchange(None);
        let id: NetEntityId = pair.encoder.net_entity_id(Slot(0)).unwrap();
        let ask = |field, order| {
            let (numerator, denominator) = pair.decoder.derivative(id, field, order)?;
            assert_eq!(numerator % denominator, 0);
            Some(numerator / denominator)
        };
        assert_eq!(ask(0, 0), Some(at(time)[0]));
        assert_eq!(ask(1, 0), Some(at(time)[1]));
        if step >= 2 {
            assert_eq!(ask(0, 2), Some(10), "second derivative at {time}");
            assert_eq!(ask(1, 1), Some(-7));
            assert_eq!(ask(1, 2), Some(0));
            assert_eq!(ask(2, 1), Some(0));
        }
        assert_eq!(pair.decoder.derivative(NetEntityId(77), 0, 1), None);
        assert_eq!(pair.decoder.derivative(id, 9, 1), None);
        assert_eq!(pair.decoder.derivative(id, 0, usize::MAX), None);
        // Ticks need not be evenly spaced.
        let gap = 1 + random.below(3) as u32;
        pair.tick += gap - 1;
        time += i64::from(gap);
        pair.capture([(0, &at(time)[..])]);
    }
}
