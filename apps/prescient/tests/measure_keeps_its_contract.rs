//! Programs read the output of `prescient measure`, so its format is a tested contract.

use std::process::{Command, Output};

use serde_json::Value;

fn prescient(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prescient"));
    command
        .args(arguments)
        .output()
        .expect("the binary of this package")
}

fn objects(arguments: &[&str]) -> Vec<Value> {
    let output = prescient(arguments);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("one object per line"))
        .collect()
}

#[test]
fn json_has_every_key_for_every_method() {
    let world = "world:rts?ticks=30&count=20";
    let objects = objects(&[
        "measure",
        world,
        "--rtt-ticks",
        "2",
        "--loss",
        "5",
        "--json",
    ]);
    assert!(objects.len() >= 8);
    for object in &objects {
        for key in [
            "trace",
            "method",
            "ticks",
            "rtt_ticks",
            "loss",
            "bytes_per_tick",
            "encode_us_per_tick",
            "decode_us_per_tick",
            "model_bytes",
            "folded_share",
            "stalest_ticks",
            "verified",
        ] {
            assert!(object.get(key).is_some(), "{key} in {object}");
        }
        for key in ["mean", "p50", "p99", "max"] {
            assert!(
                object["bytes_per_tick"][key]
                    .as_f64()
                    .is_some_and(|bytes| bytes > 0.0)
            );
        }
        assert_eq!(
            (&object["ticks"], &object["verified"]),
            (&30.into(), &true.into())
        );
        let reliable = object.get("reliable_stream_assumed").is_some();
        assert_eq!(
            object["loss"].as_f64(),
            Some(if reliable { 0.0 } else { 5.0 })
        );
    }
}

#[test]
fn a_tick_range_counts_only_its_ticks() {
    let arguments = [
        "measure",
        "world:rts?ticks=30",
        "--methods",
        "raw",
        "--json",
    ];
    let whole = objects(&arguments);
    let part = objects(&[&arguments[..], &["--ticks", "10..25"]].concat());
    assert_eq!(
        (&whole[0]["ticks"], &part[0]["ticks"]),
        (&30.into(), &15.into())
    );
}

/// The ledger's bits are those of the counted packets. Fails if `run` does not subtract the ledger
/// of the ticks before, or if `print_ledger` divides by all ticks.
#[test]
fn a_ledger_counts_only_the_ticks_of_the_range() {
    let arguments = ["measure", "world:rts?ticks=60", "--methods", "prescient"];
    let part = ["--ledger", "--ticks", "40..60"];
    let json = objects(&[&arguments[..], &part, &["--json"]].concat());
    let rows = json[0]["ledger"].as_array().expect("a list");
    let bits: f64 = rows.iter().filter_map(|row| row["bits"].as_f64()).sum();
    let mean = json[0]["bytes_per_tick"]["mean"]
        .as_f64()
        .expect("a number");
    let is_near = |bytes: f64| (bytes - mean).abs() < 2.0;
    assert!(is_near(bits / 8.0 / 20.0), "{bits} bits, {mean} bytes");

    let output = prescient(&[&arguments[..], &part].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    let rows = text.lines().skip_while(|line| !line.contains("bytes/tick"));
    let rows = rows.skip(1).take_while(|line| !line.is_empty());
    let last_word = |line: &str| line.split_whitespace().last()?.parse::<f64>().ok();
    let printed: f64 = rows.filter_map(last_word).sum();
    assert!(is_near(printed), "{printed} bytes of {mean}: {text}");
}

/// What `measure` says about a trace with this text, which it refuses.
fn refusal(name: &str, text: &str, more: &[&str]) -> String {
    let output = measure(name, text, more);
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Measures a trace with this text.
fn measure(name: &str, text: &str, more: &[&str]) -> Output {
    let path = format!("prescient-{name}-{}.zst", std::process::id());
    let path = std::env::temp_dir().join(path);
    // An uncompressed zstd frame: magic, single segment with two-byte size, one raw last block.
    let mut file = vec![0x28, 0xb5, 0x2f, 0xfd, 0x60];
    file.extend((text.len() as u16 - 256).to_le_bytes());
    file.extend(&((text.len() as u32) << 3 | 1).to_le_bytes()[..3]);
    file.extend(text.as_bytes());
    std::fs::write(&path, file).expect("a temporary file");
    let arguments = ["measure", path.to_str().expect("text")];
    let output = prescient(&[&arguments[..], more].concat());
    std::fs::remove_file(&path).expect("it is ours");
    output
}

const RAW: [&str; 2] = ["--methods", "raw"];

/// A trace of one class, with this much in its header.
fn trace(header: &str, scale: &str, body: &str) -> String {
    let source = "a test ".repeat(40);
    format!(
        r#"{{"format":"trace/1","name":"n","source":"{source}"{header},"classes":[{{"name":"cart",
        "fields":[{{"name":"x","type":"int"{scale}}}]}}]}}"#
    )
    .replace('\n', " ")
        + "\n"
        + body
}

