//! Bookkeeping of sent packets: applied ones are folded into the model, lost ones make their
//! entities due again.

use crate::{
    ack::AppliedSet,
    config::{BEST_CONTEXTS, DEFAULT_CONTEXTS, Policy, Profile},
    header::MAX_EXCLUDED,
    history::Archive,
    known_entities::{ReceiverView, Tombstone},
    log::Log,
    population::Phase,
    units::Sequence,
};

use super::{Encoder, WINDOW};

impl Encoder {
    pub(super) fn note_sent(&mut self, log: &Log) {
        if self.counting {
            self.spawn_capacity.learn(&self.packet_costs);
        }
        self.known_entities.note_sent(log);
        if log.full {
            for &id in &self.shared_model.entity_states.active {
                self.known_entities.sent[id as usize] = log.sequence;
                self.known_entities.sent_ticks[id as usize] = log.tick;
                self.known_entities.grades[id as usize].set_due(false);
            }
        }
    }

    /// Settles all packets up to `newest`.
    pub(super) fn settle(&mut self, newest: Sequence, applied: &AppliedSet, archive: &Archive) {
        let next = self.newest.0.saturating_add(1);
        let oldest = self.logs.front().map_or(next, |log| log.sequence.0);
        let floor = oldest.max(next.saturating_sub(self.config.window()));
        let floor = floor.max(newest.0.saturating_sub(WINDOW - 1));
        if newest <= self.anchor.sequence || newest.0 < floor {
            return;
        }
        let settled = self.anchor.sequence.max(self.before_epoch);
        let first = settled.0.saturating_add(1);
        if floor > first {
            if self.excluded.len() == MAX_EXCLUDED {
                self.resync();
                return;
            }
            self.excluded.push((Sequence(first), Sequence(floor - 1)));
        }
        while self.logs.front().is_some_and(|log| log.sequence <= newest) {
            let Some(log) = self.logs.pop_front() else {
                break;
            };
            let back = newest.0 - log.sequence.0;
            if applied.contains(back) {
                self.statistics.applied += 1;
                self.known_entities.note_applied(&log);
                for id in &log.despawns {
                    if let Some(tombstone) = self.known_entities.tombstones.get_mut(id) {
                        tombstone.sent |= log.sequence > tombstone.since;
                    }
                }
                if log.sequence.0 >= floor {
                    self.fold(&log, archive);
                    self.statistics.folded += 1;
                } else {
                    self.known_entities.requeue_spawns(&log);
                }
            } else {
                self.known_entities.requeue_spawns(&log);
                self.note_lost(&log);
            }
            if log.sequence == newest {
                self.anchor = log.anchor();
            }
            self.recycle(log);
        }
        self.anchor.sequence = newest;
        let base = self.anchor.cursor;
        self.excluded.retain(|(_, to)| *to > base);
        for id in core::mem::take(&mut self.known_entities.releveled) {
            self.update_level(id, archive);
        }
        self.settle_entities();
    }

    /// Makes the packet that was encoded last the base of those to come, without an
    /// acknowledgement: a receiver that has not applied it cannot decode them. Packets between the
    /// previous base and this one are needed by none. For [`Policy::Stateless`] only, where
    /// otherwise every packet is whole; after a [`resync`](Self::resync) the base is whole, too, and
    /// any receiver can begin with it.
    pub fn make_base(&mut self, archive: &Archive) {
        if self.config.policy != Policy::Stateless {
            return;
        }
        // Receivers may have applied any of those before it. Without their logs, the headers to come
        // exclude them from being folded.
        while self.logs.len() > 1
            && let Some(log) = self.logs.pop_front()
        {
            self.known_entities.requeue_spawns(&log);
            self.recycle(log);
        }
        self.settle(self.newest, &AppliedSet::ALL, archive);
    }

    fn fold(&mut self, log: &Log, archive: &Archive) {
        let receiver_view = ReceiverView {
            archive,
            known_entities: &self.known_entities,
            layout: &self.layout,
        };
        match self.config.profile {
            Profile::Default => self
                .shared_model
                .fold::<DEFAULT_CONTEXTS>(log, &receiver_view),
            Profile::Best => self.shared_model.fold::<BEST_CONTEXTS>(log, &receiver_view),
        }
        self.shared_model.commit();
        for &(id, _) in &log.spawns {
            let weight = self.known_entities.weights[id as usize];
            self.known_entities.waiting.remove(id, weight);
        }
        let levels = log.levels.iter().map(|&(id, _)| id);
        self.known_entities.releveled.extend(levels);
    }

    /// Makes the entities of a lost packet as overdue as any can be.
    fn note_lost(&mut self, log: &Log) {
        let ids = if log.full {
            &self.shared_model.entity_states.active
        } else {
            &log.covered
        };
        for &id in ids.iter().chain(&log.covered) {
            let sent = &mut self.known_entities.sent[id as usize];
            if *sent == log.sequence {
                *sent = Sequence(1);
                self.known_entities.grades[id as usize].set_due(true);
            }
        }
    }

    fn settle_entities(&mut self) {
        let entity_states = &self.shared_model.entity_states;
        let known_entities = &mut self.known_entities;
        let forgotten = |id: u32, tombstone: &Tombstone| {
            tombstone.sent && entity_states.phase(id) == Phase::Absent
        };
        known_entities.tombstones.retain(|&id, tombstone| {
            let gone = forgotten(id, tombstone);
            if gone {
                known_entities.retired_ids.insert(id, tombstone.since);
            }
            !gone
        });
        known_entities.release(self.layout.has_references, &entity_states.active);
        known_entities
            .dirty
            .retain(|&id, _| entity_states.phase(id) == Phase::Resting);
        for &id in entity_states.rest_rows.keys() {
            if known_entities.slot(id).is_some() {
                known_entities.dirty.entry(id).or_default();
            }
        }
    }
}
