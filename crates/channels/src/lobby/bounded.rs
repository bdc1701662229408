//! Texts and bytes of limited length.

use std::fmt;

use thiserror::Error;

use crate::bytes::{Reader, write_number};

/// A value exceeds its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{length} bytes are too long: there is room for {room}")]
pub struct TooLong {
    /// The length of the value.
    pub length: usize,
    /// The limit.
    pub room: usize,
}

fn check(length: usize, room: usize) -> Result<(), TooLong> {
    match length <= room {
        true => Ok(()),
        false => Err(TooLong { length, room }),
    }
}

/// A text of up to `MAX` bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text<const MAX: usize>(String);

impl<const MAX: usize> Text<MAX> {
    /// `text`, if it is short enough.
    pub fn new(text: impl Into<String>) -> Result<Self, TooLong> {
        let text = text.into();
        check(text.len(), MAX)?;
        Ok(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        write_number(bytes, self.0.len() as u64);
        bytes.extend_from_slice(self.0.as_bytes());
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let bytes = read_slice(reader, MAX)?;
        let text = std::str::from_utf8(bytes).ok()?;
        Some(Self(text.to_owned()))
    }
}

/// Escapes control characters and characters that change the direction of text, for terminals and
/// logs. [`as_str`](Text::as_str) returns the raw text.
impl<const MAX: usize> fmt::Display for Text<MAX> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.escape_debug(), formatter)
    }
}

/// Up to `MAX` bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes<const MAX: usize>(Vec<u8>);

impl<const MAX: usize> Bytes<MAX> {
    /// `bytes`, if they are few enough.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, TooLong> {
        let bytes = bytes.into();
        check(bytes.len(), MAX)?;
        Ok(Self(bytes))
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        write_number(bytes, self.0.len() as u64);
        bytes.extend_from_slice(&self.0);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let bytes = read_slice(reader, MAX)?;
        Some(Self(bytes.to_vec()))
    }
}

fn read_slice<'a>(reader: &mut Reader<'a>, max: usize) -> Option<&'a [u8]> {
    let length = usize::try_from(reader.number()?).ok()?;
    reader.slice(length).filter(|_| length <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a limit is checked on one side only (`length <= max` in `read_slice`, `check` in
    /// either `new`).
    #[test]
    fn limits_hold_on_both_sides() {
        assert!(Text::<4>::new("four").is_ok());
        let refused = TooLong { length: 5, room: 4 };
        assert_eq!(Text::<4>::new("fiver"), Err(refused));
        assert_eq!(
            Text::<4>::new("ééé").err().map(|error| error.length),
            Some(6)
        );
        assert_eq!(Bytes::<4>::new([0; 5]), Err(refused));
        let mut bytes = Vec::new();
        Text::<5>::new("fiver").expect("fits").write(&mut bytes);
        assert!(Text::<5>::read(&mut Reader::new(&bytes)).is_some());
        assert!(Text::<4>::read(&mut Reader::new(&bytes)).is_none());
        assert!(Bytes::<4>::read(&mut Reader::new(&bytes)).is_none());
        assert!(Text::<5>::read(&mut Reader::new(&bytes[..5])).is_none());
        assert!(Text::<5>::read(&mut Reader::new(&[2, 0xff, 0xff])).is_none());
    }
}
