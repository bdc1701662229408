//! The adaptive model: probabilities of binary decisions, learned from the packets of a connection.
//! It knows nothing about the bytes that decisions become.

pub(crate) mod cells;
pub(crate) mod context_model;
pub(crate) mod decisions;
pub(crate) mod logistic;
pub(crate) mod repeats;
pub(crate) mod start;
