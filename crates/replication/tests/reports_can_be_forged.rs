//! State with a correct check that no honest end writes, from a client to its server and the other
//! way round. The check is no signature: whoever may send state can compute it.

mod common;
#[path = "../../codec/tests/common/forger.rs"]
mod forger;

use std::sync::Arc;

use common::{Dice, Unit, greet, schema};
use forger::Forger;
use prescient_codec::{Ack, ClientId, DecodeError, Encoder, HISTORY, Slot, history::Archive};
use prescient_replication::{
    Client, ClientError, Config, Everything, MAX_REPORT_BYTES, PeerError, PeerId, Server,
    ServerConfig, Tick,
};
use prescient_schema::{Field, Kind, Ref, Schema};
use prescient_tests::seeds::over_seeds;

const LIAR: PeerId = PeerId(1);
const WITNESS: PeerId = PeerId(2);

/// A client that is in charge of an object reports it under one class and then another. Fails with
/// more than one packet applied if `Decoder::read` does not call `classes_agree`; the sixth panics
/// then, unless `Archive::record_of` compares the class.
#[test]
fn a_client_in_charge_does_not_end_its_server() {
    over_seeds(20, |seed| {
        let mut stage = Stage::new();
        let mut dice = Dice::new(seed);
        let unit = stage.own(LIAR);
        let object = stage.liar.objects().next().expect("it is shown");
        let id = stage.liar.reference(object).and_then(|to| to.index());
        let id = i64::from(id.expect("it has a number"));
        let schema = Arc::new(reported(stage.server.world().archive().schema()));
        let health = dice.below(200) as i64;
        let wide = [0, 0, health, 0, id, 1];
        let narrow = [dice.below(1000) as i64, id, 1];
        let order = dice.below(2) as u16;
        let entities = match order {
            0 => [(0, &wide[..]), (1, &narrow[..])],
            _ => [(1, &narrow[..]), (0, &wide[..])],
        };
        let changed = match order {
            0 => vec![3, 4, health + 1, 0, id, 1],
            _ => vec![narrow[0] + 1, id, 1],
        };
        let mut forger = Forger::new(&schema, Config::default(), 0, entities);
        for (at, packet) in forger.attack(&changed).iter().enumerate() {
            stage
                .server
                .handle(LIAR, &report(packet))
                .expect("what cannot be applied heals by itself");
            let ack = stage.server.acknowledgement(LIAR).expect("it reported");
            let ack = Ack::from_bytes(&ack[1..]).expect("an acknowledgement");
            assert_eq!((ack.newest.0, ack.applied), (1, 1), "after packet {at}");
            stage.tick(|_| {});
        }
        let shown = stage.witnessed();
        let expected = match order {
            0 => (health as u8, 0),
            _ => (100, narrow[0] as u16),
        };
        assert_eq!((shown.health, shown.gold), expected, "the first was sound");
        stage.tick(|step| {
            let next = Unit {
                health: 9,
                ..Unit::default()
            };
            step.set(unit, &next).expect("it is there");
        });
        assert_eq!(stage.witnessed().health, 9, "everybody goes on");
    });
}

/// Ids of reported entities index a table at the server: one far id would make it large, and every
/// later report would go through all of it. Fails if `Peer::report` allows `Config::max_entities` ids
/// to a client that is in charge of one object.
#[test]
fn a_client_in_charge_of_little_makes_no_large_table() {
    over_seeds(20, |seed| {
        let mut dice = Dice::new(seed);
        // 64 for the object, and 1024 that may be left of others.
        let limit = 1088;
        let far = limit + dice.below(8192 - u64::from(limit)) as u32;
        for (id, newest) in [(limit - 1, Some(1)), (limit, None), (far, None)] {
            let mut stage = Stage::new();
            stage.own(LIAR);
            let schema = Arc::new(reported(stage.server.world().archive().schema()));
            let packet = appearance(&schema, id);
            let taken = stage.server.handle(LIAR, &report(&packet));
            taken.expect("what cannot be applied heals by itself");
            let ack = stage.server.acknowledgement(LIAR);
            let ack = ack.and_then(|ack| Ack::from_bytes(&ack[1..]));
            assert_eq!(ack.map(|ack| ack.newest.0), newest, "number {id}");
        }
    });
}

