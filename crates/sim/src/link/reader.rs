//! Reading from a socket until told to stop.
//!
//! The standard library cannot wait for a socket and for something else at once, so every socket
//! has a thread, and a time limit after which that looks whether it is still wanted.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// A thread that reads from a socket until it is told to stop or nobody wants what it reads.
pub(super) struct Reader {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// Hands everything to `take`, until that says no.
    pub fn start(
        socket: Arc<UdpSocket>,
        mut take: impl FnMut(SocketAddr, Vec<u8>) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        // How long it takes to notice that it has to stop.
        socket.set_read_timeout(Some(Duration::from_millis(20)))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::Builder::new()
            .name("link conditioner, reading".to_owned())
            .spawn(move || {
                let mut buffer = vec![0; LARGEST_DATAGRAM];
                while !stopped.load(Ordering::Relaxed) {
                    let wanted = match socket.recv_from(&mut buffer) {
                        Ok((length, from)) => take(from, buffer[..length].to_vec()),
                        Err(error) => passes(&error),
                    };
                    if !wanted {
                        return;
                    }
                }
            })?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }

    /// Tells it to end, which takes a moment.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until it has ended.
    pub fn join(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Whether reading can go on: there is nothing to read, or nobody was there for what was sent.
fn passes(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionRefused, ConnectionReset, HostUnreachable, Interrupted, NetworkUnreachable,
        TimedOut, WouldBlock,
    };
    matches!(
        error.kind(),
        ConnectionRefused
            | ConnectionReset
            | HostUnreachable
            | Interrupted
            | NetworkUnreachable
            | TimedOut
            | WouldBlock
    )
}

const LARGEST_DATAGRAM: usize = 65_536;
