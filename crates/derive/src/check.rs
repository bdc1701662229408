//! Checks that names in attributes are those of fields and tables.

use proc_macro2::Span;
use syn::{Error, Result};

use crate::attributes::{At, FieldAttributes, StructAttributes};
use crate::class::DEFAULT_TABLE;
use crate::column::Column;

pub(crate) fn check(of_struct: &StructAttributes, columns: &[Column<'_>]) -> Result<()> {
    let known = |name: &At<String>| {
        let first = name.value.split(['.', '[']).next().unwrap_or_default();
        if columns.iter().any(|column| column.name == first) {
            return Ok(());
        }
        Err(Error::new(
            name.span,
            format!("there is no field `{first}`"),
        ))
    };
    for role in [&of_struct.owner, &of_struct.group, &of_struct.position] {
        role.as_ref().map_or(Ok(()), known)?;
    }
    let no_tables = Vec::new();
    let tables = of_struct
        .tables
        .as_ref()
        .map_or(&no_tables, |tables| &tables.value);
    for column in columns {
        let attributes = &column.attributes;
        for table in attributes.tables.iter().flat_map(|tables| &tables.value) {
            if !tables.contains(table) {
                let text = format!("the struct declares no table `{table}`");
                return Err(Error::new(table.span(), text));
            }
        }
        if let Some(own) = &attributes.table {
            let taken = match tables.is_empty() {
                true => column.name == DEFAULT_TABLE,
                false => tables.iter().any(|table| *table == column.name),
            };
            if taken {
                let text = format!("there is another table `{}`", column.name);
                return Err(Error::new(own.span, text));
            }
        }
        if let Some(velocity) = &attributes.velocity_of {
            known(velocity)?;
            if velocity.value == column.name {
                let text = "a field cannot be its own rate of change";
                return Err(Error::new(velocity.span, text));
            }
            if attributes.per_tick.is_none() && of_struct.tick_hz.is_none() {
                let text = "say `per_tick`, or declare `tick_hz = …` on the struct";
                return Err(Error::new(velocity.span, text));
            }
        }
    }
    for (twice, what) in [
        (
            second(columns, |field| &field.owner, &of_struct.owner),
            "owner",
        ),
        (
            second(columns, |field| &field.group, &of_struct.group),
            "group",
        ),
        (second(columns, |field| &field.keys, &None), "keys"),
    ] {
        if let Some(span) = twice {
            return Err(Error::new(span, format!("there is another `{what}` field")));
        }
    }
    Ok(())
}

fn second(
    columns: &[Column<'_>],
    mark: fn(&FieldAttributes) -> &Option<At<()>>,
    of_struct: &Option<At<String>>,
) -> Option<Span> {
    let marks = columns
        .iter()
        .filter_map(|column| mark(&column.attributes).as_ref());
    marks
        .map(|at| at.span)
        .nth(usize::from(of_struct.is_none()))
}
