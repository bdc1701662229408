//! Messages over packets that may be lost, as a state machine without IO, addresses and keys.
//!
//! An [`Exchange`] is one end of a connection. The game queues messages on [`Channels`], which are
//! reliable or unreliable, ordered or unordered; requests; or, for large data, blobs, which the
//! receiver has to accept first. A client also queues the inputs of its player. The exchange builds
//! the bodies of packets when they are polled, retransmits what was lost, limits the rate, and
//! estimates the other end's clock. Who protects and sends these bodies is not its concern:
//! `prescient-transport` does so in encrypted datagrams.
//!
//! # Order of calls
//!
//! 1. [`Exchange::handle_body`] with every opened packet, [`Exchange::note`] for one without frames,
//!    and [`Exchange::handle_timeout`] when the [`deadline`](Exchange::deadline) has come. After a
//!    [`Fault`] the connection has to be closed.
//! 2. [`Exchange::poll_event`] until it returns `None`.
//! 3. [`Exchange::send`] and its like; nothing leaves yet.
//! 4. [`Exchange::poll_body`] until it returns `None`, each time with the next packet number; send
//!    each packet at once.
//!
//! ```
//! use prescient_channels::*;
//!
//! /// A path that carries 1200 bytes.
//! struct Wire;
//! impl Path for Wire {
//!     fn max_packet(&self) -> usize {
//!         1200
//!     }
//!     fn on_acknowledged(&mut self, _size: usize, _is_probe: bool, _now: Time) {}
//!     fn on_lost(&mut self, _size: usize, _is_probe: bool, _now: Time) {}
//! }
//!
//! let now = Time::from_micros(0);
//! let at = Now { now, clock: now };
//! let config = ExchangeConfig::default();
//! let mut client = Exchange::of_client(&config, now);
//! let mut server = Exchange::of_server(&config, now);
//!
//! client.send(ChannelId::ORDERED, b"hello").expect("there is room");
//! // Packets are numbered by the caller; 0 is the number of this one.
//! let body = client.poll_body(0, 0, at, &mut Wire).expect("a message waits");
//! server.handle_body(0, &body, 0, at, &mut Wire).expect("it is well formed");
//! let Some(Received::Message { message, .. }) = server.poll_event() else {
//!     panic!("the message has arrived");
//! };
//! assert_eq!(message, b"hello");
//! ```
//!
//! WIRE.md specifies the bytes, `book/src/internals/channels.md` explains the reasons.

/// Implements `Debug` like `Display`, for errors: a `main` that returns one prints it by `Debug`.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_as_display {
    ($error:ident) => {
        impl ::core::fmt::Debug for $error {
            fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(self, formatter)
            }
        }
    };
}

mod allowance;
mod arrivals;
mod blob;
pub mod bytes;
mod carrier;
mod channel;
mod clock;
mod config;
mod congestion;
mod error;
mod events;
mod exchange;
mod frame;
mod in_flight;
mod input;
mod inputs;
pub mod lobby;
mod packet_buffer;
mod packing;
mod ping;
mod ranges;
mod reassembly;
mod receive;
mod receive_activity;
mod receiver;
mod request;
mod rhythm;
mod round_trip;
mod send;
mod sender;
mod stall;
mod statistics;
mod time;

/// Internal parts, for tests and fuzzers.
#[cfg(feature = "__test_hooks")]
#[doc(hidden)]
pub mod parts {
    pub use crate::clock::RemoteClock;
    pub use crate::input::{INPUT, InputReceiver, InputSender, MAX_INPUTS, MalformedInputs};
    pub use crate::lobby::stage::{ClientStage, Reply, ServerStage, UnexpectedMessage};
    pub use crate::ping::{Echo, PING, PONG, Ping, Pinger, Pong};
}

pub use blob::{BlobError, BlobId};
pub use carrier::{Capacity, Carrier, CarrierEvent, ClientId, ConnectionId, Traffic};
pub use channel::{ChannelId, Channels, Delivery};
pub use config::{ConfigError, ExchangeConfig};
pub use congestion::{
    AcknowledgedPacket, Aimd, Congestion, CongestionControl, CongestionFactory, DelayBased,
    FixedRate, LostPacket, RateLimits, RoundTripWindow, SentPacket,
};
pub use error::{CloseReason, ConnectError, Denial, SendError};
pub use events::Received;
pub use exchange::{BufferedBytes, Exchange, Fault, Path};
pub use input::{Input, InputError, InputTick, Keys, MAX_FIELDS};
pub use packet_buffer::PacketBuffer;
pub use request::{RequestError, RequestId, Requests};
pub use round_trip::RoundTrip;
pub use statistics::{BytesPerSecond, Sizes, Statistics};
pub use time::{Arrival, AttendedClock, Now, Reception, Time};

/// A size that every internet path carries, as UDP payload.
pub const BASE_DATAGRAM: usize = 1200;

/// The longest packet that is ever sent: what an Ethernet frame leaves for UDP over IPv4.
pub const MAX_DATAGRAM: usize = 1472;
