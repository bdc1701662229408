//! Chooses what goes into a packet that cannot hold everything.
//!
//! Entities that are as predicted cost next to nothing and go as long as they take at most half of
//! the bytes. Of the others, those go first for which the number of packets since their last one
//! times their weight is highest. Entities of a group go together or not at all. New entities take
//! at most half of the bytes while known ones wait, so that a client can join a large world that
//! keeps changing.
//!
//! Costs are those of the full packet that turned out too large. A partial packet has to name its
//! entities, and adapts less inside, so each entity is estimated higher; by how much follows from
//! the last packets.

use alloc::{collections::BTreeMap, vec::Vec};
use core::cmp::Reverse;

use crate::{
    buffer,
    known_entities::KnownEntities,
    units::{Sequence, Tick},
};

/// The cost of each entity in a packet, in 1/65536 bit; an id is in one list only.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketCosts {
    /// The cost of the list of despawns.
    pub despawns: u64,
    pub wakes: Vec<(u32, u64)>,
    /// Active entities that differed from their prediction; in a partial packet, all it covers.
    pub active: Vec<(u32, u64)>,
    /// Active entities of a full packet that were as predicted.
    pub as_predicted: Vec<u32>,
    /// Active entities of a partial packet that were as predicted: how many, and their cost.
    pub covered_as_predicted: (u64, u64),
    pub spawns: Vec<(u32, u64)>,
}

impl PacketCosts {
    /// The number of entities whose values the packet states.
    pub(crate) fn len(&self) -> usize {
        self.wakes.len() + self.active.len() + self.as_predicted.len() + self.spawns.len()
    }

    /// The cost of all entities that have one of their own.
    pub(crate) fn total(&self) -> u64 {
        let lists = [&self.wakes, &self.active, &self.spawns];
        lists.into_iter().flatten().map(|(_, cost)| cost).sum()
    }

    /// The cost of the entities that the receiver knows.
    pub(crate) fn known(&self) -> u64 {
        let lists = [&self.wakes, &self.active];
        lists.into_iter().flatten().map(|(_, cost)| cost).sum()
    }

    pub(crate) fn clear(&mut self) {
        self.despawns = 0;
        buffer::clear(&mut self.wakes);
        buffer::clear(&mut self.active);
        buffer::clear(&mut self.as_predicted);
        self.covered_as_predicted = (0, 0);
        buffer::clear(&mut self.spawns);
    }
}

/// The ids to cover, each list ascending.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    pub wakes: Vec<u32>,
    pub active: Vec<u32>,
    pub spawns: Vec<u32>,
    /// Longest packet, in bytes.
    pub limit: usize,
    /// Chosen groups of more than one, each ascending.
    groups: Vec<Vec<u32>>,
    /// The first unit in order among the new entities, and the first among the known ones.
    next_units: Vec<Vec<u32>>,
}

impl Choice {
    /// Whether a packet that covered these ids left out a chosen one.
    pub(crate) fn is_cut(&self, covered: &[u32]) -> bool {
        let lists = [&self.wakes, &self.active, &self.spawns];
        covered.len() < lists.iter().map(|list| list.len()).sum()
    }

    /// If the packet left out one of the first units in order, because the packet states others
    /// before it, chooses only that unit, which then may exceed the limit. Returns whether it did.
    pub(crate) fn keep_next_left_out(&mut self, covered: &[u32]) -> bool {
        let left_out = |ids: &&Vec<u32>| ids.iter().any(|id| covered.binary_search(id).is_err());
        let Some(first) = self.next_units.iter().find(left_out).cloned() else {
            return false;
        };
        for list in [&mut self.wakes, &mut self.active, &mut self.spawns] {
            list.retain(|id| first.binary_search(id).is_ok());
        }
        true
    }

    /// Removes groups that a packet with this coverage split. If one of them is a first unit in
    /// order, chooses only a first unit (packets alternate between the two) and lifts the limit, as
    /// for a single entity that does not fit. Returns whether the packet has to be written again.
    pub(crate) fn drop_cut_groups(&mut self, covered: &[u32], packet: Sequence) -> bool {
        let is_cut = |ids: &[u32]| ids.iter().any(|id| covered.binary_search(id).is_err());
        let groups = core::mem::take(&mut self.groups);
        let (cut, whole): (Vec<_>, Vec<_>) = groups.into_iter().partition(|ids| is_cut(ids));
        self.groups = whole;
        let mut keep = |keep: &dyn Fn(u32) -> bool| {
            for list in [&mut self.wakes, &mut self.active, &mut self.spawns] {
                list.retain(|&id| keep(id));
            }
        };
        if cut.iter().any(|ids| self.next_units.contains(ids)) {
            let alone = &self.next_units[packet.0 as usize % self.next_units.len()];
            keep(&|id| alone.binary_search(&id).is_ok());
            self.limit = usize::MAX;
            self.groups.clear();
            return true;
        }
        keep(&|id| !cut.iter().any(|ids| ids.binary_search(&id).is_ok()));
        !cut.is_empty()
    }
}

