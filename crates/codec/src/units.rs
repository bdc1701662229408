//! Types for numbers that must not be mixed up.

/// A step of the simulation. Ticks increase and may have gaps. Packets hold 32 bits of them for
/// now, and a greater tick [cannot be captured](crate::history::CaptureError::TickTooLarge).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u64);

impl Tick {
    /// Ticks from `earlier` to here; zero if it is not earlier.
    pub fn since(self, earlier: Tick) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// `None` if it needs more than 32 bits.
    pub(crate) fn short(self) -> Option<ShortTick> {
        u32::try_from(self.0).ok().map(ShortTick)
    }
}

/// A tick as packets hold it. Histories and models store it too: they have several per entity and
/// client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ShortTick(pub u32);

impl ShortTick {
    /// Ticks from `earlier` to here; zero if it is not earlier.
    pub(crate) fn since(self, earlier: ShortTick) -> u32 {
        self.0.saturating_sub(earlier.0)
    }
}

impl From<ShortTick> for Tick {
    fn from(tick: ShortTick) -> Self {
        Self(tick.0.into())
    }
}

/// The sequence number of a packet in one connection. The first packet is 1; 0 means "before the
/// first".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u32);

/// The id of an entity at one client. Each client has ids of its own, which reveal nothing about
/// other clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetEntityId(pub u32);

/// The index of an entity in an [`Archive`](crate::history::Archive).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

/// How much waiting counts when packets cannot cover all entities: an entity of weight 4 is sent as
/// soon as one of weight 1 that has waited four times as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(core::num::NonZeroU8);

impl Weight {
    /// `None` for 0, with which an entity would never be sent.
    pub const fn new(weight: u8) -> Option<Self> {
        match core::num::NonZeroU8::new(weight) {
            Some(weight) => Some(Self(weight)),
            None => None,
        }
    }

    /// The number.
    pub const fn get(self) -> u8 {
        self.0.get()
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self(core::num::NonZeroU8::MIN)
    }
}
