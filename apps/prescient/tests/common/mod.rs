//! A running demo, and a browser's side of HTTP.
#![allow(unreachable_pub, reason = "a module of a program of its own")]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;

/// A demo that runs until it is interrupted or dropped.
pub struct Demo {
    process: Child,
    /// Host and port of its page: `127.0.0.1:7777`.
    pub host: String,
}

impl Demo {
    /// Starts a demo, and returns when its page is served.
    pub fn start(port: u16) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_prescient"))
            .args(["demo", "--headless", "--json", "--port", &port.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary of this package");
        let mut line = String::new();
        let errors = process.stderr.as_mut().expect("piped");
        let read = BufReader::new(errors).read_line(&mut line);
        read.expect("it prints the page's address");
        let host = line.trim().strip_prefix("the page is at http://");
        let host = host.and_then(|host| host.strip_suffix('/'));
        let host = host.unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { process, host }
    }

    /// Sends the signal of Ctrl-C; returns the exit status and the last line of output.
    #[cfg(unix)]
    pub fn interrupt(mut self) -> (ExitStatus, Value) {
        let number = self.process.id().to_string();
        let killed = Command::new("kill").args(["-INT", &number]).status();
        assert!(killed.expect("every Unix has it").success());
        let mut output = String::new();
        let standard = self.process.stdout.as_mut().expect("piped");
        standard.read_to_string(&mut output).expect("text");
        let status = self.process.wait().expect("it is a child process");
        let last = output.lines().last().expect("a line");
        (status, serde_json::from_str(last).expect("an object"))
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // After an interrupt the process has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends a request with this head.
pub fn ask(host: &str, head: &str, body: &str) -> io::Result<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(Duration::from_secs(90)))?;
    write!(stream, "{head}\r\n\r\n{body}")?;
    Ok(BufReader::new(stream))
}

/// The head and the body of a response with a length.
pub fn answer(host: &str, head: &str, body: &str) -> io::Result<(String, String)> {
    let mut stream = ask(host, head, body)?;
    let (mut head, mut length) = (String::new(), 0);
    // Up to the empty line after the head.
    while stream.read_line(&mut head)? > 2 {
        let line = head.lines().last().unwrap_or_default().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok((head, String::from_utf8(body).map_err(io::Error::other)?))
}
