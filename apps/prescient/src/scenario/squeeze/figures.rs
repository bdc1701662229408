//! What a run shows: errors, reaction, recovery, and what the bottleneck carried.

use std::time::Duration;

use prescient_sim::link::Time;

use super::rig::Log;
use super::units::priority;

/// From when to when the limit applies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) begin: Time,
    pub(super) end: Time,
}

impl Span {
    pub(super) fn contains(&self, at: Time) -> bool {
        (self.begin..self.end).contains(&at)
    }

    pub(super) fn seconds(&self) -> f64 {
        self.end.since(self.begin).as_secs_f64()
    }
}

/// The error of every unit in every tick.
pub(super) struct Errors {
    pub(super) ticks: Vec<ErrorsOfTick>,
}

/// The errors of a tick, when a client shows it.
pub(super) struct ErrorsOfTick {
    pub(super) at: Time,
    /// By unit, in units of the world.
    pub(super) units: Vec<f32>,
    /// By unit, what is shown.
    pub(super) shown: Vec<[f32; 2]>,
}

impl Errors {
    /// Compares what a client shows with what the server had, at the same tick. The client's clock
    /// is behind the server's by the latency of the link without the limit and `playout`: what
    /// arrives later than that is not shown in time. Between two values it has, a client shows a
    /// straight line; beyond the last, that stays.
    pub(super) fn of(log: &Log, latency: Duration, playout: Duration) -> Self {
        let mut next = vec![0; log.shown.len()];
        let mut last = vec![None; log.shown.len()];
        let ticks = log.ticks.iter().map(|tick| {
            let shown_at = tick.at + latency + playout;
            let mut shown = Vec::with_capacity(log.shown.len());
            for (unit, values) in log.shown.iter().enumerate() {
                while let Some(&(at, number, position)) = values.get(next[unit])
                    && at <= shown_at
                    && number <= tick.number
                {
                    last[unit] = Some((number, position));
                    next[unit] += 1;
                }
                let before = last[unit].unwrap_or_default();
                let after = values.get(next[unit]).filter(|(at, ..)| *at <= shown_at);
                shown.push(match after {
                    Some(&(_, number, after)) => between(before, (number, after), tick.number),
                    None => before.1,
                });
            }
            let pairs = shown.iter().zip(&tick.truth);
            let units = pairs.map(|([x, y], [a, b])| (x - a).hypot(y - b)).collect();
            ErrorsOfTick {
                at: tick.at,
                units,
                shown,
            }
        });
        Self {
            ticks: ticks.collect(),
        }
    }

    /// The mean error of some units in a span.
    pub(super) fn mean(&self, span: Span, is_meant: impl Fn(usize) -> bool) -> f64 {
        let (mut sum, mut count) = (0.0, 0u64);
        for tick in self.ticks.iter().filter(|tick| span.contains(tick.at)) {
            for (unit, error) in tick.units.iter().enumerate() {
                if is_meant(unit) {
                    sum += f64::from(*error);
                    count += 1;
                }
            }
        }
        sum / count.max(1) as f64
    }

    pub(super) fn by_priority(&self, span: Span) -> [f64; 4] {
        [0, 1, 2, 3].map(|wanted| self.mean(span, |unit| priority(unit) == wanted))
    }

    /// The mean error of all units in a tick.
    pub(super) fn of_tick(&self, tick: usize) -> f64 {
        let units = &self.ticks[tick].units;
        units.iter().map(|error| f64::from(*error)).sum::<f64>() / units.len().max(1) as f64
    }

    /// The time from the end of the limit until errors are what they were without it, and stay so for
    /// half a second; `None` if they never are.
    pub(super) fn recovery(&self, span: Span, lossless: f64) -> Option<Duration> {
        let is_good = |tick: usize| self.of_tick(tick) <= lossless * 1.1 + 0.002;
        let first = self.ticks.iter().position(|tick| tick.at >= span.end)?;
        let good = (first..self.ticks.len().saturating_sub(STAYS))
            .find(|&tick| (tick..tick + STAYS).all(is_good))?;
        Some(self.ticks[good].at.since(span.end))
    }
}

/// A place on the way from one value to a later one.
fn between((from, [x, y]): (u64, [f32; 2]), (to, [a, b]): (u64, [f32; 2]), at: u64) -> [f32; 2] {
    let part = at.saturating_sub(from) as f32 / to.saturating_sub(from).max(1) as f32;
    [x + (a - x) * part, y + (b - y) * part]
}

/// The time from the beginning of the limit until packets wait for at most `short`, and stay so for
/// half a second.
pub(super) fn reaction(log: &Log, span: Span, short: Duration) -> Option<Duration> {
    let within: Vec<_> = (log.departures.iter())
        .filter(|departure| span.contains(departure.sent))
        .collect();
    let calm = Duration::from_millis(500);
    let is_calm_from = |at: Time| {
        let next = within
            .iter()
            .filter(|departure| departure.sent >= at && departure.sent < at + calm);
        next.clone().count() > 0 && next.clone().all(|departure| departure.waited <= short)
    };
    let starts = std::iter::once(span.begin).chain(within.iter().map(|departure| departure.sent));
    let first = starts
        .filter(|at| *at + calm < span.end)
        .find(|at| is_calm_from(*at))?;
    Some(first.since(span.begin))
}

/// The 95th percentile of how long packets waited in the bottleneck.
pub(super) fn queue_delay(log: &Log, span: Span) -> Duration {
    let mut waits: Vec<Duration> = (log.departures.iter())
        .filter(|departure| span.contains(departure.sent))
        .map(|departure| departure.waited)
        .collect();
    waits.sort_unstable();
    let at = waits.len() * 95 / 100;
    waits.get(at).copied().unwrap_or_default()
}

/// Bytes per second that left the bottleneck, with headers.
pub(super) fn bytes_per_second(log: &Log, span: Span) -> f64 {
    let within = (log.departures.iter()).filter(|departure| span.contains(departure.left));
    let bytes: usize = within.map(|departure| departure.bytes).sum();
    bytes as f64 / span.seconds()
}

/// The longest time for which a unit got no new value, in milliseconds, and the unit.
pub(super) fn stalest(log: &Log, span: Span) -> (u64, usize) {
    let stalest = log.shown.iter().enumerate().map(|(unit, values)| {
        let mut before = span.begin;
        let mut longest = Duration::ZERO;
        for (at, ..) in values.iter().filter(|(at, ..)| span.contains(*at)) {
            longest = longest.max(at.since(before));
            before = *at;
        }
        (longest.max(span.end.since(before)).as_millis() as u64, unit)
    });
    stalest.max().unwrap_or_default()
}

/// Half a second, in ticks.
const STAYS: usize = 15;
