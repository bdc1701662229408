//! No nonce is used twice with the same key.
//!
//! All bodies of one length are equal, so two packets with the same key and nonce would have equal
//! ciphertexts.

use crate::common;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::{GOOD, Link, Random, SECOND, World, address, config, grant, over_seeds};
use prescient_channels::ChannelId;
use prescient_transport::{ConnectToken, LinkConfig, Server};

/// An unreliable message of zeros on channel 2, as a frame; longer than any acknowledgement.
const BODY: [u8; 400] = {
    let mut body = [0; 400];
    body[0] = 0x92;
    body
};

fn often() -> LinkConfig {
    LinkConfig::default().with_packets_per_key(7)
}

/// Connects with the same token and exchanges data for a while, by raw bodies or by messages.
fn session(seed: u64, token: &ConnectToken, restarted: bool, raw: bool) -> World {
    let config = config().with_link(often());
    let link = Link {
        loss: 5,
        delayed: 20,
        delay: 30_000,
        ..GOOD
    };
    let mut world = World::with(seed, link, config);
    if restarted {
        // The restarted server has lost all state, including the used tokens.
        let config = common::config().with_link(often());
        let now = world.server_time();
        world.server = Server::new(config, &mut Random(seed), now).expect("it can work");
    }
    let peer = world.join_with(token.clone(), often(), "10.0.0.1:1");
    world.connect_all();
    for number in 0..400u16 {
        if number % 50 == 49 {
            world.peers[peer].address = address(&format!("10.1.0.1:{}", 1 + number));
        }
        let connection = world.connections()[0];
        if raw {
            let now = world.server_time();
            world.peers[peer].client.send_raw(&BODY, now);
            world.server.send_raw(connection, &BODY, now);
        } else {
            let (channel, message) = (ChannelId::ORDERED, number.to_le_bytes());
            let up = world.client_send_on(peer, channel, &message);
            let down = world.server_send_on(connection, channel, &message);
            assert_eq!((up, down), (Ok(()), Ok(())));
        }
        world.run_for(Duration::from_millis(10));
    }
    world.run_for(SECOND);
    world
}

/// Fails if a key update resets the packet number without a new key (`self.seal = self.seal.next()`
/// left out and `self.next_sequence = 0` put in), if both directions share a key (`expand` of `up`
/// for `down`), or if the keys depend on the token alone (`own.exchange(other)` left out of
/// `ConnectionKeys::derive` and the transcript, too).
#[test]
fn not_across_restarts_changes_of_keys_and_of_addresses() {
    over_seeds(20, |seed| {
        let mut issuer = World::new(seed, GOOD);
        let token = issuer.issue(&grant(1));
        let mut seen = BTreeSet::new();
        let mut packets = 0;
        for restart in 0..3 {
            let world = session(1000 * restart + seed, &token, restart > 0, true);
            for datagram in &world.sent {
                let up = datagram.to == world.server_address;
                let first = datagram.bytes[0];
                let number = match first & 0x40 {
                    0 => 1 + usize::from(first >> 2 & 3),
                    _ => 0,
                };
                let start = if up { 9 + number } else { 1 + number };
                let frames = first & 0xc0 == 0xc0 || first & 0xf0 == 0x80;
                if frames && datagram.bytes.len() == start + BODY.len() + 16 {
                    let sealed = &datagram.bytes[start..];
                    packets += 1;
                    assert!(seen.insert(sealed[..BODY.len()].to_vec()), "a repeat");
                }
            }
        }
        assert_eq!(packets, 3 * 2 * 400);
    });
}

/// Every seventh packet has a new key, through loss, reordering and moves, and every message
/// arrives. Fails if the sender does not wait until the other end has the present key (`if due`
/// instead of `if due && self.seal_settled`).
#[test]
fn keys_change_all_the_time_and_nobody_notices() {
    over_seeds(20, |seed| {
        let mut issuer = World::new(seed, GOOD);
        let token = issuer.issue(&grant(1));
        let world = session(seed, &token, false, false);
        let all: Vec<_> = (0..400u16).map(|n| n.to_le_bytes().to_vec()).collect();
        assert_eq!(world.peers[0].messages(), all);
        let up: Vec<_> = world.received().into_iter().map(|(_, up)| up).collect();
        assert_eq!(up, all);
        // Late packets that were sealed two keys ago cannot be opened; there are few.
        let forged = world.statistics(0).forged;
        assert!(forged <= 4, "{forged}");
        let phases: Vec<_> = world.sent.iter().map(|d| d.bytes[0] & 0x81).collect();
        let changes = phases.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(changes > 60, "{changes}");
    });
}
