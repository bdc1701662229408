//! The golden vectors of recordings, in both directions.

#[path = "common/session.rs"]
mod session;

const BYTES: &str = include_str!("../../../vectors/recording/v2/session.hex");
const ROWS: &str = include_str!("../../../vectors/recording/v2/session.rows");

/// Fails if any byte of a block's header moves, if identities are written as differences to another number
/// than the expected one, or if the codec's packets change.
#[test]
fn the_recorder_writes_the_bytes_of_the_vectors() {
    let (written, kept) = (session::record(), session::from_hex(BYTES));
    // The information is deflated, which other versions of the compressor may do otherwise.
    let [written, kept] = [&written, &kept].map(|bytes| &bytes[end_of_info(bytes)..]);
    assert!(kept.len() > 500);
    assert!(written == kept, "{}", session::to_hex(written));
}

/// Fails if any of it is read otherwise, such as identities that do not start again at a snapshot.
#[test]
fn the_bytes_of_the_vectors_are_read() {
    let kept = session::from_hex(BYTES);
    let recording = prescient_recording::Recording::open(&kept[..]).expect("a recording");
    assert_eq!(recording.info().note("map"), Some("plain"));
    assert_eq!(recording.snapshots().count(), 3);
    assert!(ROWS.lines().count() > 100);
    assert!(session::rows(&kept) == ROWS, "{}", session::rows(&kept));
}

/// Where the first block ends: after the file's 9 bytes and the block's header of 13.
fn end_of_info(bytes: &[u8]) -> usize {
    let len = bytes[14..18].try_into().expect("four bytes");
    22 + u32::from_le_bytes(len) as usize
}
