//! A world on a server, and what each client sees of it.
//!
//! A [`Server`] holds the truth and one peer per client; a [`Client`] holds what it was shown.
//! Neither knows sockets: messages are bytes that any carrier may take, and every one of them may
//! be lost, late, or repeated, except for events, which want a carrier that delivers each once.
//!
//! ```
//! use prescient_replication::*;
//! use prescient_schema::{Ref, SchemaBuilder, State};
//!
//! #[derive(State, Clone, Debug, PartialEq)]
//! struct Crate {
//!     #[state(step = 0.01, position)]
//!     place: [f32; 2],
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
//! let crate_: Ref<Crate> = step.spawn(&Crate { place: [1.0, 2.5] })?;
//! step.finish();
//! server.announce(crate_.entity(), b"it fell from the sky")?;
//!
//! for tick in 2..10 {
//!     // Where this passes messages on, a program sends them.
//!     for (_, message) in server.encode(&|_| Some(1200)) {
//!         client.handle(&message)?;
//!     }
//!     while let Some(message) = server.poll_message(peer) {
//!         client.handle(&message)?;
//!     }
//!     if let Some(message) = client.acknowledgement() {
//!         server.handle(peer, &message)?;
//!     }
//!     server.step(Tick(tick))?.finish();
//! }
//! let mut heard = Vec::new();
//! while let Some(change) = client.poll_change() {
//!     match change {
//!         Change::Created(object) => assert!(client.get::<Crate>(object).is_some()),
//!         Change::Event { about: About::Object(_), payload, .. } => heard = payload,
//!         _ => {}
//!     }
//! }
//! assert_eq!(heard, b"it fell from the sky");
//! # Ok(())
//! # }
//! ```

mod charge;
mod client;
mod event;
mod grid;
mod held;
mod kinds;
mod mail;
mod message;
mod peer;
mod records;
mod relevance;
mod server;
mod settings;
mod stay;
mod testimony;
mod views;
mod whole;
mod world;

pub use client::{Change, Client, ClientConfig, ClientError, Object, SetError};
pub use event::About;
pub use grid::Place;
pub use peer::{PeerStatistics, Traveller};
pub use prescient_codec::{Config, Tick, Weight};
pub use prescient_schema::Tolerance;
pub use relevance::{Distance, Everything, Owned, Relevance, Sight, Subject, Viewer};
pub use server::{
    Budget, FromClient, MAX_REPORT_BYTES, Messages, PeerError, PeerId, Server, ServerConfig,
};
pub use settings::SettingsMismatch;
pub use testimony::Divergence;
pub use views::{Factory, Views};
pub use world::{Step, World, WorldError};
