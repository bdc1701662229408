//! Attacks a served game, to see whether anybody else notices: for whoever changes what a server
//! takes in. It joins as a client with a good token and then sends what no honest client would.
//!
//! ```text
//! prescient serve --json &
//! prescient join --json 127.0.0.1:4000 &
//! cargo run --release -p prescient-cli --example attack -- 127.0.0.1:4000 inputs --mbit 10
//! ```
//!
//! One line of JSON says what was sent, how often the server closed the connection, and what an
//! honest client in this process saw before and during the attack: ticks a second, and the time
//! between two of them. `./check holes` runs all kinds. It reaches servers on this machine only.

mod attacker;
mod bodies;
mod flood;
mod witness;

#[expect(dead_code, reason = "an attacker needs the schema alone")]
#[path = "../../src/walkers.rs"]
mod walkers;

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde_json::json;

/// Attacks a game that `prescient serve` serves on this machine.
#[derive(Parser, Debug)]
struct Options {
    /// The server.
    address: SocketAddr,
    /// What to send.
    kind: AttackKind,
    /// Megabits a second of UDP payload; 0 for as many as possible.
    #[arg(long, default_value_t = 10.0)]
    mbit: f64,
    /// Seconds without and then with the attack.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

/// What is sent. Whatever can be repeated in a packet is, as often as fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AttackKind {
    /// Packets of 64 input frames of 64 inputs.
    InputFrames,
    /// Packets of one frame of 64 inputs, each with 32 bytes of fields.
    Inputs,
    /// Packets of as many inputs as fit that press all keys.
    Presses,
    /// Packets of 64 events for the game, unreliable.
    Messages,
    /// One event to a packet.
    Singles,
    /// Packets of 64 reliable events.
    Reliable,
    /// Packets of 64 acknowledgements of state.
    Acks,
    /// Packets of 64 messages of state.
    States,
    /// Packets of 64 reports of an audit that nobody asked for.
    Audits,
    /// Packets of 64 requests.
    Requests,
    /// Packets of 32 blobs, each offered and withdrawn.
    Offers,
    /// Packets of 64 parts of messages that are never completed.
    Fragments,
    /// Packets of as many reports of received packets as fit, all gaps.
    Reports,
    /// Packets of 64 pings.
    Pings,
    /// Packets that say nothing, in batches.
    Empty,
    /// 64 events and an input to a packet, before the greeting.
    Ungreeted,
    /// Datagrams of nonsense, in batches.
    Junk,
    /// Requests to connect, in batches.
    Handshakes,
}

fn main() {
    let options = Options::parse();
    let span = Duration::from_secs(options.seconds);
    let mut witness = witness::Witness::join(options.address);
    let before = witness.watch(span);
    let watching = std::thread::spawn(move || witness.watch(span));
    let rate = match options.mbit {
        0.0 => f64::INFINITY,
        mbit => mbit * 1e6 / 8.0,
    };
    let sent = match options.kind {
        AttackKind::Junk => flood::junk(options.address, rate, span),
        AttackKind::Handshakes => flood::handshakes(options.address, rate, span),
        kind => attacker::attack(options.address, kind, rate, span),
    };
    let during = watching.join().expect("it does not panic");
    println!(
        "{}",
        json!({
            "kind": format!("{:?}", options.kind).to_lowercase(),
            "mbit": sent.bytes as f64 * 8e-6 / sent.seconds,
            "packets_per_second": sent.packets as f64 / sent.seconds,
            "closed": sent.closed,
            "reason": sent.reason,
            "ticks_per_second_before": before.rate,
            "ticks_per_second": during.rate,
            "gap_p50_ms_before": before.p50,
            "gap_p50_ms": during.p50,
            "gap_p99_ms_before": before.p99,
            "gap_p99_ms": during.p99,
            "gap_max_ms": during.longest,
            "left": during.left,
        })
    );
}

/// What was sent.
#[derive(Default)]
struct Sent {
    packets: u64,
    bytes: u64,
    seconds: f64,
    /// How often the server closed the connection, and why the last time.
    closed: u64,
    reason: Option<String>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "an attacker has nothing to wait for but the time to send again"
)]
fn rest(span: Duration) {
    std::thread::sleep(span);
}
