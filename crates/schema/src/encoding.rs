//! A schema as bytes.
//!
//! The bytes are fingerprinted, and sent to a peer whose schema differs if both ends tolerate that:
//! a client decodes packets by the *server's* schema and projects the rows onto its own. Unsigned
//! numbers are little-endian base 128, signed ones zigzag first, names are prefixed by their
//! length. Contracts are encoded by name only; the reader must have the functions.

use alloc::{string::String, vec::Vec};
use core::fmt;

use crate::{
    Class, Contract, CustomFloat, Derivative, EventDelivery, Field, FieldKind, FloatFormat, Level,
    Priority, Schema, SchemaError, Step,
};

/// First byte of every encoded schema; it changes with the meaning of any later byte.
const VERSION: u8 = 1;

/// Marks an optional table in the byte of a class's priority.
const OPTIONAL: u8 = 4;

/// Marks an event in the same byte, which has its delivery in place of a priority.
const EVENT: u8 = 8;

impl Schema {
    /// The canonical bytes: equal exactly when the schemas are.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer(alloc::vec![VERSION]);
        out.list(&self.classes, Writer::class);
        out.0
    }

    /// Decodes a remote schema. Its contracts must be among those of this schema.
    pub fn read_other(&self, bytes: &[u8]) -> Result<Self, DecodeError> {
        let contracts = self
            .classes
            .iter()
            .filter_map(|class| class.contract.clone());
        Self::from_bytes(bytes, &contracts.collect::<Vec<_>>())
    }

    /// Decodes and validates the output of [`to_bytes`](Self::to_bytes); `contracts` are those that
    /// this program has.
    pub fn from_bytes(bytes: &[u8], contracts: &[Contract]) -> Result<Self, DecodeError> {
        let mut from = Reader {
            bytes,
            contracts,
            inside: false,
        };
        if from.byte()? != VERSION {
            return Err(DecodeError::Version);
        }
        let classes = from.list(Self::MAX_CLASSES, Reader::class)?;
        if !from.bytes.is_empty() {
            return Err(DecodeError::Malformed);
        }
        let schema = Self { classes };
        schema.validate().map_err(DecodeError::Invalid)?;
        Ok(schema)
    }
}

/// Why bytes are not a valid schema.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// Written by another version of this format.
    Version,
    /// The bytes end too early or too late, or have no meaning.
    Malformed,
    /// A class is predicted by a function that this program does not have.
    UnknownContract(String),
    /// The schema breaks a rule.
    Invalid(SchemaError),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version => f.write_str("the schema is in another version of the format"),
            Self::Malformed => f.write_str("the bytes are not a schema"),
            Self::UnknownContract(name) => {
                write!(
                    f,
                    "this program has no prediction function `{}`",
                    name.escape_debug()
                )
            }
            Self::Invalid(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for DecodeError {}

struct Writer(Vec<u8>);

struct Reader<'a> {
    bytes: &'a [u8],
    contracts: &'a [Contract],
    /// Whether the columns of a container's item are being read.
    inside: bool,
}

impl Writer {
    fn class(&mut self, class: &Class) {
        self.name(&class.name);
        let mut index = 0;
        self.list(&class.fields, |out, field| {
            out.field(field, class.keys == Some(index));
            index += 1;
        });
        self.index(class.owner);
        self.list(&class.position, |out, index| out.number(u64::from(*index)));
        self.index(class.group);
        self.0.push(match class.event {
            Some(delivery) => EVENT | delivery as u8,
            None => class.priority.get() | if class.optional { OPTIONAL } else { 0 },
        });
        match &class.contract {
            Some(contract) => self.name(&contract.name),
            None => self.name(""),
        }
    }
}

impl Reader<'_> {
    fn class(&mut self) -> Result<Class, DecodeError> {
        let name = self.name()?;
        let (mut index, mut keys) = (0, None);
        let fields = self.list(Class::MAX_FIELDS, |from| {
            let (field, has_keys) = from.field()?;
            if has_keys && keys.replace(index).is_some() {
                return Err(DecodeError::Malformed);
            }
            index += 1;
            Ok(field)
        })?;
        let owner = self.index()?;
        let position = self.list(Class::MAX_FIELDS, Reader::small)?;
        let group = self.index()?;
        let flags = self.byte()?;
        let event = match flags & EVENT {
            0 => None,
            _ => Some(EventDelivery::new(flags & !EVENT).ok_or(DecodeError::Malformed)?),
        };
        let priority = match event {
            Some(_) => Priority::default(),
            None => Priority::new(flags & !OPTIONAL).ok_or(DecodeError::Malformed)?,
        };
        Ok(Class {
            name,
            fields,
            owner,
            position,
            group,
            keys,
            priority,
            optional: event.is_none() && flags & OPTIONAL != 0,
            event,
            contract: match self.name()? {
                name if name.is_empty() => None,
                name => match self.contracts.iter().find(|known| known.name == name) {
                    Some(known) => Some(known.clone()),
                    None => return Err(DecodeError::UnknownContract(name)),
                },
            },
        })
    }
}

