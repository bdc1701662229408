//! What differs between two players: a server's recording beside a client's, or two matches.

use crate::RecordedId;
use crate::player::Player;

/// A field whose value differs, or an entity that only one player has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldDifference {
    /// The first player has the entity, the second does not.
    OnlyFirst(RecordedId),
    /// The second player has the entity, the first does not.
    OnlySecond(RecordedId),
    /// Both have it, and it is of another class.
    Class(RecordedId),
    /// Both have it, with another value.
    Value {
        /// The entity.
        id: RecordedId,
        /// Index of the field.
        field: u16,
        /// The first player's value.
        first: i64,
        /// The second player's value.
        second: i64,
    },
}

/// What differs between the ticks that two players show, by ascending id. Entities are the same if
/// their ids are.
pub fn compare(first: &Player, second: &Player) -> Vec<FieldDifference> {
    let mut differences = Vec::new();
    for (id, entity) in first.entities() {
        let Some(other) = second.entity(id) else {
            differences.push(FieldDifference::OnlyFirst(id));
            continue;
        };
        if entity.class != other.class || entity.row.len() != other.row.len() {
            differences.push(FieldDifference::Class(id));
            continue;
        }
        for (field, (&first, &second)) in (0..).zip(entity.row.iter().zip(&other.row)) {
            if first != second {
                differences.push(FieldDifference::Value {
                    id,
                    field,
                    first,
                    second,
                });
            }
        }
    }
    let missing = second
        .entities()
        .filter(|(id, _)| first.entity(*id).is_none());
    differences.extend(missing.map(|(id, _)| FieldDifference::OnlySecond(id)));
    differences.sort_by_key(|difference| match *difference {
        FieldDifference::OnlyFirst(id)
        | FieldDifference::OnlySecond(id)
        | FieldDifference::Class(id) => (id, 0),
        FieldDifference::Value { id, field, .. } => (id, field),
    });
    differences
}
