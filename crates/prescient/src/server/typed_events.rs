//! Events, questions and inputs of the program's own types.

use prescient_channels::Input;
use prescient_replication::{EventError, PeerId, QuestionId, ReplyTo};
use prescient_schema::{EntityRef, Event, Request};

use crate::server::Server;
use crate::worlds::WorldId;

/// Typed events. The types are part of the schema
/// ([`Schema::with_events`](prescient_schema::Schema::with_events)), so both ends have the same ones.
///
/// Events leave with the next [`send`](Self::send). An entity that an event names is one that the
/// receiving client can see; the event waits until the client knows the entity, and the reference is
/// empty if the client does not see it. An event about an entity that is despawned in the same tick
/// arrives with its last state: [`Client::get`](crate::Client::get) returns it while the event is
/// handled.
impl Server {
    /// Sends all peers of the first world an event.
    ///
    /// ```
    /// use prescient::{ClientEvent, Event, Everything, Ref, Schema, Server, State};
    ///
    /// #[derive(State)]
    /// struct Tank { #[state(step = 0.01)] x: f32 }
    ///
    /// #[derive(Event, Debug, PartialEq)]
    /// struct Kill { victim: Ref<Tank>, #[event(step = 0.5)] damage: f32 }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let schema = Schema::of::<Tank>()?.with_events::<Kill>()?;
    /// let mut server = Server::offline(schema, Everything)?;
    /// let mut client = server.local_client();
    /// let victim = server.step()?.spawn(&Tank { x: 2.5 })?;
    /// server.broadcast(&Kill { victim, damage: 12.5 })?;
    /// for _ in 0..3 {
    ///     server.send();
    ///     while let Some(event) = client.poll() {
    ///         if let ClientEvent::Typed(event) = event
    ///             && let Some(kill) = event.read::<Kill>()
    ///         {
    ///             let victim = client.resolve(kill.victim).expect("it is visible");
    ///             assert_eq!(client.get::<Tank>(victim).expect("a tank").x, 2.5);
    ///             return Ok(());
    ///         }
    ///     }
    ///     while server.poll().is_some() {}
    /// }
    /// # panic!("it arrives");
    /// # }
    /// ```
    pub fn broadcast<T: Event>(&mut self, event: &T) -> Result<(), EventError> {
        self.worlds.first_mut().broadcast(event)
    }

    /// Like [`broadcast`](Self::broadcast), in any world; `None` if there is no such world.
    pub fn broadcast_in<T: Event>(
        &mut self,
        world: WorldId,
        event: &T,
    ) -> Option<Result<(), EventError>> {
        Some(self.worlds.get_mut(world)?.broadcast(event))
    }

    /// Sends one peer an event.
    pub fn tell<T: Event>(&mut self, peer: PeerId, event: &T) -> Result<(), EventError> {
        match self.leaving.contains(&peer) {
            true => Ok(()),
            false => self.worlds.world_of_mut(peer).tell(peer, event),
        }
    }

    /// Sends an event to all peers that see an entity of the first world, before or after this tick.
    /// Does nothing if the entity was despawned in an earlier tick.
    pub fn tell_observers<T: Event>(
        &mut self,
        entity: impl Into<EntityRef>,
        event: &T,
    ) -> Result<(), EventError> {
        let world_server = self.worlds.first_mut();
        world_server.tell_observers(entity.into(), event)
    }

    /// Like [`tell_observers`](Self::tell_observers), of any world; `None` if there is no such world.
    pub fn tell_observers_in<T: Event>(
        &mut self,
        world: WorldId,
        entity: impl Into<EntityRef>,
        event: &T,
    ) -> Option<Result<(), EventError>> {
        let world_server = self.worlds.get_mut(world)?;
        Some(world_server.tell_observers(entity.into(), event))
    }

    /// Asks a peer. Its answer is a [`Replied`](crate::ServerEvent::Replied) with the returned number;
    /// there is none if the peer leaves before.
    pub fn ask<T: Request>(
        &mut self,
        peer: PeerId,
        question: &T,
    ) -> Result<QuestionId, EventError> {
        self.worlds.world_of_mut(peer).ask(peer, question)
    }

    /// Answers what a peer [asked](crate::ServerEvent::Asked).
    ///
    /// ```
    /// use prescient::{ClientEvent, Event, Everything, Schema, Server, ServerEvent, State};
    ///
    /// #[derive(State)]
    /// struct Tank { #[state(step = 0.01)] x: f32 }
    ///
    /// #[derive(Event)]
    /// #[event(answer = Bought)]
    /// struct Buy { item: u8 }
    ///
    /// #[derive(Event, Debug, PartialEq)]
    /// struct Bought { price: u32 }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let schema = Schema::of::<Tank>()?.with_events::<(Buy, Bought)>()?;
    /// let mut server = Server::offline(schema, Everything)?;
    /// let mut client = server.local_client();
    /// let asked = client.ask(&Buy { item: 7 })?;
    /// while let Some(event) = server.poll() {
    ///     if let ServerEvent::Asked { peer, question } = event
    ///         && let Some((buy, to)) = question.read::<Buy>()
    ///     {
    ///         server.reply(peer, to, &Bought { price: 10 * u32::from(buy.item) })?;
    ///     }
    /// }
    /// server.send();
    /// while let Some(event) = client.poll() {
    ///     if let ClientEvent::Replied(reply) = event {
    ///         assert_eq!(reply.question(), asked);
    ///         assert_eq!(reply.read(), Some(Bought { price: 70 }));
    ///         return Ok(());
    ///     }
    /// }
    /// # panic!("it arrives");
    /// # }
    /// ```
    pub fn reply<T: Request>(
        &mut self,
        peer: PeerId,
        to: ReplyTo<T>,
        answer: &T::Answer,
    ) -> Result<(), EventError> {
        match self.leaving.contains(&peer) {
            true => Ok(()),
            false => self.worlds.world_of_mut(peer).reply(peer, to, answer),
        }
    }

    /// What a player [did](crate::Client::steer), if it is a `T`; `None` too if it is forged.
    pub fn read_input<T: Event>(&mut self, peer: PeerId, input: &Input) -> Option<T> {
        let world_server = self.worlds.world_of_mut(peer);
        world_server.read_input(peer, &input.fields)
    }
}
