//! Recordings in a terminal: a map of the positions, and how many entities there are.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::thread::sleep;
use std::time::Duration;

use prescient_net::Clock;
use prescient_recording::{FieldDifference, Player, RecordedEntity, RecordedId, compare};
use prescient_schema::{Class, FieldKind};
use serde_json::{Map, Value, json};

use super::{ReplayError, ReplayOptions};

/// Prints the shown ticks.
pub(super) fn print(
    players: &[Player],
    options: &ReplayOptions,
    output: &mut impl Write,
) -> io::Result<()> {
    for player in players {
        if options.json {
            let line = as_json(player);
            writeln!(output, "{line}")?;
        } else {
            write!(output, "{}", screen(player))?;
            for (id, entity) in player.entities().take(MAX_ROWS) {
                writeln!(output, "  {}", describe(player, id, entity))?;
            }
            let more = player.entities().len().saturating_sub(MAX_ROWS);
            if more > 0 {
                writeln!(output, "  and {more} more")?;
            }
        }
    }
    if let [first, second] = players
        && options.key.is_none()
    {
        let differences = compare(first, second);
        let values = differences
            .iter()
            .filter(|d| matches!(d, FieldDifference::Value { .. }));
        let (values, all) = (values.count(), differences.len());
        match options.json {
            true => writeln!(output, "{}", json!({"differences": all, "values": values}))?,
            false => writeln!(output, "{all} differences, {values} of them in values")?,
        }
    }
    Ok(())
}

/// Plays from the beginning (backwards from the end) until the other end.
pub(super) fn play(
    players: &mut [Player],
    options: &ReplayOptions,
    output: &mut impl Write,
) -> Result<(), ReplayError> {
    let begin = match options.speed < 0.0 {
        true => u64::MAX,
        false => 0,
    };
    for player in &mut *players {
        player.seek(begin)?;
    }
    let clock = Clock::start();
    loop {
        let begun = clock.now();
        let mut text = String::from("\x1b[H\x1b[2J");
        for player in &*players {
            text.push_str(&screen(player));
        }
        output.write_all(text.as_bytes())?;
        output.flush()?;
        let ends = players.iter().all(|player| match options.speed < 0.0 {
            true => player.time() == Duration::ZERO,
            false => player.time() >= player.recording().duration(),
        });
        if ends || options.speed == 0.0 {
            return Ok(());
        }
        // What is decoded already makes no later frame late.
        let has_time = || clock.now().since(begun) < FRAME / 2;
        while has_time() && players.iter_mut().any(|player| player.load_some(8)) {}
        #[expect(clippy::disallowed_methods, reason = "a person watches")]
        sleep(FRAME.saturating_sub(clock.now().since(begun)));
        for player in &mut *players {
            player.play(FRAME, options.speed)?;
        }
    }
}

/// A map of all positions, with one letter per class, and the number of entities of each class.
fn screen(player: &Player) -> String {
    let classes = &player.recording().info().schema.classes;
    let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
    let mut points: Vec<(char, [f64; 2])> = Vec::new();
    for (_, entity) in player.entities() {
        *counts.entry(entity.class).or_default() += 1;
        let class = &classes[usize::from(entity.class)];
        if let [x, y, ..] = plane(class)[..] {
            let letter = class.name.chars().next().unwrap_or('?');
            points.push((letter, [x, y].map(|field| value(class, field, entity))));
        }
    }
    let mut text = String::new();
    let seconds = player.time().as_secs_f64();
    let (tick, all) = (player.tick().unwrap_or_default(), player.entities().len());
    let _ = writeln!(text, "tick {tick}, {seconds:.2} s, {all} entities");
    let bound = |axis: usize, fold: fn(f64, f64) -> f64| {
        let values = points.iter().map(|(_, point)| point[axis]);
        values.reduce(fold).unwrap_or_default()
    };
    if !points.is_empty() {
        let low = [bound(0, f64::min), bound(1, f64::min)];
        let high = [bound(0, f64::max), bound(1, f64::max)];
        let mut map = vec![vec![' '; COLUMNS]; LINES];
        for (letter, point) in points {
            let cell = |axis: usize, cells: usize| {
                let share =
                    (point[axis] - low[axis]) / (high[axis] - low[axis]).max(f64::MIN_POSITIVE);
                ((share * cells as f64) as usize).min(cells - 1)
            };
            map[LINES - 1 - cell(1, LINES)][cell(0, COLUMNS)] = letter;
        }
        for line in map {
            let line: String = line.into_iter().collect();
            let _ = writeln!(text, "|{line}|");
        }
    }
    for (class, count) in counts {
        let name = &classes[usize::from(class)].name;
        let _ = writeln!(text, "{count:>6} {}", name.escape_debug());
    }
    text
}

fn describe(player: &Player, id: RecordedId, entity: &RecordedEntity) -> String {
    let class = &player.recording().info().schema.classes[usize::from(entity.class)];
    let fields = (0..)
        .zip(&class.fields)
        .map(|(at, field)| format!("{} {}", field.name.escape_debug(), value(class, at, entity)));
    let fields: Vec<String> = fields.collect();
    format!(
        "{} {}: {}",
        class.name.escape_debug(),
        id.0,
        fields.join(", ")
    )
}

fn as_json(player: &Player) -> Value {
    let classes = &player.recording().info().schema.classes;
    let entities = player.entities().map(|(id, entity)| {
        let class = &classes[usize::from(entity.class)];
        let names = class.fields.iter().map(|field| field.name.clone());
        let values = entity.row.iter().map(|&value| Value::from(value));
        let row: Map<String, Value> = names.zip(values).collect();
        json!({"id": id.0, "class": class.name, "row": row})
    });
    json!({
        "tick": player.tick(),
        "seconds": player.time().as_secs_f64(),
        "entities": entities.collect::<Vec<_>>(),
    })
}

/// The fields of a class that are drawn as x and y: the first and the last of its position if it has
/// three (the second is the height), or those named so.
pub(super) fn plane(class: &Class) -> Vec<u16> {
    match class.position[..] {
        [x, _, z] => vec![x, z],
        [x, y, ..] => vec![x, y],
        _ => {
            let named = |name: &str| {
                let mut fields = class.fields.iter();
                fields
                    .position(|field| field.name == name)
                    .map(|at| at as u16)
            };
            let pair = named("x").zip(named("y").or_else(|| named("z")));
            pair.map_or_else(Vec::new, |(x, y)| vec![x, y])
        }
    }
}

/// A field's value in its unit.
pub(super) fn value(class: &Class, field: u16, entity: &RecordedEntity) -> f64 {
    let at = usize::from(field);
    let raw = entity.row[at];
    match &class.fields[at].kind {
        FieldKind::Step { step, .. } => step.value(raw),
        FieldKind::F32 => f64::from(prescient_schema::exact_to_f32(raw)),
        FieldKind::F64 => prescient_schema::exact_to_f64(raw),
        _ => raw as f64,
    }
}

const COLUMNS: usize = 72;
const LINES: usize = 20;
const MAX_ROWS: usize = 20;
const FRAME: Duration = Duration::from_millis(50);
