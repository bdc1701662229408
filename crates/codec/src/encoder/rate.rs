//! Leaves out entities whose turn it is not, because the receiver gets entities of their priority
//! only in every n-th packet.
//!
//! An entity becomes due in every n-th tick that is encoded, ids taking turns, and when a packet
//! that covered it is lost. It stays due until a packet covers it, so a budget delays it and does
//! not skip it. An entity that has not changed since the last acknowledged packet costs next to
//! nothing and is always covered; otherwise it would never come to rest.

use alloc::{collections::BTreeSet, vec::Vec};

use crate::{
    body::{Contents, Partial},
    history::Archive,
    known_entities::ReceiverView,
    shared_model::Rows,
};

use super::Encoder;

impl Encoder {
    /// What is to be stated, without what is not due.
    pub(super) fn due_contents(&mut self, archive: &Archive, budget: Option<usize>) -> Contents {
        let mut contents = self.contents(archive, budget);
        if self.known_entities.quality.has_divisors() {
            self.begin_round(archive);
            self.leave_out(&mut contents, archive);
        }
        contents
    }

    /// Makes the entities due whose turn it is in the newest tick, once.
    fn begin_round(&mut self, archive: &Archive) {
        let (round, last) = self.known_entities.round;
        let now = archive.newest();
        if now == last {
            return;
        }
        let round = round.wrapping_add(1);
        self.known_entities.round = (round, now);
        let known_entities = &self.known_entities;
        let is_turn = |id: &u32| {
            let divisor = known_entities.grades[*id as usize].divisor(&known_entities.quality);
            // The entities of a group have one turn.
            let group = match self.layout.has_groups && divisor > 1 {
                true => self.group(*id, archive),
                false => None,
            };
            let turn = group.map_or(*id, |group| group as u32);
            round.wrapping_add(turn).is_multiple_of(divisor)
        };
        let active = self.shared_model.entity_states.active.iter();
        let ids = active.chain(known_entities.dirty.keys());
        let due: Vec<u32> = ids.copied().filter(is_turn).collect();
        for id in due {
            self.known_entities.grades[id as usize].set_due(true);
        }
    }

    fn leave_out(&self, contents: &mut Contents, archive: &Archive) {
        let known_entities = &self.known_entities;
        let receiver_view = ReceiverView {
            archive,
            known_entities,
            layout: &self.layout,
        };
        let entity_states = &self.shared_model.entity_states;
        let is_due = |id: u32| {
            let grade = known_entities.grades[id as usize];
            grade.is_due() || grade.divisor(&known_entities.quality) == 1
        };
        let is_quiet = |id: u32| {
            known_entities.level(id) == entity_states.level(id)
                && !receiver_view.changed_after(id, self.anchor.tick)
        };
        let group_of = |id: u32| match self.layout.has_groups {
            true => self.group(id, archive),
            false => None,
        };
        let all = match &mut contents.partial {
            Some(partial) => core::mem::take(&mut partial.active),
            None => entity_states.active.clone(),
        };
        // The entities of a group travel together: all of them are due if one is.
        let mut due_groups = BTreeSet::new();
        if self.layout.has_groups {
            let due = all.iter().chain(&contents.wakes).copied();
            let due = due.filter(|&id| is_due(id));
            let spawned = contents.spawns.iter().map(|spawn| spawn.id);
            due_groups.extend(due.chain(spawned).filter_map(group_of));
        }
        let is_covered = |id: u32, is_cheap: bool| match group_of(id) {
            Some(group) => due_groups.contains(&group),
            None => is_cheap || is_due(id),
        };
        let (before, wakes) = (all.len(), contents.wakes.len());
        let mut active: Vec<u32> = all;
        active.retain(|&id| is_covered(id, is_quiet(id)));
        contents.wakes.retain(|&id| is_covered(id, false));
        let is_whole = active.len() == before && contents.wakes.len() == wakes;
        if contents.partial.is_some() || !is_whole {
            contents.partial = Some(Partial {
                active,
                limit: usize::MAX,
            });
        }
    }
}
