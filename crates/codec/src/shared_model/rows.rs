//! Where a model finds the values that it names by their ticks.

use alloc::{sync::Arc, vec::Vec};

use prescient_schema::Content;

use crate::{
    history::Window,
    predict::{ROWS, Samples},
    units::Tick,
};

/// An entity's id, and its class in the model. Rows are looked up by both: the same id may name an
/// entity of another class at another time, whose rows have other fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntityKey {
    pub id: u32,
    pub class: u16,
}

/// One end's values.
pub(crate) trait Rows {
    /// The row of an entity at a tick both ends know it at; `buffer` is there for those that have
    /// to be worked out. `None` if this end lost it, which means that the two ends no longer agree.
    fn row<'a>(
        &'a self,
        key: EntityKey,
        tick: Tick,
        level: u8,
        buffer: &'a mut Vec<i64>,
    ) -> Option<&'a [i64]>;
    /// The rows of an entity at the ticks it is predicted from.
    fn rows<'a, 's: 'a>(
        &'s self,
        key: EntityKey,
        samples: &Samples,
        level: u8,
        buffers: &'a mut [Vec<i64>; ROWS],
        window: &mut Window<'s>,
    ) -> Option<Views<'a>>;
    /// What [`rows`](Self::rows) finds a tick by, for as long as a packet takes.
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
    /// What a container with this cell holds in any of its rows.
    fn content(&self, cell: i64) -> Option<&Arc<Content>>;
}

/// Rows of one entity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Views<'a> {
    /// In the order of [`Samples::ticks`].
    pub rows: [&'a [i64]; ROWS],
    /// The newest one, if it was at hand.
    pub present: Option<&'a [i64]>,
}
