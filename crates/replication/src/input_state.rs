//! The keys that players hold down, which are replicated with their entities.
//!
//! A client can simulate another player's entity only if it knows that player's input, so a type
//! may have a field for the keys, which the server fills in.

use std::collections::{BTreeMap, BTreeSet};

use prescient_schema::{Class, FieldKind};

use crate::server::PeerId;

/// The keys that each peer holds down.
#[derive(Debug, Default)]
pub(crate) struct InputState {
    keys: BTreeMap<PeerId, u64>,
    /// Peers whose entities must be updated.
    changed: BTreeSet<PeerId>,
    /// Peers that left.
    absent: BTreeSet<PeerId>,
}

impl InputState {
    /// The keys of a peer; `None` if it never sent any.
    pub(crate) fn keys(&self, peer: PeerId) -> Option<u64> {
        self.keys.get(&peer).copied()
    }

    pub(crate) fn set(&mut self, peer: PeerId, keys: u64) {
        if self.keys.insert(peer, keys) != Some(keys) {
            self.changed.insert(peer);
        }
        self.absent.remove(&peer);
    }

    /// Releases the keys of a peer that left, so that its entities do not move on for ever.
    pub(crate) fn release(&mut self, peer: PeerId) {
        if self.keys.contains_key(&peer) {
            self.set(peer, 0);
            self.absent.insert(peer);
        }
    }

    /// Marks a peer whose entities must be updated because it became the owner of one.
    pub(crate) fn changed(&mut self, owner: Option<PeerId>) {
        self.changed.extend(owner);
    }

    pub(crate) fn take_changed(&mut self) -> BTreeSet<PeerId> {
        std::mem::take(&mut self.changed)
    }

    /// Removes peers that left, after their entities were updated.
    pub(crate) fn forget_absent(&mut self) {
        for peer in std::mem::take(&mut self.absent) {
            self.keys.remove(&peer);
        }
    }

    /// The key field of a class and its value for this owner, truncated to the bits of the field.
    pub(crate) fn of(&self, class: &Class, owner: Option<PeerId>) -> Option<(u16, i64)> {
        let field = class.keys?;
        let FieldKind::Int { bits, .. } = class.fields.get(usize::from(field))?.kind else {
            return None;
        };
        let spare = 64 - u32::from(bits.clamp(1, 64));
        let keys = self.keys(owner?)? & u64::MAX >> spare;
        Some((field, keys as i64))
    }
}
