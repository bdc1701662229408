//! A ferry whose path is known ahead: the server sends a few keyframes instead of positions, and a correction
//! when it is delayed; a client that joins late gets the past as well. All look up the same positions, at any
//! time: `cargo run --release -p prescient --example paths`.

use std::error::Error;
use std::thread;
use std::time::Duration;

use prescient::timeline::packed::PackedConfig;
use prescient::timeline::{Keyframe, PropertyId, Time};
use prescient::{
    Client, ClientEvent, CloseReason, Everything, Schema, Server, ServerEvent, State,
    TimelineClient, TimelineServer,
};

/// Curves need no entities, but a server has a schema.
#[derive(State)]
struct Ferry {
    #[state(max_len = 16)]
    name: String,
}

const FERRY: PropertyId = PropertyId(1);

/// Values are rounded to centimetres, times to milliseconds.
fn config() -> PackedConfig<[f32; 2]> {
    PackedConfig::new(0.01).expect("a step above zero")
}

/// From the near bank to the island, a rest of two seconds, and on to the far bank.
fn crossing(delay: i64) -> Vec<Keyframe<[f32; 2]>> {
    let stops = [
        (1_000, [0.0, 0.0]),
        (21_000 + delay, [30.0, 40.0]),
        (23_000 + delay, [30.0, 40.0]),
        (43_000 + delay, [0.0, 80.0]),
    ];
    stops
        .map(|(time, position)| Keyframe::new(Time::from_millis(time), position))
        .to_vec()
}

fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::loopback("127.0.0.1:0", Schema::of::<Ferry>()?, Everything)?;
    let address = server.address().expect("it has a socket").to_string();
    let serving = thread::spawn(|| serve(server).map_err(|error| error.to_string()));
    watch("early", &address, b"go")?;
    watch("late", &address, b"stop")?;
    serving.join().expect("it does not panic")?;
    Ok(())
}

/// Delays the ferry by five seconds, once a client has seen the plan.
fn serve(mut server: Server) -> Result<(), Box<dyn Error>> {
    let mut paths = TimelineServer::new(1, config());
    let edits = paths.follow(FERRY, Time::ZERO, &crossing(0))?;
    println!("the plan takes {edits} edits");
    loop {
        server.next_tick();
        while let Some(event) = server.poll() {
            if paths.handle(&event) {
                continue;
            }
            match event {
                ServerEvent::Event { payload, .. } if payload == b"go" => {
                    // Half way to the island.
                    let now = Time::from_millis(11_000);
                    let edits = paths.follow(FERRY, now, &crossing(5_000)[1..])?;
                    println!("the delay takes {edits} edits");
                    paths.flush();
                }
                ServerEvent::Event { payload, .. } if payload == b"stop" => {
                    server.shut_down();
                    return Ok(());
                }
                _ => {}
            }
        }
        server.step()?;
        paths.send(&mut server);
        server.send();
    }
}

/// Prints where the ferry is at some times, whenever the curve has changed, and tells the server that it has
/// seen enough.
fn watch(name: &str, address: &str, answer: &[u8]) -> Result<(), Box<dyn Error>> {
    let mut client = Client::loopback(address, Schema::of::<Ferry>()?)?;
    let mut paths = TimelineClient::new(1, config());
    let mut shown = 0;
    loop {
        client.wait(Duration::from_millis(5));
        while let Some(event) = client.poll() {
            if paths.handle(&event)? {
                continue;
            }
            match event {
                ClientEvent::Left(CloseReason::ShuttingDown) => return Ok(()),
                ClientEvent::Left(reason) => return Err(reason.into()),
                _ => {}
            }
        }
        paths.send(&mut client);
        let Some(curve) = paths.timeline().curve(FERRY) else {
            continue;
        };
        if curve.len() == shown {
            continue;
        }
        shown = curve.len();
        let at = |seconds: i64| {
            let position = curve.at(Time::from_millis(1000 * seconds));
            position.map_or("nowhere".into(), |[x, y]| format!("{x:.0},{y:.0}"))
        };
        println!(
            "{name}: {} at 6 s, {} at 21 s, {} at 48 s",
            at(6),
            at(21),
            at(48)
        );
        // The early client sees the plan and the delay.
        if name == "late" || shown == 4 {
            client.send_event(None, answer)?;
        } else {
            client.leave();
            return Ok(());
        }
    }
}
