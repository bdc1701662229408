//! What a recording is: its schema, its ticks' interval, and what a program notes about it.

use std::time::Duration;

use prescient_codec::{Profile, WIRE_VERSION};
use prescient_schema::Schema;

use crate::numbers;
use crate::recording::OpenError;

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
        numbers::put_bytes(out, &self.schema.to_bytes());
        numbers::put(out, self.notes.len() as u64);
        for (key, value) in &self.notes {
            numbers::put_bytes(out, key.as_bytes());
            numbers::put_bytes(out, value.as_bytes());
        }
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
