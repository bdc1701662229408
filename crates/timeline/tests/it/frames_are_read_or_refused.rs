//! Frames of the keyframe protocol that are out of range, unknown or cut into pieces.

use prescient_timeline::protocol::*;
use proptest::prelude::*;

#[test]
fn what_does_not_fit_is_refused() {
    let key = |time, property| KeyframeKey { time, property };
    let (long, many) = (1 << 26, 1 << 24);
    for (frame, error) in [
        (Frame::Sync { base_time: 1 << 96 }, Range::BaseTime),
        (Frame::Add(key(long, 0), 0), Range::Time),
        (Frame::Remove(key(0, many)), Range::Property),
        (Frame::Move(key(0, 0), 1 << 26), Range::Offset),
        (Frame::Move(key(0, 0), i32::MIN), Range::Offset),
    ] {
        assert_eq!(frame.to_bytes(), Err(error));
    }
}

#[test]
fn unknown_types_and_methods_are_named() {
    let read = |first| Frame::from_bytes(&[first; 14]);
    assert_eq!(read(0b1000_0000), Err(FrameError::Type(2)));
    assert_eq!(read(0b1100_0000), Err(FrameError::Type(3)));
    assert_eq!(
        read(0b0000_0000),
        Err(FrameError::Method { kind: 0, method: 0 })
    );
    assert_eq!(
        read(0b0100_1100),
        Err(FrameError::Method { kind: 1, method: 3 })
    );
    assert_eq!(
        read(0b0111_1100),
        Err(FrameError::Method {
            kind: 1,
            method: 15
        })
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Fails if the decoder uses an unused bit: a frame with those bits cleared must decode to the same.
    #[test]
    fn any_bytes_are_a_frame_or_an_error(bytes in any::<[u8; 14]>()) {
        if let Ok(frame) = Frame::from_bytes(&bytes) {
            let clean = frame.to_bytes().expect("what was read fits");
            prop_assert_eq!(Frame::from_bytes(&clean), Ok(frame));
        }
    }

    /// Fails if `take` loses bytes between portions.
    #[test]
    fn a_stream_may_be_cut_anywhere(
        frames in prop::collection::vec(any::<[u8; 14]>(), 0..20),
        cuts in prop::collection::vec(0usize..40, 0..40),
    ) {
        let stream = frames.concat();
        let mut reassembly = Reassembly::default();
        let mut found = Vec::new();
        let mut rest = &stream[..];
        for cut in cuts.into_iter().chain([usize::MAX]) {
            let (mut piece, later) = rest.split_at(cut.min(rest.len()));
            rest = later;
            while let Some(frame) = reassembly.take(&mut piece) {
                found.push(frame);
            }
        }
        prop_assert_eq!(found, frames);
    }
}
