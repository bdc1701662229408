//! What physics moves can be shown in the server's present: the newest state is simulated from its
//! tick to now: `cargo run -p prescient --example simulate`.

use std::error::Error;
use std::time::Duration;

use prescient::{ClientEvent, Everything, Schema, Server, ServerOptions, State};

#[derive(State, Clone)]
struct Ball {
    #[state(step = 0.001, converge = "cubic")]
    height: f64,
    #[state(step = 0.001)]
    speed: f64,
}

/// The physics, which both ends have.
fn fall(ball: &mut Ball, seconds: f64) {
    ball.height += (ball.speed - 5.0 * seconds) * seconds;
    ball.speed -= 10.0 * seconds;
    if ball.height < 0.0 {
        (ball.height, ball.speed) = (-ball.height, -ball.speed);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let tick = Duration::from_millis(50);
    let options = ServerOptions::default().with_tick_interval(tick);
    let mut server = Server::offline_with(Schema::of::<Ball>()?, Everything, options)?;
    let mut client = server.local_client();
    let mut ball = Ball {
        height: 5.0,
        speed: 0.0,
    };
    let entity = server.step()?.spawn(&ball)?;
    let mut is_simulated = false;
    for _ in 0..20 {
        server.next_tick();
        while server.poll().is_some() {}
        fall(&mut ball, tick.as_secs_f64());
        server.step()?.set(entity, &ball)?;
        server.send();
        client.wait(tick / 2);
        while let Some(event) = client.poll() {
            if let ClientEvent::Left(reason) = event {
                return Err(reason.into());
            }
        }
        let Some(shown) = client.entities().next() else {
            continue;
        };
        if !is_simulated {
            is_simulated = true;
            client.simulate(shown, |ball: &mut Ball, from, to| {
                fall(ball, (to - from).as_secs_f64());
            })?;
        }
        if let Some(frame) = client.begin_frame()
            && let Some(Ball { height, .. }) = client.shown(shown)
        {
            println!("tick {:.2}: height {height:.3}", frame.present);
        }
    }
    Ok(())
}
