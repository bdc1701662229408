//! A sender like those of most of the internet's traffic: CUBIC, as in RFC 9438.

use std::time::Duration;

use prescient_channels::{
    AcknowledgedPacket, BytesPerSecond, Congestion, CongestionControl, CongestionFactory,
    LostPacket, RateLimits, SentPacket, Time,
};

/// The policy for the flow that ours are compared with.
pub(super) fn cubic() -> CongestionControl {
    CongestionControl::Custom(CongestionFactory::new("cubic", |limits| {
        Box::new(Cubic::new(limits))
    }))
}

/// Windows are in packets of [`PACKET`] bytes.
struct Cubic {
    window: f64,
    threshold: f64,
    max_window: f64,
    epoch: Option<Time>,
    recovers_until: Time,
    round_trip: Duration,
    ceiling: BytesPerSecond,
}

impl Cubic {
    fn new(limits: RateLimits) -> Self {
        Self {
            window: 10.0,
            threshold: f64::MAX,
            max_window: 0.0,
            epoch: None,
            recovers_until: limits.now,
            round_trip: Duration::from_millis(100),
            ceiling: limits.ceiling,
        }
    }
}

impl Congestion for Cubic {
    fn on_sent(&mut self, _: &SentPacket) {}

    fn on_acknowledged(&mut self, packet: &AcknowledgedPacket) {
        self.round_trip = (self.round_trip * 7 + packet.round_trip) / 8;
        if packet.now < self.recovers_until {
            return;
        }
        if self.window < self.threshold {
            self.window += 1.0;
            return;
        }
        let epoch = *self.epoch.get_or_insert(packet.now);
        let passed = (packet.now.since(epoch) + self.round_trip).as_secs_f64();
        let k = (self.max_window * (1.0 - BETA) / C).cbrt();
        let target = C * (passed - k).powi(3) + self.max_window;
        let rounds = passed / self.round_trip.as_secs_f64().max(0.001);
        let friendly = self.max_window * BETA + 3.0 * (1.0 - BETA) / (1.0 + BETA) * rounds;
        let target = target.max(friendly).min(self.window * 1.5);
        if target > self.window {
            self.window += (target - self.window) / self.window;
        }
    }

    fn on_lost(&mut self, lost: &LostPacket) {
        if lost.now < self.recovers_until {
            return;
        }
        self.max_window = self.window;
        self.window = (self.window * BETA).max(2.0);
        self.threshold = self.window;
        self.epoch = None;
        self.recovers_until = lost.now.after(self.round_trip);
    }

    fn rate(&self) -> BytesPerSecond {
        let bytes = self.window * PACKET * 1.25;
        let rate = bytes / self.round_trip.as_secs_f64().max(0.001);
        BytesPerSecond(rate as u64).min(self.ceiling)
    }

    fn window(&self) -> usize {
        (self.window * PACKET) as usize
    }
}

const C: f64 = 0.4;
const BETA: f64 = 0.7;
const PACKET: f64 = 1200.0;
