//! Connections over real sockets, with the blocking driver.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use crate::common::*;
use prescient_channels::*;
use prescient_net::{BlockingClient, BlockingServer, Socket};
use prescient_transport::*;

/// Fails if `Driver::flush` does not poll the machine.
#[test]
fn three_clients_send_and_leave_over_ipv4() {
    send_and_leave("127.0.0.1:0");
}

/// Fails if `Socket::towards` opens sockets for IPv4 only.
#[test]
fn three_clients_send_and_leave_over_ipv6() {
    if has_ipv6() {
        send_and_leave("[::1]:0");
    }
}

fn send_and_leave(address: &str) {
    let mut arena = Arena::new(address);
    arena.join_three();
    for client in 0..3 {
        arena.client_send(client, &[client as u8; 1000]);
        arena.server_send(client, &[client as u8; 1171]);
    }
    arena.run_until("all is received", |arena| {
        (0..3).all(|client| {
            arena.received_by_server(client) == [[client as u8; 1000]]
                && arena.received_by_client(client) == [[client as u8; 1171]]
        })
    });

    let leaver = arena.connection(0);
    let leaves = CloseReason::Other(7);
    arena.clients[0].with(|client, now| client.close(leaves, now));
    arena.run_until("the server knows", |arena| {
        arena.server_events.contains(&ServerEvent::Closed {
            connection: leaver,
            reason: leaves,
        })
    });
    let shuts = CloseReason::ShuttingDown;
    arena
        .server
        .with(|server, now| server.close_all(shuts, now));
    arena.run_until("the others know", |arena| {
        let mut others = arena.client_events[1..].iter();
        others.all(|events| events.last() == Some(&ClientEvent::Closed(shuts)))
    });
}

/// Programs that wait for many clients wait for their sockets.
///
/// Fails if `as_fd` returns another descriptor, that of its `Poll` for example.
#[cfg(unix)]
#[test]
fn a_driver_hands_out_its_socket() {
    let mut arena = Arena::new("127.0.0.1:0");
    arena.join_three();
    for client in &arena.clients {
        let socket = socket2::SockRef::from(client);
        let address = socket.local_addr().expect("it is a socket");
        assert_eq!(address.as_socket(), Some(client.address()));
    }
}

/// A dual-stack server reports clients of both families by their own addresses.
///
/// Fails if addresses are not unmapped when receiving.
#[test]
fn one_socket_serves_both_kinds() {
    if !has_ipv6() {
        return;
    }
    let socket = Socket::bind_dual_stack(0).expect("a free port");
    let port = socket.address().port();
    let four = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let six = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
    let mut arena = Arena::with(socket, |config| config.with_addresses(vec![four, six]));
    for server in [four, six, four] {
        arena.join(server);
    }
    arena.connect_all();
    let mut kinds: Vec<_> = arena
        .server_events
        .iter()
        .filter_map(|event| match event {
            ServerEvent::Connected {
                client, address, ..
            } => Some((client.0, address.is_ipv4())),
            _ => None,
        })
        .collect();
    kinds.sort();
    assert_eq!(kinds, [(0, true), (1, false), (2, true)]);
    for client in 0..3 {
        arena.server_send(client, b"hello");
        arena.client_send(client, b"hello");
    }
    arena.run_until("all is received", |arena| {
        (0..3).all(|client| {
            arena.received_by_client(client).len() + arena.received_by_server(client).len() == 2
        })
    });
}

/// A client with a token for servers of both families reaches the second by the same socket.
///
/// Fails if `Socket::towards` considers only the first server.
#[test]
fn a_token_may_name_servers_of_both_kinds() {
    if !has_ipv6() {
        return;
    }
    let mut arena = Arena::new("127.0.0.1:0");
    let nobody = bind("[::1]:0");
    let mut grant = grant(0, nobody.address());
    grant.servers.push(arena.server.address());
    let config = LinkConfig::default().with_connect_timeout(Duration::from_millis(150));
    let client = BlockingClient::start(issue(&grant), PROTOCOL, config).expect("a client");
    arena.clients.push(client);
    arena.client_events.push(Vec::new());
    arena.connect_all();
    let server = arena.server.address();
    assert_eq!(arena.client_events[0], [ClientEvent::Connected { server }]);
}

/// The server learns of a client that connected and is not polled after that.
///
/// Fails if `connect` returns before it has sent what was queued.
#[test]
fn a_client_that_connected_and_fell_idle_is_known() {
    let mut arena = Arena::new("127.0.0.1:0");
    let token = token(0, arena.server.address());
    let idle = thread::spawn(move || {
        BlockingClient::connect(token, PROTOCOL, LinkConfig::default()).expect("it is there")
    });
    arena.run_until("the server knows", |arena| {
        arena.server.machine().clients().count() == 1
    });
    drop(idle.join().expect("no panic"));
}

/// Fails if `Blocking::sleep` returns at once.
#[test]
fn who_waits_does_not_look_all_the_time() {
    let mut arena = Arena::new("127.0.0.1:0");
    arena.join_three();
    let before = arena.server.statistics().receive_calls;
    // Timers of three connections, and packets that are still in flight.
    let wait = Duration::from_millis(300);
    let deadline = arena.server.now().after(wait);
    while arena.server.wait_until(deadline).is_some() {}
    let calls = arena.server.statistics().receive_calls - before;
    assert!(calls < 30, "{calls}");
}

/// Each end on its own thread, blocked except when something happens.
///
/// Fails if `Blocking` is not woken by received datagrams: then the echo is late by a whole
/// deadline.
#[test]
fn ends_that_sleep_wake_for_each_other() {
    let socket = bind("127.0.0.1:0");
    let address = socket.address();
    let mut server = BlockingServer::new(socket, config(vec![address])).expect("a server");
    let serving = thread::spawn(move || {
        let mut left = 0;
        let end = server.now().after(PATIENCE);
        while left < 3 {
            match server.wait_until(end).expect("three clients, in time") {
                ServerEvent::Received {
                    connection,
                    received: Received::Message { message, .. },
                } => {
                    let sent = server.with(|server, now| {
                        server.send(connection, ChannelId::UNRELIABLE, &message, now)
                    });
                    sent.expect("it is connected");
                }
                ServerEvent::Closed { .. } => left += 1,
                _ => {}
            }
        }
        server.statistics()
    });
    let clients: Vec<_> = (0..3)
        .map(|number| {
            let token = token(number, address);
            thread::spawn(move || {
                let mut client = BlockingClient::connect(token, PROTOCOL, LinkConfig::default())
                    .expect("a server is there");
                for round in 0..20u8 {
                    let sent = client
                        .with(|client, now| client.send(ChannelId::UNRELIABLE, &[round; 100], now));
                    sent.expect("connected");
                    let payload = loop {
                        let event = client.wait(PATIENCE).expect("an echo, in time");
                        if let ClientEvent::Received(Received::Message { message, .. }) = event {
                            break message;
                        }
                    };
                    assert_eq!(payload, [round; 100]);
                }
                client.with(|client, now| client.close(CloseReason::Finished, now));
                client.finish();
                client.statistics()
            })
        })
        .collect();
    for client in clients {
        let statistics = client.join().expect("no panic");
        assert!(statistics.datagrams_received >= 20);
        assert_eq!(statistics.not_sent.total(), 0);
    }
    let statistics = serving.join().expect("no panic");
    assert!(statistics.datagrams_received >= 60);
}
