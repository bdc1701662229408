//! Case 32: every call of the facade with invalid arguments returns a typed error and never panics,
//! and nothing of the game is lost: three players still see the true state and get every event
//! once.

use std::net::SocketAddr;
use std::time::Duration;

use crate::common::bind;
use prescient::links::Random;
use prescient::{
    Change, Client, ClientConfig, ClientEvent, ClientId, ClientOptions, EntityHandle, Everything,
    ExchangeConfig, Input, InputError, JoinError, Limits, LinkConfig, MoveError, PeerError, PeerId,
    Position, Reconnect, Ref, Schema, SendError, ServeError, Server, ServerConfig, ServerEvent,
    ServerOptions, SetError, State, TcpClient, TcpServer, TokenKey, WorldError, WorldId,
    loopback_token, protocol,
};
use prescient_schema::{Class, EntityRef, Field, FieldKind};
use prescient_tests::seeds::over_seeds;

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Ball {
    #[state(step = 0.01, position)]
    position: [f32; 2],
    bounces: u8,
}

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Stranger {
    number: u8,
}

fn schema() -> Schema {
    Schema::of::<Ball>().expect("a sound schema")
}

const NOBODY: PeerId = PeerId(u64::MAX);

fn events(server: &mut Server) -> Vec<ServerEvent> {
    std::iter::from_fn(|| server.poll()).collect()
}

/// A game of three, and the events sent in it.
struct Game {
    server: Server,
    clients: Vec<Client>,
    peers: Vec<PeerId>,
    ball: Ref<Ball>,
    /// A despawned entity, by the server's reference and the clients' handles.
    gone: Ref<Ball>,
    gone_entities: Vec<EntityHandle>,
    sent_down: u32,
    received_down: [u32; 3],
    sent_up: u32,
    received_up: u32,
}

impl Game {
    fn new() -> Self {
        let mut server = Server::offline(schema(), Everything).expect("a server");
        let clients: Vec<_> = (0..3).map(|_| server.local_client()).collect();
        let peers = events(&mut server).into_iter().map(|event| match event {
            ServerEvent::Joined { peer, .. } => peer,
            other => panic!("not joined: {other:?}"),
        });
        let peers = peers.collect();
        let mut step = server.step().expect("the first");
        let gone = step.spawn(&Ball::default()).expect("sound");
        step.finish();
        let mut game = Self {
            server,
            clients,
            peers,
            ball: gone,
            gone,
            gone_entities: Vec::new(),
            sent_down: 0,
            received_down: [0; 3],
            sent_up: 0,
            received_up: 0,
        };
        game.pass();
        let entities = game.clients.iter().map(|client| client.entities().next());
        game.gone_entities = entities.map(|entity| entity.expect("shown")).collect();
        let mut step = game.server.step().expect("in order");
        step.despawn(gone.entity_ref()).expect("there");
        game.ball = step.spawn(&Ball::default()).expect("sound");
        step.finish();
        game.pass();
        game
    }

    /// Sends and polls everything, counting events.
    fn pass(&mut self) {
        self.server.send();
        for (client, received) in self.clients.iter_mut().zip(&mut self.received_down) {
            while let Some(event) = client.poll() {
                if let ClientEvent::Change(Change::Event { payload, .. }) = event {
                    assert_eq!(payload, received.to_le_bytes(), "in order, each once");
                    *received += 1;
                }
            }
        }
        for event in events(&mut self.server) {
            if let ServerEvent::Event { payload, .. } = event {
                assert_eq!(payload, b"sense");
                self.received_up += 1;
            }
        }
    }

    /// A tick with valid calls only.
    fn play(&mut self, tick: u32) {
        let position = [tick as f32, -(tick as f32)];
        let bounces = tick as u8;
        let value = Ball { position, bounces };
        let mut step = self.server.step().expect("in order");
        step.set(self.ball, &value).expect("there");
        step.finish();
        for &peer in &self.peers {
            let sent_down = self.server.send_event(peer, &self.sent_down.to_le_bytes());
            sent_down.expect("it is here");
        }
        self.sent_down += 1;
        for client in &mut self.clients {
            client.send_event(None, b"sense").expect("there is room");
            self.sent_up += 1;
        }
        self.pass();
        self.pass();
        for client in &self.clients {
            let shown: Vec<_> = client.entities().map(|entity| client.get(entity)).collect();
            assert_eq!(shown, [Some(value.clone())]);
        }
        assert_eq!(self.received_down, [self.sent_down; 3]);
        assert_eq!(self.received_up, self.sent_up);
    }

