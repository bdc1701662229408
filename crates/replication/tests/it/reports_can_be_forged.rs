//! State with a correct checksum that no honest end writes, from a client to its server and in the
//! other direction. The checksum is no signature: any sender of state can compute it.

use std::sync::Arc;

use crate::common::{Dice, Unit, encode, greet, poll, schema};
use crate::forger::Forger;
use prescient_codec::{Ack, DecodeError, Encoder, HISTORY, NetEntityId, Slot, history::Archive};
use prescient_replication::{
    Client, ClientError, Config, Everything, MAX_REPORT_BYTES, PeerError, PeerId, Room, Server,
    ServerConfig, Tick,
};
use prescient_schema::{Field, FieldKind, Ref, Schema};
use prescient_tests::seeds::over_seeds;

const LIAR: PeerId = PeerId(1);
const WITNESS: PeerId = PeerId(2);

/// A client with authority over an entity reports it under one class and then another. Fails with
/// more than one packet applied if `Decoder::read` does not call `classes_agree`; the sixth then
/// panics, unless `Archive::record_of` compares the class.
#[test]
fn a_client_with_authority_does_not_end_its_server() {
    over_seeds(20, |seed| {
        let mut test_server = TestServer::new();
        let mut dice = Dice::new(seed);
        let unit = test_server.own(LIAR);
        let entity = test_server.liar.entities().next().expect("it is shown");
        let id = test_server.liar.reference(entity).and_then(|to| to.index());
        let id = i64::from(id.expect("it has a number"));
        let schema = Arc::new(reported(test_server.server.world().archive().schema()));
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
            test_server
                .server
                .handle(LIAR, &report(packet))
                .expect("what cannot be applied heals by itself");
            let ack = poll(&mut test_server.server, LIAR).expect("it reported");
            let ack = Ack::from_bytes(&ack[1..]).expect("an acknowledgement");
            assert_eq!(ack.newest.0, 1, "after packet {at}");
            test_server.tick(|_| {});
        }
        let shown = test_server.witnessed();
        let expected = match order {
            0 => (health as u8, 0),
            _ => (100, narrow[0] as u16),
        };
        assert_eq!((shown.health, shown.gold), expected, "the first was sound");
        test_server.tick(|step| {
            let next = Unit {
                health: 9,
                ..Unit::default()
            };
            step.set(unit, &next).expect("it is there");
        });
        assert_eq!(test_server.witnessed().health, 9, "the game goes on");
    });
}

/// Ids of reported table entities index a table at the server: one large id would make it large,
/// and every later report would walk all of it. Fails if `Peer::report` allows
/// `Config::max_entities` ids to a client with authority over one entity.
#[test]
fn a_client_with_little_authority_makes_no_large_table() {
    over_seeds(20, |seed| {
        let mut dice = Dice::new(seed);
        // 128 for the entity, and 1024 of entities whose authority may just have ended.
        let limit = 1152;
        let far = limit + dice.below(8192 - u64::from(limit)) as u32;
        for (id, newest) in [(limit - 1, Some(1)), (limit, None), (far, None)] {
            let mut test_server = TestServer::new();
            test_server.own(LIAR);
            let schema = Arc::new(reported(test_server.server.world().archive().schema()));
            let packet = appearance(&schema, id);
            let taken = test_server.server.handle(LIAR, &report(&packet));
            taken.expect("what cannot be applied heals by itself");
            let ack = poll(&mut test_server.server, LIAR);
            let ack = ack.and_then(|ack| Ack::from_bytes(&ack[1..]));
            assert_eq!(ack.map(|ack| ack.newest.0), newest, "number {id}");
        }
    });
}

/// Fails if `Server::handle_world_message` ignores `MAX_REPORT_BYTES`.
#[test]
fn a_report_that_no_client_would_send_is_refused_unread() {
    let mut test_server = TestServer::new();
    test_server.own(LIAR);
    let longest = report(&[0; MAX_REPORT_BYTES]);
    assert!(
        test_server.server.handle(LIAR, &longest).is_ok(),
        "nonsense heals"
    );
    let longer = report(&[0; MAX_REPORT_BYTES + 1]);
    let taken = test_server.server.handle(LIAR, &longer);
    assert!(matches!(taken, Err(PeerError::Malformed)), "{taken:?}");
}

