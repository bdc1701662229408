//! Statistics and ledger report costs and lag, and a client that receives nothing is closed.

use std::time::Duration;

use prescient::{
    Change, Client, ClientEvent, ClientId, CloseReason, ConnectToken, Everything, Grant, JoinError,
    PeerId, Ref, Schema, Server, ServerEvent, ServerOptions, State, TokenKey, UnixTime,
    loopback_token,
};
use prescient_channels::ChannelId;
use prescient_net::{BlockingServer, Clock, Socket, SystemEntropy};
use prescient_transport::{ServerConfig, ServerEvent as Net};

#[derive(State, Clone, Debug, Default, PartialEq)]
#[state(rename = "ball")]
struct Ball {
    #[state(step = 0.01, position)]
    x: f32,
    still: u32,
}

fn schema() -> Schema {
    Schema::of::<Ball>().expect("a sound schema")
}

/// A server without a socket, a local client, and a ball.
fn game() -> (Server, Client, PeerId, Ref<Ball>) {
    let mut server = Server::offline(schema(), Everything).expect("a server");
    let client = server.local_client();
    let Some(ServerEvent::Joined { peer, .. }) = server.poll() else {
        panic!("no client joined");
    };
    let mut step = server.step().expect("in order");
    let ball = step.spawn(&Ball::default()).expect("sound");
    step.finish();
    (server, client, peer, ball)
}

/// Moves the ball unpredictably.
fn roll(server: &mut Server, ball: Ref<Ball>, tick: u32) {
    let x = (tick.wrapping_mul(2_654_435_761) >> 16) as f32 / 100.0;
    let mut step = server.step().expect("in order");
    step.set(ball, &Ball { x, still: 7 }).expect("sound");
    step.finish();
    server.send();
}

/// Fails if `Server::ledger` takes bits for bytes, names the wrong field, or does not sort.
#[test]
fn the_ledger_lists_what_bytes_are_spent_on() {
    let (mut server, mut client, peer, ball) = game();
    assert_eq!(server.ledger(peer), []);
    server.keep_ledger(peer, true).expect("it is connected");
    for tick in 0..60 {
        roll(&mut server, ball, tick);
        while client.poll().is_some() {}
        while server.poll().is_some() {}
    }
    let state = server.statistics(peer).expect("it is connected").state;
    assert_eq!(state.packets, 60);
    let expenses = server.ledger(peer);
    let told: f64 = expenses.iter().map(|expense| expense.bytes).sum();
    // Each message has one byte for its type.
    let sent = (state.bytes - state.packets) as f64;
    assert!((told - sent).abs() < sent / 50.0, "{told} of {sent} bytes");
    let (dearest, cheapest) = (&expenses[0], &expenses[expenses.len() - 1]);
    assert!(dearest.bytes >= cheapest.bytes);
    let of_field = |expense: &&prescient::Expense| expense.cause == "surprise";
    let surprise = expenses.iter().find(of_field).expect("it rolls");
    let name = (surprise.class.as_str(), surprise.field.as_str());
    assert_eq!(name, ("ball", "x"));
    server.keep_ledger(peer, false).expect("it is connected");
    assert_eq!(server.ledger(peer), []);
}

/// Fails if `Sent::apply` notes nothing, or `PeerReport::new` uses another tick than the world's.
#[test]
fn a_client_that_does_not_poll_lags_behind() {
    let (mut server, mut client, peer, ball) = game();
    server.send();
    let lag = |server: &Server| server.statistics(peer).expect("it is connected").lag;
    assert_eq!(lag(&server), None);
    while client.poll().is_some() {}
    while server.poll().is_some() {}
    assert_eq!(lag(&server), Some(0));
    for tick in 0..5 {
        roll(&mut server, ball, tick);
    }
    assert_eq!(lag(&server), Some(5));
    while client.poll().is_some() {}
    while server.poll().is_some() {}
    assert_eq!(lag(&server), Some(0));
    assert_eq!(client.view_statistics().applied, 6);
}

/// Case 30 of slow readers: the bytes that wait for a client are bounded; beyond that its
/// connection is closed with a reason.
///
/// Fails if `Server::send` does not check what waits.
#[test]
fn a_client_that_receives_nothing_is_closed() {
    let (mut server, mut client, peer, _) = game();
    let mut max = 0;
    let left = (0..100).find_map(|_| {
        for _ in 0..50 {
            let _ = server.send_event(peer, &[7; 1000]);
        }
        server.send();
        let waits = server.statistics(peer).map_or(0, |report| report.backlog);
        max = max.max(waits);
        server.poll()
    });
    let reason = CloseReason::Stalled;
    assert_eq!(left, Some(ServerEvent::Left { peer, reason }));
    assert!(
        max <= 1 << 20,
        "{max} bytes, and the default allows a mebibyte"
    );
    let happened = std::iter::from_fn(|| client.poll());
    assert_eq!(happened.last(), Some(ClientEvent::Left(reason)));
}

/// Fails if `Backlog::send` drops messages that it cannot send without counting them.
#[test]
fn events_that_are_too_long_are_counted() {
    let (mut server, mut client, peer, _) = game();
    for length in [70_000, 10] {
        server
            .send_event(peer, &vec![7; length])
            .expect("it is connected");
    }
    server.send();
    let report = server.statistics(peer).expect("it is connected");
    assert_eq!((report.too_long, report.backlog), (1, 0));
    let received = std::iter::from_fn(|| client.poll());
    let received =
        received.filter(|event| matches!(event, ClientEvent::Change(Change::Event { .. })));
    assert_eq!(received.count(), 1);
}

