//! The recent past of an entity: a client draws a ball two and a half ticks late, between two
//! values that the server really had, and the server finds out where that ball was when the client
//! shot at it: `cargo run -p prescient --example samples`.
//!
//! The client is a local one (`Server::offline`), so there is no waiting.

use std::error::Error;

use prescient::{
    Client, ClientEvent, EntityHandle, Everything, Ref, Schema, Server, State, Tick, World,
};

#[derive(State, Clone)]
struct Ball {
    #[state(step = 0.01, position)]
    height: f32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut server = Server::offline(Schema::of::<Ball>()?, Everything)?;
    let mut client = server.local_client();
    let mut ball = Ball { height: 0.0 };
    let mut speed = 8.0;
    let entity = server.step()?.spawn(&ball)?;
    for _ in 0..12 {
        while server.poll().is_some() {}
        speed -= 1.0;
        ball.height += speed;
        server.step()?.set(entity, &ball)?;
        server.send();
        while let Some(event) = client.poll() {
            if let ClientEvent::Left(reason) = event {
                return Err(reason.into());
            }
        }
        let Some(shown) = client.entities().next() else {
            continue;
        };
        // A real client plays out by `Client::server_tick`, which has a fraction.
        let now = client.tick().map_or(0.0, |tick| tick.0 as f64) - 2.5;
        let Some(height) = height_at(&client, shown, now) else {
            continue;
        };
        let server_height = rewound(server.world(), entity, now).ok_or("too long ago")?;
        println!("tick {now}: drawn at {height}, hit if aimed at {server_height}");
    }
    Ok(())
}

/// The height between the confirmed values around a tick; `None` if one of them is missing. Values
/// of ticks that were lost or deferred are not guessed: there are only fewer to draw between.
fn height_at(client: &Client, entity: EntityHandle, tick: f64) -> Option<f32> {
    between(client.samples(entity), tick)
}

/// The height at the server when a client drew this tick: the server knows every tick.
fn rewound(world: &World, entity: Ref<Ball>, tick: f64) -> Option<f32> {
    between(world.samples(entity), tick)
}

fn between(samples: impl DoubleEndedIterator<Item = (Tick, Ball)>, tick: f64) -> Option<f32> {
    let mut after = None;
    // From the back: most recent ticks are asked for, and no others are read.
    for (at, ball) in samples.rev() {
        let at = at.0 as f64;
        if at > tick {
            after = Some((at, ball.height));
            continue;
        }
        let (next, height) = after?;
        let share = ((tick - at) / (next - at)) as f32;
        return Some(ball.height + (height - ball.height) * share);
    }
    None
}
