//! Any bytes as a stream of the keyframe protocol, for either end: no panic, the same timeline however the
//! stream is split, decoded frames survive re-encoding, and look-ups stay within the range of values.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prescient_timeline::protocol::*;

fuzz_target!(|input: (Vec<u8>, u8)| {
    let (bytes, cut) = input;
    let mut whole = Client::new();
    let mut pieces = Client::new();
    // Without a base time the client would only store frames.
    let base_time = 1_552_000_000_000;
    let sync = Frame::Sync { base_time }.to_bytes().expect("it fits");
    for client in [&mut whole, &mut pieces] {
        client.handle_bytes(&sync);
    }
    whole.handle_bytes(&bytes);
    for piece in bytes.chunks(usize::from(cut).max(1)) {
        pieces.handle_bytes(piece);
    }
    assert_eq!(whole.timeline(), pieces.timeline());
    assert_eq!(whole.base_time(), pieces.base_time());
    loop {
        let event = whole.poll_event();
        assert_eq!(event, pieces.poll_event());
        if event.is_none() {
            break;
        }
    }
    for (_, curve) in whole.timeline().curves() {
        for keyframe in curve.keyframes() {
            for time in [
                keyframe.time.as_micros() - 1,
                keyframe.time.as_micros() + 499,
            ] {
                let value = curve.at(prescient_timeline::Time::from_micros(time));
                assert!(value.is_some_and(|value| (0.0..=f64::from(u32::MAX)).contains(&value)));
            }
        }
    }

    let mut server = Server::new(1_552_000_000_000).expect("a valid base time");
    let stream = server.handle_connected();
    server.handle_bytes(stream, &bytes);
    while let Some(frame) = server.poll_transmit(stream) {
        assert_eq!(frame, sync, "the timeline is empty");
    }
    while server.poll_event().is_some() {}

    for frame in bytes.chunks_exact(FRAME_BYTES) {
        let frame = frame.try_into().expect("of this length");
        if let Ok(read) = Frame::from_bytes(&frame) {
            let written = read.to_bytes().expect("what was read fits");
            assert_eq!(Frame::from_bytes(&written), Ok(read));
        }
    }
});
