//! The joint of named data and the codec: entities of one type, as deltas from a version that the reader holds.
//!
//! A packet for players and spectators alike must not depend on what one of them has acknowledged. With versioned
//! sync ([`Producer`](crate::named::Producer)) all consumers at a floor hold the same version, and that is all that
//! is known of them; how each got there is not. So the delta depends on that version alone: both ends build an
//! encoder that has sent nothing but it, and the reader decodes with one that has received nothing but it.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use prescient_codec::history::{Archive, CaptureError};
use prescient_codec::{
    Config, DecodeError, Decoder, EncodeError, Encoder, HISTORY, Layout, NetEntityId, Policy,
    Prior, PriorMismatch, Profile, Slot, Tick, Trainer, numbers,
};
use prescient_schema::{Fingerprint, Schema, SchemaError, State};
use thiserror::Error;

/// The most entities of a set.
pub const MAX_SET_ENTITIES: usize = 4096;

/// The longest time between two versions that predictions take into account, in ticks.
const MAX_GAP: u64 = 100;

/// The entities of one type that a peer owns, by keys of the program's choice, at a tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntitySet<T> {
    /// The tick of the owner's simulation.
    pub tick: u64,
    /// The entities.
    pub entities: BTreeMap<u32, T>,
}

impl<T> Default for EntitySet<T> {
    fn default() -> Self {
        Self {
            tick: 0,
            entities: BTreeMap::new(),
        }
    }
}

/// Why a set was not encoded or decoded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EntitySetError {
    /// It has more than [`MAX_SET_ENTITIES`] entities.
    #[error("a set has at most {MAX_SET_ENTITIES} entities")]
    TooLarge,
    /// An entity's value cannot be captured: it contains a container or a reference.
    #[error("a value cannot be captured: {0}")]
    Capture(CaptureError),
    /// The set cannot be encoded.
    #[error("the set cannot be encoded: {0}")]
    Encode(EncodeError),
    /// The bytes are not a set, or not a delta from this base.
    #[error("the bytes cannot be decoded: {0}")]
    Decode(DecodeError),
    /// The bytes are not a set.
    #[error("the bytes are malformed")]
    Malformed,
}

/// Encodes sets of entities, whole or as deltas. Both ends need the same type and the same prior.
///
/// ```
/// use prescient::{EntitySet, EntitySetCodec, State};
///
/// #[derive(State, Clone, Debug, PartialEq)]
/// #[state(tick_hz = 30)]
/// struct Ship {
///     #[state(step = 0.01, position)]
///     position: [f32; 2],
///     #[state(step = 0.01, velocity_of = "position")]
///     velocity: [f32; 2],
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let codec = EntitySetCodec::<Ship>::new()?;
/// let ship = |x| Ship { position: [x, 5.0], velocity: [30.0, 0.0] };
/// let held = EntitySet { tick: 100, entities: [(7, ship(1.0))].into() };
/// let newest = EntitySet { tick: 110, entities: [(7, ship(11.0)), (8, ship(0.0))].into() };
///
/// let delta = codec.encode(Some(&held), &newest)?;
/// assert_eq!(codec.decode(Some(&held), &delta)?, newest);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct EntitySetCodec<T> {
    layout: Arc<Layout>,
    fingerprint: Fingerprint,
    prior: Option<Fingerprint>,
    kind: PhantomData<fn() -> T>,
}

impl<T: State + Clone> EntitySetCodec<T> {
    /// A codec for a type without containers and references.
    pub fn new() -> Result<Self, SchemaError> {
        let schema = Arc::new(Schema::of::<T>()?);
        Ok(Self {
            fingerprint: schema.fingerprint(),
            layout: Arc::new(Layout::new(schema)),
            prior: None,
            kind: PhantomData,
        })
    }

    /// Starts every packet from a trained prior. All peers need the same one; it is part of the
    /// [`fingerprint`](Self::fingerprint).
    pub fn with_prior(mut self, prior: &Prior) -> Result<Self, PriorMismatch> {
        let schema = self.layout.schema().clone();
        self.layout = Arc::new(Layout::with_prior(schema, prior, Profile::Default)?);
        self.prior = Some(prior.fingerprint());
        Ok(self)
    }

