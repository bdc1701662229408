//! Waiting in the socket, which blocks the caller's thread.

use std::io;
use std::time::Duration;

use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};
use prescient_channels::Time;
use prescient_transport::{Client, Server};
use quinn_udp::UdpSockRef;

use crate::driver::{Driver, MAX_FINISH};
use crate::error::OpenError;
use crate::machine::Machine;
use crate::port::Waitable;
use crate::socket::Socket;

/// A server that blocks the thread while it waits.
pub type BlockingServer = Driver<Server, Blocking>;

/// A client that blocks the thread while it waits.
pub type BlockingClient = Driver<Client, Blocking>;

/// A socket with a `Poll` to wait in.
pub struct Blocking {
    socket: UdpSocket,
    poll: Poll,
    events: Events,
    wants_to_send: bool,
}

impl<M: Machine> Driver<M, Blocking> {
    /// The next event. Waits for it until `deadline` on the clock of [`now`](Self::now), and then
    /// returns `None`.
    ///
    /// Systems wake threads with a precision of a millisecond, and late rather than early.
    pub fn wait_until(&mut self, deadline: Time) -> Option<M::Event> {
        loop {
            if let Some(event) = self.poll() {
                return Some(event);
            }
            let pause = self.pause(deadline)?;
            self.port.socket.sleep(pause, self.is_blocked);
        }
    }

    /// The next event within this time.
    pub fn wait(&mut self, span: Duration) -> Option<M::Event> {
        self.wait_until(self.now().after(span))
    }

    /// Runs until closed connections have sent their close packets, for at most a second, whatever
    /// arrives and even if connections are still open. Events meanwhile are discarded.
    pub fn finish(&mut self) {
        let end = self.now().after(MAX_FINISH);
        while self.now() < end
            && let Some(due) = self.machine().next_timeout()
        {
            let _ = self.wait_until(due.min(end));
        }
    }
}

/// The socket, for programs that also wait for others. Do not mix this with [`wait`](Driver::wait),
/// which may consume the readiness of the socket.
#[cfg(unix)]
impl<M> std::os::fd::AsFd for Driver<M, Blocking> {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.port.socket.socket.as_fd()
    }
}

impl Blocking {
    pub(crate) fn sleep(&mut self, span: Duration, wants_to_send: bool) {
        if wants_to_send != self.wants_to_send {
            let registry = self.poll.registry();
            let changed = registry.reregister(&mut self.socket, SOCKET, interest(wants_to_send));
            if changed.is_ok() {
                self.wants_to_send = wants_to_send;
            }
        }
        // A signal ends the wait early; then the caller polls again.
        let _ = self.poll.poll(&mut self.events, Some(span));
    }
}

impl Waitable for Blocking {
    fn adopt(socket: Socket) -> Result<Self, OpenError> {
        let address = socket.address();
        let mut socket = UdpSocket::from_std(socket.inner);
        let mut register = || {
            let poll = Poll::new()?;
            let registry = poll.registry();
            registry.register(&mut socket, SOCKET, interest(false))?;
            Ok(poll)
        };
        let poll = register().map_err(|error| OpenError::new(address, error))?;
        Ok(Self {
            socket,
            poll,
            events: Events::with_capacity(4),
            wants_to_send: false,
        })
    }

    fn receive<R>(&self, call: impl FnOnce(UdpSockRef<'_>) -> io::Result<R>) -> io::Result<R> {
        self.socket.try_io(|| call(self.reference()))
    }

    fn send<R>(&self, call: impl FnOnce(UdpSockRef<'_>) -> io::Result<R>) -> io::Result<R> {
        self.socket.try_io(|| call(self.reference()))
    }

    fn reference(&self) -> UdpSockRef<'_> {
        UdpSockRef::from(&self.socket)
    }

    #[cfg(target_os = "linux")]
    fn descriptor(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.socket)
    }
}

/// A socket is nearly always writable, so that is waited for only after a send would have blocked.
fn interest(wants_to_send: bool) -> Interest {
    if wants_to_send {
        Interest::READABLE | Interest::WRITABLE
    } else {
        Interest::READABLE
    }
}

const SOCKET: Token = Token(0);
