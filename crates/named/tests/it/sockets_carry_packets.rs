//! The forwarder on sockets of this machine.

use crate::common;

use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::common::name;
use crate::common::station::*;
use prescient_named::*;
use prescient_tests::skip::skip;

const LOOPBACK: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

struct Addresses {
    udp: SocketAddr,
    tcp: SocketAddr,
    unix: PathBuf,
}

fn start(test: &str) -> (Station, Addresses) {
    let mut daemon = Daemon::new(ForwarderConfig::default()).expect("a daemon");
    let unix = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.sock"));
    let _ = std::fs::remove_file(&unix);
    daemon.listen_unix(&unix).expect("a free path");
    let addresses = Addresses {
        udp: daemon.listen_udp(LOOPBACK.into()).expect("a free port"),
        tcp: daemon.listen_tcp(LOOPBACK.into()).expect("a free port"),
        unix,
    };
    (Station::start(daemon), addresses)
}

fn connect(station: &Station, addresses: &Addresses, carrier: &str) -> AppFace {
    match carrier {
        "udp" => AppFace::connect_udp(addresses.udp).expect("it listens"),
        "tcp" => AppFace::connect_tcp(addresses.tcp).expect("it listens"),
        "unix" => AppFace::connect_unix(&addresses.unix).expect("it listens"),
        _ => {
            let face = station.with(|daemon| daemon.memory_face());
            face.expect("there is room").1
        }
    }
}

/// Every carrier for producers with every carrier for consumers: registration, Interests, Data of full
/// length, and the end of a registration.
///
/// Fails if a carrier loses, splits or joins packets (`TURN` reads without `ready.insert`).
#[test]
fn every_carrier_carries_both_ways() {
    let (station, addresses) = start("every_carrier");
    for producing in ["udp", "tcp", "unix", "memory"] {
        for consuming in ["udp", "tcp", "unix", "memory"] {
            let mut producer = connect(&station, &addresses, producing);
            let mut consumer = connect(&station, &addresses, consuming);
            let prefix = name(&format!("/{producing}/{consuming}"));
            let signer = Signer::digest();
            producer.register(prefix.clone(), &signer).expect("allowed");
            let answering = thread::spawn(move || {
                for number in 0..3 {
                    let asked = next_interest(&mut producer);
                    let content = vec![number; number as usize * 4000];
                    put(&mut producer, &asked, &content, Duration::ZERO);
                }
                producer
            });
            for number in 0..3 {
                let mut wish = prefix.clone();
                wish.push_number(ComponentKind::SEQUENCE, number)
                    .expect("it fits");
                let packet = consumer.request(InterestBuilder::new(wish.view()));
                let packet = packet.expect("an answer");
                assert_eq!(content(&packet), vec![number as u8; number as usize * 4000]);
            }
            let mut producer = answering.join().expect("no panic");
            producer
                .unregister(prefix.clone(), &signer)
                .expect("allowed");
            let wish = prefix.join(name("/late").view()).expect("short");
            let refused = consumer.request(InterestBuilder::new(wish.view()));
            let expected = NackReason::NoRoute;
            assert!(
                matches!(refused, Err(RequestError::Nack(reason)) if reason == expected),
                "{producing} {consuming}: {refused:?}"
            );
        }
    }
    // All faces but the datagram ones are removed with their applications.
    station.until(|daemon| daemon.forwarder().statistics().faces == 8);
    assert_eq!(station.with(|daemon| daemon.statistics().dropped), 0);
}

/// Applications on another machine, by an address of this one that is not loopback.
///
/// Fails if faces from other machines may register without `accept_hosts`, or may not with it.
#[test]
fn hosts_register_if_they_are_accepted() {
    let Some(outward) = outward() else {
        return;
    };
    let mut daemon = Daemon::new(ForwarderConfig::default()).expect("a daemon");
    let udp = daemon.listen_udp((outward, 0).into()).expect("a free port");
    let tcp = daemon.listen_tcp((outward, 0).into()).expect("a free port");
    let station = Station::start(daemon);
    for is_accepted in [false, true] {
        station.with(move |daemon| daemon.accept_hosts(is_accepted));
        let over_udp = AppFace::connect_udp(udp).expect("it listens");
        let over_tcp = AppFace::connect_tcp(tcp).expect("it listens");
        for (mut host, prefix) in [(over_udp, "/udp"), (over_tcp, "/tcp")] {
            let registered = host.register(name(prefix), &Signer::digest());
            assert_eq!(registered.is_ok(), is_accepted, "{prefix}: {registered:?}");
        }
    }
}

