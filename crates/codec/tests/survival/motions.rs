//! How the value of a field changes from one tick to the next.
#![allow(unreachable_pub, reason = "a module of a program of its own")]

use std::collections::BTreeMap;

use prescient_codec::{Slot, history::Capture};
use prescient_schema::{
    Class, Container, Content, Field, FieldKind, Level, Shape, exact_from_f32, exact_from_f64,
};
use proptest::prelude::*;

use crate::common::Random;

/// The motion of a field. Containers and references hold with `Hold` and change at random
/// otherwise.
#[derive(Clone, Copy, Debug)]
pub enum Motion {
    Hold,
    Line(i64),
    Curve(i64, i64),
    /// At random within this many bits.
    Noise(u32),
    /// Alternates between extremes.
    Extremes,
    /// At an interval in ticks, by a step.
    Beat(u32, i64),
}

pub fn motion() -> impl Strategy<Value = Motion> {
    prop_oneof![
        2 => Just(Motion::Hold),
        3 => prop_oneof![-20..20i64, any::<i64>()].prop_map(Motion::Line),
        2 => (-9..9i64, -3..3i64).prop_map(|(speed, bend)| Motion::Curve(speed, bend)),
        3 => (0u32..=64).prop_map(Motion::Noise),
        2 => Just(Motion::Extremes),
        2 => (1u32..8, -900..900i64).prop_map(|(every, by)| Motion::Beat(every, by)),
    ]
}

/// The next value of a field, valid for its kind.
pub fn advance(
    field: &Field,
    value: i64,
    motion: Motion,
    tick: u64,
    random: &mut Random,
    capture: &mut Capture<'_>,
    company: &mut Company,
) -> i64 {
    if matches!(motion, Motion::Hold) {
        return value;
    }
    match field.kind.shape() {
        Shape::Content => {
            if random.chance(50) {
                return value;
            }
            let container = field.kind.container().unwrap();
            let old = company.contents.get(&value);
            let content = edited(&field.kind, container, old, random);
            let cell = capture.intern(content.clone()).unwrap();
            company.contents.insert(cell, content);
            cell
        }
        Shape::Reference => {
            if random.chance(60) {
                return value;
            }
            let found = company.pick(&field.kind, random);
            let found = found.and_then(|slot| capture.reference(slot));
            found.unwrap_or_default().cell()
        }
        Shape::Symbol { values } => {
            let moved = moved(&field.kind, value, motion, tick, random);
            moved.rem_euclid(i64::from(values))
        }
        shape @ Shape::Number { .. } => fit(moved(&field.kind, value, motion, tick, random), shape),
    }
}

/// Applies declarations to fields without a motion: their class's contract, or their rates of
/// change.
pub fn obey(
    class: &Class,
    old: &[i64],
    ticks: u32,
    row: &mut [i64],
    moves: impl Fn(usize) -> bool,
) {
    let mut declared = old.to_vec();
    if let Some(contract) = &class.contract {
        (contract.fast_forward)(old, ticks, &mut declared);
    }
    // Twice, so that a rate of a rate has its effect, too.
    for _ in 0..2 {
        for (rate, field) in class.fields.iter().enumerate() {
            let Some(ratio) = field.derivative_of.filter(|_| class.contract.is_none()) else {
                continue;
            };
            let of = usize::from(ratio.of);
            let mean = i128::from(old[rate]) + i128::from(row[rate]);
            let step = mean * i128::from(ratio.numerator) * i128::from(ticks);
            let divisor = 2 * i128::from(ratio.denominator);
            let step = (2 * step + divisor).div_euclid(2 * divisor);
            declared[of] = old[of].wrapping_add(step as i64);
            if !moves(of) {
                row[of] = fit(declared[of], class.fields[of].kind.shape());
            }
        }
    }
    for (at, field) in class.fields.iter().enumerate() {
        row[at] = match field.kind.shape() {
            _ if moves(at) || class.contract.is_none() => row[at],
            shape @ Shape::Number { .. } => fit(declared[at], shape),
            Shape::Symbol { values } => declared[at].clamp(0, i64::from(values) - 1),
            Shape::Content | Shape::Reference => row[at],
        };
    }
}

/// An initial value.
pub fn start(field: &Field, random: &mut Random) -> i64 {
    match field.kind.shape() {
        Shape::Content | Shape::Reference => 0,
        Shape::Symbol { values } => random.below(u64::from(values)) as i64,
        shape => fit((random.next() >> random.below(64)) as i64, shape),
    }
}

/// The entities and contents that fields can name.
#[derive(Default)]
pub struct Company {
    /// All contents so far.
    pub contents: BTreeMap<i64, Content>,
    pub alive: Vec<(Slot, String)>,
}

