//! Schemas: the description of replicated state.
//!
//! A [`Schema`] is a list of [`Class`]es, a class is a flat list of [`Field`]s, and the value of
//! every field, whatever its Rust type, is one `i64`. Everything downstream (prediction, coding,
//! replication) sees only rows of integers, so both ends can agree bit for bit.
//!
//! ```
//! use prescient_schema::{SchemaBuilder, State};
//!
//! #[derive(State, Debug, PartialEq)]
//! #[state(rename = "car", tick_hz = 60)]
//! struct Car {
//!     #[state(step = 0.01, position, priority = 1)]
//!     position: [f32; 2],
//!     #[state(step = 0.01, velocity_of = "position", priority = 2)]
//!     velocity: [f32; 2],
//!     #[state(only_on_spawn, owner)]
//!     team: u8,
//!     gear: Gear,
//! }
//!
//! #[derive(State, Debug, PartialEq)]
//! enum Gear {
//!     Forward,
//!     Reverse,
//! }
//!
//! let schema = SchemaBuilder::new().state::<Car>().build()?;
//! let car = Car { position: [1.0, -2.5], velocity: [0.0, 0.5], team: 1, gear: Gear::Reverse };
//! let row = car.to_row("default");
//! assert_eq!(row, [100, -250, 0, 50, 1, 1]);
//! assert_eq!(Car::from_row("default", &row)?, car);
//! assert_eq!(schema.classes[0].fields[2].name, "velocity[0]");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]

extern crate alloc;

/// Implements `Debug` like `Display`, for errors: a `main` that returns one prints it by `Debug`.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_as_display {
    ($error:ident) => {
        impl ::core::fmt::Debug for $error {
            fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(self, formatter)
            }
        }
    };
}

mod builder;
mod class;
mod content;
mod declaration;
mod difference;
mod encoding;
mod error;
mod event;
mod field;
mod fingerprint;
mod float;
mod projection;
mod reference;
mod rules;
mod state;
mod step;
mod value;

pub use builder::{ClassBuilder, Rate, SchemaBuilder, States};
pub use class::{Class, Contract, ContractFn, Schema};
pub use content::{Container, Content, Library, Parcel};
pub use declaration::{Declaration, Form};
pub use difference::{Difference, Side};
pub use encoding::DecodeError;
pub use error::{Fault, SchemaError};
pub use event::{Event, EventDelivery, Events, Request};
pub use field::{Derivative, Field, FieldKind, Level, Priority, Shape};
pub use fingerprint::Fingerprint;
pub use float::{
    CustomFloat, FloatFormat, exact_from_f32, exact_from_f64, exact_to_f32, exact_to_f64,
};
#[cfg(feature = "derive")]
pub use prescient_derive::{Event, State};
pub use projection::{ClassProjection, Projection, Tolerance};
pub use reference::{EntityRef, Ref};
pub use state::{State, fast_forward, has_field};
pub use step::{Step, StepError};
pub use value::{
    Bits, Buffer, Gradual, Misfit, Numeric, Part, ReadError, ReadFault, Real, Sink, Source, Value,
    join,
};
