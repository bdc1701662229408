//! Lists of ids in a packet, and spawns.

use alloc::{sync::Arc, vec::Vec};

use super::{Malformed, PRESENCE};
use crate::{
    kept::KeptRow,
    ledger::Cause,
    packet_coder::{Coder, List, PacketCoder, Topic},
    range::RangeDecoder,
};

impl<C: Coder, const N: usize> PacketCoder<'_, C, N> {
    pub(crate) fn list_item(&mut self, list: List, previous: &mut Option<u32>, id: u32) -> u32 {
        self.account = PRESENCE;
        self.more(list, true);
        let base = previous.map_or(0, |p| p + 1);
        let id = base.wrapping_add(self.gap(list, id.wrapping_sub(base) + 1) - 1);
        self.add_to_check(list, id);
        *previous = Some(id);
        id
    }

    /// Adds an id to the check, which otherwise would cover values but not whose they are.
    pub(super) fn add_to_check(&mut self, list: List, id: u32) {
        self.sum.add((list as u64) << 32 | u64::from(id));
    }

    pub(crate) fn end(&mut self, list: List) {
        self.account = PRESENCE;
        self.more(list, false);
    }

    /// The class of a spawn, predicted from the class of the spawn before it.
    pub(crate) fn class(&mut self, class: u16) -> u16 {
        let count = self.entity_states.layout.schema.classes.len() as u32;
        let before = self
            .log
            .spawns
            .last()
            .map_or(0, |&(_, class)| u32::from(class) + 1);
        let contexts = [before, 0, before, 0, 0];
        // A schema may have no classes; 0 would not be one of them.
        self.require(count > 0);
        self.symbol(Topic::Class, 0, &contexts, count, i64::from(class)) as u16
    }

    pub(crate) fn appear(
        &mut self,
        id: u32,
        class: u16,
        cause: Cause,
        truth: Option<&[i64]>,
        row: &mut Vec<i64>,
    ) -> Option<Arc<KeptRow>> {
        let earlier = self.log.references.iter().rev().find(|(c, _)| *c == class);
        let reference = match earlier {
            Some((_, row)) => Some(row.clone()),
            None => self.entity_states.classes[usize::from(class)]
                .reference
                .clone(),
        };
        self.sum.add(u64::from(id) << 16 | u64::from(class));
        self.spawn(id, class, cause, reference.as_deref(), truth, row);
        let kept = reference.as_deref().map_or(&[][..], KeptRow::contents);
        let find = |cell| self.find(cell, kept);
        let made = KeptRow::with(&self.entity_states.layout, class, row, find).map(Arc::new);
        let known = self.log.references.iter_mut().find(|(c, _)| *c == class);
        match (made, known) {
            (Some(made), Some((_, row))) => *row = made,
            (Some(made), None) => self.log.references.push((class, made)),
            (None, _) => self.invalid = true,
        }
        self.log.spawns.push((id, class));
        self.log.moved.push(id);
        self.log.covered.push(id);
        reference
    }
}

impl<const N: usize> PacketCoder<'_, RangeDecoder<'_>, N> {
    pub(super) fn next_item(
        &mut self,
        list: List,
        previous: &mut Option<u32>,
    ) -> Result<Option<u32>, Malformed> {
        self.account = PRESENCE;
        if !self.more(list, false) {
            return Ok(None);
        }
        let base = previous
            .map_or(Some(0), |p: u32| p.checked_add(1))
            .ok_or(Malformed)?;
        let id = base.checked_add(self.gap(list, 1) - 1).ok_or(Malformed)?;
        self.verify()?;
        self.add_to_check(list, id);
        *previous = Some(id);
        Ok(Some(id))
    }

    pub(super) fn verify(&self) -> Result<(), Malformed> {
        if self.invalid || self.coder.overrun() || self.is_exhausted() {
            Err(Malformed)
        } else {
            Ok(())
        }
    }
}
