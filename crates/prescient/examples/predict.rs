//! Prediction: a key moves the client's own tank in the same frame, and the server has the last
//! word: `cargo run -p prescient --example predict`.

use std::error::Error;

use prescient::{ClientEvent, Everything, Input, Schema, Server, ServerEvent, State};

#[derive(State, Clone)]
#[state(predicted)]
struct Tank {
    #[state(step = 0.01, position, snap_beyond = 5.0)]
    x: f64,
}

/// What a tick of input does to a tank; both ends have this code.
fn drive(tank: &mut Tank, input: &Input) {
    match input.keys_down.bits() {
        RIGHT => tank.x += 0.5,
        LEFT => tank.x -= 0.5,
        _ => {}
    }
}

const RIGHT: u64 = 1;
const LEFT: u64 = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let mut server = Server::offline(Schema::of::<Tank>()?, Everything)?;
    let mut client = server.local_client();
    let mut tank = Tank { x: 0.0 };
    let entity = server.step()?.spawn(&tank)?;
    server.send();
    while let Some(event) = client.poll() {
        if let ClientEvent::Left(reason) = event {
            return Err(reason.into());
        }
    }
    let own = client.entities().next().ok_or("no tank")?;
    client.predict(own, drive)?;
    for tick in 0..12 {
        client.press(if tick < 8 { RIGHT } else { LEFT })?;
        client.begin_frame();
        let shown: Tank = client.shown(own).ok_or("no tank")?;
        println!(
            "input {tick}: shown at {:.2}, at the server {:.2}",
            shown.x, tank.x
        );
        while let Some(event) = server.poll() {
            if let ServerEvent::Input { input, .. } = event {
                drive(&mut tank, &input);
            }
        }
        if tick == 5 {
            // Nobody could know that.
            tank.x -= 1.0;
            println!("the server pushes it back");
        }
        server.step()?.set(entity, &tank)?;
        server.send();
        while client.poll().is_some() {}
    }
    let statistics = client.prediction_statistics(own).ok_or("not predicted")?;
    println!(
        "{} states compared, {} corrected",
        statistics.confirmed, statistics.corrected
    );
    Ok(())
}
