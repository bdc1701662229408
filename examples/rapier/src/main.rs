//! Predicts a body among bodies that others push about, with rapier at both ends, and prints how
//! often the server corrects it: `cargo run --release -p prescient-example-rapier`.
//!
//! Three clients receive the same packets. One predicts its own body alone, one all bodies, which
//! coast, and one all bodies, whose players hold the keys of their last input that arrived. The link
//! has 150 ms in each direction, a fifth of it random, and loses 5 % of all packets.

mod link;
mod physics;

use std::collections::VecDeque;

use link::{Dice, Link};
use physics::{Arena, BODY};
use prescient_playout::{BufferedInput, InputBuffer, InputBufferConfig, Predictor};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names = ["own body alone", "all bodies coast", "all hold their keys"];
    for (name, knows) in names
        .into_iter()
        .zip([Knows::Own, Knows::Bodies, Knows::Keys])
    {
        let score = play(knows)?;
        println!(
            "{name}: {} of {} ticks corrected, {:.2} % by more than a tenth of the body, at most \
             {:.2} bodies; {} steps repeated",
            score.corrections,
            score.ticks,
            f64::from(score.large) * 100.0 / f64::from(score.ticks),
            score.largest / BODY,
            score.replayed,
        );
    }
    Ok(())
}

/// What a client predicts with.
#[derive(Clone, Copy, PartialEq)]
enum Knows {
    Own,
    Bodies,
    Keys,
}

#[derive(Default)]
struct Score {
    ticks: u32,
    corrections: u32,
    large: u32,
    largest: f64,
    replayed: u64,
}

/// A state on its way: the inputs that it has consumed, the bodies, and the keys of all players.
#[derive(Clone)]
struct State {
    consumed: Option<u64>,
    arena: Arena,
    keys: Vec<u8>,
}

fn play(knows: Knows) -> Result<Score, Box<dyn std::error::Error>> {
    let mut players: Vec<Player> = (0..BODIES as u64).map(Player::new).collect();
    let mut server = Arena::new(BODIES);
    let config = InputBufferConfig::default().with_target(2);
    let mut buffer = InputBuffer::new(config)?;
    let mut up: Link<Vec<(u64, u8)>> = Link::new(1);
    let mut down: Link<State> = Link::new(2);
    // Inputs are repeated until a state has consumed them.
    let mut unconfirmed: VecDeque<(u64, u8)> = VecDeque::new();
    let mut predictor = Predictor::new(0.001, 256);
    let (mut consumed, mut own_keys) = (None, 0);
    let mut others = vec![0; BODIES];
    let mut score = Score::default();
    for tick in 0..TICKS {
        // The server: one input of the client per tick.
        for packet in up.arrived(tick) {
            for (number, keys) in packet {
                // Most were buffered before.
                let _ = buffer.push(number, keys);
            }
        }
        match buffer.next_tick() {
            BufferedInput::Input(number, keys) => (consumed, own_keys) = (Some(number), keys),
            BufferedInput::Missing | BufferedInput::Waiting => {}
        }
        let mut keys: Vec<u8> = players.iter_mut().map(Player::keys).collect();
        let wanted = std::mem::replace(&mut keys[0], own_keys);
        server.step(&keys);
        let state = State {
            consumed,
            arena: server.clone(),
            keys,
        };
        down.send(tick, state);

        // The client.
        let mut corrected = 0.0;
        if let Some(state) = down.arrived(tick).pop() {
            others = match knows {
                Knows::Keys => state.keys,
                Knows::Own | Knows::Bodies => vec![0; BODIES],
            };
            let arena = match knows {
                Knows::Own => state.arena.alone(),
                Knows::Bodies | Knows::Keys => state.arena,
            };
            while unconfirmed
                .front()
                .is_some_and(|(number, _)| Some(*number) <= state.consumed)
            {
                unconfirmed.pop_front();
            }
            let before = predictor.predicted().map(Arena::own);
            predictor.confirm(state.consumed, arena, |arena, keys| {
                step(arena, *keys, &others)
            })?;
            if let (Some(before), Some(after)) = (before, predictor.predicted()) {
                corrected = (before - after.own()).length().into();
            }
        }
        unconfirmed.push_back((tick, wanted));
        predictor.act(tick, wanted, |arena, keys| step(arena, *keys, &others))?;
        up.send(tick, unconfirmed.iter().copied().collect());
        if tick > 100 {
            score.ticks += 1;
            score.corrections += u32::from(corrected > 0.002);
            score.large += u32::from(corrected > BODY / 10.0);
            score.largest = score.largest.max(corrected);
        }
    }
    score.replayed = predictor.statistics().replayed;
    Ok(score)
}

/// The client's step: its own keys, and what it knows of those of the others.
fn step(arena: &mut Arena, own: u8, others: &[u8]) {
    let mut keys = others.to_vec();
    keys[0] = own;
    arena.step(&keys);
}

/// A player who changes their mind about once a second.
struct Player {
    dice: Dice,
    keys: u8,
    left: u64,
}

impl Player {
    fn new(seed: u64) -> Self {
        Self {
            dice: Dice(seed + 100),
            keys: 0,
            left: 0,
        }
    }

    fn keys(&mut self) -> u8 {
        if self.left == 0 {
            self.left = 10 + self.dice.below(50);
            self.keys = self.dice.below(16) as u8;
        }
        self.left -= 1;
        self.keys
    }
}

const BODIES: usize = 8;
const TICKS: u64 = 3600;
