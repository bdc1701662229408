//! Drives a machine (a client or a server) with a socket and the clocks.
//!
//! The drivers differ only in how they wait: `blocking` blocks the thread, `tokio` yields to other
//! tasks.

use std::net::SocketAddr;
use std::time::Duration;

use prescient_channels::{Reception, Time};
use prescient_transport::{Server, ServerConfig, UnixTime};

use crate::clock::{Clock, SystemEntropy};
use crate::error::{OpenError, SendFailure};
use crate::incoming::{Envelope, Incoming};
use crate::machine::{ClockReading, Machine};
use crate::outgoing::{Destination, Outgoing};
use crate::port::{Port, Receipt, Waitable};
use crate::socket::Socket;
use crate::statistics::SocketStatistics;

/// A [`Client`](prescient_transport::Client) or a [`Server`] on a socket. Use it by the names
/// [`BlockingClient`](crate::BlockingClient), [`BlockingServer`](crate::BlockingServer) and, with
/// the feature `tokio`, `AsyncClient` and `AsyncServer`.
///
/// The machine is available through [`with`](Self::with). What it queues is sent by the next
/// `flush`, `poll` or wait, so that messages that are queued together share packets.
pub struct Driver<M, W> {
    pub(crate) machine: M,
    pub(crate) port: Port<W>,
    clock: Clock,
    /// When datagrams were last received.
    reading: Reading,
    /// When the socket last had none.
    idle: Time,
    entropy: SystemEntropy,
    incoming: Incoming,
    outgoing: Outgoing,
    pub(crate) destination: Destination,
    statistics: SocketStatistics,
    /// The socket's send buffer is full.
    pub(crate) is_blocked: bool,
    /// The socket may have more datagrams.
    is_behind: bool,
    /// The work since `poll` last returned `None`.
    turn: Turn,
}

/// When a batch of datagrams was read from the socket.
#[derive(Clone, Copy)]
struct Reading {
    now: Time,
    /// The wall clock, since 1970.
    wall: Duration,
}

impl Reading {
    fn take(clock: &Clock) -> Self {
        Self {
            now: clock.now(),
            wall: Clock::since_1970(),
        }
    }

    fn unix(&self) -> UnixTime {
        UnixTime(self.wall.as_secs())
    }

    /// How long a datagram has waited until `now` that arrived at `arrived` on the wall clock, but
    /// not before the socket was `idle`. The wall clock may have been set meanwhile.
    fn waited(&self, arrived: Option<Duration>, idle: Time, now: Time) -> Duration {
        let in_socket = arrived.map(|arrived| self.wall.saturating_sub(arrived));
        let in_socket = in_socket.unwrap_or_default().min(self.now.since(idle));
        in_socket + now.since(self.now)
    }
}

/// The work of `poll` before it returns to the caller. It is bounded in datagrams, of which one
/// system call may return two thousand, and in time, because datagrams differ in cost.
#[derive(Default)]
struct Turn {
    /// Datagrams handled and calls to receive.
    steps: u32,
    /// Time spent on them, without the caller's handling of events.
    spent: Duration,
}

impl Turn {
    fn is_over(&self, since: Duration) -> bool {
        self.steps >= MAX_STEPS || self.spent + since >= MAX_TURN
    }
}

impl<W: Waitable> Driver<Server, W> {
    /// A server on a socket. Its public address belongs into [`ServerConfig::new`].
    pub fn new(socket: Socket, config: ServerConfig) -> Result<Self, OpenError> {
        let make = |entropy: &mut SystemEntropy, now| Ok(Server::new(config, entropy, now)?);
        Self::with_machine(socket, false, make)
    }
}

impl<M: Machine, W: Waitable> Driver<M, W> {
    pub(crate) fn with_machine<E: From<OpenError>>(
        socket: Socket,
        curious: bool,
        make: impl FnOnce(&mut SystemEntropy, Time) -> Result<M, E>,
    ) -> Result<Self, E> {
        let clock = Clock::start();
        let mut entropy = SystemEntropy::new()?;
        Ok(Self {
            machine: make(&mut entropy, clock.now())?,
            port: Port::new(socket, curious)?,
            reading: Reading::take(&clock),
            idle: clock.now(),
            clock,
            entropy,
            incoming: Incoming::new(),
            outgoing: Outgoing::new(),
            destination: Destination::NONE,
            statistics: SocketStatistics::default(),
            is_blocked: false,
            is_behind: false,
            turn: Turn::default(),
        })
    }

