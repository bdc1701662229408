//! `prescient advise`: what each field costs, and what would be cheaper.
//!
//! Every figure is measured: the world is encoded as it is and rounded to coarser steps, and its values
//! are fitted with curves whose keyframes are packed and sent.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use clap::Args;
use prescient_codec::history::CaptureError;
use prescient_codec::{Config, EncodeError, Encoder, Policy};
use prescient_sim::trace::{FieldType, Header};
use prescient_sim::world::{CapturedWorld, Change, Source, SourceError, Spawn, TickUpdate};
use prescient_timeline::break_even::{BruteForce, KEYFRAME_PROTOCOL_BYTES, Packets};
use prescient_timeline::packed::{PackedConfig, Receiver, Sender};
use prescient_timeline::{Edit, Fitter, Operation, PropertyId, Span, Time};
use serde_json::json;

use crate::progress::status;
use crate::sources;
use crate::table::{Table, number};
use crate::text;

/// Options of `prescient advise`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AdviseOptions {
    /// A recording, a trace file, a built-in world, or an MCAP file that `prescient replay` wrote.
    source: String,
    /// Errors that would be acceptable, in the unit of the fields, separated by commas.
    #[arg(long, value_name = "ERROR", value_delimiter = ',', default_values_t = [0.01, 0.1])]
    error: Vec<f64>,
    /// Only the fields of positions.
    #[arg(long)]
    positions: bool,
    /// At most this many fields: the most expensive ones.
    #[arg(long, value_name = "N", default_value_t = 12)]
    fields: usize,
    /// Only the first N ticks.
    #[arg(long, value_name = "N")]
    ticks: Option<usize>,
    /// Print one JSON object per field and error.
    #[arg(long)]
    json: bool,
}

/// Why there is no advice.
#[derive(Debug, thiserror::Error)]
pub enum AdviseError {
    /// The source cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An error bound is not above zero.
    #[error("an error of {0} is not above zero")]
    Error(f64),
    /// A tick cannot be captured.
    #[error("a tick of the source is refused: {0}")]
    Capture(#[from] CaptureError),
    /// A tick cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// Standard output is gone.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
}

/// Class and field.
type FieldKey = (u16, u16);

/// Measures and prints.
pub(crate) fn advise(options: &AdviseOptions) -> Result<(), AdviseError> {
    if let Some(&error) = options
        .error
        .iter()
        .find(|error| error.is_nan() || **error <= 0.0)
    {
        return Err(AdviseError::Error(error));
    }
    let mut source = sources::open(&options.source)?;
    let mut ticks = Vec::new();
    while let Some(update) = source.next_tick()? {
        ticks.push(update);
        if options.ticks == Some(ticks.len()) {
            break;
        }
    }
    let world = Recorded {
        header: source.header().clone(),
        hz: source.header().tick_hz.unwrap_or(1.0),
        ticks,
    };
    let bar = status(!options.json);
    bar.set_message("encoding");
    let now = world.encode(source.as_ref(), None)?;
    let keys = world.keys(options, &now);
    let predictors = world.predictors(&keys);
    let mut advice = Vec::new();
    for &error in &options.error {
        bar.set_message(format!("encoding with an error of {error}"));
        let coarse = world.encode(source.as_ref(), Some(error))?;
        for &key in &keys {
            bar.set_message(format!("fitting {} within {error}", world.name(key)));
            advice.push(Advice {
                key,
                error,
                now: bytes(&now, key),
                predictor: predictors.get(&key).copied().unwrap_or("hold"),
                step: world.step(key, error),
                snapshots: bytes(&coarse, key),
                keyframes: world.keyframes(key, error),
            });
        }
    }
    bar.finish_and_clear();
    advice.sort_by_key(|advice| keys.iter().position(|&key| key == advice.key));
    print(&world, &advice, options)
}

fn bytes(ledger: &BTreeMap<FieldKey, f64>, key: FieldKey) -> f64 {
    ledger.get(&key).copied().unwrap_or(0.0)
}

/// Measurements for a field and an error. Bytes are those of the whole recording, without headers.
struct Advice {
    key: FieldKey,
    error: f64,
    now: f64,
    predictor: &'static str,
    /// In integers of the source.
    step: i64,
    snapshots: f64,
    keyframes: Keyframes,
}

/// Keyframes of all entities of a class.
#[derive(Clone, Copy, Debug, Default)]
struct Keyframes {
    count: u64,
    bytes: u64,
    max_error: f64,
    /// Seconds for which entities had the field, summed over all.
    entity_seconds: f64,
}

impl Keyframes {
    fn brute_force(&self) -> f64 {
        self.entity_seconds * BRUTE_FORCE.bytes_per_second_and_property()
    }