#[test]
fn a_broken_trace_is_refused_with_its_line() {
    let message = refusal("line", &trace("", "", "T 1\n+ 5 car 1\n"), &RAW);
    assert!(
        message.contains("line 3: unknown class \"car\""),
        "{message}"
    );
}

/// Fails if `run` returns a measurement of no tick, or if `Header::schema` accepts any number.
#[test]
fn a_trace_that_says_nothing_is_refused() {
    let body = "T 1\n+ 5 cart 1\nT 2\n= 5 0:2\n";
    let none = refusal("header-only", &trace("", "", ""), &RAW);
    assert!(none.contains("none of the source's 0 ticks"), "{none}");
    let beyond = refusal(
        "beyond",
        &trace("", "", body),
        &["--methods", "raw", "--ticks", "2..5"],
    );
    assert!(beyond.contains("none of the source's 2 ticks"), "{beyond}");
    for tick_hz in ["0", "-30", "0.0"] {
        let header = format!(",\"tick_hz\":{tick_hz}");
        let message = refusal("rate", &trace(&header, "", body), &RAW);
        assert!(message.contains("line 1: `tick_hz` is"), "{message}");
    }
    let message = refusal("scale", &trace("", ",\"scale\":0", body), &RAW);
    assert!(message.contains("\"cart\".\"x\" is 0"), "{message}");
}

/// Unix milliseconds as ticks, the first beyond 2^40. Fails if `OurSender` truncates ticks.
#[test]
fn a_trace_may_begin_at_any_tick() {
    let ticks: String = (0..40)
        .map(|tick| format!("T {}\n= 5 0:{tick}\n", 1_700_000_000_001u64 + tick))
        .collect();
    let late = trace("", "", &format!("T 1700000000000\n+ 5 cart 1\n{ticks}"));
    let output = measure("late", &late, &["--methods", "prescient", "--json"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("\"verified\":true"), "{text}");
}

#[test]
fn unknown_methods_and_worlds_are_refused_by_name() {
    for arguments in [
        ["measure", "world:rts", "--methods", "magic"],
        ["measure", "world:mars", "--methods", "raw"],
    ] {
        let output = prescient(&arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(
            message.contains("magic") || message.contains("mars"),
            "{message}"
        );
    }
}

#[test]
fn a_trained_prior_is_named_by_its_hash() {
    let file = std::env::temp_dir().join(format!("prescient-contract-{}", std::process::id()));
    let path = file.to_str().expect("a plain path");
    let worlds = ["world:rts?seed=2&ticks=40", "world:particles?ticks=10"];
    let trained = prescient(&["train", worlds[0], worlds[1], "-o", path]);
    let output = String::from_utf8(trained.stdout).expect("text");
    assert!(trained.status.success() && worlds.iter().all(|world| output.contains(world)));
    let hash = output.trim_end().rsplit(' ').next().expect("a word");
    let measure = |further: &[&str]| {
        let common = [
            "measure",
            "world:rts?ticks=20",
            "--json",
            "--methods",
            "raw,prescient",
        ];
        objects(&[&common, further].concat())
    };
    let with = measure(&["--prior", path]);
    let without = measure(&[]);
    assert_eq!(with[1]["prior"], hash);
    assert!(with[0].get("prior").is_none() && without[1].get("prior").is_none());
    let mean = |object: &Value| object["bytes_per_tick"]["mean"].as_f64().expect("a number");
    assert!(mean(&with[1]) < mean(&without[1]));

    let refused = |arguments: &[&str]| {
        let output = prescient(arguments);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).expect("text")
    };
    let best = ["measure", worlds[0], "--prior", path, "--profile", "best"];
    assert!(refused(&best).contains("trained for profile default"));
    let bytes = std::fs::read(&file).expect("it was just written");
    std::fs::write(&file, &bytes[..bytes.len() / 2]).expect("it can be written");
    assert!(refused(&["measure", worlds[0], "--prior", path]).contains("damaged"));
    std::fs::remove_file(&file).expect("it is there");
    assert!(refused(&["measure", worlds[0], "--prior", path]).contains("cannot read"));
}
