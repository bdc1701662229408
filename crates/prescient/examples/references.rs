//! Entities that refer to each other: a missile is after a ship that the player cannot see yet.
//!
//! A reference is a value like any other. Until its entity is shown here it refers to nothing, and
//! then, by itself, to that object: `cargo run --release -p prescient --example references`.

use std::error::Error;

use prescient::{
    Change, Client, ClientEvent, Distance, Position, Ref, SchemaBuilder, Server, ServerEvent, State,
};

#[derive(State)]
struct Ship {
    #[state(step = 0.01, position)]
    position: [f32; 2],
    #[state(max_len = 16)]
    name: String,
}

#[derive(State)]
struct Missile {
    #[state(step = 0.01, position)]
    position: [f32; 2],
    /// Typed: the compiler does not let it be after another missile.
    target: Ref<Ship>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let schema = SchemaBuilder::new()
        .state::<Ship>()
        .state::<Missile>()
        .build()?;
    let mut server = Server::offline(schema, Distance::new(50.0, 60.0))?;
    let mut client = server.local_client();
    while let Some(event) = server.poll() {
        if let ServerEvent::Joined { peer, .. } = event {
            server.set_view_position(peer, Position([0.0; 3]))?;
        }
    }

    let mut ship = Ship {
        position: [100.0, 0.0],
        name: "Beagle".into(),
    };
    let mut missile = Missile {
        position: [0.0, 10.0],
        target: Ref::NONE,
    };
    let mut step = server.step()?;
    let prey = step.spawn(&ship)?;
    missile.target = prey;
    let hunter = step.spawn(&missile)?;
    step.finish();

    let mut after = String::new();
    for _ in 0..120 {
        // Takes in what the client has applied: who is not heard to apply anything is sent less.
        while server.poll().is_some() {}
        ship.position[0] -= 1.0;
        missile.position[0] += 0.25;
        let mut step = server.step()?;
        if ship.position[0] > 0.0 {
            step.set(prey, &ship)?;
        } else if ship.position[0] == 0.0 {
            // What refers to an entity does not keep it: the reference is empty from now on.
            step.despawn(prey.entity_ref())?;
        }
        step.set(hunter, &missile)?;
        step.finish();
        server.send();

        while let Some(event) = client.poll() {
            match event {
                ClientEvent::Change(Change::Created(entity)) => {
                    if let Some(Ship { name, position }) = client.get(entity) {
                        println!("the {name} comes into sight at {}", position[0]);
                    }
                }
                ClientEvent::Change(Change::Removed(_)) => println!("the ship is gone"),
                ClientEvent::Left(reason) => return Err(reason.into()),
                _ => {}
            }
        }
        for missile in client.entities().filter_map(|entity| client.get(entity)) {
            let now = target(&client, &missile);
            if now != after {
                println!("a missile at {} is after {now}", missile.position[0]);
                after = now;
            }
        }
    }
    Ok(())
}

/// What a missile is after, as far as the client can tell.
fn target(client: &Client, missile: &Missile) -> String {
    let ship = client.resolve(missile.target.entity_ref());
    match ship.and_then(|ship| client.get::<Ship>(ship)) {
        Some(ship) => format!("the {}", ship.name),
        None => "something unknown".into(),
    }
}
