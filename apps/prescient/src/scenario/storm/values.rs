//! Random values of fields, and their changes.

use std::collections::BTreeMap;

use prescient::schema::{Container, Content, Field, Shape};

use super::dice::Dice;

/// The contents of all containers ever, by cell.
pub(super) type ContentStore = BTreeMap<i64, Content>;

/// How an entity's values change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Never.
    Rest,
    /// Numbers at a constant speed.
    Steady,
    /// Small changes of some values.
    Restless,
    /// Random values.
    Wild,
}

/// A random value of a field that is no reference.
pub(super) fn any(
    field: &Field,
    near: bool,
    dice: &mut Dice,
    content_store: &mut ContentStore,
) -> i64 {
    match field.kind.shape() {
        Shape::Number { bits, signed } if near => {
            let unit = field.kind.unit().map_or(1.0, |unit| unit.as_f64());
            let reach = (200.0 / unit) as i64;
            fit(dice.between(-reach, reach), bits, signed)
        }
        Shape::Number { bits, signed } => match dice.below(4) {
            0 => fit(dice.bits() as i64, bits, signed),
            _ => fit(dice.between(-1000, 1000), bits, signed),
        },
        Shape::Symbol { values } => dice.below(values as usize) as i64,
        Shape::Content => {
            let Some(container) = field.kind.container() else {
                return 0;
            };
            let items = (0..dice.below(container.max_len + 1)).map(|_| item(&container, dice));
            let items = items.collect();
            keep(&container, items, content_store)
        }
        Shape::Reference => 0,
    }
}

/// The next value of a field that is no reference, with a `speed` per field.
pub(super) fn next(
    field: &Field,
    old: i64,
    (style, speed, near): (Style, i64, bool),
    dice: &mut Dice,
    content_store: &mut ContentStore,
) -> i64 {
    match (field.kind.shape(), style) {
        (Shape::Reference, _) | (_, Style::Rest) => old,
        (Shape::Number { bits, signed }, Style::Steady) => {
            fit(old.wrapping_add(speed), bits, signed)
        }
        (Shape::Number { bits, signed }, Style::Restless) if dice.of_thousand(500) => {
            fit(old.wrapping_add(dice.between(-3, 3)), bits, signed)
        }
        (Shape::Content, Style::Restless) if dice.of_thousand(200) => {
            let Some(container) = field.kind.container() else {
                return old;
            };
            let mut items = taken_apart(&container, content_store.get(&old));
            edit(&container, &mut items, dice);
            keep(&container, items, content_store)
        }
        (Shape::Symbol { .. }, Style::Restless) if dice.of_thousand(100) => {
            any(field, near, dice, content_store)
        }
        (_, Style::Wild) if dice.of_thousand(300) => any(field, near, dice, content_store),
        _ => old,
    }
}

/// Wraps a value to this width.
fn fit(value: i64, bits: u8, signed: bool) -> i64 {
    let spare = 64 - u32::from(bits);
    match signed {
        true => value << spare >> spare,
        false => ((value as u64) << spare >> spare) as i64,
    }
}

fn item(container: &Container<'_>, dice: &mut Dice) -> Vec<i64> {
    let mut nothing = ContentStore::new();
    match container.item {
        [] => vec![dice.between(0, if container.text { 127 } else { 255 })],
        fields => fields
            .iter()
            .map(|field| any(field, false, dice, &mut nothing))
            .collect(),
    }
}

fn edit(container: &Container<'_>, items: &mut Vec<Vec<i64>>, dice: &mut Dice) {
    let at = dice.below(items.len() + 1);
    match dice.below(4) {
        0 if at < items.len() => drop(items.remove(at)),
        1 if at < items.len() => items[at] = item(container, dice),
        2 => items.reverse(),
        _ => items.insert(at, item(container, dice)),
    }
}

fn taken_apart(container: &Container<'_>, content: Option<&Content>) -> Vec<Vec<i64>> {
    match content {
        None => Vec::new(),
        Some(Content::Bytes(bytes)) => bytes.iter().map(|&byte| vec![i64::from(byte)]).collect(),
        Some(Content::Cells(cells)) => {
            let items = cells.chunks(container.width());
            items.map(<[i64]>::to_vec).collect()
        }
    }
}

/// Stores a content of items and returns its cell.
fn keep(
    container: &Container<'_>,
    mut items: Vec<Vec<i64>>,
    content_store: &mut ContentStore,
) -> i64 {
    if container.key > 0 {
        items.sort();
        items.dedup_by(|one, other| one[..container.key] == other[..container.key]);
    }
    items.truncate(container.max_len);
    let cells = items.into_iter().flatten();
    let content = match container.item {
        [] => Content::Bytes(cells.map(|byte| byte as u8).collect()),
        _ => Content::Cells(cells.collect()),
    };
    let cell = content.cell();
    if cell != 0 {
        content_store.insert(cell, content);
    }
    cell
}