impl Writer {
    fn field(&mut self, field: &Field, has_keys: bool) {
        self.name(&field.name);
        self.kind(&field.kind);
        self.0.push(field.priority.get());
        let flags = [field.only_on_spawn, field.optional, has_keys];
        let flags = flags.iter().rev();
        self.0
            .push(flags.fold(0, |byte, flag| byte << 1 | u8::from(*flag)));
        match field.derivative_of {
            None => self.index(None),
            Some(rate) => {
                self.index(Some(rate.of));
                self.signed(i64::from(rate.numerator));
                self.number(u64::from(rate.denominator));
            }
        }
        self.0.extend(field.coarser);
    }
}

impl Reader<'_> {
    /// A field, and whether it holds the owner's input state.
    fn field(&mut self) -> Result<(Field, bool), DecodeError> {
        let mut field = Field::new(self.name()?, self.kind()?);
        field.priority = self.priority()?;
        let flags = self.byte()?;
        if flags > 7 {
            return Err(DecodeError::Malformed);
        }
        (field.only_on_spawn, field.optional) = (flags & 1 == 1, flags & 2 == 2);
        if let Some(of) = self.index()? {
            field.derivative_of = Some(Derivative {
                of,
                numerator: self.signed()?,
                denominator: self.small()?,
            });
        }
        for shift in &mut field.coarser {
            *shift = self.byte()?;
        }
        Ok((field, flags & 4 == 4))
    }
}

impl Writer {
    fn kind(&mut self, kind: &FieldKind) {
        match kind {
            FieldKind::Int { bits, signed } => self.0.extend([0, *bits, u8::from(*signed)]),
            FieldKind::Enum { values } => {
                self.0.push(1);
                self.number(u64::from(*values));
            }
            FieldKind::Bool => self.0.push(2),
            FieldKind::Variant { names } => {
                self.0.push(3);
                self.list(names, |out, name| out.name(name));
            }
            FieldKind::Step { step, bits } => {
                self.0.extend([4, *bits]);
                self.number(step.numerator());
                self.number(step.denominator());
            }
            FieldKind::F32 => self.0.push(5),
            FieldKind::F64 => self.0.push(6),
            FieldKind::Custom(float) => {
                self.0.push(7);
                for level in levels() {
                    let format = float.format(level);
                    self.0.extend([format.mantissa(), format.exponent()]);
                    self.signed(i64::from(format.bias()));
                }
            }
            FieldKind::Text { max_len } => {
                self.0.push(8);
                self.number(u64::from(*max_len));
            }
            FieldKind::Bytes { max_len } => {
                self.0.push(9);
                self.number(u64::from(*max_len));
            }
            FieldKind::List { item, max_len } => {
                self.0.push(10);
                self.items(item, *max_len);
            }
            FieldKind::Map { item, key, max_len } => {
                self.0.extend([11, *key]);
                self.items(item, *max_len);
            }
            FieldKind::Reference { class } => {
                self.0.push(12);
                self.name(class.as_deref().unwrap_or_default());
            }
        }
    }
}

