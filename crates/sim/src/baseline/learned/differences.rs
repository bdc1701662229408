//! Prediction errors through a compressed stream: the document's "prediction difference".
//!
//! The distributions are learned as well, but only to choose predictors. An error takes four bytes,
//! low byte first, or a mark and eight; a state is the byte difference from the previous one.

use std::sync::Arc;

use prescient_schema::Schema;

use super::{
    super::{
        archive::{Applications, Decode, Decoded, Encode, Past},
        bytes::Input,
        snapshot::Snapshot,
        stream::{Pack, Unpack},
    },
    distribution::Distribution,
    header::{read_header, usable, write_header},
    model::Model,
    origin::Origin,
    transitions::Transitions,
    walk::Coder,
};
use crate::harness::ReceiveError;

pub(in super::super) struct PredictionEncoder<P> {
    origin: Origin,
    pack: P,
}

impl<P: Pack> PredictionEncoder<P> {
    pub(in super::super) fn new(schema: Arc<Schema>, learning: bool, pack: P) -> Self {
        let origin = Origin::new(schema, learning);
        Self { origin, pack }
    }
}

impl<P: Pack> Encode for PredictionEncoder<P> {
    type Model = Model;
    const RELIABLE: bool = true;

    fn encode(
        &mut self,
        tick: u64,
        current: &Snapshot,
        known: &[&Past<Model>],
    ) -> (Vec<u8>, Model) {
        let known = &known[..usable(tick, known)];
        let mut plain = Plain(Vec::new());
        write_header(tick, known, &mut plain.0);
        let coded = self
            .origin
            .advance(tick, known, &mut plain, Some(current), None);
        let coded = coded.expect("a sender's own snapshot is well formed");
        (self.pack.pack(&plain.0), coded.model)
    }

    fn model_bytes(&self, model: &Model) -> usize {
        model.bytes()
    }

    fn taught(&self, model: &Model) -> Option<u64> {
        Some(model.taught)
    }
}

pub(in super::super) struct PredictionDecoder<U> {
    origin: Origin,
    unpack: U,
}

impl<U: Unpack> PredictionDecoder<U> {
    pub(in super::super) fn new(schema: Arc<Schema>, learning: bool, unpack: U) -> Self {
        let origin = Origin::new(schema, learning);
        Self { origin, unpack }
    }
}

impl<U: Unpack> Decode for PredictionDecoder<U> {
    type Model = Model;

    fn decode(
        &mut self,
        packet: &[u8],
        past: &Applications<Model>,
    ) -> Result<Decoded<Model>, ReceiveError> {
        let plain = self.unpack.unpack(packet)?;
        let mut input = Input(&plain);
        let (tick, known) = read_header(&mut input, past)?;
        let past = self.origin.advance(tick, &known, &mut input, None, None)?;
        input.end()?;
        let oldest_named = known.last().map(|past| past.tick);
        Ok(Decoded { past, oldest_named })
    }
}

/// Bytes before compression.
struct Plain(Vec<u8>);

/// Mark: eight bytes follow.
const LONG: i32 = i32::MIN;

impl Coder for Plain {
    fn number(&mut self, _: &Distribution, number: i64) -> Result<i64, ReceiveError> {
        match i32::try_from(number) {
            Ok(short) if short != LONG => self.0.extend(short.to_le_bytes()),
            _ => {
                self.0.extend(LONG.to_le_bytes());
                self.0.extend(number.to_le_bytes());
            }
        }
        Ok(number)
    }

    fn state(
        &mut self,
        transitions: &Transitions,
        from: Option<u32>,
        to: u32,
    ) -> Result<u32, ReceiveError> {
        let difference = to.wrapping_sub(from.unwrap_or(0)).to_le_bytes();
        self.0.extend(&difference[..transitions.width()]);
        Ok(to)
    }
}

impl Coder for Input<'_> {
    fn number(&mut self, _: &Distribution, _: i64) -> Result<i64, ReceiveError> {
        let mut short = [0; 4];
        short.copy_from_slice(self.take(4)?);
        match i32::from_le_bytes(short) {
            LONG => {
                let mut long = [0; 8];
                long.copy_from_slice(self.take(8)?);
                Ok(i64::from_le_bytes(long))
            }
            short => Ok(i64::from(short)),
        }
    }

    fn state(
        &mut self,
        transitions: &Transitions,
        from: Option<u32>,
        _: u32,
    ) -> Result<u32, ReceiveError> {
        let width = transitions.width();
        let mut difference = [0; 4];
        difference[..width].copy_from_slice(self.take(width)?);
        let to = from
            .unwrap_or(0)
            .wrapping_add(u32::from_le_bytes(difference));
        let to = to & u32::MAX >> (32 - 8 * width);
        if transitions.contains(to) {
            Ok(to)
        } else {
            Err(ReceiveError::Malformed(
                "a state that the enumeration does not have",
            ))
        }
    }
}
