//! Signatures.
//!
//! [`Verifier`] checks the received bytes of a packet; nothing is encoded again.

use ring::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use ring::{digest, hmac};

use crate::error::{DecodeError, VerifyError};
use crate::name::{Name, NameRef};
use crate::tlv::{self, Reader, kind};

/// SHA-256 of the concatenation of `pieces`.
pub(crate) fn sha256(pieces: &[&[u8]]) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    for piece in pieces {
        context.update(piece);
    }
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}

/// The type of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignatureKind {
    /// A SHA-256 digest: detects damage, authenticates nothing.
    Sha256,
    /// RSA over SHA-256. The crate can neither sign nor verify it.
    Rsa,
    /// ECDSA over SHA-256. The crate can neither sign nor verify it.
    Ecdsa,
    /// HMAC over SHA-256, with a shared key.
    Hmac,
    /// Ed25519.
    Ed25519,
    /// Any other type, by its number.
    Other(u64),
}

impl SignatureKind {
    fn number(self) -> u64 {
        match self {
            Self::Sha256 => 0,
            Self::Rsa => 1,
            Self::Ecdsa => 3,
            Self::Hmac => 4,
            Self::Ed25519 => 5,
            Self::Other(number) => number,
        }
    }

    fn from_number(number: u64) -> Self {
        match number {
            0 => Self::Sha256,
            1 => Self::Rsa,
            3 => Self::Ecdsa,
            4 => Self::Hmac,
            5 => Self::Ed25519,
            _ => Self::Other(number),
        }
    }
}

/// Replay protection of a signed Interest. All fields are optional; commands to a forwarder need at
/// least `nonce` and `time`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignatureStamp<'a> {
    /// Random bytes, at least one.
    pub nonce: Option<&'a [u8]>,
    /// Milliseconds since 1970.
    pub time: Option<u64>,
    /// A number that ascends with every Interest under this key.
    pub sequence: Option<u64>,
}

/// Identifies the key of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyLocator<'a> {
    /// The name of the key or of its certificate.
    Name(NameRef<'a>),
    /// A digest of the key.
    Digest(&'a [u8]),
}

/// How a packet was signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignatureInfo<'a> {
    /// The type of the signature.
    pub kind: SignatureKind,
    /// The key.
    pub key: Option<KeyLocator<'a>>,
    /// For Interests: replay protection.
    pub stamp: SignatureStamp<'a>,
}

impl<'a> SignatureInfo<'a> {
    /// A digest without a key: the initial value while a packet is decoded.
    pub(crate) const NONE: Self = Self {
        kind: SignatureKind::Sha256,
        key: None,
        stamp: SignatureStamp {
            nonce: None,
            time: None,
            sequence: None,
        },
    };

    /// Writes the element. Its type number differs between Data and Interests.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>, element: u32) {
        tlv::write_nested(bytes, element, |bytes| {
            tlv::write_integer(bytes, kind::SIGNATURE_TYPE, self.kind.number());
            if let Some(key) = self.key {
                tlv::write_nested(bytes, kind::KEY_LOCATOR, |bytes| match key {
                    KeyLocator::Name(name) => {
                        tlv::write_element(bytes, kind::NAME, name.as_bytes());
                    }
                    KeyLocator::Digest(digest) => {
                        tlv::write_element(bytes, kind::KEY_DIGEST, digest);
                    }
                });
            }
            if let Some(nonce) = self.stamp.nonce {
                tlv::write_element(bytes, kind::SIGNATURE_NONCE, nonce);
            }
            if let Some(time) = self.stamp.time {
                tlv::write_integer(bytes, kind::SIGNATURE_TIME, time);
            }
            if let Some(sequence) = self.stamp.sequence {
                tlv::write_integer(bytes, kind::SIGNATURE_SEQUENCE, sequence);
            }
        });
    }

    /// Reads the value of the element. Skips unknown elements of any type, because certificates and later
    /// types of signatures add elements here, and a forwarder must not refuse them.
    pub(crate) fn read(value: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(value);
        let first = reader.next()?;
        let first = first.filter(|element| element.kind == kind::SIGNATURE_TYPE);
        let first = first.ok_or(DecodeError::Missing {
            kind: kind::SIGNATURE_TYPE,
        })?;
        let number = tlv::read_integer(first.kind, first.value)?;
        let mut info = Self {
            kind: SignatureKind::from_number(number),
            key: None,
            stamp: SignatureStamp::default(),
        };
        while let Some(element) = reader.next()? {
            match element.kind {
                kind::KEY_LOCATOR => info.key = read_locator(element.value)?,
                kind::SIGNATURE_NONCE => {
                    if element.value.is_empty() {
                        return Err(DecodeError::BadLength {
                            kind: element.kind,
                            length: 0,
                        });
                    }
                    info.stamp.nonce = Some(element.value);
                }
                kind::SIGNATURE_TIME => {
                    info.stamp.time = Some(tlv::read_integer(element.kind, element.value)?);
                }
                kind::SIGNATURE_SEQUENCE => {
                    info.stamp.sequence = Some(tlv::read_integer(element.kind, element.value)?);
                }
                _ => {}
            }
        }
        Ok(info)
    }
}

fn read_locator(value: &[u8]) -> Result<Option<KeyLocator<'_>>, DecodeError> {
    let Some(element) = Reader::new(value).next()? else {
        return Ok(None);
    };
    Ok(match element.kind {
        kind::NAME => Some(KeyLocator::Name(NameRef::decode(element.value)?)),
        kind::KEY_DIGEST => Some(KeyLocator::Digest(element.value)),
        _ => None,
    })
}

