//! Floods of unauthenticated datagrams, many per system call.
#![allow(unreachable_pub, reason = "a module of a program of its own")]

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use prescient::loopback_token;
use prescient_channels::Time;
use prescient_net::Clock;
use prescient_transport::{Client, Entropy, LinkConfig};
use quinn_udp::{Transmit, UdpSockRef, UdpSocketState};

use crate::Sent;

/// Short datagrams of junk with the first byte of sealed packets.
pub fn junk(server: SocketAddr, rate: f64, span: Duration) -> Sent {
    let mut datagram = [0x5a; 40];
    datagram[0] = 0x80;
    send(server, &datagram, rate, span)
}

/// A client's connection request, repeated.
pub fn handshakes(server: SocketAddr, rate: f64, span: Duration) -> Sent {
    let token = loopback_token(&server.to_string()).expect("a server on this machine");
    let now = Time::default();
    let client = Client::connect(
        token,
        prescient::protocol(),
        LinkConfig::default(),
        &mut Always,
        now,
    );
    let mut client = client.expect("the protocols match");
    client.handle_timeout(now);
    let request = client.poll_transmit(now).expect("a request");
    send(server, &request.bytes, rate, span)
}

fn send(server: SocketAddr, datagram: &[u8], rate: f64, span: Duration) -> Sent {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let state = UdpSocketState::new(UdpSockRef::from(&socket)).expect("a socket");
    let segments = (65_000 / datagram.len()).min(state.max_gso_segments());
    let batch = datagram.repeat(segments);
    let transmit = Transmit {
        destination: server,
        ecn: None,
        contents: &batch,
        segment_size: Some(datagram.len()),
        src_ip: None,
    };
    let clock = Clock::start();
    let mut sent = Sent::default();
    while clock.now() < Time::default().after(span) {
        sent.seconds = clock.now().as_micros() as f64 * 1e-6;
        if sent.bytes as f64 > rate * sent.seconds {
            crate::rest(Duration::from_micros(200));
            continue;
        }
        if state.try_send(UdpSockRef::from(&socket), &transmit).is_ok() {
            sent.packets += segments as u64;
            sent.bytes += batch.len() as u64;
        }
    }
    sent
}

/// Constant bytes: the attack needs no randomness.
struct Always;

impl Entropy for Always {
    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}
