//! What happens to those who are far away: links, addresses, stalls, departures.

use std::net::SocketAddr;
use std::time::Duration;

use super::super::dice::Dice;
use super::super::links;
use super::super::promise::Promise;
use super::super::verify::Witness;
use super::Game;
use super::hearing::payload;

impl Game {
    /// Whatever can happen to those who are far away.
    pub(super) fn blow(&mut self) {
        let (server, clock) = (self.server, self.clock);
        for seat in &mut self.seats {
            let dice = &mut seat.dice;
            let ways = [(seat.endpoint, server), (server, seat.endpoint)];
            for (from, to) in ways {
                let link = self.network.link_mut(from, to).expect("they are joined");
                if dice.of_thousand(30) {
                    link.change(clock.0, links::random(dice));
                }
                // One way alone: what is said arrives, and nobody knows.
                if dice.of_thousand(15) {
                    let length = Duration::from_millis(100 + dice.below(900) as u64);
                    let dark = link.conditions().clone();
                    link.change(clock.0, dark.with_blackout(clock.0, length));
                }
            }
            if dice.of_thousand(10) {
                let address = ([10, dice.below(250) as u8, seat.peer.0 as u8, 2], 5000);
                // Where it is already, it stays.
                let _ = self
                    .network
                    .rebind(seat.endpoint, SocketAddr::from(address));
            }
            if dice.of_thousand(15) {
                let length = Duration::from_millis(dice.below(900) as u64);
                seat.stalled_until = clock.0 + length;
            }
            if dice.of_thousand(60) {
                seat.budget = budget(dice);
            }
            let (speaks, picks) = (dice.of_thousand(300), dice.below(1 << 20));
            if let Some(visit) = &mut seat.visit {
                if dice.of_thousand(15) {
                    visit.confuse();
                }
                if speaks && visit.connected {
                    let objects: Vec<_> = visit.view.objects().collect();
                    let about = objects.get(picks % (objects.len() + 1)).copied();
                    let witness = Witness {
                        truth: &self.truth,
                        promise: &Promise::default(),
                        peer: seat.peer,
                        settled: false,
                    };
                    let key = about.and_then(|about| witness.key_of(&visit.view, about));
                    visit.say(about, &payload(visit.said + 1, key.unwrap_or(0)), clock);
                }
            }
            let leaves = seat.dice.of_thousand(12);
            if leaves {
                let politely = seat.dice.of_thousand(500);
                seat.go(politely, &mut self.network, clock);
                let pause = Duration::from_millis(seat.dice.below(700) as u64);
                seat.away_until = clock.0 + pause;
            }
        }
    }

    pub(super) fn heal(&mut self) {
        for seat in &mut self.seats {
            for (from, to) in [(seat.endpoint, self.server), (self.server, seat.endpoint)] {
                let link = self.network.link_mut(from, to).expect("they are joined");
                link.change(self.clock.0, links::good());
            }
            seat.budget = Some(1100);
            seat.stalled_until = self.clock.0;
            seat.away_until = self.clock.0;
        }
    }
}

/// What a packet may have at most, from generous to nothing at all.
pub(super) fn budget(dice: &mut Dice) -> Option<usize> {
    match dice.below(6) {
        0 | 1 => None,
        2 | 3 => Some(1100),
        4 => Some(30 + dice.below(300)),
        _ => Some(dice.below(60)),
    }
}
