//! Who is there, and what is known of them besides their values.

use std::collections::{BTreeMap, BTreeSet};

use prescient_codec::{Slot, Tick};

use crate::entity_types::EntityType;
use crate::grid::{Grid, Position};
use crate::input_state::InputState;
use crate::records::EntityRecords;
use crate::server::PeerId;

/// When an object appeared, among all that ever did. Nothing that a peer gets to see may depend on
/// slots, which tell how many objects there are that it does not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Serial {
    pub order: u64,
    /// The entity of its first table, by whose number both ends call it.
    pub first: Slot,
}

/// What a world knows of an object besides its values.
#[derive(Clone, Debug)]
pub(crate) struct EntityRecord {
    pub serial: Serial,
    pub entity_type: EntityType,
    /// One entity per table.
    pub slots: Vec<Slot>,
    pub owner: Option<PeerId>,
    /// The client that says what it is like.
    pub authority: Option<PeerId>,
    /// What it is a part of, and what is a part of it.
    pub parent: Option<Serial>,
    pub children: Vec<Serial>,
    /// Where it is, if its type has a position, and since when.
    pub position: Option<Position>,
    pub moved: Tick,
}

/// Who is there.
#[derive(Debug)]
pub(crate) struct EntityTable {
    pub records: EntityRecords,
    pub next_serial: u64,
    pub grid: Grid,
    pub touched: Vec<Touched>,
    /// What a client is in charge of.
    pub with_authority: BTreeSet<Serial>,
    pub now: Tick,
    pub input_state: InputState,
    /// What belongs to whom.
    pub owned: BTreeMap<PeerId, BTreeSet<Serial>>,
}

impl EntityTable {
    /// An object was one peer's and is another's.
    pub fn change_owner(&mut self, serial: Serial, from: Option<PeerId>, to: Option<PeerId>) {
        if let Some(from) = from
            && let Some(owned) = self.owned.get_mut(&from)
        {
            owned.remove(&serial);
            if owned.is_empty() {
                self.owned.remove(&from);
            }
        }
        if let Some(to) = to {
            self.owned.entry(to).or_default().insert(serial);
        }
    }

    /// An object is there now, or nowhere.
    pub fn set_position(&mut self, serial: Serial, position: Option<Position>) {
        self.grid.put(serial, position);
        if let Some(record) = self.records.get_mut(serial)
            && record.position != position
        {
            record.position = position;
            record.moved = self.now;
        }
    }
}

/// Something happened to an object that may matter to who sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    /// It appeared, belongs to somebody or something else, or somebody else is in charge of it.
    Here(Serial),
    /// It is gone.
    Gone(Serial),
}
