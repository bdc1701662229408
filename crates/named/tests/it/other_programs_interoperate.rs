//! Interoperation with python-ndn and NDNts, independent implementations of the specification, as
//! applications of our forwarder. `.ci/peers` installs them.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::common::name;
use crate::common::station::{PATIENCE, Station, content, next_interest, put};
use prescient_named::*;
use prescient_tests::{repository::root, skip::skip};
use serde_json::{Value, json};

/// NDN.md's first two: one produces, the other consumes, over TCP, UDP and a Unix socket; each registers
/// its prefix in its own way.
///
/// Fails if an element that either of them needs is missing or wrong (the name of a response to a
/// command, a Nack's reason, `/localhop` over UDP).
#[test]
fn each_reads_what_the_other_says() {
    let Some(peers) = Peers::find() else {
        return;
    };
    let hub = Hub::start("each_reads");
    for (producing, consuming) in [
        (PeerKind::Python, PeerKind::Node),
        (PeerKind::Node, PeerKind::Python),
    ] {
        for (carrier, other) in [("tcp", "udp"), ("udp", "unix"), ("unix", "tcp")] {
            let case = format!("{producing:?}_{consuming:?}_{carrier}").to_lowercase();
            let prefix = format!("/interop/{case}");
            let mut producer = peers.produce(producing, &hub.uri(carrier), &prefix, 1000);
            let mut consumer = peers.consume(consuming, &hub.uri(other));
            let wish = format!("{prefix}/54=%07");
            consumer.say(&json!({"name": wish, "must_be_fresh": true, "lifetime": 4000}));
            let asked = producer.hear();
            assert_eq!(name_in(&asked, "interest"), name(&wish), "{case}");
            assert_eq!(asked["must_be_fresh"], json!(true));
            assert_eq!(asked["can_be_prefix"], json!(false));
            // NDNts subtracts the elapsed time.
            let lifetime = asked["lifetime"].as_u64();
            assert!(lifetime.is_some_and(|lifetime| lifetime <= 4000), "{asked}");
            producer.say(&json!({"name": wish, "content": case}));
            let told = consumer.hear();
            assert_eq!(name_in(&told, "data"), name(&wish));
            assert_eq!(told["content"], json!(case));
            assert_eq!(told["freshness"], json!(1000));
            // Without a route, both decode the Nack.
            consumer.say(&json!({"name": "/nobody", "lifetime": 4000}));
            let refused = consumer.hear();
            assert!(!refused["nack"].is_null(), "{case}: {refused}");
        }
    }
}

/// NDN.md's third: two consumers and one Interest upstream; a hit in the content store with the producer
/// stopped; a miss with MustBeFresh after it expired; longer names.
///
/// Fails if Interests are not aggregated or Data is not cached.
#[test]
fn they_share_interests_and_the_content_store() {
    let Some(peers) = Peers::find() else {
        return;
    };
    let hub = Hub::start("they_share");
    let prefix = "/shared";
    let mut producer = peers.produce(PeerKind::Python, &hub.uri("tcp"), prefix, 200);
    let mut first = peers.consume(PeerKind::Node, &hub.uri("udp"));
    let mut second = peers.consume(PeerKind::Python, &hub.uri("unix"));
    let wish = json!({"name": "/shared/1", "can_be_prefix": true, "must_be_fresh": true,
        "lifetime": 10_000});
    first.say(&wish);
    assert_eq!(name_in(&producer.hear(), "interest"), name("/shared/1"));
    second.say(&wish);
    hub.station
        .until(|daemon| daemon.forwarder().statistics().aggregated == 1);
    producer.say(&json!({"name": "/shared/1/longer", "content": "once"}));
    for consumer in [&mut first, &mut second] {
        let told = consumer.hear();
        assert_eq!(name_in(&told, "data"), name("/shared/1/longer"));
        assert_eq!(told["content"], "once");
    }
    // The producer received one Interest, and is stopped.
    drop(producer);
    hub.station
        .until(|daemon| daemon.forwarder().statistics().routes == 0);
    // Data may arrive while it is fresh, for 200 ms; then a Nack does.
    let mut is_gone = false;
    for _ in 0..20_000 {
        first.say(&wish);
        if !first.hear()["nack"].is_null() {
            is_gone = true;
            break;
        }
    }
    assert!(is_gone);
    // Without MustBeFresh it is still an answer.
    let wish = json!({"name": "/shared/1", "can_be_prefix": true, "lifetime": 4000});
    second.say(&wish);
    assert_eq!(second.hear()["content"], "once");
}

