//! Case 34: a client with valid keys sends as much as it can in the most expensive way. The game
//! receives no more from it than the limits allow, other clients are not affected, and a correct
//! client that exceeds the limits is delayed, but loses nothing.

use std::time::Duration;

use crate::common::{GOOD, SECOND, World, over_seeds};
use prescient_channels::{ChannelId, CloseReason, ConnectionId, Input, InputTick, Keys, Received};

/// The defaults of `LinkConfig`.
const INPUTS_PER_SECOND: u64 = 256;
const MESSAGES_PER_SECOND: u64 = 4096;
const MESSAGES_AT_ONCE: u64 = 1024;

/// Three clients; the first is the attacker.
fn connected(seed: u64) -> (World, [ConnectionId; 3]) {
    let mut world = World::new(seed, GOOD);
    for _ in 0..3 {
        world.join();
    }
    world.connect_all();
    let all = [0, 1, 2].map(|peer| world.connection_of(peer).expect("connected"));
    (world, all)
}

fn raw(world: &mut World, body: &[u8]) {
    let now = world.client_time();
    world.peers[0].client.send_raw(body, now);
}

fn number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// A frame of 64 inputs from a tick on, of which the first presses a key.
fn inputs(tick: u64, key: u8) -> Vec<u8> {
    let mut frame = vec![19];
    number(&mut frame, tick);
    frame.extend([1, 1 << 3 | 1 << 6, 1, key, 63]);
    frame
}

fn inputs_of(world: &World, connection: ConnectionId) -> Vec<&Input> {
    let inputs = world
        .received_from(connection)
        .filter_map(|received| match received {
            Received::Input { input, .. } => Some(input),
            _ => None,
        });
    inputs.collect()
}

/// The two others send something in every tick.
fn others_send(world: &mut World, tick: u64) {
    for peer in [1, 2] {
        let now = world.client_time();
        let client = &mut world.peers[peer].client;
        let pushed = client.push_input(InputTick(tick), Input::default(), now);
        pushed.expect("in order");
        let queued = world.client_send_on(peer, ChannelId::ORDERED, &tick.to_le_bytes());
        queued.expect("there is room");
    }
}

fn others_were_heard(world: &World, others: &[ConnectionId], ticks: u64) {
    for &other in others {
        let expected: Vec<_> = (0..ticks).map(|tick| tick.to_le_bytes().to_vec()).collect();
        assert_eq!(world.received_on(other, ChannelId::ORDERED), expected);
        assert_eq!(inputs_of(world, other).len() as u64, ticks);
    }
}

/// Fails if a packet may have several frames of inputs, acknowledgements or the like (`seen & once`
/// left out of `frames`).
#[test]
fn a_packet_says_everything_but_messages_once() {
    over_seeds(20, |seed| {
        let two_inputs = [inputs(0, 1), inputs(64, 2)].concat();
        let bodies: [&[u8]; 6] = [
            &two_inputs,
            &[3, 3],
            &[17, 1, 17, 1],
            &[18, 1, 1, 1, 18, 1, 1, 1],
            &[1, 0, 0, 0, 0, 1, 0, 0, 0, 0],
            &[6, 1, 6, 1],
        ];
        let body = bodies[seed as usize % bodies.len()];
        let (mut world, [attacker, others @ ..]) = connected(seed);
        raw(&mut world, body);
        world.run_for(SECOND);
        assert_eq!(world.closed(), [(attacker, CloseReason::Violation)]);
        assert_eq!(world.received_from(attacker).count(), 0);
        others_send(&mut world, 0);
        world.run_for(SECOND);
        others_were_heard(&world, &others, 1);
    });
}

/// 64 inputs in each of 500 packets a second, for three seconds. Excess inputs are joined, so every
/// press arrives exactly once. Fails if the allowance is ignored (`max` of `Inputs::handle` is
/// `usize::MAX`), or if joining loses presses (`pressed.or(…)` in `InputReceiver::take`).
#[test]
fn inputs_are_bounded_by_time() {
    over_seeds(20, |seed| {
        let (mut world, [attacker, others @ ..]) = connected(seed);
        for packet in 0..1500 {
            raw(&mut world, &inputs(64 * packet, (packet % 251) as u8));
            if packet % 10 == 0 {
                others_send(&mut world, packet / 10);
            }
            world.run_for(Duration::from_millis(2));
        }
        world.run_for(SECOND);
        // The last input has the remaining presses.
        raw(&mut world, &inputs(64 * 1500, 255));
        world.run_for(SECOND);
        let received = inputs_of(&world, attacker);
        let max = INPUTS_PER_SECOND * 6;
        assert!(received.len() as u64 <= max, "{} inputs", received.len());
        let pressed = received
            .iter()
            .fold(Keys::NONE, |all, input| all.or(input.pressed));
        assert!((0..251).all(|key| pressed.contains(key)), "{pressed:?}");
        let presses = received.iter().map(|input| input.pressed.len() as u64);
        assert!(presses.sum::<u64>() <= 1501);
        let joined = world.server_statistics(attacker).joined_inputs;
        assert_eq!(joined + received.len() as u64, 64 * 1501);
        assert_eq!(world.closed(), []);
        others_were_heard(&world, &others, 150);
    });
}

