//! Classes and the schema that holds them.

use alloc::{string::String, vec::Vec};

use crate::Field;

/// Everything two ends must agree on before the first packet.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// The classes; a class is named on the wire by its position here.
    pub classes: Vec<Class>,
}

/// One kind of entity: a flat list of fields.
#[derive(Clone, Debug)]
pub struct Class {
    /// Name, unique within the schema.
    pub name: String,
    /// The fields; a row holds one `i64` per field in this order.
    pub fields: Vec<Field>,
    /// The field that says whose entity this is.
    pub owner: Option<u16>,
    /// The fields that say where it is.
    pub position: Vec<u16>,
    /// The field whose value names the group; entities of one group travel in one packet.
    pub group: Option<u16>,
    /// The field that holds the keys which the owner holds down.
    pub keys: Option<u16>,
    /// How reluctantly entities of this class are degraded or deferred.
    pub priority: crate::Priority,
    /// A user's deterministic fast-forward of a past row.
    pub contract: Option<Contract>,
}

impl Class {
    /// A class without owner, position, group, keys or contract.
    pub fn new(name: impl Into<String>, fields: Vec<Field>) -> Self {
        Self {
            name: name.into(),
            fields,
            owner: None,
            position: Vec::new(),
            group: None,
            keys: None,
            priority: crate::Priority::default(),
            contract: None,
        }
    }
}

/// Moves a past row (first argument) forward by a number of ticks into the third argument.
///
/// Both ends call it, so it may depend on nothing but its arguments and static data that both
/// ends share, and may use no floating point that they could round differently.
pub type ContractFn = fn(&[i64], u32, &mut [i64]);

/// A named [`ContractFn`]; the name, not the function, is part of what both ends agree on.
#[derive(Clone, Debug)]
pub struct Contract {
    /// Path of the user's function.
    pub name: String,
    /// The function.
    pub fast_forward: ContractFn,
}
