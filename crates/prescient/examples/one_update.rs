//! One value on its way from a server to a client over a socket of this machine.
//!
//! `.ci/way_of_an_update` runs it under callgrind and lists the source files that take part.

use std::thread;
use std::time::Duration;

use prescient::{
    Change, Client, ClientEvent, EntityHandle, Everything, Ref, Schema, Server, State,
};

#[derive(State, Clone, Debug, PartialEq)]
struct Crate {
    #[state(step = 0.01, position)]
    position: [f32; 3],
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let schema = || Schema::of::<Crate>();
    let mut server = Server::loopback("127.0.0.1:0", schema()?, Everything)?;
    let mut state = Crate {
        position: [0.0, 100.0, 0.0],
    };
    let entity = server.step()?.spawn(&state)?;
    let address = server.address().ok_or("no socket")?.to_string();
    let joining =
        thread::spawn(move || -> Result<_, Failure> { Ok(Client::loopback(&address, schema()?)?) });
    while !joining.is_finished() {
        server.next_tick();
        while server.poll().is_some() {}
        server.send();
    }
    let mut client = joining.join().map_err(|_| "joining failed")??;
    // A second to learn.
    for _ in 0..30 {
        server.next_tick();
        while server.poll().is_some() {}
        state.position[1] -= 0.3;
        server.step()?.set(entity, &state)?;
        server.send();
        changed(&mut client);
    }
    // A surprise, so that it is coded.
    state.position[1] = 250.0;
    let seen = update(&mut server, entity, &state, &mut client)?;
    println!("set {:?}, shown {:?}", state.position, seen.position);
    Ok(())
}

/// From `set` to `get`.
#[inline(never)]
fn update(
    server: &mut Server,
    entity: Ref<Crate>,
    state: &Crate,
    client: &mut Client,
) -> Result<Crate, Failure> {
    server.step()?.set(entity, state)?;
    server.send();
    for _ in 0..1000 {
        client.wait(Duration::from_millis(1));
        if let Some(entity) = changed(client)
            && let Some(seen) = client.get::<Crate>(entity)
            && seen == *state
        {
            return Ok(seen);
        }
    }
    Err("it did not arrive within a second".into())
}

/// The entity of the last change, if there was one.
fn changed(client: &mut Client) -> Option<EntityHandle> {
    let mut entity = None;
    while let Some(event) = client.poll() {
        if let ClientEvent::Change(Change::Created(it) | Change::Updated(it)) = event {
            entity = Some(it);
        }
    }
    entity
}
