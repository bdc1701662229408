//! Events: what happened at a tick, perhaps to an object.

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About<O> {
    /// Nothing in particular.
    Nothing,
    /// An object that the receiver knows.
    Object(O),
    /// An object that the receiver no longer knows.
    Gone,
}
