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
use prescient_net::Clock;
use prescient_tests::{repository::root, skip::skip};
use serde_json::{Value, json};

/// NDN.md's first two: one produces, the other consumes, over TCP, UDP and a Unix socket; each registers
/// its prefix in its own way.
///
/// Fails if an element that either of them needs is missing or wrong (the name of a response to a
/// command, a Nack's reason, `/localhop` over UDP).
#[test]
fn each_reads_what_the_other_sends() {
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
            consumer.send(&json!({"name": wish, "must_be_fresh": true, "lifetime": 4000}));
            let asked = producer.receive();
            assert_eq!(name_in(&asked, "interest"), name(&wish), "{case}");
            assert_eq!(asked["must_be_fresh"], json!(true));
            assert_eq!(asked["can_be_prefix"], json!(false));
            // NDNts subtracts the elapsed time.
            let lifetime = asked["lifetime"].as_u64();
            assert!(lifetime.is_some_and(|lifetime| lifetime <= 4000), "{asked}");
            producer.send(&json!({"name": wish, "content": case}));
            let told = consumer.receive();
            assert_eq!(name_in(&told, "data"), name(&wish));
            assert_eq!(told["content"], json!(case));
            assert_eq!(told["freshness"], json!(1000));
            // Without a route, both decode the Nack.
            consumer.send(&json!({"name": "/nobody", "lifetime": 4000}));
            let refused = consumer.receive();
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
    first.send(&wish);
    assert_eq!(name_in(&producer.receive(), "interest"), name("/shared/1"));
    second.send(&wish);
    hub.station
        .until(|daemon| daemon.forwarder().statistics().aggregated == 1);
    producer.send(&json!({"name": "/shared/1/longer", "content": "once"}));
    for consumer in [&mut first, &mut second] {
        let told = consumer.receive();
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
        first.send(&wish);
        if !first.receive()["nack"].is_null() {
            is_gone = true;
            break;
        }
    }
    assert!(is_gone);
    // Without MustBeFresh it is still an answer.
    let wish = json!({"name": "/shared/1", "can_be_prefix": true, "lifetime": 4000});
    second.send(&wish);
    assert_eq!(second.receive()["content"], "once");
}

/// Our own application with each of them, as producer and as consumer.
///
/// Fails if they refuse the Interests or Data of `AppFace`.
#[test]
fn our_applications_exchange_with_theirs() {
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
        theirs.send(&json!({"name": text, "lifetime": 4000}));
        let asked = next_interest(&mut ours);
        assert_eq!(asked, name(&format!("/ours/{kind:?}")));
        put(&mut ours, &asked, b"from us", Duration::from_millis(7));
        let told = theirs.receive();
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
        assert_eq!(name_in(&theirs.receive(), "interest"), name(&wish));
        theirs.send(&json!({"name": wish, "content": "from them"}));
        let packet = asking.join().expect("no panic");
        assert_eq!(content(&packet), b"from them");
        let data = Data::decode(&packet).expect("Data");
        data.verify(&Verifier::digest()).expect("whole");
    }
}

/// NDN.md's fourth: our discovery and NDNts' State Vector Sync are members of one group. Each learns that the
/// other has published and reads its first publication; when NDNts ends, it has left. NDNts registers the group's
/// name, and captures it unless it is told otherwise: then our members register that name, too.
///
/// Fails if either refuses the other's vectors (`MUST` elements, order, signature), if `Discovery` requests
/// publications by another name, or if with an unchanged NDNts our member registers `sync_prefix` (it then gets no
/// vectors of ours).
#[test]
fn both_are_members_of_a_sync_group() {
    let Some(peers) = Peers::find() else {
        return;
    };
    share_a_group(&peers, "/arena", "/arena", &[]);
    share_a_group(&peers, "/plaza", "/plaza/v=3", &["inherit"]);
}

