//! What a client shows, compared with what it should: where two ends began to differ.
//!
//! Packets carry checks, so this is for finding bugs: in a program that changes rows behind our
//! back, in memory, or in us.

use prescient_codec::history::Archive;
use prescient_codec::{ClientId, Slot, Tick};
use prescient_schema::{EntityRef, Field, Kind, Level};

/// A value that a client shows and that never was true in recent ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The newest tick that the client had applied.
    pub tick: Tick,
    /// The object; `None` if the client should not show it at all.
    pub object: Option<EntityRef>,
    /// The class, which names the type and the table.
    pub class: String,
    /// The field; `None` if the whole object is wrong.
    pub field: Option<String>,
    /// What it is in steps, at that tick.
    pub truth: Option<i64>,
    /// What the client shows.
    pub shown: i64,
}

/// Everything that is shown: number, class and row of each entity.
pub(crate) fn write(shown: &Archive) -> Vec<u8> {
    let mut bytes = Vec::new();
    for slot in shown.living_slots() {
        let (Some(class), Some(row)) = (shown.class(slot), shown.latest(slot)) else {
            continue;
        };
        bytes.extend_from_slice(&slot.0.to_le_bytes());
        bytes.extend_from_slice(&class.to_le_bytes());
        row.iter()
            .for_each(|cell| bytes.extend_from_slice(&cell.to_le_bytes()));
    }
    bytes
}

/// Reads what [`write`] wrote and compares it with the truth; `find` says which entity the client
/// calls by a number. `None` if it is no testimony.
pub(crate) fn examine(
    mut bytes: &[u8],
    tick: Tick,
    truth: &Archive,
    find: &dyn Fn(ClientId) -> Option<Slot>,
) -> Option<Vec<Divergence>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (id, rest) = bytes.split_first_chunk()?;
        let (class, rest) = rest.split_first_chunk()?;
        let (id, number) = (
            ClientId(u32::from_le_bytes(*id)),
            u16::from_le_bytes(*class),
        );
        let class = truth.schema().classes.get(usize::from(number))?;
        let (cells, rest) = rest.split_at_checked(class.fields.len() * 8)?;
        bytes = rest;
        let row: Vec<i64> = cells
            .as_chunks()
            .0
            .iter()
            .map(|&cell| i64::from_le_bytes(cell))
            .collect();
        let stranger = |shown| Divergence {
            tick,
            object: None,
            class: class.name.clone(),
            field: None,
            truth: None,
            shown,
        };
        let slot = find(id).filter(|&slot| truth.class(slot) == Some(number));
        let Some(slot) = slot else {
            found.push(stranger(i64::from(id.0)));
            continue;
        };
        let Some((wrong, real)) = wrong_fields(&row, slot, tick, truth, &class.fields, find) else {
            continue;
        };
        found.extend(wrong.into_iter().map(|at| Divergence {
            object: truth.reference(slot),
            field: Some(class.fields[at].name.clone()),
            truth: real.get(at).copied(),
            ..stranger(row[at])
        }));
    }
    Some(found)
}

/// The fields that are wrong in comparison with the tick at which the fewest are, and the row of
/// that tick. `None` if a tick is as shown: what a packet does not cover stays as it was.
fn wrong_fields(
    row: &[i64],
    slot: Slot,
    tick: Tick,
    truth: &Archive,
    fields: &[Field],
    find: &dyn Fn(ClientId) -> Option<Slot>,
) -> Option<(Vec<usize>, Vec<i64>)> {
    let same = |field: &Field, level: Level, shown: i64, real: i64| match field.kind {
        Kind::Reference { .. } => {
            let to = EntityRef::from_cell(shown).and_then(EntityRef::index);
            let to = to.map(|id| find(ClientId(id)));
            // Nothing, where the client does not see it; what has left since cannot be told.
            let real = EntityRef::from_cell(real).and_then(EntityRef::index);
            to.is_none_or(|to| to.is_none() || to.map(|slot| slot.0) == real)
        }
        _ => field.at_level(level, real) == shown,
    };
    let ticks: Vec<Tick> = truth.ticks().filter(|&at| at <= tick).collect();
    let levels: Vec<Level> = (0..).map_while(Level::new).collect();
    let compare = |&at: &Tick| {
        let real = truth.row(slot, at)?;
        let wrong = levels.iter().map(|&level| {
            let cells = fields.iter().zip(row.iter().zip(real)).enumerate();
            let wrong =
                cells.filter(|(_, (field, (shown, real)))| !same(field, level, **shown, **real));
            wrong.map(|(at, _)| at).collect::<Vec<_>>()
        });
        let wrong = wrong.min_by_key(Vec::len)?;
        Some((wrong, real.to_vec()))
    };
    // Of ticks with equally few, the newest.
    let best = ticks
        .iter()
        .rev()
        .filter_map(compare)
        .min_by_key(|(wrong, _)| wrong.len())?;
    (!best.0.is_empty()).then_some(best)
}