    /// Trains a prior from a recording of sets, ascending by their ticks. The same recording yields the same prior
    /// on every machine.
    pub fn train(recording: &[EntitySet<T>]) -> Result<Prior, EntitySetError> {
        let config = CONFIG.with_policy(Policy::Immediate);
        let mut trainer = Trainer::new(config);
        let schema = Schema::of::<T>().map_err(|_| EntitySetError::Malformed)?;
        let schema = Arc::new(schema);
        let encoder = trainer.encoder(schema.clone());
        let mut sender = Sender {
            archive: Archive::new(schema, HISTORY),
            encoder: encoder.map_err(|_| EntitySetError::Malformed)?,
            ids: BTreeMap::new(),
        };
        let mut tick = BASE_TICK;
        let mut before: Option<&EntitySet<T>> = None;
        for set in recording {
            let gap = tick_after(before, set.tick).since(BASE_TICK);
            tick = Tick(tick.0 + gap);
            sender.send(tick, set)?;
            before = Some(set);
        }
        trainer.learn(&sender.encoder);
        Ok(trainer.finish())
    }

    /// What peers must have in common, for the [`Profile`](crate::named::Profile) that discovery pins.
    pub fn fingerprint(&self) -> Fingerprint {
        match self.prior {
            None => self.fingerprint,
            Some(prior) => {
                let both = [self.fingerprint.to_be_bytes(), prior.to_be_bytes()].concat();
                Fingerprint::of_bytes(&both)
            }
        }
    }

    /// Encodes a set, as a delta if there is a base.
    pub fn encode(
        &self,
        base: Option<&EntitySet<T>>,
        set: &EntitySet<T>,
    ) -> Result<Vec<u8>, EntitySetError> {
        let mut bytes = Vec::new();
        let tick = base.map_or(0, |base| base.tick);
        numbers::put(&mut bytes, set.tick.wrapping_sub(tick));
        let mut sender = Sender::new(self.layout.clone());
        if let Some(base) = base {
            sender.send(BASE_TICK, base)?;
            sender.encoder.make_base(&sender.archive);
        }
        let known: Vec<NetEntityId> = sender.ids.values().map(|&(_, id)| id).collect();
        let packet = sender.send(tick_after(base, set.tick), set)?;
        // The reader finds entities by their ids; the keys of new ones follow in the order of ids.
        let mut new: Vec<(NetEntityId, u32)> = sender
            .ids
            .iter()
            .filter(|(_, (_, id))| !known.contains(id))
            .map(|(&key, &(_, id))| (id, key))
            .collect();
        new.sort_unstable();
        numbers::put(&mut bytes, new.len() as u64);
        for (_, key) in new {
            numbers::put(&mut bytes, key.into());
        }
        bytes.extend_from_slice(&packet);
        Ok(bytes)
    }

    /// Decodes what [`encode`](Self::encode) returned for the same base.
    pub fn decode(
        &self,
        base: Option<&EntitySet<T>>,
        bytes: &[u8],
    ) -> Result<EntitySet<T>, EntitySetError> {
        let mut rest = bytes;
        let mut number = || numbers::take(&mut rest).ok_or(EntitySetError::Malformed);
        let tick = number()?.wrapping_add(base.map_or(0, |base| base.tick));
        let count = number()?;
        if count > MAX_SET_ENTITIES as u64 {
            return Err(EntitySetError::TooLarge);
        }
        let mut new = Vec::new();
        for _ in 0..count {
            let key = u32::try_from(number()?);
            new.push(key.map_err(|_| EntitySetError::Malformed)?);
        }
        let mut decoder = Decoder::with_layout(self.layout.clone(), CONFIG);
        let mut keys = BTreeMap::new();
        if let Some(base) = base {
            let mut sender = Sender::new(self.layout.clone());
            let packet = sender.send(BASE_TICK, base)?;
            let applied = decoder.decode(&packet);
            applied.map_err(EntitySetError::Decode)?;
            let ids = sender.ids.iter();
            keys.extend(ids.map(|(&key, &(_, id))| (id, key)));
        }
        let applied = decoder.decode(rest);
        applied.map_err(EntitySetError::Decode)?;
        let mut new = new.into_iter();
        let mut set = EntitySet {
            tick,
            entities: BTreeMap::new(),
        };
        for slot in decoder.world().living_slots() {
            let id = NetEntityId(slot.0);
            let key = keys.get(&id).copied().or_else(|| new.next());
            let key = key.ok_or(EntitySetError::Malformed)?;
            let row = decoder.row(id).ok_or(EntitySetError::Malformed)?;
            let entity = T::from_row(T::TABLES[0], row);
            let entity = entity.map_err(|_| EntitySetError::Malformed)?;
            if set.entities.insert(key, entity).is_some() {
                return Err(EntitySetError::Malformed);
            }
        }
        match new.next() {
            None => Ok(set),
            Some(_) => Err(EntitySetError::Malformed),
        }
    }
}

