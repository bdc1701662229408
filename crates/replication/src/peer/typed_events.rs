//! Sends a client typed events, once it knows the entities that they name.
//!
//! An event names entities by the client's ids. The ids of entities that the client knows are looked
//! up before the visible set of the tick is updated, because an event may be about what it removes.
//! Events in order wait for each other; all others wait only for the entities that they name.

use std::collections::VecDeque;
use std::sync::Arc;

use prescient_codec::{DecodedRow, NetEntityId, Tick};
use prescient_schema::{EventDelivery, Parcel};

use super::Peer;
use crate::event_coders::EventCoders;
use crate::message::TypedKind;
use crate::transmit::Delivery;
use crate::typed_event::{TypedEvent, parcel_bytes};
use crate::world::{Serial, World};

/// An event on its way to some peers.
#[derive(Debug)]
pub(crate) struct OutgoingEvent {
    pub tick: Tick,
    pub class: u16,
    pub delivery: EventDelivery,
    /// For each column with a reference, the entity.
    pub references: Vec<(usize, Serial)>,
    /// The values; references are 0.
    pub parcel: Parcel,
    /// Only for peers that see this entity before or after the tick.
    pub observers_of: Option<Serial>,
    pub kind: TypedKind,
}

impl OutgoingEvent {
    fn is_ordered(&self) -> bool {
        self.kind != TypedKind::Alone
    }

    fn bytes(&self) -> usize {
        parcel_bytes(&self.parcel) + size_of_val(&self.references[..])
    }
}

/// The typed events that wait for one peer.
pub(super) struct TypedOutbox {
    coders: EventCoders,
    /// Since the visible set was last updated.
    fresh: Vec<Waiting>,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    event: Arc<OutgoingEvent>,
    /// The state of each reference.
    names: Vec<Name>,
    /// Whether the peer saw the entity whose observers are meant.
    was_seen: bool,
}

/// How a reference is resolved for the client.
#[derive(Clone, Copy, Debug)]
enum Name {
    Id(NetEntityId),
    /// Looked up as soon as the client knows the entity.
    Pending(Serial),
    Hidden,
}

impl TypedOutbox {
    pub(super) fn new(coders: EventCoders) -> Self {
        Self {
            coders,
            fresh: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.coders.bytes()
    }

    pub(super) fn len(&self) -> usize {
        self.fresh.len() + self.waiting.len()
    }

    pub(super) fn restart(&mut self) {
        self.coders.restart();
    }

    /// The client will not get to know an entity.
    pub(super) fn hide(&mut self, serial: Serial) {
        let waiting = self.fresh.iter_mut().chain(&mut self.waiting);
        for name in waiting.flat_map(|waiting| &mut waiting.names) {
            if matches!(*name, Name::Pending(pending) if pending == serial) {
                *name = Name::Hidden;
            }
        }
    }
}

impl Peer {
    /// Queues a typed event; it is sent after the next update of the visible set.
    pub(crate) fn push_typed(&mut self, event: &Arc<OutgoingEvent>) {
        if self.outbox.reserve(event.bytes()) {
            let names = event.references.iter();
            self.typed.fresh.push(Waiting {
                names: names.map(|&(_, serial)| Name::Pending(serial)).collect(),
                event: event.clone(),
                was_seen: false,
            });
        }
    }

    /// Looks up what the client knows before its visible set is updated.
    pub(crate) fn name_before_update(&mut self) {
        let mut fresh = std::mem::take(&mut self.typed.fresh);
        for waiting in &mut fresh {
            let about = waiting.event.observers_of;
            waiting.was_seen = about.is_none_or(|serial| self.sees(serial));
            for name in &mut waiting.names {
                if let Name::Pending(serial) = *name
                    && self.sees(serial)
                    && let Some(id) = self.known(serial.first)
                {
                    *name = Name::Id(id);
                }
            }
        }
        self.typed.fresh = fresh;
    }

    /// Sends what can be sent after the visible set was updated.
    pub(crate) fn send_typed_after_update(&mut self) {
        for mut waiting in std::mem::take(&mut self.typed.fresh) {
            let about = waiting.event.observers_of;
            if waiting.was_seen || about.is_none_or(|serial| self.sees(serial)) {
                waiting.was_seen = true;
                self.typed.waiting.push_back(waiting);
            } else {
                self.outbox.release(waiting.event.bytes());
            }
        }
        self.send_typed();
    }

