//! Selects the clients of a crowd that have to be polled.
//!
//! Polling hundreds of sockets one by one would take more CPU time than the clients do. So one
//! system call asks for all readable sockets, and it does not block: waking a blocked thread costs
//! time of the sender, which is the server whose time is measured.

use std::time::Duration;

use prescient::Client;
use prescient_net::Clock;

use prescient_channels::Time;

/// Clients by their index.
pub(super) struct Ready {
    #[cfg(unix)]
    sockets: sockets::Sockets,
    clock: Clock,
    /// Time of the next poll of all clients.
    all: Time,
}

impl Ready {
    pub(super) fn new() -> std::io::Result<Self> {
        let clock = Clock::start();
        Ok(Self {
            #[cfg(unix)]
            sockets: sockets::Sockets::new()?,
            all: clock.now(),
            clock,
        })
    }

    /// Registers the socket of a client.
    #[cfg_attr(
        not(unix),
        expect(unused_variables, clippy::unused_self, reason = "all are polled")
    )]
    pub(super) fn watch(&mut self, member: usize, client: &Client) -> std::io::Result<()> {
        #[cfg(unix)]
        self.sockets.watch(member, client)?;
        Ok(())
    }

    /// Pauses briefly; returns which of `members` clients have to be polled.
    pub(super) fn next(&mut self, members: usize) -> Vec<usize> {
        #[expect(
            clippy::disallowed_methods,
            reason = "waking a thread that blocks on a socket costs the server time"
        )]
        std::thread::sleep(PAUSE);
        let now = self.clock.now();
        if now >= self.all || cfg!(not(unix)) {
            self.all = now.after(ALL_EVERY);
            return (0..members).collect();
        }
        #[cfg(unix)]
        return self.sockets.readable();
        #[cfg(not(unix))]
        Vec::new()
    }
}

#[cfg(unix)]
mod sockets {
    use std::io;
    use std::os::fd::AsRawFd;
    use std::time::Duration;

    use mio::unix::SourceFd;
    use mio::{Events, Interest, Poll, Token};
    use prescient::Client;

    pub(super) struct Sockets {
        poll: Poll,
        events: Events,
    }

    impl Sockets {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self {
                poll: Poll::new()?,
                events: Events::with_capacity(1024),
            })
        }

        /// A closed socket is deregistered by the system.
        pub(super) fn watch(&mut self, member: usize, client: &Client) -> io::Result<()> {
            match client.socket() {
                Some(socket) => self.poll.registry().register(
                    &mut SourceFd(&socket.as_raw_fd()),
                    Token(member),
                    Interest::READABLE,
                ),
                None => Ok(()),
            }
        }

        /// Clients whose sockets became readable since the last call. If there are too many, the
        /// next call returns the rest.
        pub(super) fn readable(&mut self) -> Vec<usize> {
            // A signal may end it early; the events are then returned by the next call.
            let _ = self.poll.poll(&mut self.events, Some(Duration::ZERO));
            let tokens = self.events.iter().map(mio::event::Event::token);
            tokens.map(|Token(member)| member).collect()
        }
    }
}

const PAUSE: Duration = Duration::from_millis(2);
/// Maximum delay of packets that clients send on their own timers.
const ALL_EVERY: Duration = Duration::from_millis(20);
