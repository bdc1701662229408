//! Snapshots of a world, and the changes of the visible set between two of them.

use std::sync::Arc;

use prescient_schema::Schema;

use super::bytes::{Input, unzigzag, write_varint, zigzag};
use crate::{harness::ReceiveError, world::World};

/// All entities of one tick by ascending id; rows are shared with other ticks.
pub(super) type Snapshot = Arc<Vec<Item>>;

/// One entity of a snapshot.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) id: u64,
    pub(super) class: u16,
    pub(super) row: Arc<[i64]>,
}

pub(super) fn snapshot(world: &World) -> Snapshot {
    let items = world.iter().map(|(id, entity)| Item {
        id,
        class: entity.class,
        row: entity.row.clone(),
    });
    Arc::new(items.collect())
}

/// The entities that left and entered the visible set since a baseline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SetChange {
    /// Ranks in the baseline of those that left, ascending.
    pub(super) left: Vec<usize>,
    /// Ids and classes of those that entered, by ascending id.
    pub(super) came: Vec<(u64, u16)>,
}

/// One entity of the new snapshot and its rank in the baseline, if it was there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) id: u64,
    pub(super) class: u16,
    pub(super) base: Option<usize>,
}

impl SetChange {
    pub(super) fn between(base: &[Item], current: &[Item]) -> Self {
        let mut change = Self::default();
        let mut rank = 0;
        for item in current {
            while rank < base.len() && base[rank].id < item.id {
                change.left.push(rank);
                rank += 1;
            }
            match base.get(rank) {
                Some(old) if old.id == item.id && old.class == item.class => rank += 1,
                Some(old) if old.id == item.id => {
                    change.left.push(rank);
                    change.came.push((item.id, item.class));
                    rank += 1;
                }
                _ => change.came.push((item.id, item.class)),
            }
        }
        change.left.extend(rank..base.len());
        change
    }

    /// The entities of the new snapshot by ascending id.
    pub(super) fn members(&self, base: &[Item]) -> Vec<Member> {
        let mut members = Vec::with_capacity(base.len() + self.came.len() - self.left.len());
        let mut left = self.left.iter().copied().peekable();
        let mut came = self.came.iter().copied().peekable();
        for (rank, item) in base.iter().enumerate() {
            while let Some((id, class)) = came.next_if(|&(id, _)| id <= item.id) {
                members.push(Member {
                    id,
                    class,
                    base: None,
                });
            }
            if left.next_if_eq(&rank).is_none() {
                members.push(Member {
                    id: item.id,
                    class: item.class,
                    base: Some(rank),
                });
            }
        }
        members.extend(came.map(|(id, class)| Member {
            id,
            class,
            base: None,
        }));
        members
    }

    pub(super) fn write(&self, base: &[Item], output: &mut Vec<u8>) {
        write_varint(output, self.left.len() as u64);
        let mut next = 0;
        for &rank in &self.left {
            write_varint(output, (rank - next) as u64);
            next = rank + 1;
        }
        write_varint(output, self.came.len() as u64);
        let mut previous = base.last().map_or(0, |item| item.id);
        for &(id, class) in &self.came {
            write_varint(output, zigzag(id.wrapping_sub(previous) as i64));
            write_varint(output, u64::from(class));
            previous = id;
        }
    }

    pub(super) fn read(
        schema: &Schema,
        base: &[Item],
        input: &mut Input,
    ) -> Result<Self, ReceiveError> {
        let mut change = Self::default();
        let mut next = 0;
        for _ in 0..input.count()? {
            let gap = usize::try_from(input.varint()?).unwrap_or(usize::MAX);
            next = change.leave(next, gap, base)?;
        }
        let mut previous = base.last().map_or(0, |item| item.id);
        for _ in 0..input.count()? {
            previous = previous.wrapping_add(unzigzag(input.varint()?) as u64);
            change.come(previous, input.varint()?, schema)?;
        }
        change.check(base)?;
        Ok(change)
    }

    /// Records that the entity `gap` ranks after `next` left, and returns the rank after it.
    pub(super) fn leave(
        &mut self,
        next: usize,
        gap: usize,
        base: &[Item],
    ) -> Result<usize, ReceiveError> {
        let rank = next.checked_add(gap).filter(|&rank| rank < base.len());
        let rank = rank.ok_or(ReceiveError::Malformed("an unknown entity leaves"))?;
        self.left.push(rank);
        Ok(rank + 1)
    }

    /// Records that an entity entered.
    pub(super) fn come(
        &mut self,
        id: u64,
        class: u64,
        schema: &Schema,
    ) -> Result<(), ReceiveError> {
        if class >= schema.classes.len() as u64 {
            return Err(ReceiveError::Malformed("unknown class"));
        }
        if self.came.last().is_some_and(|&(last, _)| last >= id) {
            return Err(ReceiveError::Malformed("new entities are out of order"));
        }
        self.came.push((id, class as u16));
        Ok(())
    }

    /// Refuses an entity that enters although it is in the baseline.
    pub(super) fn check(&self, base: &[Item]) -> Result<(), ReceiveError> {
        let stays = |&(id, _): &(u64, u16)| {
            base.binary_search_by_key(&id, |item| item.id)
                .is_ok_and(|rank| self.left.binary_search(&rank).is_err())
        };
        if self.came.iter().any(stays) {
            return Err(ReceiveError::Malformed("a known entity enters again"));
        }
        Ok(())
    }
}
