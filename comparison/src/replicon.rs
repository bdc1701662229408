//! A bevy_replicon server and a client without sockets: messages are moved between their channels.
//!
//! One update of the server's app is timed: it handles acknowledgements, detects changes and writes
//! messages. Writing the components belongs to the game and is not timed, although our capture,
//! which copies the same values, is.

use std::{marker::PhantomData, time::Instant};

use bevy::{prelude::*, state::app::StatesPlugin};
use bevy_replicon::prelude::*;
use prescient_sim::world::Scene;

use crate::Played;

/// Splits a row into components.
pub trait Shape: 'static {
    /// Registers the replicated components.
    fn register(app: &mut App);

    /// Spawns an entity with these values.
    fn spawn(world: &mut World, row: &[i64]) -> Entity;

    /// Changes the components that differ, and no others.
    fn write(entity: EntityWorldMut, row: &[i64]);

    /// The values of all entities.
    fn rows(world: &mut World) -> Vec<Vec<i64>>;
}

pub struct Connection<S> {
    server: App,
    client: App,
    /// The client's entity at the server.
    peer: Entity,
    entities: Vec<Entity>,
    shape: PhantomData<S>,
}

impl<S: Shape> Connection<S> {
    pub fn new() -> Self {
        let mut server = App::new();
        let plugins = RepliconPlugins
            .set(ServerPlugin::new(PostUpdate))
            .disable::<ClientPlugin>()
            .disable::<ClientMessagePlugin>();
        server.add_plugins((MinimalPlugins, StatesPlugin, plugins));
        let mut client = App::new();
        let plugins = RepliconPlugins
            .build()
            .disable::<ServerPlugin>()
            .disable::<ServerMessagePlugin>();
        client.add_plugins((MinimalPlugins, StatesPlugin, plugins));
        for app in [&mut server, &mut client] {
            S::register(app);
            app.finish();
            app.cleanup();
        }
        let world = server.world_mut();
        world
            .resource_mut::<NextState<ServerState>>()
            .set(ServerState::Running);
        let peer = world.spawn(ConnectedClient { max_size: 1200 }).id();
        client
            .world_mut()
            .resource_mut::<NextState<ClientState>>()
            .set(ClientState::Connected);
        let mut connection = Self {
            server,
            client,
            peer,
            entities: Vec::new(),
            shape: PhantomData,
        };
        // The client connects, and the server accepts it.
        for _ in 0..3 {
            connection.client.update();
            connection.deliver_to_server();
            connection.server.update();
            connection.deliver_to_client();
        }
        let peer = connection.server.world().entity(peer);
        assert!(peer.contains::<AuthorizedClient>());
        connection
    }

    pub fn play(&mut self, scene: &Scene) -> Played {
        let world = self.server.world_mut();
        for &number in &scene.despawned {
            world.despawn(self.entities[number]);
        }
        for (_, row) in &scene.spawned {
            self.entities.push(S::spawn(world, row));
        }
        for (number, row) in &scene.changed {
            S::write(world.entity_mut(self.entities[*number]), row);
        }
        self.deliver_to_server();

        let started = Instant::now();
        self.server.update();
        let time = started.elapsed();

        let bytes = self.deliver_to_client();
        self.client.update();
        Played { bytes, time }
    }

    /// The client's rows, sorted.
    pub fn shown(&mut self) -> Vec<Vec<i64>> {
        let mut rows = S::rows(self.client.world_mut());
        rows.sort_unstable();
        rows
    }

    fn deliver_to_client(&mut self) -> usize {
        let mut sent = self.server.world_mut().resource_mut::<ServerMessages>();
        let mut received = self.client.world_mut().resource_mut::<ClientMessages>();
        let mut bytes = 0;
        for (_, channel, message) in sent.drain_sent() {
            bytes += message.len();
            received.insert_received(channel, message);
        }
        bytes
    }

    fn deliver_to_server(&mut self) {
        let mut sent = self.client.world_mut().resource_mut::<ClientMessages>();
        let mut received = self.server.world_mut().resource_mut::<ServerMessages>();
        for (channel, message) in sent.drain_sent() {
            received.insert_received(self.peer, channel, message);
        }
    }
}

/// Writes a component if its value differs.
pub fn update<C>(entity: &mut EntityWorldMut, value: C)
where
    C: Component<Mutability = bevy::ecs::component::Mutable> + PartialEq,
{
    if let Some(mut component) = entity.get_mut::<C>() {
        component.set_if_neq(value);
    }
}
