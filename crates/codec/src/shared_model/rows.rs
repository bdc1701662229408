//! Access to the rows of one end, which the shared model names by their ticks.

use alloc::{sync::Arc, vec::Vec};

use prescient_schema::Content;

use crate::{
    history::Window,
    predict::{ROWS, Samples},
    units::Tick,
};

/// An entity's id and its class in the model. Rows are looked up by both, because an id may name an
/// entity of another class, with other fields, at another time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntityKey {
    pub id: u32,
    pub class: u16,
}

/// The rows of one end.
pub(crate) trait Rows {
    /// The row of an entity at a tick at which both ends have it; `buffer` is for rows that have to
    /// be computed. `None` if this end has lost it, which means that the two ends differ.
    fn row<'a>(
        &'a self,
        key: EntityKey,
        tick: Tick,
        level: u8,
        buffer: &'a mut Vec<i64>,
    ) -> Option<&'a [i64]>;
    /// The rows of an entity at the ticks from which it is predicted.
    fn rows<'a, 's: 'a>(
        &'s self,
        key: EntityKey,
        samples: &Samples,
        level: u8,
        buffers: &'a mut [Vec<i64>; ROWS],
        window: &mut Window<'s>,
    ) -> Option<Views<'a>>;
    /// The index of a tick for [`rows`](Self::rows), valid while a packet is coded.
    fn frame(&self, tick: Tick) -> u32;
    /// The newest row of an entity.
    fn latest<'a>(
        &'a self,
        key: EntityKey,
        level: u8,
        buffer: &'a mut Vec<i64>,
    ) -> Option<&'a [i64]>;
    /// Whether the values of an entity changed after a tick.
    fn changed_after(&self, id: u32, tick: Tick) -> bool;
    /// Resolves a container's cell (a content hash) to its content.
    fn content(&self, cell: i64) -> Option<&Arc<Content>>;
}

/// Rows of one entity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Views<'a> {
    /// In the order of [`Samples::ticks`].
    pub rows: [&'a [i64]; ROWS],
    /// The newest row, if it is available without a copy.
    pub present: Option<&'a [i64]>,
}
