//! What the next packet has to say, and which part of it.

use alloc::{collections::BTreeSet, vec::Vec};

use crate::{
    body::{self, Contents, Partial, Spawn, Truth},
    budget,
    history::Archive,
    roster::Sight,
    twin::{EntityKey, Rows},
    units::Sequence,
};

use super::Encoder;

impl Encoder {
    /// What there is to say; with a budget, of more than a packet can hold only what has its turn
    /// soon.
    pub(super) fn contents(&mut self, archive: &Archive, budget: Option<usize>) -> Contents {
        let sight = Sight {
            archive,
            roster: &self.roster,
            layout: &self.layout,
        };
        let book = &self.twin.book;
        let (mut rest, mut truth) = (Vec::new(), Vec::new());
        let mut wakes = Vec::new();
        let mut settled = Vec::new();
        for (&id, &told) in &self.roster.dirty {
            let level = sight.level(id);
            let class = book.population.seat(id).class;
            let same = level == book.level(id)
                && book.rest_row(id, &sight, &mut rest).is_some_and(|row| {
                    sight.latest(EntityKey { id, class }, level, &mut truth) == Some(row)
                });
            if !same {
                wakes.push(id);
            } else if told <= self.cursor {
                settled.push(id);
            }
        }
        let despawns = self.roster.doomed.keys().copied().collect();
        for id in settled {
            self.roster.dirty.remove(&id);
            self.twin.drop_rest_row(id);
        }
        let (all_wakes, all_spawns) = (wakes.len(), self.roster.waiting.len());
        let most = budget.map_or(usize::MAX, |limit| self.appetite.most(limit));
        let ids: Vec<u32> = if wakes.len().max(all_spawns) > most {
            let group_of = |id: u32| self.group(id, archive);
            self.preselect(&mut wakes, most, group_of)
        } else {
            self.roster.waiting.ids().collect()
        };
        let spawn = |id: u32| {
            let slot = self.roster.slot(id)?;
            let again = self.roster.sent[id as usize] > Sequence(0);
            Some(Spawn {
                id,
                class: archive.class(slot)?,
                again,
            })
        };
        let is_draft = wakes.len() < all_wakes || ids.len() < all_spawns;
        let mut spawns: Vec<Spawn> = ids.into_iter().filter_map(spawn).collect();
        let waiting = spawns.len();
        body::retain_nearby(&mut spawns, &self.twin.book);
        // Ids too far from those in use have to wait for others; until then no packet is full.
        let partial = (spawns.len() < waiting && !is_draft).then(|| Partial {
            active: self.twin.book.active.clone(),
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

    /// Of entities at rest that moved, and of those that wait to appear, `most` of each whose turn it
    /// is soon, and whoever has to travel with them.
    fn preselect(
        &self,
        wakes: &mut Vec<u32>,
        most: usize,
        group_of: impl Fn(u32) -> Option<i64>,
    ) -> Vec<u32> {
        let book = &self.twin.book;
        let roster = &self.roster;
        let all = core::mem::take(wakes);
        *wakes = budget::soonest(all.clone(), most, roster, self.newest);
        let may = |id: u32| body::may_appear(id, 0, book);
        let mut spawns = roster.waiting.first(most, may);
        if spawns.len() < most {
            let sent = roster.waiting.ids();
            let sent = sent.filter(|id| may(*id) && spawns.binary_search(id).is_err());
            let room = most - spawns.len();
            let sent = budget::soonest(sent.collect(), room, roster, self.newest);
            spawns.extend(sent);
            spawns.sort_unstable();
        }
        if self.layout.has_groups {
            let chosen = wakes.iter().chain(&spawns).chain(&book.active);
            let groups: BTreeSet<i64> = chosen.filter_map(|&id| group_of(id)).collect();
            let joins = |id: &u32| group_of(*id).is_some_and(|group| groups.contains(&group));
            wakes.extend(all.into_iter().filter(joins));
            spawns.extend(roster.waiting.ids().filter(joins));
            for list in [wakes, &mut spawns] {
                list.sort_unstable();
                list.dedup();
            }
        }
        spawns
    }

    /// The chosen part of what there is to say.
    pub(super) fn part(&self, contents: &Contents, chosen: &budget::Choice) -> Contents {
        let mut part = contents.clone();
        part.wakes
            .retain(|id| chosen.wakes.binary_search(id).is_ok());
        part.spawns
            .retain(|spawn| chosen.spawns.binary_search(&spawn.id).is_ok());
        body::retain_nearby(&mut part.spawns, &self.twin.book);
        part.partial = Some(Partial {
            active: chosen.active.clone(),
            limit: chosen.limit,
        });
        part
    }

    /// The group that an entity has to travel with.
    pub(super) fn group(&self, id: u32, archive: &Archive) -> Option<i64> {
        let slot = self.roster.slot(id)?;
        let class = usize::from(archive.class(slot)?);
        let field = self.layout.schema.classes[class].group?;
        let group = *archive.latest(slot)?.get(usize::from(field))?;
        (group != 0).then_some(group)
    }
}
