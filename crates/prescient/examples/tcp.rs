//! State over a TCP stream, for programs with a carrier of their own: `prescient-replication` alone
//! produces and handles messages of bytes, independently of how they are carried.
//!
//! `cargo run --release -p prescient --example tcp`

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use prescient::State;
use prescient_codec::Policy;
use prescient_replication::{
    Change, Client, ClientConfig, Config, Everything, PeerId, Server, ServerConfig, Tick,
};
use prescient_schema::Schema;

#[derive(State)]
struct Planet {
    #[state(step = 0.01, position)]
    position: [f32; 2],
}

/// A stream loses nothing, so both ends can learn from a packet at once, without waiting for its
/// acknowledgement. The server decides, and sends the setting to its clients.
fn config() -> Config {
    Config {
        policy: Policy::Immediate,
        ..Config::default()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let serving = thread::spawn(move || serve(&listener).map_err(|error| error.to_string()));
    watch(TcpStream::connect(address)?)?;
    serving.join().expect("it does not panic")?;
    Ok(())
}

fn serve(listener: &TcpListener) -> Result<(), Box<dyn Error>> {
    let mut stream = listener.accept()?.0;
    let settings = ServerConfig {
        codec: config(),
        ..ServerConfig::default()
    };
    let mut server = Server::new(Schema::of::<Planet>()?, settings, Everything)?;
    let peer = PeerId(1);
    server.connect(peer);
    let hello = take(&mut stream)?.ok_or("it left before its hello")?;
    server.handle(peer, &hello)?;

    let at = |tick: u32| {
        let angle = tick as f32 * 0.02;
        let position = [angle.cos() * 50.0, angle.sin() * 50.0];
        Planet { position }
    };
    let planet = server.step(Tick(1))?.spawn(&at(1))?;
    for tick in 2..=600 {
        server.step(Tick(tick))?.set(planet, &at(tick))?;
        if tick % 200 == 0 {
            server.send_event(peer, format!("{tick} steps around the sun").as_bytes())?;
        }
        while let Some(message) = server.poll_message(peer) {
            put(&mut stream, &message)?;
        }
        // A stream carries packets of any length: no budget.
        for (_, message) in server.encode(&|_| None) {
            put(&mut stream, &message)?;
        }
    }
    Ok(())
}

fn watch(mut stream: TcpStream) -> Result<(), Box<dyn Error>> {
    let mut client = Client::new(Schema::of::<Planet>()?, ClientConfig::default())?;
    while let Some(message) = client.poll_message() {
        put(&mut stream, &message)?;
    }
    let (mut frames, mut bytes) = (0, 0);
    while let Some(message) = take(&mut stream)? {
        (frames, bytes) = (frames + 1, bytes + message.len());
        client.handle(&message)?;
        while let Some(change) = client.poll_change() {
            if let Change::Event { tick, payload, .. } = change {
                println!(
                    "tick {}: the server says: {}",
                    tick.0,
                    String::from_utf8_lossy(&payload)
                );
            }
        }
    }
    for entity in client.entities() {
        if let Some(Planet { position: [x, y] }) = client.get(entity) {
            println!("in the end the planet is at {x:.2}, {y:.2}");
        }
    }
    println!("{frames} frames, {} bytes each on average", bytes / frames);
    Ok(())
}

/// Writes a frame: the length in four bytes, then the message.
fn put(stream: &mut TcpStream, message: &[u8]) -> io::Result<()> {
    stream.write_all(&(message.len() as u32).to_le_bytes())?;
    stream.write_all(message)
}

/// Reads the next frame; `None` at the end.
fn take(stream: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match stream.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    // With an untrusted server, this length would need a limit.
    let mut message = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut message)?;
    Ok(Some(message))
}
