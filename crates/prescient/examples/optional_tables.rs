//! Entities that gain and lose tables while they live, as an ECS adds and removes components.
//!
//! A knight raises a shield and lowers it again, and is poisoned, which only the knight's own player
//! may see. All clients are local: `cargo run --release -p prescient --example optional_tables`.

use std::error::Error;

use prescient::{
    Candidate, Change, Client, ClientEvent, Observer, Schema, Server, ServerEvent, State,
    Visibility,
};

#[derive(State, Clone)]
struct Knight {
    #[state(step = 0.01, position)]
    x: f32,
    /// An optional table: a knight has it while this is `Some`. It costs nothing while it stays as
    /// it is, and nothing while there is none.
    #[state(table)]
    shield: Option<Shield>,
    #[state(table)]
    poison: Option<Poison>,
}

#[derive(State, Clone)]
struct Shield {
    strength: u8,
}

#[derive(State, Clone)]
struct Poison {
    doses: u8,
}

/// The indices of the tables: first the knight's own, then one per field.
const SHIELD: usize = 1;
const POISON: usize = 2;

/// Whoever sees an entity sees its optional tables, unless the policy leaves them out.
fn policy(observer: &Observer, candidate: &Candidate, _: Option<Visibility>) -> Option<Visibility> {
    Some(match candidate.owner == Some(observer.peer) {
        true => Visibility::FULL,
        false => Visibility::PUBLIC.without_table(POISON),
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut server = Server::offline(Schema::of::<Knight>()?, policy)?;
    let mut clients = [
        ("player", server.local_client()),
        ("stranger", server.local_client()),
    ];
    let Some(ServerEvent::Joined { peer, .. }) = server.poll() else {
        return Err("the player has not joined".into());
    };
    let mut knight = Knight {
        x: 0.0,
        shield: None,
        poison: None,
    };
    let entity = server.step()?.spawn_for(peer, &knight)?;
    for tick in 0..40 {
        while server.poll().is_some() {}
        let mut step = server.step()?;
        match tick {
            // With a derived type the value says which tables there are.
            10 => knight.shield = Some(Shield { strength: 50 }),
            20 => knight.shield = None,
            // An ECS tells of each component by itself: added, changed or removed.
            15 => {
                let poison = Poison { doses: 3 };
                step.set_table(entity.entity_ref(), POISON, &poison.to_parcel("default"))?;
                knight.poison = Some(poison);
            }
            25 => {
                step.remove_table(entity.entity_ref(), POISON)?;
                knight.poison = None;
            }
            _ => {}
        }
        knight.x += 0.1;
        step.set(entity, &knight)?;
        step.finish();
        server.send();
        for (name, client) in &mut clients {
            look(name, client);
        }
    }
    Ok(())
}

fn look(name: &str, client: &mut Client) {
    while let Some(event) = client.poll() {
        let (entity, table, verb) = match event {
            ClientEvent::Change(Change::TableAdded { entity, table }) => (entity, table, "has"),
            ClientEvent::Change(Change::TableRemoved { entity, table }) => (entity, table, "lost"),
            _ => continue,
        };
        let knight: Option<Knight> = client.get(entity);
        let knight = knight.expect("it is shown");
        let what = match table {
            SHIELD => format!("a shield {:?}", knight.shield.map(|shield| shield.strength)),
            _ => format!("poison {:?}", knight.poison.map(|poison| poison.doses)),
        };
        println!("{name}: the knight {verb} {what}");
    }
}
