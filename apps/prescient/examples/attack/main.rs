//! Attacks a server, to measure whether other clients notice: a tool for changes to the server's
//! receive path. It joins as a client with a valid token and then sends what no honest client
//! would.
//!
//! ```text
//! prescient serve --json &
//! prescient join --json 127.0.0.1:4000 &
//! cargo run --release -p prescient-cli --example attack -- 127.0.0.1:4000 inputs --mbit 10
//! ```
//!
//! It prints one line of JSON: what was sent, how often the server closed the connection, and what
//! an honest client in this process received before and during the attack (ticks per second, and
//! the time between two of them). `./check holes` runs all kinds. It attacks servers on this
//! machine only.

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

/// Attack a game that `prescient serve` runs on this machine.
#[derive(Parser, Debug)]
struct Options {
    /// Address of the server.
    address: SocketAddr,
    /// Kind of attack.
    kind: AttackKind,
    /// Rate in megabits per second of UDP payload; 0 for the maximum.
    #[arg(long, default_value_t = 10.0)]
    mbit: f64,
    /// Seconds to measure without and then with the attack.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

/// Kinds of attack. Everything that can be repeated in a packet is, as often as it fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AttackKind {
    /// Packets of 64 input frames of 64 inputs.
    InputFrames,
    /// Packets of one frame of 64 inputs, each with 32 bytes of fields.
    Inputs,
    /// Packets of as many inputs as fit, each pressing all keys.
    Presses,
    /// Packets of 64 unreliable events.
    Messages,
    /// Packets of one event.
    Singles,
    /// Packets of 64 reliable events.
    Reliable,
    /// Packets of 64 acknowledgements of state.
    Acks,
    /// Packets of 64 messages of state.
    States,
    /// Packets of 64 audit reports that the server did not request.
    Audits,
    /// Packets of 64 requests.
    Requests,
    /// Packets of 32 blobs, each offered and withdrawn.
    Offers,
    /// Packets of 64 fragments of messages that are never completed.
    Fragments,
    /// Packets of as many acknowledgement frames as fit, all with gaps.
    Reports,
    /// Packets of 64 pings.
    Pings,
    /// Empty packets, in batches.
    Empty,
    /// Packets of 64 events and an input, without the `hello` message.
    Ungreeted,
    /// Datagrams of junk, in batches.
    Junk,
    /// Connection requests, in batches.
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
    let during = watching.join().expect("the honest client does not panic");
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
            "gap_max_ms": during.max,
            "left": during.left,
        })
    );
}

/// Totals of an attack.
#[derive(Default)]
struct Sent {
    packets: u64,
    bytes: u64,
    seconds: f64,
    /// How often the server closed the connection, and the last reason.
    closed: u64,
    reason: Option<String>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "an attacker waits only until it may send again"
)]
fn rest(span: Duration) {
    std::thread::sleep(span);
}
