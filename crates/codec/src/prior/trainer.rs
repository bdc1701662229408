//! Trains a prior on a series of recordings.

use alloc::{sync::Arc, vec::Vec};

use prescient_schema::Schema;

use super::{ClassPrior, FieldPrior, PageNumber, Prior, PriorMismatch, identity, is_plain};
use crate::{
    config::{Config, Profile},
    decoder::Decoder,
    encoder::Encoder,
    model::start::TrainedPage,
    shared_model::SharedModel,
};

/// Collects the models of encoders.
///
/// Encode every recording with an encoder from [`encoder`](Self::encoder), which starts from the
/// recordings before, and then pass that encoder to [`learn`](Self::learn).
#[derive(Clone, Debug)]
pub struct Trainer {
    config: Config,
    learned: Option<Arc<Prior>>,
}

impl Trainer {
    /// A trainer for connections with this configuration. Its policy decides whether the encoders
    /// need acknowledgements.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            learned: None,
        }
    }

    /// An encoder for the next recording.
    pub fn encoder(&self, schema: Arc<Schema>) -> Result<Encoder, PriorMismatch> {
        match &self.learned {
            Some(prior) => Encoder::with_prior(schema, self.config, prior),
            None => Ok(Encoder::new(schema, self.config)),
        }
    }

    /// A decoder for the packets of [`encoder`](Self::encoder).
    pub fn decoder(&self, schema: Arc<Schema>) -> Result<Decoder, PriorMismatch> {
        match &self.learned {
            Some(prior) => Decoder::with_prior(schema, self.config, prior),
            None => Ok(Decoder::new(schema, self.config)),
        }
    }

    /// Takes over the model of an encoder. Where recordings have different kinds for a field, the
    /// last one counts.
    pub fn learn(&mut self, encoder: &Encoder) {
        let mut pages = PageList::default();
        let prior = collect(self.config.profile, encoder.shared_model(), &mut pages);
        let mut prior = Prior {
            pages: [].into(),
            ..prior
        };
        if let Some(old) = &self.learned {
            keep_older(old, &mut prior, &mut pages);
        }
        prior.pages = pages.0.into();
        self.learned = Some(Arc::new(prior.sealed()));
    }

    /// The prior, with counts so low that another match can change its probabilities soon.
    pub fn finish(self) -> Prior {
        let Some(learned) = self.learned else {
            let nothing = Encoder::new(Arc::new(Schema::default()), self.config);
            return collect(
                self.config.profile,
                nothing.shared_model(),
                &mut PageList::default(),
            )
            .sealed();
        };
        let mut prior = Prior::clone(&learned);
        prior.pages = prior
            .pages
            .iter()
            .map(|page| page.with_low_counts())
            .collect();
        prior.sealed()
    }
}

#[derive(Default)]
struct PageList(Vec<TrainedPage>);

impl PageList {
    fn add(&mut self, page: Option<TrainedPage>) -> PageNumber {
        let Some(page) = page else { return 0 };
        self.0.push(page);
        self.0.len() as PageNumber
    }
}

fn collect(profile: Profile, shared_model: &SharedModel, pages: &mut PageList) -> Prior {
    let layout = &shared_model.entity_states.layout;
    let common = pages.add(shared_model.context_model.trained_page(0));
    let classes = layout.schema.classes.iter().zip(&layout.classes);
    let classes = classes
        .zip(&shared_model.entity_states.classes)
        .map(|((class, of), state)| {
            let (surprises, parts) = state.ranking.counts();
            let fields = class.fields.iter().zip(&state.fields).enumerate();
            let fields = fields.map(|(at, (field, learned))| {
                let items = &of.items[at];
                let columns = items.first_page..items.first_page + items.shapes.len() as u32;
                let spawn_value = state.reference.as_ref().map_or(0, |row| row[at]);
                FieldPrior {
                    name: field.name.clone(),
                    kind: identity(class, field),
                    page: pages.add(
                        shared_model
                            .context_model
                            .trained_page(of.first_page + at as u32),
                    ),
                    columns: columns
                        .map(|page| pages.add(shared_model.context_model.trained_page(page)))
                        .collect(),
                    costs: learned.costs,
                    repeats: learned.repeats,
                    surprises: parts[at],
                    spawn_value: if is_plain(field) { spawn_value } else { 0 },
                }
            });
            ClassPrior {
                name: class.name.clone(),
                fields: fields.collect(),
                surprises,
                page: pages.add(shared_model.context_model.trained_page(of.own_page())),
                has_spawn: state.reference.is_some(),
            }
        });
    Prior {
        profile,
        weights: shared_model.context_model.weights().into(),
        classes: classes.collect(),
        pages: [].into(),
        common,
        fingerprint: prescient_schema::Fingerprint::of_bytes(&[]),
    }
}

/// Adds the classes and fields that only earlier recordings had.
fn keep_older(old: &Prior, prior: &mut Prior, pages: &mut PageList) {
    let mut carry = |page: PageNumber| {
        let known = page
            .checked_sub(1)
            .and_then(|at| old.pages.get(at as usize));
        pages.add(known.cloned())
    };
    let carry_field =
        |field: &FieldPrior, carry: &mut dyn FnMut(PageNumber) -> PageNumber| FieldPrior {
            page: carry(field.page),
            columns: field.columns.iter().map(|&page| carry(page)).collect(),
            ..field.clone()
        };
    for class in &old.classes {
        match prior.classes.iter_mut().find(|new| new.name == class.name) {
            Some(new) => {
                for field in &class.fields {
                    if new.fields.iter().all(|new| new.name != field.name) {
                        new.fields.push(carry_field(field, &mut carry));
                    }
                }
            }
            None => {
                let fields = class.fields.iter();
                prior.classes.push(ClassPrior {
                    page: carry(class.page),
                    fields: fields.map(|field| carry_field(field, &mut carry)).collect(),
                    ..class.clone()
                });
            }
        }
    }
}
