//! Detects clients that receive state but never apply any.
//!
//! A client that is sent state and is responsive, but applies none of it, is broken or hostile;
//! after a while its connection is closed. Time counts only while state was sent and the transport
//! did not report the client silent. A client behind a link that is down, or in a stopped process,
//! is silent, which has a limit of its own ([`LinkConfig::with_timeout`](crate::LinkConfig::with_timeout)); a
//! stopped server has sent nothing.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use prescient_channels::Time;
use prescient_replication::PeerId;

/// Per peer: for how long it has been responsive without applying anything.
#[derive(Debug, Default)]
pub(super) struct ApplyMonitor {
    peers: BTreeMap<PeerId, Wait>,
}

#[derive(Clone, Debug)]
struct Wait {
    /// Packets sent since the last applied one, and when the newest was sent.
    unapplied: Range<u64>,
    at: Time,
    /// The accumulated time.
    span: Duration,
    silent: bool,
}

impl ApplyMonitor {
    /// The transport reports a peer silent, or responsive again.
    pub(super) fn note_silent(&mut self, peer: PeerId, silent: bool, now: Time) {
        self.wait(peer, now).silent = silent;
    }

    /// Notes the packets that a peer was sent since it last applied one; returns for how long it
    /// has been responsive meanwhile.
    pub(super) fn note_unapplied(
        &mut self,
        peer: PeerId,
        unapplied: Range<u64>,
        now: Time,
    ) -> Duration {
        let wait = self.wait(peer, now);
        if unapplied.is_empty() || unapplied.start != wait.unapplied.start {
            (wait.unapplied, wait.at, wait.span) = (unapplied, now, Duration::ZERO);
            return Duration::ZERO;
        }
        let more = match wait.silent {
            true => Duration::ZERO,
            false => now.since(wait.at).min(MAX_PAUSE),
        };
        if unapplied.end == wait.unapplied.end {
            return wait.span + more;
        }
        wait.span += more;
        (wait.unapplied, wait.at) = (unapplied, now);
        wait.span
    }

    /// Notes that a peer has not sent its schema fingerprint yet; every tick counts as an unapplied
    /// packet.
    pub(super) fn note_unready(&mut self, peer: PeerId, now: Time) -> Duration {
        let asked = self.wait(peer, now).unapplied.end + 1;
        self.note_unapplied(peer, 0..asked, now)
    }

    pub(super) fn forget(&mut self, peer: PeerId) {
        self.peers.remove(&peer);
    }

    fn wait(&mut self, peer: PeerId, now: Time) -> &mut Wait {
        self.peers.entry(peer).or_insert(Wait {
            unapplied: 0..0,
            at: now,
            span: Duration::ZERO,
            silent: false,
        })
    }
}

/// The time between two packets counts up to this: a server that sends nothing for longer was
/// stopped, or its world was paused.
const MAX_PAUSE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: PeerId = PeerId(7);

    /// A peer that is sent packets at 30 Hz and checked after each.
    #[derive(Default)]
    struct Watch {
        apply_monitor: ApplyMonitor,
        now: Time,
        unapplied: Range<u64>,
    }

    impl Watch {
        /// Sends a packet every tick; returns for how long nothing was applied at the end.
        fn send(&mut self, seconds: u64) -> Duration {
            let ticks = (0..30 * seconds).map(|_| {
                self.unapplied.end += 1;
                self.pass(Duration::from_micros(33_333))
            });
            ticks.last().unwrap_or_default()
        }

        fn pass(&mut self, span: Duration) -> Duration {
            self.now = self.now.after(span);
            self.look()
        }

        fn look(&mut self) -> Duration {
            let (unapplied, now) = (self.unapplied.clone(), self.now);
            self.apply_monitor.note_unapplied(PEER, unapplied, now)
        }
    }

    /// Fails if the time between packets is not accumulated, or if an applied packet does not reset
    /// it (by comparing the number of unapplied packets instead of the first).
    #[test]
    fn time_counts_while_packets_are_sent_and_none_is_applied() {
        let mut watch = Watch::default();
        let span = watch.send(20);
        assert!((19..=20).contains(&span.as_secs()), "{span:?}");
        watch.unapplied.start = watch.unapplied.end;
        assert_eq!(watch.look(), Duration::ZERO);
        watch.send(3);
        // In every tick a packet is applied and another one sent.
        for _ in 0..1000 {
            watch.unapplied = watch.unapplied.end..watch.unapplied.end + 1;
            assert_eq!(watch.pass(Duration::from_millis(33)), Duration::ZERO);
        }
    }

    /// Fails if `silent` is ignored, or stays set when the peer resumes.
    #[test]
    fn time_does_not_count_while_a_peer_is_silent() {
        let mut watch = Watch::default();
        watch.send(3);
        watch.apply_monitor.note_silent(PEER, true, watch.now);
        let span = watch.send(56);
        assert!(span <= Duration::from_secs(3), "{span:?}");
        watch.apply_monitor.note_silent(PEER, false, watch.now);
        let span = watch.send(18);
        assert!((20..=21).contains(&span.as_secs()), "{span:?}");
    }

    /// Covers a server that was stopped for a minute and one whose world was paused. Fails if
    /// [`MAX_PAUSE`] is ignored.
    #[test]
    fn time_does_not_count_while_nothing_is_sent() {
        let mut watch = Watch::default();
        watch.send(1);
        let span = watch.pass(Duration::from_secs(60));
        assert!(span <= Duration::from_secs(6), "{span:?}");
        for _ in 0..30 {
            let span = watch.pass(Duration::from_secs(1));
            assert!(span <= Duration::from_secs(6), "{span:?}");
        }
        let span = watch.send(5);
        assert!(span <= Duration::from_secs(11), "{span:?}");
    }
}
