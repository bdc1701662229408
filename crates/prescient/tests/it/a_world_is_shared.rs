//! A server and three clients on real sockets, behind a link like that of a moving phone.

use std::collections::BTreeSet;
use std::time::Duration;

use prescient::links::{Conditions, UdpConditioner};
use prescient::{
    About, Change, Client, ClientEvent, ClientId, ConnectToken, Everything, Grant, PeerId, Ref,
    Schema, Server, ServerEvent, State, TokenKey, UnixTime,
};
use prescient_net::{Clock, SystemEntropy};

#[derive(State, Clone, Debug, PartialEq)]
struct Ball {
    #[state(step = 0.01, position)]
    position: [f32; 2],
    #[state(step = 0.01, velocity_of = "position", per_tick)]
    speed: [f32; 2],
}

/// All clients end up with the state of the last tick, and every event arrives once. Fails if
/// `Client::answer` sends nothing, or if `Server::send` drops events that a connection had no room
/// for.
#[test]
fn all_clients_get_the_same_state_and_events() {
    let schema = || Schema::of::<Ball>().expect("a sound schema");
    let mut server = Server::loopback("127.0.0.1:0", schema(), Everything).expect("a server");
    let bad = Conditions {
        latency: Duration::from_millis(20),
        jitter: Duration::from_millis(10),
        loss: 100_000,
        ..Conditions::default()
    };
    let address = server.address().expect("it has a socket");
    let relay = UdpConditioner::start(address, 7, bad.clone(), bad).expect("a relay");
    let joining: Vec<_> = (0..3)
        .map(|number| {
            let token = token(number, &relay, &server);
            std::thread::spawn(move || Client::join(token, schema()).expect("a server is there"))
        })
        .collect();
    let mut peers = Vec::new();
    run(&mut server, &mut [], |server, _| {
        while let Some(event) = server.poll() {
            if let ServerEvent::Joined { peer, .. } = event {
                peers.push(peer);
            }
        }
        peers.len() == 3
    });
    let mut players: Vec<TestPlayer> = joining
        .into_iter()
        .map(|client| TestPlayer::new(client.join().expect("no panic")))
        .collect();

    let mut balls: Vec<(Ref<Ball>, Ball)> = Vec::new();
    for tick in 0..90u32 {
        let mut step = server.step().expect("in order");
        if tick % 5 == 0 {
            let ball = Ball {
                position: [tick as f32, 0.0],
                speed: [0.1, 0.25],
            };
            balls.push((step.spawn(&ball).expect("sound"), ball));
        }
        for (entity, ball) in &mut balls {
            ball.position[0] += ball.speed[0];
            ball.position[1] += ball.speed[1];
            step.set(*entity, ball).expect("sound");
        }
        step.finish();
        let newest = balls[balls.len() - 1].0.entity_ref();
        let announced = server.send_entity_event(newest, &tick.to_le_bytes());
        announced.expect("it is there");
        server.send();
        server.wait(Duration::from_millis(10));
        for player in &mut players {
            player.listen();
        }
    }
    for player in &mut players {
        let entity = player.client.entities().next().expect("something is shown");
        let told = player.client.send_event(Some(entity), b"mine");
        told.expect("connected");
    }
    let mut reported = BTreeSet::new();
    run(&mut server, &mut players, |server, players| {
        while let Some(event) = server.poll() {
            if let ServerEvent::Event {
                peer,
                about,
                payload,
            } = event
            {
                assert!(matches!(about, About::Entity(_)) && payload == b"mine");
                assert!(reported.insert(peer), "it arrived twice");
            }
        }
        let truth = rows(balls.iter().map(|(_, ball)| ball));
        let same = |player: &TestPlayer| {
            let shown: Vec<Ball> = player.entities().collect();
            rows(shown.iter()) == truth && player.received.len() == 90
        };
        reported.len() == 3 && players.iter().all(same)
    });
    for player in players {
        let once: BTreeSet<_> = player.received.iter().collect();
        assert_eq!(once.len(), 90, "each once");
        player.client.leave();
    }
    let mut gone: BTreeSet<PeerId> = peers.into_iter().collect();
    run(&mut server, &mut [], |server, _| {
        while let Some(event) = server.poll() {
            if let ServerEvent::Left { peer, .. } = event {
                gone.remove(&peer);
            }
        }
        gone.is_empty()
    });
    server.shut_down();
}

struct TestPlayer {
    client: Client,
    received: Vec<Vec<u8>>,
}

impl TestPlayer {
    fn new(client: Client) -> Self {
        Self {
            client,
            received: Vec::new(),
        }
    }

    fn listen(&mut self) {
        while let Some(event) = self.client.poll() {
            match event {
                ClientEvent::Change(Change::Event { payload, .. }) => self.received.push(payload),
                ClientEvent::Left(reason) => panic!("left: {reason}"),
                _ => {}
            }
        }
    }

    fn entities(&self) -> impl Iterator<Item = Ball> {
        let seen = self.client.entities();
        seen.map(|entity| self.client.get(entity).expect("a ball"))
    }
}

fn rows<'a>(balls: impl Iterator<Item = &'a Ball>) -> Vec<Vec<i64>> {
    let mut rows: Vec<_> = balls.map(|ball| ball.to_row("default")).collect();
    rows.sort();
    rows
}

/// Runs tick by tick until a condition holds.
fn run(
    server: &mut Server,
    players: &mut [TestPlayer],
    mut done: impl FnMut(&mut Server, &[TestPlayer]) -> bool,
) {
    let clock = Clock::start();
    while !done(server, players) {
        assert!(clock.now().as_micros() < 20_000_000, "it takes too long");
        server.step().expect("in order").finish();
        server.send();
        server.wait(Duration::from_millis(5));
        for player in players.iter_mut() {
            player.listen();
        }
    }
}

/// A token for the server, by way of the relay.
fn token(number: u64, relay: &UdpConditioner, server: &Server) -> ConnectToken {
    let grant = Grant {
        client: ClientId(number),
        protocol: server.protocol(),
        servers: [relay.address()]
            .into_iter()
            .chain(server.address())
            .collect(),
        expires: UnixTime(Clock::unix().0 + 60),
        data: Vec::new(),
    };
    let mut entropy = SystemEntropy::new().expect("a system with randomness");
    let token = grant.issue(&TokenKey::insecure_for_loopback_tests(), &mut entropy);
    token.expect("a sound grant")
}
