//! `prescient named forwarder` as processes with routing between them, and its options.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use prescient::named::{
    AppFace, Data, DataBuilder, Interest, InterestBuilder, LinkPacket, Name, Signer,
};
use serde_json::Value;

/// Five processes in a ring; the one on the shorter path is killed.
///
/// Fails if `--neighbour` is not connected, if the other end does not accept it, or if routes do not change
/// when a process dies.
#[test]
fn processes_reroute_when_one_is_killed() {
    let key = key_file("square");
    let start =
        |router: &str, neighbours: &[&Forwarder]| Forwarder::start(&key, router, neighbours);
    let far = start("/router/far", &[]);
    let quick = start("/router/quick", &[&far]);
    // The path over these two has one hop more.
    let slow = start("/router/slow", &[&far]);
    let slower = start("/router/slower", &[&slow]);
    let near = start("/router/near", &[&quick, &slower]);

    let mut producer = AppFace::connect_tcp(far.tcp).expect("it listens");
    let prefix: Name = "/game/anna".parse().expect("a name");
    let registered = producer.register(prefix.clone(), &Signer::digest());
    registered.expect("it is allowed");
    thread::spawn(move || answer(producer));
    let mut consumer = AppFace::connect_tcp(near.tcp).expect("it listens");
    ask_until_answered(&mut consumer, &prefix, 0);
    drop(quick);
    ask_until_answered(&mut consumer, &prefix, 1000);
}

