//! `prescient token` issues tokens that a server accepts, and its errors tell what to do.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use prescient_channels::ClientId;
use prescient_net::{BlockingClient, BlockingServer, Socket, key_from_text, token_from_text};
use prescient_transport::{LinkConfig, ProtocolId, ServerConfig, ServerEvent};

/// A directory of its own for each test, removed when the test is over.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a place for tests");
        Self(path)
    }

    fn token(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_prescient"));
        command.current_dir(&self.0).arg("token").args(arguments);
        command.output().expect("the binary of this package")
    }

    /// The error output of a command that must fail, its broken lines joined.
    fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.token(arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stdout.is_empty());
        let text = String::from_utf8(output.stderr).expect("text");
        text.replace("\n  ", " ")
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).expect("it was written")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Fails if the command seals with another key, ignores an option, or uses another clock than
/// servers.
#[test]
fn a_server_accepts_what_was_issued() {
    let directory = Directory::new("accepted");
    assert!(directory.token(&["--new-key", "key"]).status.success());
    let socket = Socket::bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    let address = socket.address();
    let arguments = [
        "--key",
        "key",
        "--client",
        "77",
        "--server",
        &address.to_string(),
        "--protocol",
        "my game",
        "--data",
        "blue team",
    ];
    let printed = directory.token(&arguments);
    assert!(printed.status.success(), "{printed:?}");
    let printed = String::from_utf8(printed.stdout).expect("text");
    let to_file = [&arguments[..], &["-o", "token"]].concat();
    assert!(directory.token(&to_file).stdout.is_empty());
    // The second token overwrites the first: a token is for one session.
    assert!(directory.token(&to_file).status.success());

    let protocol = ProtocolId(*b"my game\0\0\0\0\0\0\0\0\0");
    let key = key_from_text(&directory.read("key")).expect("a key");
    let config = ServerConfig::new(key, protocol, vec![address]);
    let mut server = BlockingServer::new(socket, config).expect("a server");
    for text in [printed, directory.read("token")] {
        let token = token_from_text(&text).expect("a token");
        assert_eq!(token.servers(), [address]);
        let client = BlockingClient::start(token, protocol, LinkConfig::default());
        let mut client = client.expect("a socket");
        let deadline = server.now().after(Duration::from_secs(30));
        let event = loop {
            assert!(server.now() < deadline, "the client did not join");
            assert!(!matches!(
                client.poll(),
                Some(prescient_transport::ClientEvent::Failed(_))
            ));
            if let Some(event) = server.wait(Duration::from_millis(1)) {
                break event;
            }
        };
        match event {
            ServerEvent::Connected { client, data, .. } => {
                assert_eq!((client, &data[..]), (ClientId(77), &b"blue team"[..]));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Fails if the permissions of the files are the system's default.
#[test]
#[cfg(unix)]
fn secrets_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;

    let directory = Directory::new("permissions");
    assert!(directory.token(&["--new-key", "key"]).status.success());
    let issued = directory.token(&[
        "--key",
        "key",
        "--client",
        "1",
        "--server",
        "127.0.0.1:1",
        "--protocol",
        "00112233445566778899aabbccddeeff",
        "-o",
        "token",
    ]);
    assert!(issued.status.success(), "{issued:?}");
    for name in ["key", "token"] {
        let file = std::fs::metadata(directory.0.join(name)).expect("it was written");
        assert_eq!(file.permissions().mode() & 0o777, 0o600, "{name}");
    }
}

/// Fails if any of these commands succeeds, or if its error changes.
#[test]
fn refusals_say_what_to_do() {
    let directory = Directory::new("refused");
    assert!(directory.token(&["--new-key", "key"]).status.success());
    std::fs::write(directory.0.join("nonsense"), "nonsense").expect("written");
    let issue = |key: &str, server: &str, protocol: &str, data: &str| {
        directory.refusal(&[
            "--key",
            key,
            "--client",
            "1",
            "--server",
            server,
            "--protocol",
            protocol,
            "--data",
            data,
        ])
    };
    assert_eq!(
        directory.refusal(&["--new-key", "key"]),
        "prescient: key exists: choose another name, or remove it if no backend and no server uses \
         that key\n"
    );
    let missing = issue("nothing", "127.0.0.1:1", "p", "");
    assert!(
        missing.starts_with("prescient: cannot read the key nothing (")
            && missing.ends_with("): name a file that `prescient token --new-key` made\n"),
        "{missing}"
    );
    assert_eq!(
        issue("nonsense", "127.0.0.1:1", "p", ""),
        "prescient: nonsense: this text is no key: `prescient token --new-key FILE` makes one\n"
    );
    assert_eq!(
        issue("key", "127.0.0.1", "p", ""),
        "prescient: \"127.0.0.1\" has no port: write it as host:port, an IPv6 address as \
         [address]:port\n"
    );
    assert_eq!(
        issue("key", "127.0.0.1:1", "p", &"x".repeat(257)),
        "prescient: cannot make this token: 257 bytes are too long for a token, which has room for \
         256\n"
    );
    let usage = |arguments: &[&str]| {
        let output = directory.token(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    for protocol in ["", "seventeen letters"] {
        let output = usage(&["--protocol", protocol]);
        let wanted = "expected 32 hexadecimal digits, or a text of 1 to 16 bytes";
        assert!(output.contains(wanted), "{output}");
    }
    for arguments in [
        &[][..],
        &["--client", "1"],
        &["--new-key", "other", "--client", "1"],
    ] {
        let output = usage(arguments);
        assert!(output.contains("Usage: prescient token"), "{output}");
    }
    assert!(!directory.0.join("other").exists());
}
