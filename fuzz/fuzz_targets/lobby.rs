//! Any bytes as lobby messages: a valid message has one encoding, no update is applied in part, and
//! no message causes an invalid transition.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prescient_channels::lobby::{ClientMessage, MAX_PLAYERS, Roster, ServerMessage};
use prescient_channels::parts::{ClientStage, ServerStage};

fuzz_target!(|messages: Vec<(bool, Vec<u8>)>| {
    let mut roster = Roster::new();
    let mut client = ClientStage::default();
    let mut server = ServerStage::default();
    for (down, bytes) in messages {
        if down {
            let Ok(message) = ServerMessage::from_bytes(&bytes) else {
                continue;
            };
            assert_eq!(message.to_bytes(), bytes, "one encoding only");
            let before = client;
            if client.handle(&message).is_err() {
                assert_eq!(client, before);
            }
            client.loaded();
            if let ServerMessage::Roster(update) = message {
                let before = roster.clone();
                if roster.apply(&update).is_err() {
                    assert_eq!(roster, before);
                }
                assert!(roster.len() <= MAX_PLAYERS);
            }
        } else if let Ok(message) = ClientMessage::from_bytes(&bytes) {
            assert_eq!(message.to_bytes(), bytes, "one encoding only");
            let before = server;
            if server.handle(&message).is_err() {
                assert_eq!(server, before);
            }
        }
    }
});
