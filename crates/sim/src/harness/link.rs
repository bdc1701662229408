//! A link with random loss that delays acknowledgements by a fixed number of ticks.

use std::collections::VecDeque;

use crate::world::Random;

/// Both directions of one connection.
///
/// Only the round trip matters to a sender, so packets arrive at once and acknowledgements carry
/// the whole delay.
#[derive(Debug)]
pub struct Link {
    random: Random,
    loss: u32,
    round_trip: u64,
    /// Acknowledgements with the tick at which they are due, counted from the start.
    returning: VecDeque<(u64, Vec<u8>)>,
}

impl Link {
    /// Loses `loss` parts per million; acknowledgements take `round_trip` ticks, at least one.
    pub fn new(seed: u64, loss: u32, round_trip: u32) -> Self {
        let round_trip = u64::from(round_trip.max(1));
        Self {
            random: Random::new(seed),
            loss,
            round_trip,
            returning: VecDeque::new(),
        }
    }

    /// Whether the packet sent now arrives.
    pub fn delivers_packet(&mut self) -> bool {
        !self.random.chance(self.loss)
    }

    /// Sends an acknowledgement at tick `now`.
    pub fn send_back(&mut self, now: u64, acknowledgement: Vec<u8>) {
        if !self.random.chance(self.loss) {
            self.returning
                .push_back((now + self.round_trip, acknowledgement));
        }
    }

    /// The next acknowledgement that arrives before tick `now` is encoded.
    pub fn arrived_back(&mut self, now: u64) -> Option<Vec<u8>> {
        let &(due, _) = self.returning.front()?;
        if due > now {
            return None;
        }
        self.returning
            .pop_front()
            .map(|(_, acknowledgement)| acknowledgement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_of_one_is_known_when_the_next_tick_is_encoded() {
        let mut link = Link::new(1, 0, 1);
        link.send_back(0, vec![7]);
        assert_eq!(link.arrived_back(0), None);
        assert_eq!(link.arrived_back(1), Some(vec![7]));
        assert_eq!(link.arrived_back(1), None);
    }
}
