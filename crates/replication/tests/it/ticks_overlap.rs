//! A server that encodes packets while its next tick runs.

use crate::common;

use crate::common::{Unit, poll, schema};
use prescient_replication::{
    Client, Everything, PeerId, Room, Server, ServerConfig, Tick, WorldError, WorldStep,
};
use prescient_schema::Ref;

const PEER: PeerId = PeerId(1);

struct Play {
    server: Server,
    client: Client,
    units: Vec<Ref<Unit>>,
    packets: Vec<Vec<u8>>,
}

impl Play {
    fn new() -> Self {
        let server = Server::new(schema(), ServerConfig::default(), Everything);
        let mut server = server.expect("a sound schema");
        let mut client = Client::new(schema(), Default::default()).expect("a sound schema");
        server.connect(PEER);
        common::greet(&mut server, PEER, &mut client);
        Self {
            server,
            client,
            units: Vec::new(),
            packets: Vec::new(),
        }
    }

    fn deliver(&mut self) {
        while let Some(message) = poll(&mut self.server, PEER) {
            self.client.handle(&message).expect("honest");
            let ack = self.client.acknowledgement().expect("it was applied");
            self.server.handle(PEER, &ack).expect("honest");
            self.packets.push(message);
        }
    }
}

fn happen(tick: u64, units: &mut Vec<Ref<Unit>>, step: &mut WorldStep<'_>) {
    let value = |number: u64| Unit {
        position: [(tick * number % 97) as f32, (tick / 3) as f32],
        health: (tick / 7) as u8,
        ..Unit::default()
    };
    if tick.is_multiple_of(4) {
        units.push(step.spawn(&value(tick)).expect("sound"));
    }
    if tick.is_multiple_of(11) && !units.is_empty() {
        step.despawn(units.remove(0).entity_ref()).expect("there");
    }
    for (number, &unit) in units.iter().enumerate() {
        step.set(unit, &value(number as u64)).expect("sound");
    }
}

/// Fails if `encode_during` encodes the world as the next tick changes it (the snapshot taken after
/// `happen`).
#[test]
fn packets_are_the_same_as_without() -> Result<(), WorldError> {
    let (mut apart, mut overlapped) = (Play::new(), Play::new());
    let mut step = overlapped.server.step(Tick(1))?;
    happen(1, &mut overlapped.units, &mut step);
    step.finish();
    for tick in 1..200 {
        let mut step = apart.server.step(Tick(tick))?;
        happen(tick, &mut apart.units, &mut step);
        step.finish();
        apart.server.encode(&|_| Room::one(300));
        apart.deliver();

        let units = &mut overlapped.units;
        let next = tick + 1;
        let during = overlapped
            .server
            .encode_during(&|_| Room::one(300), Tick(next), |step| {
                happen(next, units, step);
            });
        during?;
        overlapped.deliver();
    }
    assert_eq!(apart.packets.len(), 199);
    assert!(apart.packets == overlapped.packets);
    Ok(())
}