/// Fails if `Server::hear` does not look at `MAX_REPORT_BYTES`.
#[test]
fn a_report_that_no_client_would_send_is_refused_unread() {
    let mut stage = Stage::new();
    stage.own(LIAR);
    let longest = report(&[0; MAX_REPORT_BYTES]);
    assert!(
        stage.server.handle(LIAR, &longest).is_ok(),
        "nonsense heals"
    );
    let longer = report(&[0; MAX_REPORT_BYTES + 1]);
    let taken = stage.server.handle(LIAR, &longer);
    assert!(matches!(taken, Err(PeerError::Malformed)), "{taken:?}");
}

/// A client that ignores all acknowledgements reports a crowd in confused motion: the server keeps what
/// that teaches only as far as `ServerConfig::report_memory` goes, and asks to start over. Fails
/// with all packets applied if `Intake::new` does not call `set_max_bytes`.
#[test]
fn reports_have_a_limit_in_bytes() {
    over_seeds(20, |seed| {
        let mut dice = Dice::new(seed);
        let mut stage = Stage::with(ServerConfig {
            report_memory: 1 << 19,
            ..ServerConfig::default()
        });
        let unit = stage.own(LIAR);
        let schema = Arc::new(reported(stage.server.world().archive().schema()));
        let mut archive = Archive::new(schema.clone(), HISTORY);
        let mut encoder = Encoder::new(schema, Config::default());
        let mut row = || [0; 3].map(|_| dice.below(1 << 16) as i64);
        let mut ack = None;
        for tick in 1..=60 {
            let mut capture = archive.begin(Tick(tick)).expect("in order");
            for slot in (0..1000).map(Slot) {
                match capture.class(slot) {
                    Some(_) => capture.write(slot, &row()).expect("sound"),
                    None => drop(capture.spawn(1, &row()).expect("sound")),
                }
            }
            capture.finish();
            for slot in archive.living_slots() {
                encoder.show(slot, &archive);
            }
            let packet = encoder.encode(&archive, Some(MAX_REPORT_BYTES));
            let packet = packet.expect("a new tick").bytes;
            let taken = stage.server.handle(LIAR, &report(&packet));
            taken.expect("what cannot be applied heals by itself");
            let said = stage.server.acknowledgement(LIAR).expect("it reported");
            ack = Ack::from_bytes(&said[1..]);
        }
        let ack = ack.expect("an acknowledgement");
        let newest = ack.newest.0;
        assert!(
            (1..30).contains(&newest),
            "seed {seed}: {newest} is the newest"
        );
        assert!(ack.resync, "seed {seed}");
        stage.tick(|step| {
            let next = Unit {
                health: 9,
                ..Unit::default()
            };
            step.set(unit, &next).expect("it is there");
        });
        assert_eq!(stage.witnessed().health, 9, "everybody goes on");
    });
}

/// A first packet in which an entity has this number.
fn appearance(schema: &Arc<Schema>, id: u32) -> Vec<u8> {
    let mut archive = Archive::new(schema.clone(), HISTORY);
    let mut encoder = Encoder::new(schema.clone(), Config::default());
    let mut capture = archive.begin(Tick(1)).expect("the first");
    for _ in 0..=id {
        capture.spawn(1, &[0, 0, 0]).expect("sound");
    }
    capture.finish();
    for slot in (0..=id).map(Slot) {
        encoder.show(slot, &archive);
    }
    // Nobody was told of the others.
    for slot in (0..id).map(Slot) {
        encoder.hide(slot);
    }
    assert_eq!(encoder.client_id(Slot(id)), Some(ClientId(id)));
    encoder.encode(&archive, None).expect("a new tick").bytes
}