    /// An invalid call to the server.
    fn bother_server(&mut self, which: i64) {
        let (server, ball, gone) = (&mut self.server, self.ball, self.gone.entity_ref());
        let missing = Err(PeerError::NoSuchPeer(NOBODY));
        let no_entity = WorldError::NoSuchEntity(gone);
        // Opened and closed, so that it does not exist.
        let world = server.open_world(Everything).expect("sound");
        server.close_world(world).expect("it has no peers");
        let no_world = MoveError::NoSuchWorld(world);
        match which {
            0 => assert_eq!(server.send_event(NOBODY, b"?"), missing),
            1 => server.kick(NOBODY),
            2 => assert_eq!(server.move_to(self.peers[0], world), Err(no_world)),
            3 => {
                let nobody = MoveError::NoSuchPeer(NOBODY);
                assert_eq!(server.move_to(NOBODY, WorldId::FIRST), Err(nobody));
            }
            4 => {
                let in_use = MoveError::InUse(WorldId::FIRST);
                assert_eq!(server.close_world(WorldId::FIRST), Err(in_use));
                assert_eq!(server.close_world(world), Err(no_world));
                // Not even without peers.
                let mut empty = Server::offline(schema(), Everything).expect("a server");
                assert_eq!(empty.close_world(WorldId::FIRST), Err(in_use));
            }
            5 => assert!(server.step_in(world).is_none()),
            6 => {
                assert_eq!(server.send_entity_event(gone, b"?"), Err(no_entity));
                let nothing = WorldError::NoSuchEntity(EntityRef::NONE);
                assert_eq!(
                    server.send_entity_event(EntityRef::NONE, b"?"),
                    Err(nothing)
                );
            }
            7 => {
                assert_eq!(server.keep_ledger(NOBODY, true), missing);
                assert_eq!(server.ledger(NOBODY), []);
                assert_eq!(server.statistics(NOBODY), None);
                assert_eq!(server.keys(NOBODY), 0);
            }
            8 => {
                assert_eq!(server.audit(NOBODY), missing);
                assert_eq!(server.resync(NOBODY), missing);
                assert_eq!(
                    server.set_view_position(NOBODY, Position([f64::NAN; 3])),
                    missing
                );
            }
            9 => {
                let nowhere = Position([f64::NAN, f64::INFINITY, -1e300]);
                let looked = server.set_view_position(self.peers[1], nowhere);
                looked.expect("it is here");
            }
            10 => {
                let mut step = server.step().expect("in order");
                let stranger = Stranger::default();
                let unknown = WorldError::UnknownType(Stranger::NAME.into());
                assert_eq!(step.spawn(&stranger).map(drop), Err(unknown.clone()));
                assert_eq!(
                    step.set(Ref::to(ball.entity_ref()), &stranger),
                    Err(unknown)
                );
                let value = Ball::default();
                assert_eq!(step.set(Ref::to(gone), &value), Err(no_entity.clone()));
                assert_eq!(step.despawn(gone), Err(no_entity.clone()));
                assert_eq!(step.grant_authority(gone, NOBODY), Err(no_entity.clone()));
                assert_eq!(step.set_owner(gone, Some(NOBODY)), Err(no_entity));
            }
            11 => {
                let position = [f32::NAN, f32::NEG_INFINITY];
                let broken = Ball {
                    position,
                    bounces: 0,
                };
                let mut step = server.step().expect("in order");
                let refused = step.set(ball, &broken);
                assert!(matches!(refused, Err(WorldError::DoesNotFit { .. })));
            }
            12 => {
                // Too long to be sent: it does not arrive, and is counted.
                let report =
                    |server: &Server, peer| server.statistics(peer).expect("here").too_long;
                let before = report(server, self.peers[2]);
                server
                    .send_event(self.peers[2], &[7; 200_000])
                    .expect("here");
                server.send();
                assert_eq!(report(server, self.peers[2]), before + 1);
            }
            _ => {
                server.wait(Duration::ZERO);
                server.send();
                server.send();
            }
        }
    }

    /// An invalid call to a client.
    fn bother_client(&mut self, at: usize, which: i64) {
        let (client, gone) = (&mut self.clients[at], self.gone_entities[at]);
        let here = client.entities().next().expect("shown");
        match which {
            0 => {
                assert_eq!(client.get::<Ball>(gone), None);
                assert_eq!(client.get::<Stranger>(here), None);
                assert_eq!(client.get_table::<Ball>(here, "secret"), None);
            }
            1 => {
                for reference in [EntityRef::NONE, EntityRef::new(u32::MAX, 9)] {
                    assert_eq!(client.resolve(reference), None);
                }
                assert_eq!(client.reference(gone), None);
                assert_eq!(client.offset(here, gone), None);
            }
            2 => {
                let refused = Err(SetError::NoAuthority);
                assert_eq!(client.set(here, &Ball::default()), refused);
                assert_eq!(client.set(gone, &Ball::default()), refused);
                assert_eq!(client.set(here, &Stranger::default()), refused);
                assert!(!client.has_authority(gone));
                client.report();
            }
            3 => {
                let long = client.send_event(None, &[0; 200_000]);
                assert!(matches!(long, Err(SendError::TooLong { .. })), "{long:?}");
                assert_eq!(
                    client.send_event(Some(gone), b"nonsense"),
                    Ok(()),
                    "nothing is sent"
                );
            }
            4 => {
                let fields = vec![0; 100_000];
                let input = Input {
                    fields,
                    ..Input::default()
                };
                assert_eq!(client.act(input), Err(InputError::Fields(100_000)));
            }
            5 => drop(client.press(u64::MAX).expect("any keys are keys")),
            _ => client.wait(Duration::ZERO),
        }
    }
}

