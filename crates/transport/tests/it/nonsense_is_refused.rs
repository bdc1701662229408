//! Every call with invalid arguments, and every parser with arbitrary bytes: the result is a typed
//! error or nothing, never a panic, and everything works on.

use std::time::Duration;

use crate::common::{GOOD, PROTOCOL, Random, SECOND, UNIX, World, address, config, grant};
use prescient_channels::*;
use prescient_transport::*;
use proptest::prelude::*;

/// Fails if `Server::send` indexes without a check, or if lengths are not checked.
#[test]
fn sending_to_nobody_too_much_or_too_often() {
    let mut world = World::new(1, GOOD);
    let peer = world.join();
    let nobody = ConnectionId(5);
    assert_eq!(
        world.client_send(peer, b"early"),
        Err(SendError::NotConnected)
    );
    assert_eq!(world.server_send(nobody, b""), Err(SendError::NotConnected));
    world.connect_all();
    let connection = world.connections()[0];
    for channel in (0..4).map(ChannelId) {
        let longest = if channel < ChannelId::UNRELIABLE {
            ExchangeConfig::default().max_message()
        } else {
            32 << 10
        };
        let long = vec![0; longest + 1];
        let too_long = Err(SendError::TooLong {
            length: longest + 1,
            limit: longest,
        });
        assert_eq!(world.client_send_on(peer, channel, &long), too_long);
        assert_eq!(world.server_send_on(connection, channel, &long), too_long);
        for message in [&long[1..], &[]] {
            let up = world.client_send_on(peer, channel, message);
            let down = world.server_send_on(connection, channel, message);
            assert_eq!((up, down), (Ok(()), Ok(())), "just right");
        }
    }
    for channel in (4..=255).map(ChannelId) {
        let unknown = Err(SendError::NoSuchChannel(channel));
        assert_eq!(world.client_send_on(peer, channel, b""), unknown);
        assert_eq!(world.server_send_on(connection, channel, b""), unknown);
    }
    world.run_for(SECOND);
    assert_eq!(world.received().len(), 8);
    assert_eq!(world.peers[peer].messages().len(), 8);
    assert!(
        world
            .sent
            .iter()
            .all(|sent| sent.bytes.len() <= MAX_DATAGRAM)
    );

    let full = (0..20_000).find_map(|_| world.client_send(peer, b"x").err());
    assert_eq!(full, Some(SendError::Backlogged));
    let full = (0..20_000).find_map(|_| world.server_send(connection, b"x").err());
    assert_eq!(full, Some(SendError::Backlogged));
    world.run_for(SECOND);
    assert_eq!(world.closed(), []);
    world.client_send(peer, b"x").expect("there is room again");

    let now = world.server_time();
    world.server.close(nobody, CloseReason::Kicked, now);
    world.server.close(connection, CloseReason::Kicked, now);
    world.server.close(connection, CloseReason::Finished, now);
    assert_eq!(
        world.server_send(connection, b""),
        Err(SendError::NotConnected)
    );
    assert_eq!(world.server.statistics(nobody), None);
    world.run_for(SECOND);
    assert_eq!(world.closed(), [(connection, CloseReason::Kicked)]);
    assert_eq!(world.peers[peer].closed(), Some(CloseReason::Kicked));
    assert_eq!(
        world.client_send(peer, b"late"),
        Err(SendError::NotConnected)
    );
    let now = world.client_time();
    world.peers[peer].client.close(CloseReason::Finished, now);
    world.run_for(SECOND);
    let closed = |event: &&ClientEvent| matches!(event, ClientEvent::Closed(_));
    assert_eq!(world.peers[peer].events.iter().filter(closed).count(), 1);
}