/// The same as the first, from a hostile server. Fails like the above, but in the client.
#[test]
fn a_server_does_not_end_its_clients() {
    over_seeds(20, |seed| {
        let mut stage = Stage::new();
        let mut dice = Dice::new(seed);
        let schema = stage.server.world().archive().schema().clone();
        let wide = [0, 0, dice.below(200) as i64, 0];
        let narrow = [dice.below(1000) as i64, 0];
        let changed = [5, 6, 201, 0];
        let entities = [(0, &wide[..]), (1, &narrow[..])];
        let mut forger = Forger::new(&schema, Config::default(), 0, entities);
        let client = &mut stage.liar;
        for (at, packet) in forger.attack(&changed).iter().enumerate() {
            let taken = client.handle(&report(packet));
            match at {
                0 => assert_eq!(taken, Ok(())),
                1 => {
                    let refused = ClientError::State(DecodeError::Malformed);
                    assert_eq!(taken, Err(refused));
                }
                _ => assert!(matches!(taken, Err(ClientError::State(_))), "{taken:?}"),
            }
            let object = client.objects().next().expect("it is shown");
            assert_eq!(client.row(object, 0), Some(&wide[..]), "after packet {at}");
        }
    });
}

/// A server, a client that lies to it, and one that sees what becomes of it.
struct Stage {
    server: Server,
    liar: Client,
    witness: Client,
    tick: u32,
}

impl Stage {
    fn new() -> Self {
        Self::with(ServerConfig::default())
    }

    fn with(config: ServerConfig) -> Self {
        let mut server = Server::new(schema(), config, Everything).expect("sound");
        let [liar, witness] = [LIAR, WITNESS].map(|peer| {
            let mut client = Client::new(schema(), Default::default()).expect("sound");
            server.connect(peer);
            greet(&mut server, peer, &mut client);
            client
        });
        Self {
            server,
            liar,
            witness,
            tick: 0,
        }
    }

    /// A unit that a client is in charge of, and knows it.
    fn own(&mut self, peer: PeerId) -> Ref<Unit> {
        let mut own = None;
        self.tick(|step| {
            let unit = Unit {
                health: 100,
                ..Unit::default()
            };
            let unit = step.spawn_for(WITNESS, &unit).expect("sound");
            step.entrust(unit.entity(), Some(peer)).expect("there");
            own = Some(unit);
        });
        self.tick(|_| {});
        own.expect("just spawned")
    }

    fn tick(&mut self, during: impl FnOnce(&mut prescient_replication::Step<'_>)) {
        self.tick += 1;
        let mut step = self.server.step(Tick(self.tick)).expect("in order");
        during(&mut step);
        step.finish();
        for (peer, message) in self.server.encode(&|_| None) {
            let client = match peer {
                LIAR => &mut self.liar,
                _ => &mut self.witness,
            };
            client.handle(&message).expect("in order");
            let ack = client.acknowledgement().expect("something arrived");
            self.server.handle(peer, &ack).expect("honest");
            while let Some(message) = self.server.poll_message(peer) {
                client.handle(&message).expect("honest");
            }
        }
    }

    /// The only unit, as the other client sees it.
    fn witnessed(&self) -> Unit {
        let object = self.witness.objects().next().expect("it is shown");
        let unit: Unit = self.witness.get(object).expect("a unit");
        let gold: Unit = self.witness.get_table(object, "private").expect("its own");
        Unit {
            gold: gold.gold,
            ..unit
        }
    }
}

/// A packet as a message of the first world, in either direction.
fn report(packet: &[u8]) -> Vec<u8> {
    [&[0], packet].concat()
}

/// The schema by which clients report, made from the world's as WIRE.md says.
fn reported(world: &Schema) -> Schema {
    let number = Kind::Int {
        bits: 33,
        signed: false,
    };
    let mut schema = world.clone();
    for class in &mut schema.classes {
        if class.name.contains('.') {
            class.fields.pop();
        }
        for field in &mut class.fields {
            if matches!(field.kind, Kind::Reference { .. }) {
                field.kind = number.clone();
            }
        }
        for name in ["object", "since"] {
            class.fields.push(Field::new(name, number.clone()));
        }
    }
    schema
}
