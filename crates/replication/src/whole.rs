//! Objects that are parts of others: a turret of a vehicle, a rider of a horse.
//!
//! Whoever sees the whole sees its parts, in the same way; policies are asked about the whole
//! only. That a part travels in the same packets is another matter, which a field that is declared
//! as `group` decides.

use prescient_schema::EntityRef;

use crate::world::{Cast, Record, Serial, Step, Touched, WorldError};

impl Step<'_> {
    /// An object is a part of another from now on, or of nothing. When the whole is despawned, its
    /// parts stay and stand alone.
    pub fn attach(
        &mut self,
        object: EntityRef,
        whole: Option<EntityRef>,
    ) -> Result<(), WorldError> {
        let part = self.find(object)?;
        let whole = match whole {
            Some(whole) => Some(self.find(whole)?),
            None => None,
        };
        let above = std::iter::successors(whole, |&serial| self.cast.records.get(serial)?.whole);
        if above.into_iter().any(|serial| serial == part) {
            return Err(WorldError::Circle(object));
        }
        self.cast.leave(part);
        if let Some(whole) = whole {
            if let Some(record) = self.cast.records.get_mut(whole) {
                record.parts.push(part);
            }
            if let Some(record) = self.cast.records.get_mut(part) {
                record.whole = Some(whole);
            }
        }
        self.cast.touched.push(Touched::Here(part));
        Ok(())
    }
}

impl Cast {
    pub fn root(&self, serial: Serial) -> Serial {
        let above = |&serial: &Serial| self.records.get(serial)?.whole;
        let last = std::iter::successors(Some(serial), above).last();
        last.unwrap_or(serial)
    }

    /// An object that is being despawned is no longer a part of anything, nor has it parts.
    pub fn part(&mut self, gone: &Record) {
        if let Some(whole) = gone.whole
            && let Some(whole) = self.records.get_mut(whole)
        {
            whole.parts.retain(|&part| part != gone.serial);
        }
        for &part in &gone.parts {
            if let Some(record) = self.records.get_mut(part) {
                record.whole = None;
            }
            self.touched.push(Touched::Here(part));
        }
    }

    fn leave(&mut self, part: Serial) {
        let whole = self
            .records
            .get_mut(part)
            .and_then(|record| record.whole.take());
        if let Some(whole) = whole.and_then(|whole| self.records.get_mut(whole)) {
            whole.parts.retain(|&other| other != part);
        }
    }
}
