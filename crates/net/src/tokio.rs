//! Waiting on tokio, which lets other tasks run meanwhile.

use std::io;
use std::time::Duration;

use prescient_channels::Time;
use prescient_transport::{Client, Server};
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
    /// The next event. Waits for it until `deadline` on the clock of [`now`](Self::now), and then
    /// returns `None`.
    ///
    /// Cancelling the future, in `select!` for example, loses no event.
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
            // The next poll finds out what ended the wait.
            let _ = tokio::time::timeout(pause, self.port.socket.ready(interest)).await;
        }
    }

    /// The next event within this time.
    pub async fn wait(&mut self, span: Duration) -> Option<M::Event> {
        self.wait_until(self.now().after(span)).await
    }

    /// Runs until closed connections have sent their close packets, for at most a second, whatever
    /// arrives and even if connections are still open. Events meanwhile are discarded.
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
        // `from_std` panics without a runtime.
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

    #[cfg(target_os = "linux")]
    fn descriptor(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(self)
    }
}
