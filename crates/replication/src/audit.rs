//! What a client shows, compared with what it should: where two ends began to differ.
//!
//! Packets carry checks, so this is for finding bugs: in a program that changes rows behind our
//! back, in memory, or in us.

use prescient_codec::history::Archive;
use prescient_codec::{NetEntityId, Slot, Tick};
use prescient_schema::{EntityRef, Field, FieldKind, Level};

/// A value that a client shows and that was not true at the tick that it shows it as of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The tick that the client shows it as of.
    pub tick: Tick,
    /// The entity; `None` if the client should not show it at all.
    pub entity: Option<EntityRef>,
    /// The class, which names the type and the table.
    pub class: String,
    /// The field; `None` if the whole entity is wrong.
    pub field: Option<String>,
    /// What it is in steps, at that tick.
    pub truth: Option<i64>,
    /// What the client shows.
    pub shown: i64,
}

/// A part of a testimony.
pub(crate) struct AuditChunk {
    pub rows: Vec<u8>,
    /// Where the next one begins; `None` if this is the last.
    pub next: Option<Slot>,
}

/// Everything that is shown, from a number on, in no more bytes than a message may have: number, tick,
/// class and row of each entity.
pub(crate) fn write(
    shown: &Archive,
    from: Slot,
    tick_of: &dyn Fn(NetEntityId) -> Option<Tick>,
) -> AuditChunk {
    let mut bytes = Vec::new();
    for slot in shown.living_slots().filter(|&slot| slot >= from) {
        let (class, row, tick) = (
            shown.class(slot),
            shown.latest(slot),
            tick_of(NetEntityId(slot.0)),
        );
        let (Some(class), Some(row), Some(tick)) = (class, row, tick) else {
            continue;
        };
        let length = bytes.len() + ENTITY_HEADER + row.len() * CELL_BYTES;
        if length > MAX_CHUNK_BYTES && !bytes.is_empty() {
            return AuditChunk {
                rows: bytes,
                next: Some(slot),
            };
        }
        bytes.extend_from_slice(&slot.0.to_le_bytes());
        bytes.extend_from_slice(&tick.0.to_le_bytes());
        bytes.extend_from_slice(&class.to_le_bytes());
        row.iter()
            .for_each(|cell| bytes.extend_from_slice(&cell.to_le_bytes()));
    }
    AuditChunk {
        rows: bytes,
        next: None,
    }
}

/// Reads what [`write`] wrote and compares it with the truth; `find` says which entity the client
/// called by a number when it showed a tick. `None` if it is no testimony.
pub(crate) fn examine(
    mut bytes: &[u8],
    truth: &Archive,
    find: &dyn Fn(NetEntityId, Tick) -> Option<Slot>,
) -> Option<Vec<Divergence>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (id, rest) = bytes.split_first_chunk()?;
        let (tick, rest) = rest.split_first_chunk()?;
        let (class, rest) = rest.split_first_chunk()?;
        let id = NetEntityId(u32::from_le_bytes(*id));
        let tick = Tick(u32::from_le_bytes(*tick));
        let number = u16::from_le_bytes(*class);
        let class = truth.schema().classes.get(usize::from(number))?;
        let (cells, rest) = rest.split_at_checked(class.fields.len() * CELL_BYTES)?;
        bytes = rest;
        let row: Vec<i64> = cells
            .as_chunks()
            .0
            .iter()
            .map(|&cell| i64::from_le_bytes(cell))
            .collect();
        let stranger = |shown| Divergence {
            tick,
            entity: None,
            class: class.name.clone(),
            field: None,
            truth: None,
            shown,
        };
        let slot = find(id, tick).filter(|&slot| truth.class(slot) == Some(number));
        let Some(slot) = slot else {
            found.push(stranger(i64::from(id.0)));
            continue;
        };
        // What was forgotten cannot be compared.
        let Some(real) = truth.row(slot, tick) else {
            continue;
        };
        let wrong = wrong_fields(&row, real, &class.fields, &|id| find(id, tick));
        found.extend(wrong.into_iter().map(|at| Divergence {
            entity: truth.reference(slot),
            field: Some(class.fields[at].name.clone()),
            truth: real.get(at).copied(),
            ..stranger(row[at])
        }));
    }
    Some(found)
}

/// The fields that are not as they should be, at the precision at which the fewest are.
fn wrong_fields(
    row: &[i64],
    real: &[i64],
    fields: &[Field],
    find: &dyn Fn(NetEntityId) -> Option<Slot>,
) -> Vec<usize> {
    let same = |field: &Field, level: Level, shown: i64, real: i64| match field.kind {
        FieldKind::Reference { .. } => {
            let to = EntityRef::from_cell(shown).and_then(EntityRef::index);
            let to = to.map(|id| find(NetEntityId(id)));
            // Nothing, where the client does not see it; what has left since cannot be told.
            let real = EntityRef::from_cell(real).and_then(EntityRef::index);
            to.is_none_or(|to| to.is_none() || to.map(|slot| slot.0) == real)
        }
        _ => field.at_level(level, real) == shown,
    };
    let levels = (0..).map_while(Level::new);
    let wrong = levels.map(|level| {
        let cells = fields.iter().zip(row.iter().zip(real)).enumerate();
        let wrong = cells.filter(|(_, (field, cells))| !same(field, level, *cells.0, *cells.1));
        wrong.map(|(at, _)| at).collect::<Vec<_>>()
    });
    wrong.min_by_key(Vec::len).unwrap_or_default()
}

/// Bytes of an entity before its row, and of each of its cells.
const ENTITY_HEADER: usize = 4 + 4 + 2;
const CELL_BYTES: usize = 8;

/// Bytes of a part at most, unless it is one entity: less than any carrier takes, and small beside
/// what a connection has room for.
const MAX_CHUNK_BYTES: usize = 16 << 10;
