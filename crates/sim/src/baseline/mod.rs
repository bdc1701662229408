//! The established methods to replicate a world, each as strong as its description.
//!
//! The comparison is honest: every method is a complete sender and receiver, verified by the same
//! harness and the same cases as our own. [`build`] is the only function that maps names to
//! methods.

mod acknowledgement;
mod archive;
mod byte_difference;
mod bytes;
mod huffman;
mod learned;
mod ours;
mod quake;
mod raw;
mod snapshot;
mod stream;
mod widths;
mod xor;

use std::sync::Arc;

pub use prescient_codec::Profile;
use prescient_codec::{Config, Decoder, Encoder, HISTORY, Prior, PriorMismatch};
use prescient_schema::Schema;

pub use self::ours::{OurReceiver, OurSender};
use self::{
    archive::{Decode, Encode, SnapshotReceiver, SnapshotSender},
    byte_difference::{DifferenceDecoder, DifferenceEncoder},
    learned::{LearnedDecoder, LearnedEncoder, PredictionDecoder, PredictionEncoder},
    quake::{QuakeDecoder, QuakeEncoder},
    raw::{RawDecoder, RawEncoder},
    stream::{Unzlib, Unzstd, Zlib, Zstd},
    xor::{XorDecoder, XorEncoder},
};
use crate::harness::{Receiver, Sender};

/// The two halves of a method.
pub type Method = (Box<dyn Sender>, Box<dyn Receiver>);

/// The methods that are compared by default, in the order of tables.
pub const METHODS: &[&str] = &[
    "raw",
    "bd-z6",
    "bd-z9",
    "pd-z6",
    "xor-z",
    "bd-zstd",
    "quake",
    "learned",
    "prescient",
];

/// Further methods, for reproducing published tables.
pub const FURTHER_METHODS: &[&str] = &["pd-z9"];

/// Options that some methods support.
#[derive(Clone, Debug)]
pub struct MethodOptions {
    /// Whether models learn; `false` freezes them for comparison.
    pub learning: bool,
    /// A trained prior to start from.
    pub prior: Option<Arc<Prior>>,
    /// Speed against size.
    pub profile: Profile,
    /// Whether to count bits by field, which takes a little time.
    pub ledger: bool,
    /// From how many past ticks ours predicts; at least as many as a round trip takes.
    pub history: u32,
}

impl Default for MethodOptions {
    fn default() -> Self {
        Self {
            learning: true,
            prior: None,
            profile: Profile::Default,
            ledger: false,
            history: HISTORY,
        }
    }
}

/// No method has this name, or not with these options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownMethod {
    /// The name is unknown.
    #[error("unknown method {0:?}; there are {list}", list = [METHODS, FURTHER_METHODS].concat().join(", "))]
    Name(String),
    /// The prior does not match the options.
    #[error(transparent)]
    Prior(#[from] PriorMismatch),
}

/// Builds both halves of a method; they share nothing but the schema.
pub fn build(
    name: &str,
    options: &MethodOptions,
    schema: Arc<Schema>,
) -> Result<Method, UnknownMethod> {
    let learning = options.learning;
    let s = &schema;
    Ok(match name {
        "raw" => pair(RawEncoder::new(s), RawDecoder::new(schema)),
        "bd-z6" => zlib_difference(schema, 6),
        "bd-z9" => zlib_difference(schema, 9),
        "bd-zstd" => pair(
            DifferenceEncoder::new(s, Zstd::new(3)),
            DifferenceDecoder::new(schema, Unzstd::new()),
        ),
        "xor-z" => pair(XorEncoder::new(s), XorDecoder::new(schema)),
        "quake" => pair(QuakeEncoder::new(s), QuakeDecoder::new(schema)),
        "pd-z6" => zlib_prediction(schema, learning, 6),
        "pd-z9" => zlib_prediction(schema, learning, 9),
        "learned" => pair(
            LearnedEncoder::new(schema.clone(), learning, options.ledger),
            LearnedDecoder::new(schema, learning),
        ),
        "prescient" => ours(schema, options)?,
        _ => return Err(UnknownMethod::Name(name.to_owned())),
    })
}

fn ours(schema: Arc<Schema>, options: &MethodOptions) -> Result<Method, PriorMismatch> {
    let config = Config::default()
        .with_learning(options.learning)
        .with_profile(options.profile)
        .with_history(options.history);
    let (mut encoder, decoder) = match &options.prior {
        Some(prior) => (
            Encoder::with_prior(schema.clone(), config, prior)?,
            Decoder::with_prior(schema.clone(), config, prior)?,
        ),
        None => (
            Encoder::new(schema.clone(), config),
            Decoder::new(schema.clone(), config),
        ),
    };
    encoder.keep_ledger(options.ledger);
    let sender = OurSender::new(schema, encoder, config.history());
    Ok((Box::new(sender), Box::new(OurReceiver::new(decoder))))
}

fn zlib_difference(schema: Arc<Schema>, level: u32) -> Method {
    let encode = DifferenceEncoder::new(&schema, Zlib::new(level));
    pair(encode, DifferenceDecoder::new(schema, Unzlib::new()))
}

fn zlib_prediction(schema: Arc<Schema>, learning: bool, level: u32) -> Method {
    let encode = PredictionEncoder::new(schema.clone(), learning, Zlib::new(level));
    pair(
        encode,
        PredictionDecoder::new(schema, learning, Unzlib::new()),
    )
}

fn pair(encode: impl Encode + 'static, decode: impl Decode + 'static) -> Method {
    (
        Box::new(SnapshotSender::new(encode)),
        Box::new(SnapshotReceiver::new(decode)),
    )
}
