//! The hidden `receive` command: a receiver in a process of its own, whose only inputs are schema,
//! prior and packets. It proves that no state leaks through shared memory.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use prescient_sim::{
    baseline::{MethodOptions, build},
    harness::serve_receiver,
    trace::Header,
};

use crate::{CommandError, options::read_prior};

/// Options of `prescient receive`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReceiveOptions {
    /// The method.
    #[arg(long)]
    pub method: String,
    /// The header line of a trace.
    #[arg(long)]
    pub header: String,
    /// The prior of the sender.
    #[arg(long, value_name = "FILE")]
    pub prior: Option<PathBuf>,
}

/// Runs until standard input ends.
pub(crate) fn receive(options: &ReceiveOptions) -> Result<(), CommandError> {
    let schema = Arc::new(Header::parse(&options.header)?.schema()?);
    let method_options = MethodOptions {
        prior: options.prior.as_deref().map(read_prior).transpose()?,
        ..MethodOptions::default()
    };
    let (_, mut receiver) = build(&options.method, &method_options, schema)?;
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    Ok(serve_receiver(receiver.as_mut(), &mut input, &mut output)?)
}
