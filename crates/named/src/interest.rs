//! Interest packets: a request for Data by its name.

use std::time::Duration;

use crate::error::{DecodeError, EncodeError, VerifyError};
use crate::name::{ComponentKind, MAX_COMPONENTS, Name, NameRef};
use crate::signature::{SignatureInfo, SignatureStamp, Signer, Verifier, sha256};
use crate::tlv::{self, Element, Fields, MAX_PACKET, Reader, kind};

/// The lifetime of an Interest without such a field.
pub const DEFAULT_LIFETIME: Duration = Duration::from_secs(4);

/// The most names that a forwarding hint may list.
pub const MAX_HINTS: usize = 8;

/// Builds an Interest packet.
///
/// ```
/// use std::time::Duration;
/// use prescient_named::{Interest, InterestBuilder, Name};
///
/// let name: Name = "/game/0/anna/status/sync/7".parse()?;
/// let mut bytes = Vec::new();
/// InterestBuilder::new(name.view())
///     .can_be_prefix()
///     .must_be_fresh()
///     .nonce([1, 2, 3, 4])
///     .lifetime(Duration::from_secs(1))
///     .encode(&mut bytes)?;
/// let interest = Interest::decode(&bytes)?;
/// assert_eq!(interest.name(), name.view());
/// assert_eq!(interest.lifetime(), Duration::from_secs(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct InterestBuilder<'a> {
    name: NameRef<'a>,
    can_be_prefix: bool,
    must_be_fresh: bool,
    forwarding_hint: &'a [Name],
    nonce: Option<[u8; 4]>,
    lifetime: Option<Duration>,
    hop_limit: Option<u8>,
    parameters: Option<&'a [u8]>,
}

impl<'a> InterestBuilder<'a> {
    /// An Interest for Data of exactly this name.
    pub fn new(name: NameRef<'a>) -> Self {
        Self {
            name,
            can_be_prefix: false,
            must_be_fresh: false,
            forwarding_hint: &[],
            nonce: None,
            lifetime: None,
            hop_limit: None,
            parameters: None,
        }
    }

    /// Data with a longer name is an answer, too.
    pub fn can_be_prefix(mut self) -> Self {
        self.can_be_prefix = true;
        self
    }

    /// Caches may answer only with Data that is still fresh.
    pub fn must_be_fresh(mut self) -> Self {
        self.must_be_fresh = true;
        self
    }

    /// Prefixes by which forwarders without a route for the name itself forward the Interest; only the
    /// first [`MAX_HINTS`] are written.
    pub fn forwarding_hint(mut self, prefixes: &'a [Name]) -> Self {
        self.forwarding_hint = prefixes;
        self
    }

    /// A random number, by which forwarders detect loops. A forwarder adds one if it is absent.
    pub fn nonce(mut self, nonce: [u8; 4]) -> Self {
        self.nonce = Some(nonce);
        self
    }

    /// How long forwarders keep it pending, in whole milliseconds; [`DEFAULT_LIFETIME`] by default.
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// The number of forwarders that it may pass.
    pub fn hop_limit(mut self, limit: u8) -> Self {
        self.hop_limit = Some(limit);
        self
    }

    /// Application parameters. Their digest becomes the last component of the name.
    pub fn parameters(mut self, parameters: &'a [u8]) -> Self {
        self.parameters = Some(parameters);
        self
    }

    /// Appends the packet to `bytes`.
    pub fn encode(&self, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let mut tail = Vec::new();
        if let Some(parameters) = self.parameters {
            tlv::write_element(&mut tail, kind::APPLICATION_PARAMETERS, parameters);
        }
        self.write(bytes, &tail)
    }

    /// Appends the signed packet to `bytes`. A signed Interest always has parameters, empty ones by default.
    pub fn sign(
        &self,
        signer: &Signer,
        stamp: SignatureStamp<'_>,
        bytes: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let mut tail = Vec::new();
        let parameters = self.parameters.unwrap_or_default();
        tlv::write_element(&mut tail, kind::APPLICATION_PARAMETERS, parameters);
        signer
            .info(stamp)
            .write(&mut tail, kind::INTEREST_SIGNATURE_INFO);
        let signed = tail.clone();
        let pieces = [self.name.as_bytes(), &signed];
        signer.write(&mut tail, kind::INTEREST_SIGNATURE_VALUE, &pieces);
        self.write(bytes, &tail)
    }

