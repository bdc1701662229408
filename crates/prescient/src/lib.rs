//! Replicates a simulated world from a server to its clients.
//!
//! Derive [`State`] on the types to replicate, start a server and a client, and state flows, over
//! bad mobile links too. Values arrive exactly as they were captured. Both ends learn how values
//! change and entropy-code the difference, so a correctly predicted value costs next to nothing.
//!
//! A server:
//!
//! ```no_run
//! use prescient::{Everything, Schema, Server, ServerEvent, State};
//!
//! #[derive(State)]
//! struct Crate {
//!     #[state(step = 0.01, position)]
//!     position: [f32; 3],
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut server = Server::loopback("127.0.0.1:4000", Schema::of::<Crate>()?, Everything)?;
//! let mut falling = Crate { position: [0.0, 100.0, 0.0] };
//! let entity = server.step()?.spawn(&falling)?;
//! loop {
//!     server.next_tick();
//!     while let Some(event) = server.poll() {
//!         if let ServerEvent::Joined { peer, .. } = event {
//!             server.send_event(peer, b"welcome")?;
//!         }
//!     }
//!     falling.position[1] = (falling.position[1] - 0.3).max(0.0);
//!     server.step()?.set(entity, &falling)?;
//!     server.send();
//! }
//! # }
//! ```
//!
//! And a client:
//!
//! ```no_run
//! use prescient::{Change, Client, ClientEvent, Schema, State};
//! # #[derive(State)]
//! # struct Crate {
//! #     #[state(step = 0.01, position)]
//! #     position: [f32; 3],
//! # }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut client = Client::loopback("127.0.0.1:4000", Schema::of::<Crate>()?)?;
//! loop {
//!     client.wait(std::time::Duration::from_millis(16));
//!     while let Some(event) = client.poll() {
//!         match event {
//!             ClientEvent::Change(Change::Updated(entity)) => {
//!                 let seen: Option<Crate> = client.get(entity);
//!                 println!("{:?}", seen.map(|seen| seen.position));
//!             }
//!             ClientEvent::Left(reason) => return Err(reason.into()),
//!             _ => {}
//!         }
//!     }
//! }
//! # }
//! ```
//!
//! [`Server::loopback`] and [`Client::loopback`] use a publicly known key and therefore work on one
//! machine only; for other machines a backend issues tokens ([`Server::bind`], [`Client::join`]). A
//! player in the server's own process uses a [`Server::local_client`], and a single-player game is
//! a [`Server::offline`] with a local client: the same two loops, on one thread or two.
//!
//! [`Client::samples`] and [`World::samples`] have the values of an entity at recent ticks, to draw
//! between two of them or to look up what a player saw.
//!
//! [`Server::record`] writes everything into a file that opens without the game's code
//! ([`recording`]); a [`ViewRecorder`] writes what one client shows.
//!
//! What is known ahead, such as a path, travels as a curve of few keyframes that all clients show at
//! the same time, whatever their latency: [`TimelineServer`] and [`TimelineClient`].
//!
//! Sockets are one kind of [`Carrier`]. Others are TCP streams ([`TcpServer`], [`TcpClient`]) for
//! networks that block UDP, or a program's own; a server can have several at once
//! ([`Server::with_carrier`], [`Server::add_carrier`], [`Client::join_with_carrier`]). Without the
//! default feature `udp` this crate has no sockets and builds for browsers.
//!
//! The server decides how state is coded ([`ServerOptions::with_replication`]) and sends these settings
//! to each client. A client whose schema differs is refused, and both ends name the fields that
//! differ. If both ends allow it ([`Tolerance::Additive`] in [`ServerConfig`] and
//! [`ClientConfig`]), fields marked `#[state(optional)]` may be missing on either side.
//!
//! # Monitoring
//!
//! [`Server::statistics`] and [`Server::ledger`] report what each client costs. Two features, both
//! off by default, export measurements.
//!
//! The feature `tracing` uses the target `prescient`. Spans of level debug: `step` (beginning a
//! tick), `encode` (encoding packets for all clients), `send` (encoding and sending) and `handle`
//! (handling what arrived, at a server or a client). Events of level info, each with the id of its
//! `peer`: `joined`, `left`, `refused` (a client violated the protocol and its connection is
//! closed) and `resync` (a client starts a new epoch); all four at a server. Of level warn: the
//! first of the [`unscheduled_ticks`](Server::unscheduled_ticks) and of the
//! [`saturated_values`](Server::saturated_values).
//!
//! The feature `metrics` exports these, updated by [`Server::send`]:
//!
//! | counter | counts |
//! |---|---|
//! | `prescient_socket_packets_sent`, `prescient_socket_bytes_sent` | sent through the socket |
//! | `prescient_socket_packets_received`, `prescient_socket_bytes_received` | received through it |
//! | `prescient_state_packets`, `prescient_state_bytes` | state encoded, for all clients |
//! | `prescient_events` | events queued, once per receiving client |
//! | `prescient_resyncs` | new epochs, summed over all clients |
//! | `prescient_saturated_values` | values that were changed to fit fields declared `saturate` |
//! | `prescient_joined`, `prescient_left`, `prescient_refused` | clients |
//! | `prescient_client_refused` | messages that a client could not apply |
//!
//! | gauge | value |
//! |---|---|
//! | `prescient_peers` | connected clients |
//! | `prescient_entities` | entities in all worlds |
//! | `prescient_entities_visible` | visible entities, summed over all clients |

