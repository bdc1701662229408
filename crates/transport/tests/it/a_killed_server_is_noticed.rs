//! A server that is killed sends no close packets. Once it is restarted, its clients notice at
//! once.

use crate::common;

use std::time::Duration;

use crate::common::{
    GOOD, Link, PROTOCOL, Random, SECOND, World, address, config, grant, over_seeds,
};
use prescient_channels::*;
use prescient_transport::*;

const RESET_LEN: usize = 17;

/// How long it took until three clients noticed, and until all were connected again with their old
/// tokens.
fn restart(seed: u64, link: Link, idle: Duration) -> (Duration, Duration) {
    let mut world = World::new(seed, link);
    let tokens: Vec<_> = (0..3).map(|number| world.issue(&grant(number))).collect();
    for (number, token) in tokens.iter().enumerate() {
        let home = format!("10.0.{number}.1:5000");
        world.join_with(token.clone(), LinkConfig::default(), &home);
    }
    world.connect_all();
    world.run_for(idle);
    world.restart_server();
    let began = world.now;
    let passed = |world: &World| Duration::from_micros(world.now - began);
    let know = |world: &World| world.peers.iter().all(|peer| peer.closed().is_some());
    assert!(world.run_until(60 * SECOND, know));
    let knew = passed(&world);
    for (peer, token) in tokens.into_iter().enumerate() {
        assert_eq!(
            world.peers[peer].closed(),
            Some(CloseReason::StatelessReset)
        );
        let now = world.client_time();
        let link = LinkConfig::default();
        let again = Client::connect(token, PROTOCOL, link, &mut world.random, now);
        world.peers[peer].client = again.expect("the same protocol");
        world.peers[peer].events.clear();
    }
    world.connect_all();
    (knew, passed(&world))
}

/// Within a round trip and the second after which a client sends a keep-alive; then they are
/// connected again, because the server does not remember their tokens.
///
/// Fails without `answer_unknown` in `Server::handle_sealed`: they notice after a minute.
#[test]
fn clients_know_within_a_round_trip_and_are_back() {
    let round_trip = Duration::from_micros(2 * GOOD.latency);
    over_seeds(20, |seed| {
        let idle = Duration::from_millis(seed % 20 * 150);
        let (knew, back) = restart(seed, GOOD, idle);
        assert!(knew <= round_trip + SECOND, "{knew:?}");
        assert!(back <= 3 * SECOND, "{back:?}");
    });
}

/// Resets may be lost, too. Fails if a server sends only one.
#[test]
fn a_bad_link_delays_it_and_does_not_prevent_it() {
    let bad = Link {
        loss: 20,
        corruption: 5,
        ..GOOD
    };
    over_seeds(20, |seed| {
        let (knew, _) = restart(seed, bad, SECOND);
        assert!(knew <= 10 * SECOND, "{knew:?}");
    });
}

/// A stateless reset is accepted only with the right token: not with any other, not with that of
/// another connection, and not from another server of the same backend.
///
/// Fails if `handle_reset` does not compare, if all connections have the same token (`token`
/// without the connection), or if the addresses are left out of the key (`key.follow(b"reset")`).
#[test]
fn a_forger_resets_nobody() {
    over_seeds(20, |seed| {
        let mut world = World::new(seed, GOOD);
        world.join();
        world.join();
        world.connect_all();
        world.client_send(0, b"here").expect("connected");
        world.client_send(1, b"here").expect("connected");
        world.run_for(SECOND);
        let received = |peer: usize| {
            let mine = world.sent.iter().rev();
            let mut mine = mine.filter(|sent| sent.from == world.peers[peer].address);
            mine.next().expect("it sent something").bytes.clone()
        };
        let (ours, theirs) = (received(0), received(1));
        let mut forged: Vec<Vec<u8>> = Vec::new();
        // Another server of the same backend.
        let other = config().with_addresses(vec![address("192.0.2.2:4000")]);
        forged.push(reset_of(other, &ours, seed));
        // This server after a restart, about another connection.
        forged.push(reset_of(config(), &theirs, seed));
        // This server with another key.
        forged.push(reset_of(with_another_key(), &ours, seed));
        let real = reset_of(config(), &ours, seed);
        let mut random = Random(seed);
        for _ in 0..200 {
            let mut damaged = real.clone();
            common::damage(&mut damaged, &mut random);
            forged.push(damaged);
            let mut made_up = vec![5; RESET_LEN];
            random.fill(&mut made_up[1..]);
            forged.push(made_up);
        }
        let (server, home) = (world.server_address, world.peers[0].address);
        for bytes in forged {
            world.inject(server, home, bytes, 0);
        }
        world.inject(address("192.0.2.9:4000"), home, real.clone(), 0);
        world.run_for(SECOND);
        assert_eq!(world.peers[0].closed(), None);
        // The genuine reset.
        world.inject(server, home, real, 0);
        world.run_for(SECOND);
        assert_eq!(world.peers[0].closed(), Some(CloseReason::StatelessReset));
        assert_eq!(world.peers[1].closed(), None);
    });
}

