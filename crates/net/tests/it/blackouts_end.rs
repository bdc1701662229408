//! Case 9 on real sockets, with a relay that drops everything until both ends have noticed.

use std::time::Duration;

use crate::common::*;
use prescient_channels::*;
use prescient_net::BlockingClient;
use prescient_sim::link::{Conditions, UdpConditioner};
use prescient_transport::*;

/// Three clients lose their server and resume, three times; messages that are sent meanwhile arrive
/// once. Fails if received packets do not resume a silent connection (`ConnectionState::Silent`
/// left out in `Connection::open`), or if reliable messages are dropped in a blackout.
#[test]
fn connections_outlive_blackouts() {
    let link = LinkConfig::default()
        .with_quiet(Duration::from_millis(300))
        .with_keep_alive(Duration::from_millis(100));
    let mut arena = Arena::with(bind("127.0.0.1:0"), |config| config.with_link(link.clone()));
    let server = arena.server.address();
    let perfect = Conditions::default;
    let relay = UdpConditioner::start(server, 1, perfect(), perfect()).expect("a relay");
    for client in 0..3 {
        let mut grant = grant(client, relay.address());
        grant.servers.push(server);
        let client = BlockingClient::start(issue(&grant), PROTOCOL, link.clone());
        arena.clients.push(client.expect("a client"));
        arena.client_events.push(Vec::new());
    }
    arena.connect_all();
    for client in 0..3 {
        arena.server_send(client, b"here");
    }
    // Until its first packet from the server, a client has a shorter timeout.
    arena.run_until("all have received the message", |arena| {
        (0..3).all(|client| arena.received_by_client(client) == [b"here"])
    });
    for round in 0..3u8 {
        relay.set_blackout(true);
        arena.run_until("all are silent", |arena| {
            (0..3).all(|client| silences(arena, client) == [Some(true); 2])
        });
        for client in 0..3 {
            let to = arena.connection(client);
            let sent = arena.clients[client]
                .with(|client, now| client.send(ChannelId::ORDERED, &[round], now));
            sent.expect("it may come back");
            let sent = (arena.server)
                .with(|server, now| server.send(to, ChannelId::ORDERED, &[round], now));
            sent.expect("it may come back");
        }
        relay.set_blackout(false);
        arena.run_until("all are back", |arena| {
            let told: Vec<_> = (0..=round).map(|round| vec![round]).collect();
            (0..3).all(|client| {
                silences(arena, client) == [Some(false); 2]
                    && arena.received_by_client(client)[1..] == told
                    && arena.received_by_server(client) == told
            })
        });
    }
    let closed = |event: &ServerEvent| matches!(event, ServerEvent::Closed { .. });
    assert!(!arena.server_events.iter().any(closed));
}

/// Whether the client, and the server about the client, last reported the other as silent or as
/// resumed. On a busy host there may be additional silences.
fn silences(arena: &Arena, client: usize) -> [Option<bool>; 2] {
    let own = arena.connection(client);
    let mut here = arena.client_events[client]
        .iter()
        .filter_map(|event| match event {
            ClientEvent::Silent => Some(true),
            ClientEvent::Resumed => Some(false),
            _ => None,
        });
    let mut there = arena.server_events.iter().filter_map(|event| match event {
        ServerEvent::Silent { connection } if *connection == own => Some(true),
        ServerEvent::Resumed { connection } if *connection == own => Some(false),
        _ => None,
    });
    [here.next_back(), there.next_back()]
}
