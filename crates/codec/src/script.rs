//! Finds the operations that turn one content into another.
//!
//! They start from the version that the receiver has, however many versions there were since. Only
//! the sender searches for them, so the search can change without a change of the format.

use alloc::vec::Vec;
use core::ops::Range;

/// An operation. Items between operations are unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// Replaces the item at `old` by the one at `new`.
    Change { old: usize, new: usize },
    /// Inserts the items `new` before the item at `old`.
    Insert { old: usize, new: Range<usize> },
    /// Removes the items `old`.
    Remove { old: Range<usize> },
}

impl Edit {
    /// The position in the old content.
    pub(crate) fn at(&self) -> usize {
        match self {
            Edit::Change { old, .. } | Edit::Insert { old, .. } => *old,
            Edit::Remove { old } => old.start,
        }
    }
}

/// The format of the items, and how they are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ItemFormat {
    /// Columns of an item.
    pub width: usize,
    /// Columns of its key; an item is never changed into one with another key.
    pub key: usize,
    /// Shortest run of equal items that is worth two operations.
    pub min_run: usize,
    /// Whether to change items in place. If not, they are removed and inserted.
    pub in_place: bool,
}

/// The operations from `old` to `new`, by position.
pub(crate) fn edits(old: &[i64], new: &[i64], format: ItemFormat) -> Vec<Edit> {
    let old: Vec<&[i64]> = old.chunks_exact(format.width).collect();
    let new: Vec<&[i64]> = new.chunks_exact(format.width).collect();
    let mut edits = Vec::new();
    if format.key > 0 {
        merge(&old, &new, format.key, &mut edits);
        return edits;
    }
    let both = old.len().min(new.len());
    let alike = |(a, b): (&&[i64], &&[i64])| a == b;
    let head = old.iter().zip(&new).take_while(|&pair| alike(pair)).count();
    let tails = old.iter().rev().zip(new.iter().rev());
    let tail = tails
        .take(both - head)
        .take_while(|&pair| alike(pair))
        .count();
    let (a, b) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut at = (head, head);
    for (i, j, count) in matches(a, b, format) {
        let to = (head + i, head + j);
        replace(at.0..to.0, at.1..to.1, format, &mut edits);
        at = (to.0 + count, to.1 + count);
    }
    let end = (old.len() - tail, new.len() - tail);
    replace(at.0..end.0, at.1..end.1, format, &mut edits);
    edits
}

/// Matches sorted items by key.
fn merge(old: &[&[i64]], new: &[&[i64]], key: usize, edits: &mut Vec<Edit>) {
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        let order = match (old.get(i), new.get(j)) {
            (Some(a), Some(b)) => a[..key].cmp(&b[..key]),
            (Some(_), None) => core::cmp::Ordering::Less,
            _ => core::cmp::Ordering::Greater,
        };
        match order {
            core::cmp::Ordering::Less => {
                remove(i..i + 1, edits);
                i += 1;
            }
            core::cmp::Ordering::Greater => {
                insert(i, j..j + 1, edits);
                j += 1;
            }
            core::cmp::Ordering::Equal => {
                if old[i] != new[j] {
                    edits.push(Edit::Change { old: i, new: j });
                }
                i += 1;
                j += 1;
            }
        }
    }
}

/// Replaces the items `old` by the items `new`.
fn replace(old: Range<usize>, new: Range<usize>, format: ItemFormat, edits: &mut Vec<Edit>) {
    let pairs = if format.in_place {
        old.len().min(new.len())
    } else {
        0
    };
    for pair in 0..pairs {
        edits.push(Edit::Change {
            old: old.start + pair,
            new: new.start + pair,
        });
    }
    remove(old.start + pairs..old.end, edits);
    insert(old.end, new.start + pairs..new.end, edits);
}

fn remove(old: Range<usize>, edits: &mut Vec<Edit>) {
    match edits.last_mut() {
        _ if old.is_empty() => {}
        Some(Edit::Remove { old: before }) if before.end == old.start => before.end = old.end,
        _ => edits.push(Edit::Remove { old }),
    }
}

fn insert(old: usize, new: Range<usize>, edits: &mut Vec<Edit>) {
    match edits.last_mut() {
        _ if new.is_empty() => {}
        Some(Edit::Insert {
            old: at,
            new: before,
        }) if *at == old && before.end == new.start => before.end = new.end,
        _ => edits.push(Edit::Insert { old, new }),
    }
}

/// Runs of equal items to keep, as positions in both contents and a length: either by position, or
/// those of a shortest edit script, whichever keeps more items.
fn matches(old: &[&[i64]], new: &[&[i64]], format: ItemFormat) -> Vec<(usize, usize, usize)> {
    let runs = |pairs: &[(usize, usize)]| {
        let mut runs: Vec<(usize, usize, usize)> = Vec::new();
        for &(i, j) in pairs {
            match runs.last_mut() {
                Some((a, b, count)) if *a + *count == i && *b + *count == j => *count += 1,
                _ => runs.push((i, j, 1)),
            }
        }
        runs.retain(|run| run.2 >= format.min_run);
        runs
    };
    let in_place = |at: &usize| old[*at] == new[*at];
    let both = 0..old.len().min(new.len());
    let in_place: Vec<_> = both.filter(in_place).map(|at| (at, at)).collect();
    match shortest(old, new) {
        Some(pairs) if pairs.len() > in_place.len() => runs(&pairs),
        _ => runs(&in_place),
    }
}

