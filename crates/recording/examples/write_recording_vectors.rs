//! Writes `vectors/recording/v2`, after an intended change of the file format or the codec only: `cargo
//! run -p prescient-recording --example write_recording_vectors`. No test runs this.

#[path = "../tests/common/session.rs"]
mod session;

fn main() -> std::io::Result<()> {
    let bytes = session::record();
    let folder = session::folder();
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("session.hex"), session::to_hex(&bytes))?;
    std::fs::write(folder.join("session.rows"), session::rows(&bytes))?;
    println!("{}: {} bytes", folder.display(), bytes.len());
    Ok(())
}
