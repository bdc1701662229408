//! Inputs of a player in the packets of its client.
//!
//! Every packet repeats what is not known to have arrived. New input causes one; otherwise it rides
//! along, at the latest with the packet that asks what became of those before it.

use super::events::Events;
use super::frame::Body;
use super::in_flight::ReliableContent;
use super::{Fault, Received};
use crate::allowance::Allowance;
use crate::input::{Group, Input, InputError, InputReceiver, InputSender, InputTick, MAX_INPUTS};
use crate::time::Time;

/// One end's side of them.
pub(crate) enum Inputs {
    /// A client's.
    Sent {
        sender: InputSender,
        /// Whether they are worth a packet.
        fresh: bool,
    },
    /// A server's.
    Taken {
        receiver: InputReceiver,
        /// How many may be handed out.
        allowance: Allowance,
        /// How many were more than that, and became part of later ones.
        joined: u64,
    },
}

impl Inputs {
    pub(crate) fn of_client() -> Self {
        Self::Sent {
            sender: InputSender::new(ROOM),
            fresh: false,
        }
    }

    pub(crate) fn of_server(per_second: u32, now: Time) -> Self {
        Self::Taken {
            receiver: InputReceiver::new(),
            allowance: Allowance::new(per_second, per_second.max(MIN_BURST), now),
            joined: 0,
        }
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
    pub(crate) fn write(&mut self, body: &mut Body) -> Option<ReliableContent> {
        let Self::Sent { sender, fresh } = self else {
            return None;
        };
        let (newest, frame) = sender.frame()?;
        if !body.input(frame) {
            return None;
        }
        *fresh = false;
        Some(ReliableContent::Input(newest))
    }

    /// Takes a frame, of a client only. What is new in it and not too much goes to `events`.
    pub(crate) fn handle(
        &mut self,
        frame: &[Group<'_>],
        is_paused: bool,
        now: Time,
        events: &mut Events,
    ) -> Result<(), Fault> {
        let Self::Taken {
            receiver,
            allowance,
            joined,
        } = self
        else {
            return Err(Fault::Violation);
        };
        let max = if is_paused { 0 } else { allowance.left(now) };
        let mut taken = 0;
        let more = receiver.take(frame, max, |tick, input| {
            events.push(Received::Input { tick, input });
            taken += 1;
        });
        allowance.take(taken);
        *joined += more as u64;
        Ok(())
    }

    /// How many inputs were more than allowed.
    pub(crate) fn joined(&self) -> u64 {
        match self {
            Self::Taken { joined, .. } => *joined,
            Self::Sent { .. } => 0,
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
/// What a client has to say after a blackout: a full frame, and what happens meanwhile.
const MIN_BURST: u32 = 2 * MAX_INPUTS as u32;
