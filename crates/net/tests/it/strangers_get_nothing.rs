//! Case 21 on real sockets: requests from addresses that are never validated.

use std::net::UdpSocket;

use crate::common::*;
use prescient_channels::*;
use prescient_net::SystemEntropy;
use prescient_transport::*;

/// Two hundred addresses request to connect, each repeatedly and with a valid token, and none reads
/// the answer. To a server that is the same as spoofed source addresses.
///
/// Fails if the server stores an address, a token or a connection before the cookie is returned, or
/// if its answers are not polled.
#[test]
fn requests_from_many_sources_leave_no_state() {
    let mut arena = Arena::new("127.0.0.1:0");
    let server = arena.server.address();
    let mut entropy = SystemEntropy::new().expect("randomness");
    let mut asked = 0;
    let mut sources = Vec::new();
    for number in 1..=200u8 {
        let host = if cfg!(target_os = "linux") { number } else { 1 };
        let socket = UdpSocket::bind((format!("127.0.0.{host}"), 0)).expect("a free port");
        let config = LinkConfig::default();
        let now = Time::from_micros(0);
        let token = token(number.into(), server);
        let client = Client::connect(token, PROTOCOL, config, &mut entropy, now);
        let mut client = client.expect("the same protocol");
        client.handle_timeout(now);
        let request = client.poll_transmit(now).expect("it asks").bytes;
        assert_eq!(request.len(), BASE_DATAGRAM);
        for _ in 0..3 {
            socket.send_to(&request, server).expect("loopback");
            asked += 1;
        }
        // In turns, so that no socket buffer overflows.
        arena.run_until("the server has seen it", |arena| {
            arena.server.statistics().datagrams_received == asked
        });
        assert_eq!(arena.server.machine().footprint(), Footprint::default());
        sources.push(socket);
    }
    let statistics = arena.server.statistics();
    assert_eq!(statistics.datagrams_sent, asked);
    assert!(statistics.bytes_sent * 30 < statistics.bytes_received);
    assert!(arena.server_events.is_empty());

    arena.join_three();
}
