//! Trains priors: each world is replayed through the codec, which learns from it.

use prescient_codec::{HISTORY, PriorMismatch, Trainer};

use crate::{
    baseline::{OurReceiver, OurSender},
    harness::{Measurement, RunError, RunOptions, run},
    world::{Source, SourceError},
};

/// Why training failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainingError {
    /// The replay ended early.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The source has no usable schema.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The profile or schema of the training so far does not match.
    #[error(transparent)]
    Prior(#[from] PriorMismatch),
}

/// Trains on one more world. The measured cost shows how well its behaviour was predicted already.
pub fn train(
    trainer: &mut Trainer,
    source: &mut dyn Source,
    options: &RunOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Measurement, TrainingError> {
    let schema = source.schema()?;
    let mut sender = OurSender::new(schema.clone(), trainer.encoder(schema.clone())?, HISTORY);
    let mut receiver = OurReceiver::new(trainer.decoder(schema)?);
    let measured = run(source, &mut sender, &mut receiver, options, progress)?;
    trainer.learn(sender.encoder());
    Ok(measured)
}
