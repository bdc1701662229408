//! Groups the classes of a schema into entity types.
//!
//! A type with several tables (`car` and `car.private`) is one entity to users and one table entity
//! per table to the codec, so that a client may see some of the tables. A column added here, at
//! both ends alike, tells to which entity a table entity of a further table belongs. An entity has
//! no table entity for an optional table that it lacks.

use std::collections::BTreeMap;

use prescient_schema::{Field, FieldKind, Schema};

/// A type of entities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntityType(pub u16);

/// The entity types of a schema.
#[derive(Clone, Debug)]
pub(crate) struct EntityTypes {
    /// The classes of each type, one per table, the first table first.
    tables: Vec<Vec<u16>>,
    /// For each type, a bit per table, set if the table is optional.
    optional: Vec<u64>,
    /// The type of each class, and the index of its table.
    classes: Vec<(EntityType, u8)>,
    names: BTreeMap<String, EntityType>,
    class_names: Vec<String>,
}

impl EntityTypes {
    /// The types of a schema, and the schema with the added column in every further table.
    pub(crate) fn of(mut schema: Schema) -> Result<(Self, Schema), TooManyTables> {
        let mut entity_types = Self {
            tables: Vec::new(),
            optional: Vec::new(),
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
            if class.event.is_some() {
                // No entity has this class, and no name finds it.
                let entity_type = EntityType(entity_types.tables.len() as u16);
                entity_types.classes.push((entity_type, 0));
                entity_types.tables.push(vec![number]);
                entity_types.optional.push(0);
                continue;
            }
            let first = class.name.split_once('.').map(|(name, _)| name);
            match first.and_then(|name| entity_types.names.get(name)).copied() {
                Some(entity_type) => {
                    let tables = &mut entity_types.tables[usize::from(entity_type.0)];
                    if tables.len() == MAX_TABLES {
                        return Err(TooManyTables(first.unwrap_or_default().into()));
                    }
                    entity_types.optional[usize::from(entity_type.0)] |=
                        u64::from(class.optional) << tables.len();
                    entity_types.classes.push((entity_type, tables.len() as u8));
                    tables.push(number);
                    class.fields.push(belonging(first.unwrap_or_default()));
                }
                None => {
                    let entity_type = EntityType(entity_types.tables.len() as u16);
                    entity_types.names.insert(class.name.clone(), entity_type);
                    entity_types.classes.push((entity_type, 0));
                    entity_types.tables.push(vec![number]);
                    entity_types.optional.push(0);
                }
            }
        }
        Ok((entity_types, schema))
    }

    pub(crate) fn find(&self, name: &str) -> Option<EntityType> {
        self.names.get(name).copied()
    }

    /// The type of the class with this name, and the index of its table.
    pub(crate) fn class(&self, name: &str) -> Option<(EntityType, u8)> {
        if let Some(entity_type) = self.find(name) {
            return Some((entity_type, 0));
        }
        let entity_type = self.find(name.split_once('.')?.0)?;
        let mut numbers = self.tables(entity_type).iter();
        let table = numbers.position(|&class| self.class_names[usize::from(class)] == name)?;
        Some((entity_type, table as u8))
    }

    /// The classes of a type, one per table.
    pub(crate) fn tables(&self, entity_type: EntityType) -> &[u16] {
        &self.tables[usize::from(entity_type.0)]
    }

    /// Whether entities of a type can lack a table.
    pub(crate) fn is_optional(&self, entity_type: EntityType, table: usize) -> bool {
        let optional = self.optional[usize::from(entity_type.0)];
        table < MAX_TABLES && optional >> table & 1 == 1
    }

    /// The number of tables that all entities of a type have.
    pub(crate) fn required(&self, entity_type: EntityType) -> usize {
        let optional = self.optional[usize::from(entity_type.0)].count_ones();
        self.tables(entity_type).len() - optional as usize
    }

    /// The index of a table among those that all entities of a type have.
    pub(crate) fn required_index(&self, entity_type: EntityType, table: usize) -> Option<usize> {
        let optional = self.optional[usize::from(entity_type.0)];
        let before = optional & ((1u64 << table) - 1);
        let is_required = !self.is_optional(entity_type, table);
        is_required.then(|| table - before.count_ones() as usize)
    }

    /// The type of a class, and the index of its table.
    pub(crate) fn of_class(&self, class: u16) -> (EntityType, u8) {
        self.classes[usize::from(class)]
    }
}

/// A type has more than [`MAX_TABLES`] tables; this is its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TooManyTables(pub String);

/// Maximum tables of a type: a bit of a [`Visibility`](crate::Visibility) stands for each.
pub(crate) const MAX_TABLES: usize = 64;

/// The added last column of a further table: a reference to the entity that the row belongs to.
fn belonging(name: &str) -> Field {
    let class = Some(name.into());
    Field::new("entity", FieldKind::Reference { class })
}