/// 64 messages in each of 500 packets a second, for three seconds. Fails if the allowance is
/// ignored (`may_take` always true).
#[test]
fn messages_are_bounded_by_time() {
    over_seeds(20, |seed| {
        let (mut world, [attacker, others @ ..]) = connected(seed);
        // Empty messages on an unreliable channel.
        let body = [0x82, 0].repeat(64);
        for packet in 0..1500 {
            raw(&mut world, &body);
            if packet % 10 == 0 {
                others_send(&mut world, packet / 10);
            }
            world.run_for(Duration::from_millis(2));
        }
        world.run_for(SECOND);
        let received = world.received_from(attacker).count() as u64;
        let max = MESSAGES_AT_ONCE + 3 * MESSAGES_PER_SECOND;
        assert!((max / 2..=max).contains(&received), "{received} messages");
        assert!(world.server_statistics(attacker).refused > 1000);
        assert_eq!(world.closed(), []);
        others_were_heard(&world, &others, 150);
    });
}

/// A correct client that sends 20,000 messages at once. Fails if a refused packet is acknowledged
/// (`note` in `Exchange::handle_body` before `may_take`).
#[test]
fn what_must_arrive_arrives_later() {
    over_seeds(20, |seed| {
        let (mut world, [talker, ..]) = connected(seed);
        world.link.loss = seed % 30;
        let (mut count, mut seconds) = (0u32, 0);
        while count < 20_000 {
            while count < 20_000
                && world
                    .client_send_on(0, ChannelId::ORDERED, &count.to_le_bytes())
                    .is_ok()
            {
                count += 1;
            }
            world.run_for(Duration::from_millis(10));
        }
        let arrived = |world: &World| world.received_on(talker, ChannelId::ORDERED);
        while arrived(&world).len() < 20_000 {
            world.run_for(SECOND);
            seconds += 1;
            assert!(seconds < 60, "{} arrived", arrived(&world).len());
        }
        let expected: Vec<_> = (0..20_000u32)
            .map(|count| count.to_le_bytes().to_vec())
            .collect();
        assert!(arrived(&world) == expected, "in order, each once");
        assert_eq!(world.closed(), []);
    });
}

/// Fails if messages of a paused client are accepted (`is_paused` left out of `may_take` or of
/// `Inputs::handle`), or if it stays paused.
#[test]
fn a_paused_client_is_heard_later() {
    over_seeds(20, |seed| {
        let (mut world, [paused, others @ ..]) = connected(seed);
        world.server.pause(paused, true);
        for tick in 0..150 {
            others_send(&mut world, tick);
            let now = world.client_time();
            let input = Input {
                pressed: [tick as u8].into_iter().collect(),
                ..Input::default()
            };
            let client = &mut world.peers[0].client;
            client
                .push_input(InputTick(tick), input, now)
                .expect("in order");
            let queued = world.client_send_on(0, ChannelId::ORDERED, &tick.to_le_bytes());
            queued.expect("there is room");
            world.run_for(Duration::from_millis(33));
        }
        assert_eq!(world.received_from(paused).count(), 0);
        assert_eq!(world.silences(), 0, "it is there");
        world.server.pause(paused, false);
        let now = world.client_time();
        let client = &mut world.peers[0].client;
        client
            .push_input(InputTick(150), Input::default(), now)
            .expect("in order");
        world.run_for(5 * SECOND);
        let expected: Vec<_> = (0..150u64)
            .map(|tick| tick.to_le_bytes().to_vec())
            .collect();
        assert_eq!(world.received_on(paused, ChannelId::ORDERED), expected);
        let mut presses = [0; 256];
        for input in inputs_of(&world, paused) {
            for key in input.pressed.iter() {
                presses[usize::from(key)] += 1;
            }
        }
        assert_eq!(presses[..150], [1; 150]);
        assert_eq!(presses[150..], [0; 106]);
        others_were_heard(&world, &others, 150);
        assert_eq!(world.closed(), []);
    });
}
