//! Case 39: a client with a valid token sends messages before its hello. None of them reaches the
//! game, and its connection is closed; other clients are not affected.

use std::time::Duration;

use crate::common::{bind, join, token};
use prescient::{
    Client, ClientEvent, ClientOptions, CloseReason, Input, InputError, Schema, SendError, Server,
    ServerEvent, ServerOptions, State,
};
use prescient_channels::{ChannelId, InputTick};
use prescient_net::BlockingClient;
use prescient_replication::ClientConfig;
use prescient_tests::seeds::over_seeds;
use prescient_transport::LinkConfig;

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Ball {
    #[state(step = 0.01, position)]
    position: [f32; 2],
}

fn schema() -> Schema {
    Schema::of::<Ball>().expect("a sound schema")
}

/// Sends a first message: an event, an audit report, an acknowledgement, an input, or one of the lobby.
fn send_first(client: &mut BlockingClient, which: u64) {
    let view = prescient_replication::Client::new(schema(), ClientConfig::default());
    let mut view = view.expect("a sound schema");
    let hello = view.poll_message().expect("the first");
    let event = view.send_event(None, b"before").expect("about nothing");
    assert_ne!(hello[0], event[0]);
    // The lower bits are the world generation.
    let world = event[0] & 0x0f;
    let message = match which {
        0 => event,
        1 => vec![world | AUDIT_REPORT, 1],
        2 => [&[world | APPLIED][..], &[0; 14]].concat(),
        4 => vec![LOBBY, 1, 0, 0],
        _ => Vec::new(),
    };
    for number in 0..1000 {
        let sent = client.with(|client, now| match which {
            3 => client
                .push_input(InputTick(number), Input::default(), now)
                .is_ok(),
            _ => client.send(ChannelId::ORDERED, &message, now).is_ok(),
        });
        assert!(sent, "there is room");
    }
    client.flush();
}

/// Fails if `Server::handle` of the replication accepts messages before the hello (the arm of
/// `PeerError::NotGreeted` left out), or the facade accepts inputs or messages of the lobby (`arriving`
/// not checked in `handle_input`, `handle_lobby`).
#[test]
fn a_message_before_the_hello_closes_the_connection() {
    over_seeds(20, |seed| {
        let mut server = bind(schema(), ServerOptions::default());
        let known = token(&server);
        let (honest, mut events) = join(&mut server, move || Client::join(known, schema()));
        let mut honest = honest.expect("it is let in");
        let stranger = token(&server);
        let protocol = server.protocol();
        let (stranger, more) = join(&mut server, move || {
            BlockingClient::connect(stranger, protocol, LinkConfig::default())
        });
        let mut stranger = stranger.expect("its token is good");
        events.extend(more);
        send_first(&mut stranger, seed % 5);
        honest.send_event(None, b"after").expect("it has joined");
        let (mut received, mut thrown_out) = (0, None);
        for _ in 0..10_000 {
            server.wait(Duration::from_millis(1));
            for event in std::iter::from_fn(|| server.poll()).chain(events.drain(..)) {
                match event {
                    ServerEvent::Joined { .. } => {}
                    ServerEvent::Event { payload, .. } => {
                        assert_eq!(payload, b"after");
                        received += 1;
                    }
                    other => panic!("a client that never joined cannot cause {other:?}"),
                }
            }
            server.send();
            honest.wait(Duration::ZERO);
            while let Some(event) = stranger.poll() {
                if let prescient_transport::ClientEvent::Closed(reason) = event {
                    thrown_out = Some(reason);
                }
            }
            if received == 1 && thrown_out.is_some() {
                break;
            }
        }
        assert_eq!((received, thrown_out), (1, Some(CloseReason::Violation)));
    });
}

/// A client that repeatedly reports another schema is reported once. Fails if the facade handles
/// messages of peers that it refused (`refused` not checked in `handle_message`).
#[test]
fn another_schema_is_reported_once() {
    let mut server = bind(schema(), ServerOptions::default());
    let stranger = token(&server);
    let protocol = server.protocol();
    let (stranger, mut events) = join(&mut server, move || {
        BlockingClient::connect(stranger, protocol, LinkConfig::default())
    });
    let mut stranger = stranger.expect("its token is good");
    let other = Schema {
        classes: Vec::new(),
    };
    let unreadable = [&[UNREADABLE][..], &other.to_bytes()].concat();
    for _ in 0..500 {
        let sent = stranger.with(|client, now| client.send(ChannelId::ORDERED, &unreadable, now));
        assert_eq!(sent, Ok(()));
    }
    stranger.flush();
    let mut closed = false;
    for _ in 0..10_000 {
        if closed {
            break;
        }
        server.wait(Duration::from_millis(1));
        events.extend(std::iter::from_fn(|| server.poll()));
        server.send();
        while let Some(event) = stranger.poll() {
            closed |= matches!(event, prescient_transport::ClientEvent::Closed(_));
        }
    }
    server.wait(Duration::from_millis(1));
    events.extend(std::iter::from_fn(|| server.poll()));
    assert!(closed);
    assert!(
        matches!(&events[..], [ServerEvent::OtherSchema { .. }]),
        "{}",
        events.len()
    );
}

/// An honest client gets an error if it sends too early. Fails if `Client::send_event` or
/// `Client::act` does not check whether it has joined.
#[test]
fn an_honest_client_gets_an_error_before_joining() {
    let mut server =
        Server::loopback("127.0.0.1:0", schema(), prescient::Everything).expect("a port");
    let known = token(&server);
    let client = Client::start_with(known, schema(), ClientOptions::default());
    let mut client = client.expect("it begins");
    let mut joined = false;
    for _ in 0..10_000 {
        if joined {
            break;
        }
        assert_eq!(
            client.send_event(None, b"early"),
            Err(SendError::NotConnected)
        );
        assert_eq!(client.press(1), Err(InputError::NotConnected));
        server.wait(Duration::from_millis(1));
        let too_early =
            |event| matches!(event, ServerEvent::Event { .. } | ServerEvent::Input { .. });
        assert!(!std::iter::from_fn(|| server.poll()).any(too_early));
        joined = std::iter::from_fn(|| client.poll()).any(|event| event == ClientEvent::Joined);
    }
    assert!(joined);
    client.send_event(None, b"now").expect("it has joined");
    client.press(1).expect("it has joined");
}

const AUDIT_REPORT: u8 = 3 << 4;
const APPLIED: u8 = 6 << 4;
const LOBBY: u8 = 0xf6;
const UNREADABLE: u8 = 0xf2;
