//! `prescient scenario squeeze` and `links`, on a small scale.

use std::process::Command;

use serde_json::Value;

fn lines(arguments: &[&str]) -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_prescient"))
        .arg("scenario")
        .args(arguments)
        .arg("--json")
        .output()
        .expect("the binary of this package");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    (text.lines())
        .map(|line| serde_json::from_str(line).expect("an object"))
        .collect()
}

fn number(object: &Value, key: &str) -> f64 {
    object[key].as_f64().unwrap_or(f64::NAN)
}

/// What programs that read the output rely on, in this order.
const KEYS: [&str; 11] = [
    "adaptive",
    "controller",
    "limit_share",
    "link",
    "error_mean",
    "error_mean_by_priority",
    "reaction_ms",
    "recovery_ms",
    "queue_delay_p95_ms",
    "utilisation",
    "bytes_per_second",
];

/// Fails if the plan is never adjusted (`Loop::adjust` returning `None`), if the selection ignores
/// priorities, or if congestion control does not react to the queue.
#[test]
fn a_bottleneck_costs_an_adapted_client_little() {
    let page = std::env::temp_dir().join(format!("squeeze-{}.html", std::process::id()));
    let page_text = page.to_string_lossy().into_owned();
    let runs = lines(&["squeeze", "--html", &page_text]);
    let [without, with] = &runs[..] else {
        panic!("not two runs: {runs:?}");
    };
    assert!(
        (2.0..=3.5).contains(&number(without, "error_mean")),
        "{without}"
    );
    assert!(number(with, "error_mean") <= 0.3, "{with}");
    assert!(
        with["error_mean_by_priority"][0].as_f64() <= Some(0.06),
        "{with}"
    );
    assert!(number(with, "reaction_ms") <= 500.0, "{with}");
    assert!(number(with, "recovery_ms") <= 1500.0, "{with}");
    assert!(number(with, "queue_delay_p95_ms") <= 50.0, "{with}");
    for run in &runs {
        let keys: Vec<&str> = run
            .as_object()
            .expect("one")
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(keys, KEYS);
    }
    let html = std::fs::read_to_string(&page).expect("it was written");
    let _ = std::fs::remove_file(&page);
    assert!(html.contains("</html>") && !html.contains("http"));
}

/// Fails if random loss is taken for congestion.
#[test]
fn random_loss_without_a_limit_degrades_nothing() {
    let runs = lines(&["squeeze", "--limit", "1", "--loss", "5"]);
    let with = runs.last().expect("two runs");
    assert!(number(with, "utilisation") >= 0.8, "{with}");
}

/// A policy of that name does not exist. Fails if it is replaced by another.
#[test]
fn unknown_controllers_are_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_prescient"))
        .args(["scenario", "links", "--controllers", "wishful"])
        .output()
        .expect("the binary of this package");
    assert!(!output.status.success());
}
