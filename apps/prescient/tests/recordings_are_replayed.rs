//! `record`, `replay` and `advise` as processes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// A folder that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("prescient-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for temporary files");
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn prescient(arguments: &[&str]) -> (bool, String, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_prescient"))
        .args(arguments)
        .output()
        .expect("the binary of this package");
    let [output, errors] = [done.stdout, done.stderr].map(|text| String::from_utf8(text).unwrap());
    (done.status.success(), output, errors)
}

fn run(arguments: &[&str]) -> String {
    let (success, output, errors) = prescient(arguments);
    assert!(success, "{arguments:?}: {errors}");
    output
}

fn json(arguments: &[&str]) -> Value {
    let output = run(arguments);
    serde_json::from_str(output.lines().last().expect("a line")).expect("an object")
}

const WORLD: &str = "world:rts?seed=4&ticks=200&count=40";

/// A trace becomes a recording, an MCAP file and a trace again, with the same values at every tick. Fails if
/// a CDR field is not aligned, or if `PlayedSource` misses an entity that is gone.
#[test]
fn every_format_has_the_same_values() {
    let folder = Folder::new("formats");
    let [recording, mcap, trace, csv] =
        ["a.prec", "a.mcap", "a.trace.zst", "a.csv"].map(|name| folder.file(name));
    let written = json(&["record", WORLD, "-o", &recording, "--json"]);
    assert_eq!(written["ticks"], 200);
    assert_eq!(written["bytes"], fs::metadata(&recording).unwrap().len());
    run(&["replay", &recording, "-o", &mcap]);
    run(&["replay", &mcap, "-o", &trace]);
    run(&["replay", WORLD, "-o", &csv]);
    let lines = |path: &str| {
        let text = fs::read_to_string(path).unwrap();
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        lines.sort();
        lines
    };
    let expected = lines(&csv);
    assert!(expected.len() > 1000);
    for source in [&recording, &mcap, &trace] {
        run(&["replay", source, "-o", &csv]);
        assert!(lines(&csv) == expected, "{source} has other values");
    }
    let again = folder.file("b.prec");
    let rewritten = json(&["record", &mcap, "-o", &again, "--json"]);
    assert_eq!(rewritten["ticks"], 200);
}

/// Fails if `--at` counts from the tick 0 instead of the first, or damage is not printed.
#[test]
fn recordings_are_shown_measured_and_checked() {
    let folder = Folder::new("shown");
    let recording = folder.file("a.prec");
    run(&["record", WORLD, "-o", &recording]);
    let info = json(&["replay", &recording, "--info", "--json"]);
    assert_eq!(
        (&info["ticks"], &info["finished"]),
        (&200.into(), &true.into())
    );
    let first = json(&["replay", &recording, "--at", "0", "--json"]);
    assert_eq!(first["tick"], info["tick_range"][0]);
    let later = json(&["replay", &recording, "--tick", "150", "--json"]);
    assert_eq!(later["tick"], 150);
    assert!(later["entities"].as_array().unwrap().len() >= 40);
    let text = run(&["replay", &recording, "--tick", "150"]);
    assert!(text.starts_with("tick 150, "), "{text}");
    let seeks = json(&["replay", &recording, "--seeks", "5", "--json"]);
    assert_eq!(seeks["seeks"], 5);
    let same = json(&["replay", &recording, &recording, "--tick", "9", "--json"]);
    assert_eq!(same["differences"], 0);

    let bytes = fs::read(&recording).unwrap();
    fs::write(&recording, &bytes[..bytes.len() / 2]).unwrap();
    let (success, output, errors) = prescient(&["replay", &recording, "--info", "--json"]);
    assert!(success && errors.contains("is cut off at byte"), "{errors}");
    let info: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(info["finished"], false);
    assert!(info["ticks"].as_u64().unwrap() > 20);
    fs::write(&recording, b"nothing of the kind").unwrap();
    let (success, _, errors) = prescient(&["replay", &recording, "--info"]);
    assert!(!success && errors.contains("is no recording"), "{errors}");
    let (success, _, errors) = prescient(&["replay", WORLD, "-o", "a.pdf"]);
    assert!(!success && errors.contains("must end with"), "{errors}");
}

