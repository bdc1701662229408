//! Classes and the schema that holds them.

use alloc::{string::String, vec::Vec};

use crate::{EventDelivery, Field};

/// The agreement of both ends on the state that is replicated.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// The classes; the wire names a class by its index here.
    pub classes: Vec<Class>,
}

/// A flat list of fields: the columns of one table of an entity type.
#[derive(Clone, Debug)]
pub struct Class {
    /// Name, unique within the schema.
    pub name: String,
    /// The fields; a row holds one `i64` per field in this order.
    pub fields: Vec<Field>,
    /// The field that holds the entity's owner.
    pub owner: Option<u16>,
    /// The fields that hold its position.
    pub position: Vec<u16>,
    /// The field that holds its group; entities of one group travel in one packet.
    pub group: Option<u16>,
    /// The field that holds the owner's input state.
    pub keys: Option<u16>,
    /// When entities of this class are degraded or deferred.
    pub priority: crate::Priority,
    /// A user's deterministic prediction of a row from a past one.
    pub contract: Option<Contract>,
    /// Whether entities can lack this table, and gain and lose it while they live. Only a further
    /// table of a type (`car.shield` after `car`) can be optional.
    pub optional: bool,
    /// Set if this is an event and not a table of entities; only its name and fields are used then.
    pub event: Option<EventDelivery>,
}

impl Class {
    /// A class of entities without owner, position, group, keys or contract.
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
            optional: false,
            event: None,
        }
    }
}

/// Moves a past row (first argument) forward by a number of ticks into the third argument.
///
/// Both ends call it, so it must depend on nothing but its arguments and static data that both ends
/// share, and must not use floating-point operations that may round differently.
pub type ContractFn = fn(&[i64], u32, &mut [i64]);

/// A named [`ContractFn`]; the name, not the function, is part of the schema.
#[derive(Clone, Debug)]
pub struct Contract {
    /// Path of the user's function.
    pub name: String,
    /// The function.
    pub fast_forward: ContractFn,
}
