//! Joining ends in bounded time, whatever the other end does.

use std::net::UdpSocket;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use prescient::{
    Cancel, Client, ClientId, ClientOptions, ConnectToken, Everything, Grant, JoinError,
    LinkConfig, Schema, Server, State, TokenKey, UnixTime, loopback_token,
};
use prescient_net::{BlockingServer, Clock, Socket, SystemEntropy};
use prescient_transport::ServerConfig;

#[derive(State, Default)]
struct Ball {
    bounces: u8,
}

fn schema() -> Schema {
    Schema::of::<Ball>().expect("sound")
}

/// A server that accepts every connection and never responds to messages.
fn mute_server() -> BlockingServer {
    let socket = Socket::bind("127.0.0.1:0".parse().expect("an address"));
    let socket = socket.expect("a free port");
    let key = TokenKey::insecure_for_loopback_tests();
    let config = ServerConfig::new(key, prescient::protocol(), vec![socket.address()]);
    BlockingServer::new(socket, config).expect("a server")
}

fn token(server: &str) -> ConnectToken {
    loopback_token(server).expect("it is on this machine")
}

/// The result of joining, while the server keeps running.
fn outcome(
    token: ConnectToken,
    options: ClientOptions,
    mut meanwhile: impl FnMut(),
) -> Result<(), JoinError> {
    let (done, ends) = mpsc::channel();
    thread::spawn(move || {
        let joined = Client::join_with(token, schema(), options);
        let _ = done.send(joined.map(|_| ()));
    });
    for _ in 0..PATIENCE {
        meanwhile();
        if let Ok(outcome) = ends.recv_timeout(Duration::from_millis(2)) {
            return outcome;
        }
    }
    panic!("it waits for ever");
}

/// Turns to wait; only a failing test uses them up.
const PATIENCE: u32 = 10_000;

fn hasty() -> ClientOptions {
    ClientOptions::default().with_join_timeout(Duration::from_millis(300))
}

fn patient_link() -> LinkConfig {
    LinkConfig::default().with_connect_timeout(Duration::from_secs(3600))
}

/// Fails if `join_with` checks no deadline once it is connected.
#[test]
fn a_server_that_does_not_answer_the_hello_is_given_up() {
    let mut server = mute_server();
    let address = server.address().to_string();
    let outcome = outcome(
        token(&address),
        hasty(),
        || while server.poll().is_some() {},
    );
    let error = outcome.expect_err("no server answered");
    assert!(matches!(error, JoinError::NoAnswer), "{error}");
}

/// Fails if only the link's own timeout, ten seconds for each server, ends it: then the error names
/// the same cause, but after this test stopped waiting.
#[test]
fn a_server_that_hangs_is_given_up() {
    let hangs = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = hangs.local_addr().expect("bound").to_string();
    let options = hasty().with_link(patient_link());
    let error = outcome(token(&address), options, || ()).expect_err("no server answered");
    let text = error.to_string();
    assert!(text.starts_with("no answer from 127.0.0.1"), "{text}");
}

/// Fails if `join_with` does not check whether it is cancelled.
#[test]
fn a_program_can_change_its_mind_at_any_time() {
    let patient = |cancel: &Cancel| {
        ClientOptions::default()
            .with_join_timeout(Duration::from_secs(3600))
            .with_cancel(cancel.clone())
            .with_link(patient_link())
    };
    // While it connects.
    let hangs = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    hangs.set_nonblocking(true).expect("a socket");
    let address = hangs.local_addr().expect("bound").to_string();
    let cancel = Cancel::default();
    let asked = || {
        if hangs.recv_from(&mut [0; 1500]).is_ok() {
            cancel.cancel();
        }
    };
    let error = outcome(token(&address), patient(&cancel), asked).expect_err("cancelled");
    assert!(matches!(error, JoinError::Cancelled), "{error}");

    // While it waits for a response.
    let mut server = mute_server();
    let address = server.address().to_string();
    let cancel = Cancel::default();
    let let_in = || {
        while server.poll().is_some() {}
        if server.machine().clients().count() > 0 {
            cancel.cancel();
        }
    };
    let error = outcome(token(&address), patient(&cancel), let_in).expect_err("cancelled");
    assert!(matches!(error, JoinError::Cancelled), "{error}");
}

/// The first of two servers hangs, and there is time left for the second.
///
/// Fails if each may take all of the time (`join_with` without `share`).
#[test]
fn one_server_that_hangs_leaves_time_for_the_next() {
    let hangs = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let server = Server::loopback("127.0.0.1:0", schema(), Everything);
    let mut server = server.expect("a free port");
    let grant = Grant {
        client: ClientId(1),
        protocol: prescient::protocol(),
        servers: vec![
            hangs.local_addr().expect("bound"),
            server.address().expect("a socket"),
        ],
        expires: UnixTime(Clock::unix().0 + 60),
        data: Vec::new(),
    };
    let mut entropy = SystemEntropy::new().expect("randomness");
    let token = grant.issue(&TokenKey::insecure_for_loopback_tests(), &mut entropy);
    let options = ClientOptions::default().with_join_timeout(Duration::from_secs(4));
    let joined = outcome(token.expect("sound"), options, || {
        server.wait(Duration::ZERO);
        while server.poll().is_some() {}
        server.step().expect("in order").finish();
        server.send();
    });
    joined.expect("the second server let it in");
}