/// Fails if an invalid option is ignored.
#[test]
fn nonsense_is_refused_by_name() {
    let key = key_file("nonsense");
    let short = key.with_extension("short");
    std::fs::write(&short, b"too short").expect("there is room");
    let [key, short] = [&key, &short].map(|path| path.to_str().expect("a path of ASCII"));
    for (arguments, complaint) in [
        (&["--route", "/game"][..], "is not a route"),
        (&["--route", "game=udp:127.0.0.1:1"], "not a name"),
        (&["--route", "/game=pigeon:127.0.0.1:1"], "is not a route"),
        (&["--multicast", "game"], "not a name"),
        (&["--router", "/"], "--routing-key"),
        (
            &["--router", "/", "--routing-key", key],
            "cannot be a router",
        ),
        (&["--router", "/r", "--routing-key", "nowhere"], "nowhere"),
        (
            &["--router", "/r", "--routing-key", short],
            "shorter than 16",
        ),
        (
            &["--router", "/r", "--routing-key", key, "--neighbour", "udp"],
            "is not a neighbour",
        ),
        (&["--tcp", "192.0.2.1:1"], "192.0.2.1:1"),
    ] {
        let any = ["--udp", "127.0.0.1:0", "--seconds", "1"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_prescient"));
        command.args(["named", "forwarder"]).args(any);
        if !arguments.contains(&"--tcp") {
            command.args(["--tcp", "127.0.0.1:0"]);
        }
        let done = command.args(arguments).output().expect("it runs");
        assert!(!done.status.success(), "{arguments:?}");
        let output = String::from_utf8_lossy(&done.stderr);
        assert!(output.contains(complaint), "{arguments:?}: {output}");
    }
}

struct Forwarder {
    child: Child,
    udp: SocketAddr,
    tcp: SocketAddr,
}

impl Forwarder {
    fn start(key: &Path, router: &str, neighbours: &[&Self]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_prescient"));
        command.args(["named", "forwarder", "--json", "--seconds", "120"]);
        command.args(["--udp", "127.0.0.1:0", "--tcp", "127.0.0.1:0"]);
        command.args(["--router", router, "--routing-key"]).arg(key);
        for (number, neighbour) in neighbours.iter().enumerate() {
            // Both carriers.
            let address = match number {
                0 => format!("udp:{}", neighbour.udp),
                _ => format!("tcp:{}", neighbour.tcp),
            };
            command.args(["--neighbour", &address]);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it runs");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let first = lines.next().expect("a line").expect("a text");
        // Keeps the pipe from filling up, which would block the process.
        thread::spawn(move || lines.for_each(drop));
        let first: Value = serde_json::from_str(&first).expect("JSON");
        let address = |index: usize, carrier: &str| {
            let text = first["listens"][index].as_str().expect("an address");
            let text = text.strip_prefix(carrier).expect("in this order");
            text.parse().expect("an address")
        };
        Self {
            udp: address(0, "udp:"),
            tcp: address(1, "tcp:"),
            child,
        }
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn key_file(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.routing.key"));
    std::fs::write(&path, b"a key that all routers share").expect("there is room");
    path
}

fn answer(mut face: AppFace) {
    while let Ok(Some(packet)) = face.receive(Duration::from_secs(120)) {
        let came = LinkPacket::decode(&packet).expect("a packet");
        let Ok(interest) = Interest::decode(came.packet) else {
            continue;
        };
        let mut data = Vec::new();
        DataBuilder::new(interest.name())
            .content(b"here")
            .sign(&Signer::digest(), &mut data)
            .expect("it fits");
        if face.send(&data).is_err() {
            return;
        }
    }
}

/// Requests new names until routes are there and one is answered: for about a minute at most.
fn ask_until_answered(face: &mut AppFace, prefix: &Name, from: u64) {
    for number in from..from + 120 {
        let wish: Name = format!("{prefix}/{number}").parse().expect("a name");
        let interest = InterestBuilder::new(wish.view()).lifetime(Duration::from_millis(250));
        if let Ok(packet) = face.request(interest) {
            let data = Data::decode(&packet).expect("Data");
            assert_eq!((data.name(), data.content()), (wish.view(), &b"here"[..]));
            return;
        }
        // After an immediate Nack this waits before the next request.
        let _ = face.receive(Duration::from_millis(250));
    }
    panic!("no answer");
}

/// The last line of `prescient named` with these arguments.
fn summary(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_prescient"))
        .arg("named")
        .args(arguments)
        .arg("--json")
        .output()
        .expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    let text = String::from_utf8(output.stdout).expect("text");
    let last = text.lines().last().expect("a line");
    serde_json::from_str(last).expect("JSON")
}

/// Fails if a key of the summary is renamed or added, if two players do not find each other, or if a seed does not repeat.
#[test]
fn a_topology_is_run_and_summed_up() {
    let run = |arguments: &[&str]| {
        summary(&[&["topology", "linear", "--seconds", "2"][..], arguments].concat())
    };
    let ndn = run(&[]);
    let agreed = [
        "topology",
        "players",
        "backend",
        "iaf",
        "cache_hit_rate",
        "interests_per_second_per_producer",
        "bytes_per_second_per_player",
        "skipped_share",
        "position_delta_p50",
        "position_delta_p99",
        "rtt_p50_ms",
    ];
    let entries = ndn.as_object().expect("an object");
    assert!(entries.keys().eq(agreed), "{ndn}");
    assert!(entries.values().all(|value| !value.is_null()), "{ndn}");
    // An Interest that is under way when counting begins is counted at its producer only.
    let iaf = ndn["iaf"].as_f64().expect("a number");
    assert!((iaf - 1.0).abs() < 0.02, "{iaf}");
    assert_eq!(ndn, run(&[]), "the same seed");
    let ip = run(&["--backend", "ip"]);
    assert_eq!(ip["backend"], "ip");
    assert!(ip["position_delta_p99"].as_f64() < Some(1.0), "{ip}");
}

/// Fails if spectators do not get what the server publishes, or if the server sends more than once per tick.
#[test]
fn spectators_cost_a_server_as_much_as_a_few_clients() {
    let few = [
        "spectators",
        "--spectators",
        "40",
        "--fan-out",
        "4",
        "--seconds",
        "2",
    ];
    let few = summary(&few);
    assert_eq!(few["spectators_in_step"], 40, "{few}");
    assert!(few["egress_in_clients"].as_f64() <= Some(4.0), "{few}");
}
