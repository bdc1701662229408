//! The values that rows of a class may have: computed once from the schema and checked at every
//! write.

use alloc::vec::Vec;

use prescient_schema::{Class, Field, FieldKind, Schema, Shape};

use super::CaptureError;

/// The values that rows of a class may have.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub ranges: Vec<Range>,
    /// The bits in use of each field.
    pub masks: Vec<i64>,
    /// Columns that keep the value from the spawn.
    pub fixed: Vec<u16>,
    pub links: Links,
}

/// The range of a field's values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    min: i64,
    max: i64,
}

/// Columns of a class that name something outside of the row.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    pub contents: Vec<u16>,
    /// Columns, with the classes that they may refer to; `None` for all.
    pub references: Vec<(u16, Option<Vec<u16>>)>,
}

impl Rules {
    pub(super) fn new(schema: &Schema, class: &Class) -> Self {
        let columns = (0..).zip(&class.fields);
        let fixed = columns.filter_map(|(at, field)| field.only_on_spawn.then_some(at));
        Self {
            ranges: class.fields.iter().map(Range::new).collect(),
            masks: class.fields.iter().map(mask).collect(),
            fixed: fixed.collect(),
            links: Links::new(schema, &class.fields),
        }
    }

    #[inline]
    pub(super) fn admit(&self, row: &[i64]) -> Result<(), CaptureError> {
        if self.ranges.len() != row.len() {
            return Err(CaptureError::WrongLength {
                expected: self.ranges.len(),
                found: row.len(),
            });
        }
        let mut pairs = self.ranges.iter().zip(row);
        match pairs.position(|(range, &value)| !range.admits(value)) {
            Some(at) => Err(CaptureError::OutOfRange {
                field: at as u16,
                value: row[at],
            }),
            None => Ok(()),
        }
    }

    /// Whether a row has the same values in fixed columns as the row before it.
    #[inline]
    pub(super) fn keeps_fixed<'a>(&self, old: impl FnOnce() -> &'a [i64], row: &[i64]) -> bool {
        if self.fixed.is_empty() {
            return true;
        }
        let old = old();
        let is_same = |&at: &u16| old.get(usize::from(at)) == row.get(usize::from(at));
        self.fixed.iter().all(is_same)
    }
}

/// The bits that a field's values use.
fn mask(field: &Field) -> i64 {
    match field.kind.shape() {
        Shape::Number { bits, .. } => (u64::MAX >> (64 - bits.clamp(1, 64))) as i64,
        Shape::Symbol { .. } | Shape::Content | Shape::Reference => -1,
    }
}

impl Range {
    fn new(field: &Field) -> Self {
        let (min, max) = match field.kind.shape() {
            Shape::Symbol { values } => (0, i64::from(values) - 1),
            Shape::Content | Shape::Reference => (0, i64::MAX),
            Shape::Number { bits: 64.., .. } => (i64::MIN, i64::MAX),
            Shape::Number { bits, signed } => {
                let digits = u32::from(bits).saturating_sub(u32::from(signed));
                let max = (1i64 << digits).wrapping_sub(1);
                (if signed { !max } else { 0 }, max)
            }
        };
        Self { min, max }
    }

    #[inline]
    pub(super) fn admits(self, value: i64) -> bool {
        self.min <= value && value <= self.max
    }
}

impl Links {
    fn new(schema: &Schema, fields: &[Field]) -> Self {
        let mut links = Self::default();
        for (at, field) in (0..).zip(fields) {
            match &field.kind {
                FieldKind::Reference { class } => {
                    let of = class.as_deref().map(|name| classes(schema, name));
                    links.references.push((at, of));
                }
                kind if kind.container().is_some() => links.contents.push(at),
                _ => {}
            }
        }
        links
    }

    pub(super) fn is_empty(&self) -> bool {
        self.contents.is_empty() && self.references.is_empty()
    }
}

/// The classes of a type: the one with its name, and those with a table's name appended.
fn classes(schema: &Schema, name: &str) -> Vec<u16> {
    let is_of = |class: &str| match class.strip_prefix(name) {
        Some(rest) => rest.is_empty() || rest.starts_with('.'),
        None => false,
    };
    let classes = (0..).zip(&schema.classes);
    classes
        .filter_map(|(at, class)| is_of(&class.name).then_some(at))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_admits_what_its_kind_admits() {
        let mut kinds = alloc::vec![
            FieldKind::Bool,
            FieldKind::F32,
            FieldKind::F64,
            FieldKind::Reference { class: None }
        ];
        kinds.extend([0, 1, 2, 255, u32::MAX].map(|values| FieldKind::Enum { values }));
        for signed in [false, true] {
            kinds.extend((1..=64).map(|bits| FieldKind::Int { bits, signed }));
        }
        let edges = (0..64).flat_map(|bits| [1i64 << bits, !0 << bits]);
        let values = edges
            .chain([0, 255])
            .flat_map(|edge| [edge.wrapping_sub(1), edge, edge.wrapping_add(1)]);
        let values: Vec<i64> = values.collect();
        for kind in kinds {
            let range = Range::new(&Field::new("a", kind.clone()));
            for &value in &values {
                assert_eq!(
                    range.admits(value),
                    kind.admits(value),
                    "{value} as {kind:?}"
                );
            }
        }
    }
}
