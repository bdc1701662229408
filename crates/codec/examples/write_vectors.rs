//! Writes `vectors/codec/v3`. Only for a change of the wire format that is meant:
//! `cargo run -p prescient-codec --example write_vectors`. No test runs this.

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
