//! Packets that are damaged on the way.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::{GOOD, Link, World, damage, over_seeds};

/// Fails if `PacketProtection::open` does not authenticate the header (`Aad::from(&[])`), and if it
/// records a packet number before it has opened the packet (`self.replay.accept` above
/// `open_in_place`): then the genuine packet is rejected as a replay.
#[test]
fn none_of_thirty_percent_is_accepted_and_the_others_all_are() {
    over_seeds(20, |seed| {
        let mut world = World::new(seed, GOOD);
        for _ in 0..3 {
            world.join();
        }
        world.connect_all();
        world.link = Link {
            corruption: 30,
            ..GOOD
        };
        let mut random = world.random.clone();
        let mut sent = BTreeSet::new();
        for number in 0..500u64 {
            for peer in 0..3 {
                let mut payload = vec![0; random.below(1000) as usize];
                payload.fill_with(|| random.next() as u8);
                payload.extend_from_slice(&number.to_le_bytes());
                world.client_send(peer, &payload).expect("connected");
                sent.insert(payload);
            }
            world.run_for(Duration::from_millis(10));
        }
        world.run_for(Duration::from_secs(1));
        let received: Vec<_> = world
            .received()
            .into_iter()
            .map(|(_, bytes)| bytes)
            .collect();
        assert!(received.iter().all(|payload| sent.contains(payload)));
        let share = received.len() as f64 / sent.len() as f64;
        assert!((0.66..0.74).contains(&share), "{share} arrived");
        assert!(world.closed().is_empty());
    });
}

/// Fails for the same mutations: every damaged copy arrives before the genuine packet.
#[test]
fn a_damaged_copy_does_not_spoil_the_honest_packet_behind_it() {
    over_seeds(20, |seed| {
        let mut world = World::new(seed, GOOD);
        let peer = world.join();
        world.connect_all();
        let mut random = world.random.clone();
        for number in 0..200u8 {
            world.client_send(peer, &[number; 40]).expect("connected");
            // Damaged copies that arrive before the original.
            world.run_for(Duration::ZERO);
            let honest = world.sent.last().expect("just sent").clone();
            for after in 0..5 {
                let mut bytes = honest.bytes.clone();
                damage(&mut bytes, &mut random);
                world.inject(honest.from, honest.to, bytes, after);
            }
            world.run_for(Duration::from_millis(50));
            let (_, last) = world.received().pop().expect("it arrived");
            assert_eq!(last, [number; 40]);
        }
        assert_eq!(world.received().len(), 200);
    });
}
