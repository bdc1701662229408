//! Priors from worlds: each is replayed through the codec, which learns as it goes.

use prescient_codec::{PriorMismatch, Trainer};

use crate::{
    baseline::{OurReceiver, OurSender},
    harness::{Measurement, RunError, RunOptions, run},
    world::{Source, SourceError},
};

/// Why nothing was learned.
#[derive(Debug, thiserror::Error)]
pub enum TrainingError {
    /// The replay ended early.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The source has no usable schema.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// What was learned before does not fit.
    #[error(transparent)]
    Prior(#[from] PriorMismatch),
}

/// Learns from one more world. What it cost says how well it was known already.
pub fn train(
    trainer: &mut Trainer,
    source: &mut dyn Source,
    options: &RunOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Measurement, TrainingError> {
    let schema = source.schema()?;
    let mut sender = OurSender::new(schema.clone(), trainer.encoder(schema.clone())?);
    let mut receiver = OurReceiver::new(trainer.decoder(schema)?);
    let measured = run(source, &mut sender, &mut receiver, options, progress)?;
    trainer.learn(sender.encoder());
    Ok(measured)
}
