//! A program that was written from `WIRE.md` alone reads the datagrams of connections and reports
//! the same as the two ends: `tests/independent_reader/read_session.py`.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;
use std::{fs, str};

use crate::common::{GOOD, KEY, Link, Random, SECOND, World, config, grant, over_seeds};
use prescient_channels::lobby::{ClientMessage, ServerMessage};
use prescient_channels::parts::{InputSender, Ping, Pong};
use prescient_channels::*;
use prescient_tests::{repository::root, skip::skip};
use prescient_transport::*;
use serde_json::{Value, json};

const BAD: Link = Link {
    loss: 10,
    corruption: 10,
    delayed: 20,
    delay: 30_000,
    duplicated: 10,
    repeat: 30_000,
    ..GOOD
};

/// Through loss, damage, duplication and reordering: the reader rejects what was damaged or
/// received before, reads everything else, and reports the messages on every channel that the ends
/// report.
///
/// Fails if the library changes a byte of the format (`FRAGMENT` and `LAST` swapped in
/// `exchange/frame.rs`, `DELAY_UNIT` 255, the label `then` for `next` in `packet_protection.rs`),
/// or if the reader skips one (`delay=0` in `read_received`).
#[test]
fn a_connection_on_a_bad_link() {
    if !reader_runs() {
        return;
    }
    over_seeds(20, |seed| {
        let session = Session::hold(seed);
        let told = read(&format!("bad_link_{seed}"), &session.capture);
        session.compare(&told);
    });
}

/// The golden datagrams; the only secret is the seed of the generator that both ends used.
///
/// Fails if the reader uses another salt than the golden datagrams (`prescient transport 2` in
/// `accept`): then `WIRE.md` and the file are of two versions.
#[test]
fn the_golden_connection() {
    if !reader_runs() {
        return;
    }
    let golden = include_str!("../../../../vectors/transport/v6/connection.txt");
    let mut capture = secrets(2026, "198.51.100.7:50000");
    // The denial and the reset are of other connections, whose tokens are not in the file.
    let others = |line: &&str| line.starts_with("denied") || line.starts_with("reset");
    for line in golden.lines().filter(|line| !others(line)) {
        writeln!(capture, "{line}").expect("into memory");
    }
    let told = read("golden", &capture);
    let datagrams: Vec<_> = told
        .iter()
        .filter(|line| line["datagram"].is_u64())
        .collect();
    assert_eq!(datagrams.len(), golden.lines().count() - 3);
    let sound = |line: &&Value| line["refused"].is_null() && line["broken"].is_null();
    assert!(datagrams.iter().all(sound));
    let last = datagrams.last().expect("many");
    assert_eq!(
        (&last["kind"], &last["reason"]),
        (&json!("close"), &json!(9))
    );
    for received in [
        json!({"to": "server", "request": 0, "message": hex(b"why?")}),
        json!({"to": "client", "answer": 0, "message": hex(b"why?")}),
        json!({"to": "client", "about": "offer", "blob": 0, "size": 1500, "label": hex(b"map")}),
        json!({"to": "client", "blob": 0, "bytes": hex(&[10; 1500])}),
        json!({"to": "server", "channel": 0, "message": hex(&[8; 1300])}),
        json!({"to": "server", "channel": 2, "message": hex(&[8; 1300])}),
    ] {
        assert!(told.contains(&received), "{received}");
    }
}

