//! Typed events that no honest end sends are refused, and nothing panics.

use std::sync::Arc;

use prescient_codec::{Layout, RowCoder, numbers};
use prescient_replication::{
    Change, Client, ClientConfig, ClientError, Everything, FromClient, PeerError, PeerId, Room,
    Server, ServerConfig, Tick,
};
use prescient_schema::{EntityRef, Event, Parcel, Ref, Schema, State};

#[derive(State)]
struct Tank {
    x: u8,
}

#[derive(State)]
struct Flag {
    x: u8,
}

#[derive(Event, Clone, Debug, PartialEq)]
#[event(unordered)]
struct Aimed {
    at: Ref<Tank>,
    any: EntityRef,
}

#[derive(Event, Clone, Debug, PartialEq)]
#[event(answer = Said)]
struct Said(String);

const PEER: PeerId = PeerId(1);
/// First bytes of messages of the first world.
const STREAM: u8 = 9 << 4;
const ALONE: u8 = 10 << 4;
const REPLY: u8 = 12 << 4;

struct Both {
    server: Server,
    client: Client,
    tank: EntityRef,
}

fn schema() -> Schema {
    let schema = Schema::of::<(Tank, Flag)>();
    let schema = schema.and_then(Schema::with_events::<(Aimed, Said)>);
    schema.expect("a sound schema")
}

impl Both {
    /// The client shows a tank (id 0) and a flag (id 1).
    fn new() -> Self {
        let server = Server::new(schema(), ServerConfig::default(), Everything);
        let mut server = server.expect("sound");
        let mut client = Client::new(schema(), ClientConfig::default()).expect("sound");
        server.connect(PEER);
        while let Some(message) = client.poll_message() {
            server.handle(PEER, &message).expect("the same schema");
        }
        let mut step = server.step(Tick(1)).expect("in order");
        let tank = step.spawn(&Tank { x: 7 }).expect("room").entity_ref();
        step.spawn(&Flag { x: 8 }).expect("room");
        step.finish();
        let mut both = Self {
            server,
            client,
            tank,
        };
        for tick in 2..6 {
            both.exchange();
            both.server.step(Tick(tick)).expect("in order").finish();
        }
        both
    }

    fn exchange(&mut self) -> Vec<Change> {
        self.server.encode(&|_| Room::one(1200));
        while let Some(transmit) = self.server.poll_transmit(PEER) {
            let handled = self.client.handle(transmit.message());
            handled.expect("an honest message");
        }
        if let Some(message) = self.client.acknowledgement() {
            let handled = self.server.handle(PEER, &message);
            handled.expect("an honest message");
        }
        std::iter::from_fn(|| self.client.poll_change()).collect()
    }
}

/// An `Aimed` with these cells.
fn aimed(at: i64, any: i64) -> Vec<u8> {
    let mut coder = RowCoder::stateless(Arc::new(Layout::new(Arc::new(schema()))));
    let parcel = Parcel {
        row: vec![at, any],
        contents: Vec::new(),
    };
    let message = coder.encode(vec![ALONE], 5, 2, &parcel, 1000);
    message.expect("its columns are sound")
}

/// Fails if `typed_event` trusts ids, or does not compare types.
#[test]
fn forged_references_are_refused() {
    let mut both = Both::new();
    let mut handle = |at, any| both.server.handle(PEER, &aimed(at, any));
    let Ok(FromClient::Typed(event)) = handle(1, 2) else {
        panic!("the client shows both");
    };
    let read: Aimed = event.read().expect("it is one");
    assert_eq!(read.at.entity_ref(), both.tank);
    assert!(!read.any.is_none());
    let mut handle = |at, any| both.server.handle(PEER, &aimed(at, any));
    // A flag in place of a tank, an id that no entity ever had, the greatest one.
    for (at, any) in [(2, 0), (0, 3), (3, 0), (0, 1 << 32)] {
        assert_eq!(handle(at, any), Err(PeerError::Malformed), "{at} {any}");
    }
    assert!(handle(0, 0).is_ok());
}