/// Fails if ids are not checked (`Exchange::respond` without its first lines, `Blobs::accept`
/// without `.filter(|_| !blob.ours)`), or if that loses something.
#[test]
fn requests_and_blobs_that_make_no_sense() {
    let mut world = World::new(1, GOOD);
    for _ in 0..3 {
        world.join();
    }
    let now = world.client_time();
    let early = &mut world.peers[0].client;
    let unasked = Err(SendError::NotConnected);
    assert_eq!(early.request(b"", SECOND, now).map(drop), unasked);
    assert_eq!(
        early.offer_blob(b"", vec![], now).map(drop),
        Err(BlobError::NotConnected)
    );
    world.connect_all();
    let now = world.client_time();
    let here = world.connection_of(0).expect("connected");
    let client = &mut world.peers[0].client;
    let asked = client.request(b"", Duration::MAX, now).expect("fits");
    let long = vec![0; ExchangeConfig::default().max_message() + 1];
    let too_long = Err(SendError::TooLong {
        length: long.len(),
        limit: long.len() - 1,
    });
    assert_eq!(client.request(&long, SECOND, now).map(drop), too_long);
    assert_eq!(client.request(&long[1..], SECOND, now).map(drop), Ok(()));
    // An end cannot respond to its own request.
    assert_eq!(client.respond(asked, b"", now), Err(SendError::NotAsked));
    let server = &mut world.server;
    assert_eq!(
        server.respond(here, asked, b"", now),
        Err(SendError::NotAsked)
    );
    assert_eq!(
        server.respond(ConnectionId(3), asked, b"", now),
        Err(SendError::NotConnected)
    );
    let label = client.offer_blob(&[0; 65], vec![], now);
    assert_eq!(label.map(drop), Err(BlobError::Label(65)));
    // The first offers of both ends have the same number.
    let theirs = world.server.offer_blob(here, b"", vec![2; 9], now);
    assert!(theirs.is_ok());
    world.run_for(SECOND);
    let now = world.client_time();
    let client = &mut world.peers[0].client;
    let ours = client.offer_blob(&[0; 64], vec![1; 9], now).expect("fits");
    assert_eq!(client.accept_blob(ours, now), Err(BlobError::NoSuchBlob));
    let server = &mut world.server;
    for connection in [here, ConnectionId(3)] {
        assert!(server.accept_blob(connection, ours, now).is_err());
    }
    let nowhere = server.cancel_blob(ConnectionId(3), ours, now);
    assert_eq!(nowhere, Err(BlobError::NotConnected));
    world.run_for(SECOND);
    let request = world
        .received_from(here)
        .find_map(|received| match received {
            Received::Request { request, .. } => Some(*request),
            _ => None,
        });
    let request = request.expect("it was asked");
    let now = world.server_time();
    // Another client made no such request; it drops the answer.
    let other = world.connection_of(1).expect("connected");
    for _ in 0..3 {
        let server = &mut world.server;
        assert_eq!(server.respond(other, request, b"lost", now), Ok(()));
        assert_eq!(server.respond(here, request, b"found", now), Ok(()));
    }
    world.run_for(SECOND);
    assert_eq!(world.peers[1].received().count(), 0);
    let answer = Received::Answer {
        request: asked,
        answer: Ok(b"found".to_vec()),
    };
    let answers = world.peers[0].received().filter(|one| **one == answer);
    assert_eq!(answers.count(), 1);
    // More requests than allowed.
    let now = world.client_time();
    let client = &mut world.peers[0].client;
    let full = (0..2000).find_map(|_| client.request(b"", Duration::MAX, now).err());
    assert_eq!(full, Some(SendError::Backlogged));
    // Ids that are reserved are not available to the game.
    let channels = (0..=255).fold(Channels::none(), |channels, number| {
        channels.with(ChannelId(number), Delivery::Ordered)
    });
    let taken = (0..=255).filter(|number| channels.delivery(ChannelId(*number)).is_some());
    assert_eq!(taken.count(), 13);
    world.run_for(SECOND);
    assert_eq!(world.closed(), []);
    assert!(world.peers.iter().all(|peer| peer.closed().is_none()));
}

