//! One server, many spectators: every update leaves the server once.
//!
//! ```sh
//! cargo run --release -p prescient-named --example spectators
//! ```
//!
//! Each spectator keeps one Interest open for the next update. The forwarder aggregates them, so the
//! server gets one Interest and sends one Data packet per update, however many spectators there are.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use prescient_named::{
    AppFace, ComponentKind, Daemon, Data, DataBuilder, ForwarderConfig, Interest, InterestBuilder,
    Name, Signer,
};

const SPECTATORS: usize = 100;
const UPDATES: u64 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut daemon = Daemon::new(ForwarderConfig::default())?;
    let updates: Name = "/game/updates".parse()?;
    let (server_face, server) = daemon.memory_face()?;
    daemon
        .forwarder()
        .add_route(updates.view(), server_face, 0)?;
    let spectators = (0..SPECTATORS).map(|_| daemon.memory_face().map(|(_, face)| face));
    let spectators: Vec<AppFace> = spectators.collect::<Result<_, _>>()?;

    let waker = daemon.waker();
    let is_over = Arc::new(AtomicBool::new(false));
    let running = thread::spawn({
        let is_over = is_over.clone();
        move || {
            while !is_over.load(Ordering::Relaxed) && daemon.poll(Duration::from_secs(1)).is_ok() {}
            let statistics = daemon.forwarder().statistics();
            let sent = daemon.forwarder().face_statistics(server_face);
            (statistics, sent)
        }
    });
    let serving = thread::spawn(move || serve(server));
    let watching: Vec<_> = spectators
        .into_iter()
        .map(|face| {
            let updates = updates.clone();
            thread::spawn(move || watch(face, &updates).map_err(|error| error.to_string()))
        })
        .collect();
    for watcher in watching {
        watcher.join().expect("no spectator panics")?;
    }
    is_over.store(true, Ordering::Relaxed);
    waker.wake()?;
    let (statistics, server) = running.join().expect("the forwarder does not panic");
    let _ = serving.join();
    let server = server.ok_or("the server has a face")?;
    println!(
        "{SPECTATORS} spectators saw {UPDATES} updates each: {} Interests, {} of them to the server",
        statistics.interests, server.interests_out
    );
    Ok(())
}

/// Answers every Interest with the update that it names, until the forwarder is gone.
fn serve(mut face: AppFace) {
    let signer = Signer::digest();
    while let Ok(packet) = face.receive(Duration::from_secs(1)) {
        let Some(packet) = packet else { continue };
        let Ok(interest) = Interest::decode(&packet) else {
            continue;
        };
        let mut data = Vec::new();
        let written = DataBuilder::new(interest.name())
            .freshness(Duration::from_secs(1))
            .content(b"what happened")
            .sign(&signer, &mut data);
        if written.is_err() || face.send(&data).is_err() {
            return;
        }
    }
}

/// Requests one update after the other.
fn watch(mut face: AppFace, updates: &Name) -> Result<(), Box<dyn Error>> {
    for number in 0..UPDATES {
        let mut name = updates.clone();
        name.push_number(ComponentKind::SEQUENCE, number)?;
        let packet = face.request(InterestBuilder::new(name.view()).must_be_fresh())?;
        Data::decode(&packet)?;
    }
    Ok(())
}
