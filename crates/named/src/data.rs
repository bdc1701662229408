//! Data packets: named, signed content.

use std::time::Duration;

use crate::error::{DecodeError, EncodeError, VerifyError};
use crate::name::NameRef;
use crate::signature::{SignatureInfo, SignatureStamp, Signer, Verifier, sha256};
use crate::tlv::{self, Fields, MAX_PACKET, Reader, kind};

/// Content of no special type.
pub const BLOB: u64 = 0;
/// Content that is a list of names to continue with.
pub const LINK: u64 = 1;
/// Content that is a certificate.
pub const KEY: u64 = 2;
/// The producer states that there is no content of this name.
pub const NO_CONTENT: u64 = 3;

/// Builds a Data packet.
///
/// ```
/// use std::time::Duration;
/// use prescient_named::{Data, DataBuilder, Name, Signer};
///
/// let name: Name = "/game/0/anna/status/sync/7/8".parse()?;
/// let signer = Signer::hmac(b"a key that both share", None);
/// let mut bytes = Vec::new();
/// DataBuilder::new(name.view())
///     .freshness(Duration::from_millis(20))
///     .content(b"version 7")
///     .sign(&signer, &mut bytes)?;
/// let data = Data::decode(&bytes)?;
/// data.verify(&signer.verifier())?;
/// assert_eq!(data.content(), b"version 7");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DataBuilder<'a> {
    name: NameRef<'a>,
    content_type: u64,
    freshness: Option<Duration>,
    final_block: Option<NameRef<'a>>,
    content: &'a [u8],
}

impl<'a> DataBuilder<'a> {
    /// Data without content and without a freshness period: it never answers an Interest with MustBeFresh
    /// from a cache.
    pub fn new(name: NameRef<'a>) -> Self {
        Self {
            name,
            content_type: BLOB,
            freshness: None,
            final_block: None,
            content: &[],
        }
    }

    /// The type of the content; [`BLOB`] by default.
    pub fn content_type(mut self, content_type: u64) -> Self {
        self.content_type = content_type;
        self
    }

    /// How long a cache treats the packet as fresh after its arrival there, in whole milliseconds.
    pub fn freshness(mut self, period: Duration) -> Self {
        self.freshness = Some(period);
        self
    }

    /// Marks the end of a sequence of packets: the last component of this name is that of the last packet.
    pub fn final_block(mut self, last: NameRef<'a>) -> Self {
        self.final_block = Some(last);
        self
    }

    /// The content.
    pub fn content(mut self, content: &'a [u8]) -> Self {
        self.content = content;
        self
    }

    /// Appends the packet to `bytes`.
    pub fn sign(&self, signer: &Signer, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let start = bytes.len();
        tlv::write_nested(bytes, kind::DATA, |bytes| {
            let signed = bytes.len();
            self.write(bytes);
            let info = signer.info(SignatureStamp::default());
            info.write(bytes, kind::SIGNATURE_INFO);
            let mut value = Vec::new();
            signer.write(&mut value, kind::SIGNATURE_VALUE, &[&bytes[signed..]]);
            bytes.extend_from_slice(&value);
        });
        let length = bytes.len() - start;
        if length > MAX_PACKET {
            bytes.truncate(start);
            return Err(EncodeError::TooLong {
                length,
                limit: MAX_PACKET,
            });
        }
        Ok(())
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        tlv::write_element(bytes, kind::NAME, self.name.as_bytes());
        let last = self.final_block.filter(|name| !name.is_empty());
        if self.content_type != BLOB || self.freshness.is_some() || last.is_some() {
            tlv::write_nested(bytes, kind::META_INFO, |bytes| {
                if self.content_type != BLOB {
                    tlv::write_integer(bytes, kind::CONTENT_TYPE, self.content_type);
                }
                if let Some(period) = self.freshness {
                    let milliseconds = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
                    tlv::write_integer(bytes, kind::FRESHNESS_PERIOD, milliseconds);
                }
                if let Some(name) = last {
                    let component = name.suffix(name.len() - 1);
                    tlv::write_element(bytes, kind::FINAL_BLOCK_ID, component.as_bytes());
                }
            });
        }
        if !self.content.is_empty() {
            tlv::write_element(bytes, kind::CONTENT, self.content);
        }
    }
}

