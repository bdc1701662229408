//! What a client does when its connection is lost: how it gets back in, and for how long it tries.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prescient_transport::{CloseReason, ConnectError, ConnectToken, Denial, Time};

use crate::client::loopback_token;

/// Lets a client connect again by itself when its server was restarted or fell silent.
///
/// The game hears [`Disconnected`](crate::ClientEvent::Disconnected), and what the client shows
/// stays as it was until [`Reconnected`](crate::ClientEvent::Reconnected). A goodbye of the server
/// is final. Clients do not do this unless they are told to: where the tokens come from is the
/// program's to know.
#[derive(Clone)]
pub struct Reconnect {
    tokens: Arc<dyn Fn() -> Option<ConnectToken> + Send + Sync>,
    patience: Duration,
}

impl Reconnect {
    /// Gets a token for every attempt from `tokens`, which is called on the thread that polls the
    /// client and should not take long; `None` if there is none yet, and it is asked again after
    /// half a second.
    ///
    /// A token is good for one session. After a restart of the server the last one is good again
    /// until it expires; in all other cases, and later, the backend has to issue another.
    pub fn new(tokens: impl Fn() -> Option<ConnectToken> + Send + Sync + 'static) -> Self {
        Self {
            tokens: Arc::new(tokens),
            patience: PATIENCE,
        }
    }

    /// Returns to a server on this machine that was made with
    /// [`Server::loopback`](crate::Server::loopback).
    pub fn loopback(server: &str) -> Self {
        let server = server.to_owned();
        Self::new(move || loopback_token(&server).ok())
    }

    /// Gives up after this long without success; a minute unless it is said otherwise. The client
    /// has [`Left`](crate::ClientEvent::Left) then.
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

/// A program's wish to end what takes long, which a handler of Ctrl-C or another thread can
/// express. All clones are one.
///
/// ```
/// use prescient::{Cancel, ClientOptions};
///
/// let cancel = Cancel::default();
/// let options = ClientOptions { cancel: cancel.clone(), ..ClientOptions::default() };
/// // In the handler: whoever joins with these options gives up within a twentieth of a second.
/// cancel.cancel();
/// assert!(options.cancel.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends it.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is to end.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A connection that was lost, while the client tries to replace it.
pub(crate) struct Lost {
    pub(crate) reason: CloseReason,
    since: Time,
    attempt: Attempt,
}

#[derive(Clone, Copy)]
enum Attempt {
    /// The next begins then.
    Waits(Time),
    /// One is under way, and given up then.
    Runs(Time),
}

/// What is to be done about a lost connection.
pub(crate) enum Due {
    Nothing,
    /// An attempt begins, with this token.
    Attempt(Box<ConnectToken>),
    /// It took too long.
    GiveUp,
}

impl Lost {
    /// `None` if a connection that ended like this is not to be replaced.
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

    /// What time demands. An attempt may take `attempt_timeout`.
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

    /// An attempt failed; another follows after a moment.
    pub(crate) fn failed(&mut self, now: Time) {
        self.attempt = Attempt::Waits(now.after(PAUSE));
    }
}

/// Whether a server that could not be joined may be joined later, or with another token.
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
