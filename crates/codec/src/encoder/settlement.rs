//! What becomes of packets: sent, applied, lost, folded.

use crate::{
    config::{FEW, MANY, Profile},
    header::MAX_EXCLUDED,
    history::Archive,
    log::Log,
    population::Phase,
    roster::{Doom, Sight},
    units::Sequence,
};

use super::{Encoder, WINDOW};

impl Encoder {
    pub(super) fn note_sent(&mut self, log: &Log) {
        if self.counting {
            self.appetite.learn(&self.bill);
        }
        self.roster.note_sent(log);
        if log.full {
            for &id in &self.twin.book.active {
                self.roster.sent[id as usize] = log.sequence;
            }
        }
    }

    /// Folds what is now known to be applied.
    pub(super) fn settle(&mut self, newest: Sequence, applied: u64, archive: &Archive) {
        let next = self.newest.0.saturating_add(1);
        let oldest = self.logs.front().map_or(next, |log| log.sequence.0);
        let floor = oldest.max(next.saturating_sub(WINDOW));
        let floor = floor.max(newest.0.saturating_sub(63));
        if newest <= self.cursor || newest.0 < floor {
            return;
        }
        let settled = self.cursor.max(self.before_epoch);
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
            if back < 64 && applied >> back & 1 == 1 {
                self.statistics.applied += 1;
                self.roster.note_applied(&log);
                for id in &log.despawns {
                    if let Some(doom) = self.roster.doomed.get_mut(id) {
                        doom.told |= log.sequence > doom.since;
                    }
                }
                if log.sequence.0 >= floor {
                    self.fold(&log, archive);
                    self.statistics.folded += 1;
                } else {
                    self.roster.note_unheard(&log);
                }
            } else {
                self.roster.note_unheard(&log);
                self.note_lost(&log);
            }
            if log.sequence == newest {
                self.cursor_tick = log.tick;
                self.cursor_base = log.cursor;
            }
            self.retire(log);
        }
        self.cursor = newest;
        let base = self.cursor_base;
        self.excluded.retain(|(_, to)| *to > base);
        for id in core::mem::take(&mut self.roster.releveled) {
            self.follow_level(id, archive);
        }
        self.settle_roster();
    }

    fn fold(&mut self, log: &Log, archive: &Archive) {
        let sight = Sight {
            archive,
            roster: &self.roster,
            layout: &self.layout,
        };
        match self.config.profile {
            Profile::Default => self.twin.fold::<FEW>(log, &sight),
            Profile::Best => self.twin.fold::<MANY>(log, &sight),
        }
        self.twin.commit();
        for &(id, _) in &log.spawns {
            let weight = self.roster.weights[id as usize];
            self.roster.waiting.remove(id, weight);
        }
        let levels = log.levels.iter().map(|&(id, _)| id);
        self.roster.releveled.extend(levels);
    }

    /// What a lost packet covered waits already for as long as anything may.
    fn note_lost(&mut self, log: &Log) {
        let ids = if log.full {
            &self.twin.book.active
        } else {
            &log.covered
        };
        for &id in ids.iter().chain(&log.covered) {
            let sent = &mut self.roster.sent[id as usize];
            if *sent == log.sequence {
                *sent = Sequence(1);
            }
        }
    }

    fn settle_roster(&mut self) {
        let book = &self.twin.book;
        let roster = &mut self.roster;
        let forgotten = |id: u32, doom: &Doom| doom.told && book.phase(id) == Phase::Absent;
        roster.doomed.retain(|&id, doom| {
            let gone = forgotten(id, doom);
            if gone {
                roster.limbo.insert(id, doom.since);
            }
            !gone
        });
        roster.release(self.layout.has_references, &book.active);
        roster
            .dirty
            .retain(|&id, _| book.phase(id) == Phase::Resting);
        for &id in book.rest_rows.keys() {
            if roster.slot(id).is_some() {
                roster.dirty.entry(id).or_default();
            }
        }
    }
}
