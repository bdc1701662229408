//! Where players are, for processes that do not see each other.

use std::time::Duration;

use prescient::named::Time;
use prescient_sim::world::Random;

use crate::shooter::settings::Settings;
use crate::shooter::{Arena, FRAMES, Player, Seen};

/// How long after the start of the game a player has its first frame: they do not have them at the same times.
pub(super) fn phase(number: u32, settings: &Settings) -> Duration {
    let mut random = Random::new(settings.seed ^ 0x9ba5e ^ u64::from(number) << 32);
    Duration::from_micros(random.range(0, 500_000) as u64)
}

/// All players of a game. Their paths depend on the seed alone, so every process can compute them.
pub(super) struct Truth {
    start: Time,
    arena: Arena,
    /// Each player, and its phase.
    players: Vec<(Player, Duration)>,
}

impl Truth {
    pub(super) fn new(start: Time, settings: &Settings) -> Self {
        let arena = Arena::for_players(settings.players);
        let player = |number| Player::new(number, settings.seed, &arena);
        let players = 0..settings.players;
        let players = players.map(|number| (player(number), phase(number, settings)));
        Self {
            start,
            players: players.collect(),
            arena,
        }
    }

    /// Where a player is at a time that is not before the last one that was asked for.
    pub(super) fn at(&mut self, now: Time, number: u32) -> Option<[f32; 2]> {
        let (player, phase) = self.players.get_mut(number as usize)?;
        let since = now.since(self.start).checked_sub(*phase)?;
        let frame = since.as_micros() as u64 * u64::from(FRAMES) / 1_000_000 + 1;
        while player.frame < frame {
            player.step(&self.arena, &Seen::default());
        }
        Some(player.status.position)
    }
}