/// A denial under the token's secret, and one by a server that could not open the token.
///
/// Fails if the library's MAC of a denial leaves out the request (`&[&bytes]` in `write_denied` and
/// `&[denied]` in `read_denied`).
#[test]
fn refusals() {
    if !reader_runs() {
        return;
    }
    for (why, key, lifetime) in [("expired", KEY, 0), ("unreadable", [43; 32], 30)] {
        let mut world = World::new(7, GOOD);
        let mut grant = grant(0);
        grant.expires = UnixTime(world.unix.0 + lifetime);
        let backend = TokenKey::new(key).expect("not the public one");
        let token = grant.issue(&backend, &mut world.random).expect("sound");
        let mut capture = secrets(7, HOME);
        line(&mut capture, "key", &key);
        line(&mut capture, "token", &token.to_bytes());
        let peer = world.join_with(token, LinkConfig::default(), HOME);
        let refused = |world: &World| world.peers[peer].error().is_some();
        assert!(world.run_until(SECOND, refused));
        arrivals(&mut capture, &world);
        let told = read(why, &capture);
        let last = told.last().expect("a refusal");
        let denied = json!({"datagram": world.arrived.len() - 1, "to": "client",
            "kind": "denied", "why": why, "detail": 0});
        assert_eq!(*last, denied);
    }
}

/// The stateless reset of a restarted server.
///
/// Fails if the library leaves a part out of the reset key (`key.follow(b"reset")` in `reset.rs`).
#[test]
fn resets() {
    if !reader_runs() {
        return;
    }
    let mut world = World::new(8, GOOD);
    let token = world.issue(&grant(0));
    let mut capture = secrets(8, HOME);
    line(&mut capture, "token", &token.to_bytes());
    let peer = world.join_with(token, LinkConfig::default(), HOME);
    world.connect_all();
    world.restart_server();
    let told = |world: &World| world.peers[peer].closed().is_some();
    assert!(world.run_until(2 * SECOND, told));
    arrivals(&mut capture, &world);
    let told = read("reset", &capture);
    let last = told.last().expect("a reset");
    assert_eq!(
        (&last["kind"], &last["to"]),
        (&json!("reset"), &json!("client"))
    );
}

/// More inputs than a connection would have waiting, and lobby messages without a channel, as the
/// library writes them.
///
/// Fails if the library writes the pointer's y before its x (`.zip(old.pointer).rev()` in
/// `input/frame.rs`) or a player's id big-endian (`Welcome` in `lobby/message.rs`), or if the
/// reader does not wrap the pointer at 32 bits.
#[test]
fn parts_of_connections() {
    if !reader_runs() {
        return;
    }
    let (mut capture, mut expected) = (String::new(), Vec::new());
    let (mut packet, id) = (Vec::new(), 200);
    Ping { id }.write(&mut packet);
    let received = Time::from_micros(77);
    let delay = Duration::from_micros(300);
    Pong {
        id,
        received,
        delay,
    }
    .write(&mut packet);
    line(&mut capture, "frames_down", &packet);
    expected.push(json!({"to": "client", "frames": [
        {"frame": "ping", "id": 200},
        {"frame": "pong", "id": 200, "came": 77, "delay": 300},
    ]}));
    lobby(&mut capture, &mut expected);
    let inputs: Vec<_> = (0..20).map(Inputs::new).collect();
    for inputs in &inputs {
        line(&mut capture, "frames_up", &inputs.frame);
    }
    let mut told = read("parts", &capture);
    for (inputs, told) in inputs.into_iter().zip(told.split_off(expected.len())) {
        inputs.compare(&told);
    }
    assert_eq!(told.len(), expected.len());
    for (told, expected) in told.iter().zip(&expected) {
        assert_eq!(told, expected);
    }
}

/// Examples that the reader's author computed by hand. Fails if a key that is down through a repeat
/// is pressed again (`some = pressed` in `read_inputs`).
#[test]
fn the_reader_passes_its_own_test() {
    if reader_runs() {
        assert_eq!(run(Path::new("--self-test")), "");
    }
}

/// An exchange of messages and its capture.
struct Session {
    world: World,
    connection: ConnectionId,
    capture: String,
    /// How many datagrams had arrived, and the statistics of both ends, just before closing.
    before_close: (usize, [Statistics; 2]),
}

