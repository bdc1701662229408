//! Ctrl-C, as something to ask for now and then, so that a command can say goodbye.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prescient::Cancel;

/// Whether somebody wants this program to end.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Bell>);

#[derive(Debug, Default)]
struct Bell {
    is_rung: Mutex<bool>,
    rings: Condvar,
    cancel: Cancel,
}

/// The system does not say when somebody presses Ctrl-C.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen for Ctrl-C: {0}")]
pub struct InterruptError(#[from] ctrlc::Error);

impl Interrupt {
    /// Listens from now on, for Ctrl-C and for the system's wish to end. Once per process.
    pub fn listen() -> Result<Self, InterruptError> {
        let interrupt = Self::default();
        let bell = interrupt.clone();
        ctrlc::set_handler(move || {
            *bell.is_rung() = true;
            bell.0.rings.notify_all();
            bell.0.cancel.cancel();
        })?;
        Ok(interrupt)
    }

    /// The same for what a client waits for.
    pub fn cancel(&self) -> Cancel {
        self.0.cancel.clone()
    }

    /// Whether to end.
    pub fn is_asked(&self) -> bool {
        *self.is_rung()
    }

    /// Whether to end, after a while at most.
    pub fn wait(&self, span: Duration) -> bool {
        let rings = &self.0.rings;
        let waited = rings.wait_timeout_while(self.is_rung(), span, |is_rung| !*is_rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn is_rung(&self) -> MutexGuard<'_, bool> {
        // Nobody panics while holding it.
        self.0
            .is_rung
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
