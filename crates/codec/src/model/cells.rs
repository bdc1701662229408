//! Adaptive probabilities, stored in reference-counted lines.
//!
//! A cell is the probability of one decision in one context. Sixteen cells form a line, and the
//! entries of a page's line table name lines by index. A page that grows copies each entry several
//! times, and most of the copies are never written (of a thousand lines in a page about a hundred
//! are), so entries share a line until one of them is about to change.

use alloc::vec::Vec;

/// The cell after one more decision. The upper 22 bits of a cell are the probability of `true`, the
/// lower 10 count the decisions so far; the fewer they are, the larger is the step.
#[inline]
pub(super) fn adapt(cell: u32, bit: bool) -> u32 {
    let count = cell & COUNT;
    let probability = i64::from(cell >> 10);
    let target = i64::from(u32::from(bit).wrapping_neg() >> 10);
    let step = ((target - probability) * i64::from(RATE[count as usize & 0xFF])) >> 16;
    let moved = (probability + step) as u32;
    moved << 10 | (count + u32::from(count < MAX_COUNT))
}

/// The lines of one context model. A line is named by the index of its first cell.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    cells: Vec<u32>,
    /// For each line, the entries that name it. [`FRESH_LINE`] is not counted.
    reference_counts: Vec<u8>,
    /// Head of the list of free lines, [`FRESH_LINE`] if it is empty. The first cell of a free line
    /// is the next one.
    free: u32,
}

impl Lines {
    /// Only [`FRESH_LINE`].
    pub(super) fn new() -> Self {
        Self {
            cells: [FRESH; LINE].into(),
            reference_counts: [MAX_REFERENCES].into(),
            free: FRESH_LINE,
        }
    }

    #[inline(always)]
    pub(super) fn cell(&self, at: u32) -> u32 {
        self.cells[at as usize]
    }

    /// The caller has checked that the line is not shared.
    #[inline(always)]
    pub(super) fn cell_mut(&mut self, at: u32) -> &mut u32 {
        &mut self.cells[at as usize]
    }

    #[inline]
    pub(super) fn cells(&self, line: u32) -> &[u32] {
        &self.cells[line as usize..][..LINE]
    }

    #[inline(always)]
    pub(super) fn is_shared(&self, line: u32) -> bool {
        self.reference_counts[line as usize / LINE] > 1
    }

    /// Adds a line with one reference.
    pub(super) fn add(&mut self, cells: [u32; LINE]) -> u32 {
        if self.free != FRESH_LINE {
            let line = self.free;
            self.free = self.cells[line as usize];
            self.cells[line as usize..][..LINE].copy_from_slice(&cells);
            self.reference_counts[line as usize / LINE] = 1;
            return line;
        }
        let line = self.cells.len() as u32;
        self.cells.extend_from_slice(&cells);
        self.reference_counts.push(1);
        line
    }

    /// Adds a reference. Returns a copy if the line has as many as can be counted.
    pub(super) fn share(&mut self, line: u32) -> u32 {
        let count = &mut self.reference_counts[line as usize / LINE];
        if line == FRESH_LINE {
            return line;
        }
        if *count == MAX_REFERENCES {
            return self.copy(line);
        }
        *count += 1;
        line
    }

    /// Exchanges a reference to a shared line for one to a copy that may be written.
    #[cold]
    pub(super) fn make_unique(&mut self, line: u32) -> u32 {
        let unique = self.copy(line);
        self.release(line);
        unique
    }

    /// Drops a reference and frees the line with the last one.
    pub(super) fn release(&mut self, line: u32) {
        let count = &mut self.reference_counts[line as usize / LINE];
        if line == FRESH_LINE {
            return;
        }
        *count -= 1;
        if *count == 0 {
            self.cells[line as usize] = self.free;
            self.free = line;
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.cells[..]) + size_of_val(&self.reference_counts[..])
    }

    fn copy(&mut self, line: u32) -> u32 {
        let cells = self.cells(line);
        let cells = core::array::from_fn(|i| cells[i]);
        self.add(cells)
    }
}

/// Cells in a line.
pub(crate) const LINE: usize = 16;
/// The line of fresh cells, which all entries that were never written name.
pub(super) const FRESH_LINE: u32 = 0;
const MAX_REFERENCES: u8 = u8::MAX;

/// A cell that has seen no decision: probability one half, count 0.
pub(crate) const FRESH: u32 = 1 << 31;
/// The bits of a cell that count decisions.
pub(super) const COUNT: u32 = 0x3FF;
/// The count stops here, so the step never gets smaller than that of this count.
pub(super) const MAX_COUNT: u32 = 250;
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

    /// Fails if `release` frees a line that is still referenced (`*count <= 1`), or if
    /// `make_unique` returns the shared line.
    #[test]
    fn a_line_is_freed_with_its_last_reference() {
        let mut lines = Lines::new();
        let first = lines.add([7; LINE]);
        let mut held = alloc::vec![first];
        for _ in 0..600 {
            held.push(lines.share(first));
        }
        let unique = lines.make_unique(held.remove(1));
        *lines.cell_mut(unique) = 8;
        let others: Vec<_> = held.drain(1..).collect();
        others.into_iter().for_each(|line| lines.release(line));
        assert_eq!(lines.cells(first), [7; LINE]);
        assert!(!lines.is_shared(first) && !lines.is_shared(unique));
        let before = lines.cells.len();
        let again: Vec<u32> = (0..2).map(|_| lines.add([9; LINE])).collect();
        assert_eq!(lines.cells.len(), before, "freed lines are reused");
        assert!(!again.contains(&first) && !again.contains(&unique));
        assert_eq!(lines.cells(FRESH_LINE), [FRESH; LINE]);
        assert!(lines.is_shared(FRESH_LINE));
    }
}