    fn break_even(&self) -> Option<f64> {
        let each = self.bytes as f64 / self.count as f64;
        (self.count > 0).then(|| BRUTE_FORCE.break_even(each))
    }

    fn per_second(&self) -> f64 {
        self.count as f64 / self.entity_seconds.max(f64::MIN_POSITIVE)
    }
}

impl Advice {
    fn best(&self) -> &'static str {
        let (snapshots, keyframes) = (self.snapshots, self.keyframes.bytes as f64);
        let brute_force = self.keyframes.brute_force();
        if brute_force < snapshots.min(keyframes) {
            "every value"
        } else if keyframes < snapshots {
            "keyframes"
        } else {
            "snapshots"
        }
    }

    fn expected(&self) -> f64 {
        let keyframes = self.keyframes.bytes as f64;
        self.snapshots
            .min(keyframes)
            .min(self.keyframes.brute_force())
    }
}

fn print(world: &Recorded, advice: &[Advice], options: &AdviseOptions) -> Result<(), AdviseError> {
    let mut output = io::stdout().lock();
    let seconds = world.seconds();
    let document = BRUTE_FORCE.break_even(KEYFRAME_PROTOCOL_BYTES);
    if options.json {
        for advice in advice {
            let keyframes = &advice.keyframes;
            let line = json!({
                "field": world.name(advice.key),
                "error": advice.error,
                "seconds": seconds,
                "now_bytes": advice.now,
                "predictor": advice.predictor,
                "step": advice.step as f64 * world.scale(advice.key),
                "snapshot_bytes": advice.snapshots,
                "keyframe_bytes": keyframes.bytes,
                "keyframes": keyframes.count,
                "keyframes_per_entity_second": keyframes.per_second(),
                "max_error": keyframes.max_error,
                "brute_force_bytes": keyframes.brute_force(),
                "break_even_keyframes_per_second": keyframes.break_even(),
                "best": advice.best(),
                "expected_bytes": advice.expected(),
            });
            writeln!(output, "{line}")?;
        }
        return Ok(());
    }
    let mut table = Table::new(&[
        "field",
        "now B/s",
        "predictor",
        "error",
        "step",
        "snapshots B/s",
        "keyframes B/s",
        "every value B/s",
        "keyframes/s",
        "break-even",
        "largest error",
        "best",
        "expected B/s",
    ]);
    for advice in advice {
        let keyframes = &advice.keyframes;
        let rate = |bytes: f64| number(Some(bytes / seconds));
        table.row([
            world.name(advice.key),
            rate(advice.now),
            advice.predictor.into(),
            advice.error.to_string(),
            format!("{:.4}", advice.step as f64 * world.scale(advice.key)),
            rate(advice.snapshots),
            rate(keyframes.bytes as f64),
            rate(keyframes.brute_force()),
            number(Some(keyframes.per_second())),
            number(keyframes.break_even()),
            format!("{:.4}", keyframes.max_error),
            advice.best().into(),
            rate(advice.expected()),
        ]);
    }
    table.print(&mut output)?;
    let explained = format!(
        "Bytes per second of all entities, without headers of packets. Snapshots are rounded to the step; \
         keyframes are packed every {} ms; every value is sent 10 times per second. Keyframes/s is per entity; \
         up to the break-even, keyframes take less than every value ({document:.3} if each keyframe is a \
         packet of the keyframe protocol).",
        INTERVAL.as_micros() / 1000,
    );
    writeln!(output, "{}", text::wrapped(&explained))?;
    Ok(())
}