/// A key to sign with.
#[derive(Debug)]
pub struct Signer {
    key: SigningKey,
    locator: Option<Name>,
}

#[derive(Debug)]
enum SigningKey {
    Sha256,
    Hmac(hmac::Key),
    Ed25519(Box<Ed25519KeyPair>),
}

impl Signer {
    /// Without a key: a digest, which authenticates nothing.
    pub fn digest() -> Self {
        Self {
            key: SigningKey::Sha256,
            locator: None,
        }
    }

    /// A shared key. `locator` is the name by which the verifier finds it.
    pub fn hmac(key: &[u8], locator: Option<Name>) -> Self {
        Self {
            key: SigningKey::Hmac(hmac::Key::new(hmac::HMAC_SHA256, key)),
            locator,
        }
    }

    /// The Ed25519 key of a seed, which must be unpredictable.
    pub fn ed25519(seed: &[u8; 32], locator: Option<Name>) -> Self {
        // Fails for other lengths only.
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).expect("a seed has 32 bytes");
        Self {
            key: SigningKey::Ed25519(Box::new(pair)),
            locator,
        }
    }

    /// Verifies signatures of this key.
    pub fn verifier(&self) -> Verifier {
        let key = match &self.key {
            SigningKey::Sha256 => VerifyingKey::Sha256,
            SigningKey::Hmac(key) => VerifyingKey::Hmac(key.clone()),
            SigningKey::Ed25519(pair) => {
                use ring::signature::KeyPair;
                let mut public = [0; 32];
                public.copy_from_slice(pair.public_key().as_ref());
                VerifyingKey::Ed25519(public)
            }
        };
        Verifier { key }
    }

    pub(crate) fn info<'a>(&'a self, stamp: SignatureStamp<'a>) -> SignatureInfo<'a> {
        SignatureInfo {
            kind: match &self.key {
                SigningKey::Sha256 => SignatureKind::Sha256,
                SigningKey::Hmac(_) => SignatureKind::Hmac,
                SigningKey::Ed25519(_) => SignatureKind::Ed25519,
            },
            key: self
                .locator
                .as_ref()
                .map(|name| KeyLocator::Name(name.view())),
            stamp,
        }
    }

    /// Writes the element with the signature of the concatenation of `pieces`.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>, element: u32, pieces: &[&[u8]]) {
        match &self.key {
            SigningKey::Sha256 => tlv::write_element(bytes, element, &sha256(pieces)),
            SigningKey::Hmac(key) => {
                let mut context = hmac::Context::with_key(key);
                pieces.iter().for_each(|piece| context.update(piece));
                tlv::write_element(bytes, element, context.sign().as_ref());
            }
            SigningKey::Ed25519(pair) => {
                let signature = pair.sign(&pieces.concat());
                tlv::write_element(bytes, element, signature.as_ref());
            }
        }
    }
}

/// A key to verify with.
#[derive(Clone, Debug)]
pub struct Verifier {
    key: VerifyingKey,
}

#[derive(Clone, Debug)]
enum VerifyingKey {
    Sha256,
    Hmac(hmac::Key),
    Ed25519([u8; 32]),
}

impl Verifier {
    /// Verifies digests, which detects damage but no forgery.
    pub fn digest() -> Self {
        Self {
            key: VerifyingKey::Sha256,
        }
    }

    /// Verifies with a shared key.
    pub fn hmac(key: &[u8]) -> Self {
        Self {
            key: VerifyingKey::Hmac(hmac::Key::new(hmac::HMAC_SHA256, key)),
        }
    }

    /// Verifies with a public Ed25519 key.
    pub fn ed25519(public: [u8; 32]) -> Self {
        Self {
            key: VerifyingKey::Ed25519(public),
        }
    }

    /// The public key, for Ed25519.
    pub fn public_key(&self) -> Option<[u8; 32]> {
        match self.key {
            VerifyingKey::Ed25519(public) => Some(public),
            _ => None,
        }
    }

    /// Whether both accept the same signatures.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.key, &other.key) {
            (VerifyingKey::Sha256, VerifyingKey::Sha256) => true,
            // Keys cannot be compared; their signatures can.
            (VerifyingKey::Hmac(key), VerifyingKey::Hmac(other)) => {
                hmac::sign(key, b"").as_ref() == hmac::sign(other, b"").as_ref()
            }
            (VerifyingKey::Ed25519(key), VerifyingKey::Ed25519(other)) => key == other,
            _ => false,
        }
    }

    fn kind(&self) -> SignatureKind {
        match self.key {
            VerifyingKey::Sha256 => SignatureKind::Sha256,
            VerifyingKey::Hmac(_) => SignatureKind::Hmac,
            VerifyingKey::Ed25519(_) => SignatureKind::Ed25519,
        }
    }

    /// Verifies a signature of the concatenation of `pieces`.
    pub(crate) fn check(
        &self,
        info: &SignatureInfo<'_>,
        pieces: &[&[u8]],
        signature: &[u8],
    ) -> Result<(), VerifyError> {
        let (found, expected) = (info.kind.number(), self.kind().number());
        if found != expected {
            return Err(VerifyError::OtherKind { found, expected });
        }
        let is_good = match &self.key {
            VerifyingKey::Sha256 => sha256(pieces) == signature,
            VerifyingKey::Hmac(key) => hmac::verify(key, &pieces.concat(), signature).is_ok(),
            VerifyingKey::Ed25519(public) => UnparsedPublicKey::new(&ED25519, public)
                .verify(&pieces.concat(), signature)
                .is_ok(),
        };
        is_good.then_some(()).ok_or(VerifyError::Invalid)
    }
}
