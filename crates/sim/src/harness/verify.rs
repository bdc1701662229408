//! Compares the receiver's state with the world.

use prescient_schema::Schema;

use super::{Applied, Receiver, Sender};
use crate::world::World;

/// A difference between receiver and world, with everything needed to reproduce it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tick {tick}, entity {entity}: {what} (replay with --seed {seed})")]
pub struct Mismatch {
    /// The first tick that differs.
    pub tick: u64,
    /// The entity's id in the world, or the receiver's key if it has none.
    pub entity: u64,
    /// The seed of the run.
    pub seed: u64,
    /// The difference.
    pub what: Difference,
}

/// Kinds of differences.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    /// A value.
    #[error("class {class}, field {field}: expected {expected}, got {got}")]
    Value {
        /// The class name.
        class: String,
        /// The field name.
        field: String,
        /// The world's value.
        expected: i64,
        /// The receiver's value.
        got: i64,
    },
    /// The class or the row's length.
    #[error("expected class {expected}, got class number {got} with {length} values")]
    Class {
        /// The class name in the world.
        expected: String,
        /// The receiver's class number.
        got: u16,
        /// The receiver's number of values.
        length: usize,
    },
    /// The receiver has an entity that is not visible.
    #[error("the receiver has it, but it is not visible")]
    Ghost,
    /// The receiver lacks an entity after a packet that covers all of them.
    #[error("it is visible, but the receiver does not have it")]
    Missing,
    /// The receiver assigned the packet to another tick.
    #[error("the receiver applied it as the packet of tick {0}")]
    Tick(u64),
}

/// Verifies all entities that the last packet covered, and returns their ids, ascending.
pub(super) fn verify(
    schema: &Schema,
    world: &World,
    sender: &dyn Sender,
    receiver: &dyn Receiver,
    applied: Applied,
    (tick, seed): (u64, u64),
) -> Result<Vec<u64>, Mismatch> {
    let mismatch = |entity, what| Mismatch {
        tick,
        entity,
        seed,
        what,
    };
    if applied.tick != tick {
        return Err(mismatch(0, Difference::Tick(applied.tick)));
    }
    let mut covered = Vec::new();
    let mut wrong = None;
    receiver.visit_covered(&mut |key, class, row| {
        let id = sender.truth_id(key);
        let difference = match id.and_then(|id| world.get(id)) {
            Some(truth) if truth.class == class && truth.row[..] == *row => None,
            Some(truth) => Some(difference(schema, (truth.class, &truth.row), (class, row))),
            None => Some(Difference::Ghost),
        };
        if let Some(what) = difference {
            wrong.get_or_insert(mismatch(id.unwrap_or(key), what));
        }
        covered.extend(id);
    });
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    covered.sort_unstable();
    covered.dedup();
    if applied.full && covered.len() != world.len() {
        let missing = world
            .iter()
            .find(|(id, _)| covered.binary_search(id).is_err());
        return Err(mismatch(
            missing.map_or(0, |(id, _)| id),
            Difference::Missing,
        ));
    }
    Ok(covered)
}

fn difference(schema: &Schema, truth: (u16, &[i64]), got: (u16, &[i64])) -> Difference {
    let class = &schema.classes[usize::from(truth.0)];
    let pairs = truth.1.iter().zip(got.1).enumerate();
    match pairs
        .into_iter()
        .find(|(_, (expected, got))| expected != got)
    {
        Some((field, (&expected, &value))) if truth.0 == got.0 => Difference::Value {
            class: class.name.clone(),
            field: class.fields[field].name.clone(),
            expected,
            got: value,
        },
        _ => Difference::Class {
            expected: class.name.clone(),
            got: got.0,
            length: got.1.len(),
        },
    }
}
