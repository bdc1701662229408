//! The cost of packets, forgeries, handshakes and idle connections on one core, compared with the
//! goals.
#![expect(
    clippy::disallowed_methods,
    reason = "measuring is what this program is for"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::alloc::System;
use std::time::{Duration, Instant};

use common::{GOOD, PROTOCOL, Random, UNIX, World, address, config, grant};
use prescient_channels::*;
use prescient_transport::*;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    // One client stands for many.
    let exchange = ExchangeConfig::default().with_messages_per_second(u32::MAX);
    let link = LinkConfig::default().with_exchange(exchange);
    let mut world = World::with(1, GOOD, config().with_link(link));
    let peer = world.join();
    world.connect_all();
    let connection = world.connections()[0];
    let mut now = world.server_time();
    let home = world.peers[peer].address;
    let client = &mut world.peers[peer].client;
    let (server, random) = (&mut world.server, &mut world.random);

    let count = 200_000;
    let channel = ChannelId::UNRELIABLE;
    let sent = |client: &Client, server: &Server| {
        let ends = [client.statistics(), server.statistics(connection)];
        let packets = ends.map(|seen| seen.expect("connected").packets_sent);
        packets.iter().sum::<u64>() as u32
    };
    let before = sent(client, server);
    let start = Instant::now();
    for _ in 0..count / 2 {
        // Slow enough for the sending rate of a connection.
        now = now.after(Duration::from_micros(100));
        client.send(channel, &[1; 64], now).expect("connected");
        while let Some(up) = client.poll_transmit(now) {
            server.handle_datagram(home, &up.bytes, now, UNIX, random);
        }
        server.poll_event().expect("just received");
        let queued = server.send(connection, channel, &[2; 64], now);
        queued.expect("connected");
        while let Some(down) = server.poll_transmit(now) {
            client.handle_datagram(here(), &down.bytes, now);
        }
        client.poll_event().expect("just received");
    }
    // Each packet was sealed by one end and opened by the other, on one core.
    let packets = sent(client, server) - before;
    report("packets in and out of one end", 2 * packets, start, 200_000);
    let seen = client.statistics().expect("connected");
    let each = seen.bytes_sent / seen.packets_sent;
    println!("{each:>9} bytes take a message of 64 and an acknowledgement to the server");

    client.send(channel, &[1; 64], now).expect("connected");
    let mut forged = client.poll_transmit(now).expect("just sent").bytes;
    *forged.last_mut().expect("not empty") ^= 1;
    let start = Instant::now();
    for _ in 0..count {
        server.handle_datagram(home, &forged, now, UNIX, random);
    }
    let seen = server.statistics(connection).expect("connected");
    assert_eq!(seen.forged, u64::from(count));
    report("forged packets rejected", count, start, 300_000);

    handshakes(2000);
}

/// The server's part of a handshake: two requests, the first of which it answers with a challenge.
fn handshakes(count: u32) {
    let mut random = Random(1);
    let now = Time::from_micros(1 << 40);
    let limits = Limits::default()
        .with_connections(usize::MAX)
        .with_memory(usize::MAX);
    let mut server =
        Server::new(config().with_limits(limits), &mut random, now).expect("it can work");
    let key = TokenKey::new(common::KEY).expect("not the public one");
    let mut spent = Duration::ZERO;
    let region = Region::new(MEMORY);
    for number in 0..count {
        let token = grant(number.into())
            .issue(&key, &mut random)
            .expect("sound");
        let link = LinkConfig::default();
        let mut client =
            Client::connect(token, PROTOCOL, link, &mut random, now).expect("the same protocol");
        let home = address(&format!("10.1.{}.{}:9", number / 256, number % 256));
        for _ in 0..2 {
            client.handle_timeout(now);
            let request = client.poll_transmit(now).expect("it asks");
            let start = Instant::now();
            server.handle_datagram(home, &request.bytes, now, UNIX, &mut random);
            let answer = server.poll_transmit(now).expect("it answers");
            spent += start.elapsed();
            client.handle_datagram(here(), &answer.bytes, now);
        }
        assert!(client.is_connected());
        // The first sealed packet confirms the handshake to the server.
        while let Some(packet) = client.poll_transmit(now) {
            server.handle_datagram(home, &packet.bytes, now, UNIX, &mut random);
        }
        while server.poll_transmit(now).is_some() || server.poll_event().is_some() {}
    }
    let held = region.change();
    let held = (held.bytes_allocated as i64 - held.bytes_deallocated as i64
        + held.bytes_reallocated as i64)
        / i64::from(count);
    println!("{held:>9} bytes are held for an idle connection, goal 65536");
    let rate = f64::from(count) / spent.as_secs_f64();
    print(rate, "handshakes on the server", 4_000);
}

fn report(what: &str, count: u32, start: Instant, goal: u32) {
    let rate = f64::from(count) / start.elapsed().as_secs_f64();
    print(rate, what, goal);
}

fn print(rate: f64, what: &str, goal: u32) {
    let verdict = if rate >= f64::from(goal) {
        "met"
    } else {
        "not met"
    };
    println!("{rate:>9.0} {what} a second, goal {goal}: {verdict}");
}

fn here() -> std::net::SocketAddr {
    address("192.0.2.1:4000")
}
