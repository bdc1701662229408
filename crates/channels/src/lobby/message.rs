//! Lobby messages and their encoding.

use std::time::Duration;

use thiserror::Error;

use super::bounded::{Bytes, Text};
use super::roster::{PlayerId, RosterUpdate};
use crate::bytes::{Reader, write_number};

/// A server's description of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// The server's name.
    pub name: Text<64>,
    /// The duration of a tick, in whole microseconds.
    pub update_period: Duration,
    /// The server's tick when it sent this.
    pub tick: u64,
    /// The message of the day.
    pub message_of_the_day: Text<1024>,
    /// Further data of the game, such as what to load.
    pub data: Bytes<1024>,
}

impl ServerInfo {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.name.write(bytes);
        let period = u64::try_from(self.update_period.as_micros());
        write_number(bytes, period.unwrap_or(u64::MAX));
        write_number(bytes, self.tick);
        self.message_of_the_day.write(bytes);
        self.data.write(bytes);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            name: Text::read(reader)?,
            update_period: Duration::from_micros(reader.number()?),
            tick: reader.number()?,
            message_of_the_day: Text::read(reader)?,
            data: Bytes::read(reader)?,
        })
    }
}

/// A player's public info; other clients receive it with the roster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientInfo {
    /// The player's name.
    pub name: Text<64>,
    /// Further data of the game, such as a colour.
    pub data: Bytes<256>,
}

impl ClientInfo {
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        self.name.write(bytes);
        self.data.write(bytes);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            name: Text::read(reader)?,
            data: Bytes::read(reader)?,
        })
    }
}

/// A lobby message of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerMessage {
    /// The server's info; the first message.
    Info(ServerInfo),
    /// The client is in the game, as this player.
    Welcome(PlayerId),
    /// The server starts over; the client has to load what this names.
    Reset(ServerInfo),
    /// A change of the roster.
    Roster(RosterUpdate),
}

impl ServerMessage {
    /// Encodes the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Info(info) => {
                bytes.push(INFO);
                info.write(&mut bytes);
            }
            Self::Welcome(player) => {
                bytes.push(WELCOME);
                bytes.extend_from_slice(&player.0.to_le_bytes());
            }
            Self::Reset(info) => {
                bytes.push(RESET);
                info.write(&mut bytes);
            }
            Self::Roster(update) => {
                bytes.push(ROSTER);
                update.write(&mut bytes);
            }
        }
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MalformedMessage> {
        Self::read(Reader::new(bytes)).ok_or(MalformedMessage)
    }

    fn read(mut reader: Reader<'_>) -> Option<Self> {
        let message = match reader.u8()? {
            INFO => Self::Info(ServerInfo::read(&mut reader)?),
            WELCOME => Self::Welcome(PlayerId(reader.u16()?)),
            RESET => Self::Reset(ServerInfo::read(&mut reader)?),
            ROSTER => Self::Roster(RosterUpdate::read(&mut reader)?),
            _ => return None,
        };
        reader.end()?;
        Some(message)
    }
}

/// A lobby message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientMessage {
    /// The player's info; the first message, and sent again whenever it changes.
    Info(ClientInfo),
    /// Everything that the server asked for is loaded.
    Loaded {
        /// How many resets the client has received. If a reset is on its way, this message is
        /// outdated.
        resets: u64,
    },
}

impl ClientMessage {
    /// Encodes the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Info(info) => {
                bytes.push(INFO);
                info.write(&mut bytes);
            }
            Self::Loaded { resets } => {
                bytes.push(LOADED);
                write_number(&mut bytes, *resets);
            }
        }
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MalformedMessage> {
        Self::read(Reader::new(bytes)).ok_or(MalformedMessage)
    }

    fn read(mut reader: Reader<'_>) -> Option<Self> {
        let message = match reader.u8()? {
            INFO => Self::Info(ClientInfo::read(&mut reader)?),
            LOADED => Self::Loaded {
                resets: reader.number()?,
            },
            _ => return None,
        };
        reader.end()?;
        Some(message)
    }
}

/// Not a lobby message. A correct peer of the same version never sends such bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a message of the lobby")]
pub struct MalformedMessage;

const INFO: u8 = 1;
const WELCOME: u8 = 2;
const LOADED: u8 = 2;
const RESET: u8 = 3;
const ROSTER: u8 = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn server_messages() -> Vec<ServerMessage> {
        let info = ServerInfo {
            name: Text::new("a server").expect("fits"),
            update_period: Duration::from_micros(16_667),
            tick: 1 << 33,
            message_of_the_day: Text::new("x".repeat(1024)).expect("fits"),
            data: Bytes::new([9; 1024]).expect("fits"),
        };
        let welcome = ServerMessage::Welcome(PlayerId(513));
        vec![
            ServerMessage::Info(info.clone()),
            welcome,
            ServerMessage::Reset(info),
        ]
    }

    fn client_messages() -> Vec<ClientMessage> {
        let info = ClientInfo {
            name: Text::new("Zoë").expect("fits"),
            data: Bytes::new([1, 2]).expect("fits"),
        };
        vec![
            ClientMessage::Info(info),
            ClientMessage::Loaded { resets: 300 },
        ]
    }

    /// Fails if a field is left out or read in another order, or if trailing bytes are accepted
    /// (`reader.end()` left out).
    #[test]
    fn messages_come_back_as_what_they_were() {
        for message in server_messages() {
            let mut bytes = message.to_bytes();
            assert_eq!(ServerMessage::from_bytes(&bytes), Ok(message));
            for length in 0..bytes.len() {
                assert!(ServerMessage::from_bytes(&bytes[..length]).is_err());
            }
            bytes.push(0);
            assert!(ServerMessage::from_bytes(&bytes).is_err());
        }
        for message in client_messages() {
            let mut bytes = message.to_bytes();
            assert_eq!(ClientMessage::from_bytes(&bytes), Ok(message));
            for length in 0..bytes.len() {
                assert!(ClientMessage::from_bytes(&bytes[..length]).is_err());
            }
            bytes.push(0);
            assert!(ClientMessage::from_bytes(&bytes).is_err());
        }
    }

    proptest! {
        /// Fails if a reader accepts what no writer makes, such as invalid UTF-8 (`from_utf8_lossy`
        /// in `Text::read`).
        #[test]
        fn any_bytes_are_one_message_or_refused(
            first in 0u8..6,
            rest in prop::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..60),
        ) {
            let bytes = [&[first][..], &rest].concat();
            if let Ok(message) = ServerMessage::from_bytes(&bytes) {
                prop_assert_eq!(message.to_bytes(), bytes.clone());
            }
            if let Ok(message) = ClientMessage::from_bytes(&bytes) {
                prop_assert_eq!(message.to_bytes(), bytes);
            }
        }
    }
}
