//! Case 21 on real sockets: requests from addresses that never prove themselves.

mod common;

use std::net::UdpSocket;

use common::*;
use prescient_net::SystemEntropy;
use prescient_transport::*;

/// Two hundred addresses ask to connect, each with a good token and again and again, and none reads
/// the answer. A spoofed source is to a server what these are.
///
/// Fails if the server remembers an address, a token or a connection before the cookie came back,
/// or if what it answers is not polled.
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
        // By turns, so that no socket is asked to hold more than it can.
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
