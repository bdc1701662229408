//! Entities that refer to each other: a missile targets a ship that the player cannot see yet.
//!
//! A reference is a value like any other. At a client it resolves to nothing until the entity is
//! visible, and then, by itself, to that entity: `cargo run --release -p prescient --example
//! references`.

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
    /// Typed: the compiler refuses another missile as target.
    target: Ref<Ship>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let schema = SchemaBuilder::new()
        .state::<Ship>()
        .state::<Missile>()
        .build()?;
    let mut server = Server::offline(schema, Distance::new(50.0, 60.0)?)?;
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
        // Handles acknowledgements: a client that acknowledges nothing is sent less.
        while server.poll().is_some() {}
        ship.position[0] -= 1.0;
        missile.position[0] += 0.25;
        let mut step = server.step()?;
        if ship.position[0] > 0.0 {
            step.set(prey, &ship)?;
        } else if ship.position[0] == 0.0 {
            // A reference does not keep its entity alive: it is empty from now on.
            step.despawn(prey.entity_ref())?;
        }
        step.set(hunter, &missile)?;
        step.finish();
        server.send();

        while let Some(event) = client.poll() {
            match event {
                ClientEvent::Change(Change::Created(entity)) => {
                    if let Some(Ship { name, position }) = client.get(entity) {
                        println!("the {name} becomes visible at {}", position[0]);
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

/// The target of a missile, as far as the client knows it.
fn target(client: &Client, missile: &Missile) -> String {
    let ship = client.resolve(missile.target.entity_ref());
    match ship.and_then(|ship| client.get::<Ship>(ship)) {
        Some(ship) => format!("the {}", ship.name),
        None => "something unknown".into(),
    }
}