/// Fails if `Worlds::close` closes the first world, `Worlds::move_to` checks the peer last and
/// panics, `Backlog::send` does not count messages that are too long, or `LocalClient::push_input`
/// accepts fields of any length.
#[test]
fn nothing_is_lost_in_a_game_of_nonsense() {
    over_seeds(20, |seed| {
        let mut random = Random::new(seed);
        let mut game = Game::new();
        for tick in 1..=60 {
            for _ in 0..4 {
                game.bother_server(random.range(0, 14));
                let at = random.range(0, 3) as usize;
                game.bother_client(at, random.range(0, 7));
            }
            game.play(tick);
        }
    });
}

/// Calls after the end return errors, too. Fails if `Client::press` continues without a connection.
#[test]
fn after_the_end_there_are_still_answers() {
    let mut game = Game::new();
    game.server.kick(game.peers[0]);
    game.server.kick(game.peers[0]);
    game.pass();
    assert_eq!(
        game.server.send_event(game.peers[0], b"?"),
        Err(PeerError::NoSuchPeer(game.peers[0]))
    );
    let client = &mut game.clients[0];
    assert_eq!(client.send_event(None, b"?"), Err(SendError::NotConnected));
    assert_eq!(client.press(1), Err(InputError::NotConnected));
    client.report();
    client.wait(Duration::ZERO);
    assert_eq!(client.poll(), None);
    assert_eq!(client.entities().count(), 1, "what was shown stays");
    (game.clients.remove(0)).leave();
    (game.peers, game.received_down) = (game.peers[1..].to_vec(), [0; 3]);
    game.sent_down = 0;
    let mut step = game.server.step().expect("in order");
    let value = Ball {
        bounces: 3,
        ..Ball::default()
    };
    step.set(game.ball, &value).expect("there");
    step.finish();
    game.pass();
    for client in &game.clients {
        let entity = client.entities().next().expect("shown");
        assert_eq!(client.get(entity), Some(value.clone()));
    }
    game.server.shut_down();
}

/// Fails if `Schema::validate` is not called, or if an address is not checked.
#[test]
fn a_failed_start_has_a_reason() {
    let twice = Field::new("a", FieldKind::Bool);
    let broken = || Schema {
        classes: vec![Class::new("broken", vec![twice.clone(), twice.clone()])],
    };
    let refused = Server::offline(broken(), Everything).err();
    assert!(matches!(
        refused,
        Some(ServeError::World(WorldError::Schema(_)))
    ));
    for address in ["", "nowhere", "127.0.0.1", "127.0.0.1:99999", ":::", "\0:1"] {
        let refused = Server::loopback(address, schema(), Everything).err();
        assert!(matches!(refused, Some(ServeError::Address(_))), "{address}");
        let refused = Client::loopback(address, schema()).err();
        assert!(matches!(refused, Some(JoinError::Address(_))), "{address}");
    }
    let server = Server::loopback("127.0.0.1:0", schema(), Everything).expect("a server");
    let address = server.address().expect("it has a socket").to_string();
    let refused = Server::loopback(&address, schema(), Everything).err();
    assert!(matches!(refused, Some(ServeError::Socket(_))), "taken");
    let token = loopback_token(&address).expect("it is on this machine");
    let refused = Client::join(token, broken()).err();
    assert!(matches!(
        refused,
        Some(JoinError::World(WorldError::Schema(_)))
    ));
}

