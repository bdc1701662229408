//! From the name that a player sends over HTTP to the connection on a game's server.

use std::net::SocketAddr;
use std::time::Duration;

use prescient_channels::ClientId;
use prescient_example_backend::{Backend, PROTOCOL, router};
use prescient_net::{AsyncClient, AsyncServer, Socket, SystemEntropy, token_from_text};
use prescient_transport::{LinkConfig, ServerConfig, ServerEvent, TokenKey};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Fails if the backend names another server or protocol, or forgets the name.
#[tokio::test(flavor = "current_thread")]
async fn a_name_becomes_a_connection() {
    let key = TokenKey::generate(&mut SystemEntropy::new().expect("randomness"));
    let socket = Socket::bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    let game = socket.address();
    let config = ServerConfig::new(key.clone(), PROTOCOL, vec![game]);
    let mut server = AsyncServer::new(socket, config).expect("a server");
    let backend = start(Backend {
        key,
        servers: vec![game],
        next: 5.into(),
    })
    .await;

    let (status, text) = fetch(backend, "alice").await;
    assert_eq!(status, "HTTP/1.1 200 OK");
    let token = token_from_text(&text).expect("a token");
    let client = tokio::spawn(AsyncClient::connect(token, PROTOCOL, LinkConfig::default()));
    match server.wait(Duration::from_secs(30)).await {
        Some(ServerEvent::Connected { client, data, .. }) => {
            assert_eq!((client, &data[..]), (ClientId(5), &b"alice"[..]));
        }
        other => panic!("{other:?}"),
    }
    // It was told before the server knew.
    assert!(client.await.expect("no panic").is_ok());
}

/// Fails if the backend issues tokens to nobody, or what a token cannot hold.
#[tokio::test(flavor = "current_thread")]
async fn names_that_are_none_are_refused() {
    let backend = start(Backend {
        key: TokenKey::generate(&mut SystemEntropy::new().expect("randomness")),
        servers: vec![SocketAddr::from(([127, 0, 0, 1], 1))],
        next: 1.into(),
    })
    .await;
    let (status, text) = fetch(backend, "").await;
    assert_eq!(status, "HTTP/1.1 400 Bad Request");
    assert_eq!(text, "send your name as the body");
    let (status, text) = fetch(backend, &"x".repeat(300)).await;
    assert_eq!(status, "HTTP/1.1 400 Bad Request");
    assert_eq!(
        text,
        "300 bytes are too long for a token, which has room for 256"
    );
}

async fn start(backend: Backend) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a free port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async { axum::serve(listener, router(backend)).await });
    address
}

/// The status and the body of the answer.
async fn fetch(backend: SocketAddr, name: &str) -> (String, String) {
    let mut stream = TcpStream::connect(backend).await.expect("it listens");
    let request = format!(
        "POST /token HTTP/1.1\r\nHost: {backend}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{name}",
        name.len()
    );
    let sent = stream.write_all(request.as_bytes()).await;
    sent.expect("it listens");
    let mut answer = String::new();
    let received = stream.read_to_string(&mut answer).await;
    received.expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer of HTTP");
    let status = head.lines().next().expect("a status");
    (status.to_owned(), body.trim().to_owned())
}
