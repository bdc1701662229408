//! Updates a client's visible set: queries the policy about what changed and informs the encoder.

use prescient_codec::{Slot, Tick};

use super::Peer;
use crate::outbox::Notice;
use crate::relevance::{Candidate, Observer, Relevance, Visibility};
use crate::server::PeerId;
use crate::world::{EntityRecord, Serial, Touched, World};

impl Peer {
    /// Updates the visible set. `now` says whether distances are to be evaluated; `room` is how many
    /// bytes of state can be sent in this tick.
    #[allow(
        clippy::too_many_arguments,
        reason = "what a tick consists of, for one peer"
    )]
    pub(crate) fn update_visibility(
        &mut self,
        observer: &Observer,
        world: &World,
        policy: &dyn Relevance,
        touched: &[Touched],
        now: bool,
        room: usize,
        team_of: &dyn Fn(Option<PeerId>) -> u32,
    ) {
        let own = observer.peer;
        let visibility = |record: &EntityRecord, seen: Option<Visibility>| {
            let class = world.entity_types().tables(record.entity_type)[0];
            let candidate = Candidate {
                entity: world.archive().reference(record.serial.first)?,
                class,
                priority: world.priority(class),
                owner: record.owner,
                team: team_of(record.owner),
                position: record.position,
            };
            policy.visibility(observer, &candidate, seen)
        };
        let tick = world.tick().unwrap_or_default();
        self.released.forget(tick);
        for &touched in touched {
            match touched {
                Touched::Gone(serial) => {
                    // The encoder removes despawned entities by itself, but only when it encodes.
                    if self.sees(serial)
                        && let Some(id) = self.encoder.net_entity_id(serial.first)
                    {
                        self.visible_set.set(id, None);
                        self.released.note(id, tick);
                    }
                    self.authorities.remove(&serial);
                    self.give_up(serial);
                }
                Touched::GoneTable(slot) => {
                    if let Some(id) = self.encoder.net_entity_id(slot) {
                        self.released.note(id, tick);
                    }
                }
                Touched::Lost(slot) => self.hide_table(slot, tick),
                Touched::Here(_) | Touched::Gained(..) => {}
            }
        }
        self.evaluated_serials = world.next_serial();
        let mut asked = Vec::new();
        if std::mem::take(&mut self.needs_evaluation) {
            self.pending_visible.clear();
            self.evaluated = Some((*observer, tick));
            asked.extend(world.serials());
        } else {
            let here = touched.iter().filter_map(|touched| match touched {
                Touched::Here(serial) => Some(world.root(*serial)),
                Touched::Gone(_)
                | Touched::GoneTable(_)
                | Touched::Gained(..)
                | Touched::Lost(_) => None,
            });
            asked.extend(here);
            if now && let Some(reach) = policy.reach(observer) {
                let before = self.evaluated.replace((*observer, tick));
                let same = before.filter(|(evaluated, _)| evaluated.looks_like(observer));
                let moved = |serial: &Serial| match (same, world.record_of(*serial)) {
                    (Some((_, since)), Some(record)) => record.moved > since,
                    (None, record) => record.is_some(),
                    (_, None) => false,
                };
                if same.is_none() {
                    asked.extend(self.pending_visible.drain(..).map(|(_, serial)| serial));
                }
                if let Some(view_position) = observer.view_position {
                    asked.extend(world.grid().near(view_position, reach).filter(moved));
                }
                let entity = |id| world.record_at(self.encoder.slot(id)?);
                let visible = self.visible_set.ids().filter_map(entity);
                asked.extend(visible.map(|record| record.serial).filter(moved));
            }
            asked.sort_unstable();
            asked.dedup();
        }
        let mut fresh = Vec::new();
        for serial in asked {
            // Children have the visibility of their root; the policy is queried about roots only.
            let record = world.record_of(serial);
            let Some(record) = record.filter(|record| record.parent.is_none()) else {
                continue;
            };
            let seen = self.visibility(serial);
            match (seen, visibility(record, seen)) {
                (None, Some(_)) => fresh.push(serial),
                (_, visibility) => self.show_hierarchy(own, record, visibility, world),
            }
        }
        // A gained table is as visible as the policy decided about the entity.
        for &touched in touched {
            if let Touched::Gained(serial, table) = touched
                && let Some(record) = world.record_of(serial)
                && let Some(visibility) = self.visibility(serial)
            {
                let visibility = Some(visibility);
                self.show_table(record, usize::from(table), visibility, visibility, world);
            }
        }
        self.queue_visible(fresh, observer, world);
        let shown = (room / MIN_SPAWN_BYTES).clamp(MIN_SHOWN_PER_TICK, MAX_SHOWN_PER_TICK);
        let limit = self.visible_set.len().saturating_add(shown);
        while self.visible_set.len() < limit
            && let Some((_, serial)) = self.pending_visible.pop()
        {
            let record = world.record_of(serial);
            if let Some(record) = record.filter(|record| record.parent.is_none())
                && !self.sees(serial)
            {
                self.show_hierarchy(own, record, visibility(record, None), world);
            }
        }
        self.pace
            .expect_entities(self.visible_set.len() + self.pending_visible.len());
        if self.pending_visible.len() < self.pending_visible.capacity() / 4 {
            self.pending_visible
                .shrink_to(self.pending_visible.len() * 2);
        }
    }

    /// Sorts new entities into the queue by distance. The number of entities that stay hidden must
    /// not influence the result.
    fn queue_visible(&mut self, fresh: Vec<Serial>, observer: &Observer, world: &World) {
        if fresh.is_empty() {
            return;
        }
        let distance = |serial: Serial| {
            let position = world.record_of(serial).and_then(|record| record.position);
            let distance = observer
                .view_position
                .zip(position)
                .map(|(view_position, at)| view_position.distance(at));
            // Not negative, so that the order of the bits is that of the distances.
            (distance.unwrap_or(0.0).to_bits(), serial)
        };
        self.pending_visible.extend(fresh.into_iter().map(distance));
        // Most entries are sorted already, which this sort exploits.
        self.pending_visible.sort_by(|a, b| b.cmp(a));
    }

    /// Sets the visibility of an entity and its children. A client always sees the entities that it
    /// has authority over.
    fn show_hierarchy(
        &mut self,
        own: PeerId,
        record: &EntityRecord,
        visibility: Option<Visibility>,
        world: &World,
    ) {
        let granted = record.authority == Some(own);
        let visibility = visibility.or(granted.then_some(Visibility::FULL));
        self.show(record, visibility, world);
        if granted != self.authorities.contains(&record.serial) {
            if granted {
                self.authorities.insert(record.serial);
            } else {
                self.authorities.remove(&record.serial);
            }
            let tick = world.tick().unwrap_or_default();
            self.notify(record.serial, tick, Notice::Authority(granted));
        }
        for &child in &record.children {
            if let Some(child) = world.record_of(child) {
                self.show_hierarchy(own, child, visibility, world);
            }
        }
    }

    /// Sets the visibility of an entity.
    fn show(&mut self, record: &EntityRecord, visibility: Option<Visibility>, world: &World) {
        let seen = self.visibility(record.serial);
        if visibility == seen {
            return;
        }
        let known = self.encoder.net_entity_id(record.serial.first);
        for &(table, _) in &record.slots {
            self.show_table(record, usize::from(table), seen, visibility, world);
        }
        if let Some(id) = known.or_else(|| self.encoder.net_entity_id(record.serial.first)) {
            self.visible_set.set(id, visibility);
        }
        if visibility.is_none() {
            self.give_up(record.serial);
        }
    }

    /// Shows or hides a table of an entity; `seen` is the entity's visibility until now.
    fn show_table(
        &mut self,
        record: &EntityRecord,
        table: usize,
        seen: Option<Visibility>,
        visibility: Option<Visibility>,
        world: &World,
    ) {
        let Some(slot) = record.slot(table) else {
            return;
        };
        let tick = world.tick().unwrap_or_default();
        let optional = world.entity_types().is_optional(record.entity_type, table);
        let before = seen.is_some_and(|seen| seen.shows(table, optional))
            && self.encoder.net_entity_id(slot).is_some();
        match visibility.filter(|visibility| visibility.shows(table, optional)) {
            Some(visibility) => {
                if !before && let Some(id) = self.encoder.show(slot, world.archive()) {
                    self.note_assigned(id, tick);
                }
                self.encoder
                    .set_level(slot, visibility.level, world.archive());
                self.encoder.set_weight(slot, visibility.weight);
                let declared = world.entity_types().tables(record.entity_type)[0];
                let priority = visibility.priority.unwrap_or(world.priority(declared));
                self.encoder.set_priority(slot, priority, world.archive());
            }
            None if before => self.hide_table(slot, tick),
            None => {}
        }
    }

    /// Hides a table entity, if it is visible.
    fn hide_table(&mut self, slot: Slot, now: Tick) {
        let Some(id) = self.encoder.net_entity_id(slot) else {
            return;
        };
        self.encoder.hide(slot);
        self.released.note(id, now);
    }
}

/// Entities that become visible in a tick, at least and at most: showing one is costly, and more than
/// a packet carries only wait.
const MIN_SHOWN_PER_TICK: usize = 512;
const MAX_SHOWN_PER_TICK: usize = 16384;
/// Bytes of an entity that is new to a client; most take more.
const MIN_SPAWN_BYTES: usize = 4;
