//! Cells, and lines of them, shared by all places that hold the same until one of them learns.
//!
//! A page that grows is several copies of what it was, most of which nobody ever touches: of a page
//! of a thousand lines some hundred are met. So a place in a page holds the number of a line, and
//! gets one of its own when it is written to.

use alloc::vec::Vec;

use super::context_model::LINE;

/// A cell is a probability in the upper 22 bits and a count in the lower 10: it moves fast while
/// it has seen little.
#[inline]
pub fn adapt(cell: u32, bit: bool) -> u32 {
    let count = cell & COUNT;
    let probability = i64::from(cell >> 10);
    let target = i64::from(u32::from(bit).wrapping_neg() >> 10);
    let step = ((target - probability) * i64::from(RATE[count as usize & 0xFF])) >> 16;
    let moved = (probability + step) as u32;
    moved << 10 | (count + u32::from(count < LIMIT))
}

/// The lines of one context model. A line is called by where its first cell is.
#[derive(Clone, Debug)]
pub struct Lines {
    cells: Vec<u32>,
    /// How many places hold each line. [`UNTAUGHT`] has more than are counted.
    users: Vec<u8>,
    /// A line that nobody holds, or [`UNTAUGHT`]; its first cell says which is the next.
    free: u32,
}

impl Lines {
    /// No lines but [`UNTAUGHT`].
    pub fn new() -> Self {
        Self {
            cells: [FRESH; LINE].into(),
            users: [MAX_USERS].into(),
            free: UNTAUGHT,
        }
    }

    #[inline(always)]
    pub fn cell(&self, at: u32) -> u32 {
        self.cells[at as usize]
    }

    /// A cell of a line that nobody shares.
    #[inline(always)]
    pub fn cell_mut(&mut self, at: u32) -> &mut u32 {
        &mut self.cells[at as usize]
    }

    /// The cells of a line.
    #[inline]
    pub fn cells(&self, line: u32) -> &[u32] {
        &self.cells[line as usize..][..LINE]
    }

    /// Whether several places hold a line.
    #[inline(always)]
    pub fn is_shared(&self, line: u32) -> bool {
        self.users[line as usize / LINE] > 1
    }

    /// A line for one place.
    pub fn add(&mut self, cells: [u32; LINE]) -> u32 {
        if self.free != UNTAUGHT {
            let line = self.free;
            self.free = self.cells[line as usize];
            self.cells[line as usize..][..LINE].copy_from_slice(&cells);
            self.users[line as usize / LINE] = 1;
            return line;
        }
        let line = self.cells.len() as u32;
        self.cells.extend_from_slice(&cells);
        self.users.push(1);
        line
    }

    /// A line for another place that holds the same.
    pub fn share(&mut self, line: u32) -> u32 {
        let users = &mut self.users[line as usize / LINE];
        if line == UNTAUGHT {
            return line;
        }
        if *users == MAX_USERS {
            return self.copy(line);
        }
        *users += 1;
        line
    }

    /// A line of its own for a place that held this one, which it is about to change.
    #[cold]
    pub fn own(&mut self, line: u32) -> u32 {
        let own = self.copy(line);
        self.leave(line);
        own
    }

    /// A place no longer holds a line.
    pub fn leave(&mut self, line: u32) {
        let users = &mut self.users[line as usize / LINE];
        if line == UNTAUGHT {
            return;
        }
        *users -= 1;
        if *users == 0 {
            self.cells[line as usize] = self.free;
            self.free = line;
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.cells[..]) + size_of_val(&self.users[..])
    }

    fn copy(&mut self, line: u32) -> u32 {
        let cells = self.cells(line);
        let cells = core::array::from_fn(|i| cells[i]);
        self.add(cells)
    }
}

/// The line that was taught nothing.
pub const UNTAUGHT: u32 = 0;
/// Places that can hold a line.
const MAX_USERS: u8 = u8::MAX;

/// A cell that was taught nothing.
pub const FRESH: u32 = 1 << 31;
/// The bits of a cell that count what it was taught.
pub const COUNT: u32 = 0x3FF;
/// It counts no further.
pub const LIMIT: u32 = 250;
static RATE: [u16; 256] = rates();

const fn rates() -> [u16; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = (65536 * 2 / (2 * i + 3)) as u16;
        i += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if `leave` frees a line that others hold (`*users <= 1`), or if `own` writes to it.
    #[test]
    fn a_line_lasts_as_long_as_somebody_holds_it() {
        let mut lines = Lines::new();
        let first = lines.add([7; LINE]);
        let mut held = alloc::vec![first];
        for _ in 0..600 {
            held.push(lines.share(first));
        }
        let own = lines.own(held.remove(1));
        *lines.cell_mut(own) = 8;
        let places: Vec<_> = held.drain(1..).collect();
        places.into_iter().for_each(|line| lines.leave(line));
        assert_eq!(lines.cells(first), [7; LINE]);
        assert!(!lines.is_shared(first) && !lines.is_shared(own));
        let before = lines.cells.len();
        let again: Vec<u32> = (0..2).map(|_| lines.add([9; LINE])).collect();
        assert_eq!(lines.cells.len(), before, "there is room that was left");
        assert!(!again.contains(&first) && !again.contains(&own));
        assert_eq!(lines.cells(UNTAUGHT), [FRESH; LINE]);
        assert!(lines.is_shared(UNTAUGHT));
    }
}
