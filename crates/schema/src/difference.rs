//! The differences between two schemas, as text.
//!
//! "Protocol mismatch" costs a team an afternoon, so an error names the class, the field and both
//! values.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use crate::event::EVENT_PREFIX;
use crate::{Class, CustomFloat, EventDelivery, Field, FieldKind, Level, Schema};

/// One difference between two schemas; *here* is `self` of [`Schema::differences`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// A class that only one schema has.
    Class {
        /// Its name.
        class: String,
        /// The schema that has it.
        only: Side,
    },
    /// A field that only one schema has.
    Field {
        /// Name of the class.
        class: String,
        /// Name of the field.
        field: String,
        /// The schema that has it.
        only: Side,
    },
    /// A property with different values.
    Property {
        /// Name of the class.
        class: String,
        /// Name of the field; `None` for a property of the class.
        field: Option<String>,
        /// The property: `step`, `priority`, `place in the class`, …
        property: &'static str,
        /// Its value in the schema `differences` was called on.
        here: String,
        /// Its value in the other schema.
        there: String,
    },
}

impl Difference {
    /// The first five differences as one line of text.
    pub fn list(differences: &[Self]) -> String {
        let shown = differences.iter().take(5).map(Self::to_string);
        let mut text: Vec<_> = shown.collect();
        if differences.len() > text.len() {
            text.push(format!("and {} more", differences.len() - text.len()));
        }
        text.join("; ")
    }
}

/// One of two compared schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The schema `differences` was called on.
    Here,
    /// The other schema.
    There,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Here => "here",
            Self::There => "there",
        })
    }
}

/// Names may be a remote peer's and are printed to terminals and logs, so control characters and
/// characters that change the direction of text are escaped.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class { class, only } => {
                write_class(f, class)?;
                write!(f, ": only {only}")
            }
            Self::Field { class, field, only } => {
                write_class(f, class)?;
                write!(f, ", field `{}`: only {only}", field.escape_debug())
            }
            Self::Property {
                class,
                field,
                property,
                here,
                there,
            } => {
                write_class(f, class)?;
                if let Some(field) = field {
                    write!(f, ", field `{}`", field.escape_debug())?;
                }
                let (here, there) = (here.escape_debug(), there.escape_debug());
                write!(f, ": {property} {here} here, {there} there")
            }
        }
    }
}

/// Writes what a class is, and its name.
pub(crate) fn write_class(f: &mut fmt::Formatter<'_>, class: &str) -> fmt::Result {
    let (what, name) = match class.strip_prefix(EVENT_PREFIX) {
        Some(event) => ("event", event),
        None => ("class", class),
    };
    write!(f, "{what} `{}`", name.escape_debug())
}

impl Schema {
    /// All differences from `there`; empty exactly when the fingerprints are equal.
    pub fn differences(&self, there: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        for (index, class) in self.classes.iter().enumerate() {
            let counterpart = there
                .classes
                .iter()
                .position(|other| other.name == class.name);
            let Some(counterpart) = counterpart else {
                found.push(Difference::Class {
                    class: class.name.clone(),
                    only: Side::Here,
                });
                continue;
            };
            let mut note = Notes::of(class, None, &mut found);
            note.compare("place in the schema", &index, &counterpart);
            class.compare(&there.classes[counterpart], &mut found);
        }
        for class in &there.classes {
            if !self.classes.iter().any(|other| other.name == class.name) {
                found.push(Difference::Class {
                    class: class.name.clone(),
                    only: Side::There,
                });
            }
        }
        found
    }
}

impl Class {
    fn compare(&self, there: &Self, found: &mut Vec<Difference>) {
        let only = |field: &Field, only| Difference::Field {
            class: self.name.clone(),
            field: field.name.clone(),
            only,
        };
        for (index, field) in self.fields.iter().enumerate() {
            let Some(counterpart) = there.column(&field.name) else {
                found.push(only(field, Side::Here));
                continue;
            };
            let other = &there.fields[counterpart];
            let mut note = Notes::of(self, Some(field), found);
            note.compare("place in the class", &index, &counterpart);
            field.kind.compare(&other.kind, &mut note);
            note.compare("priority", &field.priority.get(), &other.priority.get());
            note.compare("only_on_spawn", &field.only_on_spawn, &other.only_on_spawn);
            note.compare("optional", &field.optional, &other.optional);
            note.compare("levels", &levels(field), &levels(other));
            note.compare("velocity_of", &self.rate(field), &there.rate(other));
        }
        for field in &there.fields {
            if self.column(&field.name).is_none() {
                found.push(only(field, Side::There));
            }
        }
        let mut note = Notes::of(self, None, found);
        note.compare("owner", &self.role(self.owner), &there.role(there.owner));
        note.compare("group", &self.role(self.group), &there.role(there.group));
        note.compare("keys", &self.role(self.keys), &there.role(there.keys));
        note.compare(
            "position",
            &self.position_fields(),
            &there.position_fields(),
        );
        note.compare("priority", &self.priority.get(), &there.priority.get());
        note.compare("predict_with", &self.prediction(), &there.prediction());
        note.compare("optional table", &self.optional, &there.optional);
        note.compare("delivery", &self.delivery(), &there.delivery());
    }

    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    fn role(&self, index: Option<u16>) -> String {
        let field = index.and_then(|index| self.fields.get(usize::from(index)));
        field.map_or("none".into(), |field| format!("`{}`", field.name))
    }

