//! The body of a packet: despawns, entities that wake, active entities, and spawns.
//!
//! This file shows the whole pipeline. `write_body` and `read_body` walk the same lists in the same
//! order; how the values of an entity are coded is in `entity.rs`.

mod coded_entity;
mod limits;
mod mark;
mod presence;
mod quiet;
mod reader;
mod writer;

use alloc::vec::Vec;

use crate::{
    budget::PacketCosts,
    history::{Window, line::Line},
    kept::HashedContent,
    ledger::{Account, Cause},
    packet_coder::{List, PacketCoder},
    past::PlanCache,
    predict::{ROWS, Samples},
    range::{RangeDecoder, RangeEncoder},
    shared_model::{EntityKey, Rows},
    units::Tick,
};
pub(crate) use limits::{ReadLimits, max_decisions, may_appear, min_len, retain_nearby};
use quiet::ActiveOrder;
use reader::Reader;
use writer::Writer;

/// What a packet is to state, each list ascending by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    pub despawns: Vec<u32>,
    /// Entities at rest whose values changed.
    pub wakes: Vec<u32>,
    pub spawns: Vec<Spawn>,
    /// `None` for a full packet.
    pub partial: Option<Partial>,
    /// It is a selection made before costs are known, and not to be sent as it is.
    pub is_draft: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Spawn {
    pub id: u32,
    pub class: u16,
    /// Whether an earlier packet contained it, too.
    pub again: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Partial {
    /// The active entities to cover, ascending.
    pub active: Vec<u32>,
    pub limit: usize,
}

/// Buffers that are reused from packet to packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    plans: PlanCache,
    pasts: PastBuffers,
    truth: Vec<i64>,
    row: Vec<i64>,
    order: ActiveOrder,
}

/// Buffers for past rows that have to be computed.
#[derive(Clone, Debug, Default)]
struct PastBuffers {
    rows: [Vec<i64>; ROWS],
    contract: Vec<i64>,
}

/// The rows of the sender, with the precision that it wants for each entity.
pub(crate) trait SenderRows: Rows {
    /// The precision at which an entity is to be sent from now on.
    fn level(&self, id: u32) -> u8;
    /// The two newest rows from which an entity is predicted and its newest row, if all are exact
    /// and available without a copy.
    fn recent_rows<'s>(
        &'s self,
        key: EntityKey,
        samples: &Samples,
        window: &mut Window<'s>,
    ) -> Option<[&'s [i64]; 3]>;
    /// The straight line in which an entity moves, if that can be known without its rows.
    fn line(&self, key: EntityKey) -> Option<Line>;
}

/// Writes the body. The log of the packet coder then contains what was written.
pub(crate) fn write_body<const N: usize>(
    packet_coder: &mut PacketCoder<'_, RangeEncoder, N>,
    contents: &Contents,
    source: &impl SenderRows,
    now: Tick,
    scratch: &mut Scratch,
    packet_costs: &mut PacketCosts,
) {
    let limit = contents
        .partial
        .as_ref()
        .map_or(usize::MAX, |partial| partial.limit);
    scratch.plans.begin();
    let mut writer = Writer {
        packet_coder,
        source,
        now,
        scratch,
        window: Window::default(),
        limit,
        empty: true,
    };
    let mut previous = None;
    for &id in &contents.despawns {
        let done = writer.item(|w| {
            w.packet_coder.list_item(List::Despawns, &mut previous, id);
            w.packet_coder.log.despawns.push(id);
        });
        if done.is_none() {
            break;
        }
    }
    writer.packet_coder.end(List::Despawns);
    packet_costs.despawns = writer.packet_coder.cost;
    previous = None;
    for &id in &contents.wakes {
        match writer.item(|w| w.wake(id, &mut previous)) {
            Some(cost) => packet_costs.wakes.push((id, cost)),
            None => break,
        }
    }
    writer.packet_coder.end(List::Wakes);
    match &contents.partial {
        None => writer.all_active(packet_costs),
        Some(partial) => writer.some_active(partial, packet_costs),
    }
    previous = None;
    for &spawn in &contents.spawns {
        match writer.item(|w| w.spawn(spawn, &mut previous)) {
            Some(cost) => packet_costs.spawns.push((spawn.id, cost)),
            None => break,
        }
    }
    writer.packet_coder.end(List::Spawns);
    packet_coder.log.covered.sort_unstable();
}

/// What was read from a packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readout {
    /// Entities with new values: spawned, woken, surprising, or moved as predicted.
    pub rows: Vec<ReadRow>,
    pub values: Vec<i64>,
    /// Ids of entities that were at rest, ascending.
    pub wakes: Vec<u32>,
    /// Contents that the rows name and the archive may not have.
    pub contents: Vec<HashedContent>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadRow {
    pub id: u32,
    pub class: u16,
    pub start: usize,
    pub len: usize,
}

impl Readout {
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.values.clear();
        self.wakes.clear();
        self.contents.clear();
    }

    /// Adds a row and returns it for changes.
    fn push(&mut self, id: u32, class: u16, row: &[i64]) -> &mut [i64] {
        let start = self.values.len();
        self.rows.push(ReadRow {
            id,
            class,
            start,
            len: row.len(),
        });
        self.values.extend_from_slice(row);
        &mut self.values[start..]
    }

    /// A lower bound on the bytes that the archive needs for it.
    pub(crate) fn bytes(&self) -> usize {
        let contents: usize = self.contents.iter().map(HashedContent::bytes).sum();
        contents + size_of_val(&self.values[..])
    }

    pub(crate) fn row(&self, row: &ReadRow) -> &[i64] {
        &self.values[row.start..][..row.len]
    }
}

/// Reads what [`write_body`] wrote.
pub(crate) fn read_body<const N: usize>(
    packet_coder: &mut PacketCoder<'_, RangeDecoder<'_>, N>,
    full: bool,
    source: &impl Rows,
    now: Tick,
    scratch: &mut Scratch,
    limits: &ReadLimits,
    out: &mut Readout,
) -> Result<(), Malformed> {
    packet_coder.max_decisions = limits.decisions;
    scratch.plans.begin();
    let mut reader = Reader {
        packet_coder,
        source,
        now,
        scratch,
        window: Window::default(),
        out,
    };
    let mut previous = None;
    while let Some(id) = reader
        .packet_coder
        .next_item(List::Despawns, &mut previous)?
    {
        reader.packet_coder.log.despawns.push(id);
    }
    previous = None;
    while let Some(id) = reader.packet_coder.next_item(List::Wakes, &mut previous)? {
        reader.wake(id)?;
    }
    if full {
        reader.all_active()?;
    } else {
        reader.some_active()?;
    }
    previous = None;
    while let Some(id) = reader.packet_coder.next_item(List::Spawns, &mut previous)? {
        let nearby = may_appear(
            id,
            reader.packet_coder.log.spawns.len(),
            reader.packet_coder.entity_states,
        );
        if id as usize >= limits.entities || !nearby {
            return Err(Malformed);
        }
        reader.spawn(id)?;
    }
    packet_coder.log.covered.sort_unstable();
    packet_coder.verify()
}

/// The packet contains what no encoder writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Malformed;

const PRESENCE: Account = Account {
    class: None,
    field: None,
    cause: Cause::Presence,
};
