//! The messages between neighbouring routers, writer above reader.
//!
//! Each message is the application parameters of an Interest for [`ROUTING_PREFIX`](super::ROUTING_PREFIX).
//! No Data answers it.

use std::time::Duration;

use crate::error::DecodeError;
use crate::name::{Name, NameRef};
use crate::tlv::{self, Element, Reader, kind};

/// The longest name of a router, in bytes.
pub(crate) const MAX_ROUTER_NAME: usize = 128;

/// The longest prefix that is advertised, in bytes.
pub(crate) const MAX_PREFIX: usize = 512;

/// The most links of a router.
pub(crate) const MAX_LINKS: usize = 64;

/// The most bytes of an advertisement or of a summary, which leaves room for the packet around it.
pub(crate) const MAX_MESSAGE: usize = 7000;

const HELLO: u32 = 1001;
const SUMMARY: u32 = 1003;
const UPDATE: u32 = 1005;
const NUMBER: u32 = 1007;
const RECEIVED: u32 = 1009;
const DIGEST: u32 = 1011;
const AFTER: u32 = 1013;
const LAST: u32 = 1015;
const ENTRY: u32 = 1017;
const AGE: u32 = 1019;
const LINK: u32 = 1021;
const PREFIX: u32 = 1023;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Hello(Hello),
    Summary(Summary),
    Update(Advertisement),
}

/// Keeps a link up, and shows the neighbour which of its own hellos arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) router: Name,
    /// Ascends from hello to hello, also across restarts.
    pub(crate) number: u64,
    /// The router at the other end of this link, and the number of its last hello.
    pub(crate) received: Option<(Name, u64)>,
    /// A digest of the database.
    pub(crate) digest: u64,
}

/// The sequence of each router's advertisement in a range of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The range begins after this router.
    pub(crate) after: Option<Name>,
    /// In the order of their names.
    pub(crate) entries: Vec<(Name, u64)>,
    /// The range has no end. Otherwise it ends with the last entry.
    pub(crate) is_last: bool,
}

/// A router's links and prefixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Advertisement {
    pub(crate) router: Name,
    /// The higher replaces the lower.
    pub(crate) sequence: u64,
    /// The time since the router made it.
    pub(crate) age: Duration,
    /// Neighbours in the order of their names, and the cost of the link to each.
    pub(crate) links: Vec<(Name, u64)>,
    pub(crate) prefixes: Vec<Name>,
}

impl Message {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Hello(hello) => tlv::write_nested(&mut bytes, HELLO, |bytes| {
                write_name(bytes, kind::NAME, &hello.router);
                tlv::write_integer(bytes, NUMBER, hello.number);
                if let Some((router, number)) = &hello.received {
                    write_entry(bytes, RECEIVED, router, NUMBER, *number);
                }
                tlv::write_element(bytes, DIGEST, &hello.digest.to_be_bytes());
            }),
            Self::Summary(summary) => tlv::write_nested(&mut bytes, SUMMARY, |bytes| {
                if let Some(after) = &summary.after {
                    write_name(bytes, AFTER, after);
                }
                for (router, sequence) in &summary.entries {
                    write_entry(bytes, ENTRY, router, NUMBER, *sequence);
                }
                if summary.is_last {
                    tlv::write_element(bytes, LAST, &[]);
                }
            }),
            Self::Update(update) => tlv::write_nested(&mut bytes, UPDATE, |bytes| {
                write_name(bytes, kind::NAME, &update.router);
                tlv::write_integer(bytes, NUMBER, update.sequence);
                let age = u64::try_from(update.age.as_millis()).unwrap_or(u64::MAX);
                tlv::write_integer(bytes, AGE, age);
                for (router, cost) in &update.links {
                    write_entry(bytes, LINK, router, kind::COST, *cost);
                }
                for prefix in &update.prefixes {
                    write_name(bytes, PREFIX, prefix);
                }
            }),
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let message = reader.element()?;
        if !reader.is_empty() {
            return Err(DecodeError::Trailing);
        }
        let mut reader = Reader::new(message.value);
        Ok(match message.kind {
            HELLO => {
                let router = read_router(expect(reader.element()?, kind::NAME)?)?;
                let number = read_number(reader.element()?, NUMBER)?;
                let mut next = reader.element()?;
                let mut received = None;
                if next.kind == RECEIVED {
                    received = Some(read_entry(next.value, NUMBER)?);
                    next = reader.element()?;
                }
                let digest = tlv::read_array(DIGEST, expect(next, DIGEST)?)?;
                end(reader)?;
                Self::Hello(Hello {
                    router,
                    number,
                    received,
                    digest: u64::from_be_bytes(digest),
                })
            }
            SUMMARY => Self::Summary(read_summary(reader)?),
            UPDATE => Self::Update(read_update(reader)?),
            kind => return Err(DecodeError::Unexpected { kind }),
        })
    }
}

