//! The relay between real sockets on this machine. Tests wait for the expected datagram; the
//! sockets' time limit only keeps a failure from blocking for ever.

use std::{
    collections::BTreeSet,
    net::{SocketAddr, UdpSocket},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use prescient_sim::link::{Conditions, UdpConditioner};

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let limit = Some(Duration::from_secs(60));
    socket.set_read_timeout(limit).expect("a time limit");
    socket
}

fn start(server: &UdpSocket, conditions: Conditions) -> UdpConditioner {
    let server = server.local_addr().expect("bound");
    UdpConditioner::start(server, 1, conditions.clone(), conditions).expect("a relay")
}

fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut bytes = [0; 2048];
    let (length, from) = socket.recv_from(&mut bytes).expect("a datagram");
    (bytes[..length].to_vec(), from)
}

/// Sends a client's datagram to the server, and returns its source address there.
fn ask(socket: &UdpSocket, to: SocketAddr, server: &UdpSocket) -> SocketAddr {
    socket.send_to(b"who am I?", to).expect("sent");
    let (question, from) = receive(server);
    assert_eq!(question, b"who am I?");
    from
}

#[test]
fn datagrams_pass_both_ways() {
    let (server, client) = (socket(), socket());
    let relay = start(&server, Conditions::default());
    for number in 0..100_u8 {
        client
            .send_to(&[number; 700], relay.address())
            .expect("sent");
        let (bytes, from) = receive(&server);
        assert_eq!(bytes, [number; 700]);
        assert_ne!(from, client.local_addr().expect("bound"));
        server.send_to(&[number, 1], from).expect("sent");
        assert_eq!(receive(&client), (vec![number, 1], relay.address()));
    }
    let [there, back] = relay.statistics();
    assert_eq!((there.delivered, back.delivered), (100, 100));
    relay.shutdown();
}

#[test]
fn every_client_gets_its_own_answers() {
    let server = socket();
    let relay = start(&server, Conditions::default());
    let clients = [socket(), socket(), socket()];
    let seen = [0, 1, 2].map(|index| ask(&clients[index], relay.address(), &server));
    assert_eq!(BTreeSet::from(seen).len(), 3);
    for (number, from) in (0..).zip(seen) {
        server.send_to(&[number], from).expect("sent");
    }
    for (number, client) in (0..).zip(&clients) {
        assert_eq!(receive(client).0, [number]);
    }
}

/// Fails if a relay supports only a few clients (`MAX_CLIENTS` of 64): the others would bypass it,
/// or not connect.
#[test]
fn hundreds_of_clients_are_served() {
    let server = socket();
    let relay = start(&server, Conditions::default());
    let clients: Vec<_> = (0..300).map(|_| socket()).collect();
    let seen = clients.iter();
    let seen: BTreeSet<_> = seen
        .map(|client| ask(client, relay.address(), &server))
        .collect();
    assert_eq!((seen.len(), relay.clients()), (300, 300));
    for from in &seen {
        server.send_to(b"you", *from).expect("sent");
    }
    for client in &clients {
        assert_eq!(receive(client).0, b"you");
    }
}

#[test]
fn what_the_link_duplicates_arrives_twice() {
    let (server, client) = (socket(), socket());
    let twice = Conditions::default()
        .with_duplication(1_000_000, Duration::ZERO)
        .with_latency(Duration::from_millis(5));
    let relay = start(&server, twice);
    client.send_to(b"once", relay.address()).expect("sent");
    assert_eq!(receive(&server).0, b"once");
    assert_eq!(receive(&server).0, b"once");
}

#[test]
fn conditions_and_blackouts_can_change_while_it_runs() {
    let (server, client) = (socket(), socket());
    let relay = start(&server, Conditions::default());
    ask(&client, relay.address(), &server);

    relay.set_blackout(true);
    client
        .send_to(b"into the dark", relay.address())
        .expect("sent");
    while relay.statistics()[0].lost.blackout == 0 {
        thread::yield_now();
    }
    relay.set_blackout(false);
    relay.change(Conditions::default().with_mtu(100), Conditions::default());
    client.send_to(&[0; 101], relay.address()).expect("sent");
    client.send_to(&[1; 100], relay.address()).expect("sent");
    assert_eq!(receive(&server).0, [1; 100]);
    assert_eq!(relay.statistics()[0].lost.mtu, 1);
}

#[test]
fn a_rebound_client_comes_from_another_address_and_is_answered_there() {
    let (server, client) = (socket(), socket());
    let relay = start(&server, Conditions::default());
    let mut before = ask(&client, relay.address(), &server);
    for number in 0..5 {
        relay.rebind();
        let from = ask(&client, relay.address(), &server);
        assert_ne!(from, before);
        before = from;
        server.send_to(&[number], from).expect("sent");
        assert_eq!(receive(&client).0, [number]);
    }
}

#[test]
fn a_relay_that_was_shut_down_has_freed_its_port() {
    let (server, client) = (socket(), socket());
    let relay = start(&server, Conditions::default());
    let address = relay.address();
    ask(&client, address, &server);
    relay.rebind();
    ask(&client, address, &server);
    relay.shutdown();
    UdpSocket::bind(address).expect("the port is free again");
}

#[test]
fn a_relay_shuts_down_while_it_is_flooded_and_nobody_serves() {
    let client = socket();
    let gone = socket().local_addr().expect("bound");
    let slow = Conditions::default().with_bandwidth(8_000);
    let relay = UdpConditioner::start(gone, 1, slow.clone(), slow).expect("a relay");
    let address = relay.address();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let _ = client.send_to(&[0; 100], address);
            }
        });
        while relay.statistics()[0].sent < 5_000 {
            thread::yield_now();
        }
        relay.shutdown();
        done.store(true, Ordering::Relaxed);
    });
}
