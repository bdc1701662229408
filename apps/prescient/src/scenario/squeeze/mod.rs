//! `prescient scenario squeeze`: 98 roaming units over a bottleneck that becomes too narrow for them,
//! with and without adaptation, in simulated time.
//!
//! The rig is that of a master's thesis on adaptive compression for games, whose figures are beside
//! ours in the book. The demand is measured first, in a run without a limit.

mod figures;
mod page;
mod rig;
mod units;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use prescient_channels::CongestionControl;
use prescient_sim::link::{Conditions, RecordedLink, Time};
use serde_json::{Value, json};

use super::ScenarioError;
use super::links::policy;
use figures::{Errors, Span, bytes_per_second, queue_delay, reaction, stalest};
use rig::{HEADERS, Log, Setting, play, time_of};

/// Options of `prescient scenario squeeze`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SqueezeOptions {
    /// The rate of the bottleneck, as a share of what the units need; 1 and more is no limit.
    #[arg(long, default_value_t = 0.54)]
    limit: f64,
    /// For how many seconds the limit applies.
    #[arg(long = "for", default_value_t = 10)]
    seconds: u64,
    /// A recorded link in place of the normal one.
    #[arg(long)]
    link: Option<PathBuf>,
    /// Percentage of packets that are lost, each way, with the limit and without.
    #[arg(long, default_value_t = 0.0)]
    loss: f64,
    /// The longest random delay of a packet, in milliseconds.
    #[arg(long, default_value_t = 0)]
    jitter: u64,
    /// Every third second, a fifth of a second with 100 ms more latency.
    #[arg(long)]
    spikes: bool,
    /// Congestion control of the adaptive run: delay, aimd or fixed.
    #[arg(long, default_value = "delay")]
    controller: String,
    /// How long the bottleneck's queue is, in milliseconds at the limited rate.
    #[arg(long, default_value_t = 1000)]
    queue: u64,
    /// How far the client's clock is behind besides the latency, in milliseconds.
    #[arg(long, default_value_t = 100)]
    playout: u64,
    /// The seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print a JSON object per run.
    #[arg(long)]
    json: bool,
    /// More figures: the demand, the error without a limit, and the longest time without a value.
    #[arg(long)]
    details: bool,
    /// Write a page with charts and a replay.
    #[arg(long)]
    html: Option<PathBuf>,
}

/// A run and its figures.
struct Run {
    name: &'static str,
    log: Log,
    errors: Errors,
    figures: Value,
}

