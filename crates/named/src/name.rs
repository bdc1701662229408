//! Names: sequences of typed components.
//!
//! A name is stored as its components' bytes in a packet, without the type and length of the name. Since
//! numbers have a single encoding (see `tlv`), comparing bytes yields the canonical order of names, and a
//! name is a prefix of another exactly if its bytes are.

use std::fmt::{self, Write};
use std::str::FromStr;

use crate::error::{DecodeError, NameError};
use crate::tlv::{self, Reader, kind};

/// The most components of a name. The specification has no limit.
pub const MAX_COMPONENTS: usize = 64;

/// A name that owns its bytes.
///
/// ```
/// use prescient_named::{ComponentKind, Name};
///
/// let mut name: Name = "/game/0/anna".parse()?;
/// name.push(ComponentKind::GENERIC, b"status")?;
/// name.push_number(ComponentKind::VERSION, 7)?;
/// assert_eq!(name.to_string(), "/game/0/anna/status/v=7");
/// assert!(name.view().starts_with("/game/0".parse::<Name>()?.view()));
/// # Ok::<(), prescient_named::NameError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    value: Vec<u8>,
}

impl Name {
    /// The name without components, a prefix of every name.
    pub const fn new() -> Self {
        Self { value: Vec::new() }
    }

    /// Appends a component.
    pub fn push(&mut self, kind: ComponentKind, value: &[u8]) -> Result<(), NameError> {
        check_component(kind, value.len())?;
        if self.view().len() == MAX_COMPONENTS {
            return Err(NameError::TooDeep);
        }
        let header = tlv::number_len(kind.0.into()) + tlv::number_len(value.len() as u64);
        if self.value.len() + header + value.len() > tlv::MAX_PACKET {
            return Err(NameError::TooLong);
        }
        tlv::write_element(&mut self.value, kind.0.into(), value);
        Ok(())
    }

    /// Appends a component whose value is a number.
    pub fn push_number(&mut self, kind: ComponentKind, number: u64) -> Result<(), NameError> {
        let (value, start) = tlv::integer_bytes(number);
        self.push(kind, &value[start..])
    }

    /// This name followed by all components of another.
    pub fn join(&self, other: NameRef<'_>) -> Result<Self, NameError> {
        let mut joined = self.clone();
        for component in other.components() {
            joined.push(component.kind, component.value)?;
        }
        Ok(joined)
    }

    /// A view of this name.
    pub fn view(&self) -> NameRef<'_> {
        NameRef { value: &self.value }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.view(), f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.view(), f)
    }
}

/// A view of a name with valid components, in a packet or a [`Name`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameRef<'a> {
    value: &'a [u8],
}

impl<'a> NameRef<'a> {
    /// Decodes a name's components, which are all of `value`.
    pub fn decode(value: &'a [u8]) -> Result<Self, DecodeError> {
        if value.len() > tlv::MAX_PACKET {
            return Err(DecodeError::TooLong {
                length: value.len(),
                limit: tlv::MAX_PACKET,
            });
        }
        let mut reader = Reader::new(value);
        let mut components = 0;
        while let Some(element) = reader.next()? {
            components += 1;
            if components > MAX_COMPONENTS {
                return Err(DecodeError::TooDeep);
            }
            let unexpected = DecodeError::Unexpected { kind: element.kind };
            let kind = u16::try_from(element.kind).map_err(|_| unexpected)?;
            check_component(ComponentKind(kind), element.value.len()).map_err(|_| {
                DecodeError::BadLength {
                    kind: element.kind,
                    length: element.value.len(),
                }
            })?;
        }
        Ok(Self { value })
    }

    /// For bytes that were checked before.
    pub(crate) fn trusted(value: &'a [u8]) -> Self {
        Self { value }
    }