/// Both ends refuse a configuration that cannot work and name the setting; the most extreme
/// configurations that are allowed do work.
///
/// Fails if a rule is missing in a `check`, or if `Server::new` or `Client::connect` does not check:
/// a keep-alive every zero seconds never ends.
#[test]
fn configurations_that_cannot_work() {
    let exchange = ExchangeConfig::default;
    let link = LinkConfig::default;
    let of = |exchange| link().with_exchange(exchange);
    let (zero, none) = (Duration::ZERO, BytesPerSecond(0));
    let bad = [
        ("connect_timeout", link().with_connect_timeout(zero)),
        ("quiet", link().with_quiet(zero)),
        ("quiet", link().with_keep_alive(Duration::from_secs(2))),
        ("timeout", link().with_timeout(zero)),
        ("keep_alive", link().with_keep_alive(zero)),
        ("retry", link().with_retry(zero)),
        ("retry", link().with_retry(Duration::MAX)),
        ("packets_per_key", link().with_packets_per_key(0)),
        ("key_lifetime", link().with_key_lifetime(zero)),
        ("outbox", link().with_outbox(0)),
        ("inbox", link().with_inbox(0)),
        ("inbox_bytes", link().with_inbox_bytes(0)),
        ("max_message", of(exchange().with_max_message(usize::MAX))),
        ("backlog", of(exchange().with_backlog(usize::MAX))),
        ("blob_memory", of(exchange().with_blob_memory(usize::MAX))),
        (
            "messages_per_second",
            of(exchange().with_messages_per_second(0)),
        ),
        (
            "inputs_per_second",
            of(exchange().with_inputs_per_second(0)),
        ),
        ("stalled", of(exchange().with_stalled(zero))),
        ("rate", of(exchange().with_rate(none))),
        ("floor", of(exchange().with_floor(none))),
    ];
    for (setting, link) in bad {
        assert_eq!(refused(config().with_link(link.clone())), Some(setting));
        let now = Time::from_micros(0);
        let mut entropy = |bytes: &mut [u8]| bytes.fill(7);
        let token = World::new(1, GOOD).issue(&grant(1));
        let refused = Client::connect(token, PROTOCOL, link, &mut entropy, now).map(|_| ());
        match refused.expect_err(setting) {
            ConnectError::Config(error) => assert_eq!(error.setting(), setting),
            other => panic!("{setting}: {other}"),
        }
    }
    let limits = Limits::default;
    let of = |limits| config().with_limits(limits);
    let endless = ServerInfo {
        update_period: Duration::MAX,
        ..ServerInfo::default()
    };
    let bad = [
        ("addresses", config().with_addresses(Vec::new())),
        ("update_period", config().with_info(endless)),
        ("connections", of(limits().with_connections(0))),
        (
            "connections_per_address",
            of(limits().with_connections_per_address(0)),
        ),
        (
            "handshakes_per_address",
            of(limits().with_handshakes_per_address(0)),
        ),
        ("memory", of(limits().with_memory(0))),
    ];
    for (setting, config) in bad {
        assert_eq!(refused(config), Some(setting));
    }

    let of = |exchange| link().with_exchange(exchange);
    let (tiny, huge) = (Duration::from_millis(1), Duration::MAX);
    let least = of(exchange()
        .with_channels(Channels::none())
        .with_max_message(0)
        .with_backlog(0)
        .with_blob_memory(0)
        .with_messages_per_second(1)
        .with_inputs_per_second(1)
        .with_stalled(tiny)
        .with_rate(BytesPerSecond(1))
        .with_floor(BytesPerSecond(1)))
    .with_connect_timeout(Duration::from_secs(5))
    .with_timeout(Duration::from_secs(5))
    .with_keep_alive(tiny)
    .with_quiet(3 * tiny)
    .with_retry(tiny)
    .with_packets_per_key(1)
    .with_key_lifetime(tiny)
    .with_outbox(100)
    .with_inbox(100)
    .with_inbox_bytes(1 << 16);
    let most = of(exchange()
        .with_max_message(128 << 10)
        .with_backlog(1 << 30)
        .with_blob_memory(1 << 30)
        .with_messages_per_second(u32::MAX)
        .with_inputs_per_second(u32::MAX)
        .with_stalled(huge)
        .with_rate(BytesPerSecond(u64::MAX))
        .with_floor(BytesPerSecond(u64::MAX)))
    .with_connect_timeout(huge)
    .with_timeout(huge)
    .with_keep_alive(huge)
    .with_quiet(huge)
    .with_retry(huge)
    .with_packets_per_key(u64::MAX)
    .with_key_lifetime(huge)
    .with_outbox(usize::MAX)
    .with_inbox(usize::MAX)
    .with_inbox_bytes(usize::MAX);
    for (link, limit, resets) in [(least, 1, 0), (most, usize::MAX, u32::MAX)] {
        let limits = Limits::default()
            .with_connections(limit)
            .with_connections_per_address(limit)
            .with_handshakes_per_address(limit as u32)
            .with_resets_per_second(resets)
            .with_memory(limit);
        let config = config().with_link(link.clone()).with_limits(limits);
        let mut world = World::with(1, GOOD, config);
        let token = world.issue(&grant(1));
        world.join_with(token, link, "10.0.0.1:1");
        world.run_for(SECOND);
        assert_eq!(world.connections().len(), 1);
    }
}

