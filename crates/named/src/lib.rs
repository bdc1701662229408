//! Named-data networking (NDN): packets, and a forwarder.
//!
//! Packets carry names instead of addresses. An *Interest* requests a name and *Data* answers it.
//! Forwarders in between aggregate Interests for the same name into one, send the Data to every face that
//! requested it, and cache it for later requests. So a thousand spectators of a game cost its server as
//! much as one.
//!
//! The formats are NDN packet format 0.3, and NDNLPv2 on links: other implementations, among them NFD, NDNts
//! and python-ndn, can be neighbours, producers and consumers.
//!
//! - [`Interest`], [`Data`] and [`LinkPacket`] are views of received bytes; nothing is copied, and no
//!   input makes them panic. [`InterestBuilder`], [`DataBuilder`] and [`LinkHeader`] write them.
//! - [`Signer`] and [`Verifier`] sign and check: SHA-256 digests, HMAC, Ed25519.
//! - [`Forwarder`] is a forwarder without sockets and clocks; [`Deframer`] splits streams into packets.
//! - With the feature `sockets`, which is on by default, `Daemon` runs that forwarder on UDP, TCP and Unix
//!   sockets, and `AppFace` is an application's connection to it or to a real NFD.
//! - [`Command`] and [`ControlResponse`] register prefixes with our forwarder or a real NFD.
//! - [`Discovery`] finds the peers of a group, without a server; [`Regions`] those around a player, where
//!   there are thousands.
//! - [`Producer`] and [`Consumer`] keep replicas of what a peer owns up to date, in one round trip;
//!   [`UpdatePolicy`] and [`InterestPolicy`] decide what is worth sending. [`Interactor`] and
//!   [`InteractionOwner`] change what others own, and [`Ownership`] assigns what belongs to nobody.
//!
//! # A forwarder's calls
//!
//! 1. [`Forwarder::new`], with a key from the system's randomness.
//! 2. [`Forwarder::add_face`] for every neighbour and application, at any time, and
//!    [`Forwarder::remove_face`] when its connection ends. Routes are added by [`Forwarder::add_route`], or
//!    by applications that register prefixes.
//! 3. [`Forwarder::handle_packet`] with every packet from a face; a packet that returns an error
//!    changed nothing.
//! 4. [`Forwarder::poll_transmit`] until it returns `None`, after every call of
//!    [`handle_packet`](Forwarder::handle_packet), or after several.
//! 5. [`Forwarder::handle_timeout`] at the time that [`Forwarder::next_timeout`] returns.
//!
//! With [`Forwarder::start_routing`] and [`Forwarder::add_neighbour`], forwarders exchange routes to their
//! applications and reroute when a link fails; then every other call may change
//! [`next_timeout`](Forwarder::next_timeout).
//!
//! ```
//! use std::time::Duration;
//! use prescient_named::{
//!     Data, DataBuilder, FaceConfig, Forwarder, ForwarderConfig, Interest, InterestBuilder, Name,
//!     Signer, Time,
//! };
//!
//! let mut forwarder = Forwarder::new(ForwarderConfig::default(), *b"from the system!");
//! let anna = forwarder.add_face(&FaceConfig::local())?;
//! let spectators = [
//!     forwarder.add_face(&FaceConfig::local())?,
//!     forwarder.add_face(&FaceConfig::local())?,
//! ];
//! forwarder.add_route("/game/anna".parse::<Name>()?.view(), anna, 0)?;
//!
//! let name: Name = "/game/anna/status".parse()?;
//! let now = Time::from_micros(0);
//! for (number, spectator) in spectators.iter().enumerate() {
//!     let mut interest = Vec::new();
//!     InterestBuilder::new(name.view())
//!         .nonce([0, 0, 0, number as u8])
//!         .encode(&mut interest)?;
//!     forwarder.handle_packet(now, *spectator, &interest)?;
//! }
//!
//! // Two Interests arrived, and one is forwarded.
//! let mut bytes = Vec::new();
//! assert_eq!(forwarder.poll_transmit(&mut bytes), Some(anna));
//! assert_eq!(Interest::decode(&bytes)?.name(), name.view());
//! assert_eq!(forwarder.poll_transmit(&mut bytes), None);
//!
//! let mut data = Vec::new();
//! DataBuilder::new(name.view())
//!     .freshness(Duration::from_millis(20))
//!     .content(b"at the bridge")
//!     .sign(&Signer::digest(), &mut data)?;
//! forwarder.handle_packet(now, anna, &data)?;
//!
//! // One Data packet answers both.
//! for spectator in spectators {
//!     assert_eq!(forwarder.poll_transmit(&mut bytes), Some(spectator));
//!     assert_eq!(Data::decode(&bytes)?.content(), b"at the bridge");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Limits
//!
//! A packet has at most [`MAX_PACKET`] bytes, a name at most [`MAX_COMPONENTS`] components, a forwarding
//! hint at most [`MAX_HINTS`] names, a packet on a link at most [`MAX_FRAGMENTS`] fragments; each face
//! may have at most four incomplete packets, for half a second. The memory of a forwarder is bounded by
//! its [`ForwarderConfig`].

