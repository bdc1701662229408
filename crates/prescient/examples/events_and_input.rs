//! Players press keys, a server moves their walkers, and events: a player shouts, and all clients
//! that see the walker receive it. The keys are replicated with the entity (`#[state(keys)]`), so
//! other clients know them, too: `cargo run --release -p prescient --example events_and_input`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::error::Error;
use std::thread;
use std::time::Duration;

use prescient::{
    About, Change, Client, ClientEvent, CloseReason, Everything, PeerId, Ref, Schema, Server,
    ServerEvent, State,
};

#[derive(State, Clone, Default)]
struct Walker {
    #[state(step = 0.01, position)]
    x: f32,
    /// Filled in by the server: the keys that the entity's owner holds down.
    #[state(keys)]
    keys: u8,
}

/// One bit per key.
const RIGHT: u64 = 1;
const SHOUT: u64 = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::loopback("127.0.0.1:0", Schema::of::<Walker>()?, Everything)?;
    let address = server.address().expect("it has a socket").to_string();
    let serving = thread::spawn(|| serve(server).map_err(|error| error.to_string()));
    let watcher = Client::loopback(&address, Schema::of::<Walker>()?)?;
    let player = Client::loopback(&address, Schema::of::<Walker>()?)?;
    let watching = thread::spawn(|| watch(watcher));
    play(player);
    watching.join().expect("it does not panic")?;
    serving.join().expect("it does not panic")?;
    Ok(())
}

/// A client gets a walker with its first key press; the game ends when a walker reaches 5.
fn serve(mut server: Server) -> Result<(), Box<dyn Error>> {
    let mut walkers: BTreeMap<PeerId, (Ref<Walker>, Walker)> = BTreeMap::new();
    loop {
        server.wait(Duration::from_millis(20));
        while let Some(event) = server.poll() {
            let ServerEvent::Input { peer, input, .. } = event else {
                continue;
            };
            if let Entry::Vacant(vacant) = walkers.entry(peer) {
                let walker = Walker::default();
                vacant.insert((server.step()?.spawn_for(peer, &walker)?, walker));
            }
            // No key press is lost, however short it was.
            if input.pressed.bits() & SHOUT != 0 {
                server.send_entity_event(walkers[&peer].0.entity_ref(), b"hey!")?;
            }
        }
        for (owner, (_, walker)) in &mut walkers {
            // These keys are held down now.
            if server.keys(*owner) & RIGHT != 0 {
                walker.x += 0.25;
            }
        }
        let mut step = server.step()?;
        for (entity, walker) in walkers.values() {
            step.set(*entity, walker)?;
        }
        step.finish();
        server.send();
        if walkers.values().any(|(_, walker)| walker.x >= 5.0) {
            server.shut_down();
            return Ok(());
        }
    }
}

/// Walks, and shouts once on the way.
fn play(mut client: Client) {
    for tick in 0.. {
        let shout = if tick == 10 { SHOUT } else { 0 };
        // Fails once the server has shut down.
        if client.press(RIGHT | shout).is_err() {
            break;
        }
        client.wait(Duration::from_millis(20));
        while client.poll().is_some() {}
    }
}

/// Presses nothing, and prints what it sees.
fn watch(mut client: Client) -> Result<(), CloseReason> {
    let mut walks = false;
    loop {
        client.wait(Duration::from_millis(20));
        while let Some(event) = client.poll() {
            match event {
                ClientEvent::Change(Change::Created(_)) => println!("a walker appeared"),
                ClientEvent::Change(Change::Updated(entity)) => {
                    let keys = client.get(entity).map_or(0, |walker: Walker| walker.keys);
                    if u64::from(keys) & RIGHT != 0 && !std::mem::replace(&mut walks, true) {
                        println!("its player holds the right key down");
                    }
                }
                ClientEvent::Change(Change::Event {
                    about: About::Entity(_),
                    payload,
                    ..
                }) => {
                    println!("its player shouts {}", String::from_utf8_lossy(&payload));
                }
                ClientEvent::Left(CloseReason::ShuttingDown) => return Ok(()),
                ClientEvent::Left(reason) => return Err(reason),
                _ => {}
            }
        }
    }
}
