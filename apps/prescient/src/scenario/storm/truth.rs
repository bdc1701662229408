//! The world as it is and was: what clients are held against.
//!
//! Objects have keys of their own, which no end hands out, and references are keys. A part of the
//! objects, the *hidden* ones, is for one peer alone; the same world can be played with and without
//! them.

use std::collections::BTreeMap;
use std::sync::Arc;

use prescient::schema::{EntityRef, Field, Kind, Parcel, Shape};
use prescient_replication::{PeerId, Step, Tick, WorldError};

use super::dice::{Dice, mix};
use super::schemas::Type;
use super::values::{self, Shelf, Style};

/// An object; 0 is none.
pub type Key = u32;

/// The first key of hidden objects.
const HIDDEN: Key = 1 << 30;

/// Whether an object is for one peer alone.
pub fn is_hidden(key: Key) -> bool {
    key >= HIDDEN
}

/// An object at a tick.
#[derive(Clone, Debug)]
pub struct State {
    /// Its type, by number.
    pub of: usize,
    /// The rows of its tables; references are keys.
    pub rows: Vec<Vec<i64>>,
    /// Whose it is.
    pub owner: Option<PeerId>,
}

/// All objects at a tick.
pub type Moment = BTreeMap<Key, Arc<State>>;

/// The world.
pub struct Truth {
    pub types: Vec<Type>,
    pub shelf: Shelf,
    pub now: Moment,
    /// What was true at each tick that was captured.
    pub past: BTreeMap<Tick, Moment>,
    /// What the server calls those that it was told of, also when they are gone.
    pub entities: BTreeMap<Key, EntityRef>,
    styles: BTreeMap<Key, Style>,
    /// Whether the server is told of hidden objects.
    pub with_hidden: bool,
    peers: u64,
    size: usize,
    seed: u64,
    next: [Key; 2],
    dice: Dice,
}

