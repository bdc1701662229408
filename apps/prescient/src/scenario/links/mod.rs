//! `prescient scenario links`: congestion control on recorded and constant links, in simulated time.

mod cubic;
mod flow;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use prescient_channels::CongestionControl;
use prescient_sim::link::{Conditions, RecordedLink, Time};
use serde_json::{Value, json};

use super::ScenarioError;
use cubic::cubic;
use flow::{Flow, HEADERS, run};

/// Options of `prescient scenario links`.
#[derive(Clone, Debug, Args)]
pub(crate) struct LinksOptions {
    /// Recorded links; without any, those of PRESCIENT_SHARED (default `../shared`) in `links`.
    links: Vec<PathBuf>,
    /// Policies that are compared.
    #[arg(long, value_delimiter = ',', default_values = ["delay", "aimd", "fixed"])]
    controllers: Vec<String>,
    /// Seconds of each run.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Print a JSON object per line.
    #[arg(long)]
    json: bool,
}

pub(crate) fn links(options: &LinksOptions) -> Result<(), ScenarioError> {
    let policies: Vec<CongestionControl> = options
        .controllers
        .iter()
        .map(|name| policy(name).ok_or_else(|| ScenarioError::NoSuchController(name.clone())))
        .collect::<Result<_, _>>()?;
    let end = Time::from_secs(options.seconds.max(10));
    let files = match options.links.is_empty() {
        true => recordings(),
        false => options.links.clone(),
    };
    let mut recorded = Vec::new();
    for file in &files {
        let link = RecordedLink::open(file).map_err(|error| ScenarioError::Link {
            file: file.display().to_string(),
            error,
        })?;
        recorded.push((name_of(file), link));
    }
    for policy in policies {
        for (name, link) in &recorded {
            print(&on_recorded(name, link, policy, end), options.json);
        }
        for megabits in FIXED {
            print(&on_fixed(megabits, policy, end), options.json);
        }
        print(&after_a_drop(policy), options.json);
        print(&fairness(policy, end), options.json);
        print(&against_cubic(policy, end), options.json);
    }
    Ok(())
}

/// The policy of this name.
pub(crate) fn policy(name: &str) -> Option<CongestionControl> {
    let built_in = [
        CongestionControl::Window,
        CongestionControl::DelayBased,
        CongestionControl::Aimd,
        CongestionControl::Fixed,
    ];
    built_in.into_iter().find(|policy| policy.name() == name)
}

