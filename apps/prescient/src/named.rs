//! `prescient named`: named-data networking from the command line.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use prescient::named::{
    Daemon, FaceEvent, FaceId, ForwarderConfig, Name, NameError, OpenError, RouteError,
    RoutingConfig, Statistics, Strategy,
};
use prescient_net::Clock;
use serde_json::json;

use crate::interrupt::{Interrupt, InterruptError};
use crate::topology::{
    self, ArenaOptions, PlayerOptions, SpectatorsOptions, TopologyError, TopologyOptions,
};

/// Subcommands of `prescient named`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Named {
    /// Runs an NDN forwarder.
    Forwarder(ForwarderOptions),
    /// Runs bots that play a shooter over a network of forwarders, and prints what it costs.
    Topology(TopologyOptions),
    /// Runs a server with spectators behind a tree of forwarders, and prints what they cost it.
    Spectators(SpectatorsOptions),
    /// Runs one bot of `topology --real`.
    #[command(hide = true)]
    Player(PlayerOptions),
    /// Runs the server of `topology --real --backend ip`.
    #[command(hide = true)]
    Arena(ArenaOptions),
}

/// Options of `prescient named forwarder`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ForwarderOptions {
    /// Listens for datagrams at an address (repeatable); 127.0.0.1:6363 if none is given.
    #[arg(long, value_name = "ADDRESS")]
    udp: Vec<SocketAddr>,
    /// Listens for connections at an address (repeatable); 127.0.0.1:6363 if none is given.
    #[arg(long, value_name = "ADDRESS")]
    tcp: Vec<SocketAddr>,
    /// Listens for connections at a path (repeatable).
    #[cfg(unix)]
    #[arg(long, value_name = "PATH")]
    unix: Vec<PathBuf>,
    /// Sends Interests with a prefix to a neighbour, as in /game=udp:192.0.2.7:6363 (repeatable).
    #[arg(long, value_name = "PREFIX=udp|tcp:ADDRESS")]
    route: Vec<String>,
    /// Runs link-state routing under this name, which replaces --route among routers.
    #[arg(long, value_name = "NAME", requires = "routing_key")]
    router: Option<String>,
    /// The file with the key that all routers share, at least 16 bytes.
    #[arg(long, value_name = "FILE", requires = "router")]
    routing_key: Option<PathBuf>,
    /// Connects to another router, as in udp:192.0.2.7:6363 (repeatable). Only one end of a link needs it.
    #[arg(long, value_name = "udp|tcp:ADDRESS", requires = "router")]
    neighbour: Vec<String>,
    /// Lets machines that run no router register prefixes, which routing advertises. For networks that you trust.
    #[arg(long)]
    hosts: bool,
    /// Sends Interests with a prefix to all faces that have a route for it (repeatable).
    #[arg(long, value_name = "PREFIX")]
    multicast: Vec<String>,
    /// Size of the content store in MiB.
    #[arg(long, default_value_t = 64, value_name = "MIB")]
    store: usize,
    /// Runs for this number of seconds; until Ctrl-C if not given.
    #[arg(long)]
    seconds: Option<u64>,
    /// Prints JSON lines.
    #[arg(long)]
    json: bool,
}

