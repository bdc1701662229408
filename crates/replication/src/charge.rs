//! Objects that a client is in charge of: what it reports is what everybody sees.
//!
//! The server stays the one that says who is in charge, and it relays: what a client reports of an
//! object becomes part of the next tick. References in it can only be to what the client is shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use prescient_codec::history::Archive;
use prescient_codec::{ClientId, DecodeError, Decoder, Slot, Tick};
use prescient_schema::{EntityRef, Field, Kind, Library, Parcel, Schema};

use crate::kinds::Kinds;
use crate::server::{PeerId, ServerConfig};
use crate::world::{Serial, Step, Touched, World, WorldError};

impl Step<'_> {
    /// A client is in charge of an object from now on, or nobody but the server is. It is shown
    /// the object, whatever the policy says. When it leaves, nobody is in charge.
    pub fn entrust(&mut self, object: EntityRef, author: Option<PeerId>) -> Result<(), WorldError> {
        let serial = self.find(object)?;
        let entrusted = &mut self.cast.entrusted;
        match author {
            Some(_) => entrusted.insert(serial),
            None => entrusted.remove(&serial),
        };
        if let Some(record) = self.cast.records.get_mut(serial) {
            record.author = author;
            self.cast.touched.push(Touched::Here(serial));
        }
        Ok(())
    }
}

/// The classes by which a client reports, on both ends alike: those of a world, where references
/// are numbers, and the last columns say which object it is: numbers are used again, so they have the
/// tick with it at which the client first said something of it.
pub(crate) fn reported(schema: &Schema, kinds: &Kinds) -> Schema {
    let mut schema = schema.clone();
    for (number, class) in (0..).zip(&mut schema.classes) {
        if kinds.kind(number).1 > 0 {
            class.fields.pop();
        }
        for field in &mut class.fields {
            if matches!(field.kind, Kind::Reference { .. }) {
                field.kind = NUMBER;
            }
        }
        class.contract = None;
        class.fields.push(Field::new("object", NUMBER));
        class.fields.push(Field::new("since", NUMBER));
    }
    schema
}

/// A number of an object, or one more than that.
const NUMBER: Kind = Kind::Int {
    bits: 33,
    signed: false,
};

/// What a client refers to is what it shows now; its messages come in order.
const NOW: Tick = Tick(u32::MAX);

type Find<'a> = dyn Fn(ClientId, Tick) -> Option<Slot> + 'a;

/// What one client reported.
pub(crate) struct Intake {
    decoder: Decoder,
    /// What is to become of objects in the next tick, by table.
    news: BTreeMap<(Serial, u8), Parcel>,
    /// Something arrived that was not acknowledged.
    pub unanswered: bool,
    /// The most entities that the client could ever report by: numbers that it used then are given
    /// back only once it knows that we know.
    most: usize,
}

impl Intake {
    pub fn new(world: &World, config: &ServerConfig) -> Self {
        let schema = reported(world.archive().schema(), world.kinds());
        let mut decoder = Decoder::new(Arc::new(schema), config.codec);
        decoder.set_max_bytes(config.report_memory);
        Self {
            decoder,
            news: BTreeMap::new(),
            unanswered: false,
            most: 0,
        }
    }

    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Takes a packet of a client that reports by `most` entities; `find` says which entity the client
    /// called by a number when it showed a tick.
    pub fn take(
        &mut self,
        packet: &[u8],
        most: usize,
        world: &World,
        peer: PeerId,
        find: &Find<'_>,
    ) -> Result<(), DecodeError> {
        self.unanswered = true;
        self.most = self.most.max(most);
        self.decoder.set_max_entities(self.most);
        let applied = self.decoder.decode(packet)?;
        let shown = self.decoder.world();
        let Some(changes) = shown.changes(applied.tick) else {
            return Ok(());
        };
        // Any number of entities may stand for the same table. Contents are copied for the last one.
        let slots = changes.spawned.iter().chain(&changes.changed);
        let targets =
            slots.filter_map(|&slot| Some((target(shown, slot, world, peer, find)?, slot)));
        let last: BTreeMap<(Serial, u8), Slot> = targets.collect();
        let parcels = last.into_iter();
        self.news.extend(
            parcels.filter_map(|(target, slot)| Some((target, parcel(shown, slot, world, find)?))),
        );
        Ok(())
    }

    /// How many entities the client reports.
    pub fn len(&self) -> usize {
        self.decoder.world().living_slots().count()
    }

    /// Makes what was reported part of a tick that has just begun.
    pub fn apply(&mut self, step: &mut Step<'_>) {
        for ((serial, table), parcel) in std::mem::take(&mut self.news) {
            // What does not fit its type stays as it was.
            let _ = step.set_table(serial, usize::from(table), &parcel);
        }
    }
}

/// Which object and table a reported entity stands for, if the client is in charge of it.
fn target(
    shown: &Archive,
    slot: Slot,
    world: &World,
    peer: PeerId,
    find: &Find<'_>,
) -> Option<(Serial, u8)> {
    let (kind, table) = world.kinds().kind(shown.class(slot)?);
    let &[.., id, since] = shown.latest(slot)? else {
        return None;
    };
    let id = ClientId(u32::try_from(id).ok()?);
    let slot = find(id, Tick(u32::try_from(since).ok()?))?;
    let record = world.record(world.archive().reference(slot)?)?;
    (record.author == Some(peer) && record.kind == kind).then_some((record.serial, table))
}

/// A reported row as the world has it, without the column that the world adds itself.
fn parcel(shown: &Archive, slot: Slot, world: &World, find: &Find<'_>) -> Option<Parcel> {
    let class = usize::from(shown.class(slot)?);
    let row = shown.latest(slot)?;
    let fields = &world.archive().schema().classes[class].fields;
    let mut parcel = Parcel::default();
    for (&cell, field) in row[..row.len() - 2].iter().zip(fields) {
        parcel.row.push(match field.kind {
            Kind::Reference { .. } => {
                let id = cell.checked_sub(1).and_then(|id| u32::try_from(id).ok());
                let to = id.and_then(|id| world.archive().reference(find(ClientId(id), NOW)?));
                to.unwrap_or(EntityRef::NONE).cell()
            }
            _ => cell,
        });
        if field.kind.container().is_some() && cell != 0 {
            parcel.contents.push(shown.content(cell)?.clone());
        }
    }
    Some(parcel)
}