impl Session {
    fn hold(seed: u64) -> Self {
        let link = LinkConfig::default().with_packets_per_key(8);
        let mut world = World::with(seed, BAD, config().with_link(link.clone()));
        let token = world.issue(&grant(0));
        let mut capture = secrets(seed, HOME);
        line(&mut capture, "token", &token.to_bytes());
        let peer = world.join_with(token, link, HOME);
        let ada = ClientInfo {
            name: Text::new("Ada").expect("short"),
            data: Bytes::new([7]).expect("short"),
        };
        let now = world.client_time();
        world.peers[peer].client.set_info(ada, now);
        let both = |world: &World| world.peers[peer].connected() && !world.connections().is_empty();
        assert!(world.run_until(10 * SECOND, both));
        let connection = world.connections()[0];
        let mut session = Self {
            before_close: (
                0,
                [world.statistics(0), world.server_statistics(connection)],
            ),
            world,
            connection,
            capture,
        };
        let mut seen = [0, 0];
        for round in 0..60 {
            session.play(round);
            session.send(round);
            let now = session.world.client_time();
            session.world.peers[0].client.loaded(now);
            if round == 40 {
                let name = Text::new("another map").expect("short");
                let info = ServerInfo {
                    name,
                    ..ServerInfo::default()
                };
                session.world.server.reset(info, now);
            }
            session.world.run_for(Duration::from_millis(15));
            session.react(&mut seen);
        }
        // Until inputs that arrived and others that did not are joined.
        (session.world.silent_up, session.world.silent_down) = (true, true);
        for round in 60..160 {
            session.play(round);
            session.world.run_for(Duration::from_millis(15));
        }
        (session.world.silent_up, session.world.silent_down) = (false, false);
        for _ in 0..100 {
            session.world.run_for(Duration::from_millis(50));
            session.react(&mut seen);
        }
        let world = &mut session.world;
        let statistics = [world.statistics(0), world.server_statistics(connection)];
        session.before_close = (world.arrived.len(), statistics);
        // On the bad link, all four close packets might be lost.
        world.link = GOOD;
        let now = world.client_time();
        world.peers[0].client.close(CloseReason::Other(9), now);
        world.run_for(SECOND);
        assert_eq!(world.closed(), [(connection, CloseReason::Other(9))]);
        arrivals(&mut session.capture, world);
        session
    }

    /// A player who presses another key in every fourth tick.
    fn play(&mut self, round: u8) {
        let mut input = Input {
            pointer: [round.into(), -7],
            ..Input::default()
        };
        input.keys_down.insert(round / 4);
        if round.is_multiple_of(4) {
            input.pressed.insert(round / 4);
        }
        let now = self.world.client_time();
        let client = &mut self.world.peers[0].client;
        let pushed = client.push_input(InputTick(round.into()), input, now);
        pushed.expect("in order");
    }

    /// Messages on every channel, sometimes fragmented; requests, and blobs that are accepted,
    /// refused and withdrawn.
    fn send(&mut self, round: u8) {
        let world = &mut self.world;
        for channel in 0..4 {
            let length = if round % 20 == channel { 3000 } else { 6 };
            let mut message = vec![round; length];
            message[1] = channel;
            let channel = ChannelId(channel);
            let up = world.client_send_on(0, channel, &message);
            up.expect("little waits");
            let down = world.server_send_on(self.connection, channel, &message[1..]);
            down.expect("little waits");
        }
        let now = world.server_time();
        let client = &mut world.peers[0].client;
        if round.is_multiple_of(10) {
            let number = round / 10;
            let up = client.request(&[number, b'?'], 60 * SECOND, now);
            up.expect("little waits");
            let down = world
                .server
                .request(self.connection, &[number], 60 * SECOND, now);
            down.expect("little waits");
        }
        let blob = |number: u8| [vec![number], vec![round; 5000]].concat();
        let server = &mut world.server;
        match round {
            20 => drop(client.offer_blob(&[0], blob(0), now).expect("room")),
            25 => {
                for number in [0, 1] {
                    let offered = server.offer_blob(self.connection, &[number], blob(number), now);
                    offered.expect("room");
                }
            }
            30 => {
                let offered = server.offer_blob(self.connection, &[2], blob(2), now);
                let withdrawn = server.cancel_blob(self.connection, offered.expect("room"), now);
                withdrawn.expect("ours");
            }
            _ => {}
        }
    }

