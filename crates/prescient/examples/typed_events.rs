//! Events, questions and inputs are types, like state: a shot is told to those who see it, a price is
//! asked for, and a player steers.
//!
//! Both ends are in this process (`Server::offline`): `cargo run -p prescient --example typed_events`.

use std::error::Error;

use prescient::{Client, ClientEvent, Event, Everything, Ref, Schema, Server, ServerEvent, State};

#[derive(State)]
struct Ship {
    #[state(step = 0.01, position)]
    position: [f32; 2],
    name: String,
}

/// One `match` reads all of them. The delivery can differ by variant.
#[derive(Event)]
enum GameEvent {
    Shot {
        by: Ref<Ship>,
        at: Ref<Ship>,
        #[event(step = 0.5)]
        damage: f32,
    },
    Said {
        by: Ref<Ship>,
        text: String,
    },
    #[event(unreliable)]
    Splash(#[event(step = 0.1)] [f32; 2]),
}

/// A question names the type of its answer.
#[derive(Event)]
#[event(answer = Price)]
struct Ask {
    item: u8,
}

#[derive(Event)]
struct Price(u32);

#[derive(Event)]
struct Steer {
    #[event(step = 0.01)]
    rudder: f32,
    fire: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let schema = Schema::of::<Ship>()?.with_events::<(GameEvent, Ask, Price, Steer)>()?;
    let mut server = Server::offline(schema, Everything)?;
    let mut client = server.local_client();
    let ship = |name: &str, x| Ship {
        position: [x, 0.0],
        name: name.into(),
    };
    let ann = server.step()?.spawn(&ship("Ann", 1.0))?;
    let bob = server.step()?.spawn(&ship("Bob", 2.0))?;
    server.send();
    play(&mut server, &mut client, ann)?;

    server.broadcast(&GameEvent::Shot {
        by: ann,
        at: bob,
        damage: 12.5,
    })?;
    server.broadcast(&GameEvent::Splash([3.5, -1.0]))?;
    server.broadcast(&GameEvent::Said {
        by: bob,
        text: "ouch".into(),
    })?;
    // Bob sinks in the same tick; clients are told about him with his last state.
    server.step()?.despawn(bob)?;
    server.send();
    client.ask(&Ask { item: 7 })?;
    client.steer(&Steer {
        rudder: -0.5,
        fire: true,
    })?;
    play(&mut server, &mut client, ann)?;
    server.send();
    play(&mut server, &mut client, ann)
}

/// Handles what has arrived at both ends.
fn play(server: &mut Server, client: &mut Client, own: Ref<Ship>) -> Result<(), Box<dyn Error>> {
    while let Some(event) = client.poll() {
        match event {
            ClientEvent::Typed(event) => {
                if let Some(event) = event.read() {
                    show(client, event);
                }
            }
            ClientEvent::Replied(reply) => {
                let Price(price) = reply.read().ok_or("no price")?;
                println!("it costs {price}");
            }
            _ => {}
        }
    }
    while let Some(event) = server.poll() {
        match event {
            ServerEvent::Asked { peer, question } => {
                if let Some((Ask { item }, to)) = question.read() {
                    server.reply(peer, to, &Price(10 * u32::from(item)))?;
                }
            }
            ServerEvent::Input { peer, input, .. } => {
                if let Some(Steer { rudder, fire }) = server.read_input(peer, &input) {
                    println!("the player steers {rudder}, fires: {fire}");
                    server.tell_observers(own, &GameEvent::Splash([rudder, 0.0]))?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn show(client: &Client, event: GameEvent) {
    let ship = |ship| client.get::<Ship>(client.resolve(ship)?);
    let name = |it| ship(it).map_or("unknown".into(), |ship| ship.name);
    match event {
        GameEvent::Shot { by, at, damage } => println!("{} hits {}: {damage}", name(by), name(at)),
        GameEvent::Said { by, text } => println!("{} says {text}", name(by)),
        GameEvent::Splash([x, y]) => println!("a splash at {x}, {y}"),
    }
}
