//! A two-dimensional shooter, seen from above, that bots play: the same game over named data and over the IP
//! engine.
//!
//! Players move, shoot, fight hand to hand, and place and break blocks. Every player's own machine simulates the
//! player with everything that it owns; [`Seen`] is what it knows of others. The paths of bots depend on their
//! seed and the arena alone, so that runs over different networks can be compared: blocks stop projectiles but not
//! players, and a player without health gets up again where it is.

mod bot;
mod finder;
mod npcs;
pub(crate) mod peer;
mod remote;
pub(crate) mod settings;

use std::collections::BTreeMap;

use prescient::State;
use prescient::named::Motion;

use bot::Bot;

/// Frames per second: of the simulation, and of the check for Interests that can be answered.
pub(crate) const FRAMES: u32 = 60;
/// Frames from one update of what others see to the next: 30 updates per second.
pub(crate) const FRAMES_PER_UPDATE: u64 = 2;

const SPEED: f32 = 5.0;
const PROJECTILE_SPEED: f32 = 20.0;
/// How long a projectile flies, in frames.
const PROJECTILE_LIFE: u64 = 90;
const RADIUS: f32 = 0.5;
const REACH: f32 = 1.5;
/// From further away no attack is plausible: a projectile's flight, and what both may have moved meanwhile.
const MAX_RANGE: f32 = 45.0;
const MAX_HEALTH: u8 = 10;
const MAX_AMMUNITION: u8 = 10;
const BLOCK_HEALTH: u8 = 5;
const MAX_BLOCKS: usize = 8;
/// Frames between two blocks of a player, at least.
const BLOCK_INTERVAL: u64 = 2 * FRAMES as u64;

/// A player.
#[derive(State, Clone, Debug, PartialEq)]
#[state(tick_hz = 60)]
pub(crate) struct Status {
    /// Where it is.
    #[state(step = 0.01, position)]
    pub position: [f32; 2],
    /// How far it moves in a second.
    #[state(step = 0.01, velocity_of = "position")]
    pub velocity: [f32; 2],
    pub health: u8,
    pub ammunition: u8,
}

impl Status {
    pub(crate) fn motion(&self) -> Motion {
        let three = |[x, y]: [f32; 2]| [f64::from(x), f64::from(y), 0.0];
        Motion {
            position: three(self.position),
            velocity: three(self.velocity),
        }
    }
}

/// A block that a player has placed.
#[derive(State, Clone, Debug, PartialEq)]
pub(crate) struct Block {
    #[state(step = 0.01, position)]
    pub position: [f32; 2],
    pub health: u8,
}

/// A projectile when it was shot. It is an event: its flight is not synchronised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Projectile {
    pub position: [f32; 2],
    pub velocity: [f32; 2],
}

impl Projectile {
    pub(crate) fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        let place = self.position.map(|at| (at * 100.0).round() as i32);
        let speed = self.velocity.map(|at| (at * 100.0).round() as i16);
        bytes[..4].copy_from_slice(&place[0].to_be_bytes());
        bytes[4..8].copy_from_slice(&place[1].to_be_bytes());
        bytes[8..10].copy_from_slice(&speed[0].to_be_bytes());
        bytes[10..].copy_from_slice(&speed[1].to_be_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 12] = bytes.try_into().ok()?;
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
        let place = [[a, b, c, d], [e, f, g, h]].map(i32::from_be_bytes);
        let speed = [[i, j], [k, l]].map(i16::from_be_bytes);
        Some(Self {
            position: place.map(|at| at as f32 / 100.0),
            velocity: speed.map(|at| f32::from(at) / 100.0),
        })
    }
}

/// Where the game takes place.
#[derive(Clone, Debug)]
pub(crate) struct Arena {
    /// The length of a side.
    pub side: f32,
    /// Squares that nobody can enter: the lower corner, and the length of a side.
    obstacles: Vec<([f32; 2], f32)>,
}

impl Arena {
    /// 40 units wide; from 16 players on doubled, with obstacles in the corners, and with as much room for each
    /// player when there are more.
    pub(crate) fn for_players(players: u32) -> Self {
        if players < 16 {
            return Self {
                side: 40.0,
                obstacles: Vec::new(),
            };
        }
        let side = 80.0 * (players as f32 / 16.0).sqrt();
        let (near, far, length) = (side / 8.0, side * 5.0 / 8.0, side / 4.0);
        let corners = [[near, near], [far, near], [near, far], [far, far]];
        Self {
            side,
            obstacles: corners.map(|corner| (corner, length)).to_vec(),
        }
    }

