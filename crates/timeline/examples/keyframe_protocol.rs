//! The keyframe protocol over TCP: a server plans the way of a lift and delays it, and a client shows it at the same
//! times.
//!
//! `cargo run -p prescient-timeline --example keyframe_protocol`

use std::time::Duration;

use prescient_timeline::protocol::tcp::{TcpClient, TcpServer};
use prescient_timeline::protocol::{Server, ServerEvent};
use prescient_timeline::{PropertyId, Span, Time};

const LIFT: PropertyId = PropertyId(7);

/// In milliseconds since 1970.
const BASE: i64 = 1_750_000_000_000;

const SOON: Duration = Duration::from_millis(10);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut server = TcpServer::bind("127.0.0.1:0", Server::new(BASE)?)?;
    let mut client = TcpClient::connect(server.address())?;
    // A client receives what changes after it has asked for the base time.
    while !matches!(server.poll_event(), Some(ServerEvent::Synced(_))) {
        client.wait(SOON);
        server.wait(SOON);
    }
    let at = |seconds: i64| Time::from_millis(BASE + 1000 * seconds);
    for (seconds, floor) in [(0, 0), (10, 5), (20, 2)] {
        server.server().add(LIFT, at(seconds), floor)?;
    }
    let delay = Span::from_secs(5);
    server.server().move_one(LIFT, at(10), delay)?;
    while client.client().timeline().curve(LIFT) != server.server().timeline().curve(LIFT) {
        server.wait(SOON);
        client.wait(SOON);
    }
    for seconds in (0..=20).step_by(5) {
        let shown = client.client().timeline().at(LIFT, at(seconds));
        let shown = shown.ok_or("the lift is known")?;
        println!("{seconds:2} s: floor {shown:.1}");
    }
    Ok(())
}
