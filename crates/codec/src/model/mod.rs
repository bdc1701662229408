//! What is learned about the values: probabilities of decisions, and nothing about bytes.

pub mod bank;
mod lines;
pub mod logistic;
pub(crate) mod repeats;
