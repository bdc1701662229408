//! The visibility of each entity that a client sees, by entity id.
//!
//! A server holds this for every client and entity, so it must be small. Policies produce few
//! distinct [`Visibility`] values, so each value is stored once, and an id holds a byte that refers
//! to it.

use std::collections::BTreeMap;

use prescient_codec::NetEntityId;

use crate::relevance::Visibility;

#[derive(Debug, Default)]
pub(super) struct VisibleSet {
    /// For each id [`UNSEEN`], [`RARE`], or the index of its value in `common`.
    marks: Vec<u8>,
    /// Distinct values, and how many ids use each.
    common: Vec<(Visibility, u32)>,
    /// Values for which `common` has no room, by id.
    rare: BTreeMap<u32, Visibility>,
    count: usize,
}

impl VisibleSet {
    /// Number of visible ids.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// All visible ids, ascending.
    pub(super) fn ids(&self) -> impl Iterator<Item = NetEntityId> {
        let marks = (0..).zip(&self.marks);
        marks.filter_map(|(id, &mark)| (mark != UNSEEN).then_some(NetEntityId(id)))
    }

    pub(super) fn get(&self, id: NetEntityId) -> Option<Visibility> {
        match *self.marks.get(id.0 as usize)? {
            UNSEEN => None,
            RARE => self.rare.get(&id.0).copied(),
            mark => self
                .common
                .get(usize::from(mark))
                .map(|&(visibility, _)| visibility),
        }
    }

    /// Sets the visibility of an id; `None` hides it.
    pub(super) fn set(&mut self, id: NetEntityId, visibility: Option<Visibility>) {
        let at = id.0 as usize;
        if self.marks.len() <= at {
            self.marks.resize(at + 1, UNSEEN);
        }
        match self.marks[at] {
            UNSEEN => {}
            RARE => {
                self.rare.remove(&id.0);
                self.count -= 1;
            }
            mark => {
                self.common[usize::from(mark)].1 -= 1;
                self.count -= 1;
            }
        }
        self.marks[at] = match visibility {
            None => UNSEEN,
            Some(visibility) => {
                self.count += 1;
                self.mark(id, visibility)
            }
        };
    }

    /// Stores a value and returns the mark that refers to it.
    fn mark(&mut self, id: NetEntityId, visibility: Visibility) -> u8 {
        let same = self
            .common
            .iter()
            .position(|&(other, _)| other == visibility);
        let unused = || self.common.iter().position(|&(_, users)| users == 0);
        let found = same.or_else(unused).or_else(|| {
            let end = self.common.len();
            (end < usize::from(RARE)).then(|| {
                self.common.push((visibility, 0));
                end
            })
        });
        match found {
            Some(at) => {
                self.common[at] = (visibility, self.common[at].1 + 1);
                at as u8
            }
            None => {
                self.rare.insert(id.0, visibility);
                RARE
            }
        }
    }
}

const UNSEEN: u8 = u8::MAX;
const RARE: u8 = u8::MAX - 1;

#[cfg(test)]
mod tests {
    use prescient_codec::Weight;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Fails if a value that no id uses any more keeps its count (`1 -= 1` left out), or if one
        /// that is still in use is overwritten (`users <= 1`).
        #[test]
        fn it_is_a_map(
            acts in prop::collection::vec((0u32..400, prop::option::of((0usize..8, 1u8..200))), 0..2000),
        ) {
            let mut visible_set = VisibleSet::default();
            let mut map = BTreeMap::new();
            for (id, visibility) in acts {
                let visibility = visibility.map(|(table, weight)| {
                    let weight = Weight::new(weight).expect("not 0");
                    Visibility::PUBLIC.and_table(table).weighing(weight)
                });
                visible_set.set(NetEntityId(id), visibility);
                match visibility {
                    Some(visibility) => map.insert(id, visibility),
                    None => map.remove(&id),
                };
            }
            prop_assert_eq!(visible_set.len(), map.len());
            prop_assert!(visible_set.ids().map(|id| id.0).eq(map.keys().copied()));
            for id in 0..500 {
                prop_assert_eq!(visible_set.get(NetEntityId(id)), map.get(&id).copied());
            }
            prop_assert_eq!(visible_set.common.iter().map(|&(_, users)| users as usize).sum::<usize>(), map.len() - visible_set.rare.len());
        }
    }
}
