//! Which classes are tables of one type.
//!
//! A type with several tables (`car` and `car.private`) is one object to its users and one entity
//! per table to the codec, so that a client may be shown some of them. The entities of further
//! tables say which object they belong to in a column that is added here, on both ends alike.

use std::collections::BTreeMap;

use prescient_schema::{Field, Kind as FieldKind, Schema};

/// A type of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind(pub u16);

/// The types of a schema.
#[derive(Clone, Debug)]
pub(crate) struct Kinds {
    /// The classes of each type, its first table's first.
    tables: Vec<Vec<u16>>,
    /// The type of each class and which of its tables it is.
    classes: Vec<(Kind, u8)>,
    names: BTreeMap<String, Kind>,
    class_names: Vec<String>,
}

impl Kinds {
    /// The types of a schema, and the schema with a column in every further table that says whose
    /// it is.
    pub fn of(mut schema: Schema) -> (Self, Schema) {
        let mut kinds = Self {
            tables: Vec::new(),
            classes: Vec::new(),
            names: BTreeMap::new(),
            class_names: schema
                .classes
                .iter()
                .map(|class| class.name.clone())
                .collect(),
        };
        for (number, class) in schema.classes.iter_mut().enumerate() {
            let number = number as u16;
            let first = class.name.split_once('.').map(|(name, _)| name);
            match first.and_then(|name| kinds.names.get(name)).copied() {
                Some(kind) => {
                    let tables = &mut kinds.tables[usize::from(kind.0)];
                    kinds.classes.push((kind, tables.len() as u8));
                    tables.push(number);
                    class.fields.push(belonging(first.unwrap_or_default()));
                }
                None => {
                    let kind = Kind(kinds.tables.len() as u16);
                    kinds.names.insert(class.name.clone(), kind);
                    kinds.classes.push((kind, 0));
                    kinds.tables.push(vec![number]);
                }
            }
        }
        (kinds, schema)
    }

    pub fn find(&self, name: &str) -> Option<Kind> {
        self.names.get(name).copied()
    }

    /// The type that a class of this name belongs to, and which of its tables it is.
    pub fn class(&self, name: &str) -> Option<(Kind, u8)> {
        if let Some(kind) = self.find(name) {
            return Some((kind, 0));
        }
        let kind = self.find(name.split_once('.')?.0)?;
        let mut numbers = self.tables(kind).iter();
        let table = numbers.position(|&class| self.class_names[usize::from(class)] == name)?;
        Some((kind, table as u8))
    }

    /// The classes of a type, one per table.
    pub fn tables(&self, kind: Kind) -> &[u16] {
        &self.tables[usize::from(kind.0)]
    }

    /// The type of a class, and which of its tables it is.
    pub fn kind(&self, class: u16) -> (Kind, u8) {
        self.classes[usize::from(class)]
    }
}

/// The column that says which object an entity of a further table belongs to: the last one.
fn belonging(name: &str) -> Field {
    let class = Some(name.into());
    Field::new("object", FieldKind::Reference { class })
}
