//! Events as programs see them: what they are about, and those of the program's own types.

use std::marker::PhantomData;
use std::sync::Arc;

use prescient_codec::{RowError, Tick};
use prescient_schema::{Event, Misfit, Parcel, Request};
use thiserror::Error;

use crate::server::{PeerError, PeerId};

/// The entity that an event is about, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About<O> {
    /// No entity.
    Nothing,
    /// An entity that the receiver knows.
    Entity(O),
    /// An entity that the receiver no longer knows.
    Gone,
}

/// An event that was received.
///
/// References in it name entities as the receiver's own references do; one to an entity that the
/// receiver could not see at the event's tick is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedEvent {
    tick: Tick,
    class: Arc<str>,
    parcel: Parcel,
}

impl TypedEvent {
    pub(crate) fn new(tick: Tick, class: Arc<str>, parcel: Parcel) -> Self {
        Self {
            tick,
            class,
            parcel,
        }
    }

    /// The server's tick at which it was sent; sent by a client, the tick that the client showed.
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// The name of its type, with that of the variant: `Kill`, or `GameEvent::Kill`.
    pub fn name(&self) -> &str {
        self.class.strip_prefix("event ").unwrap_or(&self.class)
    }

    /// Whether it is a `T`.
    pub fn is<T: Event>(&self) -> bool {
        self.variant::<T>().is_some()
    }

    /// The event, if it is a `T`.
    pub fn read<T: Event>(&self) -> Option<T> {
        let Parcel { row, .. } = &self.parcel;
        T::from_row_in(self.variant::<T>()?, row, &self.parcel).ok()
    }

    /// Approximate memory.
    pub fn bytes(&self) -> usize {
        parcel_bytes(&self.parcel)
    }

    /// Its values by column, for programs whose schema is known only at run time.
    pub fn parcel(&self) -> &Parcel {
        &self.parcel
    }

    fn variant<T: Event>(&self) -> Option<usize> {
        T::CLASSES.iter().position(|&name| name == &*self.class)
    }
}

/// Approximate memory of values.
pub(crate) fn parcel_bytes(parcel: &Parcel) -> usize {
    let contents = parcel.contents.iter().map(|content| 8 * content.len());
    size_of_val(&parcel.row[..]) + contents.sum::<usize>()
}

/// The number of a question, at the end that asked it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionId(pub(crate) u32);

/// A question that the other end asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    id: QuestionId,
    event: TypedEvent,
}

impl Question {
    pub(crate) fn new(id: QuestionId, event: TypedEvent) -> Self {
        Self { id, event }
    }

    /// The question and where to reply, if it is a `T`.
    pub fn read<T: Request>(&self) -> Option<(T, ReplyTo<T>)> {
        let reply_to = ReplyTo {
            id: self.id,
            asks: PhantomData,
        };
        Some((self.event.read()?, reply_to))
    }

    /// The question as an event.
    pub fn event(&self) -> &TypedEvent {
        &self.event
    }
}

/// Where the answer of a `T` goes; each question is replied to once.
#[derive(Debug)]
pub struct ReplyTo<T> {
    pub(crate) id: QuestionId,
    asks: PhantomData<fn() -> T>,
}

/// What the other end replied to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    question: QuestionId,
    event: TypedEvent,
}

impl Reply {
    pub(crate) fn new(question: QuestionId, event: TypedEvent) -> Self {
        Self { question, event }
    }

    /// The number that asking returned.
    pub fn question(&self) -> QuestionId {
        self.question
    }

    /// The answer, if it is a `T`.
    pub fn read<T: Event>(&self) -> Option<T> {
        self.event.read()
    }

    /// The answer as an event.
    pub fn event(&self) -> &TypedEvent {
        &self.event
    }
}

/// Why an event was not sent.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EventError {
    /// The type is not part of the schema.
    #[error("`{0}` is no event of the schema; add it with `Schema::with_events`")]
    UnknownEvent(String),
    /// A reference, in the field of this name, names an entity of another type than the field declares.
    #[error("`{0}` refers to an entity of another type")]
    WrongReference(String),
    /// A value does not fit its field.
    #[error("the value of `{field}` does not fit: {misfit} (`saturate` would change it)")]
    DoesNotFit {
        /// The event and the field.
        field: String,
        /// Why it does not fit.
        misfit: Misfit,
    },
    /// The event is too long; a blob is the place for that much.
    #[error("an event of {0} bytes is longer than the {MAX_EVENT_BYTES} that are possible")]
    TooLong(usize),
    /// The values do not fit the columns that the type declares.
    #[error("the values do not fit the columns of the event")]
    Invalid,
    /// The peer is not connected.
    #[error("no peer {0:?} is connected")]
    NoSuchPeer(PeerId),
    /// There is no connection.
    #[error("there is no connection")]
    NotConnected,
    /// Too much waits to be sent; try again later.
    #[error("too much waits to be sent; try again later")]
    Backlogged,
}

prescient_schema::debug_as_display!(EventError);

impl EventError {
    pub(crate) fn unknown<T: Event>(variant: usize) -> Self {
        let name = T::CLASSES.get(variant).copied().unwrap_or_default();
        Self::UnknownEvent(name.strip_prefix("event ").unwrap_or(name).into())
    }
}

impl From<RowError> for EventError {
    fn from(error: RowError) -> Self {
        match error {
            RowError::TooLong(length) => Self::TooLong(length),
            _ => Self::Invalid,
        }
    }
}

impl From<PeerError> for EventError {
    fn from(error: PeerError) -> Self {
        match error {
            PeerError::NoSuchPeer(peer) => Self::NoSuchPeer(peer),
            _ => Self::NotConnected,
        }
    }
}

/// The longest event, coded by itself. In a stream it may become longer, by less than half.
pub const MAX_EVENT_BYTES: usize = 16 << 10;
