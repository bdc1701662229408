//! Writes `vectors/timeline/packed_v2`, after an intended change of the messages or the codec only: `cargo
//! run -p prescient-timeline --example write_packed_vectors`. No test runs this.

#[path = "../tests/common/packed_messages.rs"]
mod packed_messages;

fn main() -> std::io::Result<()> {
    let path = packed_messages::path();
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let (messages, _) = packed_messages::play();
    std::fs::write(&path, messages)?;
    println!("{}", path.display());
    Ok(())
}
