//! Models trained on recordings, as a starting point for connections.
//!
//! A prior identifies classes and fields by name and kind and not by index, so it survives a change
//! of the schema: a field that is new or has changed starts from nothing, and all others keep their
//! statistics. Connections share the pages of a prior and copy those that they use. Both ends need
//! the same prior; the check of every packet covers its fingerprint.

mod bytes;
mod trainer;

use alloc::{string::String, sync::Arc, vec::Vec};
use core::fmt;

use prescient_schema::{Class, Field, Fingerprint, Schema, Shape};

pub use bytes::PriorError;
pub use trainer::Trainer;

use crate::{
    config::Profile,
    kept::KeptRow,
    layout::Layout,
    model::{
        context_model::Weights,
        repeats::Repeats,
        start::{Start, TrainedPage},
    },
    predict::{Costs, HOLD},
    ranking::Ranking,
    shared_model::{ClassField, ClassState, Relations},
};

/// A trained starting point; see [`Trainer`].
#[derive(Clone, Debug)]
pub struct Prior {
    profile: Profile,
    weights: Arc<[Weights]>,
    pages: Arc<[TrainedPage]>,
    /// The page of decisions that belong to no field.
    common: PageNumber,
    classes: Vec<ClassPrior>,
    fingerprint: Fingerprint,
}

/// One more than an index in the pages of a prior; 0 for none.
type PageNumber = u32;

/// The statistics of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ClassPrior {
    name: String,
    page: PageNumber,
    /// Surprises of its entities.
    surprises: u32,
    fields: Vec<FieldPrior>,
    /// Whether an entity of the class was spawned.
    has_spawn: bool,
}

/// The statistics of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldPrior {
    name: String,
    kind: u64,
    page: PageNumber,
    /// Pages of the columns of a container's items.
    columns: Vec<PageNumber>,
    costs: Costs,
    repeats: Repeats,
    /// The surprises of its class in which it had a part.
    surprises: u32,
    /// The value in the last spawn.
    spawn_value: i64,
}

/// Why a connection cannot start from a prior.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PriorMismatch {
    /// It was trained for another profile. Train one for this profile.
    Profile {
        /// The profile of the prior.
        trained: Profile,
        /// The profile of the connection.
        wanted: Profile,
    },
}

impl fmt::Display for PriorMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Profile { trained, wanted } = self;
        write!(
            f,
            "the prior was trained for profile {}, but the connection has {}",
            trained.name(),
            wanted.name()
        )
    }
}

impl core::error::Error for PriorMismatch {}

impl Prior {
    /// A hash of the prior, which both ends compare when they connect.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The profile for which it was trained.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The number of fields of a schema for which it has statistics.
    pub fn known_fields(&self, schema: &Schema) -> usize {
        let known = |class: &Class| {
            let fields = class.fields.iter();
            let of = self.class(class);
            fields
                .filter(|field| known_field(of, class, field).is_some())
                .count()
        };
        schema.classes.iter().map(known).sum()
    }

    /// Resolves the prior for a schema.
    pub(crate) fn bind(
        &self,
        layout: &Layout,
        profile: Profile,
    ) -> Result<BoundPrior, PriorMismatch> {
        if profile != self.profile {
            return Err(PriorMismatch::Profile {
                trained: self.profile,
                wanted: profile,
            });
        }
        let mut pages = alloc::vec![0; layout.pages as usize];
        pages[0] = self.common;
        let mut classes = Vec::with_capacity(layout.classes.len());
        for (class, of) in layout.schema.classes.iter().zip(&layout.classes) {
            let known = self.class(class);
            pages[of.own_page() as usize] = known.map_or(0, |known| known.page);
            let mut fields = Vec::with_capacity(class.fields.len());
            let mut spawn_row = Vec::with_capacity(class.fields.len());
            let mut surprises = Vec::with_capacity(class.fields.len());
            for (at, field) in class.fields.iter().enumerate() {
                let Some(known) = known_field(known, class, field) else {
                    fields.push(ClassField::default());
                    spawn_row.push(0);
                    surprises.push(None);
                    continue;
                };
                pages[of.first_page as usize + at] = known.page;
                let columns = of.items[at].first_page as usize..;
                for (page, &column) in pages[columns].iter_mut().zip(&known.columns) {
                    *page = column;
                }
                // Costs of predictors that do not apply to the field would make one of them its
                // best.
                let costs = match of.predictors[at].0 {
                    HOLD => Costs::default(),
                    _ => known.costs,
                };
                fields.push(ClassField {
                    costs,
                    repeats: known.repeats,
                });
                let admitted = Some(known.spawn_value).filter(|&value| field.kind.admits(value));
                surprises.push(Some(known.surprises));
                spawn_row.push(admitted.filter(|_| is_plain(field)).unwrap_or(0));
            }
            let seen = known.is_some_and(|known| known.has_spawn);
            classes.push(ClassState {
                fields: fields.into(),
                ranking: Ranking::with(of, known.map_or(0, |known| known.surprises), &surprises),
                relations: Relations::default(),
                reference: seen.then(|| Arc::new(KeptRow::without_contents(spawn_row))),
            });
        }
        let [high, low] = halves(self.fingerprint);
        Ok(BoundPrior {
            check: [high, low],
            start: Arc::new(Start {
                trained: self.pages.clone(),
                pages,
                weights: self.weights.clone(),
            }),
            classes,
        })
    }

    fn class(&self, class: &Class) -> Option<&ClassPrior> {
        self.classes.iter().find(|known| known.name == class.name)
    }
}

