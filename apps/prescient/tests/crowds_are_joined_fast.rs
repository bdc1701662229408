//! `prescient scenario crowd` on a small scale.

use std::process::Command;

use serde_json::Value;

/// Fails if a tick takes a single packet (`Encoder::encode_more` returns nothing): joining then takes
/// twice as long, and a moving entity waits for its turn.
#[test]
fn a_crowd_is_joined_and_stays_current() {
    let output = Command::new(env!("CARGO_BIN_EXE_prescient"))
        .args(["scenario", "crowd", "--entities", "4000"])
        .args(["--kilobits", "1000", "--json"])
        .output()
        .expect("the binary of this package");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let lines: Vec<Value> = (text.lines())
        .map(|line| serde_json::from_str(line).expect("an object"))
        .collect();
    let [join, moving] = &lines[..] else {
        panic!("not two lines: {text}");
    };
    assert!(join["ratio"].as_f64() < Some(2.5), "{join}");
    assert!(moving["bytes_per_tick"].as_u64() > Some(2000), "{moving}");
    assert!(moving["stalest_ticks"].as_u64() <= Some(2), "{moving}");
}