    /// The next event, without waiting. `None` if there is none, or after so much work that the
    /// caller should do its own before the rest.
    pub fn poll(&mut self) -> Option<M::Event> {
        let begun = self.clock.now();
        let mut now = begun;
        loop {
            // No datagram is handled before the last event is taken: what the program has no time
            // for waits in the bounded socket buffer, and the machine never has to drop events.
            if let Some(event) = self.machine.poll_event() {
                self.turn.spent += now.since(begun);
                return Some(event);
            }
            if self.turn.is_over(now.since(begun)) {
                return self.end_turn(true);
            }
            self.turn.steps += 1;
            if let Some((from, bytes, Envelope { arrived, is_marked })) = self.incoming.next() {
                self.statistics.received(bytes.len());
                if from == self.destination.address {
                    self.destination.failure = None;
                }
                now = self.clock.now();
                let clocks = ClockReading {
                    now,
                    unix: self.reading.unix(),
                    reception: Reception {
                        waited: self.reading.waited(arrived, self.idle, now),
                        is_marked,
                    },
                };
                self.machine
                    .handle_datagram(from, bytes, clocks, &mut self.entropy);
                continue;
            }
            self.flush();
            if !self.receive() {
                return self.end_turn(false);
            }
            now = self.clock.now();
        }
    }

    fn end_turn(&mut self, is_behind: bool) -> Option<M::Event> {
        self.is_behind = is_behind;
        self.turn = Turn::default();
        if is_behind {
            self.flush();
        }
        self.machine.poll_event()
    }

    /// Sends what waits to be sent, and handles timeouts.
    pub fn flush(&mut self) {
        let now = self.clock.now();
        if self.machine.next_timeout().is_some_and(|due| due <= now) {
            self.machine.handle_timeout(now);
        }
        self.is_blocked = !self.outgoing.flush(
            self.port.max_segments(),
            || self.machine.poll_transmit(now),
            |batch| self.port.send(batch),
            &mut self.statistics,
            &mut self.destination,
        );
    }

    /// Calls methods of the machine, which need the present time.
    pub fn with<R>(&mut self, use_it: impl FnOnce(&mut M, Time) -> R) -> R {
        use_it(&mut self.machine, self.clock.now())
    }

    /// The machine, for reading.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// This driver's clock.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// The local address of the socket.
    pub fn address(&self) -> SocketAddr {
        self.port.address
    }

    /// Statistics of this driver's sockets.
    pub fn statistics(&self) -> SocketStatistics {
        self.statistics
    }

    /// Receives a batch; whether there may be more.
    fn receive(&mut self) -> bool {
        self.statistics.receive_calls += 1;
        match self.port.receive(&mut self.incoming) {
            Receipt::Some => {
                self.reading = Reading::take(&self.clock);
                true
            }
            Receipt::Nothing => {
                self.idle = self.clock.now();
                false
            }
            Receipt::Failed => {
                self.statistics.receive_errors += 1;
                false
            }
            Receipt::Undelivered(error) => {
                self.statistics.undeliverable += 1;
                self.destination.failure = SendFailure::of(&error).or(self.destination.failure);
                true
            }
        }
    }

    /// How long to wait before the next poll; `None` once `deadline` has passed.
    pub(crate) fn pause(&self, deadline: Time) -> Option<Duration> {
        let now = self.clock.now();
        if now >= deadline {
            return None;
        }
        if self.is_behind {
            return Some(Duration::ZERO);
        }
        let due = self.machine.next_timeout().unwrap_or(deadline);
        Some(due.min(deadline).since(now))
    }

    /// Continues with another socket; datagrams that wait in the old one are lost.
    pub(crate) fn replace(&mut self, socket: Socket, curious: bool) -> Result<(), OpenError> {
        self.port = Port::new(socket, curious)?;
        Ok(())
    }
}

/// Closing takes a quarter of that.
pub(crate) const MAX_FINISH: Duration = Duration::from_secs(1);

