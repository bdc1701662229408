//! Replicates a server's world to clients, each of which sees a part of it.
//!
//! A [`Server`] holds the authoritative world and one peer per client; a [`Client`] holds the state
//! that it was sent. Neither uses sockets: messages are bytes for any carrier. Messages of state
//! may be lost, late or repeated; events and other reliable messages need a carrier that delivers
//! each once and in order.
//!
//! # Order of calls
//!
//! 1. Client: send what [`Client::poll_message`] returns, the hello first.
//! 2. Server: [`Server::connect`] for each client, then [`Server::handle`] with every message of it.
//! 3. Server, every tick: [`Server::step`], change the world, finish the step.
//! 4. Server: [`Server::encode`] with the room that each carrier has, then send what
//!    [`Server::poll_transmit`] returns, in this order; of the reliable ones none may be left out.
//! 5. Client: [`Client::handle`] with every message, in any order; then [`Client::poll_change`]
//!    until it returns `None`, and send the [`Client::acknowledgement`], which may be lost.
//!
//! ```
//! use prescient_replication::*;
//! use prescient_schema::{Ref, SchemaBuilder, State};
//!
//! #[derive(State, Clone, Debug, PartialEq)]
//! struct Crate {
//!     #[state(step = 0.01, position)]
//!     position: [f32; 2],
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let schema = SchemaBuilder::new().state::<Crate>().build()?;
//! let mut server = Server::new(schema.clone(), ServerConfig::default(), Everything)?;
//! let mut client = Client::new(schema, ClientConfig::default())?;
//! let peer = PeerId(1);
//! server.connect(peer);
//! while let Some(message) = client.poll_message() {
//!     server.handle(peer, &message)?;
//! }
//!
//! let mut step = server.step(Tick(1))?;
//! let crate_: Ref<Crate> = step.spawn(&Crate { position: [1.0, 2.5] })?;
//! step.finish();
//! server.send_entity_event(crate_.entity_ref(), b"it fell from the sky")?;
//!
//! for tick in 2..10 {
//!     // A program would send these messages.
//!     server.encode(&|_| Room::one(1200));
//!     while let Some(transmit) = server.poll_transmit(peer) {
//!         client.handle(transmit.message())?;
//!     }
//!     if let Some(message) = client.acknowledgement() {
//!         server.handle(peer, &message)?;
//!     }
//!     server.step(Tick(tick))?.finish();
//! }
//! let mut received = Vec::new();
//! while let Some(change) = client.poll_change() {
//!     match change {
//!         Change::Created(entity) => assert!(client.get::<Crate>(entity).is_some()),
//!         Change::Event { about: About::Entity(_), payload, .. } => received = payload,
//!         _ => {}
//!     }
//! }
//! assert_eq!(received, b"it fell from the sky");
//! # Ok(())
//! # }
//! ```

pub mod adaptation;
mod audit;
mod authority;
mod checked_row;
mod client;
mod config;
mod entity_types;
mod event_coders;
mod event_types;
mod grid;
mod hierarchy;
mod input_state;
mod message;
mod outbox;
mod parallel;
mod peer;
mod publication;
mod publisher;
mod relevance;
mod server;
mod settings;
mod transmit;
mod typed_event;
mod views;
mod world;
mod world_generation;

pub use audit::Divergence;
pub use client::{Change, Client, ClientError, EntityHandle, SetError, SubscribeError, Subscriber};
pub use config::{ClientConfig, ConfigError, ServerConfig};
pub use grid::Position;
pub use message::{TickClock, is_state};
pub use peer::{PeerStatistics, PeerTransfer};
pub use prescient_codec::{
    Config, HistoryDepth, HistoryTooShort, MAX_RATE_DIVISOR, Quality, QualityError, Selection,
    Tick, Weight,
};
pub use prescient_schema::{Priority, Tolerance};
pub use publisher::{
    MAX_SNAPSHOT_INTERVAL, PublishError, PublishedPacket, Publisher, PublisherConfig,
    PublisherConfigError,
};
pub use relevance::{
    Candidate, Distance, DistanceError, Everything, Link, Observer, Owned, Relevance, Visibility,
};
pub use server::{FromClient, MAX_REPORT_BYTES, PeerError, PeerId, Room, Rooms, Server};
pub use settings::SettingsMismatch;
pub use transmit::{Delivery, Transmit};
pub use typed_event::{
    About, EventError, MAX_EVENT_BYTES, Question, QuestionId, Reply, ReplyTo, TypedEvent,
};
pub use views::{Factory, ShowsEntities, Views};
pub use world::{World, WorldError, WorldStep};
