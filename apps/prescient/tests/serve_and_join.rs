//! `prescient serve` and `prescient join` as two processes.

use std::env::temp_dir;
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use prescient::schema::{Class, Field, FieldKind};
use prescient::{Client, ClientEvent, Everything, Schema, SchemaBuilder, Server, loopback_token};

use serde_json::Value;

fn prescient(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prescient"));
    command.args(arguments);
    command
}

/// A server process, killed on drop.
struct Serving {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Serving {
    fn start(arguments: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", arguments)
    }

    fn start_at(address: &str, arguments: &[&str]) -> Self {
        let mut command = prescient(&["serve", "--address", address, "--json"]);
        command.args(arguments);
        Self::run(command)
    }

    /// A command that prints JSON lines.
    fn run(mut command: Command) -> Self {
        let mut process = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary of this package");
        let output = process.stdout.take().expect("it is a pipe");
        let lines = BufReader::new(output).lines();
        Self { process, lines }
    }

    /// The next line with this event.
    fn line(&mut self, event: &str) -> Value {
        for line in self.lines.by_ref() {
            let line: Value = serde_json::from_str(&line.expect("text")).expect("an object");
            if line["event"] == event {
                return line;
            }
        }
        panic!("it ended without {event:?}");
    }

    #[cfg(unix)]
    fn press_ctrl_c(&self) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status();
        assert!(sent.expect("there is `kill`").success());
    }

    /// Kills the process like `kill -9`: it sends no close packets.
    fn kill(mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
    }

    fn wait(mut self) -> ExitStatus {
        self.process.wait().expect("it ends")
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
    }
}

/// The client verifies every value, and reports that all are correct.
///
/// Fails if the server's state is that of another tick (`walker` of a later one in
/// `Serving::step`), or if `Watcher::check` compares nothing.
#[test]
fn a_client_sees_the_world_and_the_server_sees_the_client() {
    let mut server = Serving::start(&["--entities", "40", "--seconds", "60"]);
    let address = server.line("serving")["address"].clone();
    let address = address.as_str().expect("text");
    let joined = prescient(&["join", address, "--seconds", "2", "--json"]).output();
    let joined = joined.expect("the binary of this package");
    let text = String::from_utf8(joined.stdout).expect("text");
    let errors = String::from_utf8_lossy(&joined.stderr);
    assert!(joined.status.success(), "{errors}");
    let last = text.lines().last().expect("a line");
    let last: Value = serde_json::from_str(last).expect("an object");
    assert_eq!(last["event"], "ended");
    assert_eq!((&last["entities"], &last["wrong"]), (&40.into(), &0.into()));
    assert!(last["checked"].as_u64() > Some(200), "{last}");
    assert!(last["round_trip_ms"].as_f64() > Some(0.0), "{last}");
    server.line("joined");
    assert_eq!(server.line("left")["reason"], "finished");
    let second = server.line("second");
    assert_eq!(second["clients"], 0);
}

/// Fails if `Interrupt::is_asked` is ignored: then the processes do not end.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_both_with_a_goodbye() {
    let mut server = Serving::start(&["--entities", "10"]);
    let address = server.line("serving")["address"].clone();
    let mut client = prescient(&["join", address.as_str().expect("text")])
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary of this package");
    server.line("joined");
    server.press_ctrl_c();
    assert!(server.wait().success());
    assert!(client.wait().expect("it ends").success());
}

/// Fails if `serve` ignores its key.
#[test]
fn with_a_key_only_tokens_open_the_door() {
    let file = |name: &str| -> PathBuf {
        temp_dir().join(format!("prescient-{}-{name}", std::process::id()))
    };
    let (key, token) = (file("key"), file("token"));
    let text = |path: &PathBuf| path.to_str().expect("text").to_owned();
    let made = prescient(&["token", "--new-key", &text(&key)]).status();
    assert!(made.expect("the binary of this package").success());
    let mut server = Serving::start(&["--entities", "10", "--key-file", &text(&key)]);
    let serving = server.line("serving");
    let (address, protocol) = (serving["address"].as_str(), serving["protocol"].as_str());
    let (address, protocol) = (address.expect("text"), protocol.expect("text"));

    let refused = prescient(&["join", address, "--seconds", "1"]).output();
    let refused = refused.expect("the binary of this package");
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(errors.contains("cannot open the token"), "{errors}");

    let made = prescient(&["token", "--key", &text(&key), "--client", "7"])
        .args(["--server", address, "--protocol", protocol])
        .args(["-o", &text(&token)])
        .status();
    assert!(made.expect("the binary of this package").success());
    let joined = prescient(&["join", "--token-file", &text(&token), "--seconds", "1"]).output();
    let joined = joined.expect("the binary of this package");
    let errors = String::from_utf8_lossy(&joined.stderr);
    assert!(joined.status.success(), "{errors}");
    assert_eq!(server.line("joined")["client"], 7);
    for path in [key, token] {
        fs::remove_file(path).expect("it was made here");
    }
}

