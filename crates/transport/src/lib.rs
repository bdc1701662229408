//! Secure connections over datagrams, as state machines without IO: time, random bytes and
//! datagrams are passed in with `handle_…`; datagrams and events are taken out with `poll_…`.
//!
//! The game's backend seals a [`Grant`] into a [`ConnectToken`], with which a [`Client`] connects
//! to a [`Server`]. From then on every packet is encrypted and authenticated and is accepted at
//! most once. Packets carry a connection id, so a connection survives a change of the client's
//! address.
//!
//! Both ends exchange messages of opaque bytes: on [`Channels`](prescient_channels::Channels), which are reliable or unreliable,
//! ordered or unordered; as requests and answers; or, for large data, as blobs that the receiver
//! has to accept first.
//!
//! # Order of calls
//!
//! 1. `handle_datagram` with everything that arrives, and `handle_timeout` when `next_timeout` has
//!    come.
//! 2. `poll_event` until it returns `None`; messages wait there and count towards its limits.
//! 3. `send` and its like; nothing leaves yet.
//! 4. `poll_transmit` until it returns `None`, and send each datagram at once: its number and its
//!    time are those of the call.
//! 5. Ask for `next_timeout` again after each of these.
//!
//! ```
//! use prescient_channels::{ChannelId, ClientId, Received, Time};
//! use prescient_transport::*;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut seed = 0u8;
//! # let mut entropy = |bytes: &mut [u8]| bytes.fill_with(|| { seed = seed.wrapping_mul(5).wrapping_add(7); seed });
//! # let mut now = Time::from_micros(0);
//! # let unix = UnixTime(1_800_000_000);
//! let protocol = ProtocolId(*b"my game, week 12");
//! let address = "192.0.2.1:4000".parse()?;
//! let home = "198.51.100.7:50000".parse()?;
//!
//! // The backend, when a player presses "play".
//! let key = TokenKey::generate(&mut entropy);
//! let grant = Grant {
//!     client: ClientId(77),
//!     protocol,
//!     servers: vec![address],
//!     expires: UnixTime(unix.0 + 30),
//!     data: b"blue team".to_vec(),
//! };
//! let token = grant.issue(&key, &mut entropy)?;
//!
//! // The server and the client; each has its own socket.
//! let config = ServerConfig::new(key, protocol, vec![address]);
//! let mut server = Server::new(config, &mut entropy, now)?;
//! let mut client = Client::connect(token, protocol, LinkConfig::default(), &mut entropy, now)?;
//!
//! let mut received = Vec::new();
//! while received.is_empty() {
//!     client.handle_timeout(now);
//!     server.handle_timeout(now);
//!     // A program sends and receives on its sockets here.
//!     while let Some(transmit) = client.poll_transmit(now) {
//!         server.handle_datagram(home, &transmit.bytes, now, unix, &mut entropy);
//!     }
//!     while let Some(transmit) = server.poll_transmit(now) {
//!         client.handle_datagram(address, &transmit.bytes, now);
//!     }
//!     while let Some(event) = server.poll_event() {
//!         if let ServerEvent::Connected { connection, data, .. } = event {
//!             server.send(connection, ChannelId::ORDERED, &data, now)?;
//!         }
//!     }
//!     while let Some(event) = client.poll_event() {
//!         match event {
//!             ClientEvent::Received(Received::Message { message, .. }) => received = message,
//!             ClientEvent::Failed(error) => return Err(error.into()),
//!             _ => {}
//!         }
//!     }
//!     now = client.next_timeout().expect("it is connected").max(now);
//! }
//! assert_eq!(received, b"blue team");
//! # Ok(())
//! # }
//! ```
//!
//! WIRE.md specifies the bytes, `book/src/internals/transport.md` explains the reasons.

mod client;
mod config;
mod connection;
mod cookie;
mod entropy;
mod error;
mod key_schedule;
mod limits;
mod meter;
mod mtu;
mod packet;
mod packet_protection;
mod queues;
mod replay;
mod reset;
mod server;
mod token;

pub use client::{Client, ClientEvent};
pub use config::{Limits, LinkConfig, ServerConfig};
pub use connection::Transmit;
pub use entropy::Entropy;
pub use error::{BanError, TokenError};
pub use packet::VERSION;
pub use prescient_channels::lobby::{
    Bytes, ClientInfo, Latency, MAX_PLAYERS, Player, PlayerId, Roster, ServerInfo, Text, TooLong,
};
pub use server::{Admission, Applicant, Footprint, Server, ServerEvent};
pub use token::{ConnectToken, Grant, ProtocolId, TokenKey, UnixTime};
