//! A bot of `topology --real` as a process, on sockets and the system's clock.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use prescient::named::{AppFace, Name, Radii, Signer};
use prescient_net::Clock;
use serde_json::{Value, json};

use super::measures::Histogram;
use super::real::{quantiles, start_of};
use super::truth::{Truth, phase};
use super::{TopologyError, WARM_UP, check_name, freshness};
use crate::shooter::peer::Peer;
use crate::shooter::settings::{Codecs, Finding, GROUP, Settings, player_name};
use crate::shooter::{FRAMES, distance};

/// Options of `prescient named player`, which `topology --real` runs.
#[derive(Args, Clone, Debug)]
pub(crate) struct PlayerOptions {
    /// The forwarder.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6363")]
    forwarder: SocketAddr,
    /// The server of the IP engine, instead of a forwarder.
    #[arg(long, value_name = "ADDRESS")]
    server: Option<SocketAddr>,
    /// This player's number, from 0.
    #[arg(long)]
    number: u32,
    /// The number of players.
    #[arg(long)]
    players: u32,
    /// Seconds that are measured, after six seconds to find the others.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// The seed of the bots.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long caches treat updates as fresh, in milliseconds; 0 for no caching, `auto` as for `topology`.
    #[arg(long, value_name = "MS", default_value = "0")]
    caching: String,
    /// When the game starts for all players, in milliseconds since 1970; now if not given.
    #[arg(long, value_name = "MS")]
    start: Option<u64>,
    /// Characters without a player.
    #[arg(long, default_value_t = 0)]
    npcs: u32,
    /// The threshold of dead reckoning.
    #[arg(long, value_name = "UNITS")]
    throttle: Option<f64>,
    /// Two radii and a sleep in seconds.
    #[arg(
        long,
        value_name = "FULL,MIN,SLEEP",
        value_delimiter = ',',
        num_args = 1
    )]
    interest: Option<Vec<f64>>,
}

/// Runs a player on sockets, and prints what it measured as JSON.
#[expect(clippy::disallowed_methods, reason = "a process on the system's clock")]
pub(crate) fn play(options: &PlayerOptions) -> Result<(), TopologyError> {
    let fails = |what: &'static str| {
        move |error: io::Error| TopologyError::Real {
            what: what.to_owned(),
            error,
        }
    };
    let interest = match options.interest.as_deref() {
        Some(&[full, min, sleep]) => Some(Radii {
            full,
            min,
            max_sleep: Duration::try_from_secs_f64(sleep).unwrap_or_default(),
        }),
        _ => None,
    };
    let settings = Settings {
        seed: options.seed,
        players: options.players,
        freshness: freshness(&options.caching)?,
        throttle: options.throttle,
        interest,
        finding: Finding::Group,
        npcs: options.npcs,
        codecs: Codecs::trained(),
    };
    if let Some(server) = options.server {
        let (start, seconds) = (options.start, options.seconds);
        let report = super::ip::play(options.number, &settings, server, start, seconds)?;
        println!("{report}");
        return Ok(());
    }
    let clock = Clock::start();
    let boot = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let mut face = connect(options.forwarder).map_err(fails("connecting to the forwarder"))?;
    let group: Name = GROUP.parse().unwrap_or_default();
    for prefix in [player_name(options.number), sync_prefix(&group)] {
        let registered = face.register(prefix, &Signer::digest());
        registered.map_err(|error| TopologyError::Real {
            what: "registering a prefix".to_owned(),
            error: io::Error::other(error.to_string()),
        })?;
    }
    let start = start_of(options.start, &clock);
    let mut truth = Truth::new(start, &settings);
    let first = start.after(phase(options.number, &settings));
    let mut peer = Peer::new(options.number, Arc::new(settings), first, boot);
    let frame = Duration::from_secs(1) / FRAMES;
    let warm = start.after(WARM_UP);
    let end = warm.after(Duration::from_secs(options.seconds));
    let (mut next, mut before) = (first, None);
    let mut deltas = Histogram::default();
    let mut bytes = Vec::new();
    loop {
        let now = clock.now();
        if now >= end {
            break;
        }
        if now >= warm && before.is_none() {
            before = Some((peer.interests_seen(), peer.expressed()));
            let past = std::mem::take(&mut peer.measures);
            peer.measures.past_expressed = past.past_expressed;
        }
        if now >= next {
            // A frame that is late is made up for: others know at which time each one is.
            next = next.after(frame);
            peer.frame(now);
            if before.is_some() {
                for (other, place) in peer.shown(now) {
                    let apart = truth.at(now, other).map(|is| distance(place, is));
                    apart.into_iter().for_each(|it| deltas.add(f64::from(it)));
                }
            }
        }
        while peer.poll_transmit(&mut bytes) {
            face.send(&bytes).map_err(fails("sending"))?;
        }
        let wait = next.since(clock.now());
        if let Some(packet) = face.receive(wait).map_err(fails("receiving"))? {
            peer.handle_packet(clock.now(), &packet);
        }
    }
    let (seen, expressed) = before.unwrap_or_default();
    println!("{}", to_json(&peer, seen, &expressed, &deltas));
    Ok(())
}

/// The forwarder beside it may have started just now.
#[expect(clippy::disallowed_methods, reason = "waits for another process")]
fn connect(forwarder: SocketAddr) -> io::Result<AppFace> {
    for _ in 0..100 {
        if let Ok(face) = AppFace::connect_tcp(forwarder) {
            return Ok(face);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    AppFace::connect_tcp(forwarder).map_err(|error| io::Error::other(error.to_string()))
}

fn sync_prefix(group: &Name) -> Name {
    let mut name = group.clone();
    let pushed = name.push_number(prescient::named::ComponentKind::VERSION, 3);
    debug_assert!(pushed.is_ok());
    name
}

fn to_json(peer: &Peer, seen: u64, expressed: &BTreeMap<u32, u64>, deltas: &Histogram) -> Value {
    let measures = &peer.measures;
    let sent: BTreeMap<String, u64> = peer
        .expressed()
        .into_iter()
        .map(|(other, count)| {
            let before = expressed.get(&other).copied().unwrap_or(0);
            (other.to_string(), count - before)
        })
        .collect();
    let checks: BTreeMap<&str, u64> = measures
        .checks
        .iter()
        .map(|(check, count)| (check_name(*check), *count))
        .collect();
    json!({
        "seen": peer.interests_seen() - seen,
        "expressed": sent,
        "checks": checks,
        "rtt": quantiles(&measures.rtt),
        "effective_rtt": quantiles(&measures.effective_rtt),
        "corrections": quantiles(&measures.corrections),
        "deltas": quantiles(deltas),
        "hits": measures.hits_accepted,
        "known": peer.known(),
    })
}
