//! `prescient demo` as a process: its output, and its HTTP server.

mod common;

use std::collections::BTreeMap;
use std::io::BufRead;
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use serde_json::Value;

use common::{Demo, answer, ask};

/// Fails if clients show another state than the server's (another tick in `DemoServer::tick`'s
/// `Truth::push`), or if nothing is compared (`Bot::update` without `judge`).
#[test]
fn every_client_shows_what_is_true() {
    let output = Command::new(env!("CARGO_BIN_EXE_prescient"))
        .args(["demo", "--headless", "--seconds", "2", "--json"])
        .args(["--port", "0"])
        .output()
        .expect("the binary of this package");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).expect("text");
    let line = text.lines().last().expect("a line");
    let report: Value = serde_json::from_str(line).expect("an object");
    let keys: Vec<_> = report.as_object().expect("an object").keys().collect();
    let promised = [
        "clients",
        "ticks",
        "desyncs",
        "bytes_per_client_second",
        "page",
    ];
    assert_eq!(keys[..5], promised);
    assert_eq!(
        (&report["clients"], &report["desyncs"]),
        (&12.into(), &0.into())
    );
    for key in ["ticks", "values_compared", "bytes_per_client_second"] {
        assert!(report[key].as_f64() > Some(0.0), "{key} in {report}");
    }
    let page = report["page"].as_str().expect("an address");
    assert!(page.starts_with("http://127.0.0.1:"), "{page}");
}

/// Reads frames until in some of them all creatures could be compared with the server's state at
/// the tick they are shown as of, which was in an earlier frame. Fails if a frame has another
/// client's view (`notes.views[11]`), if the server's state does not change, or if the stream
/// continues after Ctrl-C.
#[cfg(unix)]
#[test]
fn frames_move_and_agree_until_the_end_is_said() {
    let demo = Demo::start(0);
    let request = format!("GET /frames?client=1 HTTP/1.1\r\nHost: {}", demo.host);
    let mut lines = ask(&demo.host, &request, "")
        .expect("the page is served")
        .lines()
        .map(|line| line.expect("text"));
    let mut event = || loop {
        let line = lines.next()?;
        if let Some(name) = line.strip_prefix("event: ") {
            let data = lines.next()?;
            let data: Value = serde_json::from_str(data.strip_prefix("data: ")?).ok()?;
            return Some((name.to_owned(), data));
        }
    };
    let (name, hello) = event().expect("a greeting");
    assert_eq!((name.as_str(), &hello["client"]), ("hello", &1.into()));
    let clients = hello["clients"].as_array().expect("a list");
    assert_eq!((clients.len(), &clients[1]["name"]), (12, &"Fibre".into()));

    let rows = |value: &Value| value.as_array().expect("rows").clone();
    let mut truth = BTreeMap::new();
    let (mut agreed, mut moved) = (0, 0);
    while agreed < 20 {
        let (name, frame) = event().expect("a frame");
        assert_eq!(name, "frame");
        let tick = frame["tick"].as_u64().expect("a tick");
        let now = rows(&frame["truth"]);
        let all = now.len();
        if let Some((_, last)) = truth.last_key_value() {
            moved += u32::from(*last != now);
        }
        truth.insert(tick, now);
        let Some(shown) = frame["shown"].as_u64() else {
            continue;
        };
        assert_eq!(
            frame["clients"][1]["lag"],
            tick - shown,
            "another client's view"
        );
        let mut compared = 0;
        for (row, age) in rows(&frame["view"]).iter().zip(rows(&frame["ages"])) {
            let then = truth.get(&(shown - age.as_u64().expect("a number")));
            if let Some(then) = then {
                let number = row[6].as_u64().expect("a number");
                assert_eq!(then[number as usize], *row);
                compared += 1;
            }
        }
        agreed += u32::from(compared == all);
    }
    assert!(moved >= 20, "{moved} frames with changes");

    let (status, report) = demo.interrupt();
    assert!(status.success(), "{status}");
    assert_eq!(report["desyncs"], 0);
    let last = std::iter::from_fn(event).last();
    assert_eq!(last.expect("more events").0, "bye");
}

/// Fails if `Request::read` does not check the host, the path, or the length.
#[test]
fn only_the_page_is_served_and_only_to_this_machine() {
    let demo = Demo::start(0);
    let host = &demo.host;
    let get = |path: &str, host: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}");
        answer(&demo.host, &request, "").expect("an answer")
    };
    let (head, page) = get("/", host);
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(
        head.contains("Content-Security-Policy: default-src 'self'"),
        "{head}"
    );
    assert!(page.contains("<h1>") && !page.contains("//cdn"), "{page}");
    // All files that the page needs are served.
    let needed = page.split('"').filter(|part| part.starts_with('/'));
    for path in needed {
        let (head, file) = get(path, host);
        assert!(
            head.starts_with("HTTP/1.1 200 ") && !file.is_empty(),
            "{path}: {head}"
        );
    }
    for (path, host, status) in [
        ("/", "evil.example", "421"),
        ("/frames", "evil.example:7777", "421"),
        ("/etc/passwd", host.as_str(), "404"),
        ("/../Cargo.toml", host.as_str(), "404"),
    ] {
        let (head, _) = get(path, host);
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status} ")),
            "{path}: {head}"
        );
    }
    let post = format!("POST / HTTP/1.1\r\nHost: {host}");
    let (head, _) = answer(host, &post, "").expect("an answer");
    assert!(head.starts_with("HTTP/1.1 405 "), "{head}");
    let long = format!(
        "GET / HTTP/1.1\r\nHost: {host}\r\nX: {}",
        "x".repeat(20_000)
    );
    let (head, _) = answer(host, &long, "").expect("an answer");
    assert!(head.starts_with("HTTP/1.1 431 "), "{head}");
}

/// Fails if `Page::open` fails when the first port is taken.
#[test]
fn a_port_that_is_taken_is_no_obstacle() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("it is bound").port();
    let demo = Demo::start(port);
    assert_ne!(demo.host, format!("127.0.0.1:{port}"));
    let (head, _) = answer(&demo.host, "GET / HTTP/1.1\r\nHost: localhost", "").expect("an answer");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
}

/// A process opens more connections than the limit and sends nothing: other browsers still get the
/// page.
///
/// Fails if a connection beyond the limit is closed without a response (`enter` without
/// `send_one_away`).
#[test]
fn idle_connections_lock_nobody_out() {
    let demo = Demo::start(0);
    let idle: Vec<_> = (0..200)
        .map(|_| TcpStream::connect(&demo.host).expect("the page is served"))
        .collect();
    let request = format!("GET / HTTP/1.1\r\nHost: {}", demo.host);
    for _ in 0..10 {
        let (head, page) = answer(&demo.host, &request, "").expect("an answer");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(page.contains("<h1>"), "{page}");
    }
    // Browsers that receive frames are not replaced by idle connections.
    let frames = format!("GET /frames HTTP/1.1\r\nHost: {}", demo.host);
    let mut watching = ask(&demo.host, &frames, "").expect("the page is served");
    let mut line = String::new();
    while line != "event: frame\n" {
        line.clear();
        assert_ne!(watching.read_line(&mut line).expect("text"), 0);
    }
    let more: Vec<_> = (0..200)
        .map(|_| TcpStream::connect(&demo.host).expect("the page is served"))
        .collect();
    answer(&demo.host, &request, "").expect("an answer");
    for _ in 0..20 {
        line.clear();
        assert_ne!(
            watching.read_line(&mut line).expect("text"),
            0,
            "the connection was closed"
        );
    }
    drop((idle, more));
}
