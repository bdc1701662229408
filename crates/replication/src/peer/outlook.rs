//! What a client is shown: its policy asked about what changed, and the encoder told.

use super::Peer;
use crate::mail::Notice;
use crate::relevance::{Relevance, Sight, Subject, Viewer};
use crate::server::PeerId;
use crate::world::{Record, Serial, Touched, World};

impl Peer {
    /// Brings what is shown up to date. `now` says that places are to be looked at.
    pub fn look(
        &mut self,
        viewer: &Viewer,
        world: &World,
        policy: &dyn Relevance,
        touched: &[Touched],
        now: bool,
        team_of: &dyn Fn(Option<PeerId>) -> u32,
    ) {
        let own = viewer.peer;
        let sight = |record: &Record, seen: Option<Sight>| {
            let subject = Subject {
                object: world.archive().reference(record.slots[0])?,
                owner: record.owner,
                team: team_of(record.owner),
                place: record.place,
            };
            policy.sight(viewer, &subject, seen)
        };
        for &touched in touched {
            if let Touched::Gone(serial) = touched {
                // The encoder notices by itself what left the archive, but not before this.
                if self.sees(serial)
                    && let Some(id) = self.encoder.client_id(serial.first)
                {
                    self.sights.set(id, None);
                }
                self.charged.remove(&serial);
                self.give_up(serial);
            }
        }
        self.unasked = world.next_serial();
        let tick = world.tick().unwrap_or_default();
        let mut asked = Vec::new();
        if std::mem::take(&mut self.unsettled) {
            self.wanted.clear();
            self.looked = Some((*viewer, tick));
            asked.extend(world.serials());
        } else {
            let here = touched.iter().filter_map(|touched| match touched {
                Touched::Here(serial) => Some(world.root(*serial)),
                Touched::Gone(_) => None,
            });
            asked.extend(here);
            if now && let Some(reach) = policy.reach(viewer) {
                let before = self.looked.replace((*viewer, tick));
                let same = before.filter(|(looked, _)| looked == viewer);
                let moved = |serial: &Serial| match (same, world.record_of(*serial)) {
                    (Some((_, since)), Some(record)) => record.moved > since,
                    (None, record) => record.is_some(),
                    (_, None) => false,
                };
                if same.is_none() {
                    asked.extend(self.wanted.drain(..).map(|(_, serial)| serial));
                }
                if let Some(eye) = viewer.eye {
                    asked.extend(world.grid().near(eye, reach).filter(moved));
                }
                let object = |id| world.record_at(self.encoder.slot(id)?);
                let visible = self.sights.ids().filter_map(object);
                asked.extend(visible.map(|record| record.serial).filter(moved));
            }
            asked.sort_unstable();
            asked.dedup();
        }
        let mut fresh = Vec::new();
        for serial in asked {
            // Parts are seen as their wholes are, about which alone a policy is asked.
            let record = world.record_of(serial);
            let Some(record) = record.filter(|record| record.whole.is_none()) else {
                continue;
            };
            let seen = self.sight(serial);
            match (seen, sight(record, seen)) {
                (None, Some(_)) => fresh.push(serial),
                (_, sight) => self.show_whole(own, record, sight, world),
            }
        }
        self.want(fresh, viewer, world);
        let most = self.sights.len().saturating_add(MOST_SHOWN);
        while self.sights.len() < most
            && let Some((_, serial)) = self.wanted.pop()
        {
            let record = world.record_of(serial);
            if let Some(record) = record.filter(|record| record.whole.is_none())
                && !self.sees(serial)
            {
                self.show_whole(own, record, sight(record, None), world);
            }
        }
        if self.wanted.len() < self.wanted.capacity() / 4 {
            self.wanted.shrink_to(self.wanted.len() * 2);
        }
    }

    /// Puts what it shall see behind what is nearer. How many others there are that it shall not
    /// see must not matter here.
    fn want(&mut self, fresh: Vec<Serial>, viewer: &Viewer, world: &World) {
        if fresh.is_empty() {
            return;
        }
        let distance = |serial: Serial| {
            let place = world.record_of(serial).and_then(|record| record.place);
            let distance = viewer.eye.zip(place).map(|(eye, at)| eye.distance(at));
            // Not negative, so that its bits are in the same order.
            (distance.unwrap_or(0.0).to_bits(), serial)
        };
        self.wanted.extend(fresh.into_iter().map(distance));
        // Most are in order already, of which this sort makes use.
        self.wanted.sort_by(|a, b| b.cmp(a));
    }

    /// Shows an object and its parts like this from now on, or not at all. Who is in charge of
    /// something sees it.
    fn show_whole(&mut self, own: PeerId, record: &Record, sight: Option<Sight>, world: &World) {
        let yours = record.author == Some(own);
        let sight = sight.or(yours.then_some(Sight::WHOLE));
        self.show(record, sight, world);
        if yours != self.charged.contains(&record.serial) {
            if yours {
                self.charged.insert(record.serial);
            } else {
                self.charged.remove(&record.serial);
            }
            let tick = world.tick().unwrap_or_default();
            self.notify(record.serial, tick, Notice::Charge(yours));
        }
        for &part in &record.parts {
            if let Some(part) = world.record_of(part) {
                self.show_whole(own, part, sight, world);
            }
        }
    }

    /// Shows an object like this from now on, or not at all.
    fn show(&mut self, record: &Record, sight: Option<Sight>, world: &World) {
        let seen = self.sight(record.serial);
        if sight == seen {
            return;
        }
        let known = self.encoder.client_id(record.serial.first);
        for (table, &slot) in record.slots.iter().enumerate() {
            let before = seen.is_some_and(|seen| seen.shows(table));
            match sight.filter(|sight| sight.shows(table)) {
                Some(sight) => {
                    if !before && let Some(id) = self.encoder.show(slot, world.archive()) {
                        self.name(id, world.tick().unwrap_or_default());
                    }
                    self.encoder.set_level(slot, sight.level, world.archive());
                    self.encoder.set_weight(slot, sight.weight);
                }
                None if before => self.encoder.hide(slot),
                None => {}
            }
        }
        if let Some(id) = known.or_else(|| self.encoder.client_id(record.serial.first)) {
            self.sights.set(id, sight);
        }
        if sight.is_none() {
            self.give_up(record.serial);
        }
    }
}

/// Objects that come into sight in a tick at most: showing an object is work, and no packet takes
/// more.
const MOST_SHOWN: usize = 2048;
