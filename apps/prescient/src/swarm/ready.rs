//! Which clients of a crowd are to be polled.
//!
//! To ask hundreds of sockets again and again whether there is something would take more of the
//! machine than what the clients do with it. So the system is asked for all of them at once, and it
//! is not asked to wake anybody: that would be paid for by whoever sends, which is the server whose
//! time is measured.

use std::time::Duration;

use prescient::Client;
use prescient_net::Clock;

use prescient_transport::Time;

/// Clients by their seats.
pub struct Ready {
    #[cfg(unix)]
    sockets: sockets::Sockets,
    clock: Clock,
    /// When to poll all of them.
    all: Time,
}

impl Ready {
    pub fn new() -> std::io::Result<Self> {
        let clock = Clock::start();
        Ok(Self {
            #[cfg(unix)]
            sockets: sockets::Sockets::new()?,
            all: clock.now(),
            clock,
        })
    }

    /// Watches a client, which takes a seat.
    #[cfg_attr(
        not(unix),
        expect(unused_variables, clippy::unused_self, reason = "all are polled")
    )]
    pub fn watch(&mut self, member: usize, client: &Client) -> std::io::Result<()> {
        #[cfg(unix)]
        self.sockets.watch(member, client)?;
        Ok(())
    }

    /// Pauses for a moment, and says which of so many seats are to be polled.
    pub fn next(&mut self, members: usize) -> Vec<usize> {
        #[expect(
            clippy::disallowed_methods,
            reason = "whoever sleeps in a socket is woken by the server"
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

    pub struct Sockets {
        poll: Poll,
        events: Events,
    }

    impl Sockets {
        pub fn new() -> io::Result<Self> {
            Ok(Self {
                poll: Poll::new()?,
                events: Events::with_capacity(1024),
            })
        }

        /// A socket that is closed is no longer watched.
        pub fn watch(&mut self, member: usize, client: &Client) -> io::Result<()> {
            match client.socket() {
                Some(socket) => self.poll.registry().register(
                    &mut SourceFd(&socket.as_raw_fd()),
                    Token(member),
                    Interest::READABLE,
                ),
                None => Ok(()),
            }
        }

        /// Those to which something came since they were last asked for. If there are too many, the
        /// others come next.
        pub fn readable(&mut self) -> Vec<usize> {
            // A signal ends it early, and then everything waits until the next time.
            let _ = self.poll.poll(&mut self.events, Some(Duration::ZERO));
            let tokens = self.events.iter().map(mio::event::Event::token);
            tokens.map(|Token(member)| member).collect()
        }
    }
}

const PAUSE: Duration = Duration::from_millis(2);
/// What clients say of their own accord can wait that long.
const ALL_EVERY: Duration = Duration::from_millis(20);
