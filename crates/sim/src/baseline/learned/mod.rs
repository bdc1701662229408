//! The learned protocol as its document describes it.
//!
//! Per field it uses the predictor with the smallest expected cost, among zero and the polynomials
//! through one to four acknowledged samples. Errors are coded by bucket, with adaptive frequencies
//! and arithmetic coding; enumerations by learned transitions. The dataset is cloned from the
//! newest acknowledged tick and archived per tick, so that it survives any loss. New entities use
//! the zero predictor. Where the document leaves a choice open, this implements the one that
//! measured smaller.

mod arithmetic;
pub(crate) mod buckets;
mod differences;
mod distribution;
mod entropy;
mod header;
mod ledger;
mod model;
mod origin;
mod polynomial;
mod transitions;
mod walk;

pub(super) use differences::{PredictionDecoder, PredictionEncoder};
pub(super) use entropy::{LearnedDecoder, LearnedEncoder};
