//! `prescient token`: issues keys and tokens by hand, as a game's backend would.
//!
//! A key is made once and shared by the backend and its servers; a token is made for one player and
//! one session. Both are secrets, so files are readable by their owner only.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use prescient_channels::ClientId;
use prescient_net::{
    AddressError, Clock, OpenError, SystemEntropy, TextError, key_from_text, new_key, resolve,
    token_to_text,
};
use prescient_transport::{Grant, ProtocolId, TokenError, TokenKey, UnixTime};

/// Options of `prescient token`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TokenOptions {
    /// Write a new key to FILE, and do nothing else.
    #[arg(long, value_name = "FILE", exclusive = true)]
    pub new_key: Option<PathBuf>,
    /// Contents of the token.
    #[command(flatten)]
    pub grant: Option<GrantOptions>,
}

/// Contents of a token.
#[derive(Args, Clone, Debug)]
pub(crate) struct GrantOptions {
    /// The key that the server uses, as `--new-key` wrote it.
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// The player's account id, which the server reads from the token.
    #[arg(long, value_name = "ID")]
    pub client: u64,
    /// Server address as host:port; may be repeated, and clients try the addresses in this order.
    #[arg(long, value_name = "ADDRESS", required = true)]
    pub server: Vec<String>,
    /// Seconds for which the token can be used to connect.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub expires: u64,
    /// Protocol id that both ends must share: 32 hexadecimal digits, or a text of up to 16 bytes.
    #[arg(
        long,
        value_name = "HEX|TEXT",
        value_parser = protocol
    )]
    pub protocol: ProtocolId,
    /// Data for the game's server; the player can neither read nor change it.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub data: String,
    /// File to write the token to; standard output by default.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Why no token or key was issued.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// The key cannot be read.
    #[error(
        "cannot read the key {path} ({error}): name a file that `prescient token --new-key` made"
    )]
    Read {
        /// Its path as given.
        path: String,
        /// The cause.
        error: io::Error,
    },
    /// The file contains no key.
    #[error("{path}: {error}")]
    Key {
        /// Its path as given.
        path: String,
        /// The cause.
        error: TextError,
    },
    /// The key's file exists; it is never overwritten.
    #[error(
        "{0} exists: choose another name, or remove it if no backend and no server uses that key"
    )]
    Exists(String),
    /// A file could not be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// Its path as given.
        path: String,
        /// The cause.
        error: io::Error,
    },
    /// A server's address cannot be resolved.
    #[error(transparent)]
    Server(#[from] AddressError),
    /// The contents do not fit into a token.
    #[error("cannot make this token: {0}")]
    Grant(#[from] TokenError),
    /// The system provides no randomness.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// The text is not a protocol id.
#[derive(Debug, thiserror::Error)]
#[error("expected 32 hexadecimal digits, or a text of 1 to 16 bytes")]
struct NoProtocol;

/// Issues a key or a token.
pub(crate) fn token(options: &TokenOptions) -> Result<(), IssueError> {
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
    // An old token is of no use; a new file is certain to have the right permissions.
    let _ = fs::remove_file(path);
    write_private(path, &token)
}

/// Parses a protocol id: 32 hexadecimal digits, or a text padded with zeros.
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

/// Reads a key from a file written by `prescient token --new-key`.
pub(crate) fn read_key(path: &Path) -> Result<TokenKey, IssueError> {
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
