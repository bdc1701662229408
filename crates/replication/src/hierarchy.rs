//! Parent and child entities: a turret of a vehicle, a rider of a horse.
//!
//! Children have the visibility of their root, and policies are queried about roots only. Whether
//! parent and child travel in the same packets is independent of this; a field declared as `group`
//! decides that.

use prescient_schema::EntityRef;

use crate::world::{EntityRecord, EntityTable, Serial, Touched, WorldError, WorldStep};

impl WorldStep<'_> {
    /// Makes an entity a child of another, or of none. Children of a despawned parent stay, without
    /// a parent.
    pub fn set_parent(
        &mut self,
        entity: impl Into<EntityRef>,
        parent: Option<EntityRef>,
    ) -> Result<(), WorldError> {
        let entity = entity.into();
        let child = self.find(entity)?;
        let parent = match parent {
            Some(parent) => Some(self.find(parent)?),
            None => None,
        };
        let above =
            std::iter::successors(parent, |&serial| self.entities.records.get(serial)?.parent);
        if above.into_iter().any(|serial| serial == child) {
            return Err(WorldError::HierarchyCycle(entity));
        }
        self.entities.leave_parent(child);
        if let Some(parent) = parent {
            if let Some(record) = self.entities.records.get_mut(parent) {
                record.children.push(child);
            }
            if let Some(record) = self.entities.records.get_mut(child) {
                record.parent = Some(parent);
            }
        }
        self.entities.touched.push(Touched::Here(child));
        Ok(())
    }
}

impl EntityTable {
    pub(crate) fn root(&self, serial: Serial) -> Serial {
        let above = |&serial: &Serial| self.records.get(serial)?.parent;
        let last = std::iter::successors(Some(serial), above).last();
        last.unwrap_or(serial)
    }

    /// Unlinks an entity that is being despawned from its parent and children.
    pub(crate) fn detach(&mut self, gone: &EntityRecord) {
        if let Some(parent) = gone.parent
            && let Some(parent) = self.records.get_mut(parent)
        {
            parent.children.retain(|&child| child != gone.serial);
        }
        for &child in &gone.children {
            if let Some(record) = self.records.get_mut(child) {
                record.parent = None;
            }
            self.touched.push(Touched::Here(child));
        }
    }

    fn leave_parent(&mut self, child: Serial) {
        let parent = self
            .records
            .get_mut(child)
            .and_then(|record| record.parent.take());
        if let Some(parent) = parent.and_then(|parent| self.records.get_mut(parent)) {
            parent.children.retain(|&other| other != child);
        }
    }
}