/// A server process, ended with its test.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A live session from both sides, overlaid. Fails if `record` records no tick, or the page lacks a layer.
#[test]
fn a_server_and_a_client_are_overlaid() {
    let folder = Folder::new("live");
    let [server_file, client_file, page] =
        ["server.prec", "client.prec", "page.html"].map(|name| folder.file(name));
    let mut command = Command::new(env!("CARGO_BIN_EXE_prescient"));
    command.args([
        "serve",
        "--address",
        "127.0.0.1:0",
        "--json",
        "--seconds",
        "4",
        "--entities",
        "30",
    ]);
    command
        .args(["--record", &server_file])
        .stdout(Stdio::piped());
    let mut serving = Serving(command.spawn().expect("the binary of this package"));
    let mut lines = BufReader::new(serving.0.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let address = first["address"].as_str().unwrap();
    let client = json(&[
        "record",
        address,
        "-o",
        &client_file,
        "--seconds",
        "2",
        "--json",
    ]);
    assert!(client["ticks"].as_u64().unwrap() > 20, "{client}");
    assert!(serving.0.wait().unwrap().success());
    drop(lines);
    let info = json(&["replay", &server_file, "--info", "--json"]);
    assert_eq!(info["finished"], true);
    run(&[
        "replay",
        &server_file,
        &client_file,
        "--key",
        "number",
        "-o",
        &page,
    ]);
    let text = fs::read_to_string(&page).unwrap();
    let begin = text.find("const data = ").unwrap() + "const data = ".len();
    let end = begin + text[begin..].find(";\nconst layers").unwrap();
    let data: Value = serde_json::from_str(&text[begin..end].replace("<\\/", "</")).unwrap();
    let positions = |layer: &str| -> std::collections::BTreeMap<(u64, i64), String> {
        let mut now = std::collections::BTreeMap::new();
        let mut all = std::collections::BTreeMap::new();
        for frame in data[layer]["frames"].as_array().unwrap() {
            for moved in frame[1].as_array().unwrap() {
                now.insert(
                    moved[0].as_i64().unwrap(),
                    format!("{} {}", moved[1], moved[2]),
                );
            }
            let tick = frame[0].as_u64().unwrap();
            all.extend(now.iter().map(|(&key, at)| ((tick, key), at.clone())));
        }
        all
    };
    let (server, client) = (positions("first"), positions("second"));
    let common: Vec<_> = client
        .iter()
        .filter(|(place, _)| server.contains_key(place))
        .collect();
    assert!(common.len() > 300, "{} positions in common", common.len());
    // Loopback loses nothing, and packets have room for everything: the client showed the truth.
    assert!(common.iter().all(|(place, at)| server[place] == **at));
    assert!(Path::new(&page).exists());
}

/// Fails if `advise` never prefers keyframes, or names a predictor for no field.
#[test]
fn advice_is_measured() {
    let output = run(&["advise", WORLD, "--error", "2,50", "--json"]);
    let rows: Vec<Value> = output
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(rows.len() >= 4);
    for row in &rows {
        assert!(row["max_error"].as_f64() <= row["error"].as_f64(), "{row}");
        assert!(row["now_bytes"].as_f64() > Some(0.0), "{row}");
        assert!(
            row["expected_bytes"].as_f64() <= row["snapshot_bytes"].as_f64(),
            "{row}"
        );
    }
    let table = run(&["advise", WORLD, "--fields", "2", "--error", "2"]);
    assert!(
        table.contains("break-even") && table.contains("0.514"),
        "{table}"
    );
    let (success, _, errors) = prescient(&["advise", WORLD, "--error", "0"]);
    assert!(!success && errors.contains("not above zero"), "{errors}");
}
