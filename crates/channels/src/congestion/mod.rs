//! Congestion control: how much may be sent now.
//!
//! A policy is a small trait, [`Congestion`]: it is told what became of packets and says how fast to
//! send. It knows only bytes and times, so its size does not depend on what is in flight. Four
//! policies are built in, and a program may bring its own ([`CongestionControl`]). The pacer, which
//! spreads packets over time, is a leaf of its own; `governor` joins the two and bounds them.

mod aimd;
mod delay;
mod delivery;
mod fixed;
mod governor;
mod marks;
mod one_way;
mod pacer;
mod window;
mod windowed;

use std::fmt;
use std::time::Duration;

use crate::statistics::BytesPerSecond;
use crate::time::Time;

pub use aimd::Aimd;
pub use delay::DelayBased;
pub use fixed::FixedRate;
pub(crate) use governor::Governor;
pub(crate) use marks::Marks;
pub(crate) use one_way::{OneWay, arrival_byte};
pub use window::RoundTripWindow;

/// A congestion control policy.
///
/// The caller calls [`on_sent`](Self::on_sent) for every ack-eliciting packet, and later exactly
/// once for each of them either [`on_acknowledged`](Self::on_acknowledged) or
/// [`on_lost`](Self::on_lost), the latter perhaps followed by
/// [`on_spurious_loss`](Self::on_spurious_loss). Other packets (bare acknowledgements, probes of the
/// datagram size) only use up the allowance.
pub trait Congestion: Send {
    /// A packet was sent.
    fn on_sent(&mut self, sent: &SentPacket);

    /// A packet was acknowledged.
    fn on_acknowledged(&mut self, acknowledged: &AcknowledgedPacket);

    /// A packet was declared lost.
    fn on_lost(&mut self, lost: &LostPacket);

    /// A packet that was declared lost has arrived after all.
    fn on_spurious_loss(&mut self, _bytes: usize, _now: Time) {}

    /// The application had nothing to send although more was allowed.
    fn on_idle(&mut self, _now: Time) {}

    /// How fast to send. The governor keeps it between the configured floor and ceiling.
    fn rate(&self) -> BytesPerSecond;

    /// How many bytes may be in flight before what can wait has to wait.
    fn window(&self) -> usize;

    /// What may be sent at once: what the rate yields in this span, at least two datagrams. Four
    /// milliseconds unless a policy says otherwise.
    fn burst(&self) -> Duration {
        Duration::from_millis(4)
    }

    /// What every packet takes besides its size: all sizes and rates of this policy include it. 0
    /// unless a policy counts the headers of IP and UDP.
    fn header_bytes(&self) -> usize {
        0
    }

    /// The delay that queues on the way add at present, as far as the policy measures it.
    fn queue_delay(&self) -> Option<Duration> {
        None
    }
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentPacket {
    /// Its size.
    pub bytes: usize,
    /// Bytes in flight, with it.
    pub in_flight: usize,
    /// When it was sent.
    pub now: Time,
}

/// A packet that was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AcknowledgedPacket {
    /// Its size.
    pub bytes: usize,
    /// When it was sent.
    pub sent: Time,
    /// When the acknowledgement arrived.
    pub now: Time,
    /// The time between the two.
    pub round_trip: Duration,
    /// How long it took to the other end, plus a constant that stays unknown; only for the newest
    /// packet of an acknowledgement.
    pub one_way: Option<Duration>,
    /// Whether a router on the way marked it instead of dropping it (ECN).
    pub is_marked: bool,
    /// Bytes in flight, without it.
    pub in_flight: usize,
}

/// A packet that was declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostPacket {
    /// Its size.
    pub bytes: usize,
    /// When it was sent.
    pub sent: Time,
    /// When it was declared lost.
    pub now: Time,
    /// Bytes in flight, without it.
    pub in_flight: usize,
}

/// What a policy is created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimits {
    /// The lowest rate.
    pub floor: BytesPerSecond,
    /// The highest rate.
    pub ceiling: BytesPerSecond,
    /// When the connection begins.
    pub now: Time,
}

/// Which congestion control policy an exchange uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CongestionControl {
    /// [`RoundTripWindow`]: paces at the ceiling, within a window that heeds round trips and losses.
    #[default]
    Window,
    /// [`DelayBased`]: a rate that keeps queues short.
    DelayBased,
    /// [`Aimd`]: fills queues until packets are lost, as NewReno does.
    Aimd,
    /// [`FixedRate`]: always sends at the ceiling.
    Fixed,
    /// A policy of the program.
    Custom(CongestionFactory),
}

impl CongestionControl {
    /// A policy for one connection.
    pub fn build(&self, limits: RateLimits) -> Box<dyn Congestion> {
        match self {
            Self::Window => Box::new(RoundTripWindow::new(limits)),
            Self::DelayBased => Box::new(DelayBased::new(limits)),
            Self::Aimd => Box::new(Aimd::new(limits)),
            Self::Fixed => Box::new(FixedRate::new(limits)),
            Self::Custom(factory) => (factory.build)(limits),
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::DelayBased => "delay",
            Self::Aimd => "aimd",
            Self::Fixed => "fixed",
            Self::Custom(factory) => factory.name,
        }
    }
}

/// Creates a program's own policy. Two factories are equal if their names are.
#[derive(Clone, Copy)]
pub struct CongestionFactory {
    name: &'static str,
    build: fn(RateLimits) -> Box<dyn Congestion>,
}

impl CongestionFactory {
    /// A factory with a name that tells it from others.
    pub fn new(name: &'static str, build: fn(RateLimits) -> Box<dyn Congestion>) -> Self {
        Self { name, build }
    }
}

impl PartialEq for CongestionFactory {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for CongestionFactory {}

impl fmt::Debug for CongestionFactory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// Microseconds of a span, at most those of [`u64::MAX`].
fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// What a rate yields in a span.
fn yield_of(rate: u64, micros: u64) -> u64 {
    let bytes = u128::from(rate) * u128::from(micros) / 1_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// The rate of some bytes in a span.
fn rate_of(bytes: u64, micros: u64) -> u64 {
    let rate = u128::from(bytes) * 1_000_000 / u128::from(micros.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// A part of a number, in thousandths.
fn thousandths(number: u64, part: u64) -> u64 {
    let product = u128::from(number) * u128::from(part) / 1000;
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// A datagram that is sent first may be as long as this.
const FIRST_WINDOW: u64 = 16 * crate::MAX_DATAGRAM as u64;
