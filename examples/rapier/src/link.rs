//! A link with latency, jitter and loss, by seed.

/// Packets on their way in one direction.
pub(crate) struct Link<T> {
    dice: Dice,
    packets: Vec<(f64, T)>,
}

impl<T> Link<T> {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            dice: Dice(seed),
            packets: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, tick: u64, packet: T) {
        if self.dice.below(100) < LOSS_PERCENT {
            return;
        }
        let jitter = self.dice.below(1000) as f64 / 1000.0 - 0.5;
        let arrives = tick as f64 + LATENCY_TICKS * (1.0 + jitter / 5.0);
        // Packets do not overtake each other.
        let earlier = self.packets.last().map_or(0.0, |(at, _)| *at);
        self.packets.push((arrives.max(earlier), packet));
    }

    /// The packets that have arrived by a tick, oldest first.
    pub(crate) fn arrived(&mut self, tick: u64) -> Vec<T> {
        let packets = self.packets.extract_if(.., |(at, _)| *at <= tick as f64);
        packets.map(|(_, packet)| packet).collect()
    }
}

/// SplitMix64.
pub(crate) struct Dice(pub u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// 150 ms at 30 ticks per second.
const LATENCY_TICKS: f64 = 4.5;
const LOSS_PERCENT: u64 = 5;
