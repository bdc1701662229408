//! A server and a client with forged messages between the honest ones: each message is handled or
//! refused, and both ends continue.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prescient_codec::{Policy, Profile};
use prescient_replication::{
    Client, ClientConfig, Config, Everything, PeerId, Room, Server, ServerConfig, Tick, Tolerance,
};
use prescient_schema::{Ref, Schema, SchemaBuilder, State};

#[derive(State, Clone, Debug, Default)]
#[state(tables(public, private))]
struct Thing {
    #[state(step = 0.5, position, tables(public))]
    position: [f32; 2],
    #[state(tables(public))]
    other: Ref<Thing>,
    #[state(tables(private))]
    name: String,
}

#[derive(Arbitrary, Debug)]
enum Act {
    /// A tick, in which an entity spawns, moves or despawns, perhaps under the client's authority.
    Tick(u8, u8),
    /// The honest messages of both ends are exchanged, perhaps with an audit.
    Exchange(bool),
    /// The client travels to another world, with these settings of the codec.
    Travel(Coding),
    /// A forged message.
    ToServer(Forgery),
    ToClient(Forgery),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Coding {
    policy: u8,
    best: bool,
    learning: bool,
    max_entities: u32,
}

impl Coding {
    fn server(self) -> Server {
        let codec = Config::default()
            .with_policy(match self.policy % 3 {
                0 => Policy::Confirmed,
                1 => Policy::Immediate,
                _ => Policy::Stateless,
            })
            .with_profile(match self.best {
                false => Profile::Default,
                true => Profile::Best,
            })
            .with_learning(self.learning)
            .with_max_entities((self.max_entities as usize).max(1));
        let config = ServerConfig::default()
            .with_codec(codec)
            .with_tolerance(Tolerance::Additive);
        Server::new(schema(), config, Everything).expect("sound")
    }
}

#[derive(Arbitrary, Debug)]
struct Forgery {
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
        bytes.extend_from_slice(&self.rest);
        bytes
    }
}

const PEER: PeerId = PeerId(1);

fn schema() -> Schema {
    let schema = SchemaBuilder::new().state::<Thing>().build();
    schema.expect("a sound schema")
}

fuzz_target!(|script: (Coding, Vec<Act>)| {
    let (coding, acts) = script;
    let mut server = coding.server();
    let config = ClientConfig::default().with_tolerance(Tolerance::Additive);
    let mut client = Client::new(schema(), config).expect("sound");
    server.connect(PEER);
    let mut things: Vec<Ref<Thing>> = Vec::new();
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let mut tick = 0;
    for act in acts {
        match act {
            Act::Tick(what, which) => {
                tick += 1;
                let mut step = server.step(Tick(tick)).expect("in order");
                let thing = things.get(usize::from(which)).copied();
                let value = Thing {
                    position: [f32::from(what), f32::from(which)],
                    other: thing.unwrap_or_default(),
                    name: "x".repeat(usize::from(what % 9)),
                };
                match (what % 4, thing) {
                    (0, Some(thing)) => step
                        .grant_authority(thing.entity_ref(), PEER)
                        .expect("there"),
                    (1, Some(_)) => {
                        let gone = things.remove(usize::from(which));
                        step.despawn(gone.entity_ref()).expect("there");
                    }
                    (_, Some(thing)) => step.set(thing, &value).expect("sound"),
                    (_, None) => things.push(step.spawn_for(PEER, &value).expect("sound")),
                }
            }
            Act::Travel(coding) => {
                if let Some(transfer) = server.transfer_out(PEER) {
                    server = coding.server();
                    server.transfer_in(PEER, transfer);
                    things.clear();
                }
            }
            Act::Exchange(asks) => {
                if asks {
                    server.audit(PEER).expect("the peer has joined");
                }
                server.encode(&|_| Room::one(300));
                while let Some(transmit) = server.poll_transmit(PEER) {
                    let _ = client.handle(transmit.message());
                    down = transmit.into_message();
                }
                while client.poll_change().is_some() {}
                let own: Vec<_> = client
                    .entities()
                    .filter(|&o| client.has_authority(o))
                    .collect();
                for entity in own {
                    let _ = client.set(entity, &Thing::default());
                }
                let told = std::iter::from_fn(|| client.poll_message()).collect::<Vec<_>>();
                let said = [client.report(Some(300)), client.acknowledgement()];
                for message in told.into_iter().chain(said.into_iter().flatten()) {
                    let _ = server.handle(PEER, &message);
                    up = message;
                }
                if let Some(transmit) = server.poll_transmit(PEER) {
                    let _ = client.handle(transmit.message());
                }
            }
            Act::ToServer(forgery) => {
                let _ = server.handle(PEER, &forgery.of(&up));
            }
            Act::ToClient(forgery) => {
                let _ = client.handle(&forgery.of(&down));
            }
        }
    }
});
