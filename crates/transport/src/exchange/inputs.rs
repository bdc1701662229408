//! Inputs of a player in the packets of its client.
//!
//! Every packet repeats what is not known to have arrived. New input causes one; otherwise it rides
//! along, at the latest with the packet that asks what became of those before it.

use super::Fault;
use super::frame::Body;
use super::sent::Cargo;
use crate::input::{Input, InputError, InputReceiver, InputSender, InputTick};

/// One end's side of them.
pub(crate) enum Inputs {
    /// A client's.
    Sent {
        sender: InputSender,
        /// Whether they are worth a packet.
        fresh: bool,
    },
    /// A server's.
    Taken(InputReceiver),
}

impl Inputs {
    pub(crate) fn of_client() -> Self {
        Self::Sent {
            sender: InputSender::new(ROOM),
            fresh: false,
        }
    }

    pub(crate) fn of_server() -> Self {
        Self::Taken(InputReceiver::new())
    }

    pub(crate) fn push(&mut self, tick: InputTick, input: Input) -> Result<(), InputError> {
        let Self::Sent { sender, fresh } = self else {
            return Err(InputError::NotConnected);
        };
        sender.push(tick, input)?;
        *fresh = true;
        Ok(())
    }

    /// Whether there is something that is worth a packet.
    pub(crate) fn are_fresh(&self) -> bool {
        matches!(self, Self::Sent { sender, fresh: true } if sender.waiting() > 0)
    }

    /// Adds to a packet what is not known to have arrived; what to remember of it.
    pub(crate) fn write(&mut self, body: &mut Body) -> Option<Cargo> {
        let Self::Sent { sender, fresh } = self else {
            return None;
        };
        let (newest, frame) = sender.frame()?;
        if !body.input(frame) {
            return None;
        }
        *fresh = false;
        Some(Cargo::Input(newest))
    }

    /// What is new in a frame, of a client only.
    pub(crate) fn handle(&mut self, frame: &[u8]) -> Result<Vec<(InputTick, Input)>, Fault> {
        match self {
            Self::Taken(receiver) => receiver.handle(frame).map_err(|_| Fault::Violation),
            Self::Sent { .. } => Err(Fault::Violation),
        }
    }

    /// A packet with everything up to this tick arrived.
    pub(crate) fn arrived(&mut self, tick: InputTick) {
        if let Self::Sent { sender, .. } = self {
            sender.on_arrived(tick);
        }
    }
}

/// Bytes of a packet. Seconds of input fit into it, and much else beside it.
const ROOM: usize = 256;
