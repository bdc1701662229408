//! What goes into a packet that cannot hold everything.
//!
//! Entities that are as expected cost next to nothing and always go. Of the others, whoever was
//! not covered for longest goes first, so between two coverings of an entity no other one is
//! covered twice while it waits. New entities take at most half of the bytes as long as known
//! ones wait, so that a large world can be joined while it lives.

use alloc::vec::Vec;

use crate::{
    body::Bill,
    encoder::Roster,
    units::{Sequence, Tick},
};

/// Ids of what shall be covered, each list ascending.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    pub wakes: Vec<u32>,
    pub active: Vec<u32>,
    pub spawns: Vec<u32>,
}

/// Chooses from what a full packet would have cost.
pub(crate) fn choose(bill: &Bill, roster: &Roster, cursor: Sequence, limit: usize) -> Choice {
    let mut known: Vec<Candidate> = Vec::new();
    for (list, items) in [(List::Wakes, &bill.wakes), (List::Active, &bill.active)] {
        known.extend(items.iter().map(|&(id, cost)| Candidate {
            list,
            id,
            cost,
            since: roster.sent[id as usize],
            waiting: Tick(0),
        }));
    }
    let mut fresh: Vec<Candidate> = bill
        .spawns
        .iter()
        .map(|&(id, cost)| Candidate {
            list: List::Spawns,
            id,
            cost,
            // What is on its way gets its turn again only after what was never sent.
            since: match roster.sent[id as usize] {
                sent if sent > cursor => sent,
                _ => Sequence(0),
            },
            waiting: roster.waiting.get(&id).copied().unwrap_or_default(),
        })
        .collect();
    known.sort_by_key(Candidate::turn);
    fresh.sort_by_key(Candidate::turn);
    let bits = (limit as u64).saturating_sub(OVERHEAD) << 19;
    let mut choice = Choice {
        active: bill.silent.clone(),
        ..Choice::default()
    };
    let mut left = bits;
    let share = if known.is_empty() { bits } else { bits / 2 };
    let after_fresh = fill(&fresh, share, &mut choice);
    left -= share - after_fresh;
    let unused = fill(&known, left, &mut choice);
    if after_fresh < share || !known.is_empty() {
        // What known entities left over goes to new ones.
        let rest: Vec<Candidate> = fresh
            .iter()
            .filter(|candidate| !choice.spawns.contains(&candidate.id))
            .copied()
            .collect();
        fill(&rest, unused, &mut choice);
    }
    choice.wakes.sort_unstable();
    choice.active.sort_unstable();
    choice.spawns.sort_unstable();
    choice
}

/// Takes candidates in turn while they fit; always at least one. Returns what is left.
fn fill(candidates: &[Candidate], mut left: u64, choice: &mut Choice) -> u64 {
    for (index, candidate) in candidates.iter().enumerate() {
        if candidate.cost > left && index > 0 {
            break;
        }
        left = left.saturating_sub(candidate.cost);
        match candidate.list {
            List::Wakes => choice.wakes.push(candidate.id),
            List::Active => choice.active.push(candidate.id),
            List::Spawns => choice.spawns.push(candidate.id),
        }
    }
    left
}

#[derive(Clone, Copy, Debug)]
enum List {
    Wakes,
    Active,
    Spawns,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    list: List,
    id: u32,
    cost: u64,
    since: Sequence,
    waiting: Tick,
}

impl Candidate {
    fn turn(&self) -> (Sequence, Tick, u32) {
        (self.since, self.waiting, self.id)
    }
}

/// Bytes that the header and the ends of lists take.
const OVERHEAD: u64 = 14;
