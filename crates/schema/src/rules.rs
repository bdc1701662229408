//! The rules every schema obeys, wherever it came from.
//!
//! A schema may be derived, built at run time, or read from a peer; all three pass here, so
//! nothing downstream has to check a width or an index again.

use alloc::collections::BTreeSet;

use crate::error::{Fault, SchemaError};
use crate::{Class, Field, Kind, Schema, Shape};

impl Schema {
    /// Most classes a schema may have.
    pub const MAX_CLASSES: usize = 4096;

    /// Checks every rule and names the first class and field that breaks one.
    pub fn validate(&self) -> Result<(), SchemaError> {
        if self.classes.len() > Self::MAX_CLASSES {
            return Err(SchemaError::schema(Fault::TooManyClasses));
        }
        let mut names = BTreeSet::new();
        for class in &self.classes {
            if !names.insert(class.name.as_str()) {
                return Err(SchemaError::class(&class.name, Fault::DuplicateName));
            }
            class.validate()?;
        }
        Ok(())
    }
}

impl Class {
    /// Most fields a class may have.
    pub const MAX_FIELDS: usize = 4096;

    /// Checks every rule that concerns this class alone.
    pub fn validate(&self) -> Result<(), SchemaError> {
        let fail = |fault| Err(SchemaError::class(&self.name, fault));
        if !is_name(&self.name) {
            return fail(Fault::BadName);
        }
        if self.fields.len() > Self::MAX_FIELDS {
            return fail(Fault::TooManyFields);
        }
        let roles = [self.owner, self.group];
        for index in roles.iter().flatten().chain(&self.position) {
            if usize::from(*index) >= self.fields.len() {
                return fail(Fault::BadIndex(*index));
            }
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
    fn check(&self) -> Result<(), Fault> {
        if !is_name(&self.name) {
            return Err(Fault::BadName);
        }
        match &self.kind {
            Kind::Variant { names } => {
                let distinct: BTreeSet<_> = names.iter().collect();
                if distinct.len() < names.len() {
                    return Err(Fault::DuplicateName);
                }
                if !names.iter().all(|name| is_name(name)) {
                    return Err(Fault::BadName);
                }
            }
            Kind::Custom(float) if self.priority.get() == 0 && !float.is_uniform() => {
                return Err(Fault::LevelsOnPriorityZero);
            }
            _ => {}
        }
        let width = match self.kind.shape() {
            Shape::Symbol { values: 0 } => return Err(Fault::NoValues),
            Shape::Symbol { .. } => 1,
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

fn is_name(name: &str) -> bool {
    (1..=255).contains(&name.len())
}
