//! Parses the requests of browsers.

use std::io::{self, Read};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use prescient_net::Clock;

/// A valid request from this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The path without the query.
    pub path: String,
    query: String,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No request arrived in time.
    Gone,
    /// It is not an HTTP request.
    Malformed,
    /// It is longer than any request of the page.
    TooLong,
    /// Its method is not GET.
    NotAllowed,
    /// Its host is not this machine: a site whose name resolves to loopback, so that its scripts
    /// could read this page (DNS rebinding).
    Misdirected,
}

impl Refusal {
    /// The HTTP status of the response.
    pub(super) fn status(self) -> &'static str {
        match self {
            Self::Gone => "408 Request Timeout",
            Self::Malformed => "400 Bad Request",
            Self::TooLong => "431 Request Header Fields Too Large",
            Self::NotAllowed => "405 Method Not Allowed",
            Self::Misdirected => "421 Misdirected Request",
        }
    }
}

impl Request {
    /// Reads a request, until the time limit or the end of the demo.
    pub(super) fn read(
        stream: &mut TcpStream,
        is_over: impl Fn() -> bool,
    ) -> Result<Self, Refusal> {
        let clock = Clock::start();
        let timed = stream.set_read_timeout(Some(POLL_INTERVAL));
        timed.map_err(|_| Refusal::Gone)?;
        let mut bytes = Vec::new();
        let mut part = [0; 1024];
        loop {
            match stream.read(&mut part) {
                Ok(0) => return Err(Refusal::Gone),
                Ok(length) => bytes.extend_from_slice(&part[..length]),
                Err(error) if waits(&error) => {}
                Err(_) => return Err(Refusal::Gone),
            }
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                return Self::parse(&bytes[..end]);
            }
            if bytes.len() > MAX_REQUEST {
                return Err(Refusal::TooLong);
            }
            if is_over() || clock.now().as_micros() > LATEST {
                return Err(Refusal::Gone);
            }
        }
    }

    /// The client to show; 0 if the query names none.
    pub(super) fn client(&self) -> usize {
        let mut parts = self.query.split('&');
        let number = parts.find_map(|part| part.strip_prefix("client=")?.parse().ok());
        number.unwrap_or(0)
    }

    fn parse(head: &[u8]) -> Result<Self, Refusal> {
        let head = str::from_utf8(head).map_err(|_| Refusal::Malformed)?;
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(Refusal::Malformed);
        };
        if method != "GET" {
            return Err(Refusal::NotAllowed);
        }
        let fields = lines.filter_map(|line| line.split_once(':'));
        let mut hosts = fields.filter(|(name, _)| name.eq_ignore_ascii_case("host"));
        match (hosts.next(), hosts.next()) {
            (Some((_, host)), None) if is_loopback(host.trim()) => {}
            (Some(_), None) => return Err(Refusal::Misdirected),
            _ => return Err(Refusal::Malformed),
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Ok(Self {
            path: path.to_owned(),
            query: query.to_owned(),
        })
    }
}

/// Reads after a refusal until the browser has sent everything: closing a connection with unread
/// data would reset it and lose the response.
pub(super) fn drain(stream: &mut TcpStream, is_over: impl Fn() -> bool) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    let clock = Clock::start();
    let mut unread = [0; 1024];
    while !is_over() && clock.now().as_micros() <= LATEST {
        match stream.read(&mut unread) {
            Ok(0) => break,
            Err(error) if !waits(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a host, with or without a port, is a loopback name that no remote site can have.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    ["127.0.0.1", "[::1]"].contains(&name) || name.eq_ignore_ascii_case("localhost")
}

/// Whether there is nothing to read at the moment.
fn waits(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

/// Maximum size of a request, approximately.
const MAX_REQUEST: usize = 8192;
/// Time limit of a request, in microseconds.
const LATEST: u64 = 5_000_000;
/// Maximum delay until the end of the demo is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(head: &str) -> Result<Request, Refusal> {
        Request::parse(head.as_bytes())
    }

    /// Fails if any host is accepted (`is_loopback` returns true), or only hosts without a port.
    #[test]
    fn only_names_of_this_machine_are_answered() {
        let asked = |host: &str| parse(&format!("GET / HTTP/1.1\r\nHost: {host}"));
        for host in [
            "127.0.0.1:7777",
            "localhost",
            "LOCALHOST:1",
            "[::1]:80",
            "[::1]",
        ] {
            assert!(asked(host).is_ok(), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:7777",
            "127.0.0.1.evil.example",
            "localhost.evil.example:7777",
            "localhost:evil",
            "127.0.0.1@evil.example",
            "",
        ] {
            assert_eq!(asked(host), Err(Refusal::Misdirected), "{host}");
        }
        let twice = "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example";
        assert_eq!(parse(twice), Err(Refusal::Malformed));
        assert_eq!(parse("GET / HTTP/1.1"), Err(Refusal::Malformed));
    }

    /// Fails if methods other than GET are accepted.
    #[test]
    fn requests_only_read() {
        let post = parse("POST / HTTP/1.1\r\nHost: localhost");
        assert_eq!(post, Err(Refusal::NotAllowed));
        for nonsense in ["", "GET", "GET /", "GET / HTTP/3", "GET / x HTTP/1.1"] {
            assert_eq!(parse(nonsense), Err(Refusal::Malformed), "{nonsense}");
        }
    }

    /// Fails if the path includes the query, or if the client is not read from the query.
    #[test]
    fn a_client_is_named_by_its_number() {
        let asked = |target: &str| {
            let request = parse(&format!("GET {target} HTTP/1.1\r\nhost: localhost:7777"));
            let request = request.expect("sound");
            (request.path.clone(), request.client())
        };
        assert_eq!(asked("/frames?a=1&client=11"), ("/frames".to_owned(), 11));
        assert_eq!(asked("/frames?client=-1"), ("/frames".to_owned(), 0));
        assert_eq!(asked("/"), ("/".to_owned(), 0));
    }
}
