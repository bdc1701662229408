//! Numbers that must not be mixed up.

/// A step of the simulation. Counts up; gaps are allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u32);

impl Tick {
    /// Ticks from `earlier` to here; zero if it is not earlier.
    pub fn since(self, earlier: Tick) -> u32 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A packet of one connection. The first is 1; 0 stands for "before the first".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u32);

/// An entity as one client knows it: per-client numbers that say nothing about other clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetEntityId(pub u32);

/// An entity's place in an [`Archive`](crate::history::Archive).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

/// How much waiting counts: an entity with a weight of 4 has its turn as soon as one with a weight
/// of 1 that waits four times as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(core::num::NonZeroU8);

impl Weight {
    /// `None` for 0: nobody is left out for ever.
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
