//! Connections without sockets, over good links and bad ones.

use std::net::SocketAddr;
use std::time::Duration;

use crate::common::{PROTOCOL, config, grant, key};
use prescient_channels::*;
use prescient_net::{Link, MemoryNetwork};
use prescient_sim::link::{Conditions, LinkConditioner};
use prescient_transport::*;

/// Puts a link conditioner between two ends.
struct Conditioned(LinkConditioner);

impl Link for Conditioned {
    fn send(&mut self, now: Time, bytes: Vec<u8>) {
        self.0.send(sim(now), &bytes);
    }

    fn poll(&mut self, now: Time) -> Option<Vec<u8>> {
        self.0.poll(sim(now))
    }

    fn next_delivery(&self) -> Option<Time> {
        let next = self.0.next_delivery()?;
        Some(Time::from_micros(next.as_micros()))
    }
}

fn sim(time: Time) -> prescient_sim::link::Time {
    prescient_sim::link::Time::from_micros(time.as_micros())
}

/// Deterministic, and random enough for a test.
fn seeded(seed: u64) -> impl FnMut(&mut [u8]) {
    let mut state = seed;
    move |bytes| {
        for byte in bytes {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            *byte = (state >> 56) as u8;
        }
    }
}

fn network(seed: u64) -> (MemoryNetwork, SocketAddr) {
    let address = "192.0.2.1:4000".parse().expect("an address");
    let config = config(vec![address]);
    let network = MemoryNetwork::new(config, seeded(seed), START);
    (network.expect("it can work"), address)
}

/// Fails if `run` returns before everything that is due has happened.
#[test]
fn one_call_carries_all_that_is_due() {
    let (mut network, address) = network(1);
    let mut join = |number| {
        let token = token(number, address);
        network.join(token, PROTOCOL, LinkConfig::default(), START)
    };
    let players: Vec<_> = (0..3)
        .map(|number| join(number).expect("a client"))
        .collect();
    network.run(START, UNIX);
    assert_eq!(network.server().clients().count(), 3);
    for player in players {
        assert!(network.client(player).is_connected());
        let sent = network
            .client(player)
            .send(ChannelId::UNRELIABLE, b"up", START);
        sent.expect("connected");
    }
    network.run(START, UNIX);
    let events = std::iter::from_fn(|| network.server().poll_event());
    let received = events.filter(|event| matches!(event, ServerEvent::Received { .. }));
    assert_eq!(received.count(), 3);
}

/// Each of the five datagrams of a handshake takes the latency of its link, and nothing else takes
/// time.
///
/// Fails if `next_timeout` ignores links, or if `run` bypasses them.
#[test]
fn links_take_their_time() {
    let slow = Conditions {
        latency: Duration::from_millis(40),
        ..Conditions::default()
    };
    let connected = connect_three(1, &slow).expect("a good link");
    assert_eq!(connected.since(START), Duration::from_millis(200));
}

/// Fails if clients and links are not given the present time, so that nothing is retransmitted.
#[test]
fn links_may_be_bad() {
    for seed in seeds() {
        let bad = Conditions {
            latency: Duration::from_millis(40),
            jitter: Duration::from_millis(30),
            loss: 300_000,
            ..Conditions::default()
        };
        let connected = connect_three(seed, &bad);
        assert!(connected.is_some(), "PRESCIENT_SEED={seed} replays it");
    }
}

/// When three clients and the server are connected; `None` if that takes more than ten seconds.
fn connect_three(seed: u64, conditions: &Conditions) -> Option<Time> {
    let (mut network, address) = network(seed);
    let mut players = Vec::new();
    for number in 0..3 {
        let link = |way| {
            let seed = seed * 6 + number * 2 + way;
            Conditioned(LinkConditioner::new(seed, conditions.clone()))
        };
        let token = token(number, address);
        let links = (link(0), link(1));
        let joined = network.join_over(links, token, PROTOCOL, LinkConfig::default(), START);
        players.push(joined.expect("a client"));
    }
    let end = START.after(Duration::from_secs(10));
    run_until(&mut network, end, |network| {
        let mut all = players.iter();
        all.all(|player| network.client(*player).is_connected())
            && network.server().clients().count() == 3
    })
}

/// Steps from one event to the next until a condition holds, and returns when; `None` if never.
fn run_until(
    network: &mut MemoryNetwork,
    end: Time,
    mut done: impl FnMut(&mut MemoryNetwork) -> bool,
) -> Option<Time> {
    let mut now = START;
    while now < end {
        network.run(now, UNIX);
        if done(network) {
            return Some(now);
        }
        now = network.next_timeout()?.max(now);
    }
    None
}

/// A token that depends on nothing but its client.
fn token(client: u64, server: SocketAddr) -> ConnectToken {
    let mut grant = grant(client, server);
    grant.expires = UnixTime(UNIX.0 + 60);
    let token = grant.issue(&key(), &mut seeded(client));
    token.expect("a sound grant")
}

/// Twenty seeds, or the one in `PRESCIENT_SEED`.
fn seeds() -> std::ops::Range<u64> {
    match std::env::var("PRESCIENT_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("a number");
            seed..seed + 1
        }
        Err(_) => 0..20,
    }
}

const START: Time = Time::from_micros(1_000_000);
const UNIX: UnixTime = UnixTime(1_800_000_000);
