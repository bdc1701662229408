//! Everything that may keep a player from a server, and the error texts that the player reads.

use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use crate::common::*;
use prescient_channels::*;
use prescient_net::{
    BlockingClient, BlockingServer, JoinError, Socket, insecure_token, key_from_text, resolve,
    token_from_text,
};
use prescient_transport::*;
use ring::hmac;

/// Fails if `OpenError::new` confuses errors.
#[test]
fn sockets_that_cannot_be_opened() {
    let first = bind("127.0.0.1:0");
    let address = first.address();
    assert_eq!(
        text(Socket::bind(address)),
        format!("another program uses {address}: end it, or choose another port")
    );
    let elsewhere = SocketAddr::from(([203, 0, 113, 7], 4000));
    assert_eq!(
        text(Socket::bind(elsewhere)),
        "203.0.113.7:4000 is not an address of this machine: choose one that is, or 0.0.0.0 for all"
    );
}

/// Fails if `resolve` accepts something else as a port, or a name as an address.
#[test]
fn names_that_lead_nowhere() {
    assert_eq!(
        text(resolve("127.0.0.1:99999")),
        "\"127.0.0.1:99999\": there is no port 99999; ports are 0 to 65535"
    );
    for no_port in ["localhost", "::1", "localhost:", "localhost:http"] {
        assert_eq!(
            text(resolve(no_port)),
            format!(
                "{no_port:?} has no port: write it as host:port, an IPv6 address as [address]:port"
            )
        );
    }
    let unknown = text(resolve("no-such-host.invalid:4000"));
    assert!(
        unknown.starts_with("\"no-such-host.invalid:4000\" does not resolve (")
            && unknown.ends_with("): check its spelling, and that this machine is online"),
        "{unknown}"
    );
    let found = resolve("localhost:4000").expect("every host resolves this");
    assert!(found.iter().all(|address| address.ip().is_loopback()));
    assert_eq!(
        text(insecure_token("192.0.2.1:4000", PROTOCOL, ClientId(1))),
        "\"192.0.2.1:4000\" is not on this machine, and without a token only this machine can be \
         joined: get a token from the operator of that server"
    );
}

/// Fails if truncated texts are accepted.
#[test]
fn texts_that_are_none() {
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let token = prescient_net::token_to_text(&token(1, address));
    let (first, second) = token.split_at(100);
    assert!(token_from_text(&format!(" {first}\n{second} ")).is_ok());
    assert_eq!(
        text(token_from_text("not a token!")),
        "this text is no token: copy all of it, from its first letter to its last"
    );
    assert_eq!(
        text(token_from_text(first)),
        "this token cannot be used (not a token, or one of another version): get one that was made \
         by this version"
    );
    assert_eq!(
        text(key_from_text("short")),
        "this text is no key: `prescient token --new-key FILE` makes one"
    );
}

/// Fails if ICMP errors are not requested (`curious`), or are misinterpreted.
#[test]
fn a_port_where_nobody_listens() {
    let closed = bind("127.0.0.1:0").address();
    let started = BlockingClient::start(token(1, closed), PROTOCOL, impatient());
    let mut client = started.expect("a socket");
    let reported = polled_failure(&mut client);
    // Not every system reports it; the others have the next best text.
    if cfg!(target_os = "linux") {
        assert_eq!(
            reported,
            format!("nobody listens at {closed}: is the server running, and is this its port?")
        );
        assert!(client.statistics().undeliverable > 0);
        // It did not give up at once: a server may be about to start.
        assert!(client.statistics().datagrams_sent > 1);
    } else {
        assert!(!reported.is_empty());
    }
}

/// An answer proves that a server is there, whatever the system reported before.
///
/// Fails if a datagram from the server does not clear an earlier refusal.
#[test]
#[cfg(target_os = "linux")]
fn a_server_that_starts_late_and_says_nothing() {
    let address = bind("127.0.0.1:0").address();
    let config = LinkConfig::default().with_connect_timeout(Duration::from_secs(1));
    let started = BlockingClient::start(token(0, address), PROTOCOL, config);
    let mut client = started.expect("a socket");
    while client.statistics().undeliverable == 0 {
        assert_eq!(client.wait(Duration::from_millis(1)), None, "it is patient");
    }
    let late = UdpSocket::bind(address).expect("the port is free");
    let mut request = [0; 2000];
    // The client repeats its request while the server reads.
    let (send, stop) = std::sync::mpsc::channel();
    let reading = thread::spawn(move || {
        let (_, from) = late.recv_from(&mut request).expect("a request");
        late.send_to(b"nonsense", from).expect("loopback");
        let _ = stop.recv();
    });
    assert_eq!(
        polled_failure(&mut client),
        format!(
            "no answer from {address}: check that the server runs there, and that its firewall \
             lets UDP datagrams of 1200 bytes through"
        )
    );
    send.send(()).expect("it waits");
    reading.join().expect("no panic");
}