    /// Answers requests; accepts blobs labelled 0 and refuses those labelled 1.
    fn react(&mut self, seen: &mut [usize; 2]) {
        let world = &mut self.world;
        let now = world.server_time();
        let up: Vec<_> = world.received_from(self.connection).cloned().collect();
        for received in &up[seen[0]..] {
            let done = match received {
                Received::Request { request, message } => {
                    let answer = [message, &b"up"[..]].concat();
                    let sent = world
                        .server
                        .respond(self.connection, *request, &answer, now);
                    sent.is_ok()
                }
                Received::BlobOffered { blob, .. } => {
                    let accepted = world.server.accept_blob(self.connection, *blob, now);
                    accepted.is_ok()
                }
                _ => true,
            };
            assert!(done);
        }
        let down: Vec<_> = world.peers[0].received().cloned().collect();
        let client = &mut world.peers[0].client;
        for received in &down[seen[1]..] {
            let done = match received {
                Received::Request { request, message } => {
                    let answer = [message, &b"down"[..]].concat();
                    client.respond(*request, &answer, now).is_ok()
                }
                Received::BlobOffered { blob, label, .. } if label[0] == 0 => {
                    client.accept_blob(*blob, now).is_ok()
                }
                Received::BlobOffered { blob, label, .. } if label[0] == 1 => {
                    client.cancel_blob(*blob, now).is_ok()
                }
                _ => true,
            };
            assert!(done);
        }
        *seen = [up.len(), down.len()];
    }

    fn compare(&self, told: &[Value]) {
        let token = json!({"client": 0, "protocol": hex(&common::PROTOCOL.0), "data": "070707",
            "expiry": common::UNIX.0 + 30, "servers": ["192.0.2.1:4000"]});
        assert_eq!(told[0]["token"], token);
        let is_datagram = |line: &&Value| line["datagram"].is_u64();
        let datagrams: Vec<_> = told.iter().filter(is_datagram).collect();
        assert_eq!(datagrams.len(), self.world.arrived.len());
        self.compare_refusals(&datagrams);
        self.compare_received(&datagrams);
        self.compare_counts(&datagrams);
        self.compare_messages(told);
        for to in ["client", "server"] {
            let epochs = datagrams.iter().filter(|line| line["to"] == to);
            let epochs = epochs.filter_map(|line| line["epoch"].as_u64());
            assert!(epochs.max() > Some(4), "keys change, and their bits wrap");
        }
        let frames = datagrams
            .iter()
            .filter_map(|line| line["frames"].as_array());
        let frames: BTreeSet<_> = frames
            .flatten()
            .filter_map(|frame| frame["frame"].as_str())
            .collect();
        for kind in [
            "received", "chunk", "message", "padding", "ping", "pong", "input",
        ] {
            assert!(frames.contains(kind), "no {kind}");
        }
        let mut all = datagrams
            .iter()
            .filter_map(|line| line["frames"].as_array())
            .flatten();
        assert!(all.any(|frame| frame["recent"] == true), "none is short");
        let reasons = datagrams.iter().filter(|line| line["kind"] == "close");
        assert!(reasons.clone().all(|line| line["reason"] == 9));
        assert_ne!(reasons.count(), 0);
    }