/// A view of a received Data packet.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    wire: &'a [u8],
    name: NameRef<'a>,
    content_type: u64,
    freshness: Option<u64>,
    final_block: Option<NameRef<'a>>,
    content: &'a [u8],
    info: SignatureInfo<'a>,
    /// Name through SignatureInfo.
    signed: &'a [u8],
    signature: &'a [u8],
}

const ORDER: [u32; 5] = [
    kind::NAME,
    kind::META_INFO,
    kind::CONTENT,
    kind::SIGNATURE_INFO,
    kind::SIGNATURE_VALUE,
];

const META_ORDER: [u32; 3] = [
    kind::CONTENT_TYPE,
    kind::FRESHNESS_PERIOD,
    kind::FINAL_BLOCK_ID,
];

impl<'a> Data<'a> {
    /// Decodes a packet, which is all of `wire`. Does not check the signature; see
    /// [`verify`](Self::verify).
    pub fn decode(wire: &'a [u8]) -> Result<Self, DecodeError> {
        let value = tlv::read_packet(wire, kind::DATA)?;
        let mut fields = Fields::new(value, &ORDER);
        let first = fields.next()?.filter(|element| element.kind == kind::NAME);
        let first = first.ok_or(DecodeError::Missing { kind: kind::NAME })?;
        let name = NameRef::decode(first.value)?;
        let mut data = Self {
            wire,
            name,
            content_type: BLOB,
            freshness: None,
            final_block: None,
            content: &[],
            info: SignatureInfo::NONE,
            signed: &[],
            signature: &[],
        };
        let (mut has_info, mut has_value) = (false, false);
        while let Some(element) = fields.next()? {
            match element.kind {
                kind::META_INFO => data.read_meta(element.value)?,
                kind::CONTENT => data.content = element.value,
                kind::SIGNATURE_INFO => {
                    data.info = SignatureInfo::read(element.value)?;
                    data.signed = &value[..value.len() - fields.left()];
                    has_info = true;
                }
                kind::SIGNATURE_VALUE => {
                    data.signature = element.value;
                    has_value = true;
                }
                _ => {}
            }
        }
        for (has, kind) in [
            (has_info, kind::SIGNATURE_INFO),
            (has_value, kind::SIGNATURE_VALUE),
        ] {
            if !has {
                return Err(DecodeError::Missing { kind });
            }
        }
        Ok(data)
    }

    fn read_meta(&mut self, value: &'a [u8]) -> Result<(), DecodeError> {
        let mut fields = Fields::new(value, &META_ORDER);
        while let Some(element) = fields.next()? {
            match element.kind {
                kind::CONTENT_TYPE => {
                    self.content_type = tlv::read_integer(element.kind, element.value)?;
                }
                kind::FRESHNESS_PERIOD => {
                    let period = tlv::read_integer(element.kind, element.value)?;
                    self.freshness = Some(period);
                }
                _ => {
                    let component = NameRef::decode(element.value)?;
                    let mut reader = Reader::new(element.value);
                    reader.element()?;
                    if !reader.is_empty() {
                        return Err(DecodeError::Trailing);
                    }
                    self.final_block = Some(component);
                }
            }
        }
        Ok(())
    }

    /// The whole packet.
    pub fn wire(&self) -> &'a [u8] {
        self.wire
    }

    /// Its name.
    pub fn name(&self) -> NameRef<'a> {
        self.name
    }

    /// The type of the content.
    pub fn content_type(&self) -> u64 {
        self.content_type
    }

    /// How long a cache treats it as fresh; zero if the packet has no such field.
    pub fn freshness(&self) -> Duration {
        Duration::from_millis(self.freshness.unwrap_or(0))
    }

    /// The last component of the last packet of a sequence, as a name of one component.
    pub fn final_block(&self) -> Option<NameRef<'a>> {
        self.final_block
    }

    /// The content.
    pub fn content(&self) -> &'a [u8] {
        self.content
    }

    /// SignatureInfo: how the packet was signed.
    pub fn signature(&self) -> SignatureInfo<'a> {
        self.info
    }

    /// Checks the signature.
    pub fn verify(&self, verifier: &Verifier) -> Result<(), VerifyError> {
        verifier.check(&self.info, &[self.signed], self.signature)
    }

    /// SHA-256 of the whole packet. An Interest whose name ends in it requests exactly this packet.
    pub fn implicit_digest(&self) -> [u8; 32] {
        sha256(&[self.wire])
    }
}