/// How many bytes an entry of a summary or a link takes, at most.
pub(crate) fn entry_len(router: &Name) -> usize {
    router.view().as_bytes().len() + 3 + 3 + 3 + 3 + 3 + 9
}

/// How many bytes a prefix takes, at most.
pub(crate) fn prefix_len(prefix: &Name) -> usize {
    prefix.view().as_bytes().len() + 3 + 3
}

fn write_name(bytes: &mut Vec<u8>, kind: u32, name: &Name) {
    tlv::write_element(bytes, kind, name.view().as_bytes());
}

fn write_entry(bytes: &mut Vec<u8>, kind: u32, router: &Name, number_kind: u32, number: u64) {
    tlv::write_nested(bytes, kind, |bytes| {
        write_name(bytes, kind::NAME, router);
        tlv::write_integer(bytes, number_kind, number);
    });
}

fn read_summary(mut reader: Reader<'_>) -> Result<Summary, DecodeError> {
    let mut summary = Summary {
        after: None,
        entries: Vec::new(),
        is_last: false,
    };
    while let Some(element) = reader.next()? {
        match element.kind {
            AFTER if summary.after.is_none() && summary.entries.is_empty() => {
                summary.after = Some(read_router(element.value)?);
            }
            ENTRY => {
                let entry = read_entry(element.value, NUMBER)?;
                let after = last(&summary.entries).or(summary.after.as_ref());
                if after >= Some(&entry.0) {
                    return Err(DecodeError::BadValue { kind: ENTRY });
                }
                summary.entries.push(entry);
            }
            LAST => {
                tlv::read_flag(LAST, element.value)?;
                summary.is_last = true;
                end(reader)?;
                break;
            }
            kind => return Err(DecodeError::Unexpected { kind }),
        }
    }
    Ok(summary)
}

fn read_update(mut reader: Reader<'_>) -> Result<Advertisement, DecodeError> {
    let mut update = Advertisement {
        router: read_router(expect(reader.element()?, kind::NAME)?)?,
        sequence: read_number(reader.element()?, NUMBER)?,
        age: Duration::from_millis(read_number(reader.element()?, AGE)?),
        links: Vec::new(),
        prefixes: Vec::new(),
    };
    while let Some(element) = reader.next()? {
        match element.kind {
            LINK if update.links.len() < MAX_LINKS && update.prefixes.is_empty() => {
                let link = read_entry(element.value, kind::COST)?;
                if last(&update.links) >= Some(&link.0) {
                    return Err(DecodeError::BadValue { kind: LINK });
                }
                update.links.push(link);
            }
            PREFIX => {
                if element.value.len() > MAX_PREFIX {
                    return Err(DecodeError::BadLength {
                        kind: PREFIX,
                        length: element.value.len(),
                    });
                }
                let prefix = NameRef::decode(element.value)?;
                update.prefixes.push(prefix.to_name());
            }
            kind => return Err(DecodeError::Unexpected { kind }),
        }
    }
    Ok(update)
}

fn last(entries: &[(Name, u64)]) -> Option<&Name> {
    entries.last().map(|(router, _)| router)
}

fn read_entry(value: &[u8], number_kind: u32) -> Result<(Name, u64), DecodeError> {
    let mut reader = Reader::new(value);
    let router = read_router(expect(reader.element()?, kind::NAME)?)?;
    let number = read_number(reader.element()?, number_kind)?;
    end(reader)?;
    Ok((router, number))
}

