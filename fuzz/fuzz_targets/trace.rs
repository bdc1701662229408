//! An untrusted recording: any bytes are read or refused, and so is any text once it is compressed;
//! what was read can be written and read again without a change.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prescient_sim::{
    trace::{Header, Reader, Writer},
    world::TickUpdate,
};

const HEADER: &str = r#"{"format":"trace/1","name":"n","tick_hz":30,"classes":[{"name":"car","fields":[{"name":"x","type":"int"},{"name":"s","type":"enum","values":3},{"name":"b","type":"bool"}]}]}"#;

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (form, bytes) = input;
    match form % 3 {
        0 => read(&bytes),
        1 => read(&pack(&bytes)),
        // A real header, so that the lines after it are parsed.
        _ => read(&pack(&[HEADER.as_bytes(), b"\n", &bytes].concat())),
    }
});

fn pack(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 1).expect("memory can be written to")
}

fn read(packed: &[u8]) {
    let Ok(mut reader) = Reader::new(packed) else {
        return;
    };
    let header = reader.header().clone();
    let again = Header::parse(&header.to_line()).expect("what was read can be written");
    assert_eq!(again.to_line(), header.to_line());
    let mut ticks = Vec::new();
    while let Ok(Some(update)) = reader.next_tick() {
        ticks.push(update);
        if ticks.len() > 5000 {
            return;
        }
    }
    // The writer puts the despawns of a tick first.
    let is_apart = |update: &TickUpdate| {
        let changed = update.changes.iter().map(|change| change.id);
        let mut named = update.spawns.iter().map(|spawn| spawn.id).chain(changed);
        !named.any(|id| update.despawns.contains(&id))
    };
    if !ticks.iter().all(is_apart) {
        return;
    }
    let mut writer = Writer::new(Vec::new(), &header).expect("memory can be written to");
    for update in &ticks {
        writer.write(update).expect("memory can be written to");
    }
    let packed = writer.finish().expect("memory can be written to");
    let mut reader = Reader::new(&packed[..]).expect("what was written can be read");
    for update in &ticks {
        let again = reader.next_tick().expect("what was written can be read");
        assert_eq!(again.as_ref(), Some(update));
    }
}