impl Company {
    fn pick(&self, kind: &FieldKind, random: &mut Random) -> Option<Slot> {
        let (slot, class) = self
            .alive
            .get(random.below(self.alive.len() as u64 + 1) as usize)?;
        let FieldKind::Reference { class: wanted } = kind else {
            return None;
        };
        wanted
            .as_ref()
            .is_none_or(|wanted| wanted == class)
            .then_some(*slot)
    }
}

fn moved(kind: &FieldKind, value: i64, motion: Motion, tick: u64, random: &mut Random) -> i64 {
    let tick = tick as i64;
    match motion {
        Motion::Hold => value,
        Motion::Line(speed) => value.wrapping_add(speed),
        Motion::Curve(speed, bend) => value.wrapping_add(speed + bend * tick),
        Motion::Noise(bits) => {
            let noise = random.next().checked_shr(64 - bits.max(1)).unwrap_or(0);
            value.wrapping_add(noise as i64)
        }
        Motion::Beat(every, by) => match tick % i64::from(every) {
            0 => value.wrapping_add(by),
            _ => value,
        },
        Motion::Extremes => {
            let floats = [
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
                -0.0,
                0.0,
                f64::MIN_POSITIVE,
                f64::MAX,
                -1e-310,
            ];
            let numbers = [
                i64::MIN,
                i64::MAX,
                0,
                -1,
                1,
                i64::MIN + 1,
                i64::MAX - 1,
                1 << 62,
            ];
            let at = random.below(8) as usize;
            match kind {
                FieldKind::F32 => exact_from_f32(floats[at] as f32),
                FieldKind::F64 => exact_from_f64(floats[at]),
                FieldKind::Custom(float) => float.format(Level::EXACT).from_f64(floats[at]),
                FieldKind::Int { bits, .. } | FieldKind::Step { bits, .. } => {
                    // The extremes of its own width and of all widths.
                    numbers[at] >> if random.chance(50) { 64 - bits } else { 0 }
                }
                _ => numbers[at],
            }
        }
    }
}

/// Wraps a value to the width of its field.
fn fit(value: i64, shape: Shape) -> i64 {
    match shape {
        Shape::Number { bits, signed } if bits < 64 => {
            let unused = 64 - u32::from(bits);
            if signed {
                value << unused >> unused
            } else {
                ((value as u64) << unused >> unused) as i64
            }
        }
        _ => value,
    }
}

fn edited(
    kind: &FieldKind,
    container: Container<'_>,
    old: Option<&Content>,
    random: &mut Random,
) -> Content {
    let max_len = container.max_len;
    match (kind, old) {
        (FieldKind::Text { .. }, old) => {
            let text = match old {
                Some(Content::Bytes(bytes)) => std::str::from_utf8(bytes).unwrap(),
                _ => "",
            };
            let mut letters: Vec<char> = text.chars().collect();
            splice(&mut letters, random, |random| {
                ['a', 'b', ' ', 'é', '漢', '🦀'][random.below(6) as usize]
            });
            let mut text: String = letters.into_iter().collect();
            while text.len() > max_len {
                text.pop();
            }
            Content::Bytes(text.into_bytes().into())
        }
        (FieldKind::Bytes { .. }, old) => {
            let mut bytes = match old {
                Some(Content::Bytes(bytes)) => bytes.to_vec(),
                _ => Vec::new(),
            };
            splice(&mut bytes, random, |random| random.next() as u8);
            bytes.truncate(max_len);
            Content::Bytes(bytes.into())
        }
        (_, old) => {
            let width = container.width();
            let mut items: Vec<Vec<i64>> = match old {
                Some(Content::Cells(cells)) => cells.chunks(width).map(<[i64]>::to_vec).collect(),
                _ => Vec::new(),
            };
            let item = |random: &mut Random| {
                let columns = container.item.iter();
                columns
                    .map(|column| start(column, random))
                    .collect::<Vec<i64>>()
            };
            splice(&mut items, random, item);
            let keyed = container.key < width;
            if let Some(at) = (random.below(items.len() as u64 + 1) as usize).checked_sub(1)
                && (container.key == 0 || keyed)
            {
                let column = container.key + random.below((width - container.key) as u64) as usize;
                items[at][column] = start(&container.item[column], random);
            }
            if container.key > 0 {
                let map: BTreeMap<Vec<i64>, Vec<i64>> = items
                    .into_iter()
                    .map(|item| (item[..container.key].to_vec(), item))
                    .collect();
                items = map.into_values().collect();
            }
            items.truncate(max_len);
            Content::Cells(items.concat().into())
        }
    }
}

/// Removes some items and inserts others.
fn splice<T>(items: &mut Vec<T>, random: &mut Random, new: impl Fn(&mut Random) -> T) {
    if random.chance(4) {
        items.clear();
        return;
    }
    let at = random.below(items.len() as u64 + 1) as usize;
    let end = (at + random.below(4) as usize).min(items.len());
    let coming: Vec<T> = (0..random.below(6)).map(|_| new(random)).collect();
    items.splice(at..end, coming);
}
