//! A publisher and a reader that gets only some of its packets, with forged ones in between.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prescient_codec::Profile;
use prescient_replication::{
    ClientConfig, Config, Everything, Publisher, PublisherConfig, Room, Server, ServerConfig,
    SubscribeError, Subscriber, Tick,
};
use prescient_schema::{Ref, Schema, SchemaBuilder, State};

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Thing {
    #[state(step = 0.5, position)]
    position: [f32; 2],
    other: Ref<Thing>,
    name: String,
}

#[derive(Arbitrary, Debug)]
enum Act {
    /// Some ticks, in the first of which an entity spawns, changes or despawns.
    Step(u8, u8, u8),
    /// The newest tick is published, and arrives or is lost.
    Publish(bool),
    RequestSnapshot,
    /// This many bytes of the last packet, one of them changed, and others.
    Forge(u8, u8, u8, Vec<u8>),
}

#[derive(Arbitrary, Debug)]
struct Settings {
    snapshots: u8,
    bases: u8,
    best: bool,
}

fn schema() -> Schema {
    let schema = SchemaBuilder::new().state::<Thing>().build();
    schema.expect("a sound schema")
}

fuzz_target!(|script: (Settings, Vec<Act>)| {
    let (settings, acts) = script;
    let mut server = Server::new(schema(), ServerConfig::default(), Everything).expect("sound");
    let codec = Config::default().with_profile(match settings.best {
        false => Profile::Default,
        true => Profile::Best,
    });
    let config = PublisherConfig::default()
        .with_codec(codec)
        .with_snapshot_interval(u32::from(settings.snapshots % 100) + 1)
        .with_base_interval(u32::from(settings.bases) + 1);
    let mut publisher = Publisher::new(server.world(), config, Everything).expect("sound");
    let mut reader = Subscriber::new(schema(), ClientConfig::default()).expect("sound");
    let mut things: Vec<Ref<Thing>> = Vec::new();
    let mut last = Vec::new();
    let mut tick = 0;
    let mut is_forged = false;
    for act in acts {
        match act {
            Act::Step(what, which, skip) => {
                tick += 1 + u32::from(skip % 8);
                let mut step = server.step(Tick(tick.into())).expect("in order");
                let thing = things.get(usize::from(which)).copied();
                let value = Thing {
                    position: [f32::from(what), f32::from(which)],
                    other: thing.unwrap_or_default(),
                    name: "x".repeat(usize::from(what % 9)),
                };
                match (what % 4, thing) {
                    (1, Some(_)) => {
                        let gone = things.remove(usize::from(which));
                        step.despawn(gone.entity_ref()).expect("there");
                    }
                    (_, Some(thing)) => step.set(thing, &value).expect("sound"),
                    (_, None) => things.push(step.spawn(&value).expect("sound")),
                }
                step.finish();
                if what & 16 != 0 {
                    server.encode(&|_| Room::UNLIMITED);
                }
            }
            Act::Publish(arrives) => {
                let Ok(packet) = publisher.publish(server.world()) else {
                    continue;
                };
                if arrives {
                    match reader.handle(&packet.bytes) {
                        Ok(shown) if !is_forged => {
                            assert_eq!(shown, packet.tick);
                            assert_eq!(reader.entities().count(), things.len());
                        }
                        Err(SubscribeError::MissingBase { .. }) => {
                            assert!(!packet.is_snapshot || is_forged);
                        }
                        Err(error) if !is_forged => panic!("{error}"),
                        Ok(_) | Err(_) => {}
                    }
                }
                last = packet.bytes;
            }
            Act::RequestSnapshot => publisher.request_snapshot(),
            Act::Forge(keep, at, flip, rest) => {
                let mut bytes = last[..last.len().min(usize::from(keep))].to_vec();
                if let Some(byte) = bytes.get_mut(usize::from(at)) {
                    *byte ^= flip;
                }
                bytes.extend(rest);
                let before = (reader.tick(), reader.sequence(), reader.entities().count());
                match reader.handle(&bytes) {
                    Ok(_) => is_forged = true,
                    Err(_) => {
                        let after = (reader.tick(), reader.sequence(), reader.entities().count());
                        assert_eq!(before, after);
                    }
                }
            }
        }
        while let Some(change) = reader.poll_change() {
            std::hint::black_box(&change);
        }
    }
});
