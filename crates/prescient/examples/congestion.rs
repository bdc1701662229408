//! A congestion control policy of one's own.
//!
//! Two built-in policies are asked, and the more careful one counts; on a link with a low ceiling the
//! rate is fixed. Server and client are on this machine:
//! `cargo run --release -p prescient --example congestion`.

use std::error::Error;
use std::time::Duration;

use prescient::{
    AcknowledgedPacket, Aimd, BytesPerSecond, Client, ClientEvent, Congestion, CongestionControl,
    CongestionFactory, DelayBased, Everything, ExchangeConfig, FixedRate, LinkConfig, LostPacket,
    RateLimits, RoundTripWindow, Schema, SentPacket, Server, ServerEvent, ServerOptions, State,
};

/// Asks two policies.
struct Careful {
    delay: DelayBased,
    window: RoundTripWindow,
}

impl Congestion for Careful {
    fn on_sent(&mut self, sent: &SentPacket) {
        self.delay.on_sent(sent);
        self.window.on_sent(sent);
    }

    fn on_acknowledged(&mut self, acknowledged: &AcknowledgedPacket) {
        self.delay.on_acknowledged(acknowledged);
        self.window.on_acknowledged(acknowledged);
    }

    fn on_lost(&mut self, lost: &LostPacket) {
        self.delay.on_lost(lost);
        self.window.on_lost(lost);
    }

    fn rate(&self) -> BytesPerSecond {
        self.delay.rate().min(self.window.rate())
    }

    fn window(&self) -> usize {
        self.delay.window().min(self.window.window())
    }
}

/// Chooses by the ceiling of a connection.
fn careful(limits: RateLimits) -> Box<dyn Congestion> {
    match limits.ceiling.0 {
        0..10_000 => Box::new(FixedRate::new(limits)),
        10_000..100_000 => Box::new(Aimd::new(limits)),
        _ => Box::new(Careful {
            delay: DelayBased::new(limits),
            window: RoundTripWindow::new(limits),
        }),
    }
}

#[derive(State, Clone)]
struct Ship {
    #[state(step = 0.01, position)]
    place: [f32; 2],
}

fn main() -> Result<(), Box<dyn Error>> {
    let policy = CongestionControl::Custom(CongestionFactory::new("careful", careful));
    let exchange = ExchangeConfig::default().with_congestion(policy);
    let link = LinkConfig::default().with_exchange(exchange);
    let options = ServerOptions::default().with_link(link);
    let schema = Schema::of::<Ship>()?;
    let mut server = Server::loopback_with("127.0.0.1:0", schema.clone(), Everything, options)?;
    let address = server.address().ok_or("it has a socket")?.to_string();
    let joining = std::thread::spawn(move || {
        let mut client = Client::loopback(&address, schema).map_err(|error| error.to_string())?;
        loop {
            client.wait(Duration::from_millis(20));
            while let Some(event) = client.poll() {
                if let ClientEvent::Left(_) = event {
                    return Ok::<(), String>(());
                }
            }
        }
    });
    let mut step = server.step()?;
    let mut ship = Ship { place: [0.0; 2] };
    let own = step.spawn(&ship)?;
    drop(step);
    let mut joined = None;
    for _ in 0..60 {
        server.next_tick();
        while let Some(event) = server.poll() {
            if let ServerEvent::Joined { peer, .. } = event {
                joined = Some(peer);
            }
        }
        let mut step = server.step()?;
        ship.place[0] += 0.1;
        step.set(own, &ship)?;
        drop(step);
        server.send();
    }
    let link = joined.and_then(|peer| server.statistics(peer)?.link);
    let rate = link.map_or(0, |link| link.rate_allowed.0);
    println!("policy {}: {rate} B/s are allowed", policy.name());
    server.shut_down();
    joining.join().map_err(|_| "the client panicked")??;
    Ok(())
}
