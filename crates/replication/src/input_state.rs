//! The keys that players hold down, which travel with their entities.
//!
//! Whoever sees an entity can simulate it only with what its player does, so a type may have a
//! field for that, and the server fills it in.

use std::collections::{BTreeMap, BTreeSet};

use prescient_schema::{Class, FieldKind};

use crate::server::PeerId;

/// Who holds which keys down.
#[derive(Debug, Default)]
pub(crate) struct InputState {
    keys: BTreeMap<PeerId, u64>,
    /// Of whom entities are to be told.
    changed: BTreeSet<PeerId>,
    /// Who holds nothing any more, for good.
    absent: BTreeSet<PeerId>,
}

impl InputState {
    /// The keys of a player, if he ever said.
    pub fn keys(&self, peer: PeerId) -> Option<u64> {
        self.keys.get(&peer).copied()
    }

    pub fn set(&mut self, peer: PeerId, keys: u64) {
        if self.keys.insert(peer, keys) != Some(keys) {
            self.changed.insert(peer);
        }
        self.absent.remove(&peer);
    }

    /// A player is gone, and his entities must not run on for ever.
    pub fn release(&mut self, peer: PeerId) {
        if self.keys.contains_key(&peer) {
            self.set(peer, 0);
            self.absent.insert(peer);
        }
    }

    /// Some entity is a player's that was not.
    pub fn changed(&mut self, owner: Option<PeerId>) {
        self.changed.extend(owner);
    }

    pub fn take_changed(&mut self) -> BTreeSet<PeerId> {
        std::mem::take(&mut self.changed)
    }

    /// Forgets those who are gone, once their entities know.
    pub fn forget_absent(&mut self) {
        for peer in std::mem::take(&mut self.absent) {
            self.keys.remove(&peer);
        }
    }

    /// The field of a class that holds its owner's keys, and what belongs there: as many as it has
    /// bits for.
    pub fn of(&self, class: &Class, owner: Option<PeerId>) -> Option<(u16, i64)> {
        let field = class.keys?;
        let FieldKind::Int { bits, .. } = class.fields.get(usize::from(field))?.kind else {
            return None;
        };
        let spare = 64 - u32::from(bits.clamp(1, 64));
        let keys = self.keys(owner?)? & u64::MAX >> spare;
        Some((field, keys as i64))
    }
}
