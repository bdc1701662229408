//! A peer that publishes a ship and shows those of others, through a Zenoh router.
//!
//!     cargo run --example ships -- router             # in one terminal
//!     cargo run --example ships -- anna ben           # in another
//!     cargo run --example ships -- ben anna           # and in a third

use std::time::{Duration, Instant};

use prescient::named::Time;
use prescient::{EntityReplica, EntitySet, EntitySetCodec, EntityVersions, State};
use prescient_zenoh::{ZenohPublisher, ZenohSubscriber};
use zenoh::{Config, Wait};

#[derive(State, Clone, Debug)]
struct Ship {
    #[state(step = 0.01)]
    position: [f32; 2],
}

const ROUTER: &str = "[\"tcp/127.0.0.1:7447\"]";

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let mut config = Config::default();
    config.insert_json5("scouting/multicast/enabled", "false")?;
    let [own, other] = &names[..] else {
        config.insert_json5("mode", "\"router\"")?;
        config.insert_json5("listen/endpoints", ROUTER)?;
        let _router = zenoh::open(config).wait()?;
        println!("a router at {ROUTER}; end it with Ctrl-C");
        loop {
            std::thread::park();
        }
    };
    config.insert_json5("mode", "\"client\"")?;
    config.insert_json5("connect/endpoints", ROUTER)?;
    let session = zenoh::open(config).wait()?;
    let codec = EntitySetCodec::<Ship>::new()?;
    // A real game takes the time of its start: see `first_version`.
    let versions = EntityVersions::new(codec.clone());
    let mut publisher = ZenohPublisher::new(&session, &format!("ships/{own}"), 1, versions)?;
    let replica = EntityReplica::new(codec);
    let mut subscriber = ZenohSubscriber::new(&session, &format!("ships/{other}"), replica)?;
    let start = Instant::now();
    for tick in 0..300_u64 {
        let now = Time::from_micros(start.elapsed().as_micros() as u64);
        let angle = tick as f32 / 20.0;
        let ship = Ship {
            position: [angle.cos(), angle.sin()],
        };
        publisher.publish_with(|versions, version| {
            let entities = [(0, ship)].into();
            versions.insert(version, now, EntitySet { tick, entities });
        })?;
        publisher.poll()?;
        while let Some(applied) = subscriber.poll(now) {
            applied?;
        }
        if tick % 30 == 0 {
            match subscriber.replica().set().entities.get(&0) {
                Some(ship) => println!("{other} is at {:.2?}", ship.position),
                None => println!("waiting for {other}"),
            }
        }
        std::thread::sleep(Duration::from_millis(33));
    }
    Ok(())
}