    /// Damaged datagrams are rejected, all others only for expected reasons.
    fn compare_refusals(&self, datagrams: &[&Value]) {
        let (mut damaged_request, mut damaged_packet) = (false, false);
        for (line, (_, datagram)) in datagrams.iter().zip(&self.world.arrived) {
            assert!(line["broken"].is_null(), "{line}");
            damaged_request |= datagram.damaged && datagram.bytes.first() == Some(&1);
            damaged_packet |= datagram.damaged && datagram.bytes.first() >= Some(&128);
            if datagram.damaged {
                // A client cannot tell whether a cookie is valid.
                let refused = line["refused"].is_string() || line["cookie"] == false;
                assert!(refused, "{line}");
            } else if let Some(why) = line["refused"].as_str() {
                // A wrong echo or MAC is that of an answer to a damaged request; the reset of
                // another connection answers a damaged packet.
                let expected = ["received before", "no keys yet"].contains(&why)
                    || damaged_packet && why == "another reset token" && line["to"] == "client"
                    || damaged_request && ["echo", "MAC"].contains(&why) && line["to"] == "client";
                assert!(expected, "{line}");
            } else {
                assert_ne!(line["kind"], Value::Null, "{line}");
            }
        }
        for kind in ["request", "challenge", "accept"] {
            let of_kind = |line: &&&Value| line["kind"] == kind;
            assert_ne!(datagrams.iter().filter(of_kind).count(), 0);
        }
    }

    /// Acknowledgements and time stamps match what arrived, and when.
    fn compare_received(&self, datagrams: &[&Value]) {
        let mut arrivals = BTreeMap::new();
        for (line, (at, _)) in datagrams.iter().zip(&self.world.arrived) {
            if let Some(sequence) = line["sequence"].as_u64() {
                arrivals.insert((line["to"] == "server", sequence), *at);
            }
        }
        let (mut seen, mut gaps) = (0, 0);
        let mut origins = BTreeMap::new();
        // Pings by direction (up or not) and id.
        let mut pinged = BTreeSet::new();
        for (line, (_, datagram)) in datagrams.iter().zip(&self.world.arrived) {
            let about_up = line["to"] == "client";
            for frame in line["frames"].as_array().into_iter().flatten() {
                let number = |name: &str| frame[name].as_u64().expect("a number");
                match frame["frame"].as_str() {
                    Some("ping") => {
                        pinged.insert((!about_up, number("id")));
                    }
                    Some("pong") => {
                        assert!(pinged.contains(&(about_up, number("id"))), "{line}");
                        assert_eq!(number("came") + number("delay"), datagram.sent_at);
                    }
                    _ => {}
                }
                if frame["frame"] != "received" {
                    continue;
                }
                seen += 1;
                let waited = datagram.sent_at - arrivals[&(about_up, number("newest"))];
                assert_eq!(frame["delay"], waited / 256, "{line}");
                // The other end's clock has another origin.
                let millis = arrivals[&(about_up, number("newest"))] / 1000;
                let apart = (number("arrival") + 256 - millis % 256) % 256;
                let first = *origins.entry(about_up).or_insert(apart);
                assert!((apart + 257 - first) % 256 <= 2, "{line}");
                let packets: Vec<[u64; 2]> =
                    serde_json::from_value(frame["packets"].clone()).expect("pairs");
                for pair in packets.windows(2) {
                    for missing in pair[1][1] + 1..pair[0][0] {
                        gaps += 1;
                        let arrival = arrivals.get(&(about_up, missing));
                        assert!(arrival.is_none_or(|at| *at >= datagram.sent_at), "{line}");
                    }
                }
            }
        }
        assert!(seen > 50 && gaps > 20, "{seen} frames, {gaps} gaps");
    }

    fn compare_counts(&self, datagrams: &[&Value]) {
        let (length, statistics) = self.before_close;
        for (to, statistics) in ["client", "server"].into_iter().zip(statistics) {
            let here = datagrams[..length].iter().filter(|line| line["to"] == to);
            let accepted = here.filter(|line| line["sequence"].is_u64());
            assert_eq!(accepted.count() as u64, statistics.packets_received);
        }
    }