/// A client that ignores all acknowledgements reports a crowd in confused motion: the server keeps what
/// that teaches only as far as `ServerConfig::with_report_memory` goes, and asks to start over. Fails
/// with all packets applied if `AuthorityReports::new` does not call `set_max_bytes`.
#[test]
fn reports_have_a_limit_in_bytes() {
    over_seeds(20, |seed| {
        let mut test_server = TestServer::with(ServerConfig::default().with_report_memory(1 << 19));
        let unit = test_server.own(LIAR);
        let mut crowd = Crowd::new(seed, &test_server.server);
        let mut ack = None;
        for _ in 0..60 {
            ack = crowd.report(&mut test_server.server);
            test_server.tick(|_| {});
        }
        let ack = ack.expect("an acknowledgement");
        let newest = ack.newest.0;
        assert!(
            (1..30).contains(&newest),
            "seed {seed}: {newest} is the newest"
        );
        assert!(ack.resync, "seed {seed}");
        test_server.tick(|step| {
            let next = Unit {
                health: 9,
                ..Unit::default()
            };
            step.set(unit, &next).expect("it is there");
        });
        assert_eq!(test_server.witnessed().health, 9, "everybody goes on");
    });
}

/// The same crowd, with all acknowledgements handled, but any number of reports per tick: the server
/// decodes as many as a tick's work allows, and goes on when ticks pass. Fails with all reports applied
/// if `WorkBudget::is_left` always returns true.
#[test]
fn reports_have_a_limit_in_work() {
    over_seeds(20, |seed| {
        let mut test_server = TestServer::new();
        test_server.own(LIAR);
        let mut crowd = Crowd::new(seed, &test_server.server);
        let mut newest = 0;
        for _ in 0..200 {
            let ack = crowd.report(&mut test_server.server).expect("it reported");
            crowd.acknowledge(&ack);
            newest = ack.newest.0;
        }
        assert!((10..100).contains(&newest), "seed {seed}: {newest} of 200");
        (0..3).for_each(|_| test_server.tick(|_| {}));
        let ack = crowd.report(&mut test_server.server).expect("it reported");
        assert_eq!(ack.newest.0, 201, "seed {seed}");
    });
}

/// A thousand entities in confused motion, reported by a client that has authority over one.
struct Crowd {
    dice: Dice,
    archive: Archive,
    encoder: Encoder,
    tick: u64,
}

impl Crowd {
    fn new(seed: u64, server: &Server) -> Self {
        let schema = Arc::new(reported(server.world().archive().schema()));
        Self {
            dice: Dice::new(seed),
            archive: Archive::new(schema.clone(), HISTORY),
            encoder: Encoder::new(schema, Config::default()),
            tick: 0,
        }
    }

    /// Sends a report and returns what the server acknowledges then.
    fn report(&mut self, server: &mut Server) -> Option<Ack> {
        self.tick += 1;
        let mut row = || [0; 3].map(|_| self.dice.below(1 << 16) as i64);
        let mut capture = self.archive.begin(Tick(self.tick)).expect("in order");
        for slot in (0..1000).map(Slot) {
            match capture.class(slot) {
                Some(_) => capture.write(slot, &row()).expect("sound"),
                None => drop(capture.spawn(1, &row()).expect("sound")),
            }
        }
        capture.finish();
        for slot in self.archive.living_slots() {
            self.encoder.show(slot, &self.archive);
        }
        let packet = self.encoder.encode(&self.archive, Some(MAX_REPORT_BYTES));
        let packet = packet.expect("a new tick").bytes;
        let taken = server.handle(LIAR, &report(&packet));
        taken.expect("what cannot be applied heals by itself");
        let message = poll(server, LIAR).expect("it reported");
        Ack::from_bytes(&message[1..])
    }