/// Our member registers a prefix; the other one is told its options.
fn share_a_group(peers: &Peers, group: &str, registered: &str, options: &[&str]) {
    let hub = Hub::start(&format!("sync_group{}", options.len()));
    let (text, group) = (group, name(group));
    hub.station.with({
        let group = group.clone();
        move |daemon| {
            let forwarder = daemon.forwarder();
            forwarder.set_strategy(group.view(), Some(Strategy::Multicast));
        }
    });
    let profile = Profile {
        key: [7; 32],
        fingerprint: [3; 16],
        details: b"anna".to_vec(),
    };
    let unix = Clock::unix().0;
    let config = DiscoveryConfig::new(group.clone(), name("/ours"), unix, profile);
    let config = config
        .expect("sound")
        .heartbeat(Duration::from_millis(400), Duration::from_millis(2500));
    let config = config.expect("sound");
    let mut ours = Discovering::new(hub.connect(), config, unix, name(registered));
    let uri = hub.uri("tcp");
    let arguments = [&["sync", &uri, "/theirs", text][..], options].concat();
    let mut theirs = peers.start(PeerKind::Node, &arguments);
    theirs.send(&json!({"publish": profile_hex(b"ben")}));

    let joined = ours.next_event();
    let DiscoveryEvent::Joined { member, profile } = joined else {
        panic!("{joined:?}");
    };
    assert_eq!(member.name, name("/theirs"));
    assert!(
        member.boot.abs_diff(unix) <= PATIENCE.as_secs(),
        "{member:?}"
    );
    assert_eq!(profile.details, b"ben");

    let told = ours.while_waiting(|| theirs.lines.try_recv().ok());
    let told: Value = serde_json::from_str(&told).expect("a line of JSON");
    assert_eq!(name_in(&told, "member"), name("/ours"));
    assert_eq!(told["boot"], json!(unix));
    let publication = format!("/ours{text}/56={}/58=%01", escaped(unix));
    theirs.send(&json!({"name": publication}));
    let content = ours.while_waiting(|| {
        let line: Value = serde_json::from_str(&theirs.lines.try_recv().ok()?).ok()?;
        line["content"].as_str().map(str::to_owned)
    });
    assert_eq!(content, profile_hex(b"anna"));

    drop(theirs);
    assert_eq!(ours.next_event(), DiscoveryEvent::Left { member });
    assert_eq!(ours.discovery.statistics().refused, 0);
}

/// A profile as bytes, in hexadecimal digits, with the key and the fingerprint of the test.
fn profile_hex(details: &[u8]) -> String {
    let elements: [(u32, &[u8]); 3] = [(1101, &[7; 32]), (1103, &[3; 16]), (1105, details)];
    let mut bytes = Vec::new();
    for (kind, value) in elements {
        bytes.push(253);
        bytes.extend((kind as u16).to_be_bytes());
        bytes.push(value.len() as u8);
        bytes.extend(value);
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A number of seconds since 1970 as a component's bytes in a URI.
fn escaped(seconds: u64) -> String {
    let bytes = (seconds as u32).to_be_bytes();
    bytes.iter().map(|byte| format!("%{byte:02X}")).collect()
}

/// Our member of a sync group, on a face.
struct Discovering {
    face: AppFace,
    discovery: Discovery,
    clock: Clock,
}

impl Discovering {
    fn new(mut face: AppFace, config: DiscoveryConfig, unix: u64, group: Name) -> Self {
        let clock = Clock::start();
        let discovery = Discovery::new(clock.now(), unix, config, [5; 16]);
        for prefix in [group, discovery.own_prefix()] {
            let registered = face.register(prefix, &Signer::digest());
            registered.expect("allowed");
        }
        Self {
            face,
            discovery,
            clock,
        }
    }

    fn next_event(&mut self) -> DiscoveryEvent {
        let mut event = None;
        self.run(|discovery| {
            event = discovery.poll_event();
            event.is_some()
        });
        event.expect("there is one")
    }

    /// Goes on until something else is there.
    fn while_waiting<T>(&mut self, mut get: impl FnMut() -> Option<T>) -> T {
        let mut found = None;
        self.run(|_| {
            found = get();
            found.is_some()
        });
        found.expect("there is one")
    }

    fn run(&mut self, mut is_done: impl FnMut(&mut Discovery) -> bool) {
        let deadline = self.clock.now().after(PATIENCE);
        while !is_done(&mut self.discovery) {
            let now = self.clock.now();
            assert!(now < deadline, "it never came about");
            if self.discovery.next_timeout() <= now {
                self.discovery.handle_timeout(now);
            }
            let mut packet = Vec::new();
            while self.discovery.poll_transmit(&mut packet) {
                self.face.send(&packet).expect("the face is up");
                packet.clear();
            }
            let received = self.face.receive(Duration::from_millis(5));
            let Some(received) = received.expect("the face is up") else {
                continue;
            };
            let Ok(came) = LinkPacket::decode(&received) else {
                continue;
            };
            let now = self.clock.now();
            if let Ok(interest) = Interest::decode(came.packet) {
                self.discovery.handle_interest(now, &interest);
            } else if let Ok(data) = Data::decode(came.packet) {
                self.discovery.handle_data(now, &data);
            }
        }
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
        assert_eq!(
            peer.receive(),
            json!({"registered": true}),
            "{kind:?} {uri}"
        );
        peer
    }

    fn consume(&self, kind: PeerKind, uri: &str) -> Peer {
        let mut peer = self.start(kind, &["consume", uri]);
        assert_eq!(peer.receive(), json!({"connected": true}), "{kind:?} {uri}");
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
    fn send(&mut self, line: &Value) {
        let input = self.input.as_mut().expect("not closed");
        writeln!(input, "{line}").expect("it reads");
        input.flush().expect("it reads");
    }

    fn receive(&mut self) -> Value {
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