    /// Each end received the same, channel by channel, in the same order.
    fn compare_messages(&self, told: &[Value]) {
        let mut received = by_topic(
            told.iter()
                .filter(|line| line["datagram"].is_null())
                .cloned(),
        );
        received.remove("token");
        for to in ["client", "server"] {
            let accepts = received.remove(&format!("{to} accept"));
            let accept = json!({"to": to, "about": "accept", "blob": 0});
            assert_eq!(accepts, Some(vec![accept]));
        }
        self.compare_lobby(&mut received);
        let up = self.world.received_from(self.connection);
        let up = up.filter_map(|received| as_told("server", received));
        let down = self.world.peers[0].received();
        let down = down.filter_map(|received| as_told("client", received));
        let expected = by_topic(up.chain(down));
        assert_eq!(expected.len(), 2 * 8 + 3, "everything happened");
        assert_eq!(
            received.keys().collect::<Vec<_>>(),
            expected.keys().collect::<Vec<_>>()
        );
        for (topic, expected) in expected {
            assert_eq!(received[&topic], expected, "{topic}");
        }
    }

    /// Infos, welcomes and rosters are in the order of the client's events.
    fn compare_lobby(&self, received: &mut BTreeMap<String, Vec<Value>>) {
        let up = received.remove("server lobby").unwrap_or_default();
        let ada = json!({"kind": "info", "name": "Ada", "game": "07"});
        assert_eq!(up.first().map(|line| &line["lobby"]), Some(&ada));
        let loaded = up[1..].iter().map(|line| &line["lobby"]["resets"]);
        assert_eq!(loaded.collect::<Vec<_>>(), [0, 1]);
        let down = received.remove("client lobby").unwrap_or_default();
        let down = down.iter().map(|line| {
            let lobby = &line["lobby"];
            (
                lobby["kind"].clone(),
                lobby["name"].clone(),
                lobby["player"].clone(),
            )
        });
        let name = |info: &ServerInfo| json!(info.name.as_str());
        let events = self.world.peers[0].events.iter();
        let expected = events.filter_map(|event| match event {
            ClientEvent::Info(info) => Some((json!("info"), name(info), Value::Null)),
            ClientEvent::Welcome(player) => Some((json!("welcome"), Value::Null, json!(player.0))),
            ClientEvent::Reset(info) => Some((json!("reset"), name(info), Value::Null)),
            ClientEvent::Roster => Some((json!("roster"), Value::Null, Value::Null)),
            _ => None,
        });
        let (down, expected): (Vec<_>, Vec<_>) = (down.collect(), expected.collect());
        assert_eq!(down, expected);
        for kind in ["info", "welcome", "reset", "roster"] {
            assert!(expected.iter().any(|(told, ..)| told == kind), "no {kind}");
        }
    }
}

/// Lines by the end and the channel that they are about.
fn by_topic(lines: impl Iterator<Item = Value>) -> BTreeMap<String, Vec<Value>> {
    let mut topics = BTreeMap::<_, Vec<_>>::new();
    for line in lines {
        let to = line["to"].as_str().unwrap_or_default();
        let topic = match (&line["channel"], &line["about"]) {
            (Value::Number(channel), _) => format!("{to} {channel}"),
            (_, Value::String(about)) => format!("{to} {about}"),
            _ => {
                let is = |key: &&str| !line[*key].is_null();
                let key = ["input", "request", "answer", "blob", "token", "lobby"]
                    .into_iter()
                    .find(is);
                format!("{to} {}", key.expect("a line of the reader's"))
                    .trim()
                    .to_string()
            }
        };
        topics.entry(topic).or_default().push(line);
    }
    topics
}