/// An address of this machine that is not loopback.
fn outward() -> Option<IpAddr> {
    // No packet is sent: the system looks up from which address it would be.
    let outward = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.254:9")?;
        socket.local_addr()
    });
    if outward.is_err() {
        skip("no address besides loopback");
    }
    outward.ok().map(|address| address.ip())
}

/// Packets of applications on another machine that are longer than its datagrams.
///
/// Fails if an application does not join the fragments of its forwarder (`join` left out of `receive`), or
/// sends longer datagrams than the link takes.
#[test]
fn long_packets_are_split_between_machines() {
    let Some(outward) = outward() else {
        return;
    };
    let mut daemon = Daemon::new(ForwarderConfig::default()).expect("a daemon");
    daemon.accept_hosts(true);
    let address = daemon.listen_udp((outward, 0).into());
    let address = address.expect("a free port");
    let _station = Station::start(daemon);
    let mut producer = AppFace::connect_udp(address).expect("it listens");
    let mut consumer = AppFace::connect_udp(address).expect("it listens");
    let registered = producer.register(name("/long"), &Signer::digest());
    registered.expect("hosts are accepted");
    let answering = thread::spawn(move || {
        let asked = next_interest(&mut producer);
        put(&mut producer, &asked, &[3; 8000], Duration::ZERO);
    });
    let wish = name("/long/1");
    let packet = consumer.request(InterestBuilder::new(wish.view()));
    assert_eq!(content(&packet.expect("an answer")), [3; 8000]);
    answering.join().expect("no panic");

    let socket = UdpSocket::bind((outward, 0)).expect("a free port");
    socket.set_read_timeout(Some(PATIENCE)).expect("above zero");
    let address = socket.local_addr().expect("bound");
    let mut producer = AppFace::connect_udp(address).expect("it is bound");
    put(&mut producer, &name("/long/2"), &[3; 8000], Duration::ZERO);
    let (mut received, mut buffer) = (0, [0; 1 << 14]);
    while received < 8000 {
        let length = socket.recv(&mut buffer).expect("all fragments");
        assert!(length <= 1400, "a datagram of {length} bytes");
        received += length;
    }
}

/// Two forwarders with a link between them, by each carrier.
///
/// Fails if a face that this daemon opened is not served.
#[test]
fn forwarders_are_neighbours() {
    for carrier in ["udp", "tcp", "unix"] {
        let (far, addresses) = start(&format!("neighbours_{carrier}"));
        let mut daemon = Daemon::new(ForwarderConfig::default()).expect("a daemon");
        let link = match carrier {
            "udp" => daemon.connect_udp(addresses.udp),
            "tcp" => daemon.connect_tcp(addresses.tcp),
            _ => daemon.connect_unix(&addresses.unix),
        };
        let link = link.expect("it listens");
        let prefix = name("/far");
        let added = daemon.forwarder().add_route(prefix.view(), link, 1);
        added.expect("there is room");
        let (_, mut consumer) = daemon.memory_face().expect("there is room");
        let near = Station::start(daemon);
        let mut producer = connect(&far, &addresses, "memory");
        producer
            .register(prefix, &Signer::digest())
            .expect("allowed");
        let answering = thread::spawn(move || {
            let asked = next_interest(&mut producer);
            put(&mut producer, &asked, &[5; 8000], Duration::from_secs(60));
        });
        for hits in 0..2 {
            let wish = name("/far/1");
            let packet = consumer.request(InterestBuilder::new(wish.view()));
            assert_eq!(content(&packet.expect("an answer")), [5; 8000]);
            let found = near.with(|daemon| daemon.forwarder().statistics().store_hits);
            assert_eq!(found, hits);
        }
        answering.join().expect("no panic");
    }
}

