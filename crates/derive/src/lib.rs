//! `#[derive(State)]`: derives a schema from a plain Rust type.
//!
//! The macro only reads attributes and calls the traits of `prescient-schema`; the traits decide
//! which columns a type has. So type aliases, foreign types with a hand-written `Value` and nested
//! generics need no special case here.
//!
//! # Attributes of a struct: `#[state(…)]`
//!
//! | attribute | meaning |
//! |---|---|
//! | `rename = "car"` | name of the class |
//! | `tick_hz = 60` | ticks per second, for velocities per second |
//! | `priority = 2` | when the whole entity is degraded: 0 never, 3 first |
//! | `tables(public, private)` | several views of the type, each a class of its own; fields are in the first unless they say otherwise |
//! | `predict_with = path` | `fn(&Self, ticks: u32) -> Self`, run by both ends |
//! | `owner = "…"`, `group = "…"`, `position = "…"` | as on a field, but may name a nested one |
//!
//! # Attributes of a field
//!
//! | attribute | meaning |
//! |---|---|
//! | `step = 0.01` | floats counted in steps; also `step = "1/60"` |
//! | `exact` | floats bit for bit (the default) |
//! | `float((10, 5, 15))` | floats of (mantissa, exponent, bias) bits; or four, one per level |
//! | `bits = 12` | a narrower width |
//! | `levels(0, 1, 2, 4)` | low bits rounded away at each precision level |
//! | `max_len = 64` | maximum number of items, or of bytes of a text |
//! | `saturate` | a value that does not fit becomes the nearest one that does, instead of being refused |
//! | `bytes` | a `Vec<u8>` as a byte buffer instead of a list of numbers |
//! | `priority = 1` | when the field is degraded: 0 never, 3 first |
//! | `only_on_spawn` | sent when the entity spawns and never again |
//! | `optional` | a peer without this field may still connect |
//! | `velocity_of = "x"` | rate of change of `x`, per second, or with `per_tick` per tick |
//! | `owner`, `group`, `position` | the owner, the group (sent in one packet), the position |
//! | `keys` | the owner's input state; filled in by the server |
//! | `tables(private)` | in these tables instead of the first; at its default when read from others |
//! | `table` | an `Option` in an optional table of its own, named like the field: an entity gains the table when the field becomes `Some`, and loses it with `None` |
//! | `rename = "y"`, `skip` | another name; not replicated, at its default when read |
//!
//! # Values that do not fit
//!
//! A float is rounded to its nearest `step` or to the nearest number of its `float` format; that is
//! what they are for. Anything else arrives as it was set, or is refused: NaN and infinite numbers in
//! a field with a `step`, finite numbers beyond the range of a `step` or `float`, integers beyond
//! their `bits`, texts and containers longer than `max_len`. With `saturate` such a value is changed
//! instead: a number to the nearest that fits, NaN to 0, a text or container is cut. The end that
//! sets it counts that.
//!
//! # Types of fields
//!
//! | type | columns |
//! |---|---|
//! | integers, floats, `bool`, enumerations | one |
//! | arrays, `Option`, nested structs, vectors of `glam` | those of their parts |
//! | `String`, `Vec<T>`, `BTreeMap<K, V>`, `BTreeSet<K>` | one, a hash of the content |
//! | `Ref<T>`, `EntityRef` | one, a reference to another entity |
//!
//! Attributes about numbers (`step`, `float`, `bits`) on a container apply to its items, and on a
//! map to its values. Containers cannot hold containers or references; levels and velocities do not
//! apply inside containers.
//!
//! # Events: `#[derive(Event)]`
//!
//! A struct, or an enumeration whose variants may have fields of the same types. Its attributes are
//! `#[event(…)]`:
//!
//! | attribute | meaning |
//! |---|---|
//! | `ordered` | every event arrives, in the order of sending (the default) |
//! | `unordered` | every event arrives, as soon as possible |
//! | `unreliable` | events may be lost or reordered |
//! | `sequenced` | events may be lost, and none arrives after one that was sent later |
//! | `answer = Bought` | a request, answered by a `Bought` |
//! | `rename = "kill"` | another name |
//!
//! On a variant, they hold for that variant. Fields take the attributes `step`, `exact`, `float`,
//! `bits`, `max_len`, `bytes`, `saturate`, `rename` and `skip` of a state's fields, also as `#[event(…)]`.

mod attributes;
mod check;
mod class;
mod column;
mod enumeration;
mod event;
mod structure;

use proc_macro::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, parse_macro_input};

/// Implements `Value` for a struct or an enumeration without data, and `State` for a struct. The
/// attributes are listed on the [front page](crate).
#[proc_macro_derive(State, attributes(state))]
pub fn derive_state(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input, &quote!(::prescient_schema))
}

/// The same for programs that depend on the facade only; the facade re-exports it as `State`.
#[doc(hidden)]
#[proc_macro_derive(FacadeState, attributes(state))]
pub fn derive_facade_state(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input, &quote!(::prescient::schema))
}

/// Implements `Event` for a struct, or for an enumeration whose variants may have fields, and `Request`
/// if it names its answer. The attributes are listed on the [front page](crate).
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand_event(&input, &quote!(::prescient_schema))
}

/// The same for programs that depend on the facade only; the facade re-exports it as `Event`.
#[doc(hidden)]
#[proc_macro_derive(FacadeEvent, attributes(event))]
pub fn derive_facade_event(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand_event(&input, &quote!(::prescient::schema))
}

fn expand_event(input: &DeriveInput, schema: &proc_macro2::TokenStream) -> TokenStream {
    let expanded = match input.generics.params.first() {
        Some(parameter) => Err(Error::new_spanned(
            parameter,
            "an event cannot be generic: both ends must know its columns",
        )),
        None => event::expand(input, schema),
    };
    expanded.unwrap_or_else(Error::into_compile_error).into()
}

fn expand(input: &DeriveInput, schema: &proc_macro2::TokenStream) -> TokenStream {
    let expanded = if let Some(parameter) = input.generics.params.first() {
        Err(Error::new_spanned(
            parameter,
            "a state cannot be generic: both ends must know its columns",
        ))
    } else {
        match &input.data {
            Data::Struct(data) => structure::expand(input, data, schema),
            Data::Enum(data) => enumeration::expand(input, data, schema),
            Data::Union(data) => Err(Error::new_spanned(
                data.union_token,
                "a union cannot be a state",
            )),
        }
    };
    expanded.unwrap_or_else(Error::into_compile_error).into()
}