/// Fails if `SendFailure::of` does not know the error, or if the client gives up at the first.
#[test]
fn servers_that_cannot_be_reached() {
    let silent = bind("127.0.0.1:0");
    assert_eq!(
        failure(token(1, silent.address())),
        format!(
            "no answer from {}: check that the server runs there, and that its firewall lets UDP \
             datagrams of 1200 bytes through",
            silent.address()
        )
    );

    // From loopback there is no route to other hosts.
    let far = SocketAddr::from(([203, 0, 113, 7], 4000));
    let home = bind("127.0.0.1:0");
    let started = BlockingClient::start_on(home, token(1, far), PROTOCOL, impatient());
    assert_eq!(
        polled_failure(&mut started.expect("a socket")),
        "there is no route to 203.0.113.7:4000: is this machine online, and is the address right?"
    );

    let broadcast = SocketAddr::from(([255, 255, 255, 255], 4000));
    assert_eq!(
        failure(token(1, broadcast)),
        "this machine forbids sending to 255.255.255.255:4000: let this program through its firewall"
    );
}

/// Fails if a denial is not reported as such.
#[test]
fn servers_that_say_no() {
    let socket = bind("127.0.0.1:0");
    let address = socket.address();
    let limits = Limits::default().with_connections(1);
    let config = config(vec![address]).with_limits(limits);
    let mut server = BlockingServer::new(socket, config).expect("a server");
    let (stop, stopped) = std::sync::mpsc::channel();
    let serving = thread::spawn(move || {
        while stopped.try_recv().is_err() {
            let _ = server.wait(Duration::from_millis(10));
        }
    });

    let mut expired = grant(1, address);
    expired.expires = UnixTime(expired.expires.0 - 3600);
    assert_eq!(
        failure(issue(&expired)),
        "the token has expired: get a new one, and compare the clocks of backend and server"
    );
    let foreign = TokenKey::new([1; 32]).expect("not the public one");
    let mut entropy = prescient_net::SystemEntropy::new().expect("randomness");
    let unreadable = grant(1, address).issue(&foreign, &mut entropy);
    assert_eq!(
        failure(unreadable.expect("a sound grant")),
        "the server cannot open the token: get a new one, and compare the keys of backend and server"
    );

    let first = token(1, address);
    let joined = BlockingClient::connect(first.clone(), PROTOCOL, LinkConfig::default());
    let mut joined = joined.expect("there is room for one");
    assert_eq!(
        failure(first),
        "the token was used before: get a new one for every session"
    );
    assert_eq!(
        failure(token(2, address)),
        "the server is full: try again later or elsewhere"
    );
    joined.with(|client, now| client.close(CloseReason::Finished, now));
    joined.finish();
    stop.send(()).expect("it serves");
    serving.join().expect("no panic");

    let other = ProtocolId(*b"another protocol");
    let refused = BlockingClient::start(token(1, address), other, impatient());
    assert_eq!(
        text(refused),
        "client and server run different protocols: update the client, then get a new token"
    );
}

/// A server of a later version, made by hand, because there is none.
///
/// Fails if a denial of another version is not accepted.
#[test]
fn a_server_of_another_version() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("bound");
    let foreign = thread::spawn(move || {
        let mut request = [0; 2000];
        let (_, from) = socket.recv_from(&mut request).expect("a request");
        let mut denied = vec![4];
        denied.extend_from_slice(&request[2..10]);
        denied.extend_from_slice(&[1, 9, 0]);
        let key = hmac::Key::new(hmac::HMAC_SHA256, &[0; 32]);
        let tag = hmac::sign(&key, &[&denied[..], &request[..10]].concat());
        denied.extend_from_slice(&tag.as_ref()[..16]);
        socket.send_to(&denied, from).expect("loopback");
    });
    assert_eq!(
        failure(token(1, address)),
        "the server uses version 9 of the transport: update the older of the two"
    );
    foreign.join().expect("no panic");
}

/// The error text of a client that must fail.
fn failure(token: ConnectToken) -> String {
    text(BlockingClient::connect(token, PROTOCOL, impatient()))
}

/// The same for a client that is polled.
fn polled_failure(client: &mut BlockingClient) -> String {
    match client.wait(PATIENCE) {
        Some(ClientEvent::Failed(error)) => JoinError::to_string(&client.explain(error)),
        event => panic!("{event:?}"),
    }
}

fn text<T, E: std::error::Error>(result: Result<T, E>) -> String {
    result.err().expect("an error").to_string()
}

/// Long enough to be refused a few times.
fn impatient() -> LinkConfig {
    LinkConfig::default().with_connect_timeout(Duration::from_millis(400))
}
