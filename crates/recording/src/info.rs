//! What a recording is: its schema, its ticks' interval, and what a program notes about it.
//!
//! Schemas of hundreds of fields are longer than minutes of telemetry, so most of it is deflated.

use std::io::{Read, Write};
use std::time::Duration;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use prescient_codec::{Profile, WIRE_VERSION};
use prescient_schema::Schema;

use crate::recording::OpenError;
use prescient_codec::numbers;

/// What a recording says about itself.
#[derive(Clone, Debug)]
pub struct RecordingInfo {
    /// The classes of its entities, without contracts.
    pub schema: Schema,
    /// The time from one tick to the next.
    pub tick_interval: Duration,
    /// Keys and values that the recording program noted, such as the name of the map.
    pub notes: Vec<(String, String)>,
    pub(crate) profile: Profile,
}

impl RecordingInfo {
    /// The value of a note.
    pub fn note(&self, key: &str) -> Option<&str> {
        let mut notes = self.notes.iter();
        notes
            .find(|(name, _)| name == key)
            .map(|(_, value)| &value[..])
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(WIRE_VERSION);
        out.push(self.profile as u8);
        let nanos = u64::try_from(self.tick_interval.as_nanos()).unwrap_or(u64::MAX);
        numbers::put(out, nanos);
        let mut text = Vec::new();
        numbers::put_bytes(&mut text, &self.schema.to_bytes());
        numbers::put(&mut text, self.notes.len() as u64);
        for (key, value) in &self.notes {
            numbers::put_bytes(&mut text, key.as_bytes());
            numbers::put_bytes(&mut text, value.as_bytes());
        }
        let mut encoder = DeflateEncoder::new(&mut *out, Compression::best());
        let deflated = encoder.write_all(&text).and_then(|()| encoder.finish());
        debug_assert!(deflated.is_ok(), "a vector takes everything");
    }

    pub(crate) fn read(mut from: &[u8]) -> Result<Self, OpenError> {
        let damaged = || OpenError::Info;
        let (&codec, rest) = from.split_first().ok_or_else(damaged)?;
        if codec != WIRE_VERSION {
            return Err(OpenError::Codec {
                recorded: codec,
                here: WIRE_VERSION,
            });
        }
        let (&profile, rest) = rest.split_first().ok_or_else(damaged)?;
        let profile = match profile {
            0 => Profile::Default,
            1 => Profile::Best,
            _ => return Err(OpenError::Info),
        };
        from = rest;
        let nanos = numbers::take(&mut from).ok_or_else(damaged)?;
        let mut text = Vec::new();
        let mut decoder = DeflateDecoder::new(from).take(MAX_BYTES);
        decoder.read_to_end(&mut text).map_err(|_| damaged())?;
        let mut from = &text[..];
        let schema = numbers::take_bytes(&mut from).ok_or_else(damaged)?;
        let schema = Schema::from_bytes(schema, &[]).map_err(OpenError::Schema)?;
        let count = numbers::take(&mut from).ok_or_else(damaged)?;
        let mut notes = Vec::new();
        for _ in 0..count {
            let mut text = || {
                let bytes = numbers::take_bytes(&mut from)?;
                String::from_utf8(bytes.to_vec()).ok()
            };
            let note = text().zip(text());
            notes.push(note.ok_or_else(damaged)?);
        }
        Ok(Self {
            schema,
            tick_interval: Duration::from_nanos(nanos),
            notes,
            profile,
        })
    }
}

/// The most bytes of a schema and notes.
const MAX_BYTES: u64 = 1 << 26;