/// Chooses by the costs of the full packet.
pub(crate) fn choose(
    packet_costs: &PacketCosts,
    known_entities: &KnownEntities,
    (newest, cursor): (Sequence, Sequence),
    limit: usize,
    surcharge: Surcharge,
    group_of: impl Fn(u32) -> Option<i64>,
    due_of: impl Fn(u32, u64, u32) -> u64,
) -> Choice {
    let age = |sent: Sequence| age(newest, sent);
    let mut known = Vec::new();
    for (list, items) in [
        (List::Wakes, &packet_costs.wakes),
        (List::Active, &packet_costs.active),
    ] {
        known.extend(items.iter().map(|&(id, cost)| {
            let (cost, age) = (surcharge.apply(cost), age(known_entities.sent[id as usize]));
            WaitingEntity {
                list,
                id,
                cost,
                age,
                due: due_of(id, cost, age),
                waiting: Tick(0),
            }
        }));
    }
    let fresh = packet_costs
        .spawns
        .iter()
        .map(|&(id, cost)| {
            // What is in flight comes after what was never sent.
            let age = match known_entities.sent[id as usize] {
                sent if sent > cursor => age(sent),
                _ => NEVER_SENT,
            };
            let weight = u64::from(known_entities.weights[id as usize].get());
            WaitingEntity {
                list: List::Spawns,
                id,
                cost: surcharge.apply(cost),
                age,
                due: match age {
                    NEVER_SENT => NEVER_SENT_DUE + weight,
                    age => u64::from(age) * weight,
                },
                waiting: known_entities.waiting.since(id),
            }
        })
        .collect();
    let mut choice = Choice {
        limit,
        ..Choice::default()
    };
    let mut groups: BTreeMap<i64, Unit> = BTreeMap::new();
    let bits = (limit as u64).saturating_sub(OVERHEAD) << 19;
    let mut as_predicted = packet_costs.as_predicted.clone();
    let mut as_predicted_cost = 0;
    if as_predicted.len() > FREE_AS_PREDICTED {
        let fit = surcharge.as_predicted_that_fit(bits / 2);
        as_predicted = most_overdue(as_predicted, fit, known_entities, newest);
        as_predicted_cost = as_predicted.len() as u64 * surcharge.as_predicted;
    }
    for id in as_predicted {
        match group_of(id) {
            None => choice.active.push(id),
            Some(group) => groups.entry(group).or_default().push(WaitingEntity {
                list: List::Active,
                id,
                cost: 0,
                age: 0,
                due: 0,
                waiting: Tick(0),
            }),
        }
    }
    let mut units = |candidates: Vec<WaitingEntity>| -> Vec<Unit> {
        let mut alone = Vec::new();
        for waiting_entity in candidates {
            match group_of(waiting_entity.id) {
                None => alone.push(Unit::from(waiting_entity)),
                Some(group) => groups.entry(group).or_default().push(waiting_entity),
            }
        }
        alone
    };
    let mut fresh = units(fresh);
    let mut known = units(known);
    for unit in groups.into_values() {
        let is_new = |member: &WaitingEntity| matches!(member.list, List::Spawns);
        let list = if unit.members.iter().all(is_new) {
            &mut fresh
        } else {
            &mut known
        };
        list.push(unit);
    }
    known.sort_by_key(Unit::turn);
    fresh.sort_by_key(Unit::turn);
    let next_units = [fresh.first(), known.first()].into_iter().flatten();
    choice.next_units = next_units.map(Unit::ids).collect();
    let bits = bits
        .saturating_sub(packet_costs.despawns)
        .saturating_sub(as_predicted_cost);
    // What is in flight is sent again only if there is room left.
    let unsent = fresh.partition_point(Unit::was_never_sent);
    let share = if known.is_empty() { bits } else { bits / 2 };
    let (unused, taken) = fill(&fresh[..unsent], share, &mut choice);
    let (left, _) = fill(&known, bits - (share - unused), &mut choice);
    if taken < fresh.len() && left > 0 {
        fill(&fresh[taken..], left, &mut choice);
    }
    choice.wakes.sort_unstable();
    choice.active.sort_unstable();
    choice.spawns.sort_unstable();
    choice
}

/// Takes units in order while they fit, and always the first. Returns the bits left and the number
/// of units taken.
fn fill(units: &[Unit], mut left: u64, choice: &mut Choice) -> (u64, usize) {
    for (index, unit) in units.iter().enumerate() {
        let cost: u64 = unit.members.iter().map(|member| member.cost).sum();
        if cost > left && index > 0 {
            return (left, index);
        }
        left = left.saturating_sub(cost);
        for member in &unit.members {
            match member.list {
                List::Wakes => choice.wakes.push(member.id),
                List::Active => choice.active.push(member.id),
                List::Spawns => choice.spawns.push(member.id),
            }
        }
        if unit.members.len() > 1 {
            choice.groups.push(unit.ids());
        }
    }
    (left, units.len())
}

/// Packets since the last one that covered an entity.
fn age(newest: Sequence, sent: Sequence) -> u32 {
    newest.0.saturating_sub(sent.0).saturating_add(1)
}