/// Fails if malformed bytes do not close a stream, or open a datagram face.
#[test]
fn nonsense_ends_a_stream_and_opens_nothing() {
    let (station, addresses) = start("nonsense");
    let mut stream = TcpStream::connect(addresses.tcp).expect("it listens");
    stream
        .write_all(b"GET / HTTP/1.1\r\n\r\n")
        .expect("it is open");
    station.until(|daemon| {
        let events = std::iter::from_fn(|| daemon.poll_event());
        let malformed = FaceClosed::Malformed;
        events
            .into_iter()
            .any(|event| matches!(event, FaceEvent::Removed { why, .. } if why == malformed))
    });
    let socket = UdpSocket::bind(SocketAddr::from(LOOPBACK)).expect("a free port");
    for datagram in [&b"GET / HTTP/1.1"[..], &[0x64, 2, 0x54, 0], &[]] {
        socket.send_to(datagram, addresses.udp).expect("sent");
    }
    // A valid one after them, which is answered with a Nack.
    let mut friend = AppFace::connect_udp(addresses.udp).expect("it listens");
    let wish = name("/nobody");
    let refused = friend.request(InterestBuilder::new(wish.view()));
    assert!(matches!(refused, Err(RequestError::Nack(_))));
    assert_eq!(
        station.with(|daemon| daemon.forwarder().statistics().faces),
        1
    );
}

/// Fails if routes to an application that crashed are kept, or if a connection that was refused is taken
/// for an open one.
#[test]
fn faces_that_end_are_told_of() {
    let (station, addresses) = start("faces_end");
    let mut producer = connect(&station, &addresses, "tcp");
    let mut consumer = connect(&station, &addresses, "unix");
    producer
        .register(name("/anna"), &Signer::digest())
        .expect("allowed");
    drop(producer);
    station.until(|daemon| daemon.forwarder().statistics().routes == 0);
    let wish = name("/anna/1");
    let refused = consumer.request(InterestBuilder::new(wish.view()));
    assert!(matches!(
        refused,
        Err(RequestError::Nack(NackReason::NoRoute))
    ));
    // A port that was free just now, without a listener.
    let nobody = std::net::TcpListener::bind(SocketAddr::from(LOOPBACK)).expect("a free port");
    let address = nobody.local_addr().expect("bound");
    drop(nobody);
    let face = station
        .with(move |daemon| daemon.connect_tcp(address))
        .expect("tried");
    station.until(move |daemon| {
        let events = std::iter::from_fn(|| daemon.poll_event());
        let is_it = |event: FaceEvent| {
            matches!(event, FaceEvent::Removed { face: gone, why: FaceClosed::Failed(_) } if gone == face)
        };
        events.into_iter().any(is_it)
    });
}

/// One application requests much and reads nothing, while another is served.
///
/// Fails if the send buffer of a slow reader is not bounded (`MAX_UNSENT` not compared), or if it delays
/// others.
#[test]
fn a_slow_reader_is_its_own_problem() {
    let (station, addresses) = start("slow_reader");
    let mut producer = connect(&station, &addresses, "unix");
    producer
        .register(name("/big"), &Signer::digest())
        .expect("allowed");
    thread::spawn(move || {
        loop {
            let Ok(Some(packet)) = producer.receive(PATIENCE) else {
                return;
            };
            let came = LinkPacket::decode(&packet).expect("a packet");
            let asked = Interest::decode(came.packet).expect("an Interest");
            put(
                &mut producer,
                &asked.name().to_name(),
                &[1; 8000],
                Duration::from_secs(60),
            );
        }
    });
    let mut slow = connect(&station, &addresses, "tcp");
    let mut quick = connect(&station, &addresses, "tcp");
    // From here on the store answers; Interests that arrive before the Data would share one answer.
    let wish = name("/big/1");
    slow.request(InterestBuilder::new(wish.view()))
        .expect("an answer");
    for number in 0..4000_u32 {
        let packet = common::interest("/big/1", number, |it| it);
        slow.send(&packet).expect("it takes what we send");
    }
    station.until(|daemon| daemon.statistics().dropped > 0);
    for number in 0..20 {
        let wish = name(&format!("/big/{number}"));
        let packet = quick.request(InterestBuilder::new(wish.view()));
        assert_eq!(content(&packet.expect("an answer")), [1; 8000]);
    }
}
