//! A box slides to and fro on a server, and a client draws it: `cargo run -p prescient --example
//! simple_box`. `simple_box_alone` is the same game without a network. Both ends are in one program
//! here; in two programs, each takes its own lines of `main`.

use std::error::Error;

use prescient::{Client, Everything, Schema, Server, State, loopback_token};

#[derive(State)]
struct Slider {
    #[state(step = 0.01, position)]
    position: [f32; 2],
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut server = Server::loopback("127.0.0.1:0", Schema::of::<Slider>()?, Everything)?;
    let address = server.address().ok_or("no socket")?.to_string();
    let mut client = Client::start(loopback_token(&address)?, Schema::of::<Slider>()?)?;
    let mut sliding = Slider {
        position: [0.0, 1.0],
    };
    let entity = server.step()?.spawn(&sliding)?;
    for tick in 0..90 {
        server.next_tick();
        while server.poll().is_some() {}
        sliding.position[0] = (tick as f32 * 0.1).sin() * 5.0;
        server.step()?.set(entity, &sliding)?;
        server.send();
        while client.poll().is_some() {}
        client.all().for_each(|(_, slider)| draw(&slider));
    }
    Ok(())
}

fn draw(slider: &Slider) {
    println!("{:>1$}", "#", (slider.position[0] * 6.0 + 40.0) as usize);
}
