//! The tables of a master's thesis on adaptive compression for games, with our codec beside them.
//!
//! The thesis lists its three entities by the number and kind of their fields; ours have the same.
//! Of each, 98 roam: three fields of the transform change with every tick, one field in twenty ticks.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;

use prescient::{Schema, State};
use prescient_codec::history::Archive;
use prescient_codec::{Ack, Config, Decoder, Encoder, HISTORY, Quality, Selection, Slot, Tick};
use prescient_schema::Priority;
use prescient_sim::world::Random;

use crate::CommandError;

macro_rules! entity {
    ($name:ident, $($field:ident),*) => {
        #[derive(State, Clone)]
        #[state(priority = 3)]
        struct $name {
            #[state(step = 0.01, position, levels(0, 2, 4, 7))]
            position: [f32; 3],
            #[state(step = 0.01, levels(0, 2, 4, 7))]
            rotation: [f32; 3],
            id: u16,
            kind: u8,
            $($field: i32,)*
        }
    };
}

entity!(Small,);
entity!(Medium, health, shield, ammunition, energy, is_armed, weapon);
entity!(
    Big, health, shield, ammunition, energy, is_armed, weapon, target, effect, duration, range,
    rank, team, mana
);

/// How a table's runs differ.
#[derive(Clone, Copy)]
struct Link {
    /// In ticks of a thirtieth of a second.
    round_trip: usize,
    /// In percent, each way.
    loss: u64,
    level: u8,
}

/// Prints the tables.
pub(super) fn print(output: &mut impl Write) -> Result<(), CommandError> {
    let perfect = Link {
        round_trip: 1,
        loss: 0,
        level: 0,
    };
    writeln!(
        output,
        "Bits per entity and update, lossless (thesis: tables 4.1 to 4.3)"
    )?;
    writeln!(output, "entity   initial  packed  +delta   ours")?;
    for (kind, printed) in PRINTED.iter().enumerate() {
        let ours = bits(kind, perfect);
        let [name, initial, packed, delta] = printed;
        writeln!(
            output,
            "{name:8} {initial:>7} {packed:>7} {delta:>7} {ours:>6.1}"
        )?;
    }
    writeln!(
        output,
        "\nSmall entity, loss by round trip (thesis: table 4.4; theirs / ours)"
    )?;
    writeln!(
        output,
        "loss       0 ms     50 ms    100 ms    200 ms    300 ms    500 ms"
    )?;
    for (loss, printed) in GRID {
        write!(output, "{loss:>3} %")?;
        for (round_trip, theirs) in ROUND_TRIPS.iter().zip(printed) {
            let link = Link {
                round_trip: *round_trip,
                loss,
                level: 0,
            };
            write!(output, "  {theirs:>2} /{:>4.1}", bits(0, link))?;
        }
        writeln!(output)?;
    }
    writeln!(
        output,
        "\nFour strengths of quantisation (thesis: table 4.6; theirs / ours)"
    )?;
    for (kind, printed) in QUANTISED.iter().enumerate() {
        write!(output, "{:8}", PRINTED[kind][0])?;
        for (level, theirs) in printed.iter().enumerate() {
            let link = Link {
                level: level as u8,
                ..perfect
            };
            write!(output, "  {theirs:>3} /{:>5.1}", bits(kind, link))?;
        }
        writeln!(output)?;
    }
    timing(output)?;
    selection(output)
}

/// What it costs to select by benefit per bit: the same packets by the same encoder, with it and
/// without, for half of what 1,000 entities need.
#[expect(clippy::disallowed_methods, reason = "it measures time")]
fn selection(output: &mut impl Write) -> Result<(), CommandError> {
    let schema = Arc::new(Schema::of::<Medium>().expect("a sound schema"));
    let mut random = Random::new(1);
    let mut archive = Archive::new(schema.clone(), HISTORY);
    let mut encoder = Encoder::new(schema.clone(), Config::default());
    let mut decoder = Decoder::new(schema, Config::default());
    encoder.set_selection(Some(Selection::default()));
    let mut units: Vec<Medium> = (0..VISIBLE)
        .map(|number| medium(number, &mut random))
        .collect();
    let mut slots: Vec<Slot> = Vec::new();
    let mut acks: VecDeque<(u64, Ack)> = VecDeque::new();
    let mut nanos = [0u128; 2];
    for tick in 1..=SELECTED {
        let mut capture = archive.begin(Tick(tick)).expect("ticks ascend");
        for (number, unit) in units.iter_mut().enumerate() {
            if tick == 1 {
                slots.push(capture.spawn(0, &unit.to_row("default")).expect("it fits"));
            } else {
                step_medium(unit, &mut random);
                capture
                    .write(slots[number], &unit.to_row("default"))
                    .expect("it lives");
            }
        }
        capture.finish();
        for (number, &slot) in slots.iter().enumerate().filter(|_| tick == 1) {
            encoder.show(slot, &archive);
            let priority = Priority::new((number % 4) as u8).expect("there are four");
            encoder.set_priority(slot, priority, &archive);
        }
        while let Some((_, ack)) = acks.pop_front_if(|(due, _)| *due <= tick) {
            encoder.acknowledge(&ack, &archive).expect("it was sent");
        }
        // Joining is not what is measured.
        let budget = (tick > SELECTED / 4).then(|| encoder.demand() / 2);
        if tick > SELECTED / 2 {
            for (sum, chosen) in nanos.iter_mut().zip([None, Some(Selection::default())]) {
                let timed = (0..5).map(|_| {
                    let mut encoder = encoder.clone();
                    encoder.set_selection(chosen);
                    let begun = std::time::Instant::now();
                    let packet = encoder.encode(&archive, budget);
                    let passed = begun.elapsed().as_nanos();
                    packet.map(|_| passed)
                });
                let timed = timed.collect::<Result<Vec<_>, _>>();
                let timed = timed.expect("a tick was captured");
                *sum += timed.into_iter().min().unwrap_or_default();
            }
        }
        let packet = encoder.encode(&archive, budget);
        let packet = packet.expect("a tick was captured");
        decoder.decode(&packet.bytes).expect("an honest packet");
        let ack = decoder.acknowledgement();
        acks.extend(ack.map(|ack| (tick + 2, ack)));
    }
    let [without, with] = nanos.map(|sum| sum as f64 / 1e3 / (SELECTED - SELECTED / 2) as f64);
    writeln!(
        output,
        "\n{VISIBLE} visible medium entities, half of their demand: encoding {without:.0} µs by age, {with:.0} µs by\n\
         benefit per bit; selection {:+.1} % (thesis, table 4.13: 6 % of the whole)",
        (with / without - 1.0) * 100.0
    )?;
    Ok(())
}