    /// The components' bytes in a packet, without the type and length of the name.
    pub fn as_bytes(self) -> &'a [u8] {
        self.value
    }

    /// The components in order.
    pub fn components(self) -> Components<'a> {
        Components {
            reader: Reader::new(self.value),
        }
    }

    /// The number of components.
    pub fn len(self) -> usize {
        self.components().count()
    }

    /// Whether it has no components.
    pub fn is_empty(self) -> bool {
        self.value.is_empty()
    }

    /// The component at an index, from 0.
    pub fn get(self, place: usize) -> Option<Component<'a>> {
        self.components().nth(place)
    }

    /// The last component.
    pub fn last(self) -> Option<Component<'a>> {
        self.components().last()
    }

    /// The first `count` components, or all of them.
    pub fn prefix(self, count: usize) -> NameRef<'a> {
        let mut components = self.components();
        components.by_ref().take(count).for_each(drop);
        let end = self.value.len() - components.reader.left();
        Self {
            value: &self.value[..end],
        }
    }

    /// The components after the first `count`.
    pub fn suffix(self, count: usize) -> NameRef<'a> {
        Self {
            value: &self.value[self.prefix(count).value.len()..],
        }
    }

    /// Whether the components of `prefix` are the first of this name. Every name starts with itself.
    pub fn starts_with(self, prefix: NameRef<'_>) -> bool {
        self.value.starts_with(prefix.value)
    }

    /// A name that owns its bytes.
    pub fn to_name(self) -> Name {
        Name {
            value: self.value.to_vec(),
        }
    }
}

impl fmt::Debug for NameRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The components of a name, in order.
#[derive(Clone, Debug)]
pub struct Components<'a> {
    reader: Reader<'a>,
}

impl<'a> Iterator for Components<'a> {
    type Item = Component<'a>;

    fn next(&mut self) -> Option<Component<'a>> {
        let element = self.reader.next().ok()??;
        Some(Component {
            kind: ComponentKind(element.kind as u16),
            value: element.value,
        })
    }
}

/// One component of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Component<'a> {
    /// Its type.
    pub kind: ComponentKind,
    /// Its value: any bytes.
    pub value: &'a [u8],
}

impl Component<'_> {
    /// The value as a number, if it has the length of one.
    pub fn number(&self) -> Option<u64> {
        tlv::read_integer(self.kind.0.into(), self.value).ok()
    }
}

/// The type of a component: a number from 1 to 65535.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentKind(u16);

impl ComponentKind {
    /// Any bytes, without a special meaning.
    pub const GENERIC: Self = Self(8);
    /// The SHA-256 digest of a whole Data packet.
    pub const IMPLICIT_DIGEST: Self = Self(kind::IMPLICIT_DIGEST as u16);
    /// The SHA-256 digest of an Interest's parameters.
    pub const PARAMETERS_DIGEST: Self = Self(kind::PARAMETERS_DIGEST as u16);
    /// A word with a well-known meaning.
    pub const KEYWORD: Self = Self(0x20);
    /// The number of a segment.
    pub const SEGMENT: Self = Self(0x32);
    /// The byte offset of a segment.
    pub const BYTE_OFFSET: Self = Self(0x34);
    /// A version.
    pub const VERSION: Self = Self(0x36);
    /// Microseconds since 1970.
    pub const TIMESTAMP: Self = Self(0x38);
    /// A sequence number.
    pub const SEQUENCE: Self = Self(0x3a);

    /// `None` for 0, which is not a type.
    pub fn from_number(number: u16) -> Option<Self> {
        (number != 0).then_some(Self(number))
    }

    /// Its type number.
    pub const fn number(self) -> u16 {
        self.0
    }
}

fn check_component(kind: ComponentKind, length: usize) -> Result<(), NameError> {
    let is_digest = matches!(
        kind,
        ComponentKind::IMPLICIT_DIGEST | ComponentKind::PARAMETERS_DIGEST
    );
    if is_digest && length != 32 {
        return Err(NameError::BadDigest(length));
    }
    Ok(())
}

