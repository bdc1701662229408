//! Reports of the entities over which a client has authority.
//!
//! They use the codec in the other direction: the reporter keeps a small world of its own with one
//! table entity per table of each such entity, and columns that identify the entity.

use std::collections::BTreeMap;

use prescient_codec::history::Archive;
use prescient_codec::{Ack, AckError, Config, Encoder, HISTORY, Slot, Tick};
use prescient_schema::{EntityRef, FieldKind, Misfit, Parcel, State};
use thiserror::Error;

use super::EntityHandle;
use super::shown_world::ShownWorld;
use crate::checked_row;

/// Why a value could not be set.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SetError {
    /// The client does not have authority over the entity, or the entity is gone.
    #[error("this client has no authority over the entity; the server has to grant it first")]
    NoAuthority,
    /// The entity has another type.
    #[error("the entity is no `{0}`")]
    WrongType(&'static str),
    /// The schemas differ; values can be reported only in the server's own schema.
    #[error("the server's schema differs; this client can read its values but not set them")]
    OtherSchema,
    /// A value does not fit its field, which is not declared `saturate`. Nothing was set.
    #[error("the value of `{field}` does not fit: {misfit} (`saturate` would change it)")]
    DoesNotFit {
        /// The field, with its type: `Tank.position[0]`.
        field: String,
        /// Why it does not fit.
        misfit: Misfit,
    },
}

prescient_schema::debug_as_display!(SetError);

pub(super) struct AuthorityReporter {
    archive: Archive,
    encoder: Encoder,
    authored: BTreeMap<EntityHandle, AuthoredEntity>,
    /// Number of entries at which those of removed entities are swept.
    sweep_at: usize,
    /// Table entities of entities over which our authority ended.
    ended: Vec<Slot>,
    /// Values that were changed to fit their fields.
    pub saturated: u64,
}

/// An entity over which we have authority.
#[derive(Default)]
struct AuthoredEntity {
    /// The value last set, by table, `None` for an optional table that it lacks; empty before that.
    latest: Vec<Option<Parcel>>,
    is_new: bool,
    /// Its table entities by table, once it was reported.
    slots: Vec<Option<Slot>>,
    /// The tick that was shown when we got authority.
    since: Tick,
}

impl AuthorityReporter {
    pub(super) fn new(shown_world: &ShownWorld, config: Config) -> Self {
        let layout = shown_world.report_layout.clone();
        Self {
            archive: Archive::new(layout.schema().clone(), HISTORY),
            encoder: Encoder::with_layout(layout, config),
            authored: BTreeMap::new(),
            sweep_at: SWEEP,
            ended: Vec::new(),
            saturated: 0,
        }
    }

    pub(super) fn set_authority(
        &mut self,
        entity: EntityHandle,
        granted: bool,
        since: Tick,
        shown_world: &ShownWorld,
    ) {
        if granted {
            self.authored.entry(entity).or_default().since = since;
            // A client that never reports would keep them all.
            if self.authored.len() > self.sweep_at {
                self.end_gone(shown_world);
                self.sweep_at = 2 * self.authored.len() + SWEEP;
            }
        } else {
            self.end(entity);
        }
    }

    pub(super) fn has_authority(&self, entity: EntityHandle) -> bool {
        self.authored.contains_key(&entity)
    }

    /// A table of the value last set for an entity: `Some(None)` if that value lacks it.
    pub(super) fn latest(&self, entity: EntityHandle, table: u8) -> Option<Option<&Parcel>> {
        let latest = self.authored.get(&entity)?.latest.get(usize::from(table))?;
        Some(latest.as_ref())
    }

