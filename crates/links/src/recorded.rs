//! Recorded links: the times at which a real link could deliver packets.
//!
//! The format is that of Mahimahi's link shell: one line per opportunity to deliver 1500 bytes,
//! with the milliseconds since the start of the recording. Several opportunities in a millisecond
//! are several lines. The recording repeats after its last opportunity.

use std::{fmt, fs, io, path::Path, sync::Arc};

use crate::Time;

/// Bytes that one opportunity can carry: a part of a datagram, one, or several.
pub const OPPORTUNITY_BYTES: usize = 1500;

/// A recorded link. Clones share the recording.
#[derive(Clone, PartialEq, Eq)]
pub struct RecordedLink {
    /// In microseconds, not decreasing; there is at least one, and the last one is not 0.
    opportunities: Arc<[u64]>,
}

/// Why a recording was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordedLinkError {
    /// The file could not be read.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// A line is not a number of milliseconds.
    #[error("line {line}: not a number of milliseconds")]
    Number {
        /// Counted from 1.
        line: usize,
    },
    /// A line is earlier than the one before it.
    #[error("line {line}: {millisecond} ms follows {previous} ms")]
    Order {
        /// Counted from 1.
        line: usize,
        /// Its time.
        millisecond: u64,
        /// The time of the line before.
        previous: u64,
    },
    /// There is no opportunity after 0 ms, so the recording has no length.
    #[error("a recording needs an opportunity later than 0 ms")]
    Empty,
}

impl RecordedLink {
    /// Reads a recording from a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, RecordedLinkError> {
        Self::parse(&fs::read(path)?)
    }

    /// Parses a recording; empty lines are skipped.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, RecordedLinkError> {
        let mut opportunities = Vec::new();
        let mut previous = 0;
        for (index, content) in text.as_ref().split(|byte| *byte == b'\n').enumerate() {
            let content = content.trim_ascii();
            if content.is_empty() {
                continue;
            }
            let line = index + 1;
            let (millisecond, micros) =
                millisecond(content).ok_or(RecordedLinkError::Number { line })?;
            if millisecond < previous {
                return Err(RecordedLinkError::Order {
                    line,
                    millisecond,
                    previous,
                });
            }
            previous = millisecond;
            opportunities.push(micros);
        }
        if previous == 0 {
            return Err(RecordedLinkError::Empty);
        }
        Ok(Self {
            opportunities: opportunities.into(),
        })
    }

    /// Number of opportunities before the recording repeats.
    pub fn len(&self) -> usize {
        self.opportunities.len()
    }

    /// Always false: a recording has opportunities.
    pub fn is_empty(&self) -> bool {
        self.opportunities.is_empty()
    }

    /// The time after which the recording repeats.
    pub fn length(&self) -> Time {
        Time::from_micros(self.period())
    }

    /// Bits per second over the whole recording.
    pub fn average_rate(&self) -> u64 {
        let bits = self.len() as u128 * OPPORTUNITY_BYTES as u128 * 8;
        u64::try_from(bits * 1_000_000 / u128::from(self.period())).unwrap_or(u64::MAX)
    }

    /// Number of opportunities up to and including `now`, over all repetitions. This is also the
    /// number of the first one after `now`.
    pub fn opportunities_until(&self, now: Time) -> u64 {
        let (round, rest) = (
            now.as_micros() / self.period(),
            now.as_micros() % self.period(),
        );
        let here = self.opportunities.partition_point(|at| *at <= rest) as u64;
        round
            .saturating_mul(self.opportunities.len() as u64)
            .saturating_add(here)
    }

    /// Time of the opportunity with this number, counted from 0 over all repetitions.
    pub fn opportunity(&self, number: u64) -> Time {
        let count = self.opportunities.len() as u64;
        let within = self.opportunities[(number % count) as usize];
        let round = (number / count).saturating_mul(self.period());
        Time::from_micros(round.saturating_add(within))
    }

    fn period(&self) -> u64 {
        self.opportunities.last().copied().unwrap_or(1)
    }
}

impl fmt::Debug for RecordedLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RecordedLink")
            .field("opportunities", &self.len())
            .field("length", &self.length())
            .finish()
    }
}

/// A line's milliseconds, and the same in microseconds.
fn millisecond(line: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(line).ok()?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let millisecond: u64 = text.parse().ok()?;
    Some((millisecond, millisecond.checked_mul(1000)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_starts_over_after_its_last_opportunity() {
        let link = RecordedLink::parse("0\n2\n2\n10\n").expect("a recording");
        let times: Vec<u64> = (0..9)
            .map(|number| link.opportunity(number).as_micros() / 1000)
            .collect();
        assert_eq!(times, [0, 2, 2, 10, 10, 12, 12, 20, 20]);
        let until =
            [0, 1, 2, 9, 10, 11, 20].map(|now| link.opportunities_until(Time::from_millis(now)));
        assert_eq!(until, [1, 1, 3, 3, 5, 5, 9]);
        assert_eq!(link.average_rate(), 4_800_000);
    }

    #[test]
    fn malformed_recordings_are_refused_with_their_line() {
        let refused = |text: &[u8]| {
            RecordedLink::parse(text)
                .expect_err("malformed")
                .to_string()
        };
        assert_eq!(refused(b"1\nx\n"), "line 2: not a number of milliseconds");
        assert_eq!(refused(b"1\n\n-3"), "line 3: not a number of milliseconds");
        assert_eq!(refused(b"+1"), "line 1: not a number of milliseconds");
        assert_eq!(refused(b"\xff\xfe"), "line 1: not a number of milliseconds");
        assert_eq!(
            refused(b"18446744073709551615"),
            "line 1: not a number of milliseconds"
        );
        assert_eq!(refused(b"5\r\n4\r\n"), "line 2: 4 ms follows 5 ms");
        let empty = "a recording needs an opportunity later than 0 ms";
        assert_eq!(refused(b""), empty);
        assert_eq!(refused(b"0\n0\n"), empty);
        assert!(matches!(
            RecordedLink::open("/no/such/recording"),
            Err(RecordedLinkError::Io(_))
        ));
    }

    #[test]
    fn numbers_far_out_do_not_overflow() {
        let link = RecordedLink::parse("18446744073709551").expect("a long recording");
        assert_eq!(link.opportunity(u64::MAX), Time::from_micros(u64::MAX));
        let short = RecordedLink::parse("1\n1\n1").expect("a recording");
        let far = Time::from_micros(u64::MAX);
        assert_eq!(short.opportunities_until(far), u64::MAX / 1000 * 3);
    }
}