/// Fails if `serve` or `join` ignores `--prior`, or if the fingerprints are not compared.
#[test]
fn both_ends_start_from_the_same_prior() {
    let file = temp_dir().join(format!("pinned-{}.prior", std::process::id()));
    let path = file.to_str().expect("a path of text");
    let trained = prescient(&["train", "world:rts", "-o", path]).output();
    let trained = trained.expect("it runs");
    assert!(trained.status.success(), "{trained:?}");
    let mut serving = Serving::start(&["--prior", path]);
    let address = serving.line("serving")["address"].clone();
    let address = address.as_str().expect("an address");
    let join = |more: &[&str]| {
        let mut command = prescient(&["join", address, "--seconds", "1", "--json"]);
        command.args(more).output().expect("it runs")
    };
    let good = join(&["--prior", path]);
    assert!(good.status.success(), "{good:?}");
    let refused = join(&[]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("starts from prior"),
        "{said}"
    );
    fs::remove_file(file).expect("it was written");
}

/// A server is killed and started again on the same port: its client notices, reconnects and
/// receives state again.
///
/// Fails without `answer_unknown` in the transport's server, or if `join` does not reconnect.
#[test]
fn a_killed_server_is_joined_again() {
    let mut server = Serving::start(&["--entities", "20"]);
    let address = server.line("serving")["address"].clone();
    let address = address.as_str().expect("text");
    let mut client = Serving::run(prescient(&["join", address, "--json"]));
    server.line("joined");
    assert_eq!(client.line("second")["wrong"], 0);
    server.kill();

    let mut server = Serving::start_at(address, &["--entities", "30"]);
    let began = server.line("serving")["unix_ms"].as_u64();
    let began = began.expect("a number");
    let mut after = |event: &str| {
        let at = client.line(event)["unix_ms"].as_u64();
        at.expect("a number").saturating_sub(began)
    };
    let knew = after("disconnected");
    let playing = after("playing");
    // `./check holes` judges how long this takes, on an otherwise idle machine.
    println!("restart: detected after {knew} ms, state after {playing} ms");
    server.line("joined");
    client.press_ctrl_c();
    let ended = client.line("ended");
    assert_eq!(
        (&ended["entities"], &ended["wrong"]),
        (&30.into(), &0.into())
    );
    assert!(client.wait().success());
}

/// Ctrl-C ends a client while it connects to an address that never answers.
///
/// Fails if `join` does not pass its interrupt to the client: then it ends after ten seconds, with
/// a timeout.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_client_that_is_not_in_yet() {
    let hangs = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = hangs.local_addr().expect("bound").to_string();
    let mut joining = prescient(&["join", &address]);
    let joining = joining.stdout(Stdio::null()).stderr(Stdio::piped());
    let joining = joining.spawn().expect("the binary of this package");
    let asked = hangs.recv_from(&mut [0; 1500]);
    assert_eq!(asked.expect("a connection request").0, 1200);
    let id = joining.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.expect("there is `kill`").success());
    let ended = joining.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(errors.contains("cancelled"), "{errors}");
}

/// A name with control characters, which must not reach a terminal.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;mine\u{7}\u{9b}31m\u{202e}evil\r\n\u{2066}";

fn hostile_schema() -> Schema {
    let kind = FieldKind::Variant {
        names: vec![HOSTILE.to_owned()],
    };
    let class = Class::new(HOSTILE, vec![Field::new(HOSTILE, kind.clone())]);
    let known = Class::new("walker", vec![Field::new("number", kind)]);
    let schema = SchemaBuilder::new().class(class).class(known).build();
    schema.expect("names may be anything")
}

fn is_harmless(text: &str) -> bool {
    let does_more = |c: char| c.is_control() || "\u{202e}\u{2066}".contains(c);
    // Long errors are broken into lines, and all but the first are indented.
    let line = text.trim_end().replace("\n  ", " ");
    line.contains("evil") && !line.contains(does_more)
}