pub(crate) fn squeeze(options: &SqueezeOptions) -> Result<(), ScenarioError> {
    let chosen = policy(&options.controller)
        .ok_or_else(|| ScenarioError::NoSuchController(options.controller.clone()))?;
    let normal = normal(options)?;
    let warm = WARM * 30;
    let span = Span {
        begin: time_of(warm),
        end: time_of(warm + options.seconds * 30),
    };
    let ticks = warm + (options.seconds + AFTER) * 30;
    let free = Setting {
        adaptive: false,
        policy: CongestionControl::Fixed,
        seed: options.seed,
        normal: normal.clone(),
        changes: spikes(options, &normal, None),
        cap: None,
        ticks,
    };
    let free_log = play(&free);
    let demand = bytes_per_second(&free_log, span);
    let latency = Duration::from_millis(LATENCY);
    let playout = Duration::from_millis(options.playout + options.jitter);
    let free_errors = Errors::of(&free_log, latency, playout);
    let lossless = free_errors.mean(span, |_| true);
    let lossless_by_priority = free_errors.by_priority(span);
    let rate = (demand * options.limit) as u64;
    let limited = (options.limit < 1.0).then(|| {
        let bits = (rate * 8).max(1);
        let queue = (rate * options.queue / 1000).max(1500);
        (
            normal
                .clone()
                .with_bandwidth(bits)
                .with_queue_limit(queue as usize),
            span,
        )
    });
    let capacity = limited.as_ref().map_or(demand, |_| rate as f64);
    let mut runs = Vec::new();
    for (name, adaptive, policy) in [
        ("not adaptive", false, CongestionControl::Fixed),
        ("adaptive", true, chosen),
    ] {
        let setting = Setting {
            adaptive,
            policy,
            changes: spikes(options, &normal, limited.clone()),
            ..free.clone()
        };
        let log = play(&setting);
        let errors = Errors::of(&log, latency, playout);
        let millis = |span: Option<Duration>| span.map(|span| span.as_millis() as u64);
        let carried = bytes_per_second(&log, span);
        let (stalest_ms, _) = stalest(&log, span);
        let mut figures = json!({
            "adaptive": adaptive,
            "controller": policy.name(),
            "limit_share": options.limit,
            "link": options.link.as_ref().map_or_else(
                || "10 Mbit/s".into(),
                |file| file.display().to_string(),
            ),
            "error_mean": errors.mean(span, |_| true),
            "error_mean_by_priority": errors.by_priority(span),
            "reaction_ms": millis(reaction(&log, span, SHORT)),
            "recovery_ms": millis(errors.recovery(span, lossless)),
            "queue_delay_p95_ms": queue_delay(&log, span).as_micros() as f64 / 1000.0,
            "utilisation": carried / capacity.max(1.0),
            "bytes_per_second": carried as u64,
        });
        if options.details {
            figures["demand_bytes_per_second"] = json!(demand as u64);
            figures["error_mean_lossless"] = json!(lossless);
            figures["error_by_priority_lossless"] = json!(lossless_by_priority);
            figures["stalest_ms"] = json!(stalest_ms);
        }
        print(&figures, options.json);
        runs.push(Run {
            name,
            log,
            errors,
            figures,
        });
    }
    if let Some(file) = &options.html {
        let page = page::page(&runs, span);
        std::fs::write(file, page).map_err(|error| ScenarioError::Page {
            file: file.display().to_string(),
            error,
        })?;
    }
    Ok(())
}

fn normal(options: &SqueezeOptions) -> Result<Conditions, ScenarioError> {
    let conditions = Conditions::default()
        .with_latency(Duration::from_millis(LATENCY))
        .with_jitter(Duration::from_millis(options.jitter))
        .with_loss((options.loss * 10_000.0) as u32)
        .with_overhead(HEADERS);
    Ok(match &options.link {
        Some(file) => {
            let link = RecordedLink::open(file).map_err(|error| ScenarioError::Link {
                file: file.display().to_string(),
                error,
            })?;
            conditions.with_recorded(link)
        }
        None => conditions.with_bandwidth(10_000_000),
    })
}

/// The changes of the link: the limit, and spikes of latency.
fn spikes(
    options: &SqueezeOptions,
    normal: &Conditions,
    limited: Option<(Conditions, Span)>,
) -> Vec<(Time, Conditions)> {
    let at = |time: Time| match &limited {
        Some((limited, span)) if span.contains(time) => limited.clone(),
        _ => normal.clone(),
    };
    let mut times = Vec::new();
    if let Some((_, span)) = &limited {
        times.extend([(span.begin, 0), (span.end, 0)]);
    }
    if options.spikes {
        for second in (1..WARM + options.seconds + AFTER).step_by(3) {
            let begin = time_of(second * 30);
            times.extend([(begin, SPIKE), (begin + Duration::from_millis(200), 0)]);
        }
    }
    times.sort_unstable();
    let changes = times.into_iter().map(|(time, more)| {
        let conditions = at(time);
        let latency = conditions.latency + Duration::from_millis(more);
        (time, conditions.with_latency(latency))
    });
    changes.collect()
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

/// Each way, in milliseconds.
const LATENCY: u64 = 25;
/// Seconds before the limit and after it.
const WARM: u64 = 10;
const AFTER: u64 = 10;
/// Milliseconds.
const SPIKE: u64 = 100;
const SHORT: Duration = Duration::from_millis(20);
