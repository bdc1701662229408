//! State audit: compares a client's state with the server's to locate where they diverged.
//!
//! Packets carry checksums, so an audit serves to find bugs: in a program that changes rows outside
//! a step, in memory, or in this library.

use prescient_codec::history::Archive;
use prescient_codec::{NetEntityId, Slot, Tick};
use prescient_schema::{EntityRef, Field, FieldKind, Level};

/// A value at a client that differs from the server's value at the same tick.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Divergence {
    /// The tick of the client's value.
    pub tick: Tick,
    /// The entity; `None` if the client should not have it.
    pub entity: Option<EntityRef>,
    /// The class, which names the type and the table.
    pub class: String,
    /// The field; `None` if the whole entity is wrong.
    pub field: Option<String>,
    /// The server's value at that tick, in steps.
    pub truth: Option<i64>,
    /// The client's value, in steps.
    pub shown: i64,
}

/// A part of an audit report.
pub(crate) struct AuditChunk {
    pub rows: Vec<u8>,
    /// First slot of the next part; `None` if this is the last.
    pub next: Option<Slot>,
}

/// Writes id, tick, class and row of each visible table entity, beginning with slot `from`, up to
/// the maximum size of a part.
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

/// Reads what [`write`] wrote and compares it with the server's archive; `find` resolves an entity
/// id as of a tick that the client showed, and `is_hidden` says whether it was hidden or despawned after
/// that tick. `None` if the bytes are malformed.
pub(crate) fn examine(
    mut bytes: &[u8],
    truth: &Archive,
    find: &dyn Fn(NetEntityId, Tick) -> Option<Slot>,
    is_hidden: &dyn Fn(NetEntityId, Tick) -> bool,
) -> Option<Vec<Divergence>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (id, rest) = bytes.split_first_chunk()?;
        let (tick, rest) = rest.split_first_chunk()?;
        let (class, rest) = rest.split_first_chunk()?;
        let id = NetEntityId(u32::from_le_bytes(*id));
        let tick = Tick(u64::from_le_bytes(*tick));
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
        let Some(slot) = find(id, tick) else {
            // A row of something that is hidden or despawned by now cannot be compared.
            if !is_hidden(id, tick) {
                found.push(stranger(i64::from(id.0)));
            }
            continue;
        };
        // Nor can one of a tick that is no longer in the archive, or of what was despawned in a tick
        // that is not encoded yet.
        let Some(real) = truth.row(slot, tick) else {
            continue;
        };
        if truth.class(slot) != Some(number) {
            found.push(stranger(i64::from(id.0)));
            continue;
        }
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

/// The differing fields, at the precision level at which the fewest differ.
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
            // The client has no reference where it does not see the entity; removed entities cannot
            // be resolved any more.
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

/// Bytes of a table entity before its row, and of each cell.
const ENTITY_HEADER: usize = 4 + 8 + 2;
const CELL_BYTES: usize = 8;

/// Maximum bytes of a part, unless one entity needs more: less than any carrier's limit, and small
/// compared with a connection's queue.
const MAX_CHUNK_BYTES: usize = 16 << 10;
