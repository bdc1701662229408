//! Which peer owns what belongs to nobody: NPCs, and entities whose owner has left.
//!
//! Every peer computes the owner of an entity from the members of the group, by rendezvous hashing: no
//! messages, no peer with a special role, and all peers with the same members agree. When a peer leaves, only its
//! entities change their owner, and they spread over all others; when one joins, it takes its share from all.
//!
//! While members are not the same everywhere, an entity may have two owners, or none for a moment. The peer that
//! becomes the owner continues with the newest version that it has.

use std::collections::{BTreeMap, BTreeSet};

use crate::name::Name;
use crate::signature::sha256;

/// Assigns entities to the members of a group. All peers add the same entities.
#[derive(Clone, Debug)]
pub struct Ownership {
    own: Name,
    members: BTreeSet<Name>,
    /// The owner of each entity.
    owners: BTreeMap<u64, Name>,
}

/// The entities whose owner has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandOver {
    /// Entities that this peer owns now.
    pub gained: Vec<u64>,
    /// Entities that this peer no longer owns, with their owners.
    pub lost: Vec<(u64, Name)>,
}

impl Ownership {
    /// A group of one peer, without entities.
    pub fn new(own: Name) -> Self {
        Self {
            members: [own.clone()].into(),
            own,
            owners: BTreeMap::new(),
        }
    }

    /// Adds an entity; returns whether this peer owns it.
    pub fn add(&mut self, entity: u64) -> bool {
        let owner = self.choose(entity);
        let is_own = owner == self.own;
        self.owners.insert(entity, owner);
        is_own
    }

    /// Removes an entity.
    pub fn remove(&mut self, entity: u64) {
        self.owners.remove(&entity);
    }

    /// A peer has joined.
    pub fn join(&mut self, member: Name) -> HandOver {
        self.members.insert(member);
        self.assign()
    }

    /// A peer has left.
    pub fn leave(&mut self, member: &Name) -> HandOver {
        if *member != self.own {
            self.members.remove(member);
        }
        self.assign()
    }

    /// The owner of an entity.
    pub fn owner(&self, entity: u64) -> Option<&Name> {
        self.owners.get(&entity)
    }

    /// The entities that this peer owns.
    pub fn owned(&self) -> impl Iterator<Item = u64> {
        let owners = self.owners.iter();
        owners
            .filter(|(_, owner)| **owner == self.own)
            .map(|(entity, _)| *entity)
    }

    fn assign(&mut self) -> HandOver {
        let mut changes = HandOver::default();
        let entities: Vec<u64> = self.owners.keys().copied().collect();
        for entity in entities {
            let owner = self.choose(entity);
            let before = self.owners.insert(entity, owner.clone());
            let was_own = before.is_some_and(|before| before == self.own);
            match (was_own, owner == self.own) {
                (false, true) => changes.gained.push(entity),
                (true, false) => changes.lost.push((entity, owner)),
                _ => {}
            }
        }
        changes
    }

    /// The member with the highest hash of its name and the entity's number.
    fn choose(&self, entity: u64) -> Name {
        let hash = |member: &&Name| {
            let pieces = [member.view().as_bytes(), &entity.to_be_bytes()];
            sha256(&pieces)
        };
        let owner = self.members.iter().max_by_key(hash);
        owner.unwrap_or(&self.own).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u64) -> Name {
        format!("/peer/{number}").parse().expect("a name")
    }

    /// Fails if `leave` does not assign again, or the choice depends on the own name.
    #[test]
    fn peers_agree_and_only_what_a_peer_owned_changes_hands() {
        let mut peers: Vec<Ownership> = (0..8).map(|own| Ownership::new(name(own))).collect();
        for peer in &mut peers {
            (0..8).for_each(|other| drop(peer.join(name(other))));
            (0..800).for_each(|entity| {
                peer.add(entity);
            });
        }
        for entity in 0..800 {
            let owner = peers[0].owner(entity);
            assert!(peers.iter().all(|peer| peer.owner(entity) == owner));
        }
        let shares: Vec<usize> = peers.iter().map(|peer| peer.owned().count()).collect();
        assert_eq!(shares.iter().sum::<usize>(), 800);
        assert!(
            shares.iter().all(|share| (60..140).contains(share)),
            "{shares:?}"
        );
        let orphans: BTreeSet<u64> = peers[3].owned().collect();
        let mut adopted = BTreeSet::new();
        for (own, peer) in peers.iter_mut().enumerate().filter(|(own, _)| *own != 3) {
            let changes = peer.leave(&name(3));
            assert_eq!(changes.lost, []);
            assert!(!changes.gained.is_empty(), "peer {own} adopts its share");
            adopted.extend(changes.gained);
        }
        assert_eq!(adopted, orphans);
        let back = peers[0].join(name(3));
        assert!(back.gained.is_empty());
        assert!(back.lost.iter().all(|(_, owner)| *owner == name(3)));
    }
}