/// More than a large server receives in a tick.
const MAX_STEPS: u32 = 2048;
/// Short compared to a tick.
const MAX_TURN: Duration = Duration::from_millis(3);

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io;
    use std::net::UdpSocket;

    use prescient_transport::{ProtocolId, TokenKey};
    use quinn_udp::{Transmit, UdpSockRef, UdpSocketState};

    use super::*;

    /// A socket that always has batches to receive; bounded, so that a driver that does not stop
    /// fails instead of hanging.
    struct Flooded {
        socket: UdpSocket,
        stranger: UdpSocket,
        sending: UdpSocketState,
        left: Cell<u32>,
    }

    impl Waitable for Flooded {
        fn adopt(socket: Socket) -> Result<Self, OpenError> {
            let address = socket.address();
            let stranger = Socket::towards(&[address])?;
            let sending = UdpSocketState::new(UdpSockRef::from(&stranger.inner));
            Ok(Self {
                socket: socket.inner,
                sending: sending.map_err(|error| OpenError::new(address, error))?,
                stranger: stranger.inner,
                left: Cell::new(10 * MAX_STEPS),
            })
        }

        fn receive<R>(&self, call: impl FnOnce(UdpSockRef<'_>) -> io::Result<R>) -> io::Result<R> {
            if let Some(left) = self.left.get().checked_sub(1) {
                self.left.set(left);
                // As many as the system sends in one call; it may deliver them as one batch.
                let batch = b"nonsense".repeat(self.sending.max_gso_segments());
                let transmit = Transmit {
                    destination: self.socket.local_addr()?,
                    ecn: None,
                    contents: &batch,
                    segment_size: Some(8),
                    src_ip: None,
                };
                self.sending
                    .try_send(UdpSockRef::from(&self.stranger), &transmit)?;
            }
            call(self.reference())
        }

        fn send<R>(&self, call: impl FnOnce(UdpSockRef<'_>) -> io::Result<R>) -> io::Result<R> {
            call(self.reference())
        }

        fn reference(&self) -> UdpSockRef<'_> {
            UdpSockRef::from(&self.socket)
        }

        #[cfg(target_os = "linux")]
        fn descriptor(&self) -> std::os::fd::BorrowedFd<'_> {
            std::os::fd::AsFd::as_fd(&self.socket)
        }
    }

    fn flooded_server() -> Driver<Server, Flooded> {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let socket = Socket::bind(address).expect("a free port");
        let key = TokenKey::insecure_for_loopback_tests();
        let config = ServerConfig::new(key, ProtocolId([0; 16]), vec![socket.address()]);
        Driver::new(socket, config).expect("a server")
    }

    /// Fails if `poll` continues as long as there are datagrams, if it counts calls instead of
    /// datagrams (`steps` counted after `receive` alone), or if it waits although there are more.
    #[test]
    fn a_flood_does_not_keep_the_caller() {
        let mut server = flooded_server();
        for turn in 1..=3 {
            assert_eq!(server.poll(), None);
            let received = server.statistics().datagrams_received;
            assert!(received > 0 && received <= turn * u64::from(MAX_STEPS));
            let never = Time::from_micros(u64::MAX);
            assert_eq!(server.pause(never), Some(Duration::ZERO));
        }
    }

    /// Fails if the wait in the socket is left out, if it is believed although the wall clock was set
    /// (`min` left out), or if a system that does not say when datagrams arrived means since 1970.
    #[test]
    fn what_waited_is_known_to_have_waited() {
        let [second, millis] = [Duration::from_secs(1), Duration::from_millis(1)];
        let reading = Reading {
            now: Time::from_micros(5_000_000),
            wall: 1000 * second,
        };
        let idle = reading.now.before(30 * millis);
        let now = reading.now.after(2 * millis);
        let waited = |arrived| reading.waited(arrived, idle, now);
        assert_eq!(waited(Some(1000 * second - 14 * millis)), 16 * millis);
        assert_eq!(waited(Some(900 * second)), 32 * millis, "set forward");
        assert_eq!(waited(Some(1100 * second)), 2 * millis, "set back");
        assert_eq!(waited(None), 2 * millis);
    }

    /// Fails if time is ignored (`MAX_TURN` left out of `is_over`), or if it counts only when
    /// nothing was done.
    #[test]
    fn a_turn_ends_by_count_or_by_time() {
        let mut turn = Turn::default();
        assert!(!turn.is_over(MAX_TURN - Duration::from_micros(1)));
        assert!(turn.is_over(MAX_TURN));
        turn.spent = MAX_TURN / 2;
        assert!(turn.is_over(MAX_TURN / 2));
        turn = Turn {
            steps: MAX_STEPS,
            ..Turn::default()
        };
        assert!(turn.is_over(Duration::ZERO));
    }
}
