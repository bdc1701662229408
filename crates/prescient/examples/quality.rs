//! Precision and rate by priority: what matters least is sent coarser and more rarely.
//!
//! Twelve birds fly around the player's own ship. The ship has priority 0 and is never degraded; the
//! birds declare priority 3. All is in one process, so there is no waiting: `cargo run --release -p
//! prescient --example quality`.

use std::error::Error;

use prescient::{
    Client, ClientEvent, Everything, PeerId, Priority, Quality, Ref, Schema, SchemaBuilder, Server,
    ServerEvent, State,
};

#[derive(State, Clone)]
struct Ship {
    #[state(step = 0.01, position)]
    x: f32,
}

#[derive(State, Clone)]
#[state(priority = 3)]
struct Bird {
    /// At the four levels 0, 4, 6 and 8 bits are rounded away: steps of 0.01, 0.16, 0.64 and 2.56.
    #[state(step = 0.01, position, levels(0, 4, 6, 8))]
    x: f32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let schema: Schema = SchemaBuilder::new()
        .state::<Ship>()
        .state::<Bird>()
        .build()?;
    let mut server = Server::offline(schema, Everything)?;
    let mut client = server.local_client();
    let peer = joined(&mut server).ok_or("nobody joined")?;

    let mut step = server.step()?;
    let mut ship = Ship { x: 0.0 };
    let own = step.spawn(&ship)?;
    let mut birds: Vec<(Ref<Bird>, Bird)> = Vec::new();
    for number in 0..12u8 {
        let bird = Bird {
            x: f32::from(number),
        };
        birds.push((step.spawn(&bird)?, bird));
    }
    drop(step);

    let last = Priority::new(3).ok_or("there are four priorities")?;
    let qualities = [
        ("full", Quality::FULL),
        ("coarser", Quality::FULL.with_level_bias(last, 2)),
        ("rarer", Quality::FULL.with_rate_divisor(last, 4)),
        ("full", Quality::FULL),
    ];
    for (name, quality) in qualities {
        server.set_quality(peer, quality)?;
        let mut current = 0;
        for _ in 0..20 {
            while server.poll().is_some() {}
            let mut step = server.step()?;
            ship.x += 0.11;
            step.set(own, &ship)?;
            for (entity, bird) in &mut birds {
                bird.x += 0.37;
                step.set(*entity, bird)?;
            }
            drop(step);
            server.send();
            poll(&mut client)?;
            current = current_birds(&client);
        }
        let (ship_error, bird_error) = errors(&client, &ship, &birds);
        println!(
            "{name}: {current} of 12 birds are of this tick, off by {bird_error:.2} at most, the \
             ship by {ship_error:.2}"
        );
    }
    Ok(())
}

/// The birds whose values are those of the newest tick.
fn current_birds(client: &Client) -> usize {
    let birds = client.entities();
    let birds = birds.filter(|&entity| client.get::<Bird>(entity).is_some());
    let current = |entity: &_| client.tick_of(*entity) == client.tick();
    birds.filter(current).count()
}

/// By how much the ship differs from the truth, and the birds of the newest tick at most.
fn errors(client: &Client, ship: &Ship, birds: &[(Ref<Bird>, Bird)]) -> (f32, f32) {
    let mut ship_error = 0.0;
    let mut bird_error = 0f32;
    for entity in client.entities() {
        if let Some(shown) = client.get::<Ship>(entity) {
            ship_error = (shown.x - ship.x).abs();
        }
        if let Some(shown) = client.get::<Bird>(entity)
            && client.tick_of(entity) == client.tick()
        {
            let distances = birds.iter().map(|(_, bird)| (bird.x - shown.x).abs());
            bird_error = bird_error.max(distances.fold(f32::MAX, f32::min));
        }
    }
    (ship_error, bird_error)
}

fn poll(client: &mut Client) -> Result<(), Box<dyn Error>> {
    while let Some(event) = client.poll() {
        if let ClientEvent::Left(reason) = event {
            return Err(reason.into());
        }
    }
    Ok(())
}

fn joined(server: &mut Server) -> Option<PeerId> {
    let mut events = std::iter::from_fn(|| server.poll());
    events.find_map(|event| match event {
        ServerEvent::Joined { peer, .. } => Some(peer),
        _ => None,
    })
}