fn read_router(value: &[u8]) -> Result<Name, DecodeError> {
    let name = NameRef::decode(value)?;
    if value.is_empty() || value.len() > MAX_ROUTER_NAME {
        return Err(DecodeError::BadLength {
            kind: kind::NAME,
            length: value.len(),
        });
    }
    Ok(name.to_name())
}

fn read_number(element: Element<'_>, kind: u32) -> Result<u64, DecodeError> {
    tlv::read_integer(kind, expect(element, kind)?)
}

fn expect(element: Element<'_>, kind: u32) -> Result<&[u8], DecodeError> {
    if element.kind != kind {
        return Err(DecodeError::Unexpected { kind: element.kind });
    }
    Ok(element.value)
}

fn end(reader: Reader<'_>) -> Result<(), DecodeError> {
    reader.is_empty().then_some(()).ok_or(DecodeError::Trailing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().expect("a name")
    }

    fn messages() -> Vec<Message> {
        let hello = Hello {
            router: name("/a"),
            number: 1 << 40,
            received: Some((name("/b"), 1 << 41)),
            digest: 7,
        };
        let summary = Summary {
            after: Some(name("/a")),
            entries: vec![(name("/b"), 1), (name("/c"), u64::MAX)],
            is_last: true,
        };
        vec![
            Message::Hello(Hello {
                received: None,
                ..hello.clone()
            }),
            Message::Hello(hello),
            Message::Summary(Summary {
                after: None,
                entries: Vec::new(),
                is_last: false,
            }),
            Message::Summary(summary),
            Message::Update(Advertisement {
                router: name("/a/b"),
                sequence: 3,
                age: Duration::from_millis(400),
                links: vec![(name("/c"), 0), (name("/d"), 10)],
                prefixes: vec![name("/game"), Name::new()],
            }),
        ]
    }

    /// Fails if a field is read that was not written, or in another order.
    #[test]
    fn what_is_written_is_read() {
        for message in messages() {
            let bytes = message.encode();
            assert_eq!(Message::decode(&bytes), Ok(message));
            for cut in 0..bytes.len() {
                assert!(Message::decode(&bytes[..cut]).is_err());
            }
            let longer = [bytes, vec![8, 0]].concat();
            assert!(Message::decode(&longer).is_err());
        }
    }

    /// Any byte of a message replaced: a refusal, or a message that can be written and read again.
    ///
    /// Fails if a reader panics, or accepts a message that its writer cannot express.
    #[test]
    fn damaged_messages_are_refused_or_round_trip() {
        for message in messages() {
            let bytes = message.encode();
            for index in 0..bytes.len() {
                for value in 0..=u8::MAX {
                    let mut damaged = bytes.clone();
                    damaged[index] = value;
                    if let Ok(read) = Message::decode(&damaged) {
                        assert_eq!(Message::decode(&read.encode()), Ok(read));
                    }
                }
            }
        }
    }

    /// Fails if routers may be listed twice or out of order: receivers search the lists.
    #[test]
    fn summaries_and_links_are_in_order() {
        for wrong in [["/b", "/a"], ["/a", "/a"]] {
            let links = wrong.map(|router| (name(router), 1));
            let update = Message::Update(Advertisement {
                router: name("/c"),
                sequence: 1,
                age: Duration::ZERO,
                links: links.to_vec(),
                prefixes: Vec::new(),
            });
            assert!(Message::decode(&update.encode()).is_err());
        }
        let summary = |after: Option<&str>, entries: &[&str]| {
            let entries = entries.iter().map(|router| (name(router), 1)).collect();
            let after = after.map(name);
            Message::Summary(Summary {
                after,
                entries,
                is_last: true,
            })
        };
        for wrong in [
            summary(None, &["/b", "/a"]),
            summary(None, &["/a", "/a"]),
            summary(Some("/b"), &["/b", "/c"]),
            summary(Some("/b"), &["/a"]),
        ] {
            assert!(Message::decode(&wrong.encode()).is_err());
        }
    }
}
