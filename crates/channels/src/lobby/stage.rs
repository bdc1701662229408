//! The order of lobby messages, as a state machine for each end.

#![cfg_attr(
    not(feature = "__test_hooks"),
    expect(unreachable_pub, reason = "only tests use the stages from outside")
)]

use thiserror::Error;

use super::message::{ClientMessage, ServerMessage};

/// A message that the other end may not send in the present stage. The channel keeps the order, so
/// this is a violation of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the other end sent a lobby message out of order")]
pub struct UnexpectedMessage;

/// A client's stage on the way into the game.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientStage {
    /// Waits for the server's info.
    #[default]
    Waiting,
    /// Loads what the server asked for.
    Loading {
        /// The number of resets so far.
        resets: u64,
    },
    /// Has loaded, and waits for the welcome.
    Loaded {
        /// The number of resets so far.
        resets: u64,
    },
    /// Is in the game.
    Playing {
        /// The number of resets so far.
        resets: u64,
    },
}

impl ClientStage {
    /// Advances by a message of the server.
    pub fn handle(&mut self, message: &ServerMessage) -> Result<(), UnexpectedMessage> {
        *self = match (*self, message) {
            (Self::Waiting, ServerMessage::Info(_)) => Self::Loading { resets: 0 },
            (Self::Loaded { resets }, ServerMessage::Welcome(_)) => Self::Playing { resets },
            (
                Self::Loading { resets } | Self::Loaded { resets } | Self::Playing { resets },
                ServerMessage::Reset(_),
            ) => Self::Loading { resets: resets + 1 },
            (Self::Waiting, _) => return Err(UnexpectedMessage),
            (stage, ServerMessage::Roster(_)) => stage,
            _ => return Err(UnexpectedMessage),
        };
        Ok(())
    }

    /// Reports that everything is loaded: the message to send, if the server waits for it.
    pub fn loaded(&mut self) -> Option<ClientMessage> {
        let Self::Loading { resets } = *self else {
            return None;
        };
        *self = Self::Loaded { resets };
        Some(ClientMessage::Loaded { resets })
    }
}

/// A client's stage on the way into the game, as the server knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerStage {
    /// Waits for the client's info.
    #[default]
    Waiting,
    /// The client loads.
    Loading {
        /// The number of resets so far.
        resets: u64,
    },
    /// The client is in the game.
    Playing {
        /// The number of resets so far.
        resets: u64,
    },
}

/// The answer to a message of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// No answer.
    Nothing,
    /// [`ServerMessage::Info`].
    Info,
    /// [`ServerMessage::Welcome`]; the client becomes a player.
    Welcome,
}

impl ServerStage {
    /// Advances by a message of the client and returns the answer that it requires.
    pub fn handle(&mut self, message: &ClientMessage) -> Result<Reply, UnexpectedMessage> {
        match (*self, message) {
            (Self::Waiting, ClientMessage::Info(_)) => {
                *self = Self::Loading { resets: 0 };
                Ok(Reply::Info)
            }
            (Self::Loading { .. } | Self::Playing { .. }, ClientMessage::Info(_)) => {
                Ok(Reply::Nothing)
            }
            (Self::Loading { resets }, ClientMessage::Loaded { resets: seen })
                if *seen == resets =>
            {
                *self = Self::Playing { resets };
                Ok(Reply::Welcome)
            }
            // The client sent this before it received the last reset.
            (Self::Loading { resets }, ClientMessage::Loaded { resets: seen })
                if *seen < resets =>
            {
                Ok(Reply::Nothing)
            }
            _ => Err(UnexpectedMessage),
        }
    }

