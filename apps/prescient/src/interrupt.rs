//! Ctrl-C as a flag that commands poll, so that they can close their connections first.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prescient::Cancel;

/// Whether Ctrl-C was pressed or the system asked the process to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<Signal>);

#[derive(Debug, Default)]
struct Signal {
    is_raised: Mutex<bool>,
    raised: Condvar,
    cancel: Cancel,
}

/// No handler for Ctrl-C could be installed.
#[derive(Debug, thiserror::Error)]
#[error("cannot handle Ctrl-C: {0}")]
pub struct InterruptError(#[from] ctrlc::Error);

impl Interrupt {
    /// Installs the handler for Ctrl-C and termination signals. Once per process.
    pub(crate) fn listen() -> Result<Self, InterruptError> {
        let interrupt = Self::default();
        let signal = interrupt.clone();
        ctrlc::set_handler(move || {
            *signal.is_raised() = true;
            signal.0.raised.notify_all();
            signal.0.cancel.cancel();
        })?;
        Ok(interrupt)
    }

    /// A token that is cancelled at the same time, for blocking calls of a client.
    pub(crate) fn cancel(&self) -> Cancel {
        self.0.cancel.clone()
    }

    /// Whether to end.
    pub(crate) fn is_asked(&self) -> bool {
        *self.is_raised()
    }

    /// Waits up to `span`; returns whether to end.
    pub(crate) fn wait(&self, span: Duration) -> bool {
        let raised = &self.0.raised;
        let waited = raised.wait_timeout_while(self.is_raised(), span, |is_raised| !*is_raised);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn is_raised(&self) -> MutexGuard<'_, bool> {
        // The lock is never held across a panic.
        self.0
            .is_raised
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
