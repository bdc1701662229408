//! Ctrl-C, as something to ask for now and then, so that a command can say goodbye.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether somebody wants this program to end.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

/// The system does not say when somebody presses Ctrl-C.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen for Ctrl-C: {0}")]
pub struct InterruptError(#[from] ctrlc::Error);

impl Interrupt {
    /// Listens from now on, for Ctrl-C and for the system's wish to end. Once per process.
    pub fn listen() -> Result<Self, InterruptError> {
        let asked = Arc::new(AtomicBool::new(false));
        let noted = asked.clone();
        ctrlc::set_handler(move || noted.store(true, Ordering::Relaxed))?;
        Ok(Self(asked))
    }

    /// Whether to end.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