/// The setting for which a server refuses its configuration.
fn refused(config: ServerConfig) -> Option<&'static str> {
    let mut entropy = |bytes: &mut [u8]| bytes.fill(7);
    let server = Server::new(config, &mut entropy, Time::from_micros(0));
    server.err().map(|error| error.setting())
}

/// Fails if the server tries until it finds an unused id (a loop in `Server::accept`).
#[test]
fn randomness_that_is_none() {
    let mut world = World::new(1, GOOD);
    let mut zeros = |bytes: &mut [u8]| bytes.fill(0);
    let now = world.client_time();
    for host in 0..3u8 {
        let token = world.issue(&grant(1));
        let link = LinkConfig::default();
        let mut client =
            Client::connect(token, PROTOCOL, link, &mut zeros, now).expect("the same protocol");
        let from = address(&format!("10.0.0.{host}:1"));
        let server = address("192.0.2.1:4000");
        for _ in 0..4 {
            client.handle_timeout(now);
            while let Some(sent) = client.poll_transmit(now) {
                let server = &mut world.server;
                server.handle_datagram(from, &sent.bytes, now, UNIX, &mut zeros);
            }
            while let Some(sent) = world.server.poll_transmit(now) {
                client.handle_datagram(server, &sent.bytes, now);
            }
        }
    }
    assert_eq!(world.server.clients().count(), 1);
}

/// Fails if grants are not checked.
#[test]
fn grants_that_fit_no_token() {
    let key = TokenKey::insecure_for_loopback_tests();
    let mut random = Random(1);
    let mut odd = grant(1);
    odd.servers.clear();
    assert_eq!(
        odd.issue(&key, &mut random).err(),
        Some(TokenError::Servers(0))
    );
    odd.servers = vec![address("[::1]:1"); 17];
    assert_eq!(
        odd.issue(&key, &mut random).err(),
        Some(TokenError::Servers(17))
    );
    odd.servers.pop();
    odd.data = vec![1; 257];
    assert_eq!(
        odd.issue(&key, &mut random).err(),
        Some(TokenError::Data(257))
    );
    odd.data.pop();
    let token = odd.issue(&key, &mut random).expect("the most there can be");
    assert_eq!(ConnectToken::from_bytes(&token.to_bytes()), Ok(token));
}

/// Fails if datagrams are handled while events are not polled (`self.events.is_full()` left out).
#[test]
fn who_does_not_poll_does_not_fill_memory() {
    let small = LinkConfig::default().with_inbox(10).with_outbox(10);
    let mut world = World::with(1, GOOD, config().with_link(small));
    let peer = world.join();
    world.connect_all();
    let mut random = Random(2);
    for _ in 0..1000 {
        world.client_send(peer, b"x").expect("connected");
        let now = world.server_time();
        while let Some(sent) = world.peers[peer].client.poll_transmit(now) {
            let from = world.peers[peer].address;
            let server = &mut world.server;
            server.handle_datagram(from, &sent.bytes, now, UNIX, &mut random);
        }
    }
    assert!(world.server.footprint().waiting <= 20);
}