/// What a program does not poll stays in bounded queues. Fails if `Server::poll` receives
/// everything before it returns the first event.
#[test]
fn a_server_takes_in_what_is_polled() {
    let (mut server, mut client, ..) = game();
    let fill = |client: &mut Client| {
        (0..)
            .take_while(|_| client.send_event(None, b"hey").is_ok())
            .count()
    };
    assert!(fill(&mut client) > 1000);
    assert!(matches!(server.poll(), Some(ServerEvent::Event { .. })));
    assert_eq!(fill(&mut client), 1);
}

/// A server with a valid transport that sends only invalid messages. Fails if `Client::handle` does
/// not count what it could not apply.
#[test]
fn what_is_not_understood_is_counted() {
    let address = "127.0.0.1:0".parse().expect("an address");
    let socket = Socket::bind(address).expect("a socket");
    let key = TokenKey::insecure_for_loopback_tests();
    let config = ServerConfig::new(key, prescient::protocol(), vec![socket.address()]);
    let mut server = BlockingServer::new(socket, config).expect("a server");
    let token = loopback_token(&server.address().to_string()).expect("it is on this machine");
    let mut client = Client::start(token, schema()).expect("it begins");
    for _ in 0..10_000 {
        if client.view_statistics().refused > 0 {
            break;
        }
        if let Some(Net::Connected { connection, .. }) = server.wait(Duration::from_millis(2)) {
            let sent =
                server.with(|server, now| server.send(connection, ChannelId::ORDERED, &[9], now));
            sent.expect("connected");
            server.flush();
        }
        client.wait(Duration::from_millis(2));
        while client.poll().is_some() {}
    }
    assert_eq!(client.view_statistics().refused, 1);
    assert_eq!(client.entities().count(), 0);
}

/// A server that is bound to all addresses cannot know at which of them clients reach it.
///
/// Fails if `Server::bind` ignores the public addresses.
#[test]
fn tokens_may_name_a_public_address() {
    let public = "192.0.2.1:4000".parse().expect("an address");
    let options = ServerOptions::default().with_public_addresses(vec![public]);
    let mut server = bind("0.0.0.0:0", options);
    let port = server.address().expect("it has a socket").port();
    let here = ([127, 0, 0, 1], port).into();
    let mut join = |servers| {
        let token = token(&server, servers);
        let joining = std::thread::spawn(move || Client::join(token, schema()).map(drop));
        while !joining.is_finished() {
            server.wait(Duration::from_millis(2));
            while server.poll().is_some() {}
        }
        joining.join().expect("no panic")
    };
    assert!(join(vec![here, public]).is_ok());
    let Err(JoinError::Connection(refused)) = join(vec![here]) else {
        panic!("a token that names no public address was taken");
    };
    let text = refused.to_string();
    assert!(text.contains("`serve --public ADDRESS`"), "{text}");
}

fn key() -> TokenKey {
    TokenKey::new([7; 32]).expect("not the public one")
}

fn bind(address: &str, options: ServerOptions) -> Server {
    let server = Server::bind(address, key(), schema(), Everything, options);
    server.expect("a server")
}

fn token(server: &Server, servers: Vec<std::net::SocketAddr>) -> ConnectToken {
    let grant = Grant {
        client: ClientId(1),
        protocol: server.protocol(),
        servers,
        expires: UnixTime(Clock::unix().0 + 60),
        data: Vec::new(),
    };
    let mut entropy = SystemEntropy::new().expect("a system with randomness");
    let token = grant.issue(&key(), &mut entropy);
    token.expect("a sound grant")
}

/// A report tells bytes of state from everything else, in both directions, with the headers of IP and
/// UDP. Fails if the headers are left out, or if state is counted at one end only.
#[test]
fn state_and_overhead_are_told_apart() {
    let mut server = crate::common::bind(schema(), ServerOptions::default());
    let token = crate::common::token(&server);
    let (joined, _) = crate::common::join(&mut server, move || Client::join(token, schema()));
    let mut clients = [joined.expect("it joins")];
    let mut step = server.step().expect("in order");
    let ball = step.spawn(&Ball::default()).expect("sound");
    step.finish();
    let mut tick = 0;
    crate::common::run(&mut server, &mut clients, |server, clients| {
        tick += 1;
        roll(server, ball, tick);
        while server.poll().is_some() {}
        while clients[0].poll().is_some() {}
        tick > 100
    });
    let peer = server.peers().next().expect("it is there");
    let report = server.statistics(peer).expect("it is there");
    let link = report.link.expect("it is no local client");
    let (state, overhead) = (report.state_bytes_down(), report.overhead_bytes_down());
    assert!(state > 500 && overhead > state, "{state} {overhead}");
    assert_eq!(state + overhead, report.bytes_down());
    let headers = 28 * link.packets_sent;
    assert_eq!(report.bytes_down(), link.bytes_sent + headers);
    assert_eq!(
        report.bytes_up(),
        link.bytes_received + 28 * link.packets_received
    );
    let shown = clients[0].view_statistics();
    assert!(
        shown.state_bytes > 0 && shown.state_bytes <= state,
        "{shown:?}"
    );
    assert!(clients[0].statistics().expect("a socket").bytes_received > shown.state_bytes);
}