/// Why the forwarder did not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum NamedError {
    /// A socket could not be opened.
    #[error("{what}: {error}")]
    Open {
        /// The address, path or purpose.
        what: String,
        /// The reason.
        error: OpenError,
    },
    /// A text is not a name.
    #[error("{text:?}: {error}")]
    Prefix {
        /// The text.
        text: String,
        /// The reason.
        error: NameError,
    },
    /// A text is not a route.
    #[error("{0:?} is not a route: give a prefix and a neighbour, as in /game=udp:192.0.2.7:6363")]
    Route(String),
    /// A text is not a neighbour.
    #[error("{0:?} is not a neighbour: give a carrier and an address, as in udp:192.0.2.7:6363")]
    Neighbour(String),
    /// The routing key cannot be used.
    #[error("{}: {why}", path.display())]
    Key {
        /// The key's file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A router cannot have this name.
    #[error("{0:?} cannot be a router's name: give one of 1 to 128 bytes")]
    Router(String),
    /// A route was refused.
    #[error(transparent)]
    Refused(#[from] RouteError),
    /// Waiting for sockets failed.
    #[error("cannot wait for sockets: {0}")]
    Wait(#[from] std::io::Error),
    /// `topology` failed.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// Ctrl-C cannot be handled.
    #[error(transparent)]
    Interrupt(#[from] InterruptError),
}

/// Runs a command.
pub(crate) fn named(command: &Named) -> Result<(), NamedError> {
    match command {
        Named::Forwarder(options) => forwarder(options),
        Named::Topology(options) => Ok(topology::topology(options)?),
        Named::Spectators(options) => {
            topology::spectators(options);
            Ok(())
        }
        Named::Player(options) => Ok(topology::play(options)?),
        Named::Arena(options) => Ok(topology::serve(options)?),
    }
}

fn forwarder(options: &ForwarderOptions) -> Result<(), NamedError> {
    let interrupt = Interrupt::listen()?;
    let config = ForwarderConfig::default().max_store_bytes(options.store.saturating_mul(1 << 20));
    let mut daemon = Daemon::new(config).map_err(open("the forwarder"))?;
    daemon.accept_hosts(options.hosts);
    let listens = listen(options, &mut daemon)?;
    add_routes(options, &mut daemon)?;
    start_routing(options, &mut daemon)?;
    let report = Report {
        json: options.json,
        before: Statistics::default(),
    };
    report.ready(&listens);
    run(options, &interrupt, &mut daemon, report)
}

fn listen(options: &ForwarderOptions, daemon: &mut Daemon) -> Result<Vec<String>, NamedError> {
    let usual = SocketAddr::from(([127, 0, 0, 1], 6363));
    let or_usual = |given: &[SocketAddr]| match given {
        [] => vec![usual],
        _ => given.to_vec(),
    };
    let mut listens = Vec::new();
    for address in or_usual(&options.udp) {
        let bound = daemon.listen_udp(address);
        listens.push(format!("udp:{}", bound.map_err(open(address))?));
    }
    for address in or_usual(&options.tcp) {
        let bound = daemon.listen_tcp(address);
        listens.push(format!("tcp:{}", bound.map_err(open(address))?));
    }
    #[cfg(unix)]
    for path in &options.unix {
        let shown = path.display();
        daemon.listen_unix(path).map_err(open(path.display()))?;
        listens.push(format!("unix:{shown}"));
    }
    Ok(listens)
}

fn add_routes(options: &ForwarderOptions, daemon: &mut Daemon) -> Result<(), NamedError> {
    let mut neighbours: BTreeMap<&str, FaceId> = BTreeMap::new();
    for text in &options.route {
        let wrong = || NamedError::Route(text.clone());
        let (prefix, neighbour) = text.rsplit_once('=').ok_or_else(wrong)?;
        let prefix = name(prefix)?;
        let face = match neighbours.get(neighbour) {
            Some(face) => *face,
            None => {
                let face = connect(daemon, neighbour)?;
                face.ok_or_else(wrong)?
            }
        };
        neighbours.insert(neighbour, face);
        daemon.forwarder().add_route(prefix.view(), face, 1)?;
    }
    for text in &options.multicast {
        let prefix = name(text)?;
        let strategy = Some(Strategy::Multicast);
        daemon.forwarder().set_strategy(prefix.view(), strategy);
    }
    Ok(())
}

fn start_routing(options: &ForwarderOptions, daemon: &mut Daemon) -> Result<(), NamedError> {
    let (Some(router), Some(path)) = (&options.router, &options.routing_key) else {
        return Ok(());
    };
    let wrong = |why: String| NamedError::Key {
        path: path.clone(),
        why,
    };
    let key = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    if key.len() < 16 {
        return Err(wrong("shorter than 16 bytes".to_owned()));
    }
    let config = RoutingConfig::new(name(router)?, Clock::unix_millis());
    let config = config.ok_or_else(|| NamedError::Router(router.clone()))?;
    let now = daemon.now();
    let config = config.key(&key).accept_neighbours(LINK_COST);
    daemon.forwarder().start_routing(now, config);
    for text in &options.neighbour {
        let face = connect(daemon, text)?;
        let face = face.ok_or_else(|| NamedError::Neighbour(text.clone()))?;
        // It cannot fail: routing was started, and the face is new.
        let _ = daemon.forwarder().add_neighbour(now, face, LINK_COST);
    }
    Ok(())
}

/// Opens a face to a neighbour; `None` if the text is not one.
fn connect(daemon: &mut Daemon, text: &str) -> Result<Option<FaceId>, NamedError> {
    let Some((carrier, address)) = text.split_once(':') else {
        return Ok(None);
    };
    let Ok(address) = address.parse() else {
        return Ok(None);
    };
    let face = match carrier {
        "udp" => daemon.connect_udp(address),
        "tcp" => daemon.connect_tcp(address),
        _ => return Ok(None),
    };
    face.map(Some).map_err(open(text))
}

/// The cost of every link.
const LINK_COST: u64 = 1;

fn run(
    options: &ForwarderOptions,
    interrupt: &Interrupt,
    daemon: &mut Daemon,
    mut report: Report,
) -> Result<(), NamedError> {
    let start = daemon.now();
    let mut shown = 0;
    loop {
        daemon.poll(Duration::from_millis(100))?;
        while let Some(event) = daemon.poll_event() {
            report.face(&event);
        }
        let second = daemon.now().since(start).as_secs();
        if second > shown {
            shown = second;
            report.second(second, daemon.forwarder().statistics());
        }
        let is_over = options.seconds.is_some_and(|seconds| second >= seconds);
        if is_over || interrupt.is_asked() {
            return Ok(());
        }
    }
}

/// Prints events and statistics, as text or JSON.
struct Report {
    json: bool,
    before: Statistics,
}

impl Report {
    fn ready(&self, listens: &[String]) {
        if self.json {
            println!("{}", json!({"listens": listens}));
        } else {
            println!("listening at {}", listens.join(" "));
        }
    }

    fn face(&self, event: &FaceEvent) {
        let (face, why) = match event {
            FaceEvent::Added { face } => (face, None),
            FaceEvent::Removed { face, why } => (face, Some(why.to_string())),
            _ => return,
        };
        match (self.json, why) {
            (true, why) => println!(
                "{}",
                json!({"face": face.number(), "added": why.is_none(), "why": why})
            ),
            (false, None) => println!("{face} added"),
            (false, Some(why)) => println!("{face} removed: {why}"),
        }
    }

    /// Prints what changed in a second, if anything did.
    fn second(&mut self, second: u64, now: Statistics) {
        let before = std::mem::replace(&mut self.before, now);
        if now == before {
            return;
        }
        let since = |count: fn(&Statistics) -> u64| count(&now) - count(&before);
        let interests = since(|it| it.interests);
        let aggregated = since(|it| it.aggregated);
        let hits = since(|it| it.store_hits);
        let misses = since(|it| it.store_misses);
        let data = since(|it| it.data);
        if self.json {
            println!(
                "{}",
                json!({"second": second, "interests": interests, "aggregated": aggregated,
                    "store_hits": hits, "store_misses": misses, "data": data, "pending": now.pending, "stored": now.stored,
                    "faces": now.faces, "routes": now.routes})
            );
        } else {
            println!(
                "{second:6} s  {interests} Interests, {aggregated} aggregated, {hits} from the store, \
                 {data} Data; {} pending, {} stored, {} faces, {} routes",
                now.pending, now.stored, now.faces, now.routes
            );
        }
    }
}

fn name(text: &str) -> Result<Name, NamedError> {
    text.parse().map_err(|error| NamedError::Prefix {
        text: text.to_owned(),
        error,
    })
}

fn open(what: impl ToString) -> impl FnOnce(OpenError) -> NamedError {
    move |error| NamedError::Open {
        what: what.to_string(),
        error,
    }
}
