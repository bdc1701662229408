//! How often a peer is sent state, by what it is known to have applied.
//!
//! What is not known to be applied is sent again and kept until it is, so a peer that applies
//! nothing would cost many times what the others do. It is sent less and less instead:
//!
//! - Packets that wait for an acknowledgement hold a bounded number of bytes (their logs). A newcomer
//!   begins with [`NEWCOMER_BYTES`], and gets as much again as it applies, up to [`MAX_LOG_BYTES`]: the
//!   window grows as fast as a slow link can use it. A third of a second without an acknowledgement
//!   takes that back. Who has used it up is sent the next packet after half as long as it has waited.
//! - A second after the last acknowledgement that something was applied, the pause between two
//!   packets is a quarter of the time since then, up to a third of a second, and logs hold
//!   [`SILENT_BYTES`].
//! - After 20 seconds, packets are probes, one a second: they say nothing of the world and cost next
//!   to nothing. A peer that has never applied anything is sent probes in the first two cases, too.
//! - Who is heard of again after a while is sent state at once, for a third of a second, and who
//!   applies it, as before.
//!
//! A third of a second is [`ServerConfig::probe_every`](crate::ServerConfig::probe_every) ticks here.

use prescient_codec::Tick;

/// Pace of one peer.
#[derive(Debug)]
pub(super) struct Pace {
    /// A third of a second, in ticks.
    probe_every: u32,
    /// The first packet since something was applied, and the last one.
    waiting: Option<(Tick, Tick)>,
    /// Whether it ever applied anything.
    is_proven: bool,
    /// When it was last heard of again.
    resumed: Option<Tick>,
    /// Bytes that logs may hold.
    allowance: usize,
}

/// What a peer is to be sent in a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// As much as there is room for.
    Full,
    /// A packet that says nothing, to learn whether anybody applies it.
    Probe,
    /// Nothing.
    Skip,
}

impl Pace {
    pub fn new(probe_every: u32) -> Self {
        Self {
            probe_every: probe_every.max(1),
            waiting: None,
            is_proven: false,
            resumed: None,
            allowance: NEWCOMER_BYTES,
        }
    }

    /// What is to be sent now, by how many bytes logs hold.
    pub fn turn(&self, now: Tick, unsettled: impl Fn() -> usize) -> Turn {
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

    /// A packet was sent; `Some` if logs of older ones are to be dropped until they hold so many bytes.
    pub fn note_sent(&mut self, now: Tick) -> Option<usize> {
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

    /// Something was applied, whose logs held so many bytes.
    pub fn note_applied(&mut self, settled: usize) {
        self.waiting = None;
        self.is_proven = true;
        self.allowance = self.allowance.saturating_add(settled).min(MAX_LOG_BYTES);
    }

    /// The peer is heard of again: it need not wait for its turn.
    pub fn resume(&mut self, now: Tick) {
        self.resumed = Some(now);
    }

    /// Whether it is sent less than it would be if it applied something.
    pub fn is_throttled(&self, now: Tick) -> bool {
        let first = self.waiting.map(|(first, _)| first);
        first.is_some_and(|first| now.since(first) > self.second())
    }

    /// Bytes that logs may hold, by how long nothing was applied.
    fn allowance(&self, silence: u32) -> usize {
        match silence <= self.probe_every {
            true => self.allowance,
            false => self.allowance.min(NEWCOMER_BYTES),
        }
    }

    /// About a second, in ticks.
    pub fn second(&self) -> u32 {
        self.probe_every.saturating_mul(3)
    }
}

/// Seconds for which a peer that once applied something is sent state that it may not apply: its
/// acknowledgements may get lost while packets to it do not.
const PATIENCE: u32 = 20;
/// Bytes of logs for a peer that has applied nothing yet: three packets or so that are full of new
/// entities, which is what a tenth of a second takes.
const NEWCOMER_BYTES: usize = 160 << 10;
/// Bytes of logs for one that applies what it is sent: more than 64 packets usually take.
const MAX_LOG_BYTES: usize = 4 << 20;
/// Bytes of logs for one that has applied nothing for a second: several probes.
const SILENT_BYTES: usize = 64 << 10;
