//! What can be wrong with what a program passes in.

use thiserror::Error;

/// A setting that cannot work.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[error("`{setting}` must be {needed}")]
pub struct ConfigError {
    /// The setting's name.
    pub setting: &'static str,
    /// What it must be.
    pub needed: &'static str,
}

impl ConfigError {
    /// The first of these that does not hold.
    pub(crate) fn first(checks: &[(bool, &'static str, &'static str)]) -> Result<(), Self> {
        let broken = checks.iter().find(|(holds, ..)| !holds);
        broken.map_or(Ok(()), |&(_, setting, needed)| {
            Err(Self { setting, needed })
        })
    }
}

/// Why a state does not count for the [`PlaybackClock`](crate::PlaybackClock).
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlaybackError {
    /// A state of this tick or a later one arrived before. Skip it.
    #[error("the state is not newer than that of tick {newest}")]
    NotLater {
        /// The newest tick.
        newest: u64,
    },
}

/// Why a sample was not added to a [`Track`](crate::Track).
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TrackError {
    /// There is a sample of this tick or a later one already. Samples are added oldest first.
    #[error("the sample is not newer than that of tick {newest}")]
    NotLater {
        /// The newest tick.
        newest: u64,
    },
}

/// Why an input was not predicted, or a state not taken over.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PredictError {
    /// There is an input of this tick or a later one already. Ticks of inputs ascend.
    #[error("the input is not later than that of tick {last}")]
    NotLater {
        /// The tick of the last input.
        last: u64,
    },
    /// The server has confirmed none of so many inputs; predicting further would only make the
    /// correction larger. Wait for its state.
    #[error("{0} inputs are not confirmed yet")]
    TooFarAhead(usize),
    /// The server's state is older than one that was taken over before. Skip it.
    #[error("a state after input {confirmed} was confirmed before")]
    Backwards {
        /// The newest confirmed input.
        confirmed: u64,
    },
    /// The program's step returned a number that is not finite. The state before it is kept.
    #[error("the step returned a number that is not finite")]
    NotFinite,
    /// The server's state has a number that is not finite. It is not taken over.
    #[error("the server's state has a number that is not finite")]
    StateNotFinite,
}

/// Why there is nothing to rewind to.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RewindError {
    /// The tick is no number.
    #[error("the tick that the client saw is no number")]
    NotANumber,
}

macro_rules! debug_as_display {
    ($($error:ident)*) => {$(
        impl std::fmt::Debug for $error {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, formatter)
            }
        }
    )*};
}

debug_as_display!(ConfigError PlaybackError TrackError PredictError RewindError);