    fn position_fields(&self) -> String {
        let names: Vec<_> = self
            .position
            .iter()
            .map(|at| self.role(Some(*at)))
            .collect();
        if names.is_empty() {
            "none".into()
        } else {
            names.join(" ")
        }
    }

    fn rate(&self, field: &Field) -> String {
        match field.derivative_of {
            None => "none".into(),
            Some(rate) => {
                let base = self.role(Some(rate.of));
                format!("{base} × {}/{}", rate.numerator, rate.denominator)
            }
        }
    }

    fn delivery(&self) -> &'static str {
        self.event.map_or("none", EventDelivery::name)
    }

    fn prediction(&self) -> String {
        let contract = self.contract.as_ref();
        contract.map_or("none".into(), |contract| format!("`{}`", contract.name))
    }
}

impl FieldKind {
    pub(crate) fn differs(&self, class: &Class, field: &Field, there: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        self.compare(there, &mut Notes::of(class, Some(field), &mut found));
        found
    }

    fn compare(&self, there: &Self, note: &mut Notes<'_>) {
        match (self, there) {
            (
                FieldKind::Step { step, bits },
                FieldKind::Step {
                    step: other_step,
                    bits: other_bits,
                },
            ) => {
                note.compare("step", step, other_step);
                note.compare("bits", bits, other_bits);
            }
            (FieldKind::Enum { values }, FieldKind::Enum { values: other }) => {
                note.compare("values", values, other);
            }
            (FieldKind::Custom(float), FieldKind::Custom(other)) => {
                note.compare("float", &formats(float), &formats(other));
            }
            _ => note.compare("kind", &describe(self), &describe(there)),
        }
    }
}

/// Collects the differences of one class or field.
struct Notes<'a> {
    class: &'a str,
    field: Option<&'a str>,
    found: &'a mut Vec<Difference>,
}

impl<'a> Notes<'a> {
    fn of(class: &'a Class, field: Option<&'a Field>, found: &'a mut Vec<Difference>) -> Self {
        Self {
            class: &class.name,
            field: field.map(|field| field.name.as_str()),
            found,
        }
    }

    fn compare<T: PartialEq + ToString>(&mut self, property: &'static str, here: &T, there: &T) {
        if here != there {
            self.found.push(Difference::Property {
                class: self.class.into(),
                field: self.field.map(Into::into),
                property,
                here: here.to_string(),
                there: there.to_string(),
            });
        }
    }
}

fn describe(kind: &FieldKind) -> String {
    match kind {
        FieldKind::Int { bits, signed: true } => format!("{bits} bits signed"),
        FieldKind::Int { bits, .. } => format!("{bits} bits unsigned"),
        FieldKind::Enum { values } => format!("one of {values}"),
        FieldKind::Bool => "bool".into(),
        FieldKind::Variant { names } => format!("one of {}", names.join("|")),
        FieldKind::Step { step, bits } => format!("step {step} in {bits} bits"),
        FieldKind::F32 => "exact f32".into(),
        FieldKind::F64 => "exact f64".into(),
        FieldKind::Custom(float) => format!("float {}", formats(float)),
        FieldKind::Text { max_len } => format!("text of {max_len} bytes"),
        FieldKind::Bytes { max_len } => format!("{max_len} bytes"),
        FieldKind::List { item, max_len } => format!("list of {max_len} × ({})", columns(item)),
        FieldKind::Map { item, key, max_len } => {
            let (keys, values) = item.split_at(usize::from(*key).min(item.len()));
            format!(
                "map of {max_len} × ({}: {})",
                columns(keys),
                columns(values)
            )
        }
        FieldKind::Reference { class: None } => "reference".into(),
        FieldKind::Reference { class: Some(class) } => format!("reference to `{class}`"),
    }
}

fn columns(item: &[Field]) -> String {
    let columns: Vec<_> = item
        .iter()
        .map(|field| format!("`{}` {}", field.name, describe(&field.kind)))
        .collect();
    columns.join(", ")
}

fn formats(float: &CustomFloat) -> String {
    let levels = (0..4).filter_map(Level::new);
    let formats: Vec<_> = levels
        .map(|level| float.format(level).to_string())
        .collect();
    formats.join(" ")
}

fn levels(field: &Field) -> String {
    format!("{:?}", field.coarser)
}
