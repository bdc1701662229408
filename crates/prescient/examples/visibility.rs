//! Visibility by distance and by team, and values that only their owner sees.
//!
//! Two friends stand at 0 and at 100, and a stranger walks past both. All of them are local clients
//! (`Server::offline`), so there is no waiting: `cargo run --release -p prescient --example
//! visibility`.

use std::error::Error;

use prescient::{
    Candidate, Client, ClientEvent, Distance, EntityHandle, Observer, PeerId, Ref, Relevance,
    Schema, Server, ServerEvent, State, Visibility,
};

/// A type may have several tables. All peers that see an entity see the first, which has the fields
/// that name none; the others are for its owner, unless a `Relevance` policy decides otherwise.
#[derive(State, Clone)]
#[state(tables(public, private))]
struct Scout {
    #[state(step = 0.01, position)]
    x: f32,
    #[state(max_len = 8)]
    name: String,
    #[state(tables(private))]
    arrows: u16,
}

/// Shows near entities, and those of friends at any distance.
struct NearOrFriend(Distance);

impl Relevance for NearOrFriend {
    fn visibility(
        &self,
        observer: &Observer,
        candidate: &Candidate,
        seen: Option<Visibility>,
    ) -> Option<Visibility> {
        let near = self.0.visibility(observer, candidate, seen);
        let is_friend = observer.shares_team(candidate);
        near.or(is_friend.then(|| Visibility::default_for(observer, candidate)))
    }

    fn reach(&self, observer: &Observer) -> Option<f64> {
        self.0.reach(observer)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // Visible within 20, until farther than 25, so that nothing flickers at the edge.
    let policy = NearOrFriend(Distance::new(20.0, 25.0)?);
    let mut server = Server::offline(Schema::of::<Scout>()?, policy)?;
    let mut clients = [
        server.local_client(),
        server.local_client(),
        server.local_client(),
    ];
    let peers = joined(&mut server);

    let mut scouts: Vec<(Ref<Scout>, Scout)> = Vec::new();
    let positions = [("ann", 0.0, 1), ("bob", 100.0, 1), ("eve", -50.0, 2)];
    for (&peer, (name, x, team)) in peers.iter().zip(positions) {
        let name = name.into();
        let scout = Scout { x, name, arrows: 7 };
        let entity = server.step()?.spawn_for(peer, &scout)?;
        // The view position and team of the player.
        server.follow(peer, entity.entity_ref())?;
        server.set_team(peer, team)?;
        scouts.push((entity, scout));
    }

    let mut shown = vec![String::new(); 3];
    for _ in 0..200 {
        // Handles acknowledgements: a client that acknowledges nothing is sent less.
        while server.poll().is_some() {}
        let (eve, scout) = &mut scouts[2];
        scout.x += 1.0;
        server.step()?.set(*eve, scout)?;
        server.send();
        for (number, client) in clients.iter_mut().enumerate() {
            while let Some(event) = client.poll() {
                if let ClientEvent::Left(reason) = event {
                    return Err(reason.into());
                }
            }
            let seen = client.entities().map(|entity| describe(client, entity));
            let mut seen: Vec<_> = seen.collect();
            seen.sort();
            let seen = seen.join(", ");
            if shown[number] != seen {
                let (eve, who) = (scouts[2].1.x, &scouts[number].1.name);
                println!("eve is at {eve:>3}: {who} sees {seen}");
                shown[number] = seen;
            }
        }
    }
    Ok(())
}

fn describe(client: &Client, entity: EntityHandle) -> String {
    let name = client.get::<Scout>(entity).map(|scout| scout.name);
    // `None` if the table is not visible.
    let private: Option<Scout> = client.get_table(entity, "private");
    let arrows = private.map(|scout| format!(" and {} arrows", scout.arrows));
    name.unwrap_or_default() + &arrows.unwrap_or_default()
}

fn joined(server: &mut Server) -> Vec<PeerId> {
    let events = std::iter::from_fn(|| server.poll());
    let joined = events.filter_map(|event| match event {
        ServerEvent::Joined { peer, .. } => Some(peer),
        _ => None,
    });
    joined.collect()
}