impl Truth {
    /// An empty world of these types.
    pub fn new(seed: u64, types: Vec<Type>, peers: u64, with_hidden: bool) -> Self {
        let mut dice = Dice::of(seed, 2);
        Self {
            types,
            shelf: Shelf::new(),
            now: Moment::new(),
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

    /// Whether the server is told of an object.
    pub fn is_told(&self, key: Key) -> bool {
        self.with_hidden || !is_hidden(key)
    }

    /// Lets a tick pass, in which nothing happens if the world is `frozen`.
    pub fn step(&mut self, tick: Tick, mut step: Step<'_>, frozen: bool) -> Result<(), WorldError> {
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

    /// Tells a new server of everything, in a tick of its own.
    pub fn begin_anew(&mut self, tick: Tick, mut step: Step<'_>) -> Result<(), WorldError> {
        self.entities.clear();
        let keys: Vec<Key> = self.now.keys().copied().collect();
        // What referred to somebody who is gone refers to nobody: no server ever knew them. Others
        // wait until everybody is there.
        for &key in &keys {
            self.edit(key, |_, field, cell| match field.kind {
                Kind::Reference { .. } if !keys.contains(&(cell as Key)) => 0,
                _ => cell,
            });
        }
        let kept: Vec<Arc<State>> = self.now.values().cloned().collect();
        for &key in &keys {
            self.edit(key, |_, field, cell| match field.kind {
                Kind::Reference { .. } => 0,
                _ => cell,
            });
            self.spawn(key, &mut step)?;
        }
        for (&key, state) in keys.iter().zip(kept) {
            let fixed = self.now[&key].clone();
            self.now.insert(key, state);
            // What is only told when an object appears was told without references.
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

    /// Any object that the server may be told of.
    pub fn any(&mut self, hidden: bool) -> Option<Key> {
        let keys = self.keys(hidden);
        self.dice.pick(&keys).copied()
    }

    /// A decision about the world.
    pub fn dice(&mut self) -> &mut Dice {
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

    fn come(&mut self, hidden: bool, step: &mut Step<'_>) -> Result<(), WorldError> {
        let there = self.keys(hidden).len();
        let count = match self.dice.below(40) {
            0 => self.size,
            1..12 => 1,
            _ => 0,
        };
        for _ in 0..count.min(self.size.saturating_sub(there)) {
            let of = self.dice.below(self.types.len());
            let key = self.next[usize::from(hidden)];
            self.next[usize::from(hidden)] += 1;
            let owner = match (hidden, self.dice.below(self.peers as usize + 1) as u64) {
                (true, _) => Some(NEIGHBOUR),
                // What is the neighbour's is its own business.
                (false, 0) => None,
                (false, peer) => Some(PeerId(peer)),
            };
            let mut rows: Vec<Vec<i64>> = Vec::new();
            for class in &self.types[of].tables {
                let place = |at: usize| class.position.contains(&(at as u16));
                let fields = class.fields.iter().enumerate();
                let row = fields.map(|(at, field)| {
                    values::any(field, place(at), &mut self.dice, &mut self.shelf)
                });
                rows.push(row.collect());
            }
            rows[0][self.types[of].key] = i64::from(key);
            let state = State { of, rows, owner };
            self.now.insert(key, Arc::new(state));
            self.refer(key, true);
            self.styles.insert(key, Style::Rest);
            self.spawn(key, step)?;
        }
        Ok(())
    }

    fn go(&mut self, hidden: bool, step: &mut Step<'_>) -> Result<(), WorldError> {
        let count = match self.dice.below(60) {
            0 => self.size / 2,
            1..8 => 1,
            _ => 0,
        };
        for _ in 0..count {
            let Some(key) = self.any(hidden) else {
                break;
            };
            self.now.remove(&key);
            self.styles.remove(&key);
            if self.is_told(key) {
                step.despawn(self.entities[&key])?;
            }
        }
        Ok(())
    }

    fn change_hands(&mut self, hidden: bool, step: &mut Step<'_>) -> Result<(), WorldError> {
        let peer = self.dice.below(self.peers as usize + 1) as u64;
        if hidden || !self.dice.of_thousand(100) {
            return Ok(());
        }
        let Some(key) = self.any(hidden) else {
            return Ok(());
        };
        let owner = (peer > 0).then_some(PeerId(peer));
        if let Some(state) = self.now.get_mut(&key) {
            Arc::make_mut(state).owner = owner;
        }
        step.give(self.entities[&key], owner)
    }

    /// Everybody goes on as is their style.
    fn live(&mut self, step: &mut Step<'_>) -> Result<(), WorldError> {
        let keys: Vec<Key> = self.now.keys().copied().collect();
        for key in keys {
            if self.dice.of_thousand(30) {
                let styles = [Style::Rest, Style::Steady, Style::Restless, Style::Wild];
                self.styles.insert(key, styles[self.dice.below(4)]);
            }
            let style = self.styles[&key];
            let refers = self.dice.of_thousand(40);
            if style == Style::Rest && !refers {
                continue;
            }
            let (mut dice, mut shelf) = (self.dice.clone(), std::mem::take(&mut self.shelf));
            let types = &self.types[self.now[&key].of];
            let positions: Vec<_> = types
                .tables
                .iter()
                .map(|one| one.position.clone())
                .collect();
            let which = types.key;
            let seed = mix(self.seed, u64::from(key));
            self.edit(key, |(table, column), field, cell| {
                if (table, column) == (0, which) || field.only_on_spawn {
                    return cell;
                }
                let speed = mix(seed, (table << 16 | column) as u64) % 15;
                let near = positions[table].contains(&(column as u16));
                let how = (style, speed as i64 - 7, near);
                values::next(field, cell, how, &mut dice, &mut shelf)
            });
            (self.dice, self.shelf) = (dice, shelf);
            if refers {
                self.refer(key, false);
            }
            self.tell(key, step)?;
        }
        Ok(())
    }

    /// Lets an object refer to others, some of them hidden.
    fn refer(&mut self, key: Key, is_new: bool) {
        let visible = self.keys(false);
        let hidden = self.keys(true);
        let mut dice = self.dice.clone();
        let names: Vec<String> = self.types.iter().map(|one| one.name.clone()).collect();
        let kinds: BTreeMap<Key, usize> = self.now.iter().map(|(&k, one)| (k, one.of)).collect();
        self.edit(key, |_, field, cell| {
            let Kind::Reference { class } = &field.kind else {
                return cell;
            };
            if field.only_on_spawn && !is_new {
                return cell;
            }
            let among = match dice.below(4) {
                0 => &hidden,
                _ => &visible,
            };
            let to = dice.pick(among).copied().unwrap_or(0);
            let fits = |to: &Key| {
                let name = kinds.get(to).map(|&of| &names[of]);
                *to != key && (class.is_none() || class.as_ref() == name)
            };
            i64::from(Some(to).filter(fits).unwrap_or(0))
        });
        self.dice = dice;
    }

    /// Changes the cells of an object one by one.
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

    fn spawn(&mut self, key: Key, step: &mut Step<'_>) -> Result<(), WorldError> {
        if self.is_told(key) {
            let state = &self.now[&key];
            let name = &self.types[state.of].name;
            let entity = step.spawn_rows(name, state.owner, &self.parcels(state))?;
            self.entities.insert(key, entity);
        }
        Ok(())
    }

    fn tell(&self, key: Key, step: &mut Step<'_>) -> Result<(), WorldError> {
        match self.is_told(key) {
            true => step.set_rows(self.entities[&key], &self.parcels(&self.now[&key])),
            false => Ok(()),
        }
    }

    /// The rows as the server has them.
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
                    parcel.contents.extend(self.shelf.get(&cell).cloned());
                }
            }
            parcel
        });
        parcels.collect()
    }
}

/// The peer that hidden objects are for.
pub const NEIGHBOUR: PeerId = PeerId(99);

/// What an entity of the server is to the storm.
pub type Directory = BTreeMap<i64, Key>;
