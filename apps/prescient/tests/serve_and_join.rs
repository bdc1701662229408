//! `prescient serve` and `prescient join`: two processes that a person would start in two terminals.

use std::env::temp_dir;
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::Value;

fn prescient(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prescient"));
    command.args(arguments);
    command
}

/// A server process, which is not left behind.
struct Serving {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Serving {
    fn start(arguments: &[&str]) -> Self {
        let mut process = prescient(&["serve", "--address", "127.0.0.1:0", "--json"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary of this package");
        let output = process.stdout.take().expect("it is a pipe");
        let lines = BufReader::new(output).lines();
        Self { process, lines }
    }

    /// The next line that says that this happened.
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

    fn wait(mut self) -> ExitStatus {
        self.process.wait().expect("it ends")
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
    }
}

/// Everything that is shown was true, and the client says so.
///
/// Fails if the server shows another tick than it says (`walker` of a later one in `Stage::step`),
/// or if `Watcher::check` compares nothing.
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
    assert_eq!((&last["objects"], &last["wrong"]), (&40.into(), &0.into()));
    assert!(last["checked"].as_u64() > Some(200), "{last}");
    assert!(last["round_trip_ms"].as_f64() > Some(0.0), "{last}");
    server.line("joined");
    assert_eq!(server.line("left")["reason"], "finished");
    let second = server.line("second");
    assert_eq!(second["clients"], 0);
}

/// Fails if `Interrupt::is_asked` is not looked at: then it does not end.
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
