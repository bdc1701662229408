//! A client with authority over entities that sends any reports: honest ones, changed ones, and
//! valid headers with any body. The server never panics, and another client always has the state of
//! the server's world.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prescient_codec::Ack;
use prescient_fuzz::{
    config,
    forgery::{Forgery, Target},
};
use prescient_replication::{
    Client, Everything, FromClient, PeerId, Room, Server, ServerConfig, Tick,
};
use prescient_schema::{EntityRef, Ref, Schema, SchemaBuilder, State};

/// A type with many fields, containers and references.
#[derive(State, Clone, Debug, Default, PartialEq)]
#[state(tables(public, private))]
struct Ship {
    #[state(step = 0.5, position, tables(public))]
    position: [f32; 2],
    #[state(tables(public))]
    target: Ref<Ship>,
    #[state(tables(public))]
    crew: Vec<u16>,
    #[state(tables(private))]
    name: String,
    #[state(tables(private))]
    fuel: i64,
}

/// A type with one field.
#[derive(State, Clone, Debug, Default, PartialEq)]
struct Lamp {
    on: bool,
}

#[derive(Arbitrary, Debug)]
enum Act {
    /// A tick, in which an entity spawns, despawns, or changes its authority.
    Tick {
        what: u8,
        which: u8,
    },
    /// The liar sets its entities and reports them like an honest client.
    Honest {
        value: u8,
        budget: u8,
        arrives: bool,
    },
    /// The server's acknowledgement reaches the liar.
    Answer,
    /// The last report again, with changed bytes.
    Changed {
        bytes: Vec<(u8, u8)>,
        more: Vec<u8>,
    },
    Forge(Forgery),
}

#[derive(Arbitrary, Debug)]
struct Script {
    best: bool,
    acts: Vec<Act>,
}

const LIAR: PeerId = PeerId(1);
const WITNESS: PeerId = PeerId(2);

struct Scene {
    server: Server,
    liar: Client,
    witness: Client,
    entities: Vec<EntityRef>,
    tick: u32,
    /// The liar's last honest report, and the number of its reports.
    report: Vec<u8>,
    reports: u32,
    /// The server's last acknowledgement of reports.
    ack: Option<Ack>,
}

fuzz_target!(|script: Script| {
    let mut scene = Scene::new(script.best);
    for _ in 0..3 {
        scene.step(0, 0);
        scene.step(1, 0);
    }
    for act in script.acts.into_iter().take(120) {
        match act {
            Act::Tick { what, which } => scene.step(what, which),
            Act::Honest {
                value,
                budget,
                arrives,
            } => scene.honest(value, budget, arrives),
            Act::Answer => {
                if let Some(message) = scene.answer() {
                    let _ = scene.liar.handle(&message);
                }
            }
            Act::Changed { bytes, more } => {
                let mut report = scene.report.clone();
                for (at, flip) in bytes {
                    let at = usize::from(at).checked_rem(report.len());
                    if let Some(byte) = at.and_then(|at| report.get_mut(at)) {
                        *byte ^= flip;
                    }
                }
                report.extend(more);
                let _ = scene.server.handle(LIAR, &report);
            }
            Act::Forge(forgery) => {
                scene.answer();
                scene.reports += 1;
                let packet = forgery.to_bytes(Target {
                    epoch: scene.ack.map_or(0, |ack| ack.epoch),
                    newest: scene.ack.map_or(0, |ack| ack.newest.0),
                    tick: scene.reports,
                    honest: scene.report.get(1..).unwrap_or_default(),
                });
                let _ = scene.server.handle(LIAR, &[&[0x40], &packet[..]].concat());
            }
        }
    }
    scene.step(2, 0);
});

fn schema() -> Schema {
    let schema = SchemaBuilder::new().state::<Ship>().state::<Lamp>().build();
    schema.expect("a sound schema")
}

