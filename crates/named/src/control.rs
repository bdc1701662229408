//! Prefix registration by the NFD management protocol.
//!
//! A command is a signed Interest, `/localhost/nfd/rib/register/<parameters>`; Data with a status code
//! answers it. [`Command`] and [`ControlResponse`] are the application's side, for our forwarder or a real
//! NFD; the forwarder's side is in `forwarder/management.rs`.

use std::time::Duration;

use crate::error::{DecodeError, EncodeError, NameError};
use crate::interest::InterestBuilder;
use crate::name::{ComponentKind, Name, NameRef};
use crate::signature::{SignatureStamp, Signer};
use crate::tlv::{self, Fields, Reader, kind};

/// The prefix of commands from applications on the forwarder's own machine.
pub const LOCAL_COMMANDS: &str = "/localhost/nfd/rib";

/// The prefix of commands from neighbours.
pub const NEIGHBOUR_COMMANDS: &str = "/localhop/nfd/rib";

/// The parameters of a command and of its response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlParameters {
    /// The prefix.
    pub name: Option<Name>,
    /// The face of the route. 0 or absent: the face on which the command arrives.
    pub face: Option<u64>,
    /// The kind of program that registers the prefix; 0 is an application.
    pub origin: Option<u64>,
    /// The cost of the route.
    pub cost: Option<u64>,
    /// [`CHILD_INHERIT`] and [`CAPTURE`].
    pub flags: Option<u64>,
    /// The time after which the forwarder removes the route.
    pub expiration: Option<Duration>,
}

/// The route is also used for longer prefixes that have routes of their own. This is the default.
pub const CHILD_INHERIT: u64 = 1;

/// Routes of shorter prefixes are not used for this one.
pub const CAPTURE: u64 = 2;

impl ControlParameters {
    /// Appends the element.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        tlv::write_nested(bytes, kind::CONTROL_PARAMETERS, |bytes| {
            if let Some(name) = &self.name {
                tlv::write_element(bytes, kind::NAME, name.view().as_bytes());
            }
            let expiration = self.expiration.map(|period| {
                let milliseconds = period.as_millis();
                u64::try_from(milliseconds).unwrap_or(u64::MAX)
            });
            for (kind, number) in [
                (kind::FACE_ID, self.face),
                (kind::ORIGIN, self.origin),
                (kind::COST, self.cost),
                (kind::FLAGS, self.flags),
                (kind::EXPIRATION_PERIOD, expiration),
            ] {
                if let Some(number) = number {
                    tlv::write_integer(bytes, kind, number);
                }
            }
        });
    }

    /// Reads the element, which is all of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let value = tlv::read_packet(bytes, kind::CONTROL_PARAMETERS)?;
        let mut parameters = Self::default();
        // In any order: some implementations write the order of the specification's table, others that of
        // the type numbers.
        let mut reader = Reader::new(value);
        while let Some(element) = reader.next()? {
            let (kind, value) = (element.kind, element.value);
            match kind {
                kind::NAME => parameters.name = Some(NameRef::decode(value)?.to_name()),
                kind::FACE_ID => parameters.face = Some(tlv::read_integer(kind, value)?),
                kind::ORIGIN => parameters.origin = Some(tlv::read_integer(kind, value)?),
                kind::COST => parameters.cost = Some(tlv::read_integer(kind, value)?),
                kind::FLAGS => parameters.flags = Some(tlv::read_integer(kind, value)?),
                kind::EXPIRATION_PERIOD => {
                    let milliseconds = tlv::read_integer(kind, value)?;
                    parameters.expiration = Some(Duration::from_millis(milliseconds));
                }
                _ if tlv::is_critical(kind) => return Err(DecodeError::Unexpected { kind }),
                _ => {}
            }
        }
        Ok(parameters)
    }
}

