//! Smooth movement: every frame shows a ball between two states that the server really had, however
//! rarely they arrive: `cargo run -p prescient --example show`.
//!
//! The client is a local one, and the server sends a state every 50 ms; frames are four times as
//! many.

use std::error::Error;
use std::time::Duration;

use prescient::{ClientEvent, Everything, Schema, Server, ServerOptions, State};

#[derive(State, Clone)]
#[state(tick_hz = 20)]
struct Ball {
    // A float, so it is drawn between samples; its velocity bends the curve.
    #[state(step = 0.01, position)]
    height: f32,
    #[state(step = 0.01, velocity_of = "height", per_second)]
    speed: f32,
    // Everything else steps.
    bounces: u32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let tick = Duration::from_millis(50);
    let options = ServerOptions::default().with_tick_interval(tick);
    let mut server = Server::offline_with(Schema::of::<Ball>()?, Everything, options)?;
    let mut client = server.local_client();
    let mut ball = Ball {
        height: 5.0,
        speed: 0.0,
        bounces: 0,
    };
    let entity = server.step()?.spawn(&ball)?;
    for _ in 0..20 {
        server.next_tick();
        while server.poll().is_some() {}
        ball.fall(tick.as_secs_f32());
        server.step()?.set(entity, &ball)?;
        server.send();
        for _ in 0..4 {
            client.wait(tick / 5);
            while let Some(event) = client.poll() {
                if let ClientEvent::Left(reason) = event {
                    return Err(reason.into());
                }
            }
            // The one line that turns it on.
            let Some(frame) = client.begin_frame() else {
                continue;
            };
            let Some(shown) = client.entities().next() else {
                continue;
            };
            if let Some(Ball { height, .. }) = client.shown(shown) {
                println!("tick {:.2}: height {height:.3}", frame.playback);
            }
        }
    }
    Ok(())
}

impl Ball {
    fn fall(&mut self, seconds: f32) {
        self.speed -= 10.0 * seconds;
        self.height += self.speed * seconds;
        if self.height < 0.0 {
            (self.height, self.speed) = (-self.height, -self.speed);
            self.bounces += 1;
        }
    }
}