impl Scene {
    fn new(best: bool) -> Self {
        let config = ServerConfig::default().with_codec(config(best));
        let mut server = Server::new(schema(), config, Everything).expect("sound");
        let [liar, witness] = [LIAR, WITNESS].map(|peer| {
            let mut client = Client::new(schema(), Default::default()).expect("sound");
            server.connect(peer);
            while let Some(message) = client.poll_message() {
                server.handle(peer, &message).expect("honest");
            }
            while let Some(transmit) = server.poll_transmit(peer) {
                client.handle(transmit.message()).expect("honest");
            }
            client
        });
        Self {
            server,
            liar,
            witness,
            entities: Vec::new(),
            tick: 0,
            report: Vec::new(),
            reports: 0,
            ack: None,
        }
    }

    fn step(&mut self, what: u8, which: u8) {
        // Acknowledgements of reports that nobody asked for are lost: of forged ones, which the
        // liar's client never sent, it would refuse them.
        while self.answer().is_some() {}
        self.tick += 1;
        let mut step = self.server.step(Tick(self.tick.into())).expect("in order");
        let at = usize::from(which).checked_rem(self.entities.len());
        match (what % 6, at) {
            (0 | 1, _) if self.entities.len() < 12 => {
                let made = match what % 6 {
                    0 => step
                        .spawn_for(WITNESS, &Ship::default())
                        .map(|to| to.entity_ref()),
                    _ => step
                        .spawn_for(WITNESS, &Lamp::default())
                        .map(|to| to.entity_ref()),
                };
                let made = made.expect("sound");
                step.grant_authority(made, LIAR).expect("there");
                self.entities.push(made);
            }
            (3, Some(at)) => step.revoke_authority(self.entities[at]).expect("there"),
            (4, Some(at)) => step
                .grant_authority(self.entities[at], LIAR)
                .expect("there"),
            (5, Some(at)) => step.despawn(self.entities.remove(at)).expect("there"),
            _ => {}
        }
        step.finish();
        self.server.encode(&|_| Room::UNLIMITED);
        for (peer, client) in [(LIAR, &mut self.liar), (WITNESS, &mut self.witness)] {
            while let Some(transmit) = self.server.poll_transmit(peer) {
                client
                    .handle(transmit.message())
                    .expect("the server is honest");
            }
            let ack = client.acknowledgement().expect("something arrived");
            self.server.handle(peer, &ack).expect("honest");
        }
        while self.liar.poll_change().is_some() {}
        while self.witness.poll_change().is_some() {}
        self.compare();
    }

    /// Asserts that the witness has the server's state.
    fn compare(&mut self) {
        assert_eq!(self.witness.tick(), self.server.world().tick());
        assert_eq!(self.witness.entities().count(), self.entities.len());
        self.server.audit(WITNESS).expect("connected");
        while let Some(transmit) = self.server.poll_transmit(WITNESS) {
            self.witness.handle(transmit.message()).expect("honest");
        }
        while let Some(message) = self.witness.poll_message() {
            let found = self.server.handle(WITNESS, &message).expect("honest");
            if let FromClient::AuditReport { differences, .. } = found {
                assert_eq!(differences, []);
            }
        }
    }

    fn honest(&mut self, value: u8, budget: u8, arrives: bool) {
        let mut own: Vec<_> = self.liar.entities().collect();
        own.retain(|&entity| self.liar.has_authority(entity));
        for entity in own {
            let ship = Ship {
                position: [f32::from(value); 2],
                target: self.liar.reference(entity).map(Ref::to).unwrap_or_default(),
                crew: (0..u16::from(value % 7)).collect(),
                name: "x".repeat(usize::from(value % 9)),
                fuel: i64::from(value) << 50,
            };
            if self.liar.set(entity, &ship).is_err() {
                let lamp = Lamp { on: value & 1 == 1 };
                self.liar
                    .set(entity, &lamp)
                    .expect("the entity has one of the two types");
            }
        }
        if let Some(report) = self.liar.report(Some(20 + 4 * usize::from(budget))) {
            self.reports += 1;
            if arrives {
                let _ = self.server.handle(LIAR, &report);
            }
            self.report = report;
        }
    }

    fn answer(&mut self) -> Option<Vec<u8>> {
        let message = self.server.poll_transmit(LIAR)?.into_message();
        self.ack = Ack::from_bytes(&message[1..]);
        Some(message)
    }
}