    pub(super) fn set<T: State>(
        &mut self,
        entity: EntityHandle,
        value: &T,
        shown_world: &ShownWorld,
    ) -> Result<(), SetError> {
        let shown = shown_world.entry(entity).ok_or(SetError::NoAuthority)?;
        let reported_entity = self.authored.get_mut(&entity);
        let reported_entity = reported_entity.ok_or(SetError::NoAuthority)?;
        let is_of = shown_world.entity_types().find(T::NAME) == Some(shown.entity_type);
        if !is_of || shown_world.entity_types().tables(shown.entity_type).len() != T::TABLES.len() {
            return Err(SetError::WrongType(T::NAME));
        }
        let mut latest = Vec::with_capacity(T::TABLES.len());
        for (at, table) in T::TABLES.iter().enumerate() {
            if !value.has_table(table) {
                latest.push(None);
                continue;
            }
            let mut parcel = Parcel::default();
            let written = checked_row::write(value, table, &mut parcel);
            self.saturated += written.map_err(|(column, misfit)| {
                let schema = shown_world.decoder.world().schema();
                let types = shown_world.entity_types();
                let field = checked_row::column_name(schema, types, shown.entity_type, at, column);
                SetError::DoesNotFit { field, misfit }
            })?;
            latest.push(Some(parcel));
        }
        reported_entity.latest = latest;
        reported_entity.is_new = true;
        Ok(())
    }

    /// A packet with all changes, if there is anything to report.
    pub(super) fn report(
        &mut self,
        shown_world: &ShownWorld,
        budget: Option<usize>,
    ) -> Option<Vec<u8>> {
        self.end_gone(shown_world);
        let is_set = |reported_entity: &AuthoredEntity| !reported_entity.latest.is_empty();
        if !self.authored.values().any(is_set) && self.archive.living_slots().next().is_none() {
            return None;
        }
        let tick = self
            .archive
            .newest()
            .map_or(Tick(1), |tick| Tick(tick.0.saturating_add(1)));
        let mut capture = self.archive.begin(tick).ok()?;
        for slot in self.ended.drain(..) {
            let ended = capture.despawn(slot);
            debug_assert!(ended.is_ok(), "it was spawned here");
        }
        let mut new = Vec::new();
        for (entity, reported_entity) in &mut self.authored {
            let Some(shown) = shown_world
                .entry(*entity)
                .filter(|_| reported_entity.is_new)
            else {
                continue;
            };
            reported_entity.is_new = false;
            let classes = shown_world.entity_types().tables(shown.entity_type);
            reported_entity.slots.resize(classes.len(), None);
            let slots = reported_entity.slots.iter_mut();
            let tables = classes.iter().zip(&reported_entity.latest).zip(slots);
            for ((&class, latest), slot) in tables {
                let Some(parcel) = latest else {
                    if let Some(slot) = slot.take() {
                        let ended = capture.despawn(slot);
                        debug_assert!(ended.is_ok(), "it was spawned here");
                    }
                    continue;
                };
                let parcel = report_row(*entity, reported_entity.since, class, parcel, shown_world);
                // A row that does not fit its type is not reported.
                match *slot {
                    Some(slot) => drop(capture.write_parcel(slot, &parcel)),
                    None => match capture.spawn_parcel(class, &parcel) {
                        Ok(spawned) => {
                            *slot = Some(spawned);
                            new.push(spawned);
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

    pub(super) fn acknowledge(&mut self, ack: &Ack) -> Result<(), AckError> {
        self.encoder.acknowledge(ack, &self.archive)
    }

    /// Drops entities that are no longer shown.
    fn end_gone(&mut self, shown_world: &ShownWorld) {
        let gone = |entity: &&EntityHandle| shown_world.entry(**entity).is_none();
        let gone: Vec<_> = self.authored.keys().filter(gone).copied().collect();
        gone.into_iter().for_each(|entity| self.end(entity));
    }

    fn end(&mut self, entity: EntityHandle) {
        if let Some(reported_entity) = self.authored.remove(&entity) {
            self.ended
                .extend(reported_entity.slots.into_iter().flatten());
        }
    }
}

/// A row of a report: references become entity ids, and the last columns identify the entity.
fn report_row(
    entity: EntityHandle,
    since: Tick,
    class: u16,
    parcel: &Parcel,
    shown_world: &ShownWorld,
) -> Parcel {
    let mut parcel = parcel.clone();
    let fields = &shown_world.decoder.world().schema().classes[usize::from(class)].fields;
    for (cell, field) in parcel.row.iter_mut().zip(fields) {
        if matches!(field.kind, FieldKind::Reference { .. }) {
            let to = EntityRef::from_cell(*cell).and_then(EntityRef::index);
            *cell = to.map_or(0, |id| i64::from(id) + 1);
        }
    }
    parcel.row.extend([i64::from(entity.id), since.0 as i64]);
    parcel
}

/// Number of entries below which nothing is swept.
const SWEEP: usize = 64;
