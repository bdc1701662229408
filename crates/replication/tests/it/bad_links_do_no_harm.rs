//! The network faults of RELIABILITY that concern state: three clients of a battle show only true
//! states.

use crate::common::battle::Battle;
use crate::common::{TICK, TestWorld, good};
use prescient_replication::{Everything, PeerId, Tick};
use prescient_sim::link::{Conditions, LinkConditioner, Time};
use prescient_tests::seeds::over_seeds;

/// Ticks in a second.
const HZ: u32 = 10;

struct Case {
    battle: Battle,
    test_world: TestWorld,
}

impl Case {
    fn new(seed: u64, link: Conditions) -> Self {
        let mut test_world = TestWorld::new(seed, 3, link, Everything);
        for test_client in &mut test_world.clients {
            // Events have a carrier that delivers them late, once, and in order.
            let late = good().with_jitter(11 * TICK);
            test_client.events_down = LinkConditioner::new(seed, late);
        }
        Self {
            battle: Battle::new(),
            test_world,
        }
    }

    /// Runs some ticks; in each, every client is sent an event and its state is compared with the
    /// true one; shown ticks never go backwards.
    fn run(&mut self, ticks: u32) {
        for _ in 0..ticks {
            self.battle.step(&mut self.test_world);
            let payload = self.test_world.tick.to_le_bytes();
            for peer in 1..=3 {
                let told = self.test_world.server.send_event(PeerId(peer), &payload);
                told.expect("connected");
            }
            let before = self.shown();
            self.test_world.exchange();
            self.battle.check(&self.test_world);
            let back = before.iter().zip(self.shown()).any(|(&was, is)| is < was);
            assert!(!back, "a tick was shown after a later one");
        }
    }

    /// Replaces the links to the clients and to the server.
    fn change(&mut self, down: &Conditions, up: &Conditions) {
        let now = Time::from_micros(u64::from(self.test_world.tick) * TICK.as_micros() as u64);
        for test_client in &mut self.test_world.clients {
            test_client.down.change(now, down.clone());
            test_client.up.change(now, up.clone());
        }
    }

    fn shown(&self) -> Vec<Option<Tick>> {
        let clients = self.test_world.clients.iter();
        clients
            .map(|test_client| test_client.client.tick())
            .collect()
    }

    /// With good links, every client shows everything within this many ticks.
    fn recovers_in(&mut self, ticks: u32) {
        self.run(ticks);
        let last = Tick((self.test_world.tick - 1).into());
        for test_client in &self.test_world.clients {
            assert_eq!(test_client.client.complete_tick(), Some(last));
            assert_eq!(test_client.entities.len(), self.battle.past[&last].len());
        }
    }

    /// Every client received every event exactly once and in order.
    fn all_received(&mut self) {
        let last = self.test_world.tick;
        self.run(12);
        for test_client in &self.test_world.clients {
            let received = test_client.events.iter().map(|received| {
                let number = received.payload[..].try_into().expect("four bytes");
                u32::from_le_bytes(number)
            });
            let received: Vec<u32> = received.take_while(|&number| number <= last).collect();
            assert_eq!(received, (1..=last).collect::<Vec<_>>());
        }
    }
}

/// Case 1: uniform loss each way. Fails if a lost packet counts as applied (in the codec's
/// `Encoder::settle`, take `applied` to be all ones).
#[test]
fn uniform_loss_changes_nothing_that_is_shown() {
    for percent in [0, 1, 5, 20, 50] {
        over_seeds(20, |seed| {
            let mut case = Case::new(seed, good().with_loss(percent * 10_000));
            case.run(8 * HZ);
            case.change(&good(), &good());
            case.recovers_in(5);
            case.all_received();
        });
    }
}

/// Case 2: 90 % loss for a minute, recovered within two seconds. Fails if acknowledgements name the
/// newest packet alone (in `Decoder::acknowledgement`, `applied: 1`).
#[test]
fn a_minute_of_heavy_loss_is_over_soon() {
    over_seeds(20, |seed| {
        let mut case = Case::new(seed, good());
        case.run(HZ);
        let heavy = good().with_loss(900_000);
        case.change(&heavy, &heavy);
        case.run(60 * HZ);
        case.change(&good(), &good());
        case.recovers_in(2 * HZ);
        case.all_received();
    });
}

/// Cases 4, 5 and 17: half of all packets reordered by 200 ms and more, half repeated up to a
/// minute late, and some lost, while models learn. Fails if the decoder applies late packets (in
/// `Decoder::decode_with`, `header.sequence == self.newest` for late).
#[test]
fn late_and_repeated_packets_are_not_shown() {
    over_seeds(20, |seed| {
        let link = good()
            .with_reordering(500_000, 6 * TICK)
            .with_duplication(500_000, 60 * HZ * TICK)
            .with_loss(50_000);
        let mut case = Case::new(seed, link);
        case.run(12 * HZ);
        case.change(&good(), &good());
        case.recovers_in(8);
        case.all_received();
        for test_client in &case.test_world.clients {
            let peer = case
                .test_world
                .server
                .statistics(test_client.peer)
                .expect("connected");
            assert_eq!(peer.codec.resyncs, 0);
            assert!(peer.codec.folded > 10, "nothing was learned");
        }
    });
}

/// Case 6: bits flipped in 30 % of all packets to clients. None is applied, and none changes a
/// model: the next undamaged one is decoded. Fails if the checksum of a packet is ignored (in
/// `Decoder::read`, never `CheckFailed`).
#[test]
fn damaged_packets_are_not_shown() {
    over_seeds(20, |seed| {
        let mut case = Case::new(seed, good());
        case.test_world.damaged = true;
        case.run(HZ);
        case.change(&good().with_corruption(300_000), &good());
        case.run(10 * HZ);
        case.change(&good(), &good());
        case.recovers_in(8);
    });
}

/// Cases 8 and 9: five seconds of blackout every seven, then half a minute. Each time everything is
/// shown a round trip and two packets after the end. Fails if the model that packets are coded with
/// advances without acknowledgements (`Policy::Immediate` as the codec's default).
#[test]
fn blackouts_are_over_when_they_are_over() {
    over_seeds(20, |seed| {
        let mut case = Case::new(seed, good());
        case.run(HZ);
        let nothing = good().with_loss(1_000_000);
        for seconds in [5, 5, 5, 30] {
            case.change(&nothing, &nothing);
            case.run(seconds * HZ);
            case.change(&good(), &good());
            case.recovers_in(5);
            case.run(2 * HZ - 5);
        }
        case.all_received();
    });
}
