//! Typed events, to and from the server.

use prescient_codec::{DecodedRow, NetEntityId, Tick};
use prescient_schema::{EntityRef, Event, EventDelivery, Parcel, Request};

use super::inbox::Notice;
use super::{Change, Client, ClientError, EntityHandle};
use crate::message::TypedKind;
use crate::transmit::{Delivery, Transmit};
use crate::typed_event::{EventError, Question, QuestionId, Reply, ReplyTo, TypedEvent};
use crate::world_generation::WorldGeneration;

/// Typed events to the server.
impl Client {
    /// An event for the server, to be sent with the returned delivery. If an ordered one is not
    /// delivered, call [`restart_events`](Self::restart_events).
    pub fn tell<T: Event>(&mut self, event: &T) -> Result<Transmit, EventError> {
        self.outgoing(event, None)
    }

    /// A question for the server; its reply is a [`Change::Reply`] with the returned number.
    pub fn ask<T: Request>(&mut self, question: &T) -> Result<(QuestionId, Transmit), EventError> {
        let number = self.questions;
        let transmit = self.outgoing(question, Some(TypedKind::Question(number)))?;
        self.questions = number.wrapping_add(1);
        Ok((QuestionId(number), transmit))
    }

    /// A reply to the server's question.
    pub fn reply<T: Request>(
        &mut self,
        to: ReplyTo<T>,
        reply: &T::Answer,
    ) -> Result<Transmit, EventError> {
        self.outgoing(reply, Some(TypedKind::Reply(to.id.0)))
    }

    /// A typed input in at most `max_len` bytes.
    pub fn input_fields<T: Event>(
        &mut self,
        input: &T,
        max_len: usize,
    ) -> Result<Vec<u8>, EventError> {
        let (class, _, parcel) = self.event_row(input)?;
        Ok(self.typed_out.encode_input(class, &parcel, max_len)?)
    }

    /// What [`input_fields`](Self::input_fields) wrote, rounded as the server reads it; `None` if it
    /// is no `T`.
    pub fn read_input<T: Event>(&mut self, fields: &[u8]) -> Option<T> {
        let decoded = self.typed_out.decode_input(fields).ok()?;
        let name = self
            .shown_world
            .event_types()
            .get(decoded.class)?
            .name
            .clone();
        TypedEvent::new(Tick::default(), name, decoded.parcel).read()
    }

    /// Begins the stream of typed events anew, because a message of it was not delivered.
    pub fn restart_events(&mut self) {
        self.typed_out.restart();
    }

    fn outgoing<T: Event>(
        &mut self,
        event: &T,
        kind: Option<TypedKind>,
    ) -> Result<Transmit, EventError> {
        let (class, delivery, parcel) = self.event_row(event)?;
        self.typed_out.check(class, &parcel)?;
        let (kind, delivery) = match (kind, delivery) {
            (Some(kind), _) => (kind, Delivery::Reliable),
            (None, EventDelivery::Ordered) => (TypedKind::Ordered, Delivery::Reliable),
            (None, EventDelivery::Unordered) => (TypedKind::Alone, Delivery::Unordered),
            (None, EventDelivery::Unreliable) => (TypedKind::Alone, Delivery::Unreliable),
            (None, EventDelivery::Sequenced) => (TypedKind::Alone, Delivery::Sequenced),
        };
        let generation = self.world_generation.bits();
        let tick = self.tick().unwrap_or_default();
        let message = self
            .typed_out
            .encode(kind, generation, tick, class, &parcel)?;
        Ok(Transmit::new(delivery, message))
    }

    /// An event's class, its delivery, and its values with the ids of the entities that it names.
    fn event_row<T: Event>(&self, event: &T) -> Result<(u16, EventDelivery, Parcel), EventError> {
        let event_types = self.shown_world.event_types();
        let (class, mut parcel) = event_types.parcel(event)?;
        let event_type = event_types.get(class).ok_or(EventError::Invalid)?;
        for &(column, required) in &event_type.references {
            let cell = parcel.row.get_mut(column).ok_or(EventError::Invalid)?;
            let id = EntityRef::from_cell(*cell).and_then(EntityRef::index);
            *cell = 0;
            let named = id.and_then(|id| self.shown_world.by_id(id));
            let named = named.and_then(|named| self.shown_world.entry(named));
            if let Some(shown) = named {
                if required.is_some_and(|required| required != shown.entity_type) {
                    return Err(EventError::WrongReference(event_type.field(column)));
                }
                *cell = i64::from(shown.entity.id) + 1;
            }
        }
        Ok((class, event_type.delivery, parcel))
    }
}

/// Typed events of the server.
impl Client {
    /// Reads an event.
    pub(super) fn read_typed(
        &mut self,
        kind: TypedKind,
        row: &[u8],
    ) -> Result<(Tick, Notice), ClientError> {
        // Before anything is shown, the clock tells which ticks it is about.
        let near = self.tick().or(self.clock.map(|clock| clock.tick));
        let decoded = self.typed_in.decode(kind, row, near.unwrap_or_default());
        let (tick, decoded) = decoded.map_err(ClientError::Event)?;
        let DecodedRow { class, parcel, .. } = decoded;
        if self.shown_world.event_types().get(class).is_none() {
            return Err(ClientError::Malformed);
        }
        if matches!(kind, TypedKind::Reply(number) if number >= self.questions) {
            return Err(ClientError::Malformed);
        }
        let notice = Notice::Typed {
            kind,
            class,
            parcel,
        };
        Ok((tick, notice))
    }

    /// An event as the program gets it: references name what this client shows, or showed last.
    pub(super) fn typed_change(
        &mut self,
        world_generation: Option<WorldGeneration>,
        tick: Tick,
        (kind, class, mut parcel): (TypedKind, u16, Parcel),
    ) -> Option<Change> {
        let event_types = self.shown_world.event_types().clone();
        let event_type = event_types.get(class)?;
        let is_here = world_generation == Some(self.world_generation);
        for &(column, required) in &event_type.references {
            let cell = parcel.row.get_mut(column)?;
            let id = u32::try_from(cell.checked_sub(1)?).ok();
            let id = id.filter(|_| is_here).map(NetEntityId);
            let named = id.and_then(|id| self.shown_world.at_or_departed(id, tick));
            let is_one = |entity: &EntityHandle| {
                required.is_none() || self.shown_world.type_of(*entity) == required
            };
            let named = named.filter(is_one);
            // It can be read while the event is handled, even if it was removed.
            self.departed.extend(named);
            let named = named.map_or(EntityRef::NONE, |entity| EntityRef::new(entity.id, 0));
            *cell = named.cell();
        }
        let event = TypedEvent::new(tick, event_type.name.clone(), parcel);
        Some(match kind {
            TypedKind::Ordered | TypedKind::Alone => Change::Typed(event),
            TypedKind::Question(number) => {
                Change::Question(Question::new(QuestionId(number), event))
            }
            TypedKind::Reply(number) => Change::Reply(Reply::new(QuestionId(number), event)),
        })
    }
}
