//! Records a server in one line, and plays the recording backwards.
//!
//! `cargo run --release -p prescient --example record`

use std::error::Error;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use prescient::recording::{Player, Recording};
use prescient::{Everything, Schema, Server, State};

#[derive(State, Clone, Debug)]
struct Lift {
    #[state(step = 0.01, position)]
    height: f32,
    #[state(max_len = 8)]
    name: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("lift-{}.prec", std::process::id()));
    let mut server = Server::offline(Schema::of::<Lift>()?, Everything)?;
    server.record(File::create(&path)?)?;
    let mut lift = Lift {
        height: 0.0,
        name: "north".into(),
    };
    let entity = server.step()?.spawn(&lift)?;
    server.send();
    for _ in 0..299 {
        lift.height += 0.1;
        server.step()?.set(entity, &lift)?;
        server.send();
    }
    if let Some(written) = server.stop_recording() {
        let written = written?;
        println!("{} ticks in {} bytes", written.ticks, written.bytes);
    }

    // The schema is in the file: nothing of this program is needed to open it.
    let recording = Arc::new(Recording::open(std::fs::read(&path)?)?);
    std::fs::remove_file(&path)?;
    let mut player = Player::new(recording);
    player.seek(u64::MAX)?;
    loop {
        for (id, _) in player.entities() {
            if let Some(Lift { height, name }) = player.get(id) {
                let seconds = player.time().as_secs_f64();
                println!("{seconds:4.1} s: lift {name} at {height:.1} m");
            }
        }
        if player.time().is_zero() {
            return Ok(());
        }
        // A second of real time, backwards at double speed.
        player.play(Duration::from_secs(1), -2.0)?;
    }
}
