//! The coders of typed events in one direction of a connection.

use std::sync::Arc;

use prescient_codec::{DecodedRow, Layout, MalformedRow, RowCoder, RowError, Tick};
use prescient_schema::Parcel;

use crate::message::TypedKind;
use crate::typed_event::MAX_EVENT_BYTES;

/// One end of a stream of typed events, and of those that are coded by themselves. Both are made when
/// they are first needed.
pub(crate) struct EventCoders {
    layout: Arc<Layout>,
    stream: Option<Box<RowCoder>>,
    alone: Option<Box<RowCoder>>,
    input: Option<Box<RowCoder>>,
}

impl EventCoders {
    pub(crate) fn new(layout: Arc<Layout>) -> Self {
        Self {
            layout,
            stream: None,
            alone: None,
            input: None,
        }
    }

    /// The message of a typed event, whose references are ids of the receiver plus one.
    pub(crate) fn encode(
        &mut self,
        kind: TypedKind,
        world_generation: u8,
        tick: Tick,
        class: u16,
        parcel: &Parcel,
    ) -> Result<Vec<u8>, RowError> {
        let head = kind.head(world_generation);
        // A program that only gets this far with a shorter event finds no reason to split it.
        let max_len = 2 * MAX_EVENT_BYTES;
        self.coder(kind)
            .encode(head, tick.0 as u32, class, parcel, max_len)
    }

    /// Reads what [`encode`](Self::encode) wrote after the head, with the tick of the event. Rows
    /// have the lowest bits of it; `near` is a tick near it.
    pub(crate) fn decode(
        &mut self,
        kind: TypedKind,
        row: &[u8],
        near: Tick,
    ) -> Result<(Tick, DecodedRow), MalformedRow> {
        let low = near.0 as u32;
        let decoded = self.coder(kind).decode(row, low)?;
        let ahead = decoded.tick.wrapping_sub(low) as i32;
        let tick = near.0.saturating_add_signed(ahead.into());
        Ok((Tick(tick), decoded))
    }

    /// Fails if an event is longer than allowed.
    pub(crate) fn check(&mut self, class: u16, parcel: &Parcel) -> Result<(), RowError> {
        let coder = self.coder(TypedKind::Alone);
        let coded = coder.encode(Vec::new(), 0, class, parcel, MAX_EVENT_BYTES);
        coded.map(drop)
    }

    /// A typed input.
    pub(crate) fn encode_input(
        &mut self,
        class: u16,
        parcel: &Parcel,
        max_len: usize,
    ) -> Result<Vec<u8>, RowError> {
        self.input_coder()
            .encode(Vec::new(), 0, class, parcel, max_len)
    }

    /// Reads what [`encode_input`](Self::encode_input) wrote.
    pub(crate) fn decode_input(&mut self, fields: &[u8]) -> Result<DecodedRow, MalformedRow> {
        self.input_coder().decode(fields, 0)
    }

    fn input_coder(&mut self) -> &mut RowCoder {
        let new = || Box::new(RowCoder::bare(self.layout.clone()));
        self.input.get_or_insert_with(new)
    }

    /// Begins the stream anew, because a message of it was not delivered.
    pub(crate) fn restart(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.restart();
        }
    }

    /// Bytes that the models hold.
    pub(crate) fn bytes(&self) -> usize {
        let coders = [&self.stream, &self.alone, &self.input];
        coders
            .into_iter()
            .flatten()
            .map(|coder| coder.bytes())
            .sum()
    }

    fn coder(&mut self, kind: TypedKind) -> &mut RowCoder {
        let layout = &self.layout;
        match kind {
            TypedKind::Alone => self
                .alone
                .get_or_insert_with(|| Box::new(RowCoder::stateless(layout.clone()))),
            TypedKind::Ordered | TypedKind::Question(_) | TypedKind::Reply(_) => self
                .stream
                .get_or_insert_with(|| Box::new(RowCoder::of_stream(layout.clone()))),
        }
    }
}
