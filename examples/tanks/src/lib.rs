//! A game of tanks: fog of war by distance and team, ammunition that only its owner sees, turrets on
//! tanks, bullets, chat, rounds, and players who join late. Own tanks move at once, and bullets hit
//! what their shooters saw. This file is what both ends share.
//!
//! `cargo run --release -p prescient-example-tanks --bin server wifi` (or another link of
//! `prescient::links::PRESETS`), then `--bin bots ADDRESS` with the address that the server prints.

#![allow(missing_docs, reason = "names say it")]

mod bot;
mod game;

pub use bot::Bot;
pub use game::Game;
use prescient::{Event, Ref, Schema, State, playout::SeenTick};

pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Whoever sees a tank sees its public table; the private one is for its owner.
#[derive(State, Clone, Default)]
#[state(tables(public, private), predicted)]
pub struct Tank {
    #[state(max_len = 16)]
    pub name: String,
    pub team: u8,
    #[state(step = 0.01, position)]
    pub position: [f32; 2],
    pub health: u8,
    pub rounds_won: Vec<u16>,
    #[state(tables(private))]
    pub ammo: u8,
}

/// Stands on a tank, and is visible as the tank is.
#[derive(State, Default)]
pub struct Turret {
    pub tank: Ref<Tank>,
    #[state(step = 0.01)]
    pub angle: f32,
}

#[derive(State)]
#[state(tick_hz = 30)]
pub struct Bullet {
    pub shooter: Ref<Tank>,
    #[state(step = 0.01, position)]
    pub position: [f32; 2],
    #[state(step = 0.1, velocity_of = "position")]
    pub velocity: [f32; 2],
    /// The tick that its shooter sees.
    #[state(skip)]
    pub seen: f64,
}

#[derive(State, Default)]
pub struct Round {
    pub number: u16,
    pub ticks_left: u16,
    pub kills: [u16; 2],
    pub banner: String,
}

#[derive(Event)]
pub enum News {
    /// This tank is yours.
    Welcome(Ref<Tank>),
    /// By whom, and who.
    Kill(Ref<Tank>, Ref<Tank>),
    Chat(Ref<Tank>, String),
}

/// What a player does in a tick, and what they see meanwhile.
#[derive(Event, Default)]
pub struct Drive {
    #[event(step = 0.01)]
    pub velocity: [f32; 2],
    #[event(step = 0.01)]
    pub aim: f32,
    pub fire: bool,
    pub seen: SeenTick,
}

impl Tank {
    /// What an input does. The server and the player's client have the same code, so that the client
    /// need not wait for the server.
    pub fn drive(&mut self, drive: &Drive) {
        for (at, by) in self.position.iter_mut().zip(drive.velocity) {
            *at = (*at + by.clamp(-0.5, 0.5)).clamp(-100.0, 100.0);
        }
    }
}

pub fn schema() -> Result<Schema> {
    let states = Schema::of::<(Tank, Turret, Bullet, Round)>()?;
    Ok(states.with_events::<(News, Drive)>()?)
}

pub fn distance(a: [f32; 2], b: [f32; 2]) -> f32 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}