    /// `tail` is the part of the packet from the parameters to the end.
    fn write(&self, bytes: &mut Vec<u8>, tail: &[u8]) -> Result<(), EncodeError> {
        if self.name.is_empty() {
            return Err(EncodeError::EmptyName);
        }
        let is_digest = |kind| kind == ComponentKind::PARAMETERS_DIGEST;
        if self.name.components().any(|part| is_digest(part.kind)) {
            return Err(EncodeError::HasParametersDigest);
        }
        if !tail.is_empty() && self.name.len() == MAX_COMPONENTS {
            return Err(EncodeError::TooDeep);
        }
        let start = bytes.len();
        tlv::write_nested(bytes, kind::INTEREST, |bytes| {
            tlv::write_nested(bytes, kind::NAME, |bytes| {
                bytes.extend_from_slice(self.name.as_bytes());
                if !tail.is_empty() {
                    tlv::write_element(bytes, kind::PARAMETERS_DIGEST, &sha256(&[tail]));
                }
            });
            if self.can_be_prefix {
                tlv::write_element(bytes, kind::CAN_BE_PREFIX, &[]);
            }
            if self.must_be_fresh {
                tlv::write_element(bytes, kind::MUST_BE_FRESH, &[]);
            }
            if !self.forwarding_hint.is_empty() {
                tlv::write_nested(bytes, kind::FORWARDING_HINT, |bytes| {
                    for name in self.forwarding_hint.iter().take(MAX_HINTS) {
                        tlv::write_element(bytes, kind::NAME, name.view().as_bytes());
                    }
                });
            }
            if let Some(nonce) = self.nonce {
                tlv::write_element(bytes, kind::NONCE, &nonce);
            }
            if let Some(lifetime) = self.lifetime {
                let milliseconds = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
                tlv::write_integer(bytes, kind::INTEREST_LIFETIME, milliseconds);
            }
            if let Some(limit) = self.hop_limit {
                tlv::write_element(bytes, kind::HOP_LIMIT, &[limit]);
            }
            bytes.extend_from_slice(tail);
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
}

/// A view of a received Interest.
#[derive(Clone, Copy, Debug)]
pub struct Interest<'a> {
    wire: &'a [u8],
    name: NameRef<'a>,
    can_be_prefix: bool,
    must_be_fresh: bool,
    forwarding_hint: &'a [u8],
    nonce: Option<[u8; 4]>,
    lifetime: Option<u64>,
    hop_limit: Option<u8>,
    parameters: Option<&'a [u8]>,
    signature: Option<Signature<'a>>,
    places: Places,
}

#[derive(Clone, Copy, Debug)]
struct Signature<'a> {
    info: SignatureInfo<'a>,
    /// ApplicationParameters through InterestSignatureInfo.
    signed: &'a [u8],
    value: &'a [u8],
}

/// Offsets of the fields that a forwarder changes or adds.
#[derive(Clone, Copy, Debug, Default)]
struct Places {
    /// The start of the name, after the type and length of the packet.
    start: usize,
    /// The nonce's value, or the place to insert a nonce.
    nonce: usize,
    hop_limit: usize,
}

const ORDER: [u32; 10] = [
    kind::NAME,
    kind::CAN_BE_PREFIX,
    kind::MUST_BE_FRESH,
    kind::FORWARDING_HINT,
    kind::NONCE,
    kind::INTEREST_LIFETIME,
    kind::HOP_LIMIT,
    kind::APPLICATION_PARAMETERS,
    kind::INTEREST_SIGNATURE_INFO,
    kind::INTEREST_SIGNATURE_VALUE,
];

impl<'a> Interest<'a> {
    /// Decodes a packet, which is all of `wire`. Refuses parameters that do not match the digest in the
    /// name.
    pub fn decode(wire: &'a [u8]) -> Result<Self, DecodeError> {
        let value = tlv::read_packet(wire, kind::INTEREST)?;
        let mut fields = Fields::new(value, &ORDER);
        let first = fields.next()?.filter(|element| element.kind == kind::NAME);
        let first = first.ok_or(DecodeError::Missing { kind: kind::NAME })?;
        let name = NameRef::decode(first.value)?;
        if name.is_empty() {
            return Err(DecodeError::BadLength {
                kind: kind::NAME,
                length: 0,
            });
        }
        let mut interest = Self {
            wire,
            name,
            can_be_prefix: false,
            must_be_fresh: false,
            forwarding_hint: &[],
            nonce: None,
            lifetime: None,
            hop_limit: None,
            parameters: None,
            signature: None,
            places: Places {
                start: wire.len() - value.len(),
                nonce: wire.len() - fields.left(),
                hop_limit: 0,
            },
        };
        let mut tail = None;
        let mut info = None;
        while let Some(element) = fields.next()? {
            let Element { kind, value, .. } = element;
            let end = wire.len() - fields.left();
            match kind {
                kind::CAN_BE_PREFIX => {
                    tlv::read_flag(kind, value)?;
                    interest.can_be_prefix = true;
                    interest.places.nonce = end;
                }
                kind::MUST_BE_FRESH => {
                    tlv::read_flag(kind, value)?;
                    interest.must_be_fresh = true;
                    interest.places.nonce = end;
                }
                kind::FORWARDING_HINT => {
                    check_hint(value)?;
                    interest.forwarding_hint = value;
                    interest.places.nonce = end;
                }
                kind::NONCE => {
                    interest.nonce = Some(tlv::read_array(kind, value)?);
                    interest.places.nonce = end - 4;
                }
                kind::INTEREST_LIFETIME => {
                    interest.lifetime = Some(tlv::read_integer(kind, value)?);
                }
                kind::HOP_LIMIT => {
                    let [limit] = tlv::read_array(kind, value)?;
                    interest.hop_limit = Some(limit);
                    interest.places.hop_limit = end - 1;
                }
                kind::APPLICATION_PARAMETERS => {
                    interest.parameters = Some(value);
                    let start = end - element.wire.len();
                    tail = Some((start, &wire[start..]));
                }
                kind::INTEREST_SIGNATURE_INFO => {
                    info = Some((SignatureInfo::read(value)?, end));
                }
                kind::INTEREST_SIGNATURE_VALUE => {
                    let (info, info_end) = info.ok_or(DecodeError::Missing {
                        kind: kind::INTEREST_SIGNATURE_INFO,
                    })?;
                    let (start, _) = tail.ok_or(DecodeError::Missing {
                        kind: kind::APPLICATION_PARAMETERS,
                    })?;
                    interest.signature = Some(Signature {
                        info,
                        signed: &wire[start..info_end],
                        value,
                    });
                }
                _ => {}
            }
        }
        if info.is_some() && interest.signature.is_none() {
            return Err(DecodeError::Missing {
                kind: kind::INTEREST_SIGNATURE_VALUE,
            });
        }
        interest.check_parameters(tail.map(|(_, tail)| tail))?;
        Ok(interest)
    }