/// The usual configuration with another key than [`common::KEY`].
fn with_another_key() -> ServerConfig {
    let key = TokenKey::new([43; 32]).expect("not the public one");
    ServerConfig::new(key, PROTOCOL, config().addresses().to_vec())
}

/// The reset by which a server without connections answers a packet.
fn reset_of(config: ServerConfig, packet: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Random(seed ^ 99);
    let now = Time::from_micros(0);
    let mut server = Server::new(config, &mut random, now).expect("it can work");
    let anywhere = address("198.51.100.1:9");
    server.handle_datagram(anywhere, packet, now, common::UNIX, &mut random);
    let answer = server.poll_transmit(now).expect("a reset");
    assert_eq!((answer.to, answer.bytes.len()), (anywhere, RESET_LEN));
    assert!(answer.bytes.len() <= packet.len());
    answer.bytes.into_vec()
}

/// Resets, close packets and malformed packets are not answered; the number of resets per second is
/// limited.
///
/// Fails if `answer_unknown` answers close packets or everything with a connection id in it, or if
/// `give_away` does not count.
#[test]
fn resets_are_few_and_never_answered() {
    over_seeds(20, |seed| {
        let mut random = Random(seed);
        let mut now = Time::from_micros(0);
        let limited = config().with_limits(Limits::default().with_resets_per_second(100));
        let mut server = Server::new(limited, &mut random, now).expect("it can work");
        let from = address("198.51.100.1:9");
        let mut answers = |bytes: &[u8], now: Time, random: &mut Random| {
            server.handle_datagram(from, bytes, now, common::UNIX, random);
            std::iter::from_fn(|| server.poll_transmit(now)).count()
        };
        let mut packet = vec![0x90; 26];
        random.fill(&mut packet[1..]);
        assert_eq!(answers(&packet, now, &mut random), 1);
        assert_eq!(answers(&packet[..25], now, &mut random), 0, "too short");
        let mut longer_number = packet.clone();
        longer_number[0] |= 1 << 2;
        assert_eq!(answers(&longer_number, now, &mut random), 0, "too short");
        let first = |first: u8| [&[first], &packet[1..]].concat();
        assert_eq!(answers(&first(0xb0), now, &mut random), 0, "a goodbye");
        let short = first(0xc0);
        assert_eq!(answers(&short[..25], now, &mut random), 1);
        assert_eq!(answers(&short[..24], now, &mut random), 0, "too short");
        let mut reset = packet.clone();
        reset[0] = 5;
        assert_eq!(answers(&reset[..RESET_LEN], now, &mut random), 0);
        assert_eq!(answers(&reset, now, &mut random), 0);
        for second in 1..4u64 {
            now = now.after(SECOND);
            let mut count = 0;
            for _ in 0..1000 {
                random.fill(&mut packet[1..]);
                count += answers(&packet, now, &mut random);
            }
            assert_eq!(count, 100, "in second {second}");
        }
        assert_eq!(server.footprint(), Footprint::default());
    });
}

/// With another key, a server cannot reset its former clients; they time out. Fails if the token
/// does not depend on the key.
#[test]
fn a_server_with_another_key_resets_nobody() {
    let mut world = World::new(1, GOOD);
    world.join();
    world.connect_all();
    world.restart_server_with(with_another_key());
    let over = |world: &World| world.peers[0].closed().is_some();
    assert!(world.run_until(120 * SECOND, over));
    assert_eq!(world.peers[0].closed(), Some(CloseReason::TimedOut));
    assert!(world.sent.iter().any(|sent| sent.bytes.len() == RESET_LEN));
}