/// The reader's line for an event of an end. Those of requests and blobs have their number.
fn as_told(to: &str, received: &Received) -> Option<Value> {
    let told = match received {
        Received::Message { channel, message } => {
            json!({"to": to, "channel": channel.0, "message": hex(message)})
        }
        Received::Input { tick, input } => {
            let keys = |keys: Keys| keys.iter().collect::<Vec<_>>();
            json!({"to": to, "input": tick.0, "keys_down": keys(input.keys_down),
                "pressed": keys(input.pressed), "pointer": input.pointer,
                "fields": hex(&input.fields)})
        }
        Received::Request { message, .. } => {
            json!({"to": to, "request": message[0], "message": hex(message)})
        }
        Received::Answer { answer, .. } => {
            let answer = answer.as_ref().expect("in time");
            json!({"to": to, "answer": answer[0], "message": hex(answer)})
        }
        Received::BlobOffered { label, size, .. } => {
            json!({"to": to, "about": "offer", "blob": label[0], "size": size, "label": hex(label)})
        }
        Received::BlobArrived { bytes, .. } => {
            json!({"to": to, "blob": bytes[0], "bytes": hex(bytes)})
        }
        Received::BlobCancelled { .. } if to == "server" => {
            json!({"to": to, "about": "refused", "blob": 1})
        }
        Received::BlobCancelled { .. } => json!({"to": to, "about": "withdrawn", "blob": 2}),
        Received::BlobProgress { .. } | Received::BlobDelivered { .. } => return None,
        other => panic!("the reader has no line for {other:?}"),
    };
    Some(told)
}

/// Some inputs, of which the older ones are joined if there is no room for all.
struct Inputs {
    frame: Vec<u8>,
    pushed: BTreeMap<u64, Input>,
}

impl Inputs {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let mut sender = InputSender::new(if seed.is_multiple_of(2) { 60 } else { 10_000 });
        let (mut input, mut pushed) = (Input::default(), BTreeMap::new());
        let mut tick = random.below(1 << 40);
        for _ in 0..1 + random.below(40) {
            tick += 1 + random.below(4) / 3;
            input.pressed = Keys::NONE;
            if random.percent(50) {
                for _ in 0..random.below(60) {
                    let key = random.next() as u8;
                    match random.below(3) {
                        0 => input.keys_down.insert(key),
                        1 => input.keys_down.remove(key),
                        _ => input.pressed.insert(key),
                    }
                }
                input.pointer[random.below(2) as usize] = random.next() as i32;
                input.fields = vec![random.next() as u8; random.below(33) as usize];
            }
            let sent = sender.push(InputTick(tick), input.clone());
            sent.expect("in order");
            pushed.insert(tick, input.clone());
        }
        let (_, frame) = sender.frame().expect("inputs wait");
        let frame = frame.to_vec();
        Self { frame, pushed }
    }

    /// Every tick is in one input, with everything that was pressed in any of its ticks.
    fn compare(mut self, told: &Value) {
        let told = told["frames"][0]["inputs"].as_array().expect("inputs");
        for told in told {
            let tick = told["tick"].as_u64().expect("a number");
            let later = self.pushed.split_off(&(tick + 1));
            let joined = std::mem::replace(&mut self.pushed, later);
            let (since, _) = joined.first_key_value().expect("a tick that was sent");
            let (_, last) = joined.last_key_value().expect("the same");
            let keys = |keys: Keys| keys.iter().collect::<Vec<_>>();
            let pressed = joined
                .values()
                .fold(Keys::NONE, |all, input| all.or(input.pressed));
            let expected = json!({"tick": tick, "since": since, "keys_down": keys(last.keys_down),
                "pressed": keys(pressed), "pointer": last.pointer, "fields": hex(&last.fields)});
            assert_eq!(told, &expected);
        }
        assert!(self.pushed.is_empty(), "{:?} were not told", self.pushed);
    }
}

