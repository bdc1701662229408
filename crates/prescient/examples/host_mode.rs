//! A game that one of its players hosts: the host has a local client at the server, a guest comes through
//! the network, and both run the very same code: `cargo run --release -p prescient --example host_mode`.

use std::error::Error;
use std::thread;
use std::time::Duration;

use prescient::{
    About, Change, Client, ClientEvent, ClientId, CloseReason, Everything, Schema, Server,
    ServerEvent, State,
};

#[derive(State, Clone)]
struct Runner {
    #[state(step = 0.01, position)]
    x: f32,
    #[state(max_len = 16)]
    name: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    // For friends elsewhere this would be `Server::bind`, and the guest would bring a token.
    let mut server = Server::loopback("127.0.0.1:0", Schema::of::<Runner>()?, Everything)?;
    let address = server.address().expect("it has a socket").to_string();
    let host = server.local_client_as(ClientId(1), Vec::new());
    let guest = thread::spawn(move || {
        let client = Client::loopback(&address, Schema::of::<Runner>().expect("as above"));
        play(client.expect("the server runs"), "guest")
    });
    let host = thread::spawn(move || play(host, "host"));
    serve(server)?;
    host.join().expect("it does not panic")?;
    guest.join().expect("it does not panic")?;
    Ok(())
}

/// Everybody who is named has a runner; the first at 10 wins.
fn serve(mut server: Server) -> Result<(), Box<dyn Error>> {
    let mut runners = Vec::new();
    let mut over = false;
    while !(over && runners.is_empty()) {
        server.wait(Duration::from_millis(10));
        while let Some(event) = server.poll() {
            match event {
                ServerEvent::Event { peer, payload, .. } => {
                    let name = String::from_utf8_lossy(&payload).into_owned();
                    let runner = Runner { x: 0.0, name };
                    let entity = server.step()?.spawn_for(peer, &runner)?;
                    runners.push((peer, entity, runner));
                }
                ServerEvent::Left { peer, .. } => runners.retain(|(other, ..)| *other != peer),
                _ => {}
            }
        }
        if runners.len() == 2 && !over {
            for (_, _, runner) in &mut runners {
                runner.x += if runner.name == "host" { 0.25 } else { 0.2 };
            }
            let mut step = server.step()?;
            for (_, entity, runner) in &runners {
                step.set(*entity, runner)?;
            }
            step.finish();
            if let Some((_, winner, _)) = runners.iter().find(|(.., runner)| runner.x >= 10.0) {
                server.send_entity_event(winner.entity_ref(), b"wins")?;
                over = true;
            }
        } else {
            server.step()?.finish();
        }
        server.send();
    }
    server.shut_down();
    Ok(())
}

/// What a player does, with a socket or without.
fn play(mut client: Client, name: &str) -> Result<(), CloseReason> {
    client
        .send_event(None, name.as_bytes())
        .expect("it has joined");
    loop {
        client.wait(Duration::from_millis(10));
        while let Some(event) = client.poll() {
            match event {
                ClientEvent::Change(Change::Created(entity)) => {
                    if let Some(runner) = client.get::<Runner>(entity) {
                        println!("{name} sees {}", runner.name);
                    }
                }
                ClientEvent::Change(Change::Event {
                    about: About::Entity(entity),
                    ..
                }) => {
                    if let Some(winner) = client.get::<Runner>(entity) {
                        println!("{name} sees that {} wins at {}", winner.name, winner.x);
                    }
                    client.leave();
                    return Ok(());
                }
                ClientEvent::Left(reason) => return Err(reason),
                _ => {}
            }
        }
    }
}
