//! Types for numbers that must not be mixed up.

/// A step of the simulation. Ticks increase and may have gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u64);

impl Tick {
    /// Ticks from `earlier` to here; zero if it is not earlier.
    pub fn since(self, earlier: Tick) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// As [`since`](Self::since), at most `u32::MAX`: for distances within a history.
    pub(crate) fn shortly_since(self, earlier: Tick) -> u32 {
        u32::try_from(self.since(earlier)).unwrap_or(u32::MAX)
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
