//! A server and a client over TCP, for networks that do not let UDP through: only the carrier
//! differs from the other examples.
//!
//! `cargo run --release -p prescient --example tcp`

use std::error::Error;
use std::thread;
use std::time::Duration;

use prescient::{
    Change, Client, ClientEvent, ClientId, ClientOptions, Everything, ExchangeConfig, Schema,
    Server, ServerEvent, ServerOptions, State, TcpClient, TcpServer, protocol,
};

#[derive(State)]
struct Planet {
    #[state(step = 0.01, position)]
    position: [f32; 2],
}

fn main() -> Result<(), Box<dyn Error>> {
    let here = "127.0.0.1:0".parse()?;
    let carrier = TcpServer::bind(here, protocol(), ExchangeConfig::default(), 64)?;
    let address = carrier.address();
    let schema = Schema::of::<Planet>()?;
    let server = Server::with_carrier(carrier, schema, Everything, ServerOptions::default())?;
    let serving = thread::spawn(move || serve(server).map_err(|error| error.to_string()));

    // The server trusts the id and the data: TCP has no tokens.
    let carrier = TcpClient::connect(
        address,
        protocol(),
        ClientId(7),
        b"blue team",
        &ExchangeConfig::default(),
    )?;
    let schema = Schema::of::<Planet>()?;
    watch(Client::join_with_carrier(
        carrier,
        schema,
        ClientOptions::default(),
    )?)?;
    serving.join().expect("it does not panic")?;
    Ok(())
}

/// Runs until a client has come and gone.
fn serve(mut server: Server) -> Result<(), Box<dyn Error>> {
    let at = |tick: u32| {
        let angle = tick as f32 * 0.02;
        let position = [angle.cos() * 50.0, angle.sin() * 50.0];
        Planet { position }
    };
    let planet = server.step()?.spawn(&at(1))?;
    for tick in 2.. {
        server.next_tick();
        while let Some(event) = server.poll() {
            match event {
                ServerEvent::Joined { peer, client, data } => {
                    let team = String::from_utf8_lossy(&data).into_owned();
                    println!("client {} of {team} joined", client.0);
                    server.send_event(peer, b"welcome")?;
                }
                ServerEvent::Left { .. } => return Ok(()),
                _ => {}
            }
        }
        server.step()?.set(planet, &at(tick))?;
        server.send();
    }
    Ok(())
}

/// Watches the planet for a hundred updates, then leaves.
fn watch(mut client: Client) -> Result<(), Box<dyn Error>> {
    let mut updates = 0;
    while updates < 100 {
        client.wait(Duration::from_millis(16));
        while let Some(event) = client.poll() {
            match event {
                ClientEvent::Change(Change::Event { payload, .. }) => {
                    println!("the server says: {}", String::from_utf8_lossy(&payload));
                }
                ClientEvent::Change(Change::Updated(_)) => updates += 1,
                ClientEvent::Left(reason) => return Err(reason.into()),
                _ => {}
            }
        }
    }
    for entity in client.entities() {
        if let Some(Planet { position: [x, y] }) = client.get(entity) {
            println!("after {updates} updates the planet is at {x:.2}, {y:.2}");
        }
    }
    client.leave();
    Ok(())
}