/// Our own application with each of them, as producer and as consumer.
///
/// Fails if they refuse the Interests or Data of `AppFace`.
#[test]
fn our_applications_talk_to_theirs() {
    let Some(peers) = Peers::find() else {
        return;
    };
    let hub = Hub::start("ours_and_theirs");
    for kind in [PeerKind::Python, PeerKind::Node] {
        let mut ours = hub.connect();
        let signer = Signer::digest();
        ours.register(name("/ours"), &signer).expect("allowed");
        let mut theirs = peers.consume(kind, &hub.uri("tcp"));
        let text = format!("/ours/{kind:?}");
        theirs.say(&json!({"name": text, "lifetime": 4000}));
        let asked = next_interest(&mut ours);
        assert_eq!(asked, name(&format!("/ours/{kind:?}")));
        put(&mut ours, &asked, b"from us", Duration::from_millis(7));
        let told = theirs.hear();
        assert_eq!(name_in(&told, "data"), asked);
        assert_eq!(
            (&told["content"], &told["freshness"]),
            (&json!("from us"), &json!(7))
        );
        ours.unregister(name("/ours"), &signer).expect("allowed");

        let prefix = format!("/theirs/{kind:?}");
        let mut theirs = peers.produce(kind, &hub.uri("udp"), &prefix, 1000);
        let wish = format!("{prefix}/1");
        let asking = thread::spawn({
            let wish = name(&wish);
            move || {
                let packet = ours.request(InterestBuilder::new(wish.view()));
                packet.expect("an answer")
            }
        });
        assert_eq!(name_in(&theirs.hear(), "interest"), name(&wish));
        theirs.say(&json!({"name": wish, "content": "from them"}));
        let packet = asking.join().expect("no panic");
        assert_eq!(content(&packet), b"from them");
        let data = Data::decode(&packet).expect("Data");
        data.verify(&Verifier::digest()).expect("whole");
    }
}

/// The name in a line; each program writes it in its own form.
fn name_in(line: &Value, field: &str) -> Name {
    let text = line[field].as_str();
    name(text.unwrap_or_else(|| panic!("no {field} in {line}")))
}

/// A forwarder on all sockets.
struct Hub {
    station: Station,
    tcp: std::net::SocketAddr,
    udp: std::net::SocketAddr,
    unix: PathBuf,
}

impl Hub {
    fn start(test: &str) -> Self {
        let loopback = ([127, 0, 0, 1], 0).into();
        let mut daemon = Daemon::new(ForwarderConfig::default()).expect("a daemon");
        let unix = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.sock"));
        let _ = std::fs::remove_file(&unix);
        daemon.listen_unix(&unix).expect("a free path");
        let tcp = daemon.listen_tcp(loopback).expect("a free port");
        let udp = daemon.listen_udp(loopback).expect("a free port");
        Self {
            station: Station::start(daemon),
            tcp,
            udp,
            unix,
        }
    }

    fn uri(&self, carrier: &str) -> String {
        match carrier {
            "tcp" => format!("tcp://{}", self.tcp),
            "udp" => format!("udp://{}", self.udp),
            _ => format!("unix://{}", self.unix.display()),
        }
    }

    fn connect(&self) -> AppFace {
        AppFace::connect_tcp(self.tcp).expect("it listens")
    }
}

#[derive(Clone, Copy, Debug)]
enum PeerKind {
    Python,
    Node,
}

/// The paths of the other programs.
struct Peers {
    place: PathBuf,
}

impl Peers {
    fn find() -> Option<Self> {
        let place = std::env::var_os("PRESCIENT_PEERS").map(PathBuf::from);
        let place = place.unwrap_or_else(|| root().join("target/peers"));
        let place = std::path::absolute(place).expect("a path");
        let has_node = Command::new("node").arg("--version").output().is_ok();
        let has_python = place.join("python/bin/python").exists();
        if !has_node || !has_python || !place.join("node/node_modules/@ndn/endpoint").exists() {
            skip(
                "no python-ndn and NDNts; .ci/peers installs them (needs python3 with venv, node, npm)",
            );
            return None;
        }
        Some(Self { place })
    }

    fn produce(&self, kind: PeerKind, uri: &str, prefix: &str, freshness: u32) -> Peer {
        let freshness = freshness.to_string();
        let mut peer = self.start(kind, &["produce", uri, prefix, &freshness]);
        assert_eq!(peer.hear(), json!({"registered": true}), "{kind:?} {uri}");
        peer
    }

    fn consume(&self, kind: PeerKind, uri: &str) -> Peer {
        let mut peer = self.start(kind, &["consume", uri]);
        assert_eq!(peer.hear(), json!({"connected": true}), "{kind:?} {uri}");
        peer
    }

    fn start(&self, kind: PeerKind, arguments: &[&str]) -> Peer {
        let scripts = root().join("crates/named/tests/peers");
        let mut command = match kind {
            PeerKind::Python => {
                let mut python = Command::new(self.place.join("python/bin/python"));
                python.arg(scripts.join("peer.py"));
                python
            }
            PeerKind::Node => {
                let mut node = Command::new("node");
                node.arg(scripts.join("peer.mjs"));
                node.env("PRESCIENT_PEERS", &self.place);
                node
            }
        };
        command.args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it is installed");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Peer {
            child,
            input,
            lines,
        }
    }
}

/// A running program.
struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Peer {
    fn say(&mut self, line: &Value) {
        let input = self.input.as_mut().expect("not closed");
        writeln!(input, "{line}").expect("it reads");
        input.flush().expect("it reads");
    }

    fn hear(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("a line in time");
        serde_json::from_str(&line).expect("a line of JSON")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
