//! Where objects are, so that those near a place are found without asking all.

use std::collections::BTreeMap;

use prescient_schema::Class;

use crate::world::Serial;

/// A point in the world; what a type has no coordinate for is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place(pub [f64; 3]);

impl Place {
    /// Where an object with these values is, if its type has a position of up to three numbers.
    pub(crate) fn of(class: &Class, row: &[i64]) -> Option<Self> {
        let mut place = Self::default();
        if class.position.is_empty() {
            return None;
        }
        for (axis, &field) in place.0.iter_mut().zip(&class.position) {
            let unit = class.fields.get(usize::from(field))?.kind.unit()?;
            *axis = unit.value(*row.get(usize::from(field))?);
        }
        Some(place)
    }

    /// How far two places are apart.
    pub fn distance(self, other: Self) -> f64 {
        let apart = self.0.iter().zip(other.0).map(|(a, b)| (a - b) * (a - b));
        apart.sum::<f64>().sqrt()
    }
}

/// Objects by the cell they are in.
#[derive(Debug)]
pub(crate) struct Grid {
    size: f64,
    /// What is in each, in the order in which it appeared.
    cells: BTreeMap<Cell, Vec<Serial>>,
    /// Where each is, by the entity of its first table.
    homes: Vec<Option<Cell>>,
}

type Cell = [i32; 3];

impl Grid {
    /// Cells of this size; one that makes no sense is taken for 1.
    pub fn new(size: f64) -> Self {
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

    /// An object is there now, or nowhere.
    pub fn put(&mut self, object: Serial, place: Option<Place>) {
        let cell = place.map(|place| self.cell(place));
        let at = object.first.0 as usize;
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
            if let Ok(at) = inside.binary_search(&object) {
                inside.remove(at);
            }
            if inside.is_empty() {
                self.cells.remove(&old);
            }
        }
        if let Some(cell) = cell {
            let inside = self.cells.entry(cell).or_default();
            if let Err(at) = inside.binary_search(&object) {
                inside.insert(at, object);
            }
        }
    }

    /// Everything in cells that a ball touches.
    pub fn near(&self, center: Place, radius: f64) -> impl Iterator<Item = Serial> {
        let reach = Place([radius.max(0.0); 3]);
        let corner = |sign: f64| {
            let at = std::array::from_fn(|axis| center.0[axis] + sign * reach.0[axis]);
            self.cell(Place(at))
        };
        let (low, high): (Cell, Cell) = (corner(-1.0), corner(1.0));
        let span = |axis: usize| (i64::from(high[axis]) - i64::from(low[axis]) + 1) as u64;
        // Rows of cells along the last axis are contiguous, so only the first two are walked,
        // unless there are fewer cells than rows.
        let rows = span(0).saturating_mul(span(1));
        let all = rows > self.cells.len() as u64;
        let inside = move |cell: &Cell| (0..3).all(|a| (low[a]..=high[a]).contains(&cell[a]));
        let every = all.then(|| self.cells.iter().filter(move |(cell, _)| inside(cell)));
        let xs = (!all).then_some(low[0]..=high[0]).into_iter().flatten();
        let rows = xs.flat_map(move |x| (low[1]..=high[1]).map(move |y| [x, y]));
        let rows = rows.flat_map(move |[x, y]| self.cells.range([x, y, low[2]]..=[x, y, high[2]]));
        let cells = every.into_iter().flatten().chain(rows);
        cells.flat_map(|(_, objects)| objects).copied()
    }

    fn cell(&self, place: Place) -> Cell {
        // `as` saturates, and turns what is no number into 0.
        place.0.map(|at| (at / self.size).floor() as i32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn serial(number: u64) -> Serial {
        let first = prescient_codec::Slot(number as u32);
        Serial { number, first }
    }

    proptest! {
        /// Fails if a cell at the rim is left out (`low[0]..high[0]`), or if `put` leaves an object
        /// in the cell it came from.
        #[test]
        fn what_is_near_is_found(
            moves in prop::collection::vec((0u64..40, [-300f64..300.0, -300f64..300.0, -20f64..20.0]), 1..120),
            center in [-300f64..300.0, -300f64..300.0, -20f64..20.0],
            radius in 0f64..400.0,
            size in 1f64..200.0,
        ) {
            let mut grid = Grid::new(size);
            let mut places = BTreeMap::new();
            for (object, at) in moves {
                if at[0] > 250.0 {
                    grid.put(serial(object), None);
                    places.remove(&object);
                } else {
                    grid.put(serial(object), Some(Place(at)));
                    places.insert(object, Place(at));
                }
            }
            let found: Vec<_> = grid.near(Place(center), radius).collect();
            for (object, place) in &places {
                if place.distance(Place(center)) <= radius {
                    prop_assert!(found.contains(&serial(*object)));
                }
            }
            prop_assert!(found.iter().all(|object| places.contains_key(&object.number)));
        }
    }

    #[test]
    fn nonsense_is_taken_for_something() {
        for size in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let mut grid = Grid::new(size);
            let far = Place([f64::INFINITY, f64::NAN, -1e300]);
            grid.put(serial(1), Some(far));
            assert_eq!(grid.near(far, f64::INFINITY).count(), 1);
            assert!(grid.near(far, f64::NAN).count() <= 1);
        }
    }
}
