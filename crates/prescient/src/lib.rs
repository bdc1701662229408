//! Keeps a simulated world in step between machines.
//!
//! Derive [`State`] on what you want others to see, start a server and a client, and it works over
//! a bad mobile link: values arrive exactly as they were captured, learned and entropy-coded, and
//! what is as expected costs next to nothing.
//!
//! A server:
//!
//! ```no_run
//! use std::time::Duration;
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
//!     server.wait(Duration::from_millis(33));
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
//! [`Server::loopback`] and [`Client::loopback`] share a key that everybody knows and therefore stay on one
//! machine; for others a backend issues tokens ([`Server::bind`], [`Client::join`]). A player at the
//! server's own machine takes a [`Server::local_client`], and a game that is played alone is a
//! [`Server::offline`] with a seat: the same two loops, on one thread or two.
//!
//! How state is coded is the server's to decide ([`ServerOptions::replication`]), and clients do as they
//! are told. Who was built with other types is turned away, and both ends name the fields that differ;
//! where both tolerate it ([`Tolerance::Additive`] in [`ServerConfig`] and [`ClientConfig`]), fields that
//! are `#[state(optional)]` may be missing on either side.
//!
//! # Watching it
//!
//! [`Server::statistics`] and [`Server::ledger`] say what each client costs. Two features, both off
//! by default, tell tools of your choice.
//!
//! With `tracing`, all with the target `prescient`: the spans `step` (the beginning of a tick),
//! `encode` (packets for everybody), `send` (that, and sending them) and `handle` (something
//! arrived, at a server or a client), of level debug, and the events `joined`, `left`, `refused`
//! (somebody broke the rules and is thrown out) and `resync` (a client starts over) of a server, of
//! level info, each with the number of its `peer`.
//!
//! With `metrics`, brought up to date by [`Server::send`]:
//!
//! | counter | of what |
//! |---|---|
//! | `prescient_socket_packets_sent`, `prescient_socket_bytes_sent` | what left through the socket |
//! | `prescient_socket_packets_received`, `prescient_socket_bytes_received` | what came |
//! | `prescient_state_packets`, `prescient_state_bytes` | state that was made, for all clients |
//! | `prescient_events` | events that were made ready, once for each who hears of it |
//! | `prescient_resyncs` | clients that started over |
//! | `prescient_joined`, `prescient_left`, `prescient_refused` | clients |
//! | `prescient_client_refused` | messages that a client could not understand |
//!
//! | gauge | of what |
//! |---|---|
//! | `prescient_peers` | clients that are there |
//! | `prescient_entities` | entities in the world |
//! | `prescient_entities_visible` | entities that clients are shown, summed over all of them |

mod backlog;
mod carrier;
mod client;
mod error;
mod local;
mod names;
mod protocol;
mod reconnect;
mod server;
mod statistics;
mod watch;
mod worlds;

pub use prescient_derive::FacadeState as State;
pub use prescient_schema as schema;
pub use prescient_timeline as timeline;

pub use client::{Client, ClientEvent, ClientOptions, loopback_token};
pub use error::{JoinError, ServeError};
pub use names::*;
pub use protocol::protocol;
pub use reconnect::{Cancel, Reconnect};
pub use server::{Server, ServerEvent, ServerOptions};
pub use statistics::{Expense, PeerReport, ViewStatistics};
pub use worlds::{MoveError, WorldId};
