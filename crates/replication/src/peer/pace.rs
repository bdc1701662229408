//! How often a peer is sent state, depending on its acknowledgements.
//!
//! State that is not acknowledged is sent again and kept until it is, so a peer that acknowledges
//! nothing would cost many times what others do. It is sent less and less instead:
//!
//! - The logs of unacknowledged packets hold a bounded number of bytes. A new peer begins with
//!   [`NEWCOMER_BYTES`], or with [`LOG_BYTES_PER_ENTITY`] if it is to see many entities, and the
//!   bound grows by three times what is acknowledged, up to [`MAX_LOG_BYTES`]: the window grows
//!   as fast as a link can use it. A third of a second without an acknowledgement reduces the
//!   bound to [`NEWCOMER_BYTES`]. A peer that exhausted its bound is sent the
//!   next packet after half as long as it has not acknowledged.
//! - From a second after the last acknowledgement on, the pause between two packets is a quarter of
//!   the time since then, up to a third of a second, and logs hold [`SILENT_BYTES`].
//! - After 20 seconds, packets are probes, one a second: they carry no state and cost next to
//!   nothing. A peer that has never acknowledged anything is sent probes in the first two cases,
//!   too.
//! - A peer that resumes after a silence is sent state at once, for a third of a second; if it
//!   acknowledges that, the pace is normal again.
//!
//! A third of a second means [`ServerConfig::with_probe_every`](crate::ServerConfig::with_probe_every) ticks
//! here.

use prescient_codec::Tick;

/// Pace of one peer.
#[derive(Debug)]
pub(super) struct Pace {
    /// A third of a second, in ticks.
    probe_every: u64,
    /// Ticks of the first and the last packet since the last acknowledgement.
    waiting: Option<(Tick, Tick)>,
    /// Whether it ever acknowledged anything.
    is_proven: bool,
    /// When it last resumed after a silence.
    resumed: Option<Tick>,
    /// Bytes that logs may hold.
    allowance: usize,
}

/// The kind of packet that a peer is sent in a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// As much state as there is room for.
    Full,
    /// An empty packet, to learn whether the peer acknowledges it.
    Probe,
    /// Nothing.
    Skip,
}

impl Pace {
    pub(super) fn new(probe_every: u32) -> Self {
        Self {
            probe_every: probe_every.max(1).into(),
            waiting: None,
            is_proven: false,
            resumed: None,
            allowance: NEWCOMER_BYTES,
        }
    }

    /// Whether it has never acknowledged anything.
    pub(super) fn is_newcomer(&self) -> bool {
        !self.is_proven
    }

    /// Notes how many entities a peer is to see that has never acknowledged anything.
    pub(super) fn expect_entities(&mut self, entities: usize) {
        if self.is_newcomer() {
            let bytes = entities.saturating_mul(LOG_BYTES_PER_ENTITY);
            self.allowance = bytes.clamp(NEWCOMER_BYTES, MAX_LOG_BYTES);
        }
    }

    /// The kind of packet to send now; `unsettled` is the number of bytes that logs hold.
    pub(super) fn turn(&self, now: Tick, unsettled: impl Fn() -> usize) -> Turn {
        let Some((first, last)) = self.waiting else {
            return Turn::Full;
        };
        let is_resumed = |at: Tick| now.since(at) <= self.probe_every;
        let (silence, pause) = (now.since(first), now.since(last));
        let second = self.second();
        let (turn, due) = match silence.checked_sub(second) {
            Some(_) if self.resumed.is_some_and(is_resumed) && unsettled() < NEWCOMER_BYTES => {
                (Turn::Full, 1)
            }
            Some(over) if self.is_proven && over / second < PATIENCE => {
                (Turn::Full, (over / 4).min(self.probe_every))
            }
            Some(over) => (Turn::Probe, (over / 4).min(second)),
            None if unsettled() < self.allowance(silence) => (Turn::Full, 1),
            None if self.is_proven => (Turn::Full, silence / 2),
            None => (Turn::Probe, silence / 2),
        };
        match pause >= due.max(1) {
            true => turn,
            false => Turn::Skip,
        }
    }

    /// Whether another packet of this tick may be sent while logs hold this many bytes.
    pub(super) fn has_room(&self, now: Tick, unsettled: usize) -> bool {
        let first = self.waiting.map_or(now, |(first, _)| first);
        unsettled < self.allowance(now.since(first))
    }

    /// Notes a sent packet; `Some` if logs of older ones must be dropped down to this many bytes.
    pub(super) fn note_sent(&mut self, now: Tick) -> Option<usize> {
        let first = self.waiting.map_or(now, |(first, _)| first);
        self.waiting = Some((first, now));
        match now.since(first) {
            silence if silence >= self.second() => {
                self.allowance = NEWCOMER_BYTES;
                Some(SILENT_BYTES)
            }
            silence if silence > self.probe_every => Some(NEWCOMER_BYTES),
            _ => None,
        }
    }

    /// Notes an acknowledgement of packets whose logs held this many bytes.
    pub(super) fn note_applied(&mut self, settled: usize) {
        self.waiting = None;
        self.is_proven = true;
        let grown = self.allowance.saturating_add(3 * settled);
        self.allowance = grown.min(MAX_LOG_BYTES);
    }

    /// The peer is responsive again: its next packet need not wait.
    pub(super) fn resume(&mut self, now: Tick) {
        self.resumed = Some(now);
    }

    /// Whether it is sent less than a peer that acknowledges.
    pub(super) fn is_throttled(&self, now: Tick) -> bool {
        let first = self.waiting.map(|(first, _)| first);
        first.is_some_and(|first| now.since(first) > self.second())
    }

    /// Bytes that logs may hold after this long without an acknowledgement.
    fn allowance(&self, silence: u64) -> usize {
        match silence <= self.probe_every {
            true => self.allowance,
            false => self.allowance.min(NEWCOMER_BYTES),
        }
    }

    /// About a second, in ticks.
    pub(super) fn second(&self) -> u64 {
        self.probe_every.saturating_mul(3)
    }
}

/// Seconds for which a peer that once acknowledged something is still sent state: its
/// acknowledgements may be lost while packets to it are not.
const PATIENCE: u64 = 20;
/// Bytes of logs for a peer that has acknowledged nothing yet: two or three packets full of new
/// entities.
const NEWCOMER_BYTES: usize = 128 << 10;
/// Bytes of logs per entity that a peer is to see: a third of what the entity costs once the peer
/// knows it.
const LOG_BYTES_PER_ENTITY: usize = 64;
/// Bytes of logs for a peer that acknowledges: about a hundred packets full of new entities, fewer if
/// they have texts.
const MAX_LOG_BYTES: usize = 8 << 20;
/// Bytes of logs for a peer that has acknowledged nothing for a second: several probes.
const SILENT_BYTES: usize = 64 << 10;
