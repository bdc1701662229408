//! The entity that an event is about.

/// The entity that an event is about, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About<O> {
    /// No entity.
    Nothing,
    /// An entity that the receiver knows.
    Entity(O),
    /// An entity that the receiver no longer knows.
    Gone,
}
