//! Typed events between a server and a client, with forged and cut ones between the honest ones: each is
//! handled or refused, honest ones before a forgery arrive unchanged, and both ends continue.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prescient_replication::{
    Change, Client, ClientConfig, Everything, PeerId, Room, Server, ServerConfig, Tick,
};
use prescient_schema::{EntityRef, Event, Ref, Schema, State};

#[derive(State, Clone, Debug, Default)]
struct Thing {
    #[state(step = 0.5, position)]
    position: [f32; 2],
}

#[derive(Event, Arbitrary, Clone, Debug, PartialEq)]
enum Told {
    Text(String),
    Numbers {
        small: i8,
        large: u64,
        narrow: i16,
        list: Vec<u16>,
    },
    #[event(unordered)]
    Alone(u32, bool),
    #[event(sequenced)]
    Nothing,
}

#[derive(Event, Clone, Debug, PartialEq)]
#[event(answer = Named)]
struct Named {
    any: EntityRef,
    thing: Ref<Thing>,
}

#[derive(Arbitrary, Debug)]
enum Act {
    /// A tick, in which a thing spawns or despawns.
    Tick(bool),
    /// The server tells, and perhaps names the newest thing.
    Down(Told, bool),
    /// The client tells, and perhaps asks.
    Up(Told, bool),
    /// The honest messages of both ends are exchanged.
    Exchange,
    ToServer(Forgery),
    ToClient(Forgery),
}

#[derive(Arbitrary, Debug)]
struct Forgery {
    kind: u8,
    /// Keeps this many bytes of the last honest message, one of them changed.
    keep: u8,
    at: u8,
    flip: u8,
    rest: Vec<u8>,
}

impl Forgery {
    fn of(&self, honest: &[u8]) -> Vec<u8> {
        let mut bytes = honest[..honest.len().min(usize::from(self.keep))].to_vec();
        if let Some(byte) = bytes.get_mut(usize::from(self.at)) {
            *byte ^= self.flip;
        }
        if bytes.is_empty() {
            bytes.push((9 + self.kind % 4) << 4);
        }
        bytes.extend_from_slice(&self.rest);
        bytes
    }
}

const PEER: PeerId = PeerId(1);

fuzz_target!(|acts: Vec<Act>| {
    let schema = Schema::of::<Thing>().and_then(Schema::with_events::<(Told, Named)>);
    let schema = schema.expect("a sound schema");
    let mut server =
        Server::new(schema.clone(), ServerConfig::default(), Everything).expect("sound");
    let mut client = Client::new(schema, ClientConfig::default()).expect("sound");
    server.connect(PEER);
    while let Some(message) = client.poll_message() {
        server.handle(PEER, &message).expect("the same schema");
    }
    let (mut things, mut tick) = (Vec::new(), 0);
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let mut told = Vec::new();
    let mut is_honest = true;
    for act in acts {
        match act {
            Act::Tick(spawns) => {
                tick += 1;
                let mut step = server.step(Tick(tick)).expect("in order");
                match (spawns, things.pop()) {
                    (true, before) => {
                        things.extend(before);
                        things.push(step.spawn(&Thing::default()).expect("room"));
                    }
                    (false, Some(thing)) => step.despawn(thing).expect("it lives"),
                    (false, None) => {}
                }
            }
            Act::Down(value, names) => {
                if server.broadcast(&value).is_ok() {
                    told.push(value);
                }
                if let (true, Some(&thing)) = (names, things.last()) {
                    let any = thing.entity_ref();
                    let _ = server.tell(PEER, &Named { any, thing });
                }
            }
            Act::Up(value, asks) => {
                if let Ok(transmit) = client.tell(&value) {
                    up = transmit.into_message();
                    let handled = server.handle(PEER, &up);
                    assert!(handled.is_ok() || !is_honest);
                }
                let any = client.entities().next();
                let any = any.and_then(|any| client.reference(any)).unwrap_or_default();
                let thing = Ref::to(any);
                if asks && let Ok((_, transmit)) = client.ask(&Named { any, thing }) {
                    up = transmit.into_message();
                    let handled = server.handle(PEER, &up);
                    assert!(handled.is_ok() || !is_honest);
                }
            }
            Act::Exchange => {
                server.encode(&|_| Room::one(1200));
                while let Some(transmit) = server.poll_transmit(PEER) {
                    let handled = client.handle(transmit.message());
                    assert!(handled.is_ok() || !is_honest, "{handled:?}");
                    down = transmit.into_message();
                }
                while let Some(change) = client.poll_change() {
                    if let Change::Typed(event) = change
                        && let Some(value) = event.read::<Told>()
                        && is_honest
                    {
                        assert!(told.contains(&value), "{value:?}");
                    }
                }
                if let Some(message) = client.acknowledgement() {
                    let _ = server.handle(PEER, &message);
                }
            }
            Act::ToServer(forgery) => {
                is_honest = false;
                let _ = server.handle(PEER, &forgery.of(&up));
            }
            Act::ToClient(forgery) => {
                is_honest = false;
                let _ = client.handle(&forgery.of(&down));
            }
        }
    }
});
