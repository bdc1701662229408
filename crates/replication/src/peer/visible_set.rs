//! How well a client sees what it is shown, by the numbers that it calls it by.
//!
//! A server holds this for every client and entity, so it has to be small. Policies know few ways
//! to see, whatever they go by, so those are kept once each, and a number holds a byte that says
//! which it is.

use std::collections::BTreeMap;

use prescient_codec::NetEntityId;

use crate::relevance::Visibility;

/// The sights of one client's numbers.
#[derive(Debug, Default)]
pub(super) struct VisibleSet {
    /// For each number [`UNSEEN`], [`RARE`], or the place of its sight among the common ones.
    marks: Vec<u8>,
    /// Ways to see, and how many numbers are seen so.
    common: Vec<(Visibility, u32)>,
    /// Sights that found no place there.
    rare: BTreeMap<u32, Visibility>,
    count: usize,
}

impl VisibleSet {
    /// How many numbers are seen.
    pub fn len(&self) -> usize {
        self.count
    }

    /// All numbers that are seen, ascending.
    pub fn ids(&self) -> impl Iterator<Item = NetEntityId> {
        let marks = (0..).zip(&self.marks);
        marks.filter_map(|(id, &mark)| (mark != UNSEEN).then_some(NetEntityId(id)))
    }

    pub fn get(&self, id: NetEntityId) -> Option<Visibility> {
        match *self.marks.get(id.0 as usize)? {
            UNSEEN => None,
            RARE => self.rare.get(&id.0).copied(),
            mark => self
                .common
                .get(usize::from(mark))
                .map(|&(visibility, _)| visibility),
        }
    }

    /// A number is seen like this from now on, or not at all.
    pub fn set(&mut self, id: NetEntityId, visibility: Option<Visibility>) {
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

    /// Finds a place for a sight.
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
        /// Fails if a sight that nobody has any more keeps its place's users (`1 -= 1` left out), or
        /// if one that is still in use is taken for another's place (`users <= 1`).
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
