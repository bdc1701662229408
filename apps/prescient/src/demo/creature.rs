//! What lives in the pond, as both ends know it.

use prescient::schema::FieldKind;
use prescient::{Schema, State};

/// Whatever lives in the pond.
#[derive(State, Clone, Copy, Debug, PartialEq)]
pub struct Creature {
    /// Where it is.
    #[state(step = 0.0625, position)]
    pub position: [f32; 2],
    /// How far it gets in a tick.
    #[state(step = 0.0625, velocity_of = "position", per_tick)]
    pub velocity: [f32; 2],
    /// What a tap did to it.
    pub mood: Mood,
    /// What it is.
    #[state(only_on_spawn)]
    pub kind: CreatureKind,
    /// Which it is.
    #[state(only_on_spawn)]
    pub number: u16,
}

/// What a tap did.
#[derive(State, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mood {
    /// Nothing, or it is long ago.
    #[default]
    Calm,
    /// Fish flee, turtles stop, lilies bloom.
    Stirred,
}

/// The page has a drawing for each.
#[derive(State, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CreatureKind {
    /// Small and quick.
    #[default]
    Minnow,
    /// Larger.
    Perch,
    /// Large and slow.
    Carp,
    /// Straight on, whatever happens.
    Turtle,
    /// Does not move.
    Lily,
}

/// What both ends agree on.
pub fn schema() -> Schema {
    Schema::of::<Creature>().expect("the schema is sound")
}

/// What a creature takes that is sent as it is in every tick: numbers as four bytes, all others as
/// one, and nothing for what is only told when it appears.
pub fn raw_bytes() -> usize {
    let schema = schema();
    let fields = schema.classes.iter().flat_map(|class| &class.fields);
    let widths = fields.map(|field| match field.kind {
        _ if field.only_on_spawn => 0,
        FieldKind::Bool | FieldKind::Enum { .. } | FieldKind::Variant { .. } => 1,
        _ => 4,
    });
    widths.sum()
}

/// Steps in a unit, as the attributes of [`Creature`] say.
pub const STEPS: i32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Two places, two velocities and a mood. Fails if what is told once counts in every tick.
    #[test]
    fn raw_state_is_what_may_change() {
        assert_eq!(raw_bytes(), 4 * 4 + 1);
    }
}