    fn acknowledge(&mut self, ack: &Ack) {
        let done = self.encoder.acknowledge(ack, &self.archive);
        done.expect("an honest acknowledgement");
    }
}

/// A first packet in which an entity has this id.
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
    // The others are not sent.
    for slot in (0..id).map(Slot) {
        encoder.hide(slot);
    }
    assert_eq!(encoder.net_entity_id(Slot(id)), Some(NetEntityId(id)));
    encoder.encode(&archive, None).expect("a new tick").bytes
}

/// Like the first test, from a hostile server. Fails for the same reasons, but in the client.
#[test]
fn a_server_does_not_end_its_clients() {
    over_seeds(20, |seed| {
        let mut test_server = TestServer::new();
        let mut dice = Dice::new(seed);
        let schema = test_server.server.world().archive().schema().clone();
        let wide = [0, 0, dice.below(200) as i64, 0];
        let narrow = [dice.below(1000) as i64, 0];
        let changed = [5, 6, 201, 0];
        let entities = [(0, &wide[..]), (1, &narrow[..])];
        let mut forger = Forger::new(&schema, Config::default(), 0, entities);
        let client = &mut test_server.liar;
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
            let entity = client.entities().next().expect("it is shown");
            assert_eq!(client.row(entity, 0), Some(&wide[..]), "after packet {at}");
        }
    });
}

/// A server, a client that lies to it, and one that observes the result.
struct TestServer {
    server: Server,
    liar: Client,
    witness: Client,
    tick: u32,
}

impl TestServer {
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

    /// A unit over which a client has authority, as the client knows.
    fn own(&mut self, peer: PeerId) -> Ref<Unit> {
        let mut own = None;
        self.tick(|step| {
            let unit = Unit {
                health: 100,
                ..Unit::default()
            };
            let unit = step.spawn_for(WITNESS, &unit).expect("sound");
            step.grant_authority(unit.entity_ref(), peer)
                .expect("there");
            own = Some(unit);
        });
        self.tick(|_| {});
        own.expect("just spawned")
    }

    fn tick(&mut self, during: impl FnOnce(&mut prescient_replication::WorldStep<'_>)) {
        self.tick += 1;
        let mut step = self.server.step(Tick(self.tick.into())).expect("in order");
        during(&mut step);
        step.finish();
        for (peer, message) in encode(&mut self.server, &|_| Room::UNLIMITED) {
            let client = match peer {
                LIAR => &mut self.liar,
                _ => &mut self.witness,
            };
            client.handle(&message).expect("in order");
            let ack = client.acknowledgement().expect("something arrived");
            self.server.handle(peer, &ack).expect("honest");
            while let Some(message) = poll(&mut self.server, peer) {
                client.handle(&message).expect("honest");
            }
        }
    }

    /// The only unit, as the other client sees it.
    fn witnessed(&self) -> Unit {
        let entity = self.witness.entities().next().expect("it is shown");
        let unit: Unit = self.witness.get(entity).expect("a unit");
        let gold: Unit = self.witness.get_table(entity, "private").expect("its own");
        Unit {
            gold: gold.gold,
            ..unit
        }
    }
}

/// A packet as a message of the first world, in either direction.
fn report(packet: &[u8]) -> Vec<u8> {
    [&[0x40], packet].concat()
}

/// The schema of reports, made from the world's as WIRE.md specifies.
fn reported(world: &Schema) -> Schema {
    let number = FieldKind::Int {
        bits: 33,
        signed: false,
    };
    let mut schema = world.clone();
    for class in &mut schema.classes {
        if class.name.contains('.') {
            class.fields.pop();
        }
        for field in &mut class.fields {
            if matches!(field.kind, FieldKind::Reference { .. }) {
                field.kind = number.clone();
            }
        }
        for name in ["entity", "since"] {
            class.fields.push(Field::new(name, number.clone()));
        }
    }
    schema
}
