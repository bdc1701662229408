//! An input buffer: inputs that arrive in bunches are applied one per tick, and the client is told
//! to speed up or slow down: `cargo run -p prescient --example input_buffer`.

use std::error::Error;
use std::time::Duration;

use prescient::playout::{InputBufferConfig, Nudge, TickRate};
use prescient::{Everything, Schema, Server, ServerEvent, ServerOptions, State};

#[derive(State)]
struct Tank {
    #[state(step = 0.01, position)]
    x: f32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let tick = Duration::from_millis(5);
    let buffer = InputBufferConfig::default().with_window(20);
    let options = ServerOptions::default()
        .with_tick_interval(tick)
        .with_input_buffer(buffer);
    let mut server = Server::offline_with(Schema::of::<Tank>()?, Everything, options)?;
    let mut client = server.local_client();
    let mut rate = TickRate::new(tick);
    while server.poll().is_some() {}
    for number in 0..60 {
        // Three inputs at once, every third tick.
        if number % 3 == 0 {
            for _ in 0..3 {
                client.press(number / 3 % 2)?;
            }
        }
        server.next_tick();
        let mut inputs = 0;
        while let Some(event) = server.poll() {
            inputs += u32::from(matches!(event, ServerEvent::Input { .. }));
        }
        while let Some((peer, Nudge(nudge))) = server.poll_nudge() {
            // A game sends the byte to that client in an event.
            rate.handle_nudge(Nudge(nudge));
            println!("{peer:?} is to tick every {:?}", rate.interval());
        }
        if number % 10 == 0 {
            println!("tick {number}: {inputs} inputs applied");
        }
        server.step()?.finish();
        server.send();
        while client.poll().is_some() {}
    }
    Ok(())
}