/// A prior that is resolved for a schema: the initial model of a connection.
#[derive(Debug)]
pub(crate) struct BoundPrior {
    /// The fingerprint of the prior, for the check of packets.
    pub check: [u64; 2],
    pub start: Arc<Start>,
    pub classes: Vec<ClassState>,
}

/// The statistics of a field, if its kind has not changed.
fn known_field<'a>(
    known: Option<&'a ClassPrior>,
    class: &Class,
    field: &Field,
) -> Option<&'a FieldPrior> {
    let known = known?
        .fields
        .iter()
        .find(|known| known.name == field.name)?;
    (known.kind == identity(class, field)).then_some(known)
}

/// A hash of a field's name, its kind, and the field of which it is the rate: statistics of a field
/// with another hash are useless.
fn identity(class: &Class, field: &Field) -> u64 {
    let mut bare = Field::new(field.name.clone(), field.kind.clone());
    let mut rate_of = "";
    if let Some(mut rate) = field.derivative_of {
        let of = class.fields.get(usize::from(rate.of));
        rate_of = of.map_or("", |of| &of.name);
        rate.of = 0;
        bare.derivative_of = Some(rate);
    }
    let alone = Schema {
        classes: alloc::vec![Class::new(rate_of, alloc::vec![bare])],
    };
    halves(alone.fingerprint())[1]
}

/// Whether a value of the field means the same in every match.
fn is_plain(field: &Field) -> bool {
    !matches!(field.kind.shape(), Shape::Content | Shape::Reference)
}

fn halves(fingerprint: Fingerprint) -> [u64; 2] {
    let number = u128::from_be_bytes(fingerprint.to_be_bytes());
    [(number >> 64) as u64, number as u64]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Decoder, Encoder, HISTORY, Policy, Slot, Tick, history::Archive};
    use prescient_schema::FieldKind;

    /// A prior whose costs claim that fields move in lines which cannot. Fails with `CheckFailed`,
    /// or an encoder that finds no content, if `bind` accepts any costs.
    #[test]
    fn costs_of_predictors_that_do_not_apply_are_ignored() {
        let kinds = [
            FieldKind::Bool,
            FieldKind::Enum { values: 7 },
            FieldKind::Text { max_len: 9 },
            FieldKind::Reference { class: None },
        ];
        for (kind, seed) in kinds
            .iter()
            .flat_map(|kind| (0..20).map(move |s| (kind, s)))
        {
            let number = FieldKind::Int {
                bits: 16,
                signed: true,
            };
            let fields = [Field::new("n", number), Field::new("f", kind.clone())];
            let schema = Schema {
                classes: alloc::vec![Class::new("c", fields.into())],
            };
            let schema = Arc::new(schema);
            let mut prior = trained(&schema);
            for field in prior.classes.iter_mut().flat_map(|class| &mut class.fields) {
                field.costs = Costs([-100, -50, -50, -50]);
            }
            let prior = prior.sealed();
            let mut archive = Archive::new(schema.clone(), HISTORY);
            let config = Config::default();
            let mut encoder = Encoder::with_prior(schema.clone(), config, &prior).unwrap();
            let mut decoder = Decoder::with_prior(schema, config, &prior).unwrap();
            for tick in 1..80u32 {
                let chance = crate::packet_coder::hash(u64::from(tick) << 8 | seed);
                play(&mut archive, tick, kind, chance);
                for slot in archive.living_slots() {
                    encoder.show(slot, &archive);
                }
                let packet = encoder.encode(&archive, None).unwrap();
                let taken = decoder.decode(&packet.bytes);
                assert!(taken.is_ok(), "{kind:?}, tick {tick}: {taken:?}");
                let ack = decoder.acknowledgement().unwrap();
                encoder.acknowledge(&ack, &archive).unwrap();
                assert_eq!(encoder.statistics().resyncs, 0, "{kind:?}, tick {tick}");
            }
        }
    }

    fn trained(schema: &Arc<Schema>) -> Prior {
        let mut trainer = Trainer::new(Config::default().with_policy(Policy::Immediate));
        let mut encoder = trainer.encoder(schema.clone()).unwrap();
        let mut archive = Archive::new(schema.clone(), HISTORY);
        let kind = &schema.classes[0].fields[1].kind;
        for tick in 1..9 {
            play(&mut archive, tick, kind, tick);
            for slot in archive.living_slots() {
                encoder.show(slot, &archive);
            }
            encoder.encode(&archive, None).unwrap();
        }
        trainer.learn(&encoder);
        trainer.finish()
    }

    /// Captures a tick of two entities; the field of this kind changes now and then.
    fn play(archive: &mut Archive, tick: u32, kind: &FieldKind, chance: u32) {
        let mut capture = archive.begin(Tick(tick.into())).unwrap();
        for slot in [0, 1].map(Slot) {
            let change = i64::from(chance >> slot.0 & 7);
            let value = match kind {
                FieldKind::Text { .. } => {
                    let text = alloc::format!("{change}");
                    let content = prescient_schema::Content::Bytes(text.as_bytes().into());
                    capture.intern(content).unwrap()
                }
                FieldKind::Bool => change & 1,
                FieldKind::Enum { .. } => change % 7,
                _ => {
                    let to = capture.reference(Slot(0)).filter(|_| change < 4);
                    to.map_or(0, |to| to.cell())
                }
            };
            let row = [i64::from(tick), value];
            match capture.class(slot) {
                Some(_) => capture.write(slot, &row).unwrap(),
                None => drop(capture.spawn(0, &row).unwrap()),
            }
        }
        capture.finish();
    }
}