    /// Checks that the name has one digest, the right one, if there are parameters, and none otherwise.
    fn check_parameters(&self, tail: Option<&[u8]>) -> Result<(), DecodeError> {
        let is_digest = |kind| kind == ComponentKind::PARAMETERS_DIGEST;
        let mut digests = self.name.components().filter(|part| is_digest(part.kind));
        let is_right = match (digests.next(), tail) {
            (Some(digest), Some(tail)) => digest.value == sha256(&[tail]),
            (digest, tail) => digest.is_none() && tail.is_none(),
        };
        if !is_right || digests.next().is_some() {
            return Err(DecodeError::BadParametersDigest);
        }
        Ok(())
    }

    /// The whole packet.
    pub fn wire(&self) -> &'a [u8] {
        self.wire
    }

    /// The requested name.
    pub fn name(&self) -> NameRef<'a> {
        self.name
    }

    /// Whether Data may have a longer name.
    pub fn can_be_prefix(&self) -> bool {
        self.can_be_prefix
    }

    /// Whether Data from a cache must be fresh.
    pub fn must_be_fresh(&self) -> bool {
        self.must_be_fresh
    }

    /// Prefixes by which to forward it if there is no route for its name; at most [`MAX_HINTS`].
    pub fn forwarding_hint(&self) -> impl Iterator<Item = NameRef<'a>> + use<'a> {
        let mut reader = Reader::new(self.forwarding_hint);
        std::iter::from_fn(move || {
            let element = reader.next().ok()??;
            Some(NameRef::trusted(element.value))
        })
    }

    /// The value of the forwarding hint's element.
    pub(crate) fn hint_bytes(&self) -> &'a [u8] {
        self.forwarding_hint
    }

    /// The random number by which forwarders detect loops.
    pub fn nonce(&self) -> Option<[u8; 4]> {
        self.nonce
    }

    /// How long forwarders keep it pending.
    pub fn lifetime(&self) -> Duration {
        self.lifetime
            .map_or(DEFAULT_LIFETIME, Duration::from_millis)
    }

    /// The number of further forwarders that it may pass.
    pub fn hop_limit(&self) -> Option<u8> {
        self.hop_limit
    }

    /// Application parameters.
    pub fn parameters(&self) -> Option<&'a [u8]> {
        self.parameters
    }

    /// InterestSignatureInfo: how the packet was signed, if it was.
    pub fn signature(&self) -> Option<SignatureInfo<'a>> {
        self.signature.map(|signature| signature.info)
    }

    /// Checks the signature. Does not detect replays; the caller can, by [`SignatureInfo::stamp`].
    pub fn verify(&self, verifier: &Verifier) -> Result<(), VerifyError> {
        let signature = self.signature.ok_or(VerifyError::Unsigned)?;
        let mut components = self.name.components();
        let digests = components.position(|part| part.kind == ComponentKind::PARAMETERS_DIGEST);
        let place = digests.ok_or(VerifyError::Unsigned)?;
        let before = self.name.prefix(place).as_bytes();
        let after = self.name.suffix(place + 1).as_bytes();
        let pieces = [before, after, signature.signed];
        verifier.check(&signature.info, &pieces, signature.value)
    }

    /// Whether Data of this name answers it. `digest` returns the SHA-256 digest of the Data packet; it is
    /// called only if the Interest's name ends in one.
    pub fn is_answered_by(&self, data: NameRef<'_>, digest: impl FnOnce() -> [u8; 32]) -> bool {
        answers(self.name, self.can_be_prefix, data, digest)
    }

    /// Appends the packet with this nonce, and with this hop limit if it has one already.
    pub(crate) fn forward(&self, nonce: [u8; 4], hop_limit: Option<u8>, bytes: &mut Vec<u8>) {
        let set_hop_limit = |bytes: &mut [u8]| {
            if let (Some(_), Some(limit)) = (self.hop_limit, hop_limit) {
                bytes[self.places.hop_limit] = limit;
            }
        };
        if self.nonce.is_some() {
            let start = bytes.len();
            bytes.extend_from_slice(self.wire);
            bytes[start + self.places.nonce..][..4].copy_from_slice(&nonce);
            set_hop_limit(&mut bytes[start..]);
            return;
        }
        let mut wire = self.wire.to_vec();
        set_hop_limit(&mut wire);
        let (before, after) = wire.split_at(self.places.nonce);
        tlv::write_nested(bytes, kind::INTEREST, |bytes| {
            bytes.extend_from_slice(&before[self.places.start..]);
            tlv::write_element(bytes, kind::NONCE, &nonce);
            bytes.extend_from_slice(after);
        });
    }
}

