//! One stream of packets for any number of spectators, and for a recording.
//!
//! Players would join the server as usual. Spectators need no connection to it: whatever carries
//! bytes carries them. Here one watches from the start, one tunes in later, and one loses every
//! third packet; then the recording is played. `cargo run --release -p prescient --example
//! publish`.

use std::error::Error;

use prescient::{
    ClientConfig, Everything, PublishedPacket, PublisherConfig, Schema, Server, State,
    SubscribeError, Subscriber,
};

#[derive(State, Clone)]
struct Runner {
    #[state(step = 0.01, position)]
    x: f32,
    #[state(max_len = 8)]
    name: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let schema = Schema::of::<Runner>()?;
    let mut server = Server::offline(schema.clone(), Everything)?;
    // Spectators see what a policy of their own shows; no more than the first table here.
    let config = PublisherConfig::default()
        .with_snapshot_interval(10)
        .with_base_interval(10);
    let mut publisher = server.publisher(config, Everything)?;

    let mut runner = Runner {
        x: 0.0,
        name: "ann".into(),
    };
    let entity = server.step()?.spawn(&runner)?;
    let watch = || Subscriber::new(schema.clone(), ClientConfig::default());
    let mut spectators = [("early", watch()?), ("late", watch()?), ("lossy", watch()?)];
    let mut recording: Vec<PublishedPacket> = Vec::new();
    for number in 0..40u32 {
        runner.x += 0.5;
        server.step()?.set(entity, &runner)?;
        server.send();
        let packet = publisher.publish(server.world())?;
        for (who, spectator) in &mut spectators {
            let arrives = match *who {
                "late" => number >= 15,
                "lossy" => number % 3 != 0,
                _ => true,
            };
            if !arrives {
                continue;
            }
            match spectator.handle(&packet.bytes) {
                Ok(_) if number % 10 == 2 => println!("{who} sees {}", describe(spectator)),
                Ok(_) => {}
                // It begins with the next snapshot.
                Err(SubscribeError::MissingBase { base }) if number % 10 == 5 => {
                    println!("{who} waits: it lacks packet {base}");
                }
                Err(SubscribeError::MissingBase { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        recording.push(packet);
    }

    let mut player = watch()?;
    let from = recording.iter().position(|packet| packet.sequence == 21);
    for packet in &recording[from.expect("it was published")..][..5] {
        player.handle(&packet.bytes)?;
    }
    println!("the recording shows {}", describe(&player));
    Ok(())
}

fn describe(spectator: &Subscriber) -> String {
    let runners = spectator
        .entities()
        .filter_map(|entity| spectator.get::<Runner>(entity));
    let runners = runners.map(|runner| format!("{} at {}", runner.name, runner.x));
    runners.collect::<Vec<_>>().join(", ")
}
