//! How a client reconnects after its connection was lost, and for how long it tries.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prescient_transport::{CloseReason, ConnectError, ConnectToken, Denial, Time};

use crate::client::loopback_token;

/// Makes a client reconnect by itself when its server was restarted or fell silent.
///
/// The client reports [`Disconnected`](crate::ClientEvent::Disconnected), and the shown world stays
/// as it was until [`Reconnected`](crate::ClientEvent::Reconnected). A connection that the server
/// closed on purpose is not replaced. Reconnecting is off by default, because only the program
/// knows where its tokens come from.
#[derive(Clone)]
pub struct Reconnect {
    tokens: Arc<dyn Fn() -> Option<ConnectToken> + Send + Sync>,
    patience: Duration,
}

impl Reconnect {
    /// Calls `tokens` for a token before every attempt, on the thread that polls the client; it
    /// should return quickly. If it returns `None`, it is called again after half a second.
    ///
    /// A token is valid for one session. After a restart of the server the last token is valid
    /// again until it expires; in all other cases the backend has to issue a new one.
    pub fn new(tokens: impl Fn() -> Option<ConnectToken> + Send + Sync + 'static) -> Self {
        Self {
            tokens: Arc::new(tokens),
            patience: PATIENCE,
        }
    }

    /// Reconnects to a server on this machine that was created with
    /// [`Server::loopback`](crate::Server::loopback).
    pub fn loopback(server: &str) -> Self {
        let server = server.to_owned();
        Self::new(move || loopback_token(&server).ok())
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
/// let options = ClientOptions { cancel: cancel.clone(), ..ClientOptions::default() };
/// // In the handler: a join with these options returns within a twentieth of a second.
/// cancel.cancel();
/// assert!(options.cancel.is_cancelled());
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

/// What to do about a lost connection.
pub(crate) enum Due {
    Nothing,
    /// Begin an attempt with this token.
    Attempt(Box<ConnectToken>),
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

    /// What is due at `now`. An attempt may take `attempt_timeout`.
    pub(crate) fn tend(&mut self, how: &Reconnect, attempt_timeout: Duration, now: Time) -> Due {
        let (Attempt::Waits(due) | Attempt::Runs(due)) = self.attempt;
        if now < due {
            return Due::Nothing;
        }
        if now.since(self.since) >= how.patience {
            return Due::GiveUp;
        }
        let Some(token) = (how.tokens)() else {
            self.attempt = Attempt::Waits(now.after(PAUSE));
            return Due::Nothing;
        };
        self.attempt = Attempt::Runs(now.after(attempt_timeout));
        Due::Attempt(Box::new(token))
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
