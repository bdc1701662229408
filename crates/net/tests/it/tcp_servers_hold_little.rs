//! A client that speaks the protocol over TCP and sends what nobody takes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use prescient_channels::{
    Carrier, CarrierEvent, ClientId, CloseReason, Exchange, ExchangeConfig, MAX_DATAGRAM, Now,
    Path, Time,
};
use prescient_net::TcpServer;
use prescient_transport::ProtocolId;

const PROTOCOL: ProtocolId = ProtocolId(*b"tests of tcp !!!");

struct Wire;

impl Path for Wire {
    fn max_packet(&self) -> usize {
        MAX_DATAGRAM
    }

    fn on_acknowledged(&mut self, _: usize, _: bool, _: Time) {}

    fn on_lost(&mut self, _: usize, _: bool, _: Time) {}
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u16).to_le_bytes().to_vec();
    frame.push(kind);
    frame.extend(payload);
    frame
}

/// Fails if `Core::finish_turn` ignores messages of the lobby: then they wait for ever, as many as a
/// client sends.
#[test]
fn there_is_no_lobby_over_tcp() {
    let here = "127.0.0.1:0".parse().expect("an address");
    let config = ExchangeConfig::default();
    let mut server = TcpServer::bind(here, PROTOCOL, config.clone(), 4).expect("a free port");
    let mut stream = TcpStream::connect(server.address()).expect("it listens");
    let mut hello = PROTOCOL.0.to_vec();
    hello.extend(5_u64.to_le_bytes());
    stream.write_all(&frame(1, &hello)).expect("there is room");
    let mut next = || {
        let deadline = server.now().after(Duration::from_secs(20));
        server.wait_until(deadline).expect("an event in time")
    };
    let CarrierEvent::Connected {
        connection, client, ..
    } = next()
    else {
        panic!("it said hello");
    };
    assert_eq!(client, ClientId(5));

    let now = Time::from_micros(1 << 40);
    let mut exchange = Exchange::of_client(&config, now);
    assert!(exchange.send_lobby(vec![1; 100]));
    let at = Now { now, clock: now };
    let body = exchange.poll_body(0, 0, at, &mut Wire).expect("it waits");
    stream.write_all(&frame(0, &body)).expect("there is room");
    let reason = CloseReason::Violation;
    assert_eq!(next(), CarrierEvent::Closed { connection, reason });
    // The answer to the hello, and then the end.
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert_eq!(rest[..3], frame(2, &[])[..]);
}
