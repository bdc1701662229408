//! How a client reconnects after its connection was lost, and for how long it tries.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prescient_channels::{Carrier, CloseReason, ConnectError, Denial, Time};

use crate::options::ClientOptions;

/// Makes a client reconnect by itself when its server was restarted or fell silent.
///
/// The client reports [`Disconnected`](crate::ClientEvent::Disconnected), and the shown world stays
/// as it was until [`Reconnected`](crate::ClientEvent::Reconnected). A connection that the server
/// closed on purpose is not replaced. Reconnecting is off by default, because only the program
/// knows where its tokens come from.
#[derive(Clone)]
pub struct Reconnect {
    connect: Connector,
    pub(crate) patience: Duration,
}

/// Makes a carrier that begins to connect by a client's options, if that is possible now.
type Connector = Arc<dyn Fn(&ClientOptions) -> Option<Box<dyn Carrier>> + Send + Sync>;

impl Reconnect {
    /// Calls `tokens` for a token before every attempt, on the thread that polls the client; it
    /// should return quickly. If it returns `None`, it is called again after half a second.
    ///
    /// A token is valid for one session. After a restart of the server the last token is valid
    /// again until it expires; in all other cases the backend has to issue a new one.
    #[cfg(feature = "udp")]
    pub fn new(
        tokens: impl Fn() -> Option<prescient_transport::ConnectToken> + Send + Sync + 'static,
    ) -> Self {
        Self {
            connect: Arc::new(move |options| crate::udp::reconnect(tokens()?, options)),
            patience: PATIENCE,
        }
    }

    /// Calls `connect` for a carrier that begins to connect before every attempt, on the thread
    /// that polls the client. If it returns `None`, it is called again after half a second.
    pub fn with_carriers(
        connect: impl Fn() -> Option<Box<dyn Carrier>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            connect: Arc::new(move |_| connect()),
            patience: PATIENCE,
        }
    }

    /// Reconnects to a server on this machine that was created with
    /// [`Server::loopback`](crate::Server::loopback).
    #[cfg(feature = "udp")]
    pub fn loopback(server: &str) -> Self {
        let server = server.to_owned();
        Self::new(move || crate::udp::loopback_token(&server).ok())
    }

    /// Gives up after this long without success; a minute by default. The client then reports
    /// [`Left`](crate::ClientEvent::Left).
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }
}

impl fmt::Debug for Reconnect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Reconnect");
        shown.field("patience", &self.patience);
        shown.finish_non_exhaustive()
    }
}

/// A flag that cancels a blocking call, for example from a Ctrl-C handler or another thread. All
/// clones share it.
///
/// ```
/// use prescient::{Cancel, ClientOptions};
///
/// let cancel = Cancel::default();
/// let options = ClientOptions::default().with_cancel(cancel.clone());
/// // In the handler: a join with these options returns within a twentieth of a second.
/// cancel.cancel();
/// assert!(cancel.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Sets the flag.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the flag is set.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A lost connection that the client tries to replace.
pub(crate) struct Lost {
    pub(crate) reason: CloseReason,
    since: Time,
    attempt: Attempt,
}

#[derive(Clone, Copy)]
enum Attempt {
    /// The next attempt begins at this time.
    Waits(Time),
    /// An attempt is running; it is abandoned at this time.
    Runs(Time),
}

/// The next step of reconnecting.
pub(crate) enum Due {
    Nothing,
    /// An attempt has begun on this carrier.
    Attempt(Box<dyn Carrier>),
    /// The patience is exhausted.
    GiveUp,
}

impl Lost {
    /// `None` if a connection that ended for this reason is not to be replaced.
    pub(crate) fn new(reason: CloseReason, now: Time) -> Option<Self> {
        let is_worth_it = matches!(
            reason,
            CloseReason::StatelessReset | CloseReason::TimedOut | CloseReason::Exhausted
        );
        is_worth_it.then_some(Self {
            reason,
            since: now,
            attempt: Attempt::Waits(now),
        })
    }

    /// The step that is due at `now` for a client with these options.
    pub(crate) fn tend(&mut self, options: &ClientOptions, now: Time) -> Due {
        let (Attempt::Waits(due) | Attempt::Runs(due)) = self.attempt;
        if now < due {
            return Due::Nothing;
        }
        let Some(reconnect) = &options.reconnect else {
            return Due::GiveUp;
        };
        if now.since(self.since) >= reconnect.patience {
            return Due::GiveUp;
        }
        let Some(carrier) = (reconnect.connect)(options) else {
            self.attempt = Attempt::Waits(now.after(PAUSE));
            return Due::Nothing;
        };
        self.attempt = Attempt::Runs(now.after(options.join_timeout));
        Due::Attempt(carrier)
    }

    /// Notes a failed attempt; the next one follows after [`PAUSE`].
    pub(crate) fn failed(&mut self, now: Time) {
        self.attempt = Attempt::Waits(now.after(PAUSE));
    }
}

/// Whether joining may succeed later, or with another token.
pub(crate) fn may_pass(error: ConnectError) -> bool {
    match error {
        ConnectError::Denied(denial) => matches!(
            denial,
            Denial::Used | Denial::Expired | Denial::Full | Denial::Crowded | Denial::Closing
        ),
        _ => true,
    }
}

const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(500);