/// Both ends refuse options that cannot work and name the option, whatever they are started with.
///
/// Fails if a rule is missing in a `check` of the options, or if `Server::bind`,
/// `Server::with_carrier`, `Client::start_with`, `Client::join_with` or `Client::start_with_carrier`
/// does not check.
#[test]
fn options_that_cannot_work_have_a_name() {
    let (server, client) = (ServerOptions::default, ClientOptions::default);
    let (zero, address) = (Duration::ZERO, |port| {
        SocketAddr::from(([127, 0, 0, 1], port))
    });
    let link = || LinkConfig::default().with_inbox(0);
    let bad = [
        ("packet", server().with_packet(0)),
        ("tick_interval", server().with_tick_interval(zero)),
        ("tick_interval", server().with_tick_interval(Duration::MAX)),
        ("apply_timeout", server().with_apply_timeout(zero)),
        (
            "connections",
            server().with_limits(Limits::default().with_connections(0)),
        ),
        ("inbox", server().with_link(link())),
    ];
    for (option, options) in bad {
        let key = TokenKey::insecure_for_loopback_tests();
        let bound = Server::bind("127.0.0.1:0", key, schema(), Everything, options.clone());
        let carrier = TcpServer::bind(address(0), protocol(), ExchangeConfig::default(), 8);
        let carrier = carrier.expect("a free port");
        let carried = Server::with_carrier(carrier, schema(), Everything, options);
        for refused in [bound, carried] {
            match refused.err() {
                Some(ServeError::Config(error)) => assert_eq!(error.setting(), option),
                other => panic!("{option}: {other:?}"),
            }
        }
    }

    let hasty = Reconnect::loopback("127.0.0.1:1").with_patience(zero);
    let bad = [
        ("join_timeout", client().with_join_timeout(zero)),
        ("patience", client().with_reconnect(hasty)),
        ("inbox", client().with_link(link())),
    ];
    for (option, options) in bad {
        let token = || loopback_token("127.0.0.1:1").expect("it is on this machine");
        let exchange = ExchangeConfig::default();
        let carrier = TcpClient::connect(address(1), protocol(), ClientId(1), b"", &exchange);
        let carrier = carrier.expect("a socket");
        let refused = [
            Client::start_with(token(), schema(), options.clone()),
            Client::join_with(token(), schema(), options.clone()),
            Client::start_with_carrier(carrier, schema(), options),
        ];
        for refused in refused {
            match refused.err() {
                Some(JoinError::Config(error)) => assert_eq!(error.setting(), option),
                other => panic!("{option}: {other:?}"),
            }
        }
    }
}

/// Absurd options of a server and a client: no panic, and what can work does. Fails if `Backlog`
/// counts bytes that it does not hold (`bytes` without subtracting what was sent).
#[test]
fn options_may_make_no_sense() {
    for extreme in [0, 1, usize::MAX] {
        let exchange = ExchangeConfig::default()
            .with_max_message(extreme.min(128 << 10))
            .with_backlog(extreme.min(1 << 30))
            .with_stalled(Duration::from_millis(1));
        let link = LinkConfig::default()
            .with_outbox(extreme.max(1))
            .with_inbox(extreme.max(1))
            .with_inbox_bytes(extreme.max(1))
            .with_timeout(Duration::from_secs(extreme.clamp(1, 9) as u64))
            .with_exchange(exchange);
        let replication = ServerConfig::default()
            .with_relevance_interval((extreme as u32).max(1))
            .with_grid_cell(f64::MAX)
            .with_resync_every(extreme as u32)
            .with_max_event_bytes(extreme);
        let options = ServerOptions::default()
            .with_packet(extreme.max(1))
            .with_backlog(extreme)
            .with_public_addresses(vec![([0, 0, 0, 0], 0).into()])
            .with_replication(replication)
            .with_link(link.clone());
        let mut server = bind(schema(), options);
        let mut local_client = server.local_client();
        let address = server.address().expect("it has a socket").to_string();
        let replication = ClientConfig::default().with_max_entities(extreme.max(1));
        let options = ClientOptions::default()
            .with_replication(replication)
            .with_link(link);
        let token = loopback_token(&address).expect("it is on this machine");
        let mut client = Client::start_with(token, schema(), options).expect("it begins");
        for bounces in 0..20 {
            let mut step = server.step().expect("in order");
            let value = Ball {
                bounces,
                ..Ball::default()
            };
            step.spawn(&value).expect("sound");
            step.finish();
            server.send();
            server.wait(Duration::from_millis(1));
            for client in [&mut local_client, &mut client] {
                client.wait(Duration::ZERO);
                while client.poll().is_some() {}
                let _ = client.send_event(None, &[1; 1000]);
                let _ = client.press(7);
            }
            events(&mut server);
        }
        // Only the options limit what reaches the local client.
        let shown = local_client.entities().count();
        assert_eq!(shown, if extreme > 1 { 20 } else { 0 });
        server.shut_down();
    }
    let key = TokenKey::insecure_for_loopback_tests();
    let public = Server::bind(
        "localhost:0",
        key,
        schema(),
        Everything,
        ServerOptions::default(),
    );
    public.expect("a name is an address").shut_down();
}