/// The tick of a base in the codec; packets are coded by differences of ticks.
const BASE_TICK: Tick = Tick(1);

const CONFIG: Config = Config::new()
    .with_policy(Policy::Stateless)
    .with_max_entities(MAX_SET_ENTITIES);

/// The tick of a set in the codec.
fn tick_after<T>(base: Option<&EntitySet<T>>, tick: u64) -> Tick {
    let gap = base.map_or(0, |base| tick.saturating_sub(base.tick).clamp(1, MAX_GAP));
    (0..gap).fold(BASE_TICK, |tick, _| Tick(tick.0 + 1))
}

/// An encoder that has sent at most one set.
struct Sender {
    archive: Archive,
    encoder: Encoder,
    /// Slot and id of each entity, by its key.
    ids: BTreeMap<u32, (Slot, NetEntityId)>,
}

impl Sender {
    fn new(layout: Arc<Layout>) -> Self {
        Self {
            archive: Archive::new(layout.schema().clone(), HISTORY),
            encoder: Encoder::with_layout(layout, CONFIG),
            ids: BTreeMap::new(),
        }
    }

    fn send<T: State>(
        &mut self,
        tick: Tick,
        set: &EntitySet<T>,
    ) -> Result<Vec<u8>, EntitySetError> {
        if set.entities.len() > MAX_SET_ENTITIES {
            return Err(EntitySetError::TooLarge);
        }
        let mut capture = self.archive.begin(tick).map_err(EntitySetError::Capture)?;
        let mut new = Vec::new();
        self.ids.retain(|key, (slot, _)| {
            let is_kept = set.entities.contains_key(key);
            // It fails for slots that are gone already.
            let _ = is_kept || capture.despawn(*slot).is_ok();
            is_kept
        });
        for (&key, entity) in &set.entities {
            let row = entity.to_row(T::TABLES[0]);
            match self.ids.get(&key) {
                Some((slot, _)) => {
                    let written = capture.write(*slot, &row);
                    written.map_err(EntitySetError::Capture)?;
                }
                None => {
                    let slot = capture.spawn(0, &row).map_err(EntitySetError::Capture)?;
                    new.push((key, slot));
                }
            }
        }
        capture.finish();
        for (key, slot) in new {
            let id = self.encoder.show(slot, &self.archive);
            let id = id.ok_or(EntitySetError::Malformed)?;
            self.ids.insert(key, (slot, id));
        }
        let packet = self.encoder.encode(&self.archive, None);
        Ok(packet.map_err(EntitySetError::Encode)?.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(State, Clone, Debug, PartialEq)]
    #[state(tick_hz = 30)]
    struct Ship {
        #[state(step = 0.01, position)]
        position: [f32; 2],
        #[state(step = 0.01, velocity_of = "position")]
        velocity: [f32; 2],
        health: u8,
    }

    fn ship(x: f32) -> Ship {
        Ship {
            position: [x, 5.0],
            velocity: [30.0, 0.0],
            health: 9,
        }
    }

    fn set(tick: u64, ships: &[(u32, f32)]) -> EntitySet<Ship> {
        let ships = ships.iter().map(|&(key, x)| (key, ship(x)));
        EntitySet {
            tick,
            entities: ships.collect(),
        }
    }

    /// Fails if the delta depends on more than the base (for example, if `Sender` sends an older set first), or if
    /// the keys of new entities are written in another order than that of their ids.
    #[test]
    fn a_delta_needs_nothing_but_its_base() {
        let codec = EntitySetCodec::<Ship>::new().expect("a sound type");
        let held = set(100, &[(3, 1.0), (900, 7.0), (40, 2.0)]);
        let newest = set(103, &[(900, 10.0), (40, 5.0), (1, 0.0), (70_000, 3.0)]);
        let delta = codec.encode(Some(&held), &newest).expect("encoded");
        assert_eq!(codec.decode(Some(&held), &delta).as_ref(), Ok(&newest));
        let whole = codec.encode(None, &newest).expect("encoded");
        assert_eq!(codec.decode(None, &whole).as_ref(), Ok(&newest));
        let empty = set(104, &[]);
        let delta = codec.encode(Some(&newest), &empty).expect("encoded");
        assert_eq!(codec.decode(Some(&newest), &delta), Ok(empty));
        // Further back than the codec's history.
        let late = set(10_000_000, &[(3, 5.0)]);
        let delta = codec.encode(Some(&held), &late).expect("encoded");
        assert_eq!(codec.decode(Some(&held), &delta), Ok(late));
    }

    /// Fails if ticks of the codec do not follow those of the sets (`BASE_TICK` + 1 always): the extrapolated
    /// position would be a surprise. Fails if `with_prior` does not use the prior.
    #[test]
    fn what_moves_as_before_costs_next_to_nothing_with_a_prior() {
        let recording: Vec<EntitySet<Ship>> = (0..300)
            .map(|tick| {
                let mut set = set(tick * 3, &[(3, tick as f32 * 3.0)]);
                let turns = (tick / 20 % 2) as f32;
                for ship in set.entities.values_mut() {
                    ship.velocity[1] = 10.0 * turns;
                    ship.position[1] = 5.0 + turns * (tick % 20) as f32;
                }
                set
            })
            .collect();
        let prior = EntitySetCodec::train(&recording).expect("trained");
        let plain = EntitySetCodec::<Ship>::new().expect("a sound type");
        let codec = plain.clone().with_prior(&prior).expect("the same type");
        assert_ne!(codec.fingerprint(), plain.fingerprint());
        let held = set(100, &[(3, 1.0)]);
        let newest = set(112, &[(3, 13.0)]);
        let as_before = codec.encode(Some(&held), &newest).expect("encoded");
        assert_eq!(codec.decode(Some(&held), &as_before).as_ref(), Ok(&newest));
        let held_only = plain.encode(Some(&held), &newest).expect("encoded");
        assert!(as_before.len() <= 12, "{} bytes", as_before.len());
        assert!(as_before.len() < held_only.len(), "{}", held_only.len());
    }

    /// Fails if a key is accepted twice, if trailing numbers are accepted, or if anything panics.
    #[test]
    fn damaged_sets_and_other_bases_are_refused() {
        let codec = EntitySetCodec::<Ship>::new().expect("a sound type");
        let held = set(100, &[(3, 1.0)]);
        let newest = set(101, &[(3, 2.0), (4, 1.0)]);
        let delta = codec.encode(Some(&held), &newest).expect("encoded");
        let mut seed = 1_u64;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mut damaged = delta.clone();
            let place = (seed >> 33) as usize % damaged.len();
            damaged[place] ^= 1 << (seed >> 60 & 7);
            damaged.truncate(damaged.len() - (seed >> 50) as usize % 3);
            let _ = codec.decode(Some(&held), &damaged);
        }
        assert!(codec.decode(None, &delta).is_err());
        assert!(codec.decode(Some(&set(100, &[])), &delta).is_err());
        let mut twice = delta.clone();
        assert_eq!(twice[..3], [1, 1, 4]);
        twice[2] = 3;
        assert_eq!(
            codec.decode(Some(&held), &twice),
            Err(EntitySetError::Malformed)
        );
    }
}