fn machines() -> (World, usize) {
    let mut world = World::new(1, GOOD);
    let asking = world.join();
    let peer = world.join();
    // The first client stays in the handshake: nothing reaches it.
    world.peers[asking].address = address("10.0.0.99:1");
    world.run_for(SECOND);
    (world, peer)
}

fn first_byte() -> impl Strategy<Value = u8> {
    prop_oneof![0u8..=5, 0x80u8..=0xff, any::<u8>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Fails if any reader does not check a length (`bytes[1..9]` in `handle_sealed`).
    #[test]
    fn any_datagrams_in_any_order(
        script in prop::collection::vec(
            (first_byte(), prop::collection::vec(any::<u8>(), 0..80), 0usize..4, any::<u64>()),
            0..40,
        ),
    ) {
        let (mut world, peer) = machines();
        let name = world.connections().first().map_or(0, |connection| connection.0);
        let honest: Vec<_> = world.sent.iter().map(|sent| sent.bytes.clone()).collect();
        let (from, server) = (world.peers[peer].address, world.server_address);
        for (first, tail, shape, time) in script {
            let mut bytes = vec![first];
            match shape {
                0 => bytes.extend_from_slice(&tail),
                1 => {
                    bytes.extend_from_slice(&name.to_le_bytes());
                    bytes.extend_from_slice(&tail);
                }
                2 => {
                    bytes.extend_from_slice(&tail);
                    bytes.resize(BASE_DATAGRAM, 0);
                }
                _ => {
                    bytes = honest[time as usize % honest.len()].clone();
                    for (place, byte) in tail.iter().enumerate() {
                        let place = (place * 7919 + time as usize % 1201) % bytes.len();
                        bytes[place] ^= byte;
                    }
                }
            }
            let now = world.server_time();
            world.server.handle_datagram(from, &bytes, now, UnixTime(time), &mut world.random);
            world.server.handle_timeout(now);
            for peer in &mut world.peers {
                peer.client.handle_datagram(server, &bytes, now);
                peer.client.handle_timeout(now);
            }
            world.run_for(Duration::from_millis(1));
        }
        // All of these were forged, and changed nothing.
        prop_assert_eq!(world.closed(), []);
        let before = world.received().len();
        world.client_send(peer, b"still here").expect("connected");
        world.run_for(SECOND);
        prop_assert_eq!(world.received().len(), before + 1);
    }

    /// Fails if a token may name no server (`count == 0` left out of `read_servers`): a client
    /// would have no address to connect to.
    #[test]
    fn any_token_is_read_back_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..1100),
        place in 0usize..700,
        change in any::<u8>(),
        length in 0usize..800,
    ) {
        prop_assert!(ConnectToken::from_bytes(&bytes).is_err());
        let key = TokenKey::insecure_for_loopback_tests();
        let token = grant(1).issue(&key, &mut Random(1)).expect("sound");
        let mut bytes = token.to_bytes().to_vec();
        bytes[place] ^= change;
        if let Ok(read) = ConnectToken::from_bytes(&bytes) {
            prop_assert_eq!(read.to_bytes().to_vec(), bytes.clone());
        }
        let mut nowhere = token.to_bytes().to_vec();
        nowhere.truncate(nowhere.len() - 19);
        *nowhere.last_mut().expect("not empty") = 0;
        prop_assert_eq!(ConnectToken::from_bytes(&nowhere), Err(TokenError::Malformed));
        bytes.truncate(length);
        if length < token.to_bytes().len() {
            prop_assert!(ConnectToken::from_bytes(&bytes).is_err());
        }
    }
}
