//! Writes `vectors/codec/v4`, after an intended change of the wire format only: `cargo run -p
//! prescient-codec --example write_codec_vectors`. No test runs this.

#[path = "../tests/common/scenarios.rs"]
mod scenarios;

fn main() -> std::io::Result<()> {
    for scenario in scenarios::SCENARIOS {
        let path = scenario.path();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, scenario.play())?;
        println!("{}", path.display());
    }
    Ok(())
}