/// A command to a forwarder.
///
/// ```
/// use prescient_named::{Command, Name, SignatureStamp, Signer};
///
/// let prefix: Name = "/game/0/anna".parse()?;
/// let stamp = SignatureStamp { nonce: Some(&[1; 8]), time: Some(1_700_000_000_000), sequence: None };
/// let mut interest = Vec::new();
/// Command::register(prefix).sign(&Signer::digest(), stamp, [1, 2, 3, 4], &mut interest)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Command {
    verb: &'static str,
    is_neighbour: bool,
    /// The route that it adds or removes.
    pub parameters: ControlParameters,
}

impl Command {
    /// Routes Interests with this prefix to the sender of the command.
    pub fn register(prefix: Name) -> Self {
        Self::new("register", prefix)
    }

    /// Removes that route.
    pub fn unregister(prefix: Name) -> Self {
        Self::new("unregister", prefix)
    }

    fn new(verb: &'static str, prefix: Name) -> Self {
        Self {
            verb,
            is_neighbour: false,
            parameters: ControlParameters {
                name: Some(prefix),
                ..ControlParameters::default()
            },
        }
    }

    /// For a command from another machine than the forwarder's.
    pub fn from_neighbour(mut self) -> Self {
        self.is_neighbour = true;
        self
    }

    /// Appends the Interest. `stamp` needs a nonce and a time.
    pub fn sign(
        &self,
        signer: &Signer,
        stamp: SignatureStamp<'_>,
        nonce: [u8; 4],
        bytes: &mut Vec<u8>,
    ) -> Result<(), CommandError> {
        let commands = if self.is_neighbour {
            NEIGHBOUR_COMMANDS
        } else {
            LOCAL_COMMANDS
        };
        let mut name: Name = commands.parse()?;
        name.push(ComponentKind::GENERIC, self.verb.as_bytes())?;
        let mut parameters = Vec::new();
        self.parameters.encode(&mut parameters);
        name.push(ComponentKind::GENERIC, &parameters)?;
        let interest = InterestBuilder::new(name.view())
            .must_be_fresh()
            .nonce(nonce);
        interest.sign(signer, stamp, bytes)?;
        Ok(())
    }
}

/// Why a command was not written: in either case its prefix is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The command's name would exceed a limit of names.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The packet would be too long.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// The response to a command: the content of its Data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlResponse {
    /// 200 if the command was carried out.
    pub code: u64,
    /// The status as text.
    pub text: String,
    /// The route that was added or removed, with the defaults of absent parameters.
    pub parameters: Option<ControlParameters>,
}

const RESPONSE_ORDER: [u32; 3] = [
    kind::STATUS_CODE,
    kind::STATUS_TEXT,
    kind::CONTROL_PARAMETERS,
];

impl ControlResponse {
    /// Whether the command was carried out.
    pub fn is_ok(&self) -> bool {
        self.code == 200
    }

    /// Appends the element.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        tlv::write_nested(bytes, kind::CONTROL_RESPONSE, |bytes| {
            tlv::write_integer(bytes, kind::STATUS_CODE, self.code);
            tlv::write_element(bytes, kind::STATUS_TEXT, self.text.as_bytes());
            if let Some(parameters) = &self.parameters {
                parameters.encode(bytes);
            }
        });
    }

    /// Reads the element, which is all of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let value = tlv::read_packet(bytes, kind::CONTROL_RESPONSE)?;
        let mut fields = Fields::new(value, &RESPONSE_ORDER);
        let (mut code, mut text, mut parameters) = (None, None, None);
        while let Some(element) = fields.next()? {
            match element.kind {
                kind::STATUS_CODE => {
                    code = Some(tlv::read_integer(element.kind, element.value)?);
                }
                kind::STATUS_TEXT => {
                    text = Some(String::from_utf8_lossy(element.value).into_owned());
                }
                _ => parameters = Some(ControlParameters::decode(element.wire)?),
            }
        }
        let missing = |kind| DecodeError::Missing { kind };
        Ok(Self {
            code: code.ok_or(missing(kind::STATUS_CODE))?,
            text: text.ok_or(missing(kind::STATUS_TEXT))?,
            parameters,
        })
    }
}
