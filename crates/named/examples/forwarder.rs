//! A forwarder on its own, for applications and neighbours that speak NDN.
//!
//! ```sh
//! cargo run --release -p prescient-named --example forwarder -- \
//!     --udp 0.0.0.0:6363 --tcp 127.0.0.1:6363 --unix /tmp/prescient.sock \
//!     --neighbour udp:192.0.2.7:6363 --route /game --multicast /game/group
//! ```
//!
//! `--neighbour` connects to another forwarder, by `udp:`, `tcp:` or `unix:`; each `--route` that follows
//! it sends a prefix there. `--multicast` sends a prefix to all faces that have a route for it.
//! `--seconds` ends it after a while. One line says where it listens, one per second what it does.

use std::env::args;
use std::error::Error;
use std::time::Duration;

use prescient_named::{Daemon, FaceEvent, FaceId, ForwarderConfig, Name, Strategy};

fn main() -> Result<(), Box<dyn Error>> {
    let mut daemon = Daemon::new(ForwarderConfig::default())?;
    let mut listens = String::new();
    let mut neighbour = None;
    let mut seconds = None;
    let mut arguments = args().skip(1);
    while let Some(option) = arguments.next() {
        let value = arguments
            .next()
            .ok_or_else(|| format!("{option} needs a value"))?;
        match option.as_str() {
            "--udp" => listens += &format!(" udp:{}", daemon.listen_udp(value.parse()?)?),
            "--tcp" => listens += &format!(" tcp:{}", daemon.listen_tcp(value.parse()?)?),
            "--unix" => {
                daemon.listen_unix(&value)?;
                listens += &format!(" unix:{value}");
            }
            "--neighbour" => neighbour = Some(connect(&mut daemon, &value)?),
            "--route" => {
                let face = neighbour.ok_or("--route follows a --neighbour")?;
                let prefix: Name = value.parse()?;
                daemon.forwarder().add_route(prefix.view(), face, 1)?;
            }
            "--multicast" => {
                let prefix: Name = value.parse()?;
                let strategy = Some(Strategy::Multicast);
                daemon.forwarder().set_strategy(prefix.view(), strategy);
            }
            "--seconds" => seconds = Some(value.parse::<u64>()?),
            _ => return Err(format!("no such option: {option}").into()),
        }
    }
    println!("ready{listens}");
    run(&mut daemon, seconds)
}

fn connect(daemon: &mut Daemon, text: &str) -> Result<FaceId, Box<dyn Error>> {
    let (carrier, address) = text.split_once(':').ok_or("udp:, tcp: or unix:")?;
    Ok(match carrier {
        "udp" => daemon.connect_udp(address.parse()?)?,
        "tcp" => daemon.connect_tcp(address.parse()?)?,
        "unix" => daemon.connect_unix(address)?,
        _ => return Err("udp:, tcp: or unix:".into()),
    })
}

fn run(daemon: &mut Daemon, seconds: Option<u64>) -> Result<(), Box<dyn Error>> {
    let start = daemon.now();
    let mut shown = 0;
    let mut before = daemon.forwarder().statistics();
    loop {
        daemon.poll(Duration::from_millis(200))?;
        while let Some(event) = daemon.poll_event() {
            match event {
                FaceEvent::Added { face } => println!("{face} is here"),
                FaceEvent::Removed { face, why } => println!("{face} is gone: {why}"),
                _ => {}
            }
        }
        let second = daemon.now().since(start).as_secs();
        if second > shown {
            shown = second;
            let now = daemon.forwarder().statistics();
            if now != before {
                println!(
                    "{} interests, {} aggregated, {} from the store, {} data, {} pending, {} faces, {} routes",
                    now.interests - before.interests,
                    now.aggregated - before.aggregated,
                    now.store_hits - before.store_hits,
                    now.data - before.data,
                    now.pending,
                    now.faces,
                    now.routes,
                );
                before = now;
            }
        }
        if seconds.is_some_and(|seconds| second >= seconds) {
            return Ok(());
        }
    }
}
