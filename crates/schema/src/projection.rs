//! Compatibility of two program versions whose schemas differ in optional fields.
//!
//! The client decodes packets by the server's schema, which it received, and a projection maps each
//! decoded row onto the client's own. Only *optional* fields may be missing on one side, common
//! fields must have the same kind, and both ends must be tolerant; everything else is reported as a
//! list of differences.

use alloc::vec::Vec;

use crate::{Class, Difference, Field, Schema, difference::Side};

/// Whether an end requires an identical schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tolerance {
    /// The fingerprints must be equal.
    #[default]
    Exact,
    /// Optional fields, optional tables, and classes of only optional fields, may be missing on
    /// either side; fields and classes may be in another order; priorities and other sending rules are the server's.
    Additive,
}

/// Maps the server's classes and columns to the client's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection {
    classes: Vec<Option<ClassProjection>>,
}

impl Projection {
    /// Compares the server's schema with the client's. The error lists the differences that prevent
    /// a connection; `here` in them is the server's side.
    pub fn between(
        server: (&Schema, Tolerance),
        client: (&Schema, Tolerance),
    ) -> Result<Self, Vec<Difference>> {
        let ((server, allows), (client, accepts)) = (server, client);
        if allows == Tolerance::Exact || accepts == Tolerance::Exact {
            let differences = server.differences(client);
            if !differences.is_empty() {
                return Err(differences);
            }
        }
        let mut blocking = Vec::new();
        let classes = server.classes.iter();
        let classes = classes
            .map(|class| project(class, client, &mut blocking))
            .collect();
        for class in &client.classes {
            let known = server.classes.iter().any(|other| other.name == class.name);
            if !known && !is_optional(class) {
                blocking.push(Difference::Class {
                    class: class.name.clone(),
                    only: Side::There,
                });
            }
        }
        if blocking.is_empty() {
            Ok(Self { classes })
        } else {
            Err(blocking)
        }
    }

    /// The client's counterpart of a class of the server; `None` if it has none.
    pub fn class(&self, server_class: u16) -> Option<&ClassProjection> {
        self.classes.get(usize::from(server_class))?.as_ref()
    }

    /// Whether both schemas have the same classes and columns in the same order.
    pub fn is_identity(&self) -> bool {
        self.classes.iter().enumerate().all(|(index, class)| {
            class.as_ref().is_some_and(|class| {
                usize::from(class.class) == index
                    && class.columns.len() == class.sources
                    && (0u16..)
                        .zip(&class.columns)
                        .all(|(at, from)| *from == Some(at))
            })
        })
    }
}

/// Maps the columns of one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassProjection {
    /// The client's class.
    pub class: u16,
    /// For each column of the client, the server's column that fills it; `None` where the server
    /// has none and the column remains 0.
    pub columns: Vec<Option<u16>>,
    sources: usize,
}

impl ClassProjection {
    /// Fills a row of the client from a row of the server.
    pub fn apply(&self, server_row: &[i64], client_row: &mut [i64]) {
        for (cell, from) in client_row.iter_mut().zip(&self.columns) {
            let value = from.and_then(|from| server_row.get(usize::from(from)));
            *cell = value.copied().unwrap_or(0);
        }
    }
}

fn project(
    class: &Class,
    client: &Schema,
    blocking: &mut Vec<Difference>,
) -> Option<ClassProjection> {
    let counterpart = client
        .classes
        .iter()
        .position(|other| other.name == class.name);
    let Some(counterpart) = counterpart else {
        if !is_optional(class) {
            blocking.push(Difference::Class {
                class: class.name.clone(),
                only: Side::Here,
            });
        }
        return None;
    };
    let there = &client.classes[counterpart];
    let missing = |field: &Field, only| Difference::Field {
        class: class.name.clone(),
        field: field.name.clone(),
        only,
    };
    for field in &class.fields {
        match there.column(&field.name) {
            Some(at) => blocking.extend(field.kind.differs(class, field, &there.fields[at].kind)),
            None if field.optional => {}
            None => blocking.push(missing(field, Side::Here)),
        }
    }
    let mut columns = Vec::with_capacity(there.fields.len());
    for field in &there.fields {
        let from = class.column(&field.name);
        if from.is_none() && !field.optional {
            blocking.push(missing(field, Side::There));
        }
        columns.push(from.map(|from| from as u16));
    }
    Some(ClassProjection {
        class: counterpart as u16,
        columns,
        sources: class.fields.len(),
    })
}

fn is_optional(class: &Class) -> bool {
    class.optional || class.fields.iter().all(|field| field.optional)
}