/// The `count` ids with the highest product of age and weight, ascending.
pub(crate) fn most_overdue(
    mut ids: Vec<u32>,
    count: usize,
    known_entities: &KnownEntities,
    newest: Sequence,
) -> Vec<u32> {
    if count == 0 {
        ids.clear();
    } else if count < ids.len() {
        let due = |id: u32| {
            let weight = u64::from(known_entities.weights[id as usize].get());
            u64::from(age(newest, known_entities.sent[id as usize])) * weight
        };
        ids.select_nth_unstable_by_key(count - 1, |&id| (Reverse(due(id)), id));
        ids.truncate(count);
        ids.sort_unstable();
    }
    ids
}

/// Estimates how many spawns fit into a packet, so that a packet considers no more than that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpawnCapacity {
    /// Mean cost of a spawn in the last packets, in 1/65536 bit.
    cost: u64,
}

impl Default for SpawnCapacity {
    fn default() -> Self {
        Self { cost: 16 << 16 }
    }
}

impl SpawnCapacity {
    /// Twice the number that is expected to fit: an entity too many costs less than an unused byte.
    pub(crate) fn max_entities(self, limit: usize) -> usize {
        let bits = (limit as u64) << 19;
        let fit = bits / self.cost.max(ID_COST);
        (2 * fit as usize).max(MIN_SPAWNS)
    }

    pub(crate) fn learn(&mut self, packet_costs: &PacketCosts) {
        let costs = packet_costs.spawns.iter().map(|(_, cost)| cost);
        if let Some(mean) = costs
            .sum::<u64>()
            .checked_div(packet_costs.spawns.len() as u64)
        {
            self.cost = (3 * self.cost + mean) / 4;
        }
    }
}

/// Spawns that are considered in any case.
const MIN_SPAWNS: usize = 32;
/// So many entities that are as predicted go into every packet, and their cost is neglected.
const FREE_AS_PREDICTED: usize = 1024;

/// Estimates how much more an entity costs in a partial packet than in a full one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surcharge {
    /// In 1/64.
    rate: u64,
    /// Mean cost of an entity that is as predicted in a partial packet, in 1/65536 bit.
    as_predicted: u64,
}

impl Default for Surcharge {
    fn default() -> Self {
        Self {
            rate: 80,
            as_predicted: 0,
        }
    }
}

impl Surcharge {
    fn apply(self, cost: u64) -> u64 {
        cost * self.rate / 64 + ID_COST
    }

    /// How many entities that are as predicted cost at most this much.
    fn as_predicted_that_fit(self, bits: u64) -> usize {
        let fit = bits.checked_div(self.as_predicted);
        fit.map_or(usize::MAX, |fit| fit.max(1) as usize)
    }

    /// Adapts to whether the packet was cut or had room left.
    pub(crate) fn learn(&mut self, cut: bool, packet_costs: &PacketCosts) {
        self.rate = if cut {
            (self.rate + self.rate / 8).min(512)
        } else {
            (self.rate - self.rate / 64).max(64)
        };
        let (count, cost) = packet_costs.covered_as_predicted;
        if let Some(mean) = cost.checked_div(count) {
            self.as_predicted = match self.as_predicted {
                0 => mean,
                before => (before + mean) / 2,
            };
        }
    }
}

/// Cost of stating an id, in 1/65536 bit.
const ID_COST: u64 = 4 << 16;

/// What is chosen as a whole: an entity, or the entities of a group that are to be covered.
#[derive(Clone, Debug, Default)]
struct Unit {
    members: Vec<WaitingEntity>,
}

impl Unit {
    fn push(&mut self, waiting_entity: WaitingEntity) {
        self.members.push(waiting_entity);
    }

    fn ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.members.iter().map(|member| member.id).collect();
        ids.sort_unstable();
        ids
    }

    fn turn(&self) -> Option<Turn> {
        self.members.iter().map(WaitingEntity::turn).min()
    }

    fn was_never_sent(&self) -> bool {
        self.members.iter().any(|member| member.age == NEVER_SENT)
    }
}

impl From<WaitingEntity> for Unit {
    fn from(waiting_entity: WaitingEntity) -> Self {
        let members = [waiting_entity].into();
        Self { members }
    }
}

#[derive(Clone, Copy, Debug)]
enum List {
    Wakes,
    Active,
    Spawns,
}

#[derive(Clone, Copy, Debug)]
struct WaitingEntity {
    list: List,
    id: u32,
    cost: u64,
    /// Packets since the last one that covered it, or [`NEVER_SENT`].
    age: u32,
    /// The highest goes first.
    due: u64,
    waiting: Tick,
}

impl WaitingEntity {
    fn turn(&self) -> Turn {
        (Reverse(self.due), self.waiting, self.id)
    }
}

/// The smallest comes first.
type Turn = (Reverse<u64>, Tick, u32);

/// The age of an entity that no packet has covered.
const NEVER_SENT: u32 = u32::MAX;
/// Above all products of age and weight.
const NEVER_SENT_DUE: u64 = 1 << 48;

/// Bytes of the header and the ends of the lists.
const OVERHEAD: u64 = 14;
