//! How well a client sees what it is shown, by the numbers that it calls it by.
//!
//! A server holds this for every client and object, so it has to be small. Policies know few ways
//! to see, whatever they go by, so those are kept once each, and a number holds a byte that says
//! which it is.

use std::collections::BTreeMap;

use prescient_codec::ClientId;

use crate::relevance::Sight;

/// The sights of one client's numbers.
#[derive(Debug, Default)]
pub(super) struct Sights {
    /// For each number [`UNSEEN`], [`RARE`], or the place of its sight among the common ones.
    marks: Vec<u8>,
    /// Ways to see, and how many numbers are seen so.
    common: Vec<(Sight, u32)>,
    /// Sights that found no place there.
    rare: BTreeMap<u32, Sight>,
    count: usize,
}

impl Sights {
    /// How many numbers are seen.
    pub fn len(&self) -> usize {
        self.count
    }

    /// All numbers that are seen, ascending.
    pub fn ids(&self) -> impl Iterator<Item = ClientId> {
        let marks = (0..).zip(&self.marks);
        marks.filter_map(|(id, &mark)| (mark != UNSEEN).then_some(ClientId(id)))
    }

    pub fn get(&self, id: ClientId) -> Option<Sight> {
        match *self.marks.get(id.0 as usize)? {
            UNSEEN => None,
            RARE => self.rare.get(&id.0).copied(),
            mark => self.common.get(usize::from(mark)).map(|&(sight, _)| sight),
        }
    }

    /// A number is seen like this from now on, or not at all.
    pub fn set(&mut self, id: ClientId, sight: Option<Sight>) {
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
        self.marks[at] = match sight {
            None => UNSEEN,
            Some(sight) => {
                self.count += 1;
                self.mark(id, sight)
            }
        };
    }

    /// Finds a place for a sight.
    fn mark(&mut self, id: ClientId, sight: Sight) -> u8 {
        let same = self.common.iter().position(|&(other, _)| other == sight);
        let unused = || self.common.iter().position(|&(_, users)| users == 0);
        let found = same.or_else(unused).or_else(|| {
            let end = self.common.len();
            (end < usize::from(RARE)).then(|| {
                self.common.push((sight, 0));
                end
            })
        });
        match found {
            Some(at) => {
                self.common[at] = (sight, self.common[at].1 + 1);
                at as u8
            }
            None => {
                self.rare.insert(id.0, sight);
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
            let mut sights = Sights::default();
            let mut map = BTreeMap::new();
            for (id, sight) in acts {
                let sight = sight.map(|(table, weight)| {
                    let weight = Weight::new(weight).expect("not 0");
                    Sight::PUBLIC.and_table(table).weighing(weight)
                });
                sights.set(ClientId(id), sight);
                match sight {
                    Some(sight) => map.insert(id, sight),
                    None => map.remove(&id),
                };
            }
            prop_assert_eq!(sights.len(), map.len());
            prop_assert!(sights.ids().map(|id| id.0).eq(map.keys().copied()));
            for id in 0..500 {
                prop_assert_eq!(sights.get(ClientId(id)), map.get(&id).copied());
            }
            prop_assert_eq!(sights.common.iter().map(|&(_, users)| users as usize).sum::<usize>(), map.len() - sights.rare.len());
        }
    }
}
