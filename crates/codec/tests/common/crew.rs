//! A world of containers, references and levels, which the first scenarios do not have.
#![allow(unreachable_pub, reason = "a module of a program of its own")]

use std::sync::Arc;

use prescient_codec::{
    Encoder, Policy, Slot, Tick,
    history::{Archive, Capture},
};
use prescient_schema::{
    Class, Content, CustomFloat, Derivative, Field, FieldKind, FloatFormat, Level, Priority, Schema,
};

pub const LAST: u32 = 100;

const SAILOR: u16 = 0;
const ROCKET: u16 = 1;
const LAMP: u16 = 2;

/// A class with every kind of container and reference, one with all levels and a rate of a rate,
/// and one to refer to.
pub fn schema() -> Arc<Schema> {
    let int = |bits, signed| FieldKind::Int { bits, signed };
    let item = vec![
        Field::new("what", int(16, false)),
        Field::new("count", int(32, true)),
        Field::new("rank", FieldKind::Enum { values: 3 }),
    ];
    let skill = vec![
        Field::new("key", int(8, false)),
        Field::new("value", int(64, true)),
    ];
    let tag = vec![Field::new("tag", int(16, false))];
    let lamp_only = || Some("lamp".into());
    let mut maker = Field::new("maker", FieldKind::Reference { class: lamp_only() });
    maker.only_on_spawn = true;
    let mut origin = Field::new("origin", FieldKind::Text { max_len: 20 });
    origin.only_on_spawn = true;
    let sailor = vec![
        Field::new("name", FieldKind::Text { max_len: 40 }),
        Field::new("image", FieldKind::Bytes { max_len: 80 }),
        Field::new("bag", FieldKind::List { item, max_len: 12 }),
        Field::new("skills", map(skill, 12)),
        Field::new("tags", map(tag, 12)),
        Field::new("target", FieldKind::Reference { class: None }),
        Field::new("lamp", FieldKind::Reference { class: lamp_only() }),
        maker,
        origin,
        Field::new("crew", int(8, false)),
    ];
    let format = |mantissa| FloatFormat::new(mantissa, 5, 15).unwrap();
    let rate = |name: &str, of| {
        let mut field = Field::new(name, int(24, true));
        field.derivative_of = Some(Derivative {
            of,
            numerator: 1,
            denominator: 2,
        });
        field
    };
    let fading = CustomFloat::new([10, 8, 6, 4].map(format)).unwrap();
    let mut rocket = vec![
        Field::new("height", int(32, true)),
        rate("speed", 0),
        rate("push", 1),
        Field::new("glow", FieldKind::Custom(fading)),
        Field::new("heading", int(12, false)),
    ];
    for at in [0, 4] {
        rocket[at].priority = Priority::new(2).unwrap();
        rocket[at].coarser = [0, 2, 3, 6];
    }
    rocket[3].priority = Priority::new(1).unwrap();
    let lamp = vec![Field::new("on", FieldKind::Bool)];
    let classes = [("sailor", sailor), ("rocket", rocket), ("lamp", lamp)];
    let mut schema = Schema {
        classes: classes
            .map(|(name, fields)| Class::new(name, fields))
            .into(),
    };
    schema.classes[usize::from(SAILOR)].group = Some(9);
    schema.validate().unwrap();
    Arc::new(schema)
}

fn map(item: Vec<Field>, max_len: u32) -> FieldKind {
    FieldKind::Map {
        item,
        key: 1,
        max_len,
    }
}

fn tick(time: u32) -> Tick {
    // Two ticks are skipped.
    Tick((time + 2 * u32::from(time >= 33)).into())
}

/// Calls on the sender before it encodes.
pub fn direct(time: u32, policy: Policy, archive: &Archive, encoder: &mut Encoder) {
    for slot in archive.living_slots() {
        // A lamp to which others refer is invisible for a while.
        if slot.0 != 5 || !(25..40).contains(&time) {
            encoder.show(slot, archive);
        }
    }
    match time {
        25 => encoder.hide(Slot(5)),
        30 | 45 | 60 | 75 => {
            let level = Level::new((time / 15 - 1) as u8 % 4).unwrap();
            encoder.set_level(Slot(3), level, archive);
        }
        82 if policy == Policy::Confirmed => encoder.resync(),
        _ => {}
    }
}