/// The ticks to advise on.
struct Recorded {
    header: Header,
    hz: f64,
    ticks: Vec<TickUpdate>,
}

impl Recorded {
    fn seconds(&self) -> f64 {
        let first = self.ticks.first().map_or(0, |update| update.tick);
        let last = self.ticks.last().map_or(0, |update| update.tick);
        ((last - first).max(1)) as f64 / self.hz
    }

    fn name(&self, (class, field): FieldKey) -> String {
        let class = &self.header.classes[usize::from(class)];
        format!("{}.{}", class.name, class.fields[usize::from(field)].name)
    }

    fn scale(&self, (class, field): FieldKey) -> f64 {
        let class = &self.header.classes[usize::from(class)];
        let scale = class.fields[usize::from(field)].scale;
        scale.filter(|scale| *scale > 0.0).unwrap_or(1.0)
    }

    fn is_number(&self, (class, field): FieldKey) -> bool {
        let class = &self.header.classes[usize::from(class)];
        class.fields[usize::from(field)].kind == FieldType::Int
    }

    /// The largest step, in integers of the source, that keeps rounded values within an error.
    fn step(&self, key: FieldKey, error: f64) -> i64 {
        let step = (2.0 * error / self.scale(key)).floor();
        if self.is_number(key) && step > 1.0 {
            step.min(1e15) as i64
        } else {
            1
        }
    }

    /// The fields to advise on, the most expensive first.
    fn keys(&self, options: &AdviseOptions, now: &BTreeMap<FieldKey, f64>) -> Vec<FieldKey> {
        let mut keys: Vec<(FieldKey, f64)> = Vec::new();
        for (number, class) in (0..).zip(&self.header.classes) {
            for (at, field) in (0..).zip(&class.fields) {
                let key = (number, at);
                let wanted = match options.positions {
                    true => class.position.contains(&field.name),
                    false => self.is_number(key),
                };
                if let Some(&cost) = now.get(&key).filter(|_| wanted) {
                    keys.push((key, cost));
                }
            }
        }
        keys.sort_by(|a, b| b.1.total_cmp(&a.1));
        keys.truncate(options.fields);
        keys.into_iter().map(|(key, _)| key).collect()
    }

    /// Bytes by field of the codec's packets, with values rounded to the steps of an error.
    fn encode(
        &self,
        source: &dyn Source,
        error: Option<f64>,
    ) -> Result<BTreeMap<FieldKey, f64>, AdviseError> {
        let schema = source.schema()?;
        let config = Config::default().with_policy(Policy::Immediate);
        let mut encoder = Encoder::new(schema.clone(), config);
        encoder.keep_ledger(true);
        let mut captured = CapturedWorld::new(schema);
        let mut classes: BTreeMap<u64, u16> = BTreeMap::new();
        for update in &self.ticks {
            let round = |class: u16, field: u16, value: i64| {
                let step = error.map_or(1, |error| self.step((class, field), error));
                match step {
                    1 => value,
                    _ => value.saturating_add(step / 2).div_euclid(step),
                }
            };
            let spawns = update.spawns.iter().map(|spawn| {
                classes.insert(spawn.id, spawn.class);
                let values = (0..).zip(&spawn.row);
                Spawn {
                    row: values
                        .map(|(at, &value)| round(spawn.class, at, value))
                        .collect(),
                    ..*spawn
                }
            });
            let spawns = spawns.collect();
            let changes = update.changes.iter().map(|change| {
                let class = classes.get(&change.id).copied().unwrap_or_default();
                let values = change.values.iter();
                Change {
                    id: change.id,
                    values: values
                        .map(|&(at, value)| (at, round(class, at, value)))
                        .collect(),
                }
            });
            let rounded = TickUpdate {
                tick: update.tick,
                despawns: update.despawns.clone(),
                changes: changes.collect(),
                spawns,
            };
            captured.apply(rounded)?;
            let archive = captured.archive();
            if let Some(changes) = archive.newest().and_then(|tick| archive.changes(tick)) {
                for &slot in &changes.spawned {
                    encoder.show(slot, archive);
                }
            }
            encoder.encode(archive, None)?;
        }
        let mut bytes: BTreeMap<FieldKey, f64> = BTreeMap::new();
        for (account, cost) in encoder.ledger().into_iter().flat_map(|of| of.entries()) {
            if let (Some(class), Some(field)) = (account.class, account.field) {
                *bytes.entry((class, field)).or_default() += cost as f64 / 65536.0 / 8.0;
            }
        }
        Ok(bytes)
    }