/// What was hidden or despawned is no forgery: the client may not know it yet. Fails if such a
/// reference is refused, or names another entity.
#[test]
fn late_references_are_empty() {
    let mut both = Both::new();
    let aimed = Aimed {
        at: Ref::to(EntityRef::new(0, 0)),
        any: EntityRef::NONE,
    };
    let message = both.client.tell(&aimed).expect("it is visible");
    let mut step = both.server.step(Tick(6)).expect("in order");
    step.despawn(both.tank).expect("it lives");
    step.finish();
    both.server.encode(&|_| Room::one(1200));
    let handled = both.server.handle(PEER, message.message());
    let Ok(FromClient::Typed(event)) = handled else {
        panic!("{handled:?}");
    };
    assert_eq!(event.read::<Aimed>().map(|it| it.at), Some(Ref::NONE));
}

/// Fails if a row has no check, if a state can be sent as an event, or if anything panics.
#[test]
fn cut_and_changed_events_are_refused() {
    let mut refused = 0;
    let mut tried = 0;
    for text in ["hello", "", "a longer text, with more than a few letters"] {
        let said = Said(text.into());
        let mut both = Both::new();
        let honest = both.client.tell(&said).expect("sound").into_message();
        for length in 0..honest.len() {
            for flip in [0u8, 1, 64] {
                let mut both = Both::new();
                let mut forged = honest[..length].to_vec();
                if let Some(last) = forged.get_mut(1..).and_then(<[u8]>::last_mut) {
                    *last ^= flip;
                }
                tried += 1;
                refused += usize::from(both.server.handle(PEER, &forged).is_err());
                // At the client the same bytes are as wrong.
                let handled = both.client.handle(&forged);
                if !matches!(handled, Err(ClientError::Event(_) | ClientError::Malformed)) {
                    refused -= 1;
                }
            }
        }
    }
    // The check has 8 bits.
    assert!(tried - refused <= 1 + tried / 64, "{refused} of {tried}");
    let mut both = Both::new();
    let parcel = Parcel {
        row: vec![1],
        contents: Vec::new(),
    };
    let mut coder = RowCoder::of_stream(Arc::new(Layout::new(Arc::new(schema()))));
    let state = coder.encode(vec![STREAM], 5, 0, &parcel, 1000);
    let state = state.expect("a tank");
    assert_eq!(both.server.handle(PEER, &state), Err(PeerError::Malformed));
    assert_eq!(both.client.handle(&state), Err(ClientError::Malformed));
}

/// A reply to what was never asked is refused. Fails if numbers of replies are not compared.
#[test]
fn replies_need_questions() {
    let reply = |number: u32| {
        let mut head = vec![REPLY];
        numbers::put(&mut head, number.into());
        let mut coder = RowCoder::of_stream(Arc::new(Layout::new(Arc::new(schema()))));
        let (_, parcel) = Said("yes".into()).to_parcel();
        coder.encode(head, 5, 3, &parcel, 1000).expect("sound")
    };
    let mut both = Both::new();
    let handled = both.server.handle(PEER, &reply(0));
    assert_eq!(handled, Err(PeerError::Malformed));
    let mut both = Both::new();
    assert_eq!(both.client.handle(&reply(0)), Err(ClientError::Malformed));
    let mut both = Both::new();
    let asked = both.server.ask(PEER, &Said("well?".into()));
    asked.expect("a sound question");
    assert!(both.server.handle(PEER, &reply(0)).is_ok());
    assert_eq!(
        both.exchange()
            .iter()
            .filter(|change| matches!(change, Change::Question(_)))
            .count(),
        1
    );
}

/// A client that sends more than can be read is refused; one that chats is not. Fails if
/// `tells_too_much` counts nothing, or never forgets.
#[test]
fn floods_are_refused() {
    let mut both = Both::new();
    for tick in 6..2_000 {
        both.server.step(Tick(tick)).expect("in order").finish();
        let said = both.client.tell(&Said(format!("number {tick}")));
        let handled = both.server.handle(PEER, said.expect("sound").message());
        assert!(handled.is_ok(), "{handled:?}");
    }
    let text: String = (0..1_500u32)
        .map(|at| char::from(b' ' + (at.wrapping_mul(2_654_435_761) >> 26) as u8))
        .collect();
    let refused = (0..1_000u32).find_map(|_| {
        let said = both.client.tell(&Said(text.clone()));
        let handled = both.server.handle(PEER, said.expect("sound").message());
        let said = both.client.tell(&Said(String::new()));
        let cleared = both.server.handle(PEER, said.expect("sound").message());
        handled.err().or(cleared.err())
    });
    assert_eq!(refused, Some(PeerError::TooMuch));
}
