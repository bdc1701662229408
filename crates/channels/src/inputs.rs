//! Player inputs in packets.
//!
//! Every packet repeats the inputs that are not acknowledged. A new input causes a packet; old ones
//! are only added to packets that are sent anyway, at the latest to a probe.

use crate::allowance::Allowance;
use crate::events::Events;
use crate::events::Received;
use crate::exchange::Fault;
use crate::frame::Body;
use crate::in_flight::ReliableContent;
use crate::input::{Group, Input, InputError, InputReceiver, InputSender, InputTick, MAX_INPUTS};
use crate::time::Time;

/// One end's side of the inputs.
pub(crate) enum Inputs {
    /// The client's side.
    Sent {
        sender: InputSender,
        /// Whether there is an input that was not sent yet.
        fresh: bool,
    },
    /// The server's side.
    Taken {
        receiver: InputReceiver,
        /// How many inputs may be handed to the game.
        allowance: Allowance,
        /// How many exceeded that and were joined with later ones.
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

    /// Whether there is an input that was not sent yet.
    pub(crate) fn are_fresh(&self) -> bool {
        matches!(self, Self::Sent { sender, fresh: true } if sender.waiting() > 0)
    }

    /// Adds the inputs that are not acknowledged to a packet; returns what to record with that
    /// packet.
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

    /// Handles the input frame of a client. New inputs within the allowance go to `events`.
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

    /// How many inputs exceeded the allowance.
    pub(crate) fn joined(&self) -> u64 {
        match self {
            Self::Taken { joined, .. } => *joined,
            Self::Sent { .. } => 0,
        }
    }

    /// A packet with all inputs up to this tick was acknowledged.
    pub(crate) fn arrived(&mut self, tick: InputTick) {
        if let Self::Sent { sender, .. } = self {
            sender.on_arrived(tick);
        }
    }
}

/// Bytes of a packet for inputs. Seconds of input fit, and leave most of the packet to messages.
const ROOM: usize = 256;
/// The inputs that a client sends after a blackout: a full frame, and those made meanwhile.
const MIN_BURST: u32 = 2 * MAX_INPUTS as u32;
