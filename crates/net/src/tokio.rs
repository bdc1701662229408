//! Waiting on tokio, so that others can work meanwhile.

use std::io;
use std::time::Duration;

use prescient_transport::{Client, Server, Time};
use quinn_udp::UdpSockRef;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::runtime::Handle;

use crate::driver::{Driver, MAX_FINISH};
use crate::error::OpenError;
use crate::machine::Machine;
use crate::port::Waitable;
use crate::socket::Socket;

/// A server on tokio.
pub type AsyncServer = Driver<Server, UdpSocket>;

/// A client on tokio.
pub type AsyncClient = Driver<Client, UdpSocket>;

impl<M: Machine> Driver<M, UdpSocket> {
    /// The next thing that happened; waits until there is something, or until `deadline` on the
    /// clock of [`now`](Self::now), and then there is `None`.
    ///
    /// Whoever stops waiting early, in `select!` for example, misses nothing.
    pub async fn wait_until(&mut self, deadline: Time) -> Option<M::Event> {
        loop {
            if let Some(event) = self.poll() {
                return Some(event);
            }
            let pause = self.pause(deadline)?;
            if pause.is_zero() {
                tokio::task::yield_now().await;
                continue;
            }
            let interest = if self.is_blocked {
                Interest::READABLE | Interest::WRITABLE
            } else {
                Interest::READABLE
            };
            // Whatever ended it, the next look tells.
            let _ = tokio::time::timeout(pause, self.port.socket.ready(interest)).await;
        }
    }

    /// The next thing that happened within this time.
    pub async fn wait(&mut self, span: Duration) -> Option<M::Event> {
        self.wait_until(self.now().after(span)).await
    }

    /// Goes on until the machine has nothing more to do, which it never has while it is connected:
    /// says the goodbyes of connections that were closed. Ends after a second, whatever arrives and
    /// whoever is still connected. What happens meanwhile is not told.
    pub async fn finish(&mut self) {
        let end = self.now().after(MAX_FINISH);
        while self.now() < end
            && let Some(due) = self.machine().next_timeout()
        {
            let _ = self.wait_until(due.min(end)).await;
        }
    }
}

impl Waitable for UdpSocket {
    fn adopt(socket: Socket) -> Result<Self, OpenError> {
        // Without a runtime the next line but one would panic.
        Handle::try_current().map_err(|_| OpenError::NoRuntime)?;
        let address = socket.address();
        Self::from_std(socket.inner).map_err(|error| OpenError::new(address, error))
    }

    fn receive<R>(&self, call: impl FnOnce(UdpSockRef<'_>) -> io::Result<R>) -> io::Result<R> {
        self.try_io(Interest::READABLE, || call(self.reference()))
    }

    fn send<R>(&self, call: impl FnOnce(UdpSockRef<'_>) -> io::Result<R>) -> io::Result<R> {
        self.try_io(Interest::WRITABLE, || call(self.reference()))
    }

    fn reference(&self) -> UdpSockRef<'_> {
        UdpSockRef::from(self)
    }
}
