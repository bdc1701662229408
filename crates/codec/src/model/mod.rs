//! What is learned about the values: probabilities of decisions, and nothing about bytes.

pub(crate) mod cells;
pub mod context_model;
pub mod decisions;
pub mod logistic;
pub(crate) mod repeats;
pub mod start;