fn step_medium(unit: &mut Medium, random: &mut Random) {
    roam(&mut unit.position, &mut unit.rotation, random);
    let fields = [
        &mut unit.health,
        &mut unit.shield,
        &mut unit.ammunition,
        &mut unit.energy,
    ];
    change(fields, random);
}

/// Turning a struct into a row: derived, and written by hand.
#[expect(clippy::disallowed_methods, reason = "it measures time")]
fn timing(output: &mut impl Write) -> Result<(), CommandError> {
    let mut random = Random::new(1);
    let units: Vec<Medium> = (0..1000)
        .map(|number| medium(number, &mut random))
        .collect();
    let mut best = [u128::MAX; 2];
    let mut sums = [0i64; 2];
    for _ in 0..20 {
        let begun = std::time::Instant::now();
        for unit in &units {
            sums[0] = sums[0].wrapping_add(derived(unit));
        }
        best[0] = best[0].min(begun.elapsed().as_nanos());
        let begun = std::time::Instant::now();
        for unit in &units {
            sums[1] = sums[1].wrapping_add(by_hand(unit));
        }
        best[1] = best[1].min(begun.elapsed().as_nanos());
    }
    let [derived, by_hand] = best.map(|nanos| nanos as f64 / units.len() as f64);
    writeln!(
        output,
        "\nA medium entity to integers: derived {derived:.0} ns, by hand {by_hand:.0} ns, {:+.0} %\n\
         (thesis, table 4.10: reflection +327 %); sums {} and {}",
        (derived / by_hand - 1.0) * 100.0,
        sums[0],
        sums[1]
    )?;
    Ok(())
}

fn derived(unit: &Medium) -> i64 {
    let row = unit.to_row("default");
    row.iter().fold(0, |sum: i64, cell| sum.wrapping_add(*cell))
}

fn by_hand(unit: &Medium) -> i64 {
    let mut row = Vec::with_capacity(14);
    let steps = |value: f32| (f64::from(value) * 100.0).round() as i64;
    row.extend(unit.position.map(steps));
    row.extend(unit.rotation.map(steps));
    row.extend([i64::from(unit.id), i64::from(unit.kind)]);
    let others = [
        unit.health,
        unit.shield,
        unit.ammunition,
        unit.energy,
        unit.is_armed,
        unit.weapon,
    ];
    row.extend(others.map(i64::from));
    row.iter().fold(0, |sum: i64, cell| sum.wrapping_add(*cell))
}

/// Mean bits per entity and update, once the model has learned.
fn bits(kind: usize, link: Link) -> f64 {
    match kind {
        0 => measure(
            link,
            |number, random| Small {
                position: place(random),
                rotation: [0.0; 3],
                id: number as u16,
                kind: (number % 4) as u8,
            },
            |unit, random| roam(&mut unit.position, &mut unit.rotation, random),
        ),
        1 => measure(link, medium, step_medium),
        _ => measure(
            link,
            |number, random| Big {
                position: place(random),
                rotation: [0.0; 3],
                id: number as u16,
                kind: (number % 4) as u8,
                health: 100,
                shield: 100,
                ammunition: 500,
                energy: 10_000,
                is_armed: 1,
                weapon: 3,
                target: 0,
                effect: 0,
                duration: 100,
                range: 300,
                rank: 2,
                team: (number % 2) as i32,
                mana: 5000,
            },
            |unit, random| {
                roam(&mut unit.position, &mut unit.rotation, random);
                let fields = [
                    &mut unit.health,
                    &mut unit.shield,
                    &mut unit.ammunition,
                    &mut unit.energy,
                    &mut unit.duration,
                    &mut unit.mana,
                    &mut unit.target,
                    &mut unit.effect,
                ];
                change(fields, random);
            },
        ),
    }
}