/// Fails if `Difference` prints names without escaping them.
#[test]
fn names_of_others_do_nothing_to_a_terminal() {
    // A hostile server, and a client that joins it.
    let server = Server::loopback("127.0.0.1:0", hostile_schema(), Everything);
    let mut server = server.expect("a free port");
    let address = server.address().expect("a socket").to_string();
    let mut joining = prescient(&["join", &address]);
    let joining = joining.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut joining = joining.spawn().expect("the binary of this package");
    while joining.try_wait().expect("it is a child process").is_none() {
        server.wait(Duration::from_millis(5));
        while server.poll().is_some() {}
    }
    let ended = joining.wait_with_output().expect("it ended");
    let errors = String::from_utf8(ended.stderr).expect("text");
    assert!(is_harmless(&errors), "{errors:?}");

    // A hostile client, and the server that it joins.
    let mut serving = prescient(&["serve", "--address", "127.0.0.1:0"]);
    let mut serving = Serving::run({
        serving.args(["--entities", "1"]);
        serving
    });
    let first = serving.lines.next().expect("a line").expect("text");
    let address = first.split(' ').nth(2).expect("where it is");
    let token = loopback_token(address).expect("on this machine");
    let mut client = Client::start(token, hostile_schema()).expect("a socket");
    let left = |event: &ClientEvent| matches!(event, ClientEvent::Left(_));
    while !std::iter::from_fn(|| client.poll()).any(|event| left(&event)) {
        client.wait(Duration::from_millis(5));
    }
    let mut lines = serving.lines.by_ref().map(|line| line.expect("text"));
    let line = lines.find(|line| line.contains("was turned away"));
    let line = line.expect("the server reports it");
    assert!(is_harmless(&line), "{line:?}");
}

/// What a user reads: help and output fit a terminal, mistakes are named, and a server says who can
/// reach it. Fails if `max_term_width` or `text::wrapped` is left out, if `resolve` calls 99999 a name
/// without a port, if `swarm` takes 0 clients, or if `introduce` and `Denial::WrongServer` do not
/// name the flags.
#[test]
fn a_user_is_told_what_to_do() {
    let said = |arguments: &[&str]| {
        let output = prescient(arguments).env("COLUMNS", "240").output();
        let output = output.expect("the binary of this package");
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8(text).expect("text")
    };
    for arguments in [
        &["--help"][..],
        &["serve", "--help"],
        &["join", "--help"],
        &["swarm", "--help"],
        &["measure", "--help"],
        &["token", "--help"],
    ] {
        let help = said(arguments);
        let widest = help.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{arguments:?}: {widest:?} columns");
    }
    for arguments in [
        &[
            "scenario",
            "smooth",
            "--seconds",
            "10",
            "--latencies",
            "350",
            "--losses",
            "5",
        ][..],
        &[
            "scenario",
            "predict",
            "--seconds",
            "10",
            "--latencies",
            "300",
        ],
        &["advise", "world:rts?ticks=60"],
        &[
            "measure",
            "world:rts?ticks=60",
            "--loss",
            "20",
            "--rtt-ticks",
            "6",
        ],
        &["named", "spectators", "--spectators", "2", "--seconds", "1"],
        &["join", "192.0.2.1:4000"],
    ] {
        let text = said(arguments);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(
            widest <= Some(100),
            "{arguments:?}: {widest:?} columns: {text}"
        );
        assert!(text.lines().count() > 1, "{arguments:?}: {text}");
    }
    let no_port = said(&["join", "127.0.0.1:99999"]);
    assert!(no_port.contains("there is no port 99999"), "{no_port}");
    let nobody = said(&["swarm", "--clients", "0"]);
    assert!(nobody.contains("0 is not in 1.."), "{nobody}");

    let directory = temp_dir().join(format!("prescient-lan-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    let file = |name: &str| directory.join(name).display().to_string();
    said(&["token", "--new-key", &file("key")]);
    let port = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let port = port.expect("a free port").port();
    let address = format!("0.0.0.0:{port}");
    let alone = said(&["serve", "--address", &address, "--seconds", "0"]);
    assert!(alone.contains("only this machine can reach it"), "{alone}");
    assert!(alone.contains("--key-file FILE"), "{alone}");
    let key = file("key");
    let open = [
        "serve",
        "--address",
        &address,
        "--key-file",
        &key,
        "--seconds",
    ];
    let shared = said(&[&open[..], &["0"]].concat());
    assert!(shared.contains(&format!("127.0.0.1:{port}")), "{shared}");
    assert!(shared.contains("--public ADDRESS"), "{shared}");

    // A token for an address that the server was not told.
    let public = [&open[..], &["20", "--public", "192.0.2.1:4000", "--json"]].concat();
    let mut server = Serving::run(prescient(&public));
    let protocol = server.line("serving")["protocol"].clone();
    let here = format!("127.0.0.1:{port}");
    let mut token = vec!["token", "--key", &key, "--client", "1", "--server", &here];
    let output = file("token");
    token.extend([
        "--protocol",
        protocol.as_str().expect("text"),
        "-o",
        &output,
    ]);
    said(&token);
    let refused = said(&["join", "--token-file", &output, "--no-reconnect"]);
    assert!(
        refused.contains(&format!("connecting to {here}")),
        "{refused}"
    );
    assert!(refused.contains("serve --public ADDRESS"), "{refused}");
    drop(server);
    fs::remove_dir_all(&directory).expect("it is ours");
}
