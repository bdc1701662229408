//! The rules for every schema.
//!
//! A schema may be derived, built at run time, or read from a peer; all three are validated here,
//! so no later code has to check a width or an index again.

use alloc::collections::BTreeSet;

use crate::error::{Fault, SchemaError};
use crate::{Class, Content, Field, FieldKind, Priority, Schema, Shape};

impl Schema {
    /// Maximum number of classes.
    pub const MAX_CLASSES: usize = 4096;

    /// Validates the schema; the error names the first class and field that breaks a rule.
    pub fn validate(&self) -> Result<(), SchemaError> {
        if self.classes.len() > Self::MAX_CLASSES {
            return Err(SchemaError::schema(Fault::TooManyClasses));
        }
        let mut names = BTreeSet::new();
        let mut states = BTreeSet::new();
        for class in &self.classes {
            if class.event.is_none() {
                states.insert(class.name.as_str());
            }
            if !names.insert(class.name.as_str()) {
                return Err(SchemaError::class(&class.name, Fault::DuplicateName));
            }
            class.validate()?;
            let is_further = || {
                let first = class.name.split_once('.').map(|(first, _)| first);
                first.is_some_and(|first| states.contains(first))
            };
            if class.optional && !is_further() {
                return Err(SchemaError::class(&class.name, Fault::OptionalFirstTable));
            }
        }
        for class in &self.classes {
            for field in &class.fields {
                if let FieldKind::Reference { class: Some(to) } = &field.kind
                    && !states.contains(to.as_str())
                {
                    let fault = Fault::NoSuchClass(to.clone());
                    return Err(SchemaError::field(&class.name, &field.name, fault));
                }
            }
        }
        Ok(())
    }
}

impl Class {
    /// Maximum number of fields.
    pub const MAX_FIELDS: usize = 4096;

    /// Checks the rules that concern this class alone.
    pub fn validate(&self) -> Result<(), SchemaError> {
        let fail = |fault| Err(SchemaError::class(&self.name, fault));
        if !is_name(&self.name) {
            return fail(Fault::BadName);
        }
        if self.fields.len() > Self::MAX_FIELDS {
            return fail(Fault::TooManyFields);
        }
        let roles = [self.owner, self.group, self.keys];
        for index in roles.iter().flatten().chain(&self.position) {
            if usize::from(*index) >= self.fields.len() {
                return fail(Fault::BadIndex(*index));
            }
        }
        let has_roles = roles.iter().any(Option::is_some) || !self.position.is_empty();
        if self.event.is_some()
            && (has_roles
                || self.optional
                || self.contract.is_some()
                || self.priority != Priority::default()
                || self.fields.iter().any(Field::declares_replication))
        {
            return fail(Fault::ReplicatedEvent);
        }
        // A list of the same name over and over would be spelled out where schemas differ.
        let places: BTreeSet<&u16> = self.position.iter().collect();
        if places.len() < self.position.len() {
            return fail(Fault::DeclaredTwice);
        }
        if let Some(contract) = &self.contract
            && !is_name(&contract.name)
        {
            return fail(Fault::BadName);
        }
        let mut names = BTreeSet::new();
        for (index, field) in self.fields.iter().enumerate() {
            let fail = |fault| Err(SchemaError::field(&self.name, &field.name, fault));
            if !names.insert(field.name.as_str()) {
                return fail(Fault::DuplicateName);
            }
            if let Err(fault) = field.check().and_then(|()| self.check_rate(index)) {
                return fail(fault);
            }
            let has_keys = self.keys.is_some_and(|keys| usize::from(keys) == index);
            if has_keys && !field.holds_bits() {
                return fail(Fault::KeysWithoutBits);
            }
        }
        Ok(())
    }

