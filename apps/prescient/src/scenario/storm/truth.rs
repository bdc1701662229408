//! The server's world and its history, to compare with the clients' views.
//!
//! Entities have keys that no end assigns, and references are stored as keys. A part of the
//! entities, the *hidden* ones, is visible to one peer alone; the same world can be played with and
//! without them.

mod life;

use std::collections::BTreeMap;
use std::sync::Arc;

use prescient::schema::{EntityRef, Field, FieldKind, Parcel, Shape};
use prescient_replication::{PeerId, Tick, WorldError, WorldStep};

use super::dice::Dice;
use super::schemas::Type;
use super::values::{ContentStore, Style};

/// Key of an entity; 0 is none.
pub(super) type Key = u32;

/// The first key of hidden entities.
const HIDDEN: Key = 1 << 30;

/// Whether an entity is visible to the neighbour alone.
pub(super) fn is_hidden(key: Key) -> bool {
    key >= HIDDEN
}

/// An entity at a tick.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// Index of its type.
    pub of: usize,
    /// The rows of its tables; references are keys.
    pub rows: Vec<Vec<i64>>,
    /// Its owner.
    pub owner: Option<PeerId>,
}

/// All entities at a tick.
pub(super) type WorldState = BTreeMap<Key, Arc<State>>;

/// The world.
pub(super) struct Truth {
    pub types: Vec<Type>,
    pub content_store: ContentStore,
    pub now: WorldState,
    /// The world at each captured tick.
    pub past: BTreeMap<Tick, WorldState>,
    /// The server's references of entities, also of despawned ones.
    pub entities: BTreeMap<Key, EntityRef>,
    styles: BTreeMap<Key, Style>,
    /// Whether hidden entities exist at the server.
    pub with_hidden: bool,
    peers: u64,
    size: usize,
    seed: u64,
    next: [Key; 2],
    dice: Dice,
}

impl Truth {
    /// An empty world of these types.
    pub(super) fn new(seed: u64, types: Vec<Type>, peers: u64, with_hidden: bool) -> Self {
        let mut dice = Dice::of(seed, 2);
        Self {
            types,
            content_store: ContentStore::new(),
            now: WorldState::new(),
            past: BTreeMap::new(),
            entities: BTreeMap::new(),
            styles: BTreeMap::new(),
            with_hidden,
            peers,
            size: [3, 12, 30, 60][dice.below(4)],
            seed,
            next: [1, HIDDEN],
            dice,
        }
    }

    /// Whether an entity exists at the server.
    pub(super) fn is_told(&self, key: Key) -> bool {
        self.with_hidden || !is_hidden(key)
    }

    /// Simulates a tick; nothing changes if the world is `frozen`.
    pub(super) fn step(
        &mut self,
        tick: Tick,
        mut step: WorldStep<'_>,
        frozen: bool,
    ) -> Result<(), WorldError> {
        if !frozen {
            for hidden in [false, true] {
                self.come(hidden, &mut step)?;
                self.go(hidden, &mut step)?;
                self.change_hands(hidden, &mut step)?;
            }
            self.live(&mut step)?;
        }
        step.finish();
        self.past.insert(tick, self.now.clone());
        Ok(())
    }

    /// Spawns all entities at a new server, in a tick of its own.
    pub(super) fn begin_anew(
        &mut self,
        tick: Tick,
        mut step: WorldStep<'_>,
    ) -> Result<(), WorldError> {
        self.entities.clear();
        let keys: Vec<Key> = self.now.keys().copied().collect();
        // References to despawned entities become none: the new server never had them. Other
        // references are set once all entities are spawned.
        for &key in &keys {
            self.edit(key, |_, field, cell| match field.kind {
                FieldKind::Reference { .. } if !keys.contains(&(cell as Key)) => 0,
                _ => cell,
            });
        }
        let kept: Vec<Arc<State>> = self.now.values().cloned().collect();
        for &key in &keys {
            self.edit(key, |_, field, cell| match field.kind {
                FieldKind::Reference { .. } => 0,
                _ => cell,
            });
            self.spawn(key, &mut step)?;
        }
        for (&key, state) in keys.iter().zip(kept) {
            let fixed = self.now[&key].clone();
            self.now.insert(key, state);
            // Fields of `only_on_spawn` were sent without references.
            let tables: Vec<Vec<Field>> = self.fields(key);
            self.edit(key, |(table, column), _, cell| {
                match tables[table][column].only_on_spawn {
                    true => fixed.rows[table][column],
                    false => cell,
                }
            });
            self.tell(key, &mut step)?;
        }
        step.finish();
        self.past.insert(tick, self.now.clone());
        Ok(())
    }

    /// A random entity that may exist at the server.
    pub(super) fn any(&mut self, hidden: bool) -> Option<Key> {
        let keys = self.keys(hidden);
        self.dice.pick(&keys).copied()
    }

    /// The random decisions about the world.
    pub(super) fn dice(&mut self) -> &mut Dice {
        &mut self.dice
    }

    fn keys(&self, hidden: bool) -> Vec<Key> {
        let keys = self.now.keys().copied();
        keys.filter(|&key| is_hidden(key) == hidden).collect()
    }

    fn fields(&self, key: Key) -> Vec<Vec<Field>> {
        let tables = &self.types[self.now[&key].of].tables;
        tables.iter().map(|class| class.fields.clone()).collect()
    }

    /// Changes the cells of an entity one by one.
    fn edit(&mut self, key: Key, mut next: impl FnMut((usize, usize), &Field, i64) -> i64) {
        let Some(state) = self.now.get_mut(&key) else {
            return;
        };
        let state = Arc::make_mut(state);
        for (table, class) in self.types[state.of].tables.iter().enumerate() {
            for (column, field) in class.fields.iter().enumerate() {
                let cell = &mut state.rows[table][column];
                *cell = next((table, column), field, *cell);
            }
        }
    }

    fn spawn(&mut self, key: Key, step: &mut WorldStep<'_>) -> Result<(), WorldError> {
        if self.is_told(key) {
            let state = &self.now[&key];
            let name = &self.types[state.of].name;
            let entity = step.spawn_rows(name, state.owner, &self.parcels(state))?;
            self.entities.insert(key, entity);
        }
        Ok(())
    }

    fn tell(&self, key: Key, step: &mut WorldStep<'_>) -> Result<(), WorldError> {
        match self.is_told(key) {
            true => step.set_rows(self.entities[&key], &self.parcels(&self.now[&key])),
            false => Ok(()),
        }
    }

    /// The rows as the server stores them.
    fn parcels(&self, state: &State) -> Vec<Parcel> {
        let tables = self.types[state.of].tables.iter().zip(&state.rows);
        let parcels = tables.map(|(class, row)| {
            let mut parcel = Parcel::default();
            for (field, &cell) in class.fields.iter().zip(row) {
                parcel.row.push(match field.kind.shape() {
                    Shape::Reference => {
                        let entity = self.entities.get(&(cell as Key));
                        entity.map_or(0, |entity| entity.cell())
                    }
                    _ => cell,
                });
                if field.kind.shape() == Shape::Content {
                    parcel
                        .contents
                        .extend(self.content_store.get(&cell).cloned());
                }
            }
            parcel
        });
        parcels.collect()
    }
}

/// The peer that sees hidden entities.
pub(super) const NEIGHBOUR: PeerId = PeerId(99);

/// Maps the server's references to keys.
pub(super) type Directory = BTreeMap<i64, Key>;
