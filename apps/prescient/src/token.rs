//! `prescient token`: what a game's backend does, by hand.
//!
//! A key is made once and given to the backend and to its servers; a token is made for one player
//! and one session. Both are secrets, so what goes into files is for their owner alone.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use prescient_net::{
    AddressError, Clock, OpenError, SystemEntropy, TextError, key_from_text, new_key, resolve,
    token_to_text,
};
use prescient_transport::{ClientId, Grant, ProtocolId, TokenError, TokenKey, UnixTime};

/// Options of `prescient token`.
#[derive(Args, Clone, Debug)]
pub struct TokenOptions {
    /// Makes a key, and nothing else.
    #[arg(long, value_name = "FILE", exclusive = true)]
    pub new_key: Option<PathBuf>,
    /// What a token is made of.
    #[command(flatten)]
    pub grant: Option<GrantOptions>,
}

/// What a token is made of.
#[derive(Args, Clone, Debug)]
pub struct GrantOptions {
    /// The key that the server has, too.
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// Who the token is for, as the game's server will know them.
    #[arg(long, value_name = "NUMBER")]
    pub client: u64,
    /// Where the server is, as host:port; may be given several times, the first is tried first.
    #[arg(long, value_name = "ADDRESS", required = true)]
    pub server: Vec<String>,
    /// For how many seconds a connection can be made with it.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub expires: u64,
    /// What both ends must speak: 32 hexadecimal digits, or a text of up to 16 bytes.
    #[arg(
        long,
        value_name = "HEX|TEXT",
        value_parser = protocol
    )]
    pub protocol: ProtocolId,
    /// Something for the game's server, which the player can neither read nor change.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub data: String,
    /// Where the token goes, if not to standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Why there is no token, or no key.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// The key cannot be read.
    #[error(
        "cannot read the key {path} ({error}): name a file that `prescient token --new-key` made"
    )]
    Read {
        /// Its path as it was given.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// The file has no key in it.
    #[error("{path}: {error}")]
    Key {
        /// Its path as it was given.
        path: String,
        /// What is wrong with it.
        error: TextError,
    },
    /// A key is made once.
    #[error(
        "{0} exists: choose another name, or remove it if no backend and no server uses that key"
    )]
    Exists(String),
    /// Something cannot be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// Its path as it was given.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// A server is nowhere.
    #[error(transparent)]
    Server(#[from] AddressError),
    /// A token cannot hold all this.
    #[error("cannot make this token: {0}")]
    Grant(#[from] TokenError),
    /// There is no randomness.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// A text names no protocol.
#[derive(Debug, thiserror::Error)]
#[error("give 32 hexadecimal digits, or a text of 1 to 16 bytes")]
struct NoProtocol;

/// Makes a key, a token, or whatever of them was asked for.
pub fn token(options: &TokenOptions) -> Result<(), IssueError> {
    let mut entropy = SystemEntropy::new()?;
    if let Some(path) = &options.new_key {
        write_private(path, &new_key(&mut entropy))?;
    }
    match &options.grant {
        Some(grant) => issue(grant, &mut entropy),
        None => Ok(()),
    }
}

fn issue(options: &GrantOptions, entropy: &mut SystemEntropy) -> Result<(), IssueError> {
    let key = read_key(&options.key)?;
    let grant = Grant {
        client: ClientId(options.client),
        protocol: options.protocol,
        servers: servers(&options.server)?,
        expires: UnixTime(Clock::unix().0.saturating_add(options.expires)),
        data: options.data.clone().into_bytes(),
    };
    let token = token_to_text(&grant.issue(&key, entropy)?);
    let Some(path) = &options.output else {
        let mut output = io::stdout().lock();
        return writeln!(output, "{}", *token).map_err(|error| IssueError::Write {
            path: "to standard output".to_owned(),
            error,
        });
    };
    // A token of before is of no use; a new file is sure to have the right permissions.
    let _ = fs::remove_file(path);
    write_private(path, &token)
}

/// The protocol by its name: all of its bytes in hexadecimal, or as text, filled up with zeros.
fn protocol(text: &str) -> Result<ProtocolId, NoProtocol> {
    let mut id = [0; 16];
    if text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        for (byte, digits) in id.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digits = str::from_utf8(digits).map_err(|_| NoProtocol)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| NoProtocol)?;
        }
    } else {
        let start = id.get_mut(..text.len()).filter(|start| !start.is_empty());
        start.ok_or(NoProtocol)?.copy_from_slice(text.as_bytes());
    }
    Ok(ProtocolId(id))
}

fn servers(names: &[String]) -> Result<Vec<SocketAddr>, IssueError> {
    let mut servers = Vec::new();
    for name in names {
        servers.extend(resolve(name)?);
    }
    Ok(servers)
}

/// The key in a file that `prescient token --new-key` made.
pub fn read_key(path: &Path) -> Result<TokenKey, IssueError> {
    let name = path.display().to_string();
    match fs::read_to_string(path) {
        Ok(text) => key_from_text(&text).map_err(|error| IssueError::Key { path: name, error }),
        Err(error) => Err(IssueError::Read { path: name, error }),
    }
}

/// Writes a line into a new file that only its owner can read.
fn write_private(path: &Path, text: &str) -> Result<(), IssueError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options
        .open(path)
        .and_then(|mut file| writeln!(file, "{text}"));
    let path = path.display().to_string();
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => IssueError::Exists(path),
        _ => IssueError::Write { path, error },
    })
}
