//! The keyframe protocol's frames, compared with the packet in its document and with frames that were
//! computed by hand from its tables; and the messages of packed keyframes.

#[path = "common/packed_messages.rs"]
mod packed_messages;

use prescient_timeline::packed::Receiver;
use prescient_timeline::protocol::{Frame, KeyframeKey};

const CAPTURED: &str = include_str!("../../../vectors/timeline/keyframe_protocol/captured.txt");
const COMPUTED: &str = include_str!("../../../vectors/timeline/keyframe_protocol/frames.txt");
const PACKED: &str = include_str!("../../../vectors/timeline/packed_v2/messages.txt");

/// Both ends write these messages, and a receiver reads them. Fails if a request has another first byte, if
/// a base time is absolute in a batch, or if the codec's packets change.
#[test]
fn packed_messages_stay_what_they_were() {
    let (messages, timeline) = packed_messages::play();
    for (line, (written, kept)) in messages.lines().zip(PACKED.lines()).enumerate() {
        assert_eq!(written, kept, "line {}", line + 1);
    }
    assert_eq!(messages.lines().count(), PACKED.lines().count());
    let kinds = ["01", "02", "03", "10"];
    for kind in kinds {
        let begins = |line: &str| {
            line.rsplit(' ')
                .next()
                .is_some_and(|hex| hex.starts_with(kind))
        };
        assert!(PACKED.lines().any(begins), "no message of kind {kind}");
    }
    let mut receiver = Receiver::new(packed_messages::config());
    for line in PACKED
        .lines()
        .filter_map(|line| line.strip_prefix("down kept "))
    {
        let bytes: Vec<u8> = line
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect();
        let _ = receiver.handle(&bytes);
    }
    assert!(receiver.timeline().curves().eq(timeline.curves()));
}

/// Fails if any field moves by a bit, or the value is sent as a float.
#[test]
fn frames_are_those_of_the_document() {
    let mut compared = 0;
    for text in [CAPTURED, COMPUTED] {
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (frame, bytes) = parse(line);
            assert_eq!(frame.to_bytes(), Ok(bytes), "{line}");
            assert_eq!(Frame::from_bytes(&bytes), Ok(frame), "{line}");
            compared += 1;
        }
    }
    assert_eq!(compared, 13);
}

fn parse(line: &str) -> (Frame, [u8; 14]) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |index: usize| words[index].parse::<i128>().expect("a number");
    let key = || KeyframeKey {
        time: number(1) as u32,
        property: number(2) as u32,
    };
    let (frame, used) = match words[0] {
        "sync" => (
            Frame::Sync {
                base_time: number(1) as u128,
            },
            2,
        ),
        "add" => (Frame::Add(key(), number(3) as u32), 4),
        "remove" => (Frame::Remove(key()), 3),
        "move" => (Frame::Move(key(), number(3) as i32), 4),
        other => panic!("{other}"),
    };
    let digits = words[used..].concat();
    let byte =
        |index: usize| u8::from_str_radix(&digits[2 * index..][..2], 16).expect("hexadecimal");
    assert_eq!(digits.len(), 28, "{line}");
    (frame, std::array::from_fn(byte))
}
