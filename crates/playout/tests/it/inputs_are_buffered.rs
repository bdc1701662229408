//! A server hands out one input per tick, and clients keep its buffer as full as it has to be.

use std::collections::VecDeque;
use std::time::Duration;

use prescient_playout::{
    BufferedInput, InputBuffer, InputBufferConfig, InputBufferError, Nudge, TickRate,
};

/// Fails if `next_tick` hands out before the buffer was filled once, or if old inputs come through.
#[test]
fn one_input_is_handed_out_per_tick() {
    let mut buffer = InputBuffer::new(InputBufferConfig::default()).expect("sound");
    assert_eq!(buffer.next_tick(), BufferedInput::Waiting);
    buffer.push(7, 'a').expect("in order");
    assert_eq!(buffer.next_tick(), BufferedInput::Waiting);
    buffer.push(8, 'b').expect("in order");
    let late = buffer.push(8, 'x');
    assert_eq!(late, Err(InputBufferError::NotLater { last: 8 }));
    assert_eq!(buffer.next_tick(), BufferedInput::Input(7, 'a'));
    assert_eq!(buffer.next_tick(), BufferedInput::Input(8, 'b'));
    assert_eq!(buffer.next_tick(), BufferedInput::Missing);
    assert_eq!(buffer.missing(), 1);
    for tick in 100..1000 {
        buffer.push(tick, 'c').expect("in order");
    }
    assert_eq!(buffer.len(), 32);
    assert_eq!(buffer.next_tick(), BufferedInput::Input(968, 'c'));
}

/// A client whose clock is 500 ppm slow or fast, behind 20 ms of jitter: after the first seconds the
/// server misses hardly an input, and its buffer does not grow.
///
/// Fails if the sign of the nudge is wrong, or if `TickRate::interval` ignores it.
#[test]
fn nudges_keep_the_buffer_filled_whatever_the_clocks_do() {
    for drift in [-500_i64, 500] {
        let tick = 33_333_i64;
        let mut buffer = InputBuffer::new(InputBufferConfig::default()).expect("sound");
        let mut rate = TickRate::new(Duration::from_micros(tick as u64));
        let (mut next_input, mut number, mut dice) = (0_i64, 0_u64, 1_u64);
        let mut on_the_way: VecDeque<(i64, u64)> = VecDeque::new();
        let mut nudges: VecDeque<(i64, Nudge)> = VecDeque::new();
        let (mut missing, mut longest) = (0, 0);
        for now_tick in 0..9000_i64 {
            let now = now_tick * tick;
            while let Some((_, nudge)) = nudges.pop_front_if(|(at, _)| *at <= now) {
                rate.handle_nudge(nudge);
            }
            while next_input <= now {
                number += 1;
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let jitter = (dice >> 33) as i64 % 20_000;
                let earlier = on_the_way.back().map_or(0, |(at, _)| *at);
                on_the_way.push_back(((next_input + 50_000 + jitter).max(earlier), number));
                let interval = rate.interval().as_micros() as i64;
                next_input += interval + interval * drift / 1_000_000;
            }
            while let Some((_, number)) = on_the_way.pop_front_if(|(at, _)| *at <= now) {
                buffer.push(number, ()).expect("in order");
            }
            buffer.next_tick();
            if let Some(nudge) = buffer.poll_nudge() {
                nudges.push_back((now + 50_000, nudge));
            }
            if now_tick == 900 {
                missing = buffer.missing();
            }
            if now_tick > 900 {
                longest = longest.max(buffer.len());
            }
        }
        let missed = buffer.missing() - missing;
        assert!(
            missed < 40,
            "{missed} of 8100 inputs were missing at {drift} ppm"
        );
        assert!(longest <= 4, "{longest} inputs waited at {drift} ppm");
    }
}
