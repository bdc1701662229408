//! Sockets, clocks and randomness for [`prescient_transport`], whose client and server are state
//! machines without IO.
//!
//! A driver owns such a machine and a socket. It sends and receives in batches, calls the machine
//! when its timer is due, and returns its events; everything else of the machine is available
//! through [`Driver::with`]. A server whose own loop runs twenty times a second:
//!
//! ```no_run
//! use std::time::Duration;
//! use prescient_net::{BlockingServer, Socket, key_from_text};
//! use prescient_channels::ChannelId;
//! use prescient_transport::{ProtocolId, ServerConfig, ServerEvent};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let key = key_from_text(&std::fs::read_to_string("backend.key")?)?;
//! let address = "192.0.2.1:4000".parse()?;
//! let config = ServerConfig::new(key, ProtocolId(*b"my game, week 12"), vec![address]);
//! let mut server = BlockingServer::new(Socket::bind(address)?, config)?;
//! let mut tick = server.now();
//! loop {
//!     tick = tick.after(Duration::from_millis(50));
//!     while let Some(event) = server.wait_until(tick) {
//!         match event {
//!             ServerEvent::Connected { client, .. } => println!("{client:?} connected"),
//!             ServerEvent::Received { received, .. } => println!("{received:?}"),
//!             ServerEvent::Closed { reason, .. } => println!("a client left: {reason}"),
//!             _ => {}
//!         }
//!     }
//!     // … simulate the game …
//!     server.with(|server, now| {
//!         let connections: Vec<_> = server.clients().map(|(connection, _)| connection).collect();
//!         for connection in connections {
//!             // The client may be closed or backlogged; then it misses this message.
//!             let _ = server.send(connection, ChannelId::UNRELIABLE, b"the world", now);
//!         }
//!     });
//! }
//! # }
//! ```
//!
//! And a client that renders frames and never blocks:
//!
//! ```no_run
//! use prescient_net::{BlockingClient, token_from_text};
//! use prescient_channels::ChannelId;
//! use prescient_transport::{ClientEvent, LinkConfig, ProtocolId};
//!
//! # fn draw() {}
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let token = token_from_text(&std::env::args().nth(1).ok_or("give a token")?)?;
//! let protocol = ProtocolId(*b"my game, week 12");
//! let mut client = BlockingClient::connect(token, protocol, LinkConfig::default())?;
//! loop {
//!     while let Some(event) = client.poll() {
//!         match event {
//!             ClientEvent::Received(received) => println!("{received:?}"),
//!             ClientEvent::Closed(reason) => return Err(reason.into()),
//!             _ => {}
//!         }
//!     }
//!     client.with(|client, now| client.send(ChannelId::ORDERED, b"hello", now))?;
//!     client.flush();
//!     draw();
//! }
//! # }
//! ```
//!
//! The feature `tokio` adds `AsyncServer` and `AsyncClient`, which have the same methods, except
//! that those that wait are async. [`MemoryNetwork`] connects both ends without sockets.
//!
//! A datagram that a socket cannot send is lost and counted ([`Driver::statistics`]); no socket
//! error ends a connection. The texts of errors tell the user what to do.

mod blocking;
mod carrier;
mod client;
mod clock;
mod driver;
mod error;
mod incoming;
mod machine;
mod memory;
mod outgoing;
mod port;
mod socket;
mod statistics;
mod tcp;
mod token;
#[cfg(feature = "tokio")]
mod tokio;

#[cfg(feature = "tokio")]
pub use self::tokio::{AsyncClient, AsyncServer};
pub use blocking::{Blocking, BlockingClient, BlockingServer};
pub use clock::{Clock, SystemEntropy};
pub use driver::Driver;
pub use error::{AddressError, JoinError, OpenError, TextError};
pub use machine::{ClockReading, Machine};
pub use memory::{Direct, Link, MemoryClientId, MemoryNetwork};
pub use socket::Socket;
pub use statistics::{NotSent, SocketStatistics};
pub use tcp::{TcpClient, TcpError, TcpServer};
pub use token::{insecure_token, key_from_text, new_key, resolve, token_from_text, token_to_text};
