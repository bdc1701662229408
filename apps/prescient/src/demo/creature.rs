//! The replicated state of the demo.

use prescient::schema::FieldKind;
use prescient::{Schema, State};

/// A fish, a turtle or a lily.
#[derive(State, Clone, Copy, Debug, PartialEq)]
pub(super) struct Creature {
    /// Position.
    #[state(step = 0.0625, position)]
    pub position: [f32; 2],
    /// Units per tick.
    #[state(step = 0.0625, velocity_of = "position", per_tick)]
    pub velocity: [f32; 2],
    /// Reaction to a tap.
    pub mood: Mood,
    /// Its kind.
    #[state(only_on_spawn)]
    pub kind: CreatureKind,
    /// Its index in the pond.
    #[state(only_on_spawn)]
    pub number: u16,
}

/// Reaction to a tap.
#[derive(State, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mood {
    /// None, or it is over.
    #[default]
    Calm,
    /// Fish flee, turtles stop, lilies bloom.
    Stirred,
}

/// The page has a drawing for each.
#[derive(State, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CreatureKind {
    /// Small and quick.
    #[default]
    Minnow,
    /// Larger.
    Perch,
    /// Large and slow.
    Carp,
    /// Swims straight on.
    Turtle,
    /// Does not move.
    Lily,
}

/// The schema of both ends.
pub(super) fn schema() -> Schema {
    Schema::of::<Creature>().expect("the schema is sound")
}

/// Bytes per creature and tick without compression: four per number, one per other field, none for
/// fields that are only sent on spawn.
pub(super) fn raw_bytes() -> usize {
    let schema = schema();
    let fields = schema.classes.iter().flat_map(|class| &class.fields);
    let widths = fields.map(|field| match field.kind {
        _ if field.only_on_spawn => 0,
        FieldKind::Bool | FieldKind::Enum { .. } | FieldKind::Variant { .. } => 1,
        _ => 4,
    });
    widths.sum()
}

/// Steps per unit, as in the attributes of [`Creature`].
pub(super) const STEPS: i32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Two coordinates, two velocities and a mood. Fails if fields of `only_on_spawn` are counted.
    #[test]
    fn raw_state_is_what_may_change() {
        assert_eq!(raw_bytes(), 4 * 4 + 1);
    }
}