pub fn budget(time: u32, policy: Policy) -> Option<usize> {
    let tight = (50..=58).contains(&time) || (83..=88).contains(&time);
    (tight && policy != Policy::Stateless).then_some(22)
}

/// Sailors in slots 0 to 2, rockets in 3 and 4, lamps in 5 and 6.
pub fn capture(archive: &mut Archive, time: u32) {
    let mut capture = archive.begin(tick(time)).unwrap();
    if time == 1 {
        for _ in 0..3 {
            let origin = capture.intern(text("harbour")).unwrap();
            let row = [0, 0, 0, 0, 0, 0, 0, 0, origin, 1];
            capture.spawn(SAILOR, &row).unwrap();
        }
        for number in 0..2 {
            capture.spawn(ROCKET, &rocket(number, time)).unwrap();
        }
        for _ in 0..2 {
            capture.spawn(LAMP, &[1]).unwrap();
        }
    }
    for number in 0..3u32 {
        if changes(number, time) && (number < 2 || time < 65) {
            let row = sailor(&mut capture, number, time);
            capture.write(Slot(number), &row).unwrap();
        }
    }
    for number in 0..2 {
        let row = rocket(number, time.max(2));
        capture.write(Slot(3 + number as u32), &row).unwrap();
    }
    match time {
        65 => capture.despawn(Slot(2)).unwrap(),
        66 => {
            let lamp = capture.reference(Slot(5)).unwrap().cell();
            let origin = capture.intern(text("sea")).unwrap();
            let row = [0, 0, 0, 0, 0, lamp, lamp, lamp, origin, 1];
            capture.spawn(SAILOR, &row).unwrap();
        }
        // It is at rest by then.
        70 => capture.write(Slot(6), &[0]).unwrap(),
        _ => {}
    }
    capture.finish();
}

/// The first sailor changes often, the second rarely, the third comes to rest.
fn changes(number: u32, time: u32) -> bool {
    time > 1
        && match number {
            0 => true,
            1 => time.is_multiple_of(7),
            _ => time < 8,
        }
}

/// Pure functions of the time: contents grow, change in the middle, shrink and start over.
fn sailor(capture: &mut Capture<'_>, number: u32, time: u32) -> Vec<i64> {
    let time = i64::from(time);
    let words = ["Ann", "Anne", "Annemarie", "Anne-Marie Zoë", "", "Zoë"];
    let name = text(words[(time / 6) as usize % 6]);
    let image: Vec<u8> = (0..time % 40)
        .map(|at| (at * 37 + i64::from(at > 20) * (time / 5)) as u8)
        .collect();
    let bag = (0..time / 4 % 9).flat_map(|at| [at * 3, 10 + (time + at) / 6, (at + time / 10) % 3]);
    let skills = (0..12).filter(|key| (time >> (key % 4)) % 5 > 1);
    let skills = skills.flat_map(|key| [key * 20, (time / 8) << (4 * key)]);
    let tags = (0..12).map(|tag| tag * 1000 + time / 20);
    let tags = tags.filter(|tag| tag / 1000 % 3 != time / 9 % 3);
    let contents = [
        name,
        Content::Bytes(image.into()),
        Content::Cells(bag.collect()),
        Content::Cells(skills.collect()),
        Content::Cells(tags.collect()),
    ];
    let mut row: Vec<i64> = contents
        .map(|content| capture.intern(content).unwrap())
        .into();
    let who = [5, 0, 1, 3, 6][(time / 5) as usize % 5];
    let lamp = [5, 6][(time / 12) as usize % 2];
    for slot in [who, lamp] {
        row.push(capture.reference(Slot(slot)).unwrap_or_default().cell());
    }
    row.push(0);
    row.push(0);
    row.push(i64::from(number < 2));
    row
}

/// Exact steps of a declared rate, with a disturbance now and then.
fn rocket(number: i64, time: u32) -> Vec<i64> {
    let (mut height, mut speed, mut push) = (1000 * number, 0, 0);
    for step in 2..=i64::from(time) {
        let (old_push, old_speed) = (push, speed);
        push = step / 16 % 3 * 40 - 40 * number;
        speed += (old_push + push) / 4;
        height += (old_speed + speed) / 4 + i64::from(step % 11 == 0);
    }
    let glow = 0x1234 + i64::from(time / 3) * 5;
    vec![height, speed, push, glow, (height / 9) & 0xFFF]
}

fn text(text: &str) -> Content {
    Content::Bytes(text.as_bytes().into())
}