mod blobs;
mod carriers;
mod client;
mod client_events;
mod clock;
#[cfg(feature = "named")]
mod entity_set;
#[cfg(feature = "named")]
mod entity_topic;
mod error;
mod lobby;
mod local;
mod names;
mod options;
mod protocol;
mod reconnect;
mod record;
mod requests;
mod rows;
mod server;
mod shared_timeline;
#[cfg(feature = "named")]
mod spectators;
#[cfg(feature = "tokio")]
mod tokio;
#[cfg(feature = "named")]
mod topic;
#[cfg(feature = "udp")]
mod udp;
mod watch;
mod worlds;

pub use prescient_derive::{FacadeEvent as Event, FacadeState as State};
#[cfg(feature = "links")]
pub use prescient_links as links;
#[cfg(feature = "named")]
pub use prescient_named as named;
pub use prescient_recording as recording;
pub use prescient_schema as schema;
pub use prescient_timeline as timeline;

pub use blobs::BlobEvent;
pub use client::{Client, ClientEvent, ViewStatistics};
#[cfg(feature = "named")]
pub use entity_set::{EntitySet, EntitySetCodec, EntitySetError, MAX_SET_ENTITIES};
#[cfg(feature = "named")]
pub use entity_topic::{EntityConsumer, EntityProducer, EntityReplica, EntityVersions, SeenSet};
pub use error::{JoinError, ServeError};
pub use lobby::LobbyEvent;
pub use names::*;
pub use options::{Applicant, ClientOptions, ServerOptions};
#[cfg(feature = "udp")]
pub use protocol::protocol;
pub use reconnect::{Cancel, Reconnect};
pub use record::{RecordingError, ViewRecorder};
pub use server::{Expense, PeerReport, Server, ServerEvent};
pub use shared_timeline::{TimelineClient, TimelineError, TimelineServer};
#[cfg(feature = "named")]
pub use spectators::{
    PublishedPackets, Spectator, SpectatorConsumer, SpectatorError, SpectatorProducer,
    SpectatorSetupError,
};
#[cfg(feature = "named")]
pub use topic::{Publication, Replica, TopicConsumer, TopicError, TopicProducer};
#[cfg(feature = "udp")]
pub use udp::{loopback_token, loopback_token_for};
pub use worlds::{MoveError, WorldId};
