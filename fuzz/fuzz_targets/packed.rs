//! Any bytes as messages of packed keyframes, at both ends and between real ones: no panic, a message that
//! is refused as missing or malformed changes no curve, and real messages go on arriving afterwards.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prescient_timeline::packed::{PackedConfig, ReceiveError, Receiver, Sender};
use prescient_timeline::*;

#[derive(Arbitrary, Debug)]
enum Step {
    /// The sender adds a keyframe.
    Add { property: u8, time: i16, value: i16 },
    /// The sender edits a curve.
    Edit {
        property: u8,
        kind: u8,
        time: i16,
        by: i16,
    },
    /// The sender's next message, with changed bytes, and cut.
    Changed { changes: Vec<(u8, u8)>, cut: u8 },
    /// Any bytes to the receiver.
    Down(Vec<u8>),
    /// Any bytes to the sender.
    Up(Vec<u8>),
    /// Time passes, and everything is delivered.
    Deliver,
}

fn config() -> PackedConfig<[f64; 2]> {
    let limits = TimelineConfig::default().max_keyframes(500);
    PackedConfig::new(0.25)
        .expect("a step")
        .history(4)
        .max_message(256)
        .expect("long enough")
        .timeline(limits)
}

fn handle(receiver: &mut Receiver<[f64; 2]>, message: &[u8]) {
    let before = receiver.timeline().clone();
    let handled = receiver.handle(message);
    if matches!(
        handled,
        Err(ReceiveError::Missing | ReceiveError::Malformed)
    ) {
        assert_eq!(receiver.timeline(), &before);
    }
}

fn deliver(sender: &mut Sender<[f64; 2]>, receiver: &mut Receiver<[f64; 2]>) {
    for _ in 0..3 {
        while let Some(request) = receiver.poll_transmit() {
            sender.handle(&request).expect("a receiver wrote it");
        }
        while let Some(message) = sender.poll_transmit() {
            handle(receiver, &message);
        }
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let mut sender = Sender::new(config());
    let mut receiver = Receiver::new(config());
    let mut now = Time::ZERO;
    deliver(&mut sender, &mut receiver);
    for step in steps.into_iter().take(60) {
        now = now + Span::from_millis(100);
        let at = |time: i16| Time::from_millis(i64::from(time));
        match step {
            Step::Add {
                property,
                time,
                value,
            } => {
                let value = [f64::from(value), f64::from(property)];
                let edit = Edit::Add(Keyframe::new(at(time), value));
                let property = PropertyId(property.into());
                let _ = sender.apply(&Operation { property, edit });
            }
            Step::Edit {
                property,
                kind,
                time,
                by,
            } => {
                let (time, by) = (at(time), Span::from_millis(by.into()));
                let edit = match kind % 4 {
                    0 => Edit::Remove { time },
                    1 => Edit::Move { time, by },
                    2 => Edit::MoveWithin {
                        from: time,
                        to: Time::MAX,
                        by,
                    },
                    _ => Edit::Clear,
                };
                let property = PropertyId(property.into());
                let _ = sender.apply(&Operation { property, edit });
            }
            Step::Changed { changes, cut } => {
                sender.flush(now);
                let Some(mut message) = sender.poll_transmit() else {
                    continue;
                };
                for (at, value) in changes {
                    let at = usize::from(at) % message.len();
                    message[at] = value;
                }
                message.truncate(message.len() - usize::from(cut) % message.len());
                handle(&mut receiver, &message);
            }
            Step::Down(bytes) => handle(&mut receiver, &bytes),
            Step::Up(bytes) => {
                let _ = sender.handle(&bytes);
            }
            Step::Deliver => {
                sender.flush(now);
                deliver(&mut sender, &mut receiver);
            }
        }
    }
    // A new receiver gets the whole timeline, whatever was asked for before.
    sender.flush(now);
    while sender.poll_transmit().is_some() {}
    let mut late = Receiver::new(config());
    deliver(&mut sender, &mut late);
    for (property, curve) in sender.timeline().curves() {
        let same = late.timeline().curve(property) == Some(curve);
        assert!(same || curve.is_empty(), "{property:?}");
    }
});
