//! Accounts of the bits in packets, by class, field and cause.

use alloc::collections::BTreeMap;

/// Why bits were spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// Packet header and check.
    Header,
    /// Which entities are spawned, despawned, woken or covered.
    Presence,
    /// Which entities and fields differ from their prediction.
    Flag,
    /// By how much they differ.
    Surprise,
    /// The values of an entity in its first packet.
    Spawn,
    /// The values of an entity that was sent before and is not confirmed.
    Resend,
}

impl Cause {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Presence => "presence",
            Self::Flag => "flag",
            Self::Surprise => "surprise",
            Self::Spawn => "spawn",
            Self::Resend => "resend",
        }
    }
}

/// What bits were spent on: a class and a field, where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account {
    /// Index of the class in the schema.
    pub class: Option<u16>,
    /// Index of the field in the class.
    pub field: Option<u16>,
    /// What the bits encode.
    pub cause: Cause,
}

/// Bits by account, in 1/65536 bit.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    entries: BTreeMap<Account, u64>,
}

impl Ledger {
    /// Adds to an account.
    pub fn add(&mut self, account: Account, cost: u64) {
        *self.entries.entry(account).or_default() += cost;
    }

    /// Adds all accounts of another ledger.
    pub fn merge(&mut self, other: &Ledger) {
        for (account, cost) in other.entries() {
            self.add(account, cost);
        }
    }

    /// All accounts, ascending.
    pub fn entries(&self) -> impl Iterator<Item = (Account, u64)> + '_ {
        self.entries.iter().map(|(account, cost)| (*account, *cost))
    }

    /// The sum of all accounts, in 1/65536 bit.
    pub fn total(&self) -> u64 {
        self.entries.values().sum()
    }
}
