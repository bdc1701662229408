//! Writes the golden datagrams of this version of the transport. Run it only after a deliberate
//! change of the format, never to make a test pass.

#[path = "../tests/common/mod.rs"]
mod common;

use std::fmt::Write;
use std::fs;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let mut text = String::new();
    common::transcript::play(&mut |name, bytes| {
        write!(text, "{name} ").expect("writing to a string");
        for byte in &bytes {
            write!(text, "{byte:02x}").expect("writing to a string");
        }
        text.push('\n');
        bytes
    });
    let version = prescient_transport::VERSION;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/transport");
    let folder = folder.join(format!("v{version}"));
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("connection.txt"), text)
}