    fn is_free(&self, [x, y]: [f32; 2]) -> bool {
        let is_inside = (RADIUS..=self.side - RADIUS).contains(&x)
            && (RADIUS..=self.side - RADIUS).contains(&y);
        is_inside
            && self.obstacles.iter().all(|&([left, low], length)| {
                let apart = RADIUS + length;
                !(x > left - RADIUS && x < left + apart && y > low - RADIUS && y < low + apart)
            })
    }
}

/// Other players as a player's machine knows them at a frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Other players and where they are.
    pub players: Vec<(u32, [f32; 2])>,
    /// Blocks of other players: owner, number, place.
    pub blocks: Vec<(u32, u32, [f32; 2])>,
}

/// The target that was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Player(u32),
    Block(u32, u32),
}

/// Something that others must learn of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Deed {
    Shot(Projectile),
    /// A block was placed, broken or hit.
    Blocks,
    Hit(Target),
}

/// A player with everything that it owns, as its own machine simulates it.
#[derive(Debug)]
pub(crate) struct Player {
    pub number: u32,
    pub status: Status,
    pub blocks: BTreeMap<u32, Block>,
    pub frame: u64,
    /// How often it lost all its health.
    pub knocked_out: u32,
    flying: Vec<(Projectile, u64)>,
    next_block: u32,
    placed: u64,
    struck: u64,
    bot: Bot,
}

impl Player {
    pub(crate) fn new(number: u32, seed: u64, arena: &Arena) -> Self {
        let mut bot = Bot::new(seed, number);
        let status = Status {
            position: bot.start(arena),
            velocity: [0.0; 2],
            health: MAX_HEALTH,
            ammunition: MAX_AMMUNITION,
        };
        Self {
            number,
            status,
            blocks: BTreeMap::new(),
            frame: 0,
            knocked_out: 0,
            flying: Vec::new(),
            next_block: 1,
            placed: 0,
            struck: 0,
            bot,
        }
    }

    /// Simulates a frame.
    pub(crate) fn step(&mut self, arena: &Arena, seen: &Seen) -> Vec<Deed> {
        self.frame += 1;
        self.walk(arena);
        if self.frame.is_multiple_of(u64::from(FRAMES) * 3 / 2) {
            self.status.ammunition = (self.status.ammunition + 1).min(MAX_AMMUNITION);
        }
        let mut deeds = Vec::new();
        let wishes = self.bot.wishes(self.frame);
        if wishes.shoots && self.status.ammunition > 0 {
            self.status.ammunition -= 1;
            let aim = self.aim(seen).unwrap_or(wishes.direction);
            let shot = Projectile {
                position: self.status.position,
                velocity: aim.map(|part| part * PROJECTILE_SPEED),
            };
            self.flying.push((shot, self.frame));
            deeds.push(Deed::Shot(shot));
        }
        if wishes.places && self.frame >= self.placed + BLOCK_INTERVAL {
            self.place(wishes.direction);
            deeds.push(Deed::Blocks);
        }
        deeds.extend(self.fly(arena, seen).into_iter().map(Deed::Hit));
        if self.frame >= self.struck + u64::from(FRAMES)
            && let Some(target) = self.within(self.status.position, REACH, seen)
        {
            self.struck = self.frame;
            deeds.push(Deed::Hit(target));
        }
        deeds
    }

    /// Whether an attack of a player at a place, as far as known, is possible.
    pub(crate) fn is_plausible(&self, target: Target, from: Option<[f32; 2]>) -> bool {
        let place = match target {
            Target::Player(_) => Some(self.status.position),
            Target::Block(_, number) => self.blocks.get(&number).map(|block| block.position),
        };
        let near = |place| from.is_none_or(|from| distance(from, place) <= MAX_RANGE);
        place.is_some_and(near)
    }

    /// Applies a hit on something that it owns.
    pub(crate) fn take_hit(&mut self, target: Target) {
        match target {
            Target::Player(_) => {
                self.status.health = self.status.health.saturating_sub(1);
                if self.status.health == 0 {
                    self.knocked_out += 1;
                    self.status.health = MAX_HEALTH;
                }
            }
            Target::Block(_, number) => {
                if let Some(block) = self.blocks.get_mut(&number) {
                    block.health = block.health.saturating_sub(1);
                    if block.health == 0 {
                        self.blocks.remove(&number);
                    }
                }
            }
        }
    }