fn recordings() -> Vec<PathBuf> {
    let shared = std::env::var_os("PRESCIENT_SHARED").unwrap_or_else(|| "../shared".into());
    let folder = Path::new(&shared).join("links");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

fn name_of(file: &Path) -> String {
    file.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn on_recorded(name: &str, link: &RecordedLink, policy: CongestionControl, end: Time) -> Value {
    let conditions = conditions()
        .with_recorded(link.clone())
        .with_queue_limit(DEEP_QUEUE);
    let mut flows = [Flow::new(policy, TICK, Time::ZERO)];
    run(&mut flows, &conditions, &[], end);
    let opportunities = link.opportunities_until(end) - link.opportunities_until(WARM);
    let capacity = opportunities * 1500;
    let mut figures = figures(&flows[0], capacity, end);
    figures["link"] = json!(name);
    figures["measured"] = json!("recorded");
    figures["controller"] = json!(policy.name());
    figures
}

fn on_fixed(megabits: u64, policy: CongestionControl, end: Time) -> Value {
    let bits = megabits * 1_000_000;
    let conditions = fixed(bits);
    let mut flows = [Flow::new(policy, TICK, Time::ZERO)];
    run(&mut flows, &conditions, &[], end);
    let capacity = bits / 8 * (end.since(WARM).as_millis() as u64) / 1000;
    let mut figures = figures(&flows[0], capacity, end);
    figures["link"] = json!(format!("{megabits} Mbit/s"));
    figures["measured"] = json!("fixed");
    figures["controller"] = json!(policy.name());
    figures
}

/// The capacity halves for twenty seconds, and returns.
fn after_a_drop(policy: CongestionControl) -> Value {
    let (bits, drop, back, end) = (
        10_000_000,
        Time::from_secs(20),
        Time::from_secs(40),
        Time::from_secs(60),
    );
    let changes = [(drop, fixed(bits / 2)), (back, fixed(bits))];
    let mut flows = [Flow::new(policy, TICK, Time::ZERO)];
    run(&mut flows, &fixed(bits), &changes, end);
    let flow = &flows[0];
    let window = Duration::from_millis(100);
    let sent = |from: Time| -> u64 {
        let within = flow
            .departures
            .iter()
            .filter(|(at, _)| *at >= from && at.since(from) < window);
        within.map(|(_, bytes)| *bytes as u64).sum()
    };
    let half = bits / 2 / 8 / 10;
    let step = |millis: u64| Duration::from_millis(millis);
    let backed_off = (0..20_000).find(|&millis| sent(drop + step(millis)) <= half * 105 / 100);
    let received = |from: Time| flow.bytes(from, from + Duration::from_millis(500));
    let regained =
        (0..19_000).find(|&millis| received(back + step(millis)) >= bits / 8 / 2 * 9 / 10);
    json!({
        "measured": "drop",
        "controller": policy.name(),
        "link": "10, 5, 10 Mbit/s",
        "round_trip_ms": 2 * LATENCY,
        "back_off_ms": backed_off,
        "regain_ms": regained,
    })
}

/// Four flows of the same policy, one second apart.
fn fairness(policy: CongestionControl, end: Time) -> Value {
    let mut flows: Vec<Flow> = (0..4)
        .map(|number| Flow::new(policy, TICK, Time::from_secs(number)))
        .collect();
    run(&mut flows, &fixed(10_000_000), &[], end);
    let half = Time::from_micros(end.as_micros() / 2);
    let shares: Vec<f64> = flows
        .iter()
        .map(|flow| flow.bytes(half, end) as f64)
        .collect();
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    json!({
        "measured": "fairness",
        "controller": policy.name(),
        "link": "10 Mbit/s",
        "jain": sum * sum / (4.0 * squares).max(1.0),
        "shares": shares.iter().map(|share| share / sum.max(1.0)).collect::<Vec<_>>(),
    })
}

/// One flow beside one that behaves like TCP.
fn against_cubic(policy: CongestionControl, end: Time) -> Value {
    let conditions = fixed(10_000_000).with_queue_limit(125_000);
    let mut flows = [
        Flow::new(policy, TICK, Time::ZERO),
        Flow::new(cubic(), 1, Time::from_secs(2)),
    ];
    run(&mut flows, &conditions, &[], end);
    let from = Time::from_secs(10.min(end.as_micros() / 2_000_000));
    let [ours, theirs] = [0, 1].map(|flow: usize| flows[flow].bytes(from, end) as f64);
    json!({
        "measured": "cubic",
        "controller": policy.name(),
        "link": "10 Mbit/s, queue 100 ms",
        "fair_shares": 2.0 * ours / (ours + theirs).max(1.0),
        "utilisation": (ours + theirs) * 8.0 / 10_000_000.0 / end.since(from).as_secs_f64(),
    })
}

fn figures(flow: &Flow, capacity: u64, end: Time) -> Value {
    let mut waits: Vec<Duration> = flow
        .arrivals
        .iter()
        .filter(|arrived| arrived.at >= WARM)
        .map(|arrived| arrived.waited)
        .collect();
    waits.sort_unstable();
    let percentile = |share: usize| {
        let at = waits.len() * share / 100;
        let wait = waits.get(at.min(waits.len().saturating_sub(1)));
        wait.map(|wait| wait.as_micros() as f64 / 1000.0)
    };
    json!({
        "queue_delay_p50_ms": percentile(50),
        "queue_delay_p95_ms": percentile(95),
        "utilisation": flow.bytes(WARM, end) as f64 / capacity.max(1) as f64,
    })
}

fn conditions() -> Conditions {
    Conditions::default()
        .with_latency(Duration::from_millis(LATENCY))
        .with_overhead(HEADERS)
}

fn fixed(bits: u64) -> Conditions {
    // A queue of half a second.
    conditions()
        .with_bandwidth(bits)
        .with_queue_limit(bits as usize / 16)
}

fn print(figures: &Value, json: bool) {
    if json {
        println!("{figures}");
        return;
    }
    let entries = figures.as_object().into_iter().flatten();
    let entries: Vec<String> = entries
        .map(|(key, value)| format!("{key} {value}"))
        .collect();
    println!("{}", entries.join(", "));
}

/// Of the first seconds, in which the rate is being found, nothing counts.
const WARM: Time = Time::from_secs(3);
/// Each way, in milliseconds.
const LATENCY: u64 = 20;
/// A server's tick, in milliseconds.
const TICK: u64 = 33;
const DEEP_QUEUE: usize = 2_000_000;
/// Constant links, in megabits per second.
const FIXED: [u64; 3] = [1, 4, 20];
