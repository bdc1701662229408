//! A server on a real socket ends in time, whatever its clients do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::common::{Arena, PATIENCE, PROTOCOL, token};
use prescient_channels::*;
use prescient_net::{BlockingClient, JoinError};
use prescient_transport::*;

/// Three clients are connected, and as many threads try to connect again and again while the server
/// ends.
///
/// Fails if `close_all` admits new clients (without `self.closing = true`): some of them connect.
#[test]
fn who_comes_back_does_not_keep_it() {
    let mut arena = Arena::new("127.0.0.1:0");
    arena.join_three();
    let (address, ended) = (arena.server.address(), AtomicBool::new(false));
    arena
        .server
        .with(|server, now| server.close_all(CloseReason::ShuttingDown, now));
    thread::scope(|scope| {
        let come_back = || {
            let mut turned_away = 0;
            while !ended.load(Ordering::Relaxed) {
                let client =
                    BlockingClient::start(token(9, address), PROTOCOL, LinkConfig::default());
                let mut client = client.expect("a socket");
                let event = loop {
                    if ended.load(Ordering::Relaxed) {
                        return turned_away;
                    }
                    if let Some(event) = client.wait(Duration::from_millis(5)) {
                        break event;
                    }
                };
                let closing = ClientEvent::Failed(ConnectError::Denied(Denial::Closing));
                assert_eq!(event, closing);
                turned_away += 1;
            }
            turned_away
        };
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(come_back)).collect();
        arena.server.finish();
        assert_eq!(arena.server.machine().footprint().connections, 0);
        ended.store(true, Ordering::Relaxed);
        let turned_away: u32 = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum();
        assert_ne!(turned_away, 0);
    });
}

/// Fails if `finish` waits as long as there is anything to do: this connection is not closed.
#[test]
fn even_where_nobody_was_sent_away() {
    let (done, ends) = mpsc::channel();
    thread::spawn(move || {
        let mut arena = Arena::new("127.0.0.1:0");
        arena.join_three();
        arena.server.finish();
        let _ = done.send(arena.server.machine().clients().count());
    });
    assert_eq!(ends.recv_timeout(PATIENCE), Ok(3));
}

/// The error that a program shows. Fails if `explain` reports a denial as a timeout.
#[test]
fn who_comes_too_late_is_told_so() {
    let mut arena = Arena::new("127.0.0.1:0");
    let client = arena.join(arena.server.address());
    arena
        .server
        .with(|server, now| server.close_all(CloseReason::ShuttingDown, now));
    let denied = ClientEvent::Failed(ConnectError::Denied(Denial::Closing));
    arena.run_until("it is turned away", |arena| {
        arena.client_events[client].contains(&denied)
    });
    let error = arena.clients[client].explain(ConnectError::Denied(Denial::Closing));
    assert!(matches!(error, JoinError::Denied(Denial::Closing)));
    assert_eq!(
        error.to_string(),
        "the server is closing: try again when it is back, or elsewhere"
    );
}
