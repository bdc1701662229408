//! A client and a server that were written from the protocol's document alone
//! (`tests/keyframe_peer`), each against ours over TCP on loopback.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use prescient_tests::repository::root;
use prescient_tests::skip::skip;
use prescient_timeline::protocol::tcp::{TcpClient, TcpServer};
use prescient_timeline::protocol::{ClientEvent, FrameError, Server, ServerEvent};
use prescient_timeline::*;
use serde_json::Value;

const BASE: i64 = 1_552_000_000_000;

/// Our server. Fails if offsets are sent without their sign, or the base time in seconds.
#[test]
fn their_client_follows_our_server() {
    let Some(python) = python() else { return };
    let mut server = TcpServer::bind("127.0.0.1:0", Server::new(BASE).unwrap()).unwrap();
    let port = server.address().port().to_string();
    let client = peer(python, "client.py", &port).spawn().expect("it runs");
    let mut client = Killed(client);
    while server
        .poll_event()
        .is_none_or(|event| !matches!(event, ServerEvent::Synced(_)))
    {
        server.wait(Duration::from_millis(100));
        assert!(client.0.try_wait().unwrap().is_none(), "it gave up");
    }
    for change in changes() {
        change.make(server.server()).unwrap();
        server.wait(Duration::ZERO);
    }
    let ours = server.server().timeline().clone();
    drop(server);
    compare(&ours, &last_line(&mut client.0));
}

/// Our client. Fails if a frame that arrives in two reads is lost, or if an unknown frame ends the stream.
#[test]
fn our_client_follows_their_server() {
    let Some(python) = python() else { return };
    let mut server = peer(python, "server.py", &BASE.to_string());
    let mut server = Killed(server.stdin(Stdio::piped()).spawn().expect("it runs"));
    let mut output = BufReader::new(server.0.stdout.take().unwrap());
    let mut port = String::new();
    output.read_line(&mut port).unwrap();
    let port: u16 = port.trim().parse().unwrap();
    let mut script =
        String::from("raw ffffffffffffffffffffffffffff\nraw 4c000000000000000000000000ff\n");
    for change in changes() {
        writeln!(script, "{}", change.line()).unwrap();
    }
    let mut input = server.0.stdin.take().unwrap();
    input.write_all(script.as_bytes()).unwrap();
    drop(input);
    let mut client = TcpClient::connect(("127.0.0.1", port)).unwrap();
    while client.wait(Duration::from_secs(60)) {}
    let mut events = Vec::new();
    while let Some(event) = client.client().poll_event() {
        events.push(event);
    }
    assert_eq!(events[0], ClientEvent::Synced { base_time: BASE });
    assert_eq!(events[1], ClientEvent::Ignored(FrameError::Type(3)));
    let meta = FrameError::Method { kind: 1, method: 3 };
    assert_eq!(events[2], ClientEvent::Ignored(meta));
    assert_eq!(events.len(), 3 + changes().count());
    let mut report = String::new();
    output.read_to_string(&mut report).unwrap();
    compare(
        client.client().timeline(),
        &serde_json::from_str(&report).unwrap(),
    );
}

/// The document's own simulation (appendix 2), and further cases: large numbers, equal times, a move past
/// others, both ends of the range of every field.
fn changes() -> impl Iterator<Item = Change> {
    use Change::*;
    let simulation = [
        Add(7, 35_010, 5),
        Add(2, 10_011, 9),
        Add(7, 20_011, 6),
        Add(2, 21_020, 22),
        Add(7, 25_020, 3),
        Add(7, 30_020, 3),
        Remove(7, 25_020),
        Move(7, 30_020, -15_000),
    ];
    let more = [
        Add(0, 0, 0),
        Add(16_777_215, 67_108_863, u32::MAX),
        Add(16_777_215, 0, 1 << 31),
        Move(0, 0, 67_108_863),
        Move(0, 67_108_863, -67_108_863),
        Add(9, 100, 1),
        Add(9, 200, 2),
        Add(9, 200, 3),
        Add(9, 300, 4),
        Move(9, 100, 150),
        Move(9, 300, -100),
        Move(9, 200, 0),
        Add(11, 50, 1),
        Remove(11, 50),
    ];
    let many =
        (0..300).map(|index| Add(12, (index * 7919 % 1000) as u32, index as u32 * 1_000_003));
    simulation.into_iter().chain(more).chain(many)
}

#[derive(Clone, Copy)]
enum Change {
    Add(u32, u32, u32),
    Remove(u32, u32),
    Move(u32, u32, i32),
}

impl Change {
    fn make(self, server: &mut Server) -> Result<(), protocol::ServerError> {
        let at = |millis: u32| Time::from_millis(BASE + i64::from(millis));
        match self {
            Self::Add(property, time, value) => server.add(PropertyId(property), at(time), value),
            Self::Remove(property, time) => server.remove(PropertyId(property), at(time)),
            Self::Move(property, time, offset) => server.move_one(
                PropertyId(property),
                at(time),
                Span::from_millis(offset.into()),
            ),
        }
    }

    fn line(self) -> String {
        match self {
            Self::Add(property, time, value) => format!("add {property} {time} {value}"),
            Self::Remove(property, time) => format!("remove {property} {time}"),
            Self::Move(property, time, offset) => format!("move {property} {time} {offset}"),
        }
    }
}

/// The same base time, keyframes and look-ups.
fn compare(ours: &Timeline<f64>, theirs: &Value) {
    assert_eq!(theirs["base_time"], BASE);
    let properties = theirs["properties"].as_array().unwrap();
    assert_eq!(properties.len(), ours.curves().count());
    let mut look_ups = 0;
    for ((property, curve), theirs) in ours.curves().zip(properties) {
        assert_eq!(theirs["id"], property.0);
        let keyframes = theirs["keyframes"].as_array().unwrap();
        assert_eq!(keyframes.len(), curve.len());
        for (ours, theirs) in curve.keyframes().zip(keyframes) {
            let micros = ours.time.as_micros() - 1000 * BASE;
            assert_eq!(
                (theirs[0].as_i64(), theirs[1].as_f64()),
                (Some(micros / 1000), Some(ours.value))
            );
        }
        for theirs in theirs["look_ups"].as_array().unwrap() {
            let time = Time::from_millis(BASE + theirs[0].as_i64().unwrap());
            let (ours, theirs) = (curve.at(time).unwrap(), theirs[1].as_f64().unwrap());
            assert!(
                (ours - theirs).abs() < 1e-3,
                "{ours} and {theirs} at {time}"
            );
            look_ups += 1;
        }
    }
    assert!(look_ups > 800, "{look_ups}");
}

fn peer(python: &str, script: &str, argument: &str) -> Command {
    let mut command = Command::new(python);
    command
        .arg(root().join("tests/keyframe_peer").join(script))
        .arg(argument);
    // No compiled modules beside the sources.
    command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdout(Stdio::piped());
    command
}

fn last_line(child: &mut Child) -> Value {
    let mut text = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert!(child.wait().unwrap().success());
    serde_json::from_str(&text).unwrap()
}

fn python() -> Option<&'static str> {
    let works = |python: &&str| {
        let tried = Command::new(python).arg("--version").output();
        tried.is_ok_and(|tried| tried.status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(works);
    if found.is_none() {
        skip("no python3; apt-get install python3");
    }
    found
}

/// Ends the process with the test, also if it fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
