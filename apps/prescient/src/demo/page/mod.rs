//! The page that shows the demo, served to browsers on this machine.
//!
//! A few fixed files and one stream of server-sent events need no web framework: building one would
//! add a quarter to the time of a newcomer's first build. This server is for loopback only: one
//! thread per connection, one request each, and only GET.

mod frames;
mod request;
mod visitors;

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use frames::Frames;
use request::{Refusal, Request};
use visitors::{Visit, Visitors};

use super::board::Board;

/// The page's server, which runs until it is closed.
pub(super) struct Page {
    address: SocketAddr,
    thread: JoinHandle<()>,
}

impl Page {
    /// Listens on this port, on one of the next if it is taken, or on any if they all are.
    pub(super) fn open(port: u16, board: Arc<Board>) -> io::Result<Self> {
        let ports = (port..=port.saturating_add(9)).chain([0]);
        let mut listener = Err(io::ErrorKind::AddrInUse.into());
        for port in ports {
            listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
            match &listener {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                _ => break,
            }
        }
        let listener = listener?;
        let address = listener.local_addr()?;
        let thread = thread::Builder::new().name("page".to_owned());
        let thread = thread.spawn(move || serve(&listener, &board))?;
        Ok(Self { address, thread })
    }

    /// The address to open in a browser.
    pub(super) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Waits until all browsers were sent the end, which the board must have announced before.
    pub(super) fn close(self) {
        // `accept` blocks, so the listener notices the end with its next connection.
        let _ = TcpStream::connect(self.address);
        let _ = self.thread.join();
    }
}

fn serve(listener: &TcpListener, board: &Board) {
    let visitors = Visitors::default();
    thread::scope(|scope| {
        for stream in listener.incoming() {
            if board.is_over() {
                return;
            }
            if let Ok(stream) = stream
                && let Some(visit) = visitors.enter(&stream)
            {
                // An error means that the browser is gone, so it is not reported.
                scope.spawn(move || drop(answer(stream, &visit, board)));
            }
        }
    });
}

fn answer(mut stream: TcpStream, visit: &Visit<'_>, board: &Board) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = match Request::read(&mut stream, || board.is_over()) {
        Ok(request) => request,
        Err(Refusal::Gone) => return Ok(()),
        Err(refusal) => {
            send(&mut stream, refusal.status(), "text/plain", "no\n")?;
            return request::drain(&mut stream, || board.is_over());
        }
    };
    visit.has_asked();
    let file = FILES.iter().find(|(path, ..)| *path == request.path);
    match (file, request.path.as_str()) {
        (Some((_, kind, text)), _) => send(&mut stream, "200 OK", kind, text),
        (None, "/frames") => {
            stream.write_all(head("200 OK", "text/event-stream", None).as_bytes())?;
            Frames::new(board, request.client()).send_all(&mut stream)
        }
        _ => send(&mut stream, "404 Not Found", "text/plain", "no such page\n"),
    }
}

fn send(stream: &mut TcpStream, status: &str, kind: &str, text: &str) -> io::Result<()> {
    let head = head(status, kind, Some(text.len()));
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())
}

fn head(status: &str, kind: &str, length: Option<usize>) -> String {
    let length = length.map_or(String::new(), |length| {
        format!("Content-Length: {length}\r\n")
    });
    format!(
        "HTTP/1.1 {status}\r\n\
         Content-Type: {kind}; charset=utf-8\r\n\
         {length}\
         Cache-Control: no-store\r\n\
         Content-Security-Policy: default-src 'self'; frame-ancestors 'none'\r\n\
         X-Content-Type-Options: nosniff\r\n\
         Connection: close\r\n\r\n"
    )
}

/// The page's files by path.
const FILES: [(&str, &str, &str); 4] = [
    ("/", "text/html", include_str!("index.html")),
    ("/page.css", "text/css", include_str!("page.css")),
    ("/page.js", "text/javascript", include_str!("page.js")),
    ("/icon.svg", "image/svg+xml", include_str!("icon.svg")),
];
/// Time limit of a write to a browser.
const PATIENCE: Duration = Duration::from_secs(1);