fn lobby(capture: &mut String, expected: &mut Vec<Value>) {
    let info = |name: &str| ClientInfo {
        name: Text::new(name).expect("short"),
        data: Bytes::new(vec![7; 200]).expect("short"),
    };
    let server = ServerInfo {
        name: Text::new("Zürich").expect("short"),
        update_period: Duration::from_millis(50),
        tick: 1 << 33,
        message_of_the_day: Text::new("m".repeat(1000)).expect("short"),
        data: Bytes::new([1, 2, 3]).expect("short"),
    };
    let server_shown = |kind| {
        json!({"kind": kind, "name": "Zürich", "micros": 50_000, "tick": 1u64 << 33,
            "message": "m".repeat(1000), "game": "010203"})
    };
    for (message, shown) in [
        (
            ClientMessage::Info(info("Ada")),
            json!({"kind": "info", "name": "Ada", "game": hex(&[7; 200])}),
        ),
        (
            ClientMessage::Loaded { resets: 300 },
            json!({"kind": "loaded", "resets": 300}),
        ),
    ] {
        line(capture, "lobby_up", &message.to_bytes());
        expected.push(json!({"to": "server", "lobby": shown}));
    }
    let messages = [
        (ServerMessage::Info(server.clone()), server_shown("info")),
        (
            ServerMessage::Welcome(PlayerId(515)),
            json!({"kind": "welcome", "player": 515}),
        ),
        (ServerMessage::Reset(server), server_shown("reset")),
    ];
    for (message, shown) in messages {
        line(capture, "lobby_down", &message.to_bytes());
        expected.push(json!({"to": "client", "lobby": shown}));
    }
}

/// The head of a capture. All randomness is of one generator, so that every random number of either
/// end is among its first bytes.
fn secrets(seed: u64, address: &str) -> String {
    let mut random = vec![0; 4096];
    Random(seed).fill(&mut random);
    let mut capture = String::new();
    line(&mut capture, "key", &KEY);
    line(&mut capture, "random", &random);
    capture + &format!("address {address}\nchannels ordered unordered unreliable sequenced\n")
}

/// Everything that was delivered to either end.
fn arrivals(capture: &mut String, world: &World) {
    for (_, datagram) in &world.arrived {
        let up = datagram.to == world.server_address;
        line(capture, if up { "up" } else { "down" }, &datagram.bytes);
    }
}

fn line(capture: &mut String, name: &str, bytes: &[u8]) {
    writeln!(capture, "{name} {}", hex(bytes)).expect("into memory");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn reader_runs() -> bool {
    let found = python().is_some();
    if !found {
        skip("no python3 with cryptography; apt-get install python3-cryptography");
    }
    found
}

/// The first interpreter that has what the reader needs; Debian's package works with Debian's own
/// only.
fn python() -> Option<&'static str> {
    static FOUND: OnceLock<Option<&str>> = OnceLock::new();
    let import = ["-c", "import cryptography.hazmat.primitives.ciphers.aead"];
    let works = |python: &&str| {
        let tried = Command::new(python).args(import).output();
        tried.is_ok_and(|tried| tried.status.success())
    };
    *FOUND.get_or_init(|| ["python3", "/usr/bin/python3"].into_iter().find(works))
}

fn read(name: &str, capture: &str) -> Vec<Value> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.capture"));
    fs::write(&file, capture).expect("there is room");
    let parse = |line| serde_json::from_str(line).expect("a line of JSON");
    run(&file).lines().map(parse).collect()
}

fn run(argument: &Path) -> String {
    let script = root().join("tests/independent_reader/read_session.py");
    let mut command = Command::new(python().expect("it was asked for"));
    let done = command
        .arg(script)
        .arg(argument)
        .output()
        .expect("it ran before");
    let text = |bytes: &[u8]| str::from_utf8(bytes).expect("UTF-8").to_string();
    assert!(
        done.status.success(),
        "{argument:?}: {}",
        text(&done.stderr)
    );
    text(&done.stdout)
}

const HOME: &str = "10.0.0.1:5000";
