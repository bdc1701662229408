//! What a client says about the objects that it is in charge of.
//!
//! The same codec as from the server, the other way: a small world of its own that holds one
//! entity per table of each such object, with a column that says which object it stands for.

use std::collections::BTreeMap;
use std::sync::Arc;

use prescient_codec::history::Archive;
use prescient_codec::{Ack, AckError, Config, Encoder, HISTORY, Slot, Tick};
use prescient_schema::{Declaration, EntityRef, Kind, Parcel, State};
use thiserror::Error;

use super::Object;
use super::scene::Scene;
use crate::charge;

/// Why an object did not become like that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SetError {
    /// The client is not in charge of it, or no longer, or it is gone.
    #[error("this client is not in charge of the object; the server has to entrust it first")]
    NotInCharge,
    /// The object is of another type.
    #[error("the object is no `{0}`")]
    WrongType(&'static str),
    /// Values can only be reported by the server's own schema.
    #[error("the server has another schema, by which this client can only read")]
    OtherSchema,
}

pub(super) struct Author {
    archive: Archive,
    encoder: Encoder,
    charges: BTreeMap<Object, Charge>,
    /// At how many charges those of objects that are gone are looked for.
    sweep_at: usize,
    /// Entities of objects that we are no longer in charge of.
    ended: Vec<Slot>,
}

/// An object that we are in charge of.
#[derive(Default)]
struct Charge {
    /// What it was last said to be like, by table; empty before that.
    latest: Vec<Parcel>,
    is_new: bool,
    /// The entities that stand for it, once something was reported.
    slots: Vec<Slot>,
    /// The tick that was shown when we became in charge of it.
    since: Tick,
}

impl Author {
    pub fn new(scene: &Scene, config: Config) -> Self {
        let schema = charge::reported(scene.decoder.world().schema(), scene.kinds());
        let schema = Arc::new(schema);
        Self {
            archive: Archive::new(schema.clone(), HISTORY),
            encoder: Encoder::new(schema, config),
            charges: BTreeMap::new(),
            sweep_at: SWEEP,
            ended: Vec::new(),
        }
    }

    pub fn charge(&mut self, object: Object, yours: bool, since: Tick, scene: &Scene) {
        if yours {
            self.charges.entry(object).or_default().since = since;
            // A client that never reports would keep them all.
            if self.charges.len() > self.sweep_at {
                self.end_gone(scene);
                self.sweep_at = 2 * self.charges.len() + SWEEP;
            }
        } else {
            self.end(object);
        }
    }

    pub fn is_in_charge(&self, object: Object) -> bool {
        self.charges.contains_key(&object)
    }

    /// What an object was last said to be like.
    pub fn latest(&self, object: Object, table: u8) -> Option<&Parcel> {
        self.charges.get(&object)?.latest.get(usize::from(table))
    }

    pub fn set<T: State>(
        &mut self,
        object: Object,
        value: &T,
        scene: &Scene,
    ) -> Result<(), SetError> {
        let shown = scene.entry(object).ok_or(SetError::NotInCharge)?;
        let charge = self.charges.get_mut(&object);
        let charge = charge.ok_or(SetError::NotInCharge)?;
        let is_of = scene.kinds().find(T::NAME) == Some(shown.kind);
        if !is_of || scene.kinds().tables(shown.kind).len() != T::TABLES.len() {
            return Err(SetError::WrongType(T::NAME));
        }
        charge.latest.resize_with(T::TABLES.len(), Parcel::default);
        for (parcel, table) in charge.latest.iter_mut().zip(T::TABLES) {
            parcel.row.clear();
            parcel.contents.clear();
            value.write(&Declaration::PLAIN, table, parcel);
        }
        charge.is_new = true;
        Ok(())
    }

    /// A packet about everything, if there is anything.
    pub fn report(&mut self, scene: &Scene, budget: Option<usize>) -> Option<Vec<u8>> {
        self.end_gone(scene);
        let is_said = |charge: &Charge| !charge.latest.is_empty();
        if !self.charges.values().any(is_said) && self.archive.living_slots().next().is_none() {
            return None;
        }
        let tick = self
            .archive
            .newest()
            .map_or(Tick(1), |tick| Tick(tick.0.wrapping_add(1)));
        let mut capture = self.archive.begin(tick).ok()?;
        for slot in self.ended.drain(..) {
            let ended = capture.despawn(slot);
            debug_assert!(ended.is_ok(), "it was spawned here");
        }
        let mut new = Vec::new();
        for (object, charge) in &mut self.charges {
            let Some(shown) = scene.entry(*object).filter(|_| charge.is_new) else {
                continue;
            };
            charge.is_new = false;
            let classes = scene.kinds().tables(shown.kind);
            for (table, (&class, parcel)) in classes.iter().zip(&charge.latest).enumerate() {
                let parcel = stand_in(*object, charge.since, class, parcel, scene);
                match charge.slots.get(table) {
                    // What does not fit its type is not reported.
                    Some(&slot) => drop(capture.write_parcel(slot, &parcel)),
                    None => match capture.spawn_parcel(class, &parcel) {
                        Ok(slot) => {
                            charge.slots.push(slot);
                            new.push(slot);
                        }
                        Err(_) => break,
                    },
                }
            }
        }
        capture.finish();
        for slot in new {
            self.encoder.show(slot, &self.archive);
        }
        let budget = budget.map(|bytes| bytes.saturating_sub(1));
        let packet = self.encoder.encode(&self.archive, budget).ok()?;
        Some(packet.bytes)
    }

    pub fn acknowledge(&mut self, ack: &Ack) -> Result<(), AckError> {
        self.encoder.acknowledge(ack, &self.archive)
    }

    /// Ends charges of objects that are no longer shown.
    fn end_gone(&mut self, scene: &Scene) {
        let gone = |object: &&Object| scene.entry(**object).is_none();
        let gone: Vec<_> = self.charges.keys().filter(gone).copied().collect();
        gone.into_iter().for_each(|object| self.end(object));
    }

    fn end(&mut self, object: Object) {
        if let Some(charge) = self.charges.remove(&object) {
            self.ended.extend(charge.slots);
        }
    }
}

/// What is reported of an object: references are numbers that the server knows, and the last columns
/// say which object it is.
fn stand_in(object: Object, since: Tick, class: u16, parcel: &Parcel, scene: &Scene) -> Parcel {
    let mut parcel = parcel.clone();
    let fields = &scene.decoder.world().schema().classes[usize::from(class)].fields;
    for (cell, field) in parcel.row.iter_mut().zip(fields) {
        if matches!(field.kind, Kind::Reference { .. }) {
            let to = EntityRef::from_cell(*cell).and_then(EntityRef::index);
            *cell = to.map_or(0, |id| i64::from(id) + 1);
        }
    }
    parcel
        .row
        .extend([i64::from(object.id), i64::from(since.0)]);
    parcel
}

/// Charges that are not worth a look.
const SWEEP: usize = 64;
