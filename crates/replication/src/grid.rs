//! Spatial index: finds the entities near a position without testing all.

use std::collections::BTreeMap;

use prescient_schema::Class;

use crate::world::Serial;

/// A point in the world; coordinates that a type lacks are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position(pub [f64; 3]);

impl Position {
    /// The position in a row, if the class has one of up to three coordinates.
    pub(crate) fn of(class: &Class, row: &[i64]) -> Option<Self> {
        let mut position = Self::default();
        if class.position.is_empty() {
            return None;
        }
        for (axis, &field) in position.0.iter_mut().zip(&class.position) {
            let unit = class.fields.get(usize::from(field))?.kind.unit()?;
            *axis = unit.value(*row.get(usize::from(field))?);
        }
        Some(position)
    }

    /// The distance between two positions.
    pub fn distance(self, other: Self) -> f64 {
        let apart = self.0.iter().zip(other.0).map(|(a, b)| (a - b) * (a - b));
        apart.sum::<f64>().sqrt()
    }
}

/// Entities by cell.
#[derive(Debug)]
pub(crate) struct Grid {
    size: f64,
    /// Entities of each cell, in the order in which they were spawned.
    cells: BTreeMap<Cell, Vec<Serial>>,
    /// The cell of each entity, by the slot of its first table.
    homes: Vec<Option<Cell>>,
}

type Cell = [i32; 3];

impl Grid {
    /// Cells of this size; an invalid size counts as 1.
    pub(crate) fn new(size: f64) -> Self {
        Self {
            size: if size.is_finite() && size > 0.0 {
                size
            } else {
                1.0
            },
            cells: BTreeMap::new(),
            homes: Vec::new(),
        }
    }

    /// Sets or removes an entity's position.
    pub(crate) fn put(&mut self, entity: Serial, position: Option<Position>) {
        let cell = position.map(|position| self.cell(position));
        let at = entity.first.0 as usize;
        if self.homes.len() <= at {
            self.homes.resize(at + 1, None);
        }
        let old = std::mem::replace(&mut self.homes[at], cell);
        if old == cell {
            return;
        }
        if let Some(old) = old
            && let Some(inside) = self.cells.get_mut(&old)
        {
            if let Ok(at) = inside.binary_search(&entity) {
                inside.remove(at);
            }
            if inside.is_empty() {
                self.cells.remove(&old);
            }
        }
        if let Some(cell) = cell {
            let inside = self.cells.entry(cell).or_default();
            if let Err(at) = inside.binary_search(&entity) {
                inside.insert(at, entity);
            }
        }
    }

    /// All entities in the cells that touch the bounding box of a ball.
    pub(crate) fn near(&self, center: Position, radius: f64) -> impl Iterator<Item = Serial> {
        let reach = Position([radius.max(0.0); 3]);
        let corner = |sign: f64| {
            let at = std::array::from_fn(|axis| center.0[axis] + sign * reach.0[axis]);
            self.cell(Position(at))
        };
        let (low, high): (Cell, Cell) = (corner(-1.0), corner(1.0));
        let span = |axis: usize| (i64::from(high[axis]) - i64::from(low[axis]) + 1) as u64;
        // Rows of cells along the last axis are contiguous in the map, so only the first two axes
        // are walked, unless there are fewer cells than rows.
        let rows = span(0).saturating_mul(span(1));
        let all = rows > self.cells.len() as u64;
        let inside = move |cell: &Cell| (0..3).all(|a| (low[a]..=high[a]).contains(&cell[a]));
        let every = all.then(|| self.cells.iter().filter(move |(cell, _)| inside(cell)));
        let xs = (!all).then_some(low[0]..=high[0]).into_iter().flatten();
        let rows = xs.flat_map(move |x| (low[1]..=high[1]).map(move |y| [x, y]));
        let rows = rows.flat_map(move |[x, y]| self.cells.range([x, y, low[2]]..=[x, y, high[2]]));
        let cells = every.into_iter().flatten().chain(rows);
        cells.flat_map(|(_, entities)| entities).copied()
    }

    fn cell(&self, position: Position) -> Cell {
        // `as` saturates, and converts NaN to 0.
        position.0.map(|at| (at / self.size).floor() as i32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn serial(order: u64) -> Serial {
        let first = prescient_codec::Slot(order as u32);
        Serial { order, first }
    }

    proptest! {
        /// Fails if a cell at the edge is left out (`low[0]..high[0]`), or if `put` leaves an
        /// entity in its previous cell.
        #[test]
        fn what_is_near_is_found(
            moves in prop::collection::vec((0u64..40, [-300f64..300.0, -300f64..300.0, -20f64..20.0]), 1..120),
            center in [-300f64..300.0, -300f64..300.0, -20f64..20.0],
            radius in 0f64..400.0,
            size in 1f64..200.0,
        ) {
            let mut grid = Grid::new(size);
            let mut positions = BTreeMap::new();
            for (entity, at) in moves {
                if at[0] > 250.0 {
                    grid.put(serial(entity), None);
                    positions.remove(&entity);
                } else {
                    grid.put(serial(entity), Some(Position(at)));
                    positions.insert(entity, Position(at));
                }
            }
            let found: Vec<_> = grid.near(Position(center), radius).collect();
            for (entity, position) in &positions {
                if position.distance(Position(center)) <= radius {
                    prop_assert!(found.contains(&serial(*entity)));
                }
            }
            prop_assert!(found.iter().all(|entity| positions.contains_key(&entity.order)));
        }
    }

    #[test]
    fn nonsense_is_taken_for_something() {
        for size in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let mut grid = Grid::new(size);
            let far = Position([f64::INFINITY, f64::NAN, -1e300]);
            grid.put(serial(1), Some(far));
            assert_eq!(grid.near(far, f64::INFINITY).count(), 1);
            assert!(grid.near(far, f64::NAN).count() <= 1);
        }
    }
}
