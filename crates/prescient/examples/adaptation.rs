//! Every client gets the best that its connection can carry.
//!
//! The server adapts precision and rate to each connection. Forty birds of priority 3 are degraded
//! when a client's rate is capped, the player's own ship of priority 0 never is. Server and client
//! are on this machine: `cargo run --release -p prescient --example adaptation`.

use std::error::Error;
use std::time::Duration;

use prescient::{
    Adaptation, AdaptationReport, BytesPerSecond, Client, ClientEvent, Everything, LinkEstimate,
    Priority, Ref, Schema, SchemaBuilder, Selection, Server, ServerEvent, ServerOptions, State,
};

#[derive(State, Clone)]
struct Ship {
    #[state(step = 0.01, position)]
    place: [f32; 2],
}

#[derive(State, Clone)]
#[state(priority = 3)]
struct Bird {
    /// Four strengths of quantisation: 0, 2, 4 and 6 bits are rounded away.
    #[state(step = 0.01, position, levels(0, 2, 4, 6))]
    place: [f32; 2],
}

fn line(report: &AdaptationReport) -> String {
    let LinkEstimate {
        bytes_per_second, ..
    } = report.estimate;
    format!(
        "step {} of the plan, {} of {} bytes per packet at {bytes_per_second} B/s",
        report.plan_step, report.message_bytes, report.demand_bytes
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    let schema: Schema = SchemaBuilder::new()
        .state::<Ship>()
        .state::<Bird>()
        .build()?;
    // Birds that do not fit are sent again after half a second at the latest.
    let birds = Priority::new(3).ok_or("there are four")?;
    let selection = Selection::default().with_max_staleness(birds, 15);
    let options = ServerOptions::default()
        .with_adaptation(Adaptation::default())
        .with_max_rate(BytesPerSecond(100_000));
    let mut server = Server::loopback_with("127.0.0.1:0", schema.clone(), Everything, options)?;
    let address = server.address().ok_or("it has a socket")?.to_string();
    let joining = std::thread::spawn(move || -> Result<u64, String> {
        let mut client = Client::loopback(&address, schema).map_err(|error| error.to_string())?;
        let mut ticks = 0;
        loop {
            client.wait(Duration::from_millis(20));
            while let Some(event) = client.poll() {
                match event {
                    ClientEvent::Left(_) => return Ok(ticks),
                    _ => ticks = client.tick().map_or(0, |tick| tick.0),
                }
            }
        }
    });

    let mut step = server.step()?;
    let mut ship = Ship { place: [0.0; 2] };
    let own = step.spawn(&ship)?;
    let mut birds: Vec<(Ref<Bird>, Bird)> = Vec::new();
    for number in 0..40u8 {
        let bird = Bird {
            place: [f32::from(number), 0.0],
        };
        birds.push((step.spawn(&bird)?, bird));
    }
    drop(step);
    for tick in 0..150u32 {
        server.next_tick();
        while let Some(event) = server.poll() {
            match event {
                // A hard cap for this client, far below what the birds need.
                ServerEvent::Joined { peer, .. } => {
                    let adaptation = Adaptation::default().with_selection(selection);
                    server.set_adaptation(peer, Some(adaptation))?;
                    server.set_max_rate(peer, Some(BytesPerSecond(1_000)))?;
                }
                ServerEvent::QualityChanged { peer, .. } => {
                    if let Some(report) = server.adaptation(peer) {
                        println!("tick {tick}: {}", line(&report));
                    }
                }
                _ => {}
            }
        }
        let mut step = server.step()?;
        ship.place[0] += 0.11;
        step.set(own, &ship)?;
        for (number, (entity, bird)) in birds.iter_mut().enumerate() {
            // They flutter, so nobody can predict them.
            let angle = (tick.wrapping_mul(2_654_435_761) >> 7) as f32 + number as f32 * 1.7;
            bird.place[0] += angle.cos() * 3.0;
            bird.place[1] += (angle * 1.3).sin() * 3.0;
            step.set(*entity, bird)?;
        }
        drop(step);
        server.send();
    }
    server.shut_down();
    let shown = joining.join().map_err(|_| "the client panicked")??;
    println!("the client was shown state up to tick {shown}");
    Ok(())
}