    /// Sends the typed events whose entities the client knows by now.
    pub(super) fn send_typed(&mut self) {
        let mut is_blocked = false;
        for mut waiting in std::mem::take(&mut self.typed.waiting) {
            let mut is_complete = true;
            for name in &mut waiting.names {
                let Name::Pending(serial) = *name else {
                    continue;
                };
                *name = match (self.sees(serial), self.known(serial.first)) {
                    (false, _) => Name::Hidden,
                    (true, Some(id)) => Name::Id(id),
                    (true, None) => Name::Pending(serial),
                };
                is_complete &= !matches!(name, Name::Pending(_));
            }
            let is_ordered = waiting.event.is_ordered();
            if is_complete && !(is_ordered && is_blocked) {
                self.encode_typed(&waiting);
            } else {
                is_blocked |= is_ordered;
                self.typed.waiting.push_back(waiting);
            }
        }
    }

    /// Sends everything that waits, because the client leaves for another world.
    pub(super) fn give_up_typed(&mut self) {
        self.name_before_update();
        let fresh = std::mem::take(&mut self.typed.fresh);
        for waiting in std::mem::take(&mut self.typed.waiting)
            .into_iter()
            .chain(fresh)
        {
            if waiting.was_seen {
                self.encode_typed(&waiting);
            } else {
                self.outbox.release(waiting.event.bytes());
            }
        }
    }

    /// An event of the client; `None` if it is forged: it is no event, or names an entity that this
    /// client was never shown or that has another type. A reference to an entity that is gone is
    /// empty.
    pub(crate) fn typed_event(
        &self,
        shown: Tick,
        decoded: DecodedRow,
        here: bool,
        world: &World,
    ) -> Option<TypedEvent> {
        let DecodedRow {
            class, mut parcel, ..
        } = decoded;
        let event_type = world.event_types().get(class)?;
        for &(column, required) in &event_type.references {
            let cell = parcel.row.get_mut(column)?;
            let Some(id) = cell.checked_sub(1).filter(|&id| id >= 0) else {
                continue;
            };
            let id = NetEntityId(u32::try_from(id).ok()?);
            if here && id.0 as usize >= self.assigned_at.len() {
                return None;
            }
            let slot = self.slot(id, shown).filter(|_| here);
            let entity = slot.and_then(|slot| world.entity_of(slot));
            let found = entity.and_then(|entity| world.recent(entity));
            if let (Some((_, entity_type)), Some(required)) = (found, required)
                && entity_type != required
            {
                return None;
            }
            *cell = entity.unwrap_or_default().cell();
        }
        Some(TypedEvent::new(shown, event_type.name.clone(), parcel))
    }

    /// Whether the client's events cost more than they may. What it has not used in earlier ticks
    /// counts.
    pub(crate) fn tells_too_much(&mut self, now: Tick, work: usize) -> bool {
        let (since, spent) = self.typed_work;
        let freed = now.since(since).saturating_mul(WORK_PER_TICK);
        let spent = spent.saturating_sub(freed) + work as u64;
        self.typed_work = (now, spent);
        spent > MAX_WORK
    }

    /// A typed input of the client.
    pub(crate) fn typed_input(&self, decoded: DecodedRow, world: &World) -> Option<TypedEvent> {
        let shown = self.sent.applied.unwrap_or_default();
        self.typed_event(shown, decoded, true, world)
    }

    fn encode_typed(&mut self, waiting: &Waiting) {
        let Waiting { event, names, .. } = waiting;
        self.outbox.release(event.bytes());
        let mut parcel = event.parcel.clone();
        for (&(column, _), name) in event.references.iter().zip(names) {
            if let Name::Id(id) = name {
                parcel.row[column] = i64::from(id.0) + 1;
            }
        }
        let generation = self.world_generation.bits();
        let message =
            self.typed
                .coders
                .encode(event.kind, generation, event.tick, event.class, &parcel);
        let delivery = match (event.is_ordered(), event.delivery) {
            (true, _) | (_, EventDelivery::Ordered) => Delivery::Reliable,
            (_, EventDelivery::Unordered) => Delivery::Unordered,
            (_, EventDelivery::Unreliable) => Delivery::Unreliable,
            (_, EventDelivery::Sequenced) => Delivery::Sequenced,
        };
        // Its length was checked when it was made.
        if let Ok(message) = message {
            self.events += u64::from(self.outbox.push_as(delivery, message));
        }
    }
}

/// Decisions that a client's events may cost the server per tick, and at once. A chat message takes a
/// few hundred; the longest event half a million.
const WORK_PER_TICK: u64 = 20_000;
const MAX_WORK: u64 = 2_000_000;
