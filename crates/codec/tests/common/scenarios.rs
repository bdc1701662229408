//! Small deterministic connections whose bytes are kept in `vectors/codec`.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "the test and the generator each use a part"
)]

mod crew;

use std::{fmt::Write as _, path::PathBuf, sync::Arc};

use prescient_codec::{
    Config, Decoder, Encoder, HISTORY, Policy, Profile, Slot, Tick, history::Archive,
};
use prescient_schema::{
    Class, Contract, CustomFloat, Derivative, Field, FieldKind, FloatFormat, Level, Priority,
    Schema, Step, exact_from_f32, exact_from_f64,
};

/// One connection.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub world: World,
    pub policy: Policy,
    pub profile: Profile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// Numbers, symbols, a contract and groups.
    Things,
    /// Containers, references, all levels and rates of rates.
    Crew,
}

pub const SCENARIOS: [Scenario; 12] = [
    things("confirmed", Policy::Confirmed, Profile::Default),
    things("confirmed_best", Policy::Confirmed, Profile::Best),
    things("immediate", Policy::Immediate, Profile::Default),
    things("immediate_best", Policy::Immediate, Profile::Best),
    things("stateless", Policy::Stateless, Profile::Default),
    things("stateless_best", Policy::Stateless, Profile::Best),
    crew("crew_confirmed", Policy::Confirmed, Profile::Default),
    crew("crew_confirmed_best", Policy::Confirmed, Profile::Best),
    crew("crew_immediate", Policy::Immediate, Profile::Default),
    crew("crew_immediate_best", Policy::Immediate, Profile::Best),
    crew("crew_stateless", Policy::Stateless, Profile::Default),
    crew("crew_stateless_best", Policy::Stateless, Profile::Best),
];

const fn things(name: &'static str, policy: Policy, profile: Profile) -> Scenario {
    Scenario {
        name,
        world: World::Things,
        policy,
        profile,
    }
}

const fn crew(name: &'static str, policy: Policy, profile: Profile) -> Scenario {
    Scenario {
        world: World::Crew,
        ..things(name, policy, profile)
    }
}

impl Scenario {
    /// The file of its vectors.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../vectors/codec/v4")
            .join(self.name)
            .with_extension("txt")
    }

    pub fn config(&self) -> Config {
        Config::default()
            .with_policy(self.policy)
            .with_profile(self.profile)
    }

    pub fn schema(&self) -> Arc<Schema> {
        match self.world {
            World::Things => schema(),
            World::Crew => crew::schema(),
        }
    }

    /// Captures the world at a time.
    pub fn capture(&self, archive: &mut Archive, time: u32) {
        match self.world {
            World::Things => capture(archive, time),
            World::Crew => crew::capture(archive, time),
        }
    }

    /// Runs the connection. One line per packet: sequence number, tick, whether it was full,
    /// whether it arrived, the digests of the receiver's model and rows after that, and the bytes.
    pub fn play(&self) -> String {
        let schema = self.schema();
        let mut archive = Archive::new(schema.clone(), HISTORY);
        let mut encoder = Encoder::new(schema.clone(), self.config());
        let mut decoder = Decoder::new(schema, self.config());
        let mut text = String::new();
        let last = match self.world {
            World::Things => LAST,
            World::Crew => crew::LAST,
        };
        for time in 1..=last {
            self.capture(&mut archive, time);
            let tick = archive.newest().unwrap();
            let budget = match self.world {
                World::Things => {
                    direct(time, self.policy, &archive, &mut encoder);
                    budget(time, self.policy)
                }
                World::Crew => {
                    crew::direct(time, self.policy, &archive, &mut encoder);
                    crew::budget(time, self.policy)
                }
            };
            let packet = encoder.encode(&archive, budget).unwrap();
            let lost = self.policy != Policy::Immediate && time % 11 == 5;
            if !lost {
                decoder.decode(&packet.bytes).unwrap();
            }
            // Acknowledgements take two ticks, and some are lost.
            if time % 7 != 3
                && time > 2
                && let Some(ack) = decoder.acknowledgement()
            {
                encoder.acknowledge(&ack, &archive).unwrap();
            }
            writeln!(
                text,
                "{} {} {} {} {:016x} {:016x} {}",
                packet.sequence.0,
                tick.0,
                if packet.full { "full" } else { "part" },
                if lost { "lost" } else { "kept" },
                decoder.digest(),
                rows_digest(&decoder),
                hex(&packet.bytes)
            )
            .unwrap();
        }
        text
    }
}

/// Calls on the sender before it encodes.
fn direct(time: u32, policy: Policy, archive: &Archive, encoder: &mut Encoder) {
    for slot in archive.living_slots() {
        encoder.show(slot, archive);
    }
    match time {
        30 => encoder.hide(Slot(3)),
        40 => encoder.set_level(Slot(0), Level::new(2).unwrap(), archive),
        80 => encoder.set_level(Slot(0), Level::EXACT, archive),
        90 if policy == Policy::Confirmed => encoder.resync(),
        _ => {}
    }
}

fn budget(time: u32, policy: Policy) -> Option<usize> {
    ((84..=87).contains(&time) && policy == Policy::Confirmed).then_some(6)
}

const LAST: u32 = 100;

