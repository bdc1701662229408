//! The server and its clients as processes, on UDP sockets and the system's clock.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use clap::Args;
use prescient_net::{Clock, SystemEntropy};
use serde_json::{Value, json};

use super::guest::{Guest, Measures};
use super::server::GameServer;
use crate::shooter::settings::Settings;
use crate::topology::real::{quantiles, start_of};
use crate::topology::truth::{Truth, phase};
use crate::topology::{TopologyError, WARM_UP, plain_settings};

/// Options of `prescient named arena`, which `topology --real --backend ip` runs.
#[derive(Args, Clone, Debug)]
pub(crate) struct ArenaOptions {
    /// Where to receive datagrams.
    #[arg(long, value_name = "ADDRESS")]
    address: SocketAddr,
    /// The number of players.
    #[arg(long)]
    players: u32,
    /// Seconds that are measured, after those for joining.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// The seed of the bots.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// When the game starts for all players, in milliseconds since 1970; now if not given.
    #[arg(long, value_name = "MS")]
    start: Option<u64>,
}

/// The longest wait for a datagram: timers of connections are exact to it.
const TURN: Duration = Duration::from_millis(2);

/// Runs the server of a game, and prints how often each player was hit.
pub(crate) fn serve(options: &ArenaOptions) -> Result<(), TopologyError> {
    let settings = plain_settings(options.seed, options.players);
    let (clock, mut entropy) = (Clock::start(), entropy()?);
    let socket = bind(options.address)?;
    let start = start_of(options.start, &clock);
    let mut server = GameServer::new(&settings, options.address, &mut entropy, clock.now());
    let warm = start.after(WARM_UP);
    let end = warm.after(Duration::from_secs(options.seconds));
    let (mut before, mut buffer) = (None, [0; 2048]);
    while clock.now() < end {
        if let Some((length, from)) = receive(&socket, TURN, &mut buffer)? {
            let bytes = &buffer[..length];
            server.handle_datagram(from, bytes, clock.now(), Clock::unix(), &mut entropy);
        }
        let now = clock.now();
        server.attend(now);
        server.run_ticks(now);
        while let Some(datagram) = server.poll_transmit(now) {
            // A datagram that the system does not accept is lost.
            let _ = socket.send_to(&datagram.bytes, datagram.to);
        }
        if now >= warm && before.is_none() {
            before = Some(server.hits.clone());
        }
    }
    let before = before.unwrap_or_default();
    let hits = (0..options.players).map(|player| {
        let [now, then] = [&server.hits, &before].map(|hits| hits.get(&player).copied());
        now.unwrap_or(0) - then.unwrap_or(0)
    });
    println!("{}", json!({"hits": hits.collect::<Vec<u64>>()}));
    Ok(())
}

/// Runs a player, and returns what it measured.
pub(in crate::topology) fn play(
    number: u32,
    settings: &Settings,
    server: SocketAddr,
    start: Option<u64>,
    seconds: u64,
) -> Result<Value, TopologyError> {
    let (clock, mut entropy) = (Clock::start(), entropy()?);
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => ([0; 4], 0).into(),
        SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    let socket = bind(any)?;
    let start = start_of(start, &clock);
    let mut truth = Truth::new(start, settings);
    let first = start.after(phase(number, settings));
    let mut buffer = [0; 2048];
    while clock.now() < first {
        receive(&socket, TURN, &mut buffer)?;
    }
    let unix = Clock::unix();
    let mut guest = Guest::new(number, settings, server, &mut entropy, clock.now(), unix);
    guest.frame_at = first;
    let warm = start.after(WARM_UP);
    let end = warm.after(Duration::from_secs(seconds));
    let mut is_measuring = false;
    while clock.now() < end {
        let now = clock.now();
        if now >= warm && !is_measuring {
            is_measuring = true;
            guest.measures = Measures::default();
        }
        if guest.attend(now) {
            for other in 0..settings.players {
                if let Some(place) = truth.at(now, other) {
                    guest.measure_delta(other, place, now);
                }
            }
            guest.measure_rtt();
        }
        while let Some(datagram) = guest.poll_transmit(now) {
            let _ = socket.send_to(&datagram.bytes, datagram.to);
        }
        let wait = guest.frame_at.since(clock.now()).min(TURN);
        if let Some((length, _)) = receive(&socket, wait, &mut buffer)? {
            guest.handle_datagram(&buffer[..length], clock.now());
        }
    }
    let measures = &guest.measures;
    Ok(json!({
        "rtt": quantiles(&measures.rtt),
        "effective_rtt": quantiles(&measures.rtt),
        "corrections": quantiles(&measures.corrections),
        "deltas": quantiles(&measures.deltas),
        "known": guest.shown.len(),
    }))
}

fn fails(what: &str) -> impl FnOnce(std::io::Error) -> TopologyError {
    let what = what.to_owned();
    move |error| TopologyError::Real { what, error }
}

fn entropy() -> Result<SystemEntropy, TopologyError> {
    let entropy = SystemEntropy::new();
    entropy.map_err(|error| fails("randomness")(std::io::Error::other(error)))
}

fn bind(address: SocketAddr) -> Result<UdpSocket, TopologyError> {
    UdpSocket::bind(address).map_err(fails("a socket"))
}

/// The next datagram, if one arrives in time.
fn receive(
    socket: &UdpSocket,
    wait: Duration,
    buffer: &mut [u8],
) -> Result<Option<(usize, SocketAddr)>, TopologyError> {
    // No time at all would mean to wait for ever.
    let wait = wait.max(Duration::from_micros(100));
    socket
        .set_read_timeout(Some(wait))
        .map_err(fails("a socket"))?;
    match socket.recv_from(buffer) {
        Ok(received) => Ok(Some(received)),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock
            | ErrorKind::TimedOut
            | ErrorKind::Interrupted
            // The other process is not there yet, or no longer.
            | ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset => Ok(None),
            _ => Err(fails("receiving")(error)),
        },
    }
}