    fn walk(&mut self, arena: &Arena) {
        self.status.velocity = self.bot.heading(SPEED);
        let next = moved(self.status.position, self.status.velocity, 1);
        if arena.is_free(next) {
            self.status.position = next;
        } else {
            self.bot.turn();
            self.status.velocity = [0.0; 2];
        }
    }

    fn place(&mut self, direction: [f32; 2]) {
        let [x, y] = self.status.position;
        let block = Block {
            position: [x + direction[0] * 1.5, y + direction[1] * 1.5],
            health: BLOCK_HEALTH,
        };
        if self.blocks.len() == MAX_BLOCKS {
            self.blocks.pop_first();
        }
        self.blocks.insert(self.next_block, block);
        self.next_block += 1;
        self.placed = self.frame;
    }

    /// Moves projectiles, and returns what they hit.
    fn fly(&mut self, arena: &Arena, seen: &Seen) -> Vec<Target> {
        let mut flying = std::mem::take(&mut self.flying);
        let mut hits = Vec::new();
        flying.retain_mut(|(projectile, since)| {
            projectile.position = moved(projectile.position, projectile.velocity, 1);
            let target = self.within(projectile.position, RADIUS, seen);
            hits.extend(target);
            target.is_none()
                && self.frame < *since + PROJECTILE_LIFE
                && arena.is_free(projectile.position)
        });
        self.flying = flying;
        hits
    }

    fn within(&self, place: [f32; 2], reach: f32, seen: &Seen) -> Option<Target> {
        let players = seen.players.iter();
        let player = players
            .filter(|(_, at)| distance(*at, place) <= reach)
            .map(|(player, _)| Target::Player(*player));
        let blocks = seen.blocks.iter();
        let block = blocks
            .filter(|(.., at)| distance(*at, place) <= reach)
            .map(|(owner, number, _)| Target::Block(*owner, *number));
        player.chain(block).next()
    }

    /// Towards the nearest player that is seen.
    fn aim(&self, seen: &Seen) -> Option<[f32; 2]> {
        let from = self.status.position;
        let players = seen.players.iter().map(|(_, at)| *at);
        let near = players.min_by(|a, b| distance(*a, from).total_cmp(&distance(*b, from)))?;
        let away = distance(near, from);
        (0.1..15.0)
            .contains(&away)
            .then(|| [(near[0] - from[0]) / away, (near[1] - from[1]) / away])
    }
}

/// A place some frames later.
pub(crate) fn moved([x, y]: [f32; 2], velocity: [f32; 2], frames: u32) -> [f32; 2] {
    let seconds = frames as f32 / FRAMES as f32;
    [x + velocity[0] * seconds, y + velocity[1] * seconds]
}

pub(crate) fn distance([a, b]: [f32; 2], [c, d]: [f32; 2]) -> f32 {
    (a - c).hypot(b - d)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a path depends on what a bot sees, or on hits.
    #[test]
    fn paths_depend_on_the_seed_alone() {
        let arena = Arena::for_players(16);
        let mut alone = Player::new(3, 7, &arena);
        let mut crowded = Player::new(3, 7, &arena);
        let mut shots = 0;
        for frame in 0..60 * 60 {
            alone.step(&arena, &Seen::default());
            let seen = Seen {
                players: vec![(1, [40.0, frame as f32 / 100.0])],
                blocks: vec![(1, 4, crowded.status.position)],
            };
            let deeds = crowded.step(&arena, &seen);
            shots += deeds
                .iter()
                .filter(|it| matches!(it, Deed::Shot(_)))
                .count();
            if frame % 100 == 0 {
                crowded.take_hit(Target::Player(3));
            }
            assert_eq!(alone.status.position, crowded.status.position);
            assert!(arena.is_free(alone.status.position));
        }
        assert!(crowded.knocked_out > 0);
        assert!((35..=70).contains(&shots), "{shots} shots in a minute");
        assert!((4..=8).contains(&crowded.blocks.len()));
        let other = Player::new(4, 7, &arena);
        assert_ne!(
            other.status.position,
            Player::new(3, 7, &arena).status.position
        );
    }
}
