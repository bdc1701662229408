//! The messages, byte by byte; WIRE.md has the same as tables.

use prescient_codec::{Ack, ClientId, Tick};

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    /// A packet of the codec, to the client.
    State(&'a [u8]),
    /// Something happened, to the client.
    Event {
        tick: Tick,
        about: Option<ClientId>,
        payload: &'a [u8],
    },
    /// Which packets were applied, to the server.
    Applied(Ack),
    /// Something happened while this tick was shown, to the server.
    Said {
        tick: Tick,
        about: Option<ClientId>,
        payload: &'a [u8],
    },
}

impl<'a> Message<'a> {
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::State(packet) => {
                bytes.reserve_exact(1 + packet.len());
                bytes.push(STATE);
                bytes.extend_from_slice(packet);
            }
            Self::Event {
                tick,
                about,
                payload,
            } => {
                bytes.push(EVENT);
                bytes.extend_from_slice(&tick.0.to_le_bytes());
                put_about(&mut bytes, about);
                bytes.extend_from_slice(payload);
            }
            Self::Applied(ack) => {
                bytes.push(APPLIED);
                bytes.extend_from_slice(&ack.to_bytes());
            }
            Self::Said {
                tick,
                about,
                payload,
            } => {
                bytes.push(SAID);
                bytes.extend_from_slice(&tick.0.to_le_bytes());
                put_about(&mut bytes, about);
                bytes.extend_from_slice(payload);
            }
        }
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; `None` for anything else.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (&kind, rest) = bytes.split_first()?;
        match kind {
            STATE => Some(Self::State(rest)),
            EVENT => {
                let (tick, rest) = take_u32(rest)?;
                let (about, payload) = take_about(rest)?;
                Some(Self::Event {
                    tick: Tick(tick),
                    about,
                    payload,
                })
            }
            APPLIED => Ack::from_bytes(rest).map(Self::Applied),
            SAID => {
                let (tick, rest) = take_u32(rest)?;
                let (about, payload) = take_about(rest)?;
                Some(Self::Said {
                    tick: Tick(tick),
                    about,
                    payload,
                })
            }
            _ => None,
        }
    }
}

/// One more than the number, 0 for none.
fn put_about(bytes: &mut Vec<u8>, about: Option<ClientId>) {
    let number = about.map_or(0, |id| id.0.saturating_add(1));
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn take_about(bytes: &[u8]) -> Option<(Option<ClientId>, &[u8])> {
    let (number, rest) = take_u32(bytes)?;
    Some((number.checked_sub(1).map(ClientId), rest))
}

fn take_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*number), rest))
}

const STATE: u8 = 0;
const EVENT: u8 = 1;
const APPLIED: u8 = 2;
const SAID: u8 = 3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Fails if any part is written in one order and read in another.
        #[test]
        fn what_is_written_is_read(
            tick in any::<u32>(),
            about in prop::option::of(0u32..u32::MAX),
            payload in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let about = about.map(ClientId);
            let payload = &payload[..];
            for message in [
                Message::State(payload),
                Message::Event { tick: Tick(tick), about, payload },
                Message::Said { tick: Tick(tick), about, payload },
            ] {
                let bytes = message.to_bytes();
                prop_assert_eq!(Message::read(&bytes), Some(message));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(message) = Message::read(&bytes) {
                prop_assert_eq!(message.to_bytes(), bytes);
            }
        }
    }
}