fn medium(number: usize, random: &mut Random) -> Medium {
    Medium {
        position: place(random),
        rotation: [0.0; 3],
        id: number as u16,
        kind: (number % 4) as u8,
        health: 100,
        shield: 100,
        ammunition: 500,
        energy: 10_000,
        is_armed: 1,
        weapon: 3,
    }
}

fn measure<T: State>(
    link: Link,
    spawn: impl Fn(usize, &mut Random) -> T,
    step: impl Fn(&mut T, &mut Random),
) -> f64 {
    let schema = Arc::new(Schema::of::<T>().expect("a sound schema"));
    let mut random = Random::new(1);
    let mut losses = Random::new(2);
    let mut archive = Archive::new(schema.clone(), HISTORY);
    let config = Config::default();
    let mut encoder = Encoder::new(schema.clone(), config);
    let mut decoder = Decoder::new(schema, config);
    let last = Priority::new(3).expect("there are four");
    let mut units: Vec<T> = (0..ENTITIES)
        .map(|number| spawn(number, &mut random))
        .collect();
    let mut slots: Vec<Slot> = Vec::new();
    let mut acks: VecDeque<(u64, Ack)> = VecDeque::new();
    let mut bytes = 0;
    for tick in 1..=TICKS {
        let mut capture = archive.begin(Tick(tick)).expect("ticks ascend");
        for (number, unit) in units.iter_mut().enumerate() {
            if tick == 1 {
                slots.push(capture.spawn(0, &unit.to_row("default")).expect("it fits"));
            } else {
                step(unit, &mut random);
                let row = unit.to_row("default");
                capture.write(slots[number], &row).expect("it lives");
            }
        }
        capture.finish();
        if tick == 1 {
            for &slot in &slots {
                encoder.show(slot, &archive);
                encoder.set_priority(slot, last, &archive);
            }
            let quality = Quality::FULL.with_level_bias(last, link.level);
            encoder.set_quality(quality, &archive);
        }
        while let Some((_, ack)) = acks.pop_front_if(|(due, _)| *due <= tick) {
            encoder.acknowledge(&ack, &archive).expect("it was sent");
        }
        let packet = encoder.encode(&archive, None).expect("a tick was captured");
        if tick > TICKS / 2 {
            bytes += packet.bytes.len();
        }
        let mut is_lost = || (losses.range(0, 99) as u64) < link.loss;
        if !is_lost() {
            decoder.decode(&packet.bytes).expect("an honest packet");
            let ack = decoder.acknowledgement();
            if let Some(ack) = ack.filter(|_| !is_lost()) {
                acks.push_back((tick + link.round_trip as u64, ack));
            }
        }
    }
    bytes as f64 * 8.0 / (ENTITIES as u64 * (TICKS / 2)) as f64
}

fn place(random: &mut Random) -> [f32; 3] {
    [
        random.range(0, 6000) as f32 / 100.0,
        0.0,
        random.range(0, 6000) as f32 / 100.0,
    ]
}

/// In a circle, as in the thesis, with a little noise.
fn roam(position: &mut [f32; 3], rotation: &mut [f32; 3], random: &mut Random) {
    rotation[1] =
        (rotation[1] + 0.02 + random.range(0, 20) as f32 / 1000.0) % std::f32::consts::TAU;
    position[0] += rotation[1].cos() * 0.1;
    position[2] += rotation[1].sin() * 0.1;
}

/// One of these fields in twenty ticks.
fn change<const N: usize>(fields: [&mut i32; N], random: &mut Random) {
    for field in fields {
        if random.range(0, 19 * N as i64) == 0 {
            *field -= random.range(1, 20) as i32;
        }
    }
}

const ENTITIES: usize = 98;
const TICKS: u64 = 400;
/// Entities and ticks of the measurement of the selection.
const VISIBLE: usize = 1000;
const SELECTED: u64 = 120;
/// Name, initial bits, after bit packing, and after delta encoding on a perfect link.
const PRINTED: [[&str; 4]; 3] = [
    ["small", "232", "92", "71"],
    ["medium", "376", "108", "89"],
    ["big", "576", "157", "115"],
];
/// In ticks, of 0, 50, 100, 200, 300 and 500 ms.
const ROUND_TRIPS: [usize; 6] = [1, 2, 3, 6, 9, 15];
/// Bits per small entity, by loss in percent.
const GRID: [(u64, [u32; 6]); 5] = [
    (0, [71, 73, 75, 75, 77, 79]),
    (5, [75, 75, 77, 77, 77, 79]),
    (10, [75, 77, 77, 77, 79, 79]),
    (20, [77, 79, 79, 79, 79, 79]),
    (30, [79, 79, 79, 79, 79, 79]),
];
/// Bits per entity at four strengths of quantisation.
const QUANTISED: [[u32; 4]; 3] = [[92, 85, 76, 58], [108, 101, 92, 70], [157, 147, 132, 101]];