    /// For each field, the predictor whose errors are cheapest, over all ticks at which an entity moves.
    fn predictors(&self, keys: &[FieldKey]) -> BTreeMap<FieldKey, &'static str> {
        let mut costs: BTreeMap<FieldKey, [f64; 3]> = BTreeMap::new();
        for &key in keys {
            for series in self.series(key).values() {
                let mut past: Vec<i64> = Vec::new();
                for &(_, value) in series {
                    let Some(value) = value else {
                        past.clear();
                        continue;
                    };
                    if let [a, b, c] = past[..] {
                        let linear = c.saturating_mul(2).saturating_sub(b);
                        let parabola = (c.saturating_sub(b).saturating_mul(3)).saturating_add(a);
                        let cost = costs.entry(key).or_default();
                        for (cost, guess) in cost.iter_mut().zip([c, linear, parabola]) {
                            let error = value.saturating_sub(guess).unsigned_abs();
                            *cost += match error {
                                0 => 0.1,
                                error => 2.0 + 2.0 * (error as f64).log2(),
                            };
                        }
                    }
                    past.push(value);
                    if past.len() > 3 {
                        past.remove(0);
                    }
                }
            }
        }
        let best = |costs: [f64; 3]| {
            let names = ["hold", "linear", "parabola"];
            let pairs = costs.into_iter().zip(names);
            pairs
                .min_by(|a, b| a.0.total_cmp(&b.0))
                .map_or("hold", |(_, name)| name)
        };
        costs
            .into_iter()
            .map(|(key, costs)| (key, best(costs)))
            .collect()
    }

    /// The values of a field by entity: at every tick at which they changed, and at the one before if that
    /// is another; `None` when the entity is gone.
    fn series(&self, (class, field): FieldKey) -> BTreeMap<u64, Vec<(u64, Option<i64>)>> {
        let mut series: BTreeMap<u64, Vec<(u64, Option<i64>)>> = BTreeMap::new();
        let mut alive: BTreeSet<u64> = BTreeSet::new();
        let mut before = None;
        for update in &self.ticks {
            for id in &update.despawns {
                if alive.remove(id) {
                    end(series.entry(*id).or_default(), before);
                    series.entry(*id).or_default().push((update.tick, None));
                }
            }
            for spawn in update.spawns.iter().filter(|spawn| spawn.class == class) {
                alive.insert(spawn.id);
                let value = spawn.row[usize::from(field)];
                series
                    .entry(spawn.id)
                    .or_default()
                    .push((update.tick, Some(value)));
            }
            for change in update
                .changes
                .iter()
                .filter(|change| alive.contains(&change.id))
            {
                let mut values = change.values.iter();
                if let Some(&(_, value)) = values.find(|&&(at, _)| at == field) {
                    let series = series.entry(change.id).or_default();
                    end(series, before);
                    series.push((update.tick, Some(value)));
                }
            }
            before = Some(update.tick);
        }
        for id in alive {
            end(series.entry(id).or_default(), before);
        }
        series
    }

    /// Fits the field of all entities, and sends the keyframes.
    fn keyframes(&self, key: FieldKey, error: f64) -> Keyframes {
        let mut result = Keyframes::default();
        if !self.is_number(key) {
            return result;
        }
        let scale = self.scale(key);
        let look_ahead = (self.hz as usize).clamp(2, 128);
        let time = |tick: u64| Time::from_micros((tick as f64 * 1e6 / self.hz) as i64);
        // The time at which each keyframe is known, and its operation.
        let mut operations: Vec<(Time, Operation<f64>)> = Vec::new();
        let series = self.series(key);
        for (property, series) in (0..).map(PropertyId).zip(series.values()) {
            let Ok(mut fitter) = Fitter::<f64>::new(FIT_SHARE * error, look_ahead) else {
                return result;
            };
            let mut born = None;
            for &(tick, value) in series {
                let now = time(tick);
                match value {
                    Some(value) => {
                        born.get_or_insert(tick);
                        let _ = fitter.push(now, value as f64 * scale);
                    }
                    None => {
                        fitter.finish();
                        let since = born.take().unwrap_or(tick);
                        result.entity_seconds += (tick - since) as f64 / self.hz;
                    }
                }
                while let Some(keyframe) = fitter.poll_keyframe() {
                    let edit = Edit::Add(keyframe);
                    operations.push((now, Operation { property, edit }));
                }
            }
            let end = self.ticks.last().map_or(0, |update| update.tick);
            fitter.finish();
            while let Some(keyframe) = fitter.poll_keyframe() {
                let edit = Edit::Add(keyframe);
                operations.push((time(end), Operation { property, edit }));
            }
            result.entity_seconds += born.map_or(0.0, |born| (end - born) as f64 / self.hz);
        }
        operations.sort_by_key(|(time, _)| *time);
        let config = PackedConfig::new(STEP_SHARE * error);
        let Ok(config) = config.and_then(|config| config.time_step(TIME_STEP)) else {
            return result;
        };
        let mut sender = Sender::new(config.clone().interval(INTERVAL));
        let mut receiver = Receiver::new(config);
        let mut bytes = 0;
        while let Some(request) = receiver.poll_transmit() {
            let _ = sender.handle(&request);
        }
        let mut transmit = |sender: &mut Sender<f64>| {
            while let Some(message) = sender.poll_transmit() {
                bytes += message.len() as u64;
                let _ = receiver.handle(&message);
            }
        };
        for (now, operation) in &operations {
            if *now >= sender.next_timeout() {
                sender.handle_timeout(*now);
                transmit(&mut sender);
            }
            result.count += u64::from(sender.apply(operation).is_ok());
        }
        sender.flush(time(self.ticks.last().map_or(0, |update| update.tick)));
        transmit(&mut sender);
        result.bytes = bytes;
        for (property, series) in (0..).map(PropertyId).zip(series.values()) {
            for &(tick, value) in series {
                let shown = receiver.timeline().at(property, time(tick));
                if let Some((value, shown)) = value.zip(shown) {
                    let error = (value as f64 * scale - shown).abs();
                    result.max_error = result.max_error.max(error);
                }
            }
        }
        result
    }
}

/// Repeats the last value at a later tick.
fn end(series: &mut Vec<(u64, Option<i64>)>, tick: Option<u64>) {
    if let (Some(&(last, Some(value))), Some(tick)) = (series.last(), tick)
        && tick > last
    {
        series.push((tick, Some(value)));
    }
}

/// The document's brute force, for one property.
const BRUTE_FORCE: BruteForce = BruteForce {
    properties: 1,
    bytes_per_value: 4,
    updates_per_second: 10,
    packets: Packets::UDP,
};

const INTERVAL: Span = Span::from_millis(100);
/// Shares of the acceptable error for the curve, and for the step, of which rounding takes half.
const FIT_SHARE: f64 = 0.6;
const STEP_SHARE: f64 = 0.4;
/// That of the fitter's times: a value may jump from one tick to the next, and rounding would move the jump.
const TIME_STEP: Span = Span::from_micros(1);
