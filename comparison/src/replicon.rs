//! A bevy_replicon server and clients without sockets: messages are moved between their channels.
//!
//! One update of the server's app is timed: it handles acknowledgements, detects changes and writes
//! messages. Writing the components belongs to the game and is not timed, although our capture,
//! which copies the same values, is.

use std::{marker::PhantomData, time::Instant};

use bevy::{prelude::*, state::app::StatesPlugin};
use bevy_replicon::prelude::*;
use bytes::Bytes;
use prescient_sim::world::Scene;

use crate::{
    Method, Played, View,
    link::{Link, UnderWay},
};

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

pub struct Connections<S> {
    server: App,
    peers: Vec<Peer>,
    entities: Vec<Entity>,
    link: Link,
    tick: usize,
    shape: PhantomData<S>,
}

struct Peer {
    client: App,
    /// The client's entity at the server.
    entity: Entity,
    down: UnderWay<(usize, Bytes)>,
    up: UnderWay<(usize, Bytes)>,
}

impl<S: Shape> Connections<S> {
    pub fn new(views: &[View], link: Link) -> Self {
        let mut server = App::new();
        let plugins = RepliconPlugins
            .set(ServerPlugin::new(PostUpdate))
            .disable::<ClientPlugin>()
            .disable::<ClientMessagePlugin>();
        server.add_plugins((MinimalPlugins, StatesPlugin, plugins));
        S::register(&mut server);
        if views.len() > 1 {
            server.add_visibility_filter::<Number>();
        }
        server.finish();
        server.cleanup();
        let world = server.world_mut();
        world
            .resource_mut::<NextState<ServerState>>()
            .set(ServerState::Running);
        let peer = |&view: &View| {
            let connected = (ConnectedClient { max_size: 1200 }, Visible(view));
            Peer {
                client: client::<S>(),
                entity: world.spawn(connected).id(),
                down: UnderWay::default(),
                up: UnderWay::default(),
            }
        };
        let mut connections = Self {
            peers: views.iter().map(peer).collect(),
            server,
            entities: Vec::new(),
            link: Link::default(),
            tick: 0,
            shape: PhantomData,
        };
        // The clients connect, and the server accepts them.
        for _ in 0..3 {
            connections.send_to_clients(true);
            connections.update_clients(true);
            connections.deliver_to_server();
            connections.server.update();
        }
        connections.send_to_clients(true);
        connections.link = link;
        for Peer { entity, .. } in &connections.peers {
            let peer = connections.server.world().entity(*entity);
            assert!(peer.contains::<AuthorizedClient>());
        }
        connections
    }

    fn deliver_to_server(&mut self) {
        let mut received = self.server.world_mut().resource_mut::<ServerMessages>();
        for peer in &mut self.peers {
            while let Some((channel, message)) = peer.up.receive(self.tick) {
                received.insert_received(peer.entity, channel, message);
            }
        }
    }

    /// Only mutations and their acknowledgements can be lost: the other channels are reliable, and
    /// what repeating takes is not counted.
    fn send_to_clients(&mut self, link_is_good: bool) -> usize {
        let mut sent = self.server.world_mut().resource_mut::<ServerMessages>();
        let mut bytes = 0;
        for (entity, channel, message) in sent.drain_sent() {
            bytes += message.len();
            let found = self.peers.iter().position(|peer| peer.entity == entity);
            let at = found.expect("the client is connected");
            let is_lost = channel == usize::from(ServerChannel::Mutations)
                && !link_is_good
                && self.link.loses(at, self.tick, false);
            if !is_lost {
                let due = self.tick + self.link.delay;
                self.peers[at].down.send(due, (channel, message));
            }
        }
        bytes
    }

    fn update_clients(&mut self, link_is_good: bool) {
        for (at, peer) in self.peers.iter_mut().enumerate() {
            let world = peer.client.world_mut();
            let mut received = world.resource_mut::<ClientMessages>();
            while let Some((channel, message)) = peer.down.receive(self.tick) {
                received.insert_received(channel, message);
            }
            peer.client.update();
            let is_lost = !link_is_good && self.link.loses(at, self.tick, true);
            let world = peer.client.world_mut();
            let mut sent = world.resource_mut::<ClientMessages>();
            for (channel, message) in sent.drain_sent() {
                if !(is_lost && channel == usize::from(ClientChannel::MutationAcks)) {
                    let due = self.tick + self.link.delay;
                    peer.up.send(due, (channel, message));
                }
            }
        }
    }
}

fn client<S: Shape>() -> App {
    let mut client = App::new();
    let plugins = RepliconPlugins
        .build()
        .disable::<ServerPlugin>()
        .disable::<ServerMessagePlugin>();
    client.add_plugins((MinimalPlugins, StatesPlugin, plugins));
    S::register(&mut client);
    client.finish();
    client.cleanup();
    client
        .world_mut()
        .resource_mut::<NextState<ClientState>>()
        .set(ClientState::Connected);
    client
}

impl<S: Shape> Method for Connections<S> {
    fn play(&mut self, scene: &Scene, link_is_good: bool) -> Played {
        self.tick += 1;
        let world = self.server.world_mut();
        for &number in &scene.despawned {
            world.despawn(self.entities[number]);
        }
        for (_, row) in &scene.spawned {
            let entity = S::spawn(world, row);
            let number = Number(self.entities.len());
            world.entity_mut(entity).insert(number);
            self.entities.push(entity);
        }
        for (number, row) in &scene.changed {
            S::write(world.entity_mut(self.entities[*number]), row);
        }
        self.deliver_to_server();

        let started = Instant::now();
        self.server.update();
        let time = started.elapsed();

        let bytes = self.send_to_clients(link_is_good);
        self.update_clients(link_is_good);
        Played { bytes, time }
    }

    fn shown(&mut self, client: usize) -> Vec<Vec<i64>> {
        let mut rows = S::rows(self.peers[client].client.world_mut());
        rows.sort_unstable();
        rows
    }
}

/// The number of an entity, by which it is visible or not.
#[derive(Component)]
#[component(immutable)]
struct Number(usize);

/// What a client sees.
#[derive(Component)]
#[component(immutable)]
struct Visible(View);

impl VisibilityFilter for Number {
    type ClientComponent = Visible;
    type Scope = Entity;

    fn is_visible(&self, _client: Entity, visible: Option<&Visible>) -> bool {
        visible.is_some_and(|visible| visible.0.contains(self.0))
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