mod control;
mod data;
mod discovery;
mod error;
mod forwarder;
mod hash;
mod interaction;
mod interest;
mod link;
mod name;
mod ownership;
mod reckoning;
mod regions;
mod routing;
mod signature;
#[cfg(feature = "sockets")]
mod sockets;
mod stream;
mod sync;
mod tlv;
mod versioned;

pub use control::{
    CAPTURE, CHILD_INHERIT, Command, CommandError, ControlParameters, ControlResponse,
    LOCAL_COMMANDS, NEIGHBOUR_COMMANDS,
};
pub use data::{BLOB, Data, DataBuilder, KEY, LINK, NO_CONTENT};
pub use discovery::{
    Discovery, DiscoveryConfig, DiscoveryError, DiscoveryEvent, DiscoveryStatistics, MAX_DETAILS,
    MAX_PEER_NAME, Profile,
};
pub use error::{DecodeError, EncodeError, NameError, VerifyError};
pub use forwarder::{
    CommandTrust, FaceConfig, FaceError, FaceId, FaceStatistics, Forwarder, ForwarderConfig,
    HandleError, RouteError, RoutingError, Statistics, Strategy,
};
pub use interaction::{
    Decision, Interaction, InteractionError, InteractionOwner, Interactor, MAX_PARAMETERS, Outcome,
    OwnerRef, SendInteractionError,
};
pub use interest::{DEFAULT_LIFETIME, Interest, InterestBuilder, MAX_HINTS};
pub use link::{
    Fragment, LinkHeader, LinkPacket, MAX_FRAGMENTS, MAX_PIT_TOKEN, MIN_MTU, NackReason, PitToken,
};
pub use name::{Component, ComponentKind, Components, MAX_COMPONENTS, Name, NameRef};
pub use ownership::{HandOver, Ownership};
pub use prescient_channels::Time;
pub use reckoning::{
    DeadReckoning, EveryUpdate, FullInterest, InterestPolicy, Motion, Radii, UpdateCheck,
    UpdatePolicy, pause_together,
};
pub use regions::{Grid, MAX_REGIONS, PrefixChange, Regions};
pub use routing::{MAX_ROUTERS, RoutingConfig};
pub use signature::{KeyLocator, SignatureInfo, SignatureKind, SignatureStamp, Signer, Verifier};
#[cfg(feature = "sockets")]
pub use sockets::{
    AppFace, DATAGRAM_IDLE, Daemon, FaceClosed, FaceEvent, MAX_DATAGRAM_FACES, OpenError,
    RequestError, SocketStatistics,
};
pub use stream::Deframer;
pub use sync::Member;
pub use tlv::MAX_PACKET;
pub use versioned::{
    Answer, Consumer, ConsumerConfig, ConsumerStatistics, EventCache, FetchError, Freshness,
    MAX_EVENT, MAX_SEGMENT, MAX_SEGMENTS, Producer, ProducerConfig, ProducerStatistics, Request,
    SegmentError, SegmentFetch, SegmentedContent, Update, UpdateError, VersionLog, first_version,
    read_events, write_events,
};
