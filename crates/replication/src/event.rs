//! Events: what happened at a tick, perhaps to an entity.

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About<O> {
    /// Nothing in particular.
    Nothing,
    /// An entity that the receiver knows.
    Entity(O),
    /// An entity that the receiver no longer knows.
    Gone,
}
