//! By which number the receiver knows each entity that it sees.
//!
//! Asked for every entity that changed in a tick, so it has to be found at once; and a large world
//! shall cost next to nothing to who sees little of it, so only pages with somebody in them exist.

use alloc::{boxed::Box, vec::Vec};

use crate::units::Slot;

/// The numbers of visible entities, by slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    pages: Vec<Option<Box<Page>>>,
}

#[derive(Clone, Debug)]
struct Page {
    ids: [Option<u32>; PAGE],
    /// How many of them there are.
    count: u8,
}

impl Numbers {
    #[inline]
    pub fn get(&self, slot: Slot) -> Option<u32> {
        let page = self.pages.get(slot.0 as usize / PAGE)?.as_ref()?;
        page.ids[slot.0 as usize % PAGE]
    }

    pub fn insert(&mut self, slot: Slot, id: u32) {
        let at = slot.0 as usize / PAGE;
        if self.pages.len() <= at {
            self.pages.resize_with(at + 1, || None);
        }
        let page = self.pages[at].get_or_insert_with(|| {
            Box::new(Page {
                ids: [None; PAGE],
                count: 0,
            })
        });
        let old = page.ids[slot.0 as usize % PAGE].replace(id);
        page.count += u8::from(old.is_none());
    }

    pub fn remove(&mut self, slot: Slot) -> Option<u32> {
        let place = self.pages.get_mut(slot.0 as usize / PAGE)?;
        let page = place.as_mut()?;
        let id = page.ids[slot.0 as usize % PAGE].take()?;
        page.count -= 1;
        if page.count == 0 {
            *place = None;
        }
        Some(id)
    }
}

const PAGE: usize = 32;

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Fails if a page goes while somebody is in it (`count` not counted up), or stays empty.
        #[test]
        fn it_is_a_map(acts in prop::collection::vec((any::<bool>(), 0u32..200, any::<u32>()), 0..300)) {
            let mut numbers = Numbers::default();
            let mut map = BTreeMap::new();
            for (enters, slot, id) in acts {
                if enters {
                    numbers.insert(Slot(slot), id);
                    map.insert(slot, id);
                } else {
                    prop_assert_eq!(numbers.remove(Slot(slot)), map.remove(&slot));
                }
            }
            for slot in 0..300 {
                prop_assert_eq!(numbers.get(Slot(slot)), map.get(&slot).copied());
            }
            for (at, page) in numbers.pages.iter().enumerate() {
                let slots = (at * PAGE) as u32..((at + 1) * PAGE) as u32;
                prop_assert_eq!(page.is_some(), map.range(slots).next().is_some());
            }
        }
    }
}
