//! Real sockets, and a server that disappears without closing its connections and returns at the
//! same port.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prescient::{
    Change, Client, ClientEvent, ClientOptions, CloseReason, ConnectError, EntityHandle,
    Everything, InputError, Reconnect, Schema, SendError, Server, ServerEvent, ServerOptions,
    State, TokenKey, loopback_token,
};
use prescient_channels::Denial;

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Ball {
    bounces: u8,
}

fn schema() -> Schema {
    Schema::of::<Ball>().expect("sound")
}

/// A server with some balls, each with this number of bounces.
fn serve(address: &str, balls: usize, bounces: u8) -> Server {
    let mut server = Server::loopback(address, schema(), Everything).expect("a free port");
    let mut step = server.step().expect("in order");
    for _ in 0..balls {
        step.spawn(&Ball { bounces }).expect("sound");
    }
    step.finish();
    server
}

/// A client, and the entities that its program knows from changes.
struct Player {
    client: Client,
    shown: BTreeSet<EntityHandle>,
    /// All entities that ever appeared.
    known: BTreeSet<EntityHandle>,
    story: Vec<ClientEvent>,
}

impl Player {
    fn start(address: &str, reconnect: Option<Reconnect>) -> Self {
        let mut options = ClientOptions::default();
        if let Some(reconnect) = reconnect {
            options = options.with_reconnect(reconnect);
        }
        let token = loopback_token(address).expect("it is on this machine");
        let client = Client::start_with(token, schema(), options);
        Self {
            client: client.expect("a socket"),
            shown: BTreeSet::new(),
            known: BTreeSet::new(),
            story: Vec::new(),
        }
    }

    fn look(&mut self) {
        self.client.wait(Duration::from_millis(1));
        while let Some(event) = self.client.poll() {
            match event {
                ClientEvent::Change(Change::Created(entity)) => {
                    assert!(self.known.insert(entity), "{entity:?} was another one");
                    self.shown.insert(entity);
                }
                ClientEvent::Change(Change::Removed(entity)) => {
                    assert!(self.shown.remove(&entity), "{entity:?} was not there");
                }
                ClientEvent::Change(_) => {}
                event => self.story.push(event),
            }
        }
    }

    /// The bounces of every visible ball.
    fn bounces(&self) -> Vec<u8> {
        let balls = self.client.entities().map(|entity| {
            let ball: Option<Ball> = self.client.get(entity);
            ball.expect("it is shown").bounces
        });
        balls.collect()
    }
}

/// Runs both until a condition holds.
fn run(server: &mut Server, player: &mut Player, done: impl Fn(&Player) -> bool) {
    for _ in 0..20_000 {
        if done(player) {
            return;
        }
        server.step().expect("in order").finish();
        server.send();
        server.wait(Duration::from_millis(1));
        while server.poll().is_some() {}
        player.look();
    }
    panic!("the condition never holds: {:?}", player.story);
}

/// The shown world stays until the new server's welcome; then all entities are new ones, and
/// nothing of the old world is left.
///
/// Fails without `answer_unknown` in the transport's server (then it takes a minute, which is
/// longer than this test waits), if `tend_connection` is not called, or if `Client::begin` of the
/// replication keeps the shown entities.
#[test]
fn what_is_shown_stays_until_the_new_world_appears() {
    let mut server = serve("127.0.0.1:0", 3, 1);
    let address = server.address().expect("a socket").to_string();
    let mut player = Player::start(&address, Some(Reconnect::loopback(&address)));
    run(&mut server, &mut player, |player| {
        player.bounces() == [1; 3]
    });
    assert_eq!(player.story, [ClientEvent::Joined]);
    assert!(player.client.is_connected());
    for keys in 0..5 {
        player.client.press(keys).expect("connected");
    }
    // Sends no close, unlike `shut_down`.
    drop(server);

    let mut server = serve(&address, 5, 2);
    let reset = ClientEvent::Disconnected(CloseReason::StatelessReset);
    run(&mut server, &mut player, |player| {
        player.story.contains(&reset)
    });
    if !player.client.is_connected() {
        assert_eq!(player.bounces(), [1; 3], "of the past");
        assert_eq!(
            player.client.send_event(None, b"?"),
            Err(SendError::NotConnected)
        );
        assert_eq!(player.client.press(1), Err(InputError::NotConnected));
    }
    run(&mut server, &mut player, |player| {
        player.bounces() == [2; 5]
    });
    assert_eq!(
        player.story,
        [ClientEvent::Joined, reset, ClientEvent::Reconnected]
    );
    assert!(player.client.is_connected());
    let entities: BTreeSet<_> = player.client.entities().collect();
    assert_eq!(player.shown, entities, "the changes match the entities");
    // Everything works as with the first server.
    player.client.send_event(None, b"hello").expect("connected");
    player.client.press(7).expect("connected");
    let mut received = Vec::new();
    for _ in 0..10_000 {
        player.look();
        server.wait(Duration::from_millis(1));
        received.extend(std::iter::from_fn(|| server.poll()));
        let reported = |event: &ServerEvent| matches!(event, ServerEvent::Event { payload, .. } if payload == b"hello");
        let pressed = |event: &ServerEvent| matches!(event, ServerEvent::Input { input, .. } if input.keys_down.bits() == 7);
        if received.iter().any(reported) && received.iter().any(pressed) {
            return;
        }
    }
    panic!("not all of it arrived: {received:?}");
}

