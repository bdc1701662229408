//! The interface that a client and a server have in common.
//!
//! The rest of this crate drives a [`Machine`] without knowing which of the two it is; users call
//! all other methods of it directly.

use std::net::SocketAddr;

use prescient_channels::{Reception, Time};
use prescient_transport::{Client, ClientEvent, Entropy, Server, ServerEvent, Transmit, UnixTime};

/// A [`Client`] or a [`Server`]: a state machine that takes datagrams and time, and returns
/// datagrams and events. Programs do not implement it.
pub trait Machine: sealed::Sealed {
    /// The events that it reports.
    type Event;

    /// Handles a received datagram.
    fn handle_datagram(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        clocks: ClockReading,
        entropy: &mut dyn Entropy,
    );

    /// Handles everything that is due.
    fn handle_timeout(&mut self, now: Time);

    /// When to call [`handle_timeout`](Self::handle_timeout).
    fn next_timeout(&self) -> Option<Time>;

    /// The next datagram to send.
    fn poll_transmit(&mut self, now: Time) -> Option<Transmit>;

    /// The next event.
    fn poll_event(&mut self) -> Option<Self::Event>;
}

/// Readings of both clocks when a datagram was handled.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    /// The monotonic clock.
    pub now: Time,
    /// The wall clock.
    pub unix: UnixTime,
    /// What the socket says of the datagram.
    pub reception: Reception,
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
        self.handle_waiting_datagram(from, bytes, clocks.reception, clocks.now);
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
        let ClockReading {
            now,
            unix,
            reception,
        } = clocks;
        self.handle_waiting_datagram(from, bytes, reception, now, unix, entropy);
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