    fn check_rate(&self, index: usize) -> Result<(), Fault> {
        let Some(rate) = self.fields[index].derivative_of else {
            return Ok(());
        };
        let Some(of) = self.fields.get(usize::from(rate.of)) else {
            return Err(Fault::BadIndex(rate.of));
        };
        let is_number = |field: &Field| matches!(field.kind.shape(), Shape::Number { .. });
        if usize::from(rate.of) == index {
            Err(Fault::RateOfItself)
        } else if rate.denominator == 0 {
            Err(Fault::RateOutOfRange)
        } else if !is_number(of) || !is_number(&self.fields[index]) {
            Err(Fault::RateWithoutUnits)
        } else {
            Ok(())
        }
    }
}

impl Field {
    /// Whether it is an unsigned integer that may change after the spawn.
    fn holds_bits(&self) -> bool {
        let is_unsigned = matches!(self.kind, FieldKind::Int { signed: false, .. });
        is_unsigned && !self.only_on_spawn
    }

    /// Whether it declares something that only concerns the state of entities.
    fn declares_replication(&self) -> bool {
        self.only_on_spawn
            || self.optional
            || self.derivative_of.is_some()
            || self.priority != Priority::default()
            || self.coarser != [0; 4]
    }

    fn check(&self) -> Result<(), Fault> {
        if !is_name(&self.name) {
            return Err(Fault::BadName);
        }
        match &self.kind {
            FieldKind::Variant { names } => {
                let distinct: BTreeSet<_> = names.iter().collect();
                if distinct.len() < names.len() {
                    return Err(Fault::DuplicateName);
                }
                if !names.iter().all(|name| is_name(name)) {
                    return Err(Fault::BadName);
                }
            }
            FieldKind::Custom(float) if self.priority.get() == 0 && !float.is_uniform() => {
                return Err(Fault::LevelsOnPriorityZero);
            }
            FieldKind::Reference { class: Some(class) } if !is_name(class) => {
                return Err(Fault::BadName);
            }
            _ => {}
        }
        self.check_container()?;
        let width = match self.kind.shape() {
            Shape::Symbol { values: 0 } => return Err(Fault::NoValues),
            Shape::Symbol { .. } | Shape::Content | Shape::Reference => 1,
            Shape::Number { bits, .. } if (1..=64).contains(&bits) => bits,
            Shape::Number { bits, .. } => return Err(Fault::BadWidth(bits)),
        };
        if self.coarser == [0; 4] {
            Ok(())
        } else if self.kind.unit().is_none() {
            Err(Fault::LevelsOnExact)
        } else if self.priority.get() == 0 {
            Err(Fault::LevelsOnPriorityZero)
        } else if self.coarser[0] != 0 || !self.coarser.is_sorted() || self.coarser[3] >= width {
            Err(Fault::BadLevels(self.coarser))
        } else {
            Ok(())
        }
    }
}

impl Field {
    fn check_container(&self) -> Result<(), Fault> {
        let Some(container) = self.kind.container() else {
            return Ok(());
        };
        match &self.kind {
            FieldKind::List { item, .. } | FieldKind::Map { item, .. } if item.is_empty() => {
                return Err(Fault::EmptyItem);
            }
            FieldKind::Map { item, key, .. } if *key == 0 || usize::from(*key) > item.len() => {
                return Err(Fault::BadKey(*key));
            }
            _ => {}
        }
        if container.item.len() > Class::MAX_FIELDS {
            return Err(Fault::TooManyFields);
        }
        if !(1..=Content::MAX_CELLS / container.width()).contains(&container.max_len) {
            return Err(Fault::BadLength(container.max_len as u32));
        }
        let mut names = BTreeSet::new();
        for field in container.item {
            let plain = Self::new(field.name.as_str(), field.kind.clone());
            if !names.insert(field.name.as_str()) {
                return Err(Fault::DuplicateName);
            } else if field.kind.container().is_some() {
                return Err(Fault::NestedContainer);
            } else if matches!(field.kind, FieldKind::Reference { .. }) {
                return Err(Fault::ReferenceInContainer);
            } else if *field != plain {
                return Err(Fault::DeclaredOnItem);
            }
            field.check()?;
        }
        Ok(())
    }
}

fn is_name(name: &str) -> bool {
    (1..=255).contains(&name.len())
}
