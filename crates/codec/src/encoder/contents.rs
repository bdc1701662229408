//! Collects what the next packet has to state, and selects a part of it.

use alloc::{collections::BTreeSet, vec::Vec};

use prescient_schema::EntityRef;

use crate::{
    body::{self, Contents, Partial, SenderRows, Spawn},
    budget,
    history::Archive,
    known_entities::ReceiverView,
    shared_model::{EntityKey, Rows},
    units::{Sequence, Slot},
};

use super::Encoder;

impl Encoder {
    /// Everything that is to be stated. With a budget, and if there is more than fits into a
    /// packet, only the entities that come first.
    pub(super) fn contents(&mut self, archive: &Archive, budget: Option<usize>) -> Contents {
        let receiver_view = ReceiverView {
            archive,
            known_entities: &self.known_entities,
            layout: &self.layout,
        };
        let entity_states = &self.shared_model.entity_states;
        let (mut rest, mut truth) = (Vec::new(), Vec::new());
        let mut wakes = Vec::new();
        let mut settled = Vec::new();
        for (&id, &last_sent) in &self.known_entities.dirty {
            let level = receiver_view.level(id);
            let class = entity_states.population.status(id).class;
            let same = level == entity_states.level(id)
                && entity_states
                    .rest_row(id, &receiver_view, &mut rest)
                    .is_some_and(|row| {
                        receiver_view.latest(EntityKey { id, class }, level, &mut truth)
                            == Some(row)
                    });
            if !same {
                wakes.push(id);
            } else if last_sent <= self.anchor.sequence {
                settled.push(id);
            }
        }
        let despawns = self.known_entities.tombstones.keys().copied().collect();
        for id in settled {
            self.known_entities.dirty.remove(&id);
            self.shared_model.drop_rest_row(id);
        }
        let (all_wakes, all_spawns) = (wakes.len(), self.known_entities.waiting.len());
        let max_spawns = budget.map_or(usize::MAX, |limit| self.spawn_capacity.max_entities(limit));
        let ids: Vec<u32> = if wakes.len().max(all_spawns) > max_spawns {
            let group_of = |id: u32| self.group(id, archive);
            self.preselect(&mut wakes, max_spawns, group_of)
        } else {
            self.known_entities.waiting.ids().collect()
        };
        let spawn = |id: u32| {
            let slot = self.known_entities.slot(id)?;
            let again = self.known_entities.sent[id as usize] > Sequence(0);
            Some(Spawn {
                id,
                class: archive.class(slot)?,
                again,
            })
        };
        let is_draft = wakes.len() < all_wakes || ids.len() < all_spawns;
        let mut spawns: Vec<Spawn> = ids.into_iter().filter_map(spawn).collect();
        let waiting = spawns.len();
        body::retain_nearby(&mut spawns, &self.shared_model.entity_states);
        // Ids that are too far from those in use wait for others; until then no packet is full.
        let partial = (spawns.len() < waiting && !is_draft).then(|| Partial {
            active: self.shared_model.entity_states.active.clone(),
            limit: usize::MAX,
        });
        Contents {
            despawns,
            wakes,
            spawns,
            partial,
            is_draft,
        }
    }

    /// Reduces `wakes` to the `max_spawns` most overdue and returns as many spawns, both with the
    /// other members of their groups.
    fn preselect(
        &self,
        wakes: &mut Vec<u32>,
        max_spawns: usize,
        group_of: impl Fn(u32) -> Option<i64>,
    ) -> Vec<u32> {
        let entity_states = &self.shared_model.entity_states;
        let known_entities = &self.known_entities;
        let all = core::mem::take(wakes);
        *wakes = budget::most_overdue(all.clone(), max_spawns, known_entities, self.newest);
        let may = |id: u32| body::may_appear(id, 0, entity_states);
        let mut spawns = known_entities.waiting.first(max_spawns, may);
        if spawns.len() < max_spawns {
            let sent = known_entities.waiting.ids();
            let sent = sent.filter(|id| may(*id) && spawns.binary_search(id).is_err());
            let room = max_spawns - spawns.len();
            let sent = budget::most_overdue(sent.collect(), room, known_entities, self.newest);
            spawns.extend(sent);
            spawns.sort_unstable();
        }
        if self.layout.has_groups {
            let chosen = wakes.iter().chain(&spawns).chain(&entity_states.active);
            let groups: BTreeSet<i64> = chosen.filter_map(|&id| group_of(id)).collect();
            let joins = |id: &u32| group_of(*id).is_some_and(|group| groups.contains(&group));
            wakes.extend(all.into_iter().filter(joins));
            spawns.extend(known_entities.waiting.ids().filter(joins));
            for list in [wakes, &mut spawns] {
                list.sort_unstable();
                list.dedup();
            }
        }
        spawns
    }

    pub(super) fn partial_contents(
        &self,
        contents: &Contents,
        chosen: &budget::Choice,
    ) -> Contents {
        let mut selected = contents.clone();
        selected
            .wakes
            .retain(|id| chosen.wakes.binary_search(id).is_ok());
        selected
            .spawns
            .retain(|spawn| chosen.spawns.binary_search(&spawn.id).is_ok());
        body::retain_nearby(&mut selected.spawns, &self.shared_model.entity_states);
        selected.partial = Some(Partial {
            active: chosen.active.clone(),
            limit: chosen.limit,
        });
        selected
    }

    /// The group with which an entity has to be sent: that of its group field, or that of the entity
    /// whose table it is, or else all tables of that entity.
    pub(super) fn group(&self, id: u32, archive: &Archive) -> Option<i64> {
        let slot = self.known_entities.slot(id)?;
        let layout = &self.layout.classes[usize::from(archive.class(slot)?)];
        let declared = |slot: Slot| {
            let class = usize::from(archive.class(slot)?);
            let field = self.layout.schema.classes[class].group?;
            let group = *archive.latest(slot)?.get(usize::from(field))?;
            (group != 0).then_some(group)
        };
        let first = || match layout.entity {
            Some(field) => {
                let cell = *archive.latest(slot)?.get(usize::from(field))?;
                archive.entity(EntityRef::from_cell(cell)?)
            }
            None => layout.has_tables.then_some(slot),
        };
        declared(slot).or_else(|| {
            let first = first()?;
            declared(first).or(Some(i64::MIN | i64::from(first.0)))
        })
    }
}
