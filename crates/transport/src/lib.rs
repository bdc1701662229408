//! Secure connections over datagrams, as machines without sockets, clocks or randomness of their
//! own: time, random bytes and datagrams go in with `handle_…`, datagrams and events come out of
//! `poll_…`.
//!
//! A [`Grant`] of the game's backend, sealed into a [`ConnectToken`], lets a [`Client`] connect to
//! a [`Server`]. From then on every packet is encrypted and authenticated, arrives at most once,
//! and finds its connection by a name in it rather than by the address that it came from, so a
//! client may move to another network.
//!
//! What the two say to each other are messages, of opaque bytes: on [`Channels`] that are reliable
//! or not, ordered or not; as requests and answers; or, if they are large, as blobs that are offered
//! first.
//!
//! ```
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
//! // The server and the client, each with a socket of its own.
//! let config = ServerConfig::new(key, protocol, vec![address]);
//! let mut server = Server::new(config, &mut entropy, now);
//! let mut client = Client::connect(token, protocol, LinkConfig::default(), &mut entropy, now)?;
//!
//! let mut heard = Vec::new();
//! while heard.is_empty() {
//!     client.handle_timeout(now);
//!     server.handle_timeout(now);
//!     // Where this carries datagrams over, a program sends and receives them.
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
//!             ClientEvent::Received(Received::Message { message, .. }) => heard = message,
//!             ClientEvent::Failed(error) => return Err(error.into()),
//!             _ => {}
//!         }
//!     }
//!     now = client.next_timeout().expect("it is connected").max(now);
//! }
//! assert_eq!(heard, b"blue team");
//! # Ok(())
//! # }
//! ```
//!
//! What the bytes are is in WIRE.md, why they are so in ARCHITECTURE.md.

mod allowance;
mod bytes;
mod client;
mod clock;
mod config;
mod congestion;
mod connection;
mod cookie;
mod entropy;
mod error;
mod exchange;
mod inbox;
mod input;
mod key_schedule;
mod limits;
mod lobby;
mod mtu;
mod packet;
mod packet_protection;
mod ping;
mod replay;
mod reset;
mod server;
mod statistics;
mod time;
mod token;

/// Parts of the machines by themselves, for tests and fuzzers.
#[cfg(feature = "__test_hooks")]
#[doc(hidden)]
pub mod parts {
    pub use crate::clock::RemoteClock;
    pub use crate::input::{INPUT, InputReceiver, InputSender, MAX_INPUTS, MalformedInputs};
    pub use crate::lobby::{
        ClientMessage, ClientStage, MalformedMessage, Reply, RosterError, RosterUpdate,
        ServerMessage, ServerStage, UnexpectedMessage,
    };
    pub use crate::ping::{Echo, PING, PONG, Ping, Pinger, Pong};
}

pub use client::{Client, ClientEvent};
pub use config::{Limits, LinkConfig, ServerConfig};
pub use connection::Transmit;
pub use entropy::Entropy;
pub use error::{BanError, CloseReason, ConnectError, Denial, SendError, TokenError};
pub use exchange::blob::{BlobError, BlobId};
pub use exchange::channel::{ChannelId, Channels, Delivery};
pub use exchange::events::Received;
pub use exchange::request::{RequestError, RequestId};
pub use exchange::round_trip::RoundTrip;
pub use input::{Input, InputError, InputTick, Keys, MAX_FIELDS};
pub use lobby::{
    Bytes, ClientInfo, Latency, MAX_PLAYERS, Player, PlayerId, Roster, ServerInfo, Text, TooLong,
};
pub use packet::{BASE_DATAGRAM, MAX_DATAGRAM, VERSION};
pub use server::{Admission, Applicant, ConnectionId, Footprint, Server, ServerEvent};
pub use statistics::{BytesPerSecond, Sizes, Statistics};
pub use time::{Time, UnixTime};
pub use token::{ClientId, ConnectToken, Grant, ProtocolId, TokenKey};