/// Clients do not reconnect by default. Fails if `reconnect` has another default.
#[test]
fn by_default_it_has_left() {
    let mut server = serve("127.0.0.1:0", 1, 1);
    let address = server.address().expect("a socket").to_string();
    let mut player = Player::start(&address, None);
    run(&mut server, &mut player, |player| player.bounces() == [1]);
    drop(server);
    let mut server = serve(&address, 1, 2);
    let left = ClientEvent::Left(CloseReason::StatelessReset);
    run(&mut server, &mut player, |player| {
        player.story.contains(&left)
    });
    assert_eq!(player.bounces(), [1]);
}

/// A close by the server is final. Fails if `Lost::new` replaces a connection whatever its reason.
#[test]
fn a_closed_client_does_not_reconnect() {
    let mut server = serve("127.0.0.1:0", 1, 1);
    let address = server.address().expect("a socket").to_string();
    let mut player = Player::start(&address, Some(Reconnect::loopback(&address)));
    run(&mut server, &mut player, |player| player.bounces() == [1]);
    server.shut_down();
    let mut server = serve(&address, 1, 2);
    let left = ClientEvent::Left(CloseReason::ShuttingDown);
    run(&mut server, &mut player, |player| {
        player.story.contains(&left)
    });
}

/// A token of another key never succeeds, however often it is tried; and without any token the
/// patience ends. Fails if `fail` does not check `may_pass`, or `tend` never gives up.
#[test]
fn attempts_end() {
    let mut server = serve("127.0.0.1:0", 1, 1);
    let address = server.address().expect("a socket").to_string();
    let token = loopback_token(&address).expect("on this machine");
    let is_issued = Arc::new(AtomicBool::new(false));
    let issues = is_issued.clone();
    let later = move || issues.load(Ordering::Relaxed).then(|| token.clone());
    let mut player = Player::start(&address, Some(Reconnect::new(later)));
    let none = Reconnect::new(|| None).with_patience(Duration::from_millis(700));
    let mut without = Player::start(&address, Some(none));
    run(&mut server, &mut player, |player| player.bounces() == [1]);
    run(&mut server, &mut without, |player| player.bounces() == [1]);
    drop(server);

    let mut server = serve(&address, 1, 2);
    let lost = ClientEvent::Disconnected(CloseReason::StatelessReset);
    let is_lost = |player: &Player| player.story.contains(&lost);
    run(&mut server, &mut player, is_lost);
    run(&mut server, &mut without, is_lost);
    let left = ClientEvent::Left(CloseReason::StatelessReset);
    run(&mut server, &mut without, |player| {
        player.story.contains(&left)
    });
    assert!(!player.story.contains(&left));
    drop(server);
    let key = TokenKey::new([7; 32]).expect("not the public one");
    let options = ServerOptions::default();
    let server = Server::bind(&address, key, schema(), Everything, options);
    let mut server = server.expect("the port is free again");
    is_issued.store(true, Ordering::Relaxed);
    let failed = ClientEvent::Failed(ConnectError::Denied(Denial::Unreadable));
    run(&mut server, &mut player, |player| {
        player.story.contains(&failed)
    });
}
