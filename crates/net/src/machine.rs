//! The one place that knows the verbs of the machines.
//!
//! Everything else of this crate drives a [`Machine`] without knowing which one; what a machine
//! can do beyond that, its user asks it for directly.

use std::net::SocketAddr;

use prescient_transport::{
    Client, ClientEvent, Entropy, Server, ServerEvent, Time, Transmit, UnixTime,
};

/// A [`Client`] or a [`Server`]: something that datagrams and time go into and that datagrams and
/// events come out of. Programs do not implement it.
pub trait Machine: sealed::Sealed {
    /// What it reports.
    type Event;

    /// Takes a datagram that arrived.
    fn handle_datagram(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        clocks: ClockReading,
        entropy: &mut dyn Entropy,
    );

    /// Does what time demands.
    fn handle_timeout(&mut self, now: Time);

    /// When it wants that.
    fn next_timeout(&self) -> Option<Time>;

    /// The next datagram to send.
    fn poll_transmit(&mut self, now: Time) -> Option<Transmit>;

    /// The next thing that happened.
    fn poll_event(&mut self) -> Option<Self::Event>;
}

/// What the two clocks showed when something arrived.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    /// The monotonic one.
    pub now: Time,
    /// The one on the wall.
    pub unix: UnixTime,
}

impl Machine for Client {
    type Event = ClientEvent;

    fn handle_datagram(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        clocks: ClockReading,
        _: &mut dyn Entropy,
    ) {
        self.handle_datagram(from, bytes, clocks.now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.handle_timeout(now);
    }

    fn next_timeout(&self) -> Option<Time> {
        self.next_timeout()
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        self.poll_transmit(now)
    }

    fn poll_event(&mut self) -> Option<ClientEvent> {
        self.poll_event()
    }
}

impl Machine for Server {
    type Event = ServerEvent;

    fn handle_datagram(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        clocks: ClockReading,
        entropy: &mut dyn Entropy,
    ) {
        self.handle_datagram(from, bytes, clocks.now, clocks.unix, entropy);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.handle_timeout(now);
    }

    fn next_timeout(&self) -> Option<Time> {
        self.next_timeout()
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        self.poll_transmit(now)
    }

    fn poll_event(&mut self) -> Option<ServerEvent> {
        self.poll_event()
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for prescient_transport::Client {}
    impl Sealed for prescient_transport::Server {}
}
