//! Simulated networks of any quality, reproducible by seed.
//!
//! Protocols can only be tested against loss, jitter or a full queue if these can be produced at
//! will and failures can be replayed. So a [`LinkConditioner`] does no IO and reads no clock:
//! datagrams go in with their sending time and come out when they are due. [`Conditions`] define
//! what happens to datagrams, the seed to which of them. A [`Network`] joins endpoints with
//! addresses and clocks; a [`UdpConditioner`] puts the same links between real sockets.
//!
//! ```
//! use std::time::Duration;
//! use prescient_links::{Conditions, LinkConditioner, Time};
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
mod chances;
mod clock;
mod conditioner;
mod conditions;
mod delays;
mod network;
mod presets;
mod random;
mod recorded;
mod relay;
mod relay_clients;
mod statistics;
mod time;

pub use clock::Clock;
pub use conditioner::{Departure, LinkConditioner};
pub use conditions::{Blackout, Bursts, Conditions, Duplication, Rate, Reordering};
pub use delays::Delays;
pub use network::{Datagram, EndpointId, Network, NetworkError, Path};
pub use presets::{PRESETS, Preset, UnknownPreset};
pub use random::Random;
pub use recorded::{OPPORTUNITY_BYTES, RecordedLink, RecordedLinkError};
pub use relay::UdpConditioner;
pub use statistics::{Losses, Statistics};
pub use time::Time;
