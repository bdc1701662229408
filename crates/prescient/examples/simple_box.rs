//! A box slides to and fro on a server, and a client prints its position: `cargo run -p prescient
//! --example simple_box`. The client leaves after two seconds; then the server ends, too.

use std::error::Error;
use std::thread;
use std::time::Duration;

use prescient::{Change, Client, ClientEvent, Everything, Schema, Server, ServerEvent, State};

#[derive(State)]
struct Slider {
    #[state(step = 0.01, position)]
    position: [f32; 2],
}

fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::loopback("127.0.0.1:0", Schema::of::<Slider>()?, Everything)?;
    let address = server.address().expect("it has a socket").to_string();
    let serving = thread::spawn(|| serve(server).map_err(|error| error.to_string()));
    watch(&address)?;
    serving.join().expect("the server does not panic")?;
    Ok(())
}

fn serve(mut server: Server) -> Result<(), Box<dyn Error>> {
    let mut sliding = Slider {
        position: [0.0, 1.0],
    };
    let entity = server.step()?.spawn(&sliding)?;
    for tick in 0.. {
        server.next_tick();
        while let Some(event) = server.poll() {
            match event {
                ServerEvent::Joined { peer, .. } => server.send_event(peer, b"watch the box")?,
                ServerEvent::Left { .. } => {
                    server.shut_down();
                    return Ok(());
                }
                _ => {}
            }
        }
        sliding.position[0] = (tick as f32 * 0.1).sin() * 5.0;
        server.step()?.set(entity, &sliding)?;
        server.send();
    }
    Ok(())
}

fn watch(server: &str) -> Result<(), Box<dyn Error>> {
    let mut client = Client::loopback(server, Schema::of::<Slider>()?)?;
    let mut updates = 0;
    while updates < 60 {
        client.wait(Duration::from_millis(100));
        while let Some(event) = client.poll() {
            match event {
                ClientEvent::Change(Change::Created(_)) => println!("there is a box"),
                ClientEvent::Change(Change::Updated(entity)) => {
                    updates += 1;
                    if let Some(Slider { position: [x, _] }) = client.get(entity) {
                        println!("{:>1$}", "#", (x * 6.0 + 40.0) as usize);
                    }
                }
                ClientEvent::Change(Change::Event { payload, .. }) => {
                    println!("the server says: {}", String::from_utf8_lossy(&payload));
                }
                ClientEvent::Left(reason) => return Err(reason.into()),
                _ => {}
            }
        }
    }
    client.leave();
    Ok(())
}
