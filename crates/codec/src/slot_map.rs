//! A map from slots to values, for a few entities of a large world.
//!
//! Lookup is direct, and only pages that have an entry exist, so a client that sees little of a
//! world costs little memory.

use alloc::{boxed::Box, vec::Vec};

use crate::units::Slot;

#[derive(Clone, Debug)]
pub(crate) struct SlotMap<T> {
    pages: Vec<Option<Box<Page<T>>>>,
}

#[derive(Clone, Debug)]
struct Page<T> {
    items: [Option<T>; PAGE],
    /// The number of occupied items.
    count: u8,
}

impl<T> Default for SlotMap<T> {
    fn default() -> Self {
        Self { pages: Vec::new() }
    }
}

impl<T: Copy> SlotMap<T> {
    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> Option<T> {
        let page = self.pages.get(slot.0 as usize / PAGE)?.as_ref()?;
        page.items[slot.0 as usize % PAGE]
    }

    /// Returns the old value.
    pub(crate) fn insert(&mut self, slot: Slot, item: T) -> Option<T> {
        let at = slot.0 as usize / PAGE;
        if self.pages.len() <= at {
            self.pages.resize_with(at + 1, || None);
        }
        let page = self.pages[at].get_or_insert_with(|| {
            Box::new(Page {
                items: [None; PAGE],
                count: 0,
            })
        });
        let old = page.items[slot.0 as usize % PAGE].replace(item);
        page.count += u8::from(old.is_none());
        old
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Option<T> {
        let page_slot = self.pages.get_mut(slot.0 as usize / PAGE)?;
        let page = page_slot.as_mut()?;
        let item = page.items[slot.0 as usize % PAGE].take()?;
        page.count -= 1;
        if page.count == 0 {
            *page_slot = None;
        }
        Some(item)
    }
}

const PAGE: usize = 32;

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Fails if a page is dropped that has entries (`count` is not incremented), or is kept
        /// without any.
        #[test]
        fn it_is_a_map(acts in prop::collection::vec((any::<bool>(), 0u32..200, any::<u32>()), 0..300)) {
            let mut pages = SlotMap::default();
            let mut map = BTreeMap::new();
            for (inserts, slot, item) in acts {
                if inserts {
                    prop_assert_eq!(pages.insert(Slot(slot), item), map.insert(slot, item));
                } else {
                    prop_assert_eq!(pages.remove(Slot(slot)), map.remove(&slot));
                }
            }
            for slot in 0..300 {
                prop_assert_eq!(pages.get(Slot(slot)), map.get(&slot).copied());
            }
            for (at, page) in pages.pages.iter().enumerate() {
                let slots = (at * PAGE) as u32..((at + 1) * PAGE) as u32;
                prop_assert_eq!(page.is_some(), map.range(slots).next().is_some());
            }
        }
    }
}
