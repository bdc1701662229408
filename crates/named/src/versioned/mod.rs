//! Versioned sync: the newest version of what a peer publishes, in one round trip.
//!
//! A consumer requests `/<topic>/sync/v=<floor>`: any version from `floor` on. If the producer has one, it
//! answers at once with the newest; if not, the Interest waits there until it has. The answer's name is that of
//! the Interest and one component more, the *next floor*, which the consumer requests next. A consumer that
//! missed versions gets the newest one and continues from there.
//!
//! Names do not contain the consumer, so forwarders aggregate the Interests of all consumers at a floor and
//! cache the answer. A consumer at a floor holds the version before it, so the content may be a *delta* from
//! that version and still serve all of them.
//!
//! - [`Producer`] and [`Consumer`] are the two ends. Contents are bytes of the program.
//! - [`VersionLog`] holds recent versions: the bases of deltas, and what consumers have seen last.
//! - [`EventCache`] holds recent events; a consumer gets all events since its floor.
//! - [`SegmentedContent`] and [`SegmentFetch`] carry contents that are longer than a packet.
//!
//! Versions start at a number that is higher than any version in an earlier life of the producer, so that
//! consumers need not know of a restart; [`first_version`] makes one from the boot time in
//! [`Member`](crate::Member), which consumers get from [`Discovery`](crate::Discovery).

mod consumer;
mod events;
mod log;
mod producer;
mod segments;

pub use consumer::{Consumer, ConsumerConfig, ConsumerStatistics, Update, UpdateError};
pub use events::{EventCache, MAX_EVENT, read_events, write_events};
pub use log::VersionLog;
pub use producer::{Answer, Freshness, Producer, ProducerConfig, ProducerStatistics, Request};
pub use segments::{
    FetchError, MAX_SEGMENT, MAX_SEGMENTS, SegmentError, SegmentFetch, SegmentedContent,
};

use crate::error::{DecodeError, NameError};
use crate::name::{ComponentKind, Name, NameRef};
use crate::tlv::{self, Reader};

/// The first version of a producer that started at `boot`, in seconds since 1970. With less than a thousand
/// versions per second no version of an earlier start is as high.
pub fn first_version(boot: u64) -> u64 {
    boot.saturating_mul(1000).max(1)
}

/// `/<topic>/sync`, the prefix that a producer registers.
fn sync_name(topic: NameRef<'_>) -> Result<Name, NameError> {
    let mut name = topic.to_name();
    name.push(ComponentKind::GENERIC, b"sync")?;
    // The longest names below it must be possible.
    let mut longest = name.clone();
    longest.push_number(ComponentKind::VERSION, u64::MAX)?;
    longest.push_number(ComponentKind::VERSION, u64::MAX)?;
    longest.push_number(ComponentKind::SEGMENT, u64::MAX)?;
    Ok(name)
}

/// What a name below `/<topic>/sync` requests or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SyncName {
    floor: u64,
    next: Option<u64>,
    segment: Option<u64>,
}

impl SyncName {
    /// `None` if the name is not one of the protocol, or has numbers in longer forms than necessary.
    fn read(prefix: NameRef<'_>, name: NameRef<'_>) -> Option<Self> {
        if !name.starts_with(prefix) {
            return None;
        }
        let rest = NameRef::trusted(&name.as_bytes()[prefix.as_bytes().len()..]);
        let mut components = rest.components();
        let mut number = |kind: ComponentKind| match components.next() {
            None => Some(None),
            Some(component) if component.kind == kind => {
                let number = component.number()?;
                let is_shortest = tlv::integer_bytes(number).1 == 8 - component.value.len();
                is_shortest.then_some(Some(number))
            }
            Some(_) => None,
        };
        let read = Self {
            floor: number(ComponentKind::VERSION)??,
            next: number(ComponentKind::VERSION)?,
            segment: number(ComponentKind::SEGMENT)?,
        };
        components.next().is_none().then_some(read)
    }

    fn write(self, prefix: NameRef<'_>) -> Name {
        let mut name = prefix.to_name();
        let numbers = [
            (ComponentKind::VERSION, Some(self.floor)),
            (ComponentKind::VERSION, self.next),
            (ComponentKind::SEGMENT, self.segment),
        ];
        for (kind, number) in numbers {
            if let Some(number) = number {
                // `sync_name` checked that there is room.
                let pushed = name.push_number(kind, number);
                debug_assert!(pushed.is_ok());
            }
        }
        name
    }
}

/// The content of an answer: how long the Interest waited at the producer in milliseconds, and whether the rest
/// is a delta, in one number; then the rest.
fn write_content(waited_ms: u64, is_delta: bool, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len() + 9);
    let waited = waited_ms.min(u64::MAX >> 1);
    tlv::write_number(&mut bytes, waited << 1 | u64::from(is_delta));
    bytes.extend_from_slice(content);
    bytes
}

fn read_content(bytes: &[u8]) -> Result<(u64, bool, &[u8]), DecodeError> {
    let mut reader = Reader::new(bytes);
    let number = reader.number()?;
    let rest = &bytes[bytes.len() - reader.left()..];
    Ok((number >> 1, number & 1 == 1, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Fails if `write_content` does not shift, or `read` accepts a component after the segment.
        #[test]
        fn names_and_contents_come_back(
            floor in any::<u64>(),
            next in any::<Option<u64>>(),
            segment in any::<u64>(),
            waited in 0..u64::MAX >> 1,
            is_delta in any::<bool>(),
            content in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let prefix = sync_name("/game/0/anna/status".parse::<Name>()?.view())?;
            let segment = next.map(|_| segment);
            let name = SyncName { floor, next, segment };
            let written = name.write(prefix.view());
            prop_assert_eq!(SyncName::read(prefix.view(), written.view()), Some(name));
            let mut longer = written;
            longer.push(ComponentKind::SEGMENT, b"1")?;
            if segment.is_some() {
                prop_assert_eq!(SyncName::read(prefix.view(), longer.view()), None);
            }
            let bytes = write_content(waited, is_delta, &content);
            prop_assert_eq!(read_content(&bytes)?, (waited, is_delta, &content[..]));
        }
    }
}
