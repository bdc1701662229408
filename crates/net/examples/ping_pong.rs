//! A server and a client that exchange two messages: `cargo run -p prescient-net --example
//! ping_pong`.

use std::error::Error;
use std::thread;
use std::time::Duration;

use prescient_channels::*;
use prescient_net::{BlockingClient, BlockingServer, Socket, insecure_token};
use prescient_transport::*;

const PROTOCOL: ProtocolId = ProtocolId(*b"ping pong, ver 1");

fn main() -> Result<(), Box<dyn Error>> {
    let socket = Socket::bind("127.0.0.1:0".parse()?)?;
    let address = socket.address();
    // For one host only; otherwise a backend has a secret key and issues tokens.
    let key = TokenKey::insecure_for_loopback_tests();
    let server = BlockingServer::new(socket, ServerConfig::new(key, PROTOCOL, vec![address]))?;
    let serving = thread::spawn(|| serve(server));
    play(&address.to_string())?;
    serving.join().expect("the server does not panic");
    Ok(())
}

fn serve(mut server: BlockingServer) {
    while let Some(event) = server.wait(PATIENCE) {
        match event {
            ServerEvent::Received {
                connection,
                received: Received::Message { message, .. },
            } => {
                println!("server: {}", String::from_utf8_lossy(&message));
                // Fails if the client has left meanwhile, which an event will report.
                let _ = server
                    .with(|server, now| server.send(connection, ChannelId::ORDERED, b"pong", now));
            }
            ServerEvent::Closed { reason, .. } => return println!("server: {reason}"),
            _ => {}
        }
    }
}

fn play(server: &str) -> Result<(), Box<dyn Error>> {
    let token = insecure_token(server, PROTOCOL, ClientId(1))?;
    let mut client = BlockingClient::connect(token, PROTOCOL, LinkConfig::default())?;
    for _ in 0..3 {
        client.with(|client, now| client.send(ChannelId::ORDERED, b"ping", now))?;
        if let Some(ClientEvent::Received(Received::Message { message, .. })) =
            client.wait(PATIENCE)
        {
            println!("client: {}", String::from_utf8_lossy(&message));
        }
    }
    client.with(|client, now| client.close(CloseReason::Finished, now));
    client.finish();
    Ok(())
}

/// How long to wait for a message.
const PATIENCE: Duration = Duration::from_secs(60);
