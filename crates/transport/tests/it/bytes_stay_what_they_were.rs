//! The golden datagrams of a whole connection: written byte for byte, and read.

use crate::common;

/// Fails if any byte changes: a label of the key schedule, the order of fields, the length of a
/// tag.
#[test]
fn a_connection_is_what_it_was() {
    let golden = include_str!("../../../../vectors/transport/v6/connection.txt");
    let mut lines = golden.lines();
    common::transcript::play(&mut |name, bytes| {
        let (golden_name, hex) = lines
            .next()
            .and_then(|line| line.split_once(' '))
            .expect("more was sent than is on file");
        let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
        let golden: Vec<u8> = (0..hex.len()).step_by(2).map(digits).collect();
        assert_eq!(golden_name, name);
        assert!(
            golden == bytes,
            "{name}:\n{golden:02x?} on file\n{bytes:02x?} sent"
        );
        golden
    });
    assert_eq!(lines.next(), None, "less was sent than is on file");
}
