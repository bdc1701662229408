//! `prescient swarm` on a small scale: two processes, real sockets, a link that loses packets.

use std::process::Command;

use serde_json::Value;

/// Fails if the server's world differs from what clients compute (`walker` of a later tick in
/// `SwarmServer::step`), or if `Peer::push` drops an event.
#[test]
fn nobody_sees_what_was_never_true_and_everybody_hears_everything() {
    let report = swarm(&["--clients", "3", "--loss", "5", "--latency", "10"]);
    let keys: Vec<_> = report.as_object().expect("an object").keys().collect();
    let promised = [
        "clients",
        "entities",
        "hz",
        "seconds",
        "server_cpu_us_per_client_tick",
        "bytes_per_client_tick",
        "bytes_received_per_client_tick",
        "state_bytes_per_client_tick",
        "tick_p99_ms",
        "packets_per_second",
        "packets_sent_per_client_tick",
        "packets_received_per_client_tick",
        "desyncs",
        "disconnects",
        "events_sent",
        "events_delivered",
        "rss_mb",
        "heap_mb",
        "rss_growth_percent",
        "heap_growth_percent",
        "visible_growth_percent",
        "model_growth_percent",
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

/// Clients that join later see the correct state as well, and those that remain receive all events.
/// Fails if `Seen::add` counts the events of clients that leave and are replaced, too.
#[test]
fn some_come_and_go_while_others_stay() {
    let report = swarm(&["--clients", "6", "--churn", "8"]);
    assert_eq!(
        (&report["desyncs"], &report["disconnects"]),
        (&0.into(), &0.into())
    );
    assert_eq!(report["events_sent"], report["events_delivered"]);
    assert!(report["events_sent"].as_u64() > Some(20), "{report}");
}

/// Runs a small swarm, and returns its last line.
fn swarm(options: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_prescient"))
        .args(["swarm", "--entities", "60", "--visible", "20"])
        .args(["--seconds", "2", "--json"])
        .args(options)
        .output()
        .expect("the binary of this package");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let line = text.lines().last().expect("a line");
    serde_json::from_str(line).expect("an object")
}