/// Components with a number as value, and their abbreviations in texts.
const NUMBERED: [(&str, ComponentKind); 5] = [
    ("seg", ComponentKind::SEGMENT),
    ("off", ComponentKind::BYTE_OFFSET),
    ("v", ComponentKind::VERSION),
    ("t", ComponentKind::TIMESTAMP),
    ("seq", ComponentKind::SEQUENCE),
];

/// Digest components and their abbreviations.
const DIGESTS: [(&str, ComponentKind); 2] = [
    ("sha256digest", ComponentKind::IMPLICIT_DIGEST),
    ("params-sha256", ComponentKind::PARAMETERS_DIGEST),
];

/// The URI form, with everything but letters, digits and `-._~` as `%XX`.
impl fmt::Display for NameRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_char('/');
        }
        for component in self.components() {
            f.write_char('/')?;
            fmt::Display::fmt(&component, f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Component<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbered = NUMBERED.iter().find(|(_, kind)| *kind == self.kind);
        if let (Some((label, _)), Some(number)) = (numbered, self.number())
            && tlv::integer_bytes(number).1 == 8 - self.value.len()
        {
            return write!(f, "{label}={number}");
        }
        if let Some((label, _)) = DIGESTS.iter().find(|(_, kind)| *kind == self.kind) {
            write!(f, "{label}=")?;
            return self
                .value
                .iter()
                .try_for_each(|byte| write!(f, "{byte:02x}"));
        }
        if self.kind != ComponentKind::GENERIC {
            write!(f, "{}=", self.kind.0)?;
        }
        // A value of dots alone gets three more: `.` and `..` have a meaning in URIs.
        if self.value.iter().all(|&byte| byte == b'.') {
            f.write_str("...")?;
        }
        self.value.iter().try_for_each(|&byte| match byte {
            b'-' | b'.' | b'_' | b'~' => f.write_char(byte.into()),
            _ if byte.is_ascii_alphanumeric() => f.write_char(byte.into()),
            _ => write!(f, "%{byte:02X}"),
        })
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let text = text.strip_prefix("ndn:").unwrap_or(text);
        let text = text.strip_prefix('/').ok_or(NameError::BadText)?;
        let mut name = Self::new();
        if text.is_empty() {
            return Ok(name);
        }
        for part in text.split('/') {
            push_text(&mut name, part)?;
        }
        Ok(name)
    }
}

fn push_text(name: &mut Name, text: &str) -> Result<(), NameError> {
    let Some((label, rest)) = text.split_once('=') else {
        return name.push(ComponentKind::GENERIC, &unescape(text)?);
    };
    if let Some((_, kind)) = NUMBERED.iter().find(|(known, _)| *known == label) {
        let number = rest.parse().map_err(|_| NameError::BadText)?;
        return name.push_number(*kind, number);
    }
    if let Some((_, kind)) = DIGESTS.iter().find(|(known, _)| *known == label) {
        return name.push(*kind, &unhex(rest.as_bytes())?);
    }
    let number: u32 = label.parse().map_err(|_| NameError::BadText)?;
    let kind = u16::try_from(number).ok();
    let kind = kind.and_then(ComponentKind::from_number);
    name.push(kind.ok_or(NameError::BadKind(number))?, &unescape(rest)?)
}

fn unescape(text: &str) -> Result<Vec<u8>, NameError> {
    // Without the three dots, an empty component or one of dots alone would be a relative path.
    let text = if text.bytes().all(|byte| byte == b'.') {
        text.strip_prefix("...").ok_or(NameError::BadText)?
    } else {
        text
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let (digits, after) = after.split_at_checked(2).ok_or(NameError::BadText)?;
            bytes.extend_from_slice(&unhex(digits)?);
            rest = after;
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    Ok(bytes)
}

fn unhex(digits: &[u8]) -> Result<Vec<u8>, NameError> {
    let digit = |byte: u8| (byte as char).to_digit(16).ok_or(NameError::BadText);
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(NameError::BadText);
    }
    let byte = |&[high, low]: &[u8; 2]| Ok((digit(high)? << 4 | digit(low)?) as u8);
    pairs.iter().map(byte).collect()
}
