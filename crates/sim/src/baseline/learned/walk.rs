//! One pass over a tick's entities and fields, for both ends.
//!
//! Sender and receiver must predict, choose and learn in exactly the same order. They therefore run
//! the same code: a [`Coder`] that writes returns the number it was given, one that reads returns
//! the number it decodes.

use std::sync::Arc;

use prescient_schema::Schema;

use super::{
    super::snapshot::{Item, Member, SetChange, Snapshot},
    distribution::Distribution,
    ledger::Ledger,
    model::{FieldModel, Model, NumberModel, PREDICTORS},
    polynomial::Polynomial,
    transitions::Transitions,
};
use crate::harness::ReceiveError;

/// Writes or reads numbers and states with a model.
pub(super) trait Coder {
    /// Codes a number by its distribution.
    fn number(&mut self, errors: &Distribution, number: i64) -> Result<i64, ReceiveError>;

    /// Codes a state after a previous one.
    fn state(
        &mut self,
        transitions: &Transitions,
        from: Option<u32>,
        to: u32,
    ) -> Result<u32, ReceiveError>;

    /// Bits spent so far, if they are counted.
    fn spent(&self) -> f64 {
        0.0
    }
}

/// Larger numbers of entities are refused.
const MAX_ENTITIES: i64 = 1 << 22;

/// The common state of both ends before the packet.
pub(super) struct Walk<'a> {
    pub(super) schema: &'a Schema,
    /// Past snapshots with their age in ticks, newest first.
    pub(super) samples: &'a [(u64, &'a Snapshot)],
    pub(super) learning: bool,
}

