//! The first line of a trace: the classes and their fields.
//!
//! It also transmits the schema to a receiver in another process, so synthetic worlds have one too.

use std::collections::BTreeSet;

use prescient_schema::{Class, Field, FieldKind, Schema};
use serde::{Deserialize, Serialize};

/// Line 1 of a trace; unknown keys are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Always `trace/1`.
    pub format: String,
    /// Short name.
    pub name: String,
    /// Origin of the recording.
    #[serde(default)]
    pub source: String,
    /// Ticks per second, above 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick_hz: Option<f64>,
    /// The classes.
    pub classes: Vec<ClassHeader>,
}

/// One class in the header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassHeader {
    /// Unique name without white space.
    pub name: String,
    /// Name of the field that holds the entity's owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Names of the fields that hold its position.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub position: Vec<String>,
    /// The fields in row order.
    pub fields: Vec<FieldHeader>,
}

/// One field in the header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldHeader {
    /// Unique within the class.
    pub name: String,
    /// Type of the integers.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// Number of states of an `enum`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<u32>,
    /// Factor that converts the integer into the source's unit; not 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
}

impl FieldHeader {
    /// A number on a continuum.
    pub fn int(name: &str) -> Self {
        Self {
            name: name.into(),
            kind: FieldType::Int,
            values: None,
            scale: None,
        }
    }

    /// One of `values` states.
    pub fn symbol(name: &str, values: u32) -> Self {
        Self {
            name: name.into(),
            kind: FieldType::Enum,
            values: Some(values),
            scale: None,
        }
    }

    /// Yes or no.
    pub fn boolean(name: &str) -> Self {
        Self {
            name: name.into(),
            kind: FieldType::Bool,
            values: None,
            scale: None,
        }
    }
}

/// Type of a field's integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldType {
    /// A number on a continuum.
    Int,
    /// A state in `0..values`.
    Enum,
    /// 0 or 1.
    Bool,
}

/// Why a header is not a valid schema.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// Not JSON, or a key is missing or of the wrong type.
    #[error("the header is not the expected JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Another format or version.
    #[error("the format is {0:?}, expected \"trace/1\"")]
    Format(String),
    /// Class names identify classes in lines, so they must be unique words.
    #[error("class name {0:?} is empty, contains white space or appears twice")]
    ClassName(String),
    /// Field names must be unique.
    #[error("class {class:?} has two fields named {field:?}")]
    FieldName {
        /// The class.
        class: String,
        /// The repeated name.
        field: String,
    },
    /// `owner` or `position` names no field.
    #[error("class {class:?} refers to the field {field:?}, which it does not have")]
    NoSuchField {
        /// The class.
        class: String,
        /// The missing field.
        field: String,
    },
    /// An enumeration needs at least one state.
    #[error("enum field {class:?}.{field:?} needs `values` of at least 1")]
    Values {
        /// The class.
        class: String,
        /// The field.
        field: String,
    },
    /// There must be ticks in a second.
    #[error("`tick_hz` is {0}, expected more than 0")]
    TickRate(f64),
    /// A field whose values are all 0 in the source's unit says nothing.
    #[error("the `scale` of the field {class:?}.{field:?} is 0")]
    Scale {
        /// The class.
        class: String,
        /// The field.
        field: String,
    },
    /// Classes and fields are numbered with 16 bits.
    #[error("more than 65535 classes, or fields in one class")]
    TooMany,
}

impl Header {
    /// Parses the JSON line.
    pub fn parse(line: &str) -> Result<Self, HeaderError> {
        let header: Self = serde_json::from_str(line)?;
        if header.format != "trace/1" {
            return Err(HeaderError::Format(header.format));
        }
        header.schema()?;
        Ok(header)
    }

    /// The JSON line, without the end of line.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("a header holds nothing that JSON cannot express")
    }

    /// The schema of both ends.
    pub fn schema(&self) -> Result<Schema, HeaderError> {
        if self.classes.len() > usize::from(u16::MAX) {
            return Err(HeaderError::TooMany);
        }
        if let Some(tick_hz) = self.tick_hz.filter(|hz| hz.is_nan() || *hz <= 0.0) {
            return Err(HeaderError::TickRate(tick_hz));
        }
        let mut names = BTreeSet::new();
        let mut classes = Vec::with_capacity(self.classes.len());
        for class in &self.classes {
            let bad = class.name.is_empty() || class.name.contains(char::is_whitespace);
            if bad || !names.insert(class.name.as_str()) {
                return Err(HeaderError::ClassName(class.name.clone()));
            }
            classes.push(class.schema()?);
        }
        Ok(Schema { classes })
    }
}

impl ClassHeader {
    fn schema(&self) -> Result<Class, HeaderError> {
        if self.fields.len() > usize::from(u16::MAX) {
            return Err(HeaderError::TooMany);
        }
        let mut names = BTreeSet::new();
        let mut fields = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            let place = || (self.name.clone(), field.name.clone());
            if !names.insert(field.name.as_str()) {
                let (class, field) = place();
                return Err(HeaderError::FieldName { class, field });
            }
            if field.scale == Some(0.0) {
                let (class, field) = place();
                return Err(HeaderError::Scale { class, field });
            }
            let kind = match (field.kind, field.values) {
                (FieldType::Int, _) => FieldKind::Int {
                    bits: 64,
                    signed: true,
                },
                (FieldType::Bool, _) => FieldKind::Bool,
                (FieldType::Enum, Some(values)) if values > 0 => FieldKind::Enum { values },
                (FieldType::Enum, _) => {
                    let (class, field) = place();
                    return Err(HeaderError::Values { class, field });
                }
            };
            fields.push(Field::new(field.name.clone(), kind));
        }
        let find = |name: &String| {
            let index = self.fields.iter().position(|field| field.name == *name);
            index
                .map(|index| index as u16)
                .ok_or_else(|| HeaderError::NoSuchField {
                    class: self.name.clone(),
                    field: name.clone(),
                })
        };
        let mut class = Class::new(self.name.clone(), fields);
        class.owner = self.owner.as_ref().map(find).transpose()?;
        class.position = self.position.iter().map(find).collect::<Result<_, _>>()?;
        Ok(class)
    }
}
