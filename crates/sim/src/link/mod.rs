//! A network that is as bad as asked for, and the same again for the same seed.
//!
//! What a protocol does about loss, jitter or a full queue can only be tested where these can be
//! had at will and a failure can be played again. So a [`LinkConditioner`] does no IO and knows no
//! clock: datagrams go in with the time at which they are sent and come out when they are due.
//! [`Conditions`] say what happens on the way, a seed says to which of them. A [`Network`] joins
//! endpoints that have addresses and clocks of their own; a [`UdpConditioner`] puts the same links
//! between real sockets.
//!
//! ```
//! use std::time::Duration;
//! use prescient_sim::link::{Conditions, LinkConditioner, Time};
//!
//! let conditions = Conditions::default()
//!     .with_latency(Duration::from_millis(40))
//!     .with_bandwidth(1_000_000)
//!     .with_loss(20_000); // parts per million: 2 %
//! let mut link = LinkConditioner::new(7, conditions);
//!
//! link.send(Time::ZERO, b"hello");
//! let due = link.next_delivery().expect("seed 7 does not lose the first one");
//! assert_eq!(due, Time::from_micros(40_040)); // 40 bits at a megabit per second, then 40 ms
//! assert_eq!(link.poll(due).as_deref(), Some(&b"hello"[..]));
//! ```

mod bottleneck;
mod bursts;
mod chances;
mod clock;
mod conditioner;
mod conditions;
mod delays;
mod network;
mod presets;
mod recorded;
mod relay;
mod relay_clients;
mod statistics;
mod time;

pub use clock::Clock;
pub use conditioner::LinkConditioner;
pub use conditions::{Blackout, Bursts, Conditions, Duplication, Rate, Reordering};
pub use delays::Delays;
pub use network::{Datagram, EndpointId, Network, NetworkError, Path};
pub use presets::{PRESETS, Preset, UnknownPreset};
pub use recorded::{OPPORTUNITY_BYTES, RecordedLink, RecordedLinkError};
pub use relay::UdpConditioner;
pub use statistics::{Losses, Statistics};
pub use time::Time;
