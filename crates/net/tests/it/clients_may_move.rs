//! Case 10 on real sockets: clients that change their address all the time.

use crate::common::*;
use prescient_net::Socket;
use prescient_transport::*;

/// Three clients change their sockets in turn, twenty times each, and go on exchanging messages.
///
/// Fails if `Driver::replace` keeps the old socket, or if the server sends no path challenges
/// (`challenge_path` in transport).
#[test]
fn clients_that_move_all_the_time_stay_connected() {
    let mut arena = Arena::new("127.0.0.1:0");
    arena.join_three();
    for round in 0..20u8 {
        for client in 0..3 {
            let socket = elsewhere(round, client);
            let address = socket.address();
            let moved = arena.clients[client].rebind(socket);
            moved.expect("a socket that can be used");
            // The first packet from the new address makes the server notice; its message must
            // arrive.
            arena.client_send(client, &[round]);
            let moved = ServerEvent::Moved {
                connection: arena.connection(client),
                address,
            };
            arena.run_until("the server follows", |arena| {
                arena.server_events.contains(&moved)
            });
            arena.server_send(client, &[round]);
            arena.run_until("the client hears of it", |arena| {
                arena.received_by_client(client).len() == usize::from(round) + 1
            });
        }
    }
    for client in 0..3 {
        let everything: Vec<_> = (0..20).map(|round| vec![round]).collect();
        assert_eq!(arena.received_by_server(client), everything);
        assert_eq!(arena.received_by_client(client), everything);
        let closed = |event: &ClientEvent| matches!(event, ClientEvent::Closed(_));
        assert!(!arena.client_events[client].iter().any(closed));
    }
    let closed = |event: &ServerEvent| matches!(event, ServerEvent::Closed { .. });
    assert!(!arena.server_events.iter().any(closed));
}

/// Another port, and where loopback has many addresses another address, too.
fn elsewhere(round: u8, client: usize) -> Socket {
    let host = if cfg!(target_os = "linux") {
        2 + round * 3 + client as u8
    } else {
        1
    };
    bind(&format!("127.0.0.{host}:0"))
}

/// A client on a socket without a route is silent for a while, and nothing else happens.
///
/// Fails if `Outgoing` gives up on an error, or does not count it.
#[test]
fn a_socket_that_cannot_send_ends_nothing() {
    if !has_ipv6() {
        return;
    }
    let mut arena = Arena::new("127.0.0.1:0");
    arena.join_three();
    arena.clients[0]
        .rebind(bind("[::1]:0"))
        .expect("a socket that can be used");
    for _ in 0..5 {
        arena.client_send(0, b"lost");
        arena.clients[0].flush();
    }
    let statistics = arena.clients[0].statistics();
    assert_eq!(statistics.not_sent.no_route, 5, "{statistics:?}");
    assert!(arena.clients[0].machine().is_connected());

    let home = bind("127.0.0.1:0");
    arena.clients[0]
        .rebind(home)
        .expect("a socket that can be used");
    arena.client_send(0, b"received");
    arena.run_until("it is received again", |arena| {
        arena.received_by_server(0) == [b"received"]
    });
}
