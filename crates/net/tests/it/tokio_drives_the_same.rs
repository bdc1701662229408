//! Connections over real sockets, with the tokio driver.

use crate::common::*;
use prescient_channels::*;
use prescient_net::{AsyncClient, AsyncServer, OpenError};
use prescient_transport::*;

/// Three clients and the server as tasks of one thread: each runs only while the others wait.
///
/// Fails if `wait_until` does not yield, or is not woken by its socket.
#[tokio::test(flavor = "current_thread")]
async fn tasks_of_one_thread_send_and_leave_over_ipv4() {
    send_and_leave("127.0.0.1:0").await;
}

/// Fails if `Socket::towards` opens sockets for IPv4 only.
#[tokio::test(flavor = "current_thread")]
async fn tasks_of_one_thread_send_and_leave_over_ipv6() {
    if has_ipv6() {
        send_and_leave("[::1]:0").await;
    }
}

async fn send_and_leave(address: &str) {
    let socket = bind(address);
    let address = socket.address();
    let mut server = AsyncServer::new(socket, config(vec![address])).expect("a server");
    let mut clients = Vec::new();
    for number in 0..3 {
        clients.push(tokio::spawn(client(token(number, address))));
    }
    let mut finished = 0;
    while finished < 3 {
        match server.wait(PATIENCE).await.expect("three clients, in time") {
            ServerEvent::Received {
                connection,
                received: Received::Message { message, .. },
            } => {
                let sent = server.with(|server, now| {
                    server.send(connection, ChannelId::UNRELIABLE, &message, now)
                });
                sent.expect("it is connected");
            }
            ServerEvent::Closed { reason, .. } => {
                assert_eq!(reason, CloseReason::Other(5));
                finished += 1;
            }
            _ => {}
        }
    }
    for client in clients {
        client.await.expect("no panic");
    }
    server.finish().await;
    assert_eq!(server.statistics().not_sent.total(), 0);
}

async fn client(token: ConnectToken) {
    let config = LinkConfig::default();
    let client = AsyncClient::connect(token, PROTOCOL, config).await;
    let mut client = client.expect("a server is there");
    for round in 0..20u8 {
        let sent =
            client.with(|client, now| client.send(ChannelId::UNRELIABLE, &[round; 100], now));
        sent.expect("connected");
        let payload = loop {
            let event = client.wait(PATIENCE).await.expect("an echo, in time");
            if let ClientEvent::Received(Received::Message { message, .. }) = event {
                break message;
            }
        };
        assert_eq!(payload, [round; 100]);
    }
    client.with(|client, now| client.close(CloseReason::Other(5), now));
    client.finish().await;
}

/// Tokio does not wake for ICMP errors, so the next call to send has to report them.
///
/// Fails if a refusal that a call to send reports is ignored.
#[tokio::test(flavor = "current_thread")]
#[cfg(target_os = "linux")]
async fn a_port_where_nobody_listens() {
    let closed = bind("127.0.0.1:0").address();
    let config = LinkConfig::default().with_connect_timeout(std::time::Duration::from_millis(400));
    let joined = AsyncClient::connect(token(1, closed), PROTOCOL, config).await;
    assert_eq!(
        joined.err().expect("no server is there").to_string(),
        format!("nobody listens at {closed}: is the server running, and is this its port?")
    );
}

/// Fails if the check for a runtime is left out: then tokio panics.
#[test]
fn without_a_runtime_there_is_an_error() {
    let socket = bind("127.0.0.1:0");
    let config = config(vec![socket.address()]);
    let server = AsyncServer::new(socket, config);
    assert!(matches!(server, Err(OpenError::NoRuntime)));
}