/// Whether Data of the name `data` answers an Interest for `name`.
pub(crate) fn answers(
    name: NameRef<'_>,
    can_be_prefix: bool,
    data: NameRef<'_>,
    digest: impl FnOnce() -> [u8; 32],
) -> bool {
    if name == data || (can_be_prefix && data.starts_with(name)) {
        return true;
    }
    let Some(last) = name.last() else {
        return false;
    };
    last.kind == ComponentKind::IMPLICIT_DIGEST
        && data.as_bytes().len() + DIGEST_COMPONENT == name.as_bytes().len()
        && name.starts_with(data)
        && last.value == digest()
}

/// The bytes of a digest component, with type and length.
pub(crate) const DIGEST_COMPONENT: usize = 34;

fn check_hint(value: &[u8]) -> Result<(), DecodeError> {
    let mut reader = Reader::new(value);
    let mut names = 0;
    while let Some(element) = reader.next()? {
        if element.kind != kind::NAME {
            return Err(DecodeError::Unexpected { kind: element.kind });
        }
        NameRef::decode(element.value)?;
        names += 1;
    }
    if !(1..=MAX_HINTS).contains(&names) {
        return Err(DecodeError::BadValue {
            kind: kind::FORWARDING_HINT,
        });
    }
    Ok(())
}
