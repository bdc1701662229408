//! Lag compensation: a shot hits what was aimed at, not what is there when it arrives:
//! `cargo run -p prescient --example rewind`.

use std::error::Error;

use prescient::playout::SeenTick;
use prescient::{Everything, Schema, Server, ServerEvent, State};

#[derive(State, Clone)]
struct Runner {
    #[state(step = 0.01, position)]
    x: f32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut server = Server::offline(Schema::of::<Runner>()?, Everything)?;
    let mut client = server.local_client();
    let mut runner = Runner { x: 0.0 };
    let entity = server.step()?.spawn(&runner)?;
    for tick in 1..=20 {
        while let Some(event) = server.poll() {
            let ServerEvent::Event { peer, payload, .. } = event else {
                continue;
            };
            // The shot says which tick the client saw, and where it aimed.
            let seen = SeenTick::from_bytes(&payload).ok_or("too short")?;
            let aimed_at = f32::from_le_bytes(payload[SeenTick::BYTES..].try_into()?);
            let rewind = server.rewind(peer).seen(seen)?;
            let then = rewind.get(entity).ok_or("it was not there")?;
            println!(
                "aimed at {aimed_at:.2}, it was at {:.2} then, it is at {:.2} now: {}",
                then.x,
                runner.x,
                if (then.x - aimed_at).abs() < 0.1 {
                    "hit"
                } else {
                    "missed"
                }
            );
        }
        runner.x += 0.4;
        server.step()?.set(entity, &runner)?;
        server.send();
        if tick % 5 == 0 {
            while client.poll().is_some() {}
            // A client over a network sees the past: here, two and a half ticks ago. A game sends
            // `client.seen_tick()` and aims at what `client.shown` returns.
            let now = client.tick().ok_or("no state")?.0 as f64;
            let seen = SeenTick::new(now - 2.5);
            let aimed_at = runner.x - 2.5 * 0.4;
            let mut payload = seen.to_bytes().to_vec();
            payload.extend(aimed_at.to_le_bytes());
            client.send_event(None, &payload)?;
        }
    }
    Ok(())
}
