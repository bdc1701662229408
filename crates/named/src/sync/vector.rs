//! State vectors: the newest sequence number of each member of a sync group, writer above reader.

use std::collections::BTreeMap;

use crate::error::DecodeError;
use crate::name::{Name, NameRef};
use crate::tlv::{self, Reader, kind};

/// A member of a sync group, from one start to the next.
///
/// Members are ordered by name, then by boot time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// The member's name.
    pub name: Name,
    /// When it started, in seconds since 1970. A member that lost its state starts with another boot time,
    /// and its sequence numbers start at 1 again.
    pub boot: u64,
}

/// The newest sequence number of each member. Sequence numbers start at 1; members without a publication are
/// not in the vector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StateVector(pub(crate) BTreeMap<Member, u64>);

const STATE_VECTOR: u32 = 0xc9;
const ENTRY: u32 = 0xca;
const SEQUENCE_ENTRY: u32 = 0xd2;
const BOOT_TIME: u32 = 0xd4;
const SEQUENCE: u32 = 0xd6;

impl StateVector {
    /// The sequence number of a member; 0 if it is not in the vector.
    pub(crate) fn get(&self, member: &Member) -> u64 {
        self.0.get(member).copied().unwrap_or(0)
    }

    /// Raises the sequence number of a member.
    pub(crate) fn raise(&mut self, member: Member, sequence: u64) {
        if sequence > 0 {
            let known = self.0.entry(member).or_insert(sequence);
            *known = sequence.max(*known);
        }
    }

    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        let members: Vec<(&Member, &u64)> = self.0.iter().collect();
        tlv::write_nested(bytes, STATE_VECTOR, |bytes| {
            for same in members.chunk_by(|one, next| one.0.name == next.0.name) {
                tlv::write_nested(bytes, ENTRY, |bytes| {
                    let name = same[0].0.name.view();
                    tlv::write_element(bytes, kind::NAME, name.as_bytes());
                    for (member, sequence) in same {
                        tlv::write_nested(bytes, SEQUENCE_ENTRY, |bytes| {
                            tlv::write_integer(bytes, BOOT_TIME, member.boot);
                            tlv::write_integer(bytes, SEQUENCE, **sequence);
                        });
                    }
                });
            }
        });
    }

    /// Decodes a vector, which is all of `bytes`. Accepts entries in any order, and skips sequence numbers of
    /// 0, which the specification does not allow.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(tlv::read_packet(bytes, STATE_VECTOR)?);
        let mut vector = Self::default();
        while let Some(element) = reader.next()? {
            match element.kind {
                ENTRY => vector.read_entry(element.value)?,
                kind if tlv::is_critical(kind) => return Err(DecodeError::Unexpected { kind }),
                _ => {}
            }
        }
        Ok(vector)
    }

    fn read_entry(&mut self, value: &[u8]) -> Result<(), DecodeError> {
        let mut reader = Reader::new(value);
        let first = reader.element()?;
        if first.kind != kind::NAME {
            return Err(DecodeError::Missing { kind: kind::NAME });
        }
        let name = NameRef::decode(first.value)?;
        while let Some(element) = reader.next()? {
            match element.kind {
                SEQUENCE_ENTRY => {
                    let (boot, sequence) = read_sequence(element.value)?;
                    let name = name.to_name();
                    self.raise(Member { name, boot }, sequence);
                }
                kind if tlv::is_critical(kind) => return Err(DecodeError::Unexpected { kind }),
                _ => {}
            }
        }
        Ok(())
    }
}

/// An upper bound of the bytes that a member takes in an encoded vector.
pub(crate) fn entry_len(member: &Member) -> usize {
    let name = member.name.view().as_bytes().len();
    let entry_header = 4 + 4;
    let sequence_entry = 2 + 2 + 8 + 2 + 8;
    name + entry_header + sequence_entry
}

fn read_sequence(value: &[u8]) -> Result<(u64, u64), DecodeError> {
    let mut reader = Reader::new(value);
    let mut number = |kind| {
        let element = reader.element()?;
        if element.kind != kind {
            return Err(DecodeError::Missing { kind });
        }
        tlv::read_integer(kind, element.value)
    };
    let (boot, sequence) = (number(BOOT_TIME)?, number(SEQUENCE)?);
    if !reader.is_empty() {
        return Err(DecodeError::Trailing);
    }
    Ok((boot, sequence))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, boot: u64) -> Member {
        let name = name.parse().expect("a name");
        Member { name, boot }
    }

    fn vector() -> StateVector {
        let mut vector = StateVector::default();
        vector.raise(member("/b", 9), 70_000);
        vector.raise(member("/a", 1_636_266_330), 10);
        vector.raise(member("/a", 1_736_266_473), 1);
        vector
    }

    /// The second case of the specification's example 5.3, computed by hand from its grammar.
    ///
    /// Fails if a type number or the order differs, or if the boot times of one name have entries of their
    /// own.
    #[test]
    fn vectors_are_bit_exact() {
        let mut bytes = Vec::new();
        vector().encode(&mut bytes);
        let a = [
            &[0xca, 27, 7, 3, 8, 1, b'a'][..],
            &[0xd2, 9, 0xd4, 4, 0x61, 0x87, 0x71, 0x5a, 0xd6, 1, 10],
            &[0xd2, 9, 0xd4, 4, 0x67, 0x7d, 0x52, 0xe9, 0xd6, 1, 1],
        ]
        .concat();
        let b = [
            &[0xca, 16, 7, 3, 8, 1, b'b'][..],
            &[0xd2, 9, 0xd4, 1, 9, 0xd6, 4, 0, 1, 0x11, 0x70],
        ]
        .concat();
        let expected = [&[0xc9, (a.len() + b.len()) as u8][..], &a, &b].concat();
        assert_eq!(bytes, expected);
        assert_eq!(StateVector::decode(&bytes), Ok(vector()));
    }

    /// Any byte replaced: a refusal, or a vector that can be encoded and decoded again.
    ///
    /// Fails if a reader panics, or keeps a sequence number of 0.
    #[test]
    fn damaged_vectors_are_refused_or_round_trip() {
        let mut bytes = Vec::new();
        vector().encode(&mut bytes);
        for cut in 0..bytes.len() {
            assert!(StateVector::decode(&bytes[..cut]).is_err());
        }
        for index in 0..bytes.len() {
            for value in 0..=u8::MAX {
                let mut damaged = bytes.clone();
                damaged[index] = value;
                if let Ok(read) = StateVector::decode(&damaged) {
                    assert!(read.0.values().all(|sequence| *sequence > 0));
                    let mut again = Vec::new();
                    read.encode(&mut again);
                    assert_eq!(StateVector::decode(&again), Ok(read));
                }
            }
        }
    }

    /// Fails if `entry_len` is less than an entry takes.
    #[test]
    fn lengths_are_upper_bounds() {
        for count in 1..60 {
            let mut vector = StateVector::default();
            for number in 0..count {
                vector.raise(member(&format!("/peer/{number}"), u64::MAX), u64::MAX);
            }
            let mut bytes = Vec::new();
            vector.encode(&mut bytes);
            let bound: usize = vector.0.keys().map(entry_len).sum();
            assert!(bytes.len() <= 4 + bound);
        }
    }
}
