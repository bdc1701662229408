//! What a replicated state is.
//!
//! A [`Schema`] is a list of [`Class`]es, a class is a flat list of [`Field`]s, and the value of
//! every field, whatever its Rust type, is one `i64`. Everything downstream (prediction, coding,
//! replication) sees only rows of integers, which is what lets both ends agree bit for bit.
#![no_std]

extern crate alloc;

mod class;
mod field;

pub use class::{Class, Contract, ContractFn, Schema};
pub use field::{Derivative, Field, Kind, Level, Priority, Shape};