/// Every kind of number and symbol, levels, a rate of change, a contract, a group, and values that
/// are only sent on spawn.
fn schema() -> Arc<Schema> {
    let int = |bits, signed| FieldKind::Int { bits, signed };
    let mut rate = Field::new("rate", int(16, true));
    rate.derivative_of = Some(Derivative {
        of: 1,
        numerator: 1,
        denominator: 4,
    });
    let mut fine = Field::new("fine", int(32, true));
    fine.priority = Priority::new(1).unwrap();
    fine.coarser = [0, 2, 4, 6];
    let mut born = Field::new("born", int(16, false));
    born.only_on_spawn = true;
    let step = Step::parse("0.01").unwrap();
    let format = FloatFormat::new(7, 5, 15).unwrap();
    let mut thing = Class::new(
        "thing",
        vec![
            Field::new("heading", int(8, false)),
            Field::new("x", int(32, true)),
            rate,
            Field::new("huge", int(64, true)),
            Field::new("mode", FieldKind::Enum { values: 5 }),
            Field::new("armed", FieldKind::Bool),
            Field::new("stance", FieldKind::variants(&["stand", "crouch", "lie"])),
            Field::new("height", FieldKind::Step { step, bits: 24 }),
            Field::new("weight", FieldKind::F32),
            Field::new("time", FieldKind::F64),
            Field::new("mood", FieldKind::Custom(CustomFloat::uniform(format))),
            fine,
            born,
            Field::new("crew", int(8, false)),
        ],
    );
    thing.group = Some(13);
    let mut ball = Class::new(
        "ball",
        vec![
            Field::new("height", int(32, true)),
            Field::new("speed", int(16, true)),
        ],
    );
    ball.contract = Some(Contract {
        name: "bounce".into(),
        fast_forward: bounce,
    });
    let lamp = Class::new(
        "lamp",
        vec![
            Field::new("on", FieldKind::Bool),
            Field::new("colour", FieldKind::Enum { values: 300 }),
        ],
    );
    Arc::new(Schema {
        classes: vec![thing, ball, lamp],
    })
}

/// Falls, and bounces with three quarters of its speed.
pub fn bounce(past: &[i64], ticks: u32, out: &mut [i64]) {
    let (mut height, mut speed) = (past[0], past[1]);
    for _ in 0..ticks {
        speed -= 2;
        height += speed;
        if height < 0 {
            height = -height;
            speed = -speed * 3 / 4;
        }
    }
    out[0] = height;
    out[1] = speed;
}

fn tick(time: u32) -> Tick {
    // One tick is skipped.
    Tick((time + u32::from(time >= 60)).into())
}

fn capture(archive: &mut Archive, time: u32) {
    let ball = archive.latest(Slot(2)).map(<[i64]>::to_vec);
    let ticks = archive
        .newest()
        .map_or(0, |newest| tick(time).since(newest));
    let mut capture = archive.begin(tick(time)).unwrap();
    if time == 1 {
        for number in 0..2 {
            let slot = capture.spawn(0, &thing(number, time)).unwrap();
            assert_eq!(slot.0, number as u32);
        }
        capture.spawn(1, &[500, 0]).unwrap();
        for colour in [7, 7, 299] {
            capture.spawn(2, &[1, colour]).unwrap();
        }
    }
    for number in 0..2 {
        if time > 1 && (number == 0 || time < 75) {
            capture
                .write(Slot(number as u32), &thing(number, time))
                .unwrap();
        }
    }
    if let Some(past) = ball {
        let mut row = past.clone();
        bounce(&past, ticks as u32, &mut row);
        if time == 45 {
            row[1] = 40;
        }
        capture.write(Slot(2), &row).unwrap();
    }
    match time {
        // The lamps are at rest by then.
        70 => capture.write(Slot(4), &[0, 12]).unwrap(),
        75 => capture.despawn(Slot(1)).unwrap(),
        77 => capture.despawn(Slot(5)).unwrap(),
        78 => assert!(capture.spawn(2, &[0, 1]).is_ok()),
        _ => {}
    }
    capture.finish();
}

/// Pure functions of the time: straight, then curved, then still, then jumping.
fn thing(number: i64, time: u32) -> Vec<i64> {
    let time = i64::from(time);
    let phase = time.min(50) + (time - 82).max(0);
    let rate = 40 + if phase > 20 { phase - 20 } else { 0 };
    let noise = phase.wrapping_mul(0x9E37_79B9).rotate_right(7) & 7;
    vec![
        (250 + 3 * phase) & 255,
        1000 * number - 17 * phase + phase * phase / 3,
        rate * (1 - 2 * number),
        i64::MIN + (phase / 16) * 0x1234_5678_9ABC,
        (phase / 9 + number) % 5,
        phase / 13 % 2,
        phase / 7 % 3,
        -200 + 5 * phase,
        exact_from_f32(72.5 + (phase / 10) as f32),
        exact_from_f64(phase as f64 * 0.25),
        (phase / 4 - 3) * 16,
        phase * 33 + noise,
        40_000 + number,
        1,
    ]
}

/// A digest of all shown rows.
pub fn rows_digest(decoder: &Decoder) -> u64 {
    let world = decoder.world();
    let mut digest = 0xCBF2_9CE4_8422_2325u64;
    let mut add = |value: i64| {
        for byte in value.to_le_bytes() {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    };
    for slot in world.living_slots() {
        add(i64::from(slot.0));
        add(i64::from(world.class(slot).unwrap()));
        world
            .latest(slot)
            .unwrap()
            .iter()
            .copied()
            .for_each(&mut add);
    }
    digest
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes that [`Scenario::play`] wrote as hexadecimal digits.
pub fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}
