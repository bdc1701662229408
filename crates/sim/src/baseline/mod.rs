//! The established ways to replicate a world, each as strong as its description.
//!
//! They are here to be beaten honestly: every one is a complete sender and receiver, verified by
//! the same harness and the same cases as our own method. [`build`] is the only place that knows
//! their names.

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

use prescient_codec::Config;
use prescient_schema::Schema;

use self::{
    archive::{Decode, Encode, SnapshotReceiver, SnapshotSender},
    byte_difference::{DifferenceDecoder, DifferenceEncoder},
    learned::{LearnedDecoder, LearnedEncoder, PredictionDecoder, PredictionEncoder},
    ours::{OurReceiver, OurSender},
    quake::{QuakeDecoder, QuakeEncoder},
    raw::{RawDecoder, RawEncoder},
    stream::{Unzlib, Unzstd, Zlib, Zstd},
    xor::{XorDecoder, XorEncoder},
};
use crate::harness::{Receiver, Sender};

/// The two halves of a method.
pub type Method = (Box<dyn Sender>, Box<dyn Receiver>);

/// The methods that are compared unless others are asked for, in the order of tables.
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

/// What some methods can be told.
#[derive(Clone, Debug)]
pub struct MethodOptions {
    /// Whether models learn; `false` freezes them for comparison.
    pub learning: bool,
    /// A trained starting point, as bytes of a prior file.
    pub prior: Option<Arc<[u8]>>,
    /// How much time to spend on better predictions.
    pub profile: Profile,
    /// Whether to keep an account of bits, which takes a little time.
    pub ledger: bool,
}

impl Default for MethodOptions {
    fn default() -> Self {
        Self {
            learning: true,
            prior: None,
            profile: Profile::Default,
            ledger: false,
        }
    }
}

/// How much time to spend on better predictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Fast.
    #[default]
    Default,
    /// Slower and smaller.
    Best,
}

/// There is no method of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownMethod {
    /// Nothing is called so.
    #[error("unknown method {0:?}; there are {list}", list = [METHODS, FURTHER_METHODS].concat().join(", "))]
    Name(String),
    /// There are no trained priors yet, so one that was asked for cannot be honoured.
    #[error("the method {0:?} cannot start from a prior yet; measure without --prior")]
    Prior(String),
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
        "prescient" if options.prior.is_some() => {
            return Err(UnknownMethod::Prior(name.to_owned()));
        }
        "prescient" => ours(schema, options),
        _ => return Err(UnknownMethod::Name(name.to_owned())),
    })
}

fn ours(schema: Arc<Schema>, options: &MethodOptions) -> Method {
    let profile = match options.profile {
        Profile::Default => prescient_codec::Profile::Default,
        Profile::Best => prescient_codec::Profile::Best,
    };
    let config = Config {
        learning: options.learning,
        profile,
        ..Config::default()
    };
    let sender = OurSender::new(schema.clone(), config, options.ledger);
    (Box::new(sender), Box::new(OurReceiver::new(schema, config)))
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