impl Walk<'_> {
    /// Codes a tick and updates `model`. The sender passes the snapshot; the receiver passes `None`
    /// and gets it back.
    pub(super) fn run(
        &self,
        model: &mut Model,
        coder: &mut impl Coder,
        truth: Option<&Snapshot>,
        mut ledger: Option<&mut Ledger>,
    ) -> Result<Vec<Item>, ReceiveError> {
        let base = self
            .samples
            .first()
            .map_or(&[][..], |(_, snapshot)| snapshot);
        let change = truth.map(|truth| SetChange::between(base, truth));
        let change = self.set_change(model, coder, base, change)?;
        let members = change.members(base);
        if let Some(ledger) = &mut ledger {
            ledger.set += coder.spent();
        }

        let polynomials = self.polynomials();
        let mut chosen = vec![false; self.schema.classes.len()];
        let mut cursors = [0; PREDICTORS - 1];
        let mut items = Vec::with_capacity(members.len());
        for (index, member) in members.iter().enumerate() {
            let class = usize::from(member.class);
            let class_model = Arc::make_mut(&mut model.classes[class]);
            if !std::mem::replace(&mut chosen[class], true) && self.learning {
                class_model.choose();
            }
            let rows = self.rows_of(member, &mut cursors[..polynomials.len()]);
            let truth = truth.map(|truth| &truth[index].row);
            let mut row = Vec::with_capacity(class_model.fields.len());
            for (field, field_model) in class_model.fields.iter_mut().enumerate() {
                let before = ledger.as_ref().map_or(0.0, |_| coder.spent());
                let true_value = truth.map(|row| row[field]);
                row.push(match field_model {
                    FieldModel::Number(number) => {
                        let mut samples = [0; PREDICTORS - 1];
                        for (sample, row) in samples.iter_mut().zip(&rows) {
                            *sample = row[field];
                        }
                        let samples = &samples[..rows.len()];
                        self.number(number, samples, &polynomials, coder, true_value)?
                    }
                    FieldModel::Symbol(transitions) => {
                        let from = rows.first().map(|row| row[field] as u32);
                        self.state(transitions, from, coder, true_value)?
                    }
                });
                if let Some(ledger) = &mut ledger {
                    ledger.charge(class, field, !rows.is_empty(), coder.spent() - before);
                }
            }
            let row = match rows.first() {
                Some(&known) if known[..] == row[..] => Arc::clone(known),
                _ => row.into(),
            };
            items.push(Item {
                id: member.id,
                class: member.class,
                row,
            });
        }
        model.taught += u64::from(self.learning);
        Ok(items)
    }

    /// The rows of an entity in the newest samples, back to its first gap. Entities are visited by
    /// ascending id, so every cursor only moves forward.
    fn rows_of(&self, member: &Member, cursors: &mut [usize]) -> Vec<&Arc<[i64]>> {
        let mut rows = Vec::with_capacity(PREDICTORS - 1);
        if member.base.is_none() {
            return rows;
        }
        for (cursor, (_, snapshot)) in cursors.iter_mut().zip(self.samples) {
            while snapshot
                .get(*cursor)
                .is_some_and(|item| item.id < member.id)
            {
                *cursor += 1;
            }
            match snapshot.get(*cursor) {
                Some(item) if item.id == member.id && item.class == member.class => {
                    rows.push(&item.row);
                }
                _ => break,
            }
        }
        rows
    }

    fn number(
        &self,
        model: &mut NumberModel,
        samples: &[i64],
        polynomials: &[Polynomial],
        coder: &mut impl Coder,
        truth: Option<i64>,
    ) -> Result<i64, ReceiveError> {
        let mut predictions = [0; PREDICTORS];
        if samples.windows(2).all(|pair| pair[0] == pair[1]) {
            // Every polynomial through equal samples predicts the same.
            predictions[1..].fill(samples.first().copied().unwrap_or(0));
        } else {
            let orders = predictions[1..=samples.len()].iter_mut().zip(polynomials);
            orders.for_each(|(prediction, order)| *prediction = order.predict(samples));
        }
        let prediction = predictions[usize::from(model.best[samples.len()])];
        let errors = &model.errors[usize::from(model.best[samples.len()])];
        let error = coder.number(errors, truth.map_or(0, |v| v.wrapping_sub(prediction)))?;
        let value = prediction.wrapping_add(error);
        if self.learning {
            model.learn(value, &predictions[..=samples.len()]);
        }
        Ok(value)
    }

    fn state(
        &self,
        transitions: &mut Transitions,
        from: Option<u32>,
        coder: &mut impl Coder,
        truth: Option<i64>,
    ) -> Result<i64, ReceiveError> {
        let to = coder.state(transitions, from, truth.map_or(0, |value| value as u32))?;
        if self.learning {
            transitions.record(from, to);
        }
        Ok(i64::from(to))
    }

    /// Predictors through one, two, three and four samples, as far as they are available.
    fn polynomials(&self) -> Vec<Polynomial> {
        let ago: Vec<u64> = self.samples.iter().map(|&(ago, _)| ago).collect();
        (1..=ago.len())
            .map_while(|samples| Polynomial::new(&ago[..samples]))
            .collect()
    }

    fn set_change(
        &self,
        model: &mut Model,
        coder: &mut impl Coder,
        base: &[Item],
        truth: Option<SetChange>,
    ) -> Result<SetChange, ReceiveError> {
        let sets = Arc::make_mut(&mut model.sets);
        let learning = self.learning;
        let mut number = |errors: &mut Distribution, number: i64| {
            let number = coder.number(errors, number)?;
            if learning {
                errors.record(super::buckets::bucket(number));
            }
            Ok(number)
        };
        let known = truth.unwrap_or_default();
        let mut change = SetChange::default();

        let count = number(&mut sets.left_count, known.left.len() as i64)?;
        let mut next = 0;
        for index in 0..believable(count)? {
            let gap = known.left.get(index).map_or(0, |rank| rank - next);
            let gap = number(&mut sets.left_gap, gap as i64)?;
            next = change.leave(next, usize::try_from(gap).unwrap_or(usize::MAX), base)?;
        }

        let count = number(&mut sets.came_count, known.came.len() as i64)?;
        let mut previous = base.last().map_or(0, |item| item.id);
        let mut ids = Vec::new();
        for index in 0..believable(count)? {
            let gap = known
                .came
                .get(index)
                .map_or(0, |(id, _)| id.wrapping_sub(previous) as i64);
            previous = previous.wrapping_add(number(&mut sets.came_gap, gap)? as u64);
            ids.push(previous);
        }
        let mut from = None;
        for (index, id) in ids.into_iter().enumerate() {
            let class = known
                .came
                .get(index)
                .map_or(0, |&(_, class)| u32::from(class));
            let class = coder.state(&sets.class, from, class)?;
            if learning {
                sets.class.record(from, class);
            }
            from = Some(class);
            change.come(id, u64::from(class), self.schema)?;
        }
        change.check(base)?;
        Ok(change)
    }
}

fn believable(count: i64) -> Result<usize, ReceiveError> {
    if (0..MAX_ENTITIES).contains(&count) {
        Ok(count as usize)
    } else {
        Err(ReceiveError::Malformed("too many entities"))
    }
}
