//! A bot: walks in straight legs, shoots about once a second, and places a block every ten seconds.

use prescient_sim::world::Random;

use super::{Arena, FRAMES};

/// A bot's decision in a frame.
pub(super) struct Wishes {
    pub(super) shoots: bool,
    pub(super) places: bool,
    pub(super) direction: [f32; 2],
}

/// The two sources of chance are apart, so that fights do not change paths.
#[derive(Clone, Debug)]
pub(super) struct Bot {
    paths: Random,
    fights: Random,
    direction: [f32; 2],
    stands: bool,
    /// Frames until it changes its direction.
    left: i64,
    shoots_at: u64,
    places_at: u64,
}

impl Bot {
    pub(super) fn new(seed: u64, number: u32) -> Self {
        let mixed = Random::new(seed).bits() ^ u64::from(number) << 32;
        let mut fights = Random::new(mixed ^ 0x5eed);
        let shoots_at = fights.range(0, FRAMES.into()) as u64;
        let places_at = fights.range(0, 10 * i64::from(FRAMES)) as u64;
        Self {
            paths: Random::new(mixed),
            fights,
            direction: [1.0, 0.0],
            stands: false,
            left: 0,
            shoots_at,
            places_at,
        }
    }

    /// A free place to start from.
    pub(super) fn start(&mut self, arena: &Arena) -> [f32; 2] {
        loop {
            let place = [0; 2].map(|_: u8| self.paths.range(0, 10_000) as f32 / 10_000.0);
            let place = place.map(|part| part * arena.side);
            if arena.is_free(place) {
                return place;
            }
        }
    }

    /// The velocity of this frame.
    pub(super) fn heading(&mut self, speed: f32) -> [f32; 2] {
        self.left -= 1;
        if self.left < 0 {
            self.turn();
        }
        match self.stands {
            true => [0.0; 2],
            false => self.direction.map(|part| part * speed),
        }
    }

    /// Begins another leg of half a second to two and a half seconds.
    pub(super) fn turn(&mut self) {
        self.direction = direction(&mut self.paths);
        self.stands = self.paths.range(0, 8) == 0;
        let frames = i64::from(FRAMES);
        self.left = self.paths.range(frames / 2, frames * 5 / 2);
    }

    pub(super) fn wishes(&mut self, frame: u64) -> Wishes {
        let shoots = frame >= self.shoots_at;
        let places = frame >= self.places_at;
        if shoots {
            self.shoots_at = frame + self.fights.range(48, 72) as u64;
        }
        if places {
            self.places_at = frame + self.fights.range(540, 660) as u64;
        }
        let direction = match shoots || places {
            true => direction(&mut self.fights),
            false => [1.0, 0.0],
        };
        Wishes {
            shoots,
            places,
            direction,
        }
    }
}

fn direction(random: &mut Random) -> [f32; 2] {
    let angle = random.range(0, 3600) as f32 / 3600.0 * std::f32::consts::TAU;
    [angle.cos(), angle.sin()]
}
