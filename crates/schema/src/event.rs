//! Rust types as events: things that happen once.
//!
//! `#[derive(Event)]` implements [`Event`] for a struct, or for an enumeration whose variants may
//! have fields. A struct is one class of the schema, an enumeration one class per variant, so that
//! each variant is coded by its own fields. Events are part of the schema: ends that differ in them
//! are told the event and the field.

use crate::{Class, Library, Parcel, ReadError, SchemaBuilder, SchemaError, Sink, Source};

/// A type whose values can be sent as events, requests, answers or inputs.
pub trait Event: Sized {
    /// The names of its classes: one of a struct, one per variant of an enumeration. Each begins with
    /// `event `, so that an event and a state may have the same name.
    const CLASSES: &'static [&'static str];

    /// The class of a variant; a struct has one.
    fn class(variant: usize) -> Result<Class, SchemaError>;

    /// Appends the values to a row, and returns the variant.
    fn write(&self, row: &mut impl Sink) -> usize;

    /// The variant, and its values.
    fn to_parcel(&self) -> (usize, Parcel) {
        let mut parcel = Parcel::default();
        (self.write(&mut parcel), parcel)
    }

    /// Takes a value of a variant from a row.
    fn read(variant: usize, row: &mut Source<'_>) -> Result<Self, ReadError>;

    /// The value of a row of a variant, with the contents of its containers in `library`.
    fn from_row_in(variant: usize, row: &[i64], library: &dyn Library) -> Result<Self, ReadError> {
        let mut source = Source::with(row, library);
        let event = Self::read(variant, &mut source)?;
        source.finish()?;
        Ok(event)
    }
}

/// An event that is answered. `#[event(answer = Bought)]` implements it.
pub trait Request: Event {
    /// The answer.
    type Answer: Event;
}

/// A type that is an [`Event`], or a tuple of up to 12 such types.
pub trait Events {
    /// Adds the classes of all types to a schema, in order.
    fn add_to(builder: SchemaBuilder) -> SchemaBuilder;
}

impl<T: Event> Events for T {
    fn add_to(builder: SchemaBuilder) -> SchemaBuilder {
        builder.event::<T>()
    }
}

macro_rules! tuple_of_events {
    ($($event:ident)+) => {
        impl<$($event: Event),+> Events for ($($event,)+) {
            fn add_to(builder: SchemaBuilder) -> SchemaBuilder {
                builder$(.event::<$event>())+
            }
        }
    };
}

tuple_of_events!(A B);
tuple_of_events!(A B C);
tuple_of_events!(A B C D);
tuple_of_events!(A B C D E);
tuple_of_events!(A B C D E F);
tuple_of_events!(A B C D E F G);
tuple_of_events!(A B C D E F G H);
tuple_of_events!(A B C D E F G H I);
tuple_of_events!(A B C D E F G H I J);
tuple_of_events!(A B C D E F G H I J K);
tuple_of_events!(A B C D E F G H I J K L);

/// How an event is delivered. With each of these, none arrives twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventDelivery {
    /// Every event arrives, in the order of sending. Coded by a model that learns from each of them.
    #[default]
    Ordered,
    /// Every event arrives, as soon as possible.
    Unordered,
    /// Events may be lost or reordered.
    Unreliable,
    /// Events may be lost, and none arrives after one that was sent later.
    Sequenced,
}

impl EventDelivery {
    /// The delivery of this number in an encoded schema.
    pub(crate) fn new(number: u8) -> Option<Self> {
        let all = [
            Self::Ordered,
            Self::Unordered,
            Self::Unreliable,
            Self::Sequenced,
        ];
        all.get(usize::from(number)).copied()
    }

    /// Its name in attributes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ordered => "ordered",
            Self::Unordered => "unordered",
            Self::Unreliable => "unreliable",
            Self::Sequenced => "sequenced",
        }
    }
}

/// How the names of the classes of events begin.
pub(crate) const EVENT_PREFIX: &str = "event ";