impl Reader<'_> {
    fn kind(&mut self) -> Result<FieldKind, DecodeError> {
        Ok(match self.byte()? {
            0 => FieldKind::Int {
                bits: self.byte()?,
                signed: self.flag()?,
            },
            1 => FieldKind::Enum {
                values: self.small()?,
            },
            2 => FieldKind::Bool,
            3 => FieldKind::Variant {
                names: self.list(usize::from(u16::MAX), Reader::name)?,
            },
            4 => {
                let bits = self.byte()?;
                let (numerator, denominator) = (self.number()?, self.number()?);
                let step = Step::ratio(numerator, denominator);
                let step = step.map_err(|_| DecodeError::Malformed)?;
                // Only the reduced ratio is canonical.
                if step.numerator() != numerator {
                    return Err(DecodeError::Malformed);
                }
                FieldKind::Step { step, bits }
            }
            5 => FieldKind::F32,
            6 => FieldKind::F64,
            7 => {
                let mut formats = [FloatFormat::BINARY64; 4];
                for format in &mut formats {
                    let (mantissa, exponent) = (self.byte()?, self.byte()?);
                    *format = FloatFormat::new(mantissa, exponent, self.signed()?)
                        .ok_or(DecodeError::Malformed)?;
                }
                FieldKind::Custom(CustomFloat::new(formats).ok_or(DecodeError::Malformed)?)
            }
            8 => FieldKind::Text {
                max_len: self.small()?,
            },
            9 => FieldKind::Bytes {
                max_len: self.small()?,
            },
            10 => {
                let (item, max_len) = self.items()?;
                FieldKind::List { item, max_len }
            }
            11 => {
                let key = self.byte()?;
                let (item, max_len) = self.items()?;
                FieldKind::Map { item, key, max_len }
            }
            12 => {
                let class = self.name()?;
                FieldKind::Reference {
                    class: (!class.is_empty()).then_some(class),
                }
            }
            _ => return Err(DecodeError::Malformed),
        })
    }
}

impl Writer {
    /// Writes an item's columns, with only the properties that may be declared on them.
    fn items(&mut self, item: &[Field], max_len: u32) {
        self.list(item, |out, field| {
            out.name(&field.name);
            out.kind(&field.kind);
        });
        self.number(u64::from(max_len));
    }
}

impl Reader<'_> {
    fn items(&mut self) -> Result<(Vec<Field>, u32), DecodeError> {
        // Containers do not hold containers, so untrusted bytes cannot nest deeper.
        if core::mem::replace(&mut self.inside, true) {
            return Err(DecodeError::Malformed);
        }
        let column = |from: &mut Self| Ok(Field::new(from.name()?, from.kind()?));
        let item = self.list(Class::MAX_FIELDS, column)?;
        self.inside = false;
        Ok((item, self.small()?))
    }
}

impl Writer {
    fn number(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn signed(&mut self, value: i64) {
        self.number((value << 1 ^ value >> 63) as u64);
    }

    /// One more than the index, 0 for none.
    fn index(&mut self, index: Option<u16>) {
        self.number(index.map_or(0, |index| u64::from(index) + 1));
    }

    fn name(&mut self, name: &str) {
        self.number(name.len() as u64);
        self.0.extend(name.as_bytes());
    }

    fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.number(items.len() as u64);
        for item in items {
            write(self, item);
        }
    }
}

impl Reader<'_> {
    fn number(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part || (byte == 0 && shift > 0) {
                return Err(DecodeError::Malformed);
            }
            value |= part << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DecodeError::Malformed)
    }

    fn small<T: TryFrom<u64>>(&mut self) -> Result<T, DecodeError> {
        T::try_from(self.number()?).map_err(|_| DecodeError::Malformed)
    }

    fn signed<T: TryFrom<i64>>(&mut self) -> Result<T, DecodeError> {
        let value = self.number()?;
        let value = (value >> 1) as i64 ^ -((value & 1) as i64);
        T::try_from(value).map_err(|_| DecodeError::Malformed)
    }

    fn index(&mut self) -> Result<Option<u16>, DecodeError> {
        match self.number()?.checked_sub(1) {
            None => Ok(None),
            Some(index) => u16::try_from(index)
                .map(Some)
                .map_err(|_| DecodeError::Malformed),
        }
    }

    fn name(&mut self) -> Result<String, DecodeError> {
        let length: usize = self.small()?;
        let Some((name, rest)) = self.bytes.split_at_checked(length) else {
            return Err(DecodeError::Malformed);
        };
        self.bytes = rest;
        let name = core::str::from_utf8(name).map_err(|_| DecodeError::Malformed)?;
        Ok(name.into())
    }

    fn list<T>(
        &mut self,
        max_len: usize,
        mut read: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let length: usize = self.small()?;
        if length > max_len {
            return Err(DecodeError::Malformed);
        }
        // Not reserved in advance: the length is untrusted.
        (0..length).map(|_| read(self)).collect()
    }

    fn priority(&mut self) -> Result<Priority, DecodeError> {
        Priority::new(self.byte()?).ok_or(DecodeError::Malformed)
    }

    fn flag(&mut self) -> Result<bool, DecodeError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Malformed),
        }
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        let (first, rest) = self.bytes.split_first().ok_or(DecodeError::Malformed)?;
        self.bytes = rest;
        Ok(*first)
    }
}

fn levels() -> impl Iterator<Item = Level> {
    (0..4).filter_map(Level::new)
}