    /// Starts over: the client has to load again. `false` if it has not sent its info and needs no
    /// reset.
    pub fn reset(&mut self) -> bool {
        let (Self::Loading { resets } | Self::Playing { resets }) = *self else {
            return false;
        };
        *self = Self::Loading { resets: resets + 1 };
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::lobby::{ClientInfo, PlayerId, RosterUpdate, ServerInfo};

    /// Both ends and the messages in flight between them.
    #[derive(Default)]
    struct Pair {
        client: ClientStage,
        server: ServerStage,
        up: VecDeque<ClientMessage>,
        down: VecDeque<ServerMessage>,
        welcomes: u32,
    }

    impl Pair {
        fn new() -> Self {
            let mut pair = Self::default();
            pair.up
                .push_back(ClientMessage::Info(ClientInfo::default()));
            pair
        }

        fn reset(&mut self) {
            if self.server.reset() {
                let info = ServerInfo::default();
                self.down.push_back(ServerMessage::Reset(info));
            }
        }

        /// Delivers one message in either direction, or loads; false if there was nothing to do.
        fn step(&mut self, which: u64) -> bool {
            match which % 3 {
                0 => match self.up.pop_front() {
                    Some(message) => match self.server.handle(&message).expect("in turn") {
                        Reply::Nothing => {}
                        Reply::Info => {
                            self.down
                                .push_back(ServerMessage::Info(ServerInfo::default()));
                        }
                        Reply::Welcome => {
                            self.welcomes += 1;
                            self.down.push_back(ServerMessage::Welcome(PlayerId(1)));
                        }
                    },
                    None => return false,
                },
                1 => match self.down.pop_front() {
                    Some(message) => self.client.handle(&message).expect("in turn"),
                    None => return false,
                },
                _ => match self.client.loaded() {
                    Some(message) => self.up.push_back(message),
                    None => return false,
                },
            }
            true
        }
    }

    /// Both ends reach the game, however resets and the client's messages cross. Fails if `Loaded`
    /// does not name the reset that it answers (`seen == resets` always true).
    #[test]
    fn resets_at_any_time() {
        for seed in 0..500u64 {
            let mut pair = Pair::new();
            let mut random = seed;
            for step in 0..60 {
                random = random
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                pair.step(random >> 40);
                if step < 40 && random >> 33 & 7 == 0 {
                    pair.reset();
                }
            }
            while (0..3).any(|which| pair.step(which)) {}
            let (ClientStage::Playing { resets: seen }, ServerStage::Playing { resets }) =
                (pair.client, pair.server)
            else {
                panic!("seed {seed}: {:?}, {:?}", pair.client, pair.server);
            };
            assert_eq!(seen, resets);
            assert!(pair.welcomes > 0);
        }
    }

    /// Fails if a last arm of either `handle` accepts a message.
    #[test]
    fn what_is_not_its_turn_is_refused() {
        let welcome = ServerMessage::Welcome(PlayerId(0));
        let roster = ServerMessage::Roster(RosterUpdate::default());
        let info = ServerMessage::Info(ServerInfo::default());
        let mut client = ClientStage::default();
        assert_eq!(client.loaded(), None);
        for early in [
            &welcome,
            &roster,
            &ServerMessage::Reset(ServerInfo::default()),
        ] {
            assert_eq!(client.handle(early), Err(UnexpectedMessage));
        }
        assert_eq!(client.handle(&info), Ok(()));
        assert_eq!(client.handle(&info), Err(UnexpectedMessage));
        assert_eq!(client.handle(&welcome), Err(UnexpectedMessage));
        assert_eq!(client.handle(&roster), Ok(()));

        let mut server = ServerStage::default();
        assert!(!server.reset());
        let loaded = |resets| ClientMessage::Loaded { resets };
        assert_eq!(server.handle(&loaded(0)), Err(UnexpectedMessage));
        let info = ClientMessage::Info(ClientInfo::default());
        assert_eq!(server.handle(&info), Ok(Reply::Info));
        assert_eq!(server.handle(&loaded(1)), Err(UnexpectedMessage));
        assert_eq!(server.handle(&loaded(0)), Ok(Reply::Welcome));
        assert_eq!(server.handle(&loaded(0)), Err(UnexpectedMessage));
        assert_eq!(server.handle(&info), Ok(Reply::Nothing));
    }
}
