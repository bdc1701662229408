//! The messages of the golden vectors of packed keyframes: all kinds, with all edits.
#![allow(dead_code, reason = "the test and the example use different parts")]

use std::fmt::Write;
use std::path::PathBuf;

use prescient_timeline::packed::{PackedConfig, Receiver, Sender};
use prescient_timeline::{
    Edit, Interpolation, Keyframe, Operation, PropertyId, Span, Time, Timeline,
};

/// The vectors.
pub(crate) fn path() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../vectors/timeline/packed_v2/messages.txt"
    ))
}

pub(crate) fn config() -> PackedConfig<[f64; 2]> {
    PackedConfig::new(0.25).expect("a step").history(4)
}

/// A line per message: `up` from the receiver or `down` from the sender, what became of it, and its bytes.
pub(crate) fn play() -> (String, Timeline<[f64; 2]>) {
    let mut text = String::new();
    let mut sender = Sender::new(config());
    let mut receiver = Receiver::new(config());
    for round in 0..24i64 {
        let now = Time::from_millis(100 * round);
        for operation in operations(round) {
            sender.apply(&operation).expect("sound");
        }
        sender.flush(now);
        while let Some(message) = sender.poll_transmit() {
            // One message that is asked for, and then more than the sender keeps.
            let is_lost = round == 9 || (13..20).contains(&round);
            if !is_lost {
                let _ = receiver.handle(&message);
            }
            let outcome = if is_lost { "lost" } else { "kept" };
            let _ = writeln!(text, "down {outcome} {}", hex(&message));
        }
        while let Some(request) = receiver.poll_transmit() {
            let _ = writeln!(text, "up kept {}", hex(&request));
            sender.handle(&request).expect("a request");
            while let Some(message) = sender.poll_transmit() {
                receiver.handle(&message).expect("asked for");
                let _ = writeln!(text, "down kept {}", hex(&message));
            }
        }
    }
    assert!(sender.timeline().curves().eq(receiver.timeline().curves()));
    (text, sender.timeline().clone())
}

fn operations(round: i64) -> Vec<Operation<[f64; 2]>> {
    let at = |millis| Time::from_millis(100 * round + millis);
    let mut operations = Vec::new();
    let mut push = |property, edit| {
        let property = PropertyId(property);
        operations.push(Operation { property, edit });
    };
    for property in 0..4 {
        let walked = (round * i64::from(property + 1)) as f64;
        let keyframe = Keyframe::new(at(500), [walked * 0.5, 20.0 - walked]);
        let keyframe = match (round + i64::from(property)) % 5 {
            0 => keyframe.with(Interpolation::Step),
            1 => keyframe.with(Interpolation::Smooth),
            _ => keyframe,
        };
        push(property, Edit::Add(keyframe));
    }
    match round % 6 {
        2 => push(0, Edit::Remove { time: at(500) }),
        3 => push(
            1,
            Edit::Move {
                time: at(500),
                by: Span::from_millis(-40),
            },
        ),
        4 => push(
            2,
            Edit::MoveWithin {
                from: at(300),
                to: Time::MAX,
                by: Span::from_millis(25),
            },
        ),
        5 => push(3, Edit::Clear),
        _ => push(70_000, Edit::Add(Keyframe::new(at(-300), [-1e6, 0.25]))),
    }
    operations
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
