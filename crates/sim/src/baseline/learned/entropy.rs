//! Prediction errors through the arithmetic coder: the document's own method.

use std::sync::Arc;

use prescient_schema::Schema;

use super::{
    super::{
        archive::{Applications, Decode, Decoded, Encode, Past},
        bytes::Input,
        snapshot::Snapshot,
    },
    arithmetic::{Decoder, Encoder},
    buckets::{bucket, position, position_bits, value},
    distribution::Distribution,
    header::{read_header, usable, write_header},
    ledger::Ledger,
    model::Model,
    origin::Origin,
    transitions::{SymbolRange, Transitions},
    walk::Coder,
};
use crate::harness::{LedgerRow, ReceiveError};

pub(in super::super) struct LearnedEncoder {
    origin: Origin,
    ledger: Option<Ledger>,
}

impl LearnedEncoder {
    pub(in super::super) fn new(schema: Arc<Schema>, learning: bool, ledger: bool) -> Self {
        let ledger = ledger.then(|| Ledger::new(&schema));
        let origin = Origin::new(schema, learning);
        Self { origin, ledger }
    }
}

impl Encode for LearnedEncoder {
    type Model = Model;
    const RELIABLE: bool = false;

    fn encode(
        &mut self,
        tick: u64,
        current: &Snapshot,
        known: &[&Past<Model>],
    ) -> (Vec<u8>, Model) {
        let known = &known[..usable(tick, known)];
        let mut packet = Vec::new();
        write_header(tick, known, &mut packet);
        if let Some(ledger) = &mut self.ledger {
            ledger.header += 8.0 * packet.len() as f64;
        }
        let mut encoder = Encoder::new();
        let ledger = self.ledger.as_mut();
        let coded = self
            .origin
            .advance(tick, known, &mut encoder, Some(current), ledger);
        let coded = coded.expect("a sender's own snapshot is well formed");
        packet.extend(encoder.finish());
        (packet, coded.model)
    }

    fn model_bytes(&self, model: &Model) -> usize {
        model.bytes()
    }

    fn taught(&self, model: &Model) -> Option<u64> {
        Some(model.taught)
    }

    fn ledger(&self) -> Option<Vec<LedgerRow>> {
        self.ledger
            .as_ref()
            .map(|ledger| ledger.rows(&self.origin.schema))
    }
}

pub(in super::super) struct LearnedDecoder {
    origin: Origin,
}

impl LearnedDecoder {
    pub(in super::super) fn new(schema: Arc<Schema>, learning: bool) -> Self {
        let origin = Origin::new(schema, learning);
        Self { origin }
    }
}

impl Decode for LearnedDecoder {
    type Model = Model;

    fn decode(
        &mut self,
        packet: &[u8],
        past: &Applications<Model>,
    ) -> Result<Decoded<Model>, ReceiveError> {
        let mut input = Input(packet);
        let (tick, known) = read_header(&mut input, past)?;
        let mut decoder = Decoder::new(input.0);
        let past = self
            .origin
            .advance(tick, &known, &mut decoder, None, None)?;
        let oldest_named = known.last().map(|past| past.tick);
        Ok(Decoded { past, oldest_named })
    }
}

impl Coder for Encoder {
    fn spent(&self) -> f64 {
        Encoder::spent(self)
    }

    fn number(&mut self, errors: &Distribution, number: i64) -> Result<i64, ReceiveError> {
        let bucket = bucket(number);
        let (start, size) = errors.interval(bucket);
        self.encode(start, size, errors.total());
        self.encode_bits(position(number), position_bits(bucket));
        Ok(number)
    }

    fn state(
        &mut self,
        transitions: &Transitions,
        from: Option<u32>,
        to: u32,
    ) -> Result<u32, ReceiveError> {
        let total = transitions.total(from);
        match transitions.range_of(from, to) {
            SymbolRange::Seen { start, size } => self.encode(start, size, total),
            SymbolRange::Unseen { start, size, rank } => {
                self.encode(start, size, total);
                self.encode(rank, 1, transitions.unseen(from));
            }
        }
        Ok(to)
    }
}

impl Coder for Decoder<'_> {
    fn number(&mut self, errors: &Distribution, _: i64) -> Result<i64, ReceiveError> {
        self.check()?;
        let (bucket, start, size) = errors.find(self.peek(errors.total()));
        self.take(start, size);
        Ok(value(bucket, self.decode_bits(position_bits(bucket))))
    }

    fn state(
        &mut self,
        transitions: &Transitions,
        from: Option<u32>,
        _: u32,
    ) -> Result<u32, ReceiveError> {
        self.check()?;
        let at = self.peek(transitions.total(from));
        let (state, start, size) = transitions.find(from, at);
        self.take(start, size);
        Ok(state.unwrap_or_else(|| {
            let rank = self.peek(transitions.unseen(from));
            self.take(rank, 1);
            transitions.unseen_at(from, rank)
        }))
    }
}
