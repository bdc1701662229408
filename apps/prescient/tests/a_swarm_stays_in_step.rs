//! `prescient swarm` on a small scale: two processes, real sockets, a link that loses packets.

use std::process::Command;

use serde_json::Value;

/// Fails if the server shows another world than clients expect (`walker` of a later tick in
/// `Stage::step`), or if `Peer::push` drops an event.
#[test]
fn nobody_sees_what_was_never_true_and_everybody_hears_everything() {
    let output = Command::new(env!("CARGO_BIN_EXE_prescient"))
        .args(["swarm", "--clients", "3", "--entities", "60", "--visible"])
        .args(["20", "--seconds", "2", "--loss", "5", "--latency", "10"])
        .arg("--json")
        .output()
        .expect("the binary of this package");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let line = text.lines().last().expect("a line");
    let report: Value = serde_json::from_str(line).expect("an object");
    let keys: Vec<_> = report.as_object().expect("an object").keys().collect();
    let promised = [
        "clients",
        "entities",
        "hz",
        "seconds",
        "server_cpu_us_per_client_tick",
        "bytes_per_client_tick",
        "tick_p99_ms",
        "packets_per_second",
        "desyncs",
        "disconnects",
        "events_sent",
        "events_delivered",
        "rss_mb",
    ];
    assert_eq!(keys, promised);
    assert_eq!(
        (&report["desyncs"], &report["disconnects"]),
        (&0.into(), &0.into())
    );
    assert_eq!(report["events_sent"], report["events_delivered"]);
    assert!(report["events_sent"].as_u64() > Some(20), "{report}");
    assert!(
        report["bytes_per_client_tick"].as_f64() > Some(10.0),
        "{report}"
    );
}
