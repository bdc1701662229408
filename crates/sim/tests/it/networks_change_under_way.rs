//! Endpoints that change their address, spoof addresses, and have wrong clocks.

use std::{net::SocketAddr, time::Duration};

use prescient_sim::link::{Conditions, EndpointId, Network, NetworkError, Path, Time};

const SERVER: &str = "10.0.0.1:7000";
const CLIENT: &str = "10.0.0.2:5000";
const ELSEWHERE: &str = "192.168.1.9:6000";

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// A server and a client, 30 ms apart.
fn pair(seed: u64) -> (Network, EndpointId, EndpointId) {
    let mut network = Network::new(seed);
    let server = network.add(address(SERVER)).expect("free");
    let client = network.add(address(CLIENT)).expect("free");
    let link = Conditions::default().with_latency(Duration::from_millis(30));
    network
        .join(client, server, link.clone(), link)
        .expect("both exist");
    (network, server, client)
}

#[test]
fn a_changed_address_shows_and_what_went_to_the_old_one_is_lost() {
    let (mut network, server, client) = pair(1);
    let at = Time::from_millis;
    network
        .send(at(0), client, address(SERVER), b"old")
        .expect("sent");
    network
        .send(at(0), server, address(CLIENT), b"lost")
        .expect("sent");
    network.rebind(client, address(ELSEWHERE)).expect("free");
    network
        .send(at(10), client, address(SERVER), b"new")
        .expect("sent");
    network
        .send(at(10), server, address(CLIENT), b"nobody")
        .expect("sent");
    network
        .send(at(10), server, address(ELSEWHERE), b"found")
        .expect("sent");

    let mut received = Vec::new();
    while let Some(now) = network.next_delivery() {
        for endpoint in [server, client] {
            while let Some(datagram) = network.poll(now, endpoint).expect("it exists") {
                received.push((now, datagram.path.from.to_string(), datagram.bytes));
            }
        }
    }
    let expected = [
        (at(30), CLIENT.to_owned(), b"old".to_vec()),
        (at(40), ELSEWHERE.to_owned(), b"new".to_vec()),
        (at(40), SERVER.to_owned(), b"found".to_vec()),
    ];
    assert_eq!(received, expected);
    assert_eq!(network.unreachable(), 2);
    assert_eq!(network.address(client), Ok(address(ELSEWHERE)));
}

#[test]
fn a_given_up_address_can_be_taken_by_another() {
    let (mut network, _, client) = pair(1);
    network.rebind(client, address(ELSEWHERE)).expect("free");
    let other = network.add(address(CLIENT)).expect("free again");
    let taken = NetworkError::AddressTaken(address(CLIENT));
    assert_eq!(network.rebind(client, address(CLIENT)), Err(taken));
    assert_eq!(network.add(address(CLIENT)), Err(taken));
    assert_eq!(network.rebind(other, address(CLIENT)), Ok(()));
}

#[test]
fn anybody_can_claim_to_be_somebody_else() {
    let (mut network, server, client) = pair(1);
    let path = Path {
        from: address(ELSEWHERE),
        to: address(SERVER),
    };
    network
        .send_as(Time::ZERO, client, path, b"not me")
        .expect("sent");
    let datagram = network.poll(Time::from_millis(30), server).expect("exists");
    assert_eq!(datagram.map(|datagram| datagram.path), Some(path));
}

#[test]
fn what_arrives_first_is_polled_first_whoever_sent_it() {
    let (mut network, server, near) = pair(1);
    let far = network.add(address(ELSEWHERE)).expect("free");
    let slow = Conditions::default().with_latency(Duration::from_millis(100));
    network
        .join(server, far, slow.clone(), slow)
        .expect("both exist");
    for (millisecond, sender) in [(0, far), (60, near), (75, near)] {
        let now = Time::from_millis(millisecond);
        network
            .send(now, sender, address(SERVER), &[])
            .expect("sent");
    }
    let mut senders = Vec::new();
    while let Ok(Some(datagram)) = network.poll(Time::from_secs(1), server) {
        senders.push(datagram.path.from);
    }
    assert_eq!(senders, [CLIENT, ELSEWHERE, CLIENT].map(address));
}

#[test]
fn links_do_not_depend_on_who_else_is_there() {
    let arrived = |others: u8| {
        let mut network = Network::new(5);
        let server = network.add(address(SERVER)).expect("free");
        let client = network.add(address(CLIENT)).expect("free");
        let lossy = Conditions::default().with_loss(500_000);
        for other in 0..others {
            let other = network.add(SocketAddr::from(([10, 1, 1, other], 1)));
            let other = other.expect("free");
            network
                .join(other, server, lossy.clone(), lossy.clone())
                .expect("both exist");
        }
        network
            .join(client, server, lossy.clone(), lossy)
            .expect("both exist");
        let mut received = Vec::new();
        for number in 0..200 {
            network
                .send(Time::ZERO, client, address(SERVER), &[number])
                .expect("sent");
        }
        while let Ok(Some(datagram)) = network.poll(Time::ZERO, server) {
            received.push(datagram.bytes[0]);
        }
        received
    };
    assert_eq!(arrived(0), arrived(9));
    assert!((60..140).contains(&arrived(0).len()));
}

#[test]
fn the_two_directions_of_a_link_have_chances_of_their_own() {
    let mut network = Network::new(5);
    let server = network.add(address(SERVER)).expect("free");
    let client = network.add(address(CLIENT)).expect("free");
    let lossy = Conditions::default().with_loss(500_000);
    network
        .join(client, server, lossy.clone(), lossy)
        .expect("both exist");
    let mut arrived = [Vec::new(), Vec::new()];
    for number in 0..200 {
        let directions = [(client, server, SERVER), (server, client, CLIENT)];
        for ((from, to, at), arrived) in directions.into_iter().zip(&mut arrived) {
            network
                .send(Time::ZERO, from, address(at), &[number])
                .expect("sent");
            arrived.extend(network.poll(Time::ZERO, to).expect("exists"));
        }
    }
    let [there, back] = arrived.map(|all| all.into_iter().map(|one| one.bytes).collect::<Vec<_>>());
    assert_ne!(there, back);
}

#[test]
fn every_endpoint_has_a_clock_that_can_be_wrong() {
    let (mut network, server, client) = pair(1);
    let clock = network.clock_mut(client).expect("exists");
    clock.jump(Time::ZERO, 3_600_000_000);
    clock.set_skew(Time::ZERO, -1000);
    let now = Time::from_secs(1000);
    let read = |id| network.clock(id).expect("exists").read(now);
    assert_eq!(read(server), now);
    assert_eq!(read(client), Time::from_secs(3600 + 999));
}

#[test]
fn a_network_refuses_what_makes_no_sense() {
    let (mut network, _, client) = pair(1);
    let perfect = Conditions::default;
    let itself = network.join(client, client, perfect(), perfect());
    assert_eq!(itself, Err(NetworkError::SameEndpoint(client)));

    let mut larger = network.clone();
    let stranger = larger.add(address(ELSEWHERE)).expect("free");
    let refused = NetworkError::NoSuchEndpoint(stranger);
    let to = address(SERVER);
    assert_eq!(network.send(Time::ZERO, stranger, to, &[]), Err(refused));
    assert_eq!(network.poll(Time::ZERO, stranger), Err(refused));
    assert_eq!(network.rebind(stranger, to), Err(refused));
    assert_eq!(network.address(stranger), Err(refused));
    let strange = network.join(stranger, client, perfect(), perfect());
    assert_eq!(strange, Err(refused));
    assert!(network.link(stranger, client).is_none());
}