/// The pairs of equal items in a shortest edit script from `old` to `new` (Myers' algorithm);
/// `None` if it has more than [`MAX_EDITS`] steps.
fn shortest(old: &[&[i64]], new: &[&[i64]]) -> Option<Vec<(usize, usize)>> {
    let (n, m) = (old.len() as isize, new.len() as isize);
    let offset = MAX_EDITS as isize + 1;
    let mut reach = alloc::vec![0isize; 2 * MAX_EDITS + 3];
    let mut trace: Vec<Vec<isize>> = Vec::new();
    for d in 0..=MAX_EDITS as isize {
        for k in (-d..=d).step_by(2) {
            let at = (offset + k) as usize;
            let down = k == -d || k != d && reach[at - 1] < reach[at + 1];
            let mut x = if down {
                reach[at + 1]
            } else {
                reach[at - 1] + 1
            };
            let mut y = x - k;
            while x < n && y < m && old[x as usize] == new[y as usize] {
                (x, y) = (x + 1, y + 1);
            }
            reach[at] = x;
            if x >= n && y >= m {
                return Some(walk_back(&trace, d, n, m));
            }
        }
        let (from, to) = ((offset - d) as usize, (offset + d) as usize);
        trace.push(reach[from..=to].to_vec());
    }
    None
}

fn walk_back(trace: &[Vec<isize>], steps: isize, n: isize, m: isize) -> Vec<(usize, usize)> {
    let (mut x, mut y) = (n, m);
    let mut pairs = Vec::new();
    for d in (0..=steps).rev() {
        let (mut from_x, mut from_y) = (0, 0);
        if d > 0 {
            // The farthest points with one step fewer; diagonal `k` is at `k + d - 1`.
            let before = &trace[d as usize - 1];
            let reached = |k: isize| before.get((k + d - 1) as usize).copied().unwrap_or(-1);
            let k = x - y;
            let down = k == -d || k != d && reached(k - 1) < reached(k + 1);
            let from = if down { k + 1 } else { k - 1 };
            from_x = reached(from);
            from_y = from_x - from;
        }
        while x > from_x && y > from_y {
            (x, y) = (x - 1, y - 1);
            pairs.push((x as usize, y as usize));
        }
        (x, y) = (from_x, from_y);
    }
    pairs.reverse();
    pairs
}

/// Longest edit script that is searched for.
const MAX_EDITS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(old: &[i64], new: &[i64], width: usize, edits: &[Edit]) -> Vec<i64> {
        let mut out = Vec::new();
        let mut at = 0;
        for edit in edits {
            assert!(edit.at() >= at, "{edits:?}");
            out.extend_from_slice(&old[at * width..edit.at() * width]);
            at = edit.at();
            match edit {
                Edit::Change { new: j, .. } => {
                    out.extend_from_slice(&new[j * width..][..width]);
                    at += 1;
                }
                Edit::Insert { new: range, .. } => {
                    out.extend_from_slice(&new[range.start * width..range.end * width]);
                }
                Edit::Remove { old } => at = old.end,
            }
        }
        out.extend_from_slice(&old[at * width..]);
        out
    }

    const LIST: ItemFormat = ItemFormat {
        width: 1,
        key: 0,
        min_run: 1,
        in_place: true,
    };

    #[test]
    fn any_edits_lead_from_old_to_new() {
        let mut seed = 5u64;
        let mut random = |bound: u64| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) % bound
        };
        for case in 0..3000 {
            let width = 1 + case % 3;
            let length = random(30) as usize;
            let mut old: Vec<i64> = (0..length * width).map(|_| random(4) as i64).collect();
            let mut new = old.clone();
            for _ in 0..random(6) {
                let items = new.len() / width;
                let at = random(items as u64 + 1) as usize * width;
                let item = (0..width).map(|_| random(4) as i64).collect::<Vec<_>>();
                match random(3) {
                    0 => drop(new.splice(at..at, item)),
                    1 if at < new.len() => drop(new.drain(at..at + width)),
                    _ if at < new.len() => new[at] = random(4) as i64,
                    _ => {}
                }
            }
            if case % 7 == 0 {
                core::mem::swap(&mut old, &mut new);
            }
            for min_run in [1, 3] {
                let format = ItemFormat {
                    width,
                    min_run,
                    in_place: min_run == 1,
                    ..LIST
                };
                let edits = edits(&old, &new, format);
                assert_eq!(apply(&old, &new, width, &edits), new, "{old:?} {edits:?}");
            }
        }
    }

    #[test]
    fn operations_are_few() {
        let old: Vec<i64> = (0..200).collect();
        let mut queue = old[1..].to_vec();
        queue.push(200);
        assert_eq!(edits(&old, &queue, LIST).len(), 2);
        let mut one = old.clone();
        one[77] = 5;
        assert_eq!(edits(&old, &one, LIST), [Edit::Change { old: 77, new: 77 }]);
        let every: Vec<i64> = old.iter().map(|x| x + 1000).collect();
        assert_eq!(edits(&old, &every, LIST).len(), 200);
        let map = ItemFormat {
            width: 2,
            key: 1,
            ..LIST
        };
        let found = edits(&[1, 5, 2, 5, 4, 5], &[2, 6, 3, 5, 4, 5], map);
        assert_eq!(
            found,
            [
                Edit::Remove { old: 0..1 },
                Edit::Change { old: 1, new: 0 },
                Edit::Insert { old: 2, new: 1..2 }
            ]
        );
    }
}
