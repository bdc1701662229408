//! The types of the world, and the requests of clients.

use prescient::{Schema, SchemaBuilder, State};
use prescient_channels::ChannelId;
use prescient_transport::{ProtocolId, TokenKey};

use crate::shooter::{Status, Target};

/// The part of a player that its client reports. The server decides on health.
#[derive(State, Clone, Debug, PartialEq)]
#[state(tick_hz = 30)]
pub(super) struct Avatar {
    #[state(step = 0.01, position)]
    pub(super) position: [f32; 2],
    #[state(step = 0.01, velocity_of = "position")]
    pub(super) velocity: [f32; 2],
    pub(super) ammunition: u8,
    #[state(only_on_spawn)]
    pub(super) number: u32,
}

impl Avatar {
    pub(super) fn of(status: &Status, number: u32) -> Self {
        Self {
            position: status.position,
            velocity: status.velocity,
            ammunition: status.ammunition,
            number,
        }
    }
}

/// The part of a player that the server decides on.
#[derive(State, Clone, Debug, PartialEq)]
pub(super) struct Vitals {
    pub(super) health: u8,
    #[state(only_on_spawn)]
    pub(super) number: u32,
}

/// A block of a player.
#[derive(State, Clone, Debug, PartialEq)]
pub(super) struct Placed {
    #[state(step = 0.01, position)]
    pub(super) position: [f32; 2],
    pub(super) health: u8,
    #[state(only_on_spawn)]
    pub(super) owner: u32,
    #[state(only_on_spawn)]
    pub(super) number: u32,
}

pub(super) fn schema() -> Schema {
    let builder = SchemaBuilder::new();
    let builder = builder
        .state::<Avatar>()
        .state::<Vitals>()
        .state::<Placed>();
    builder.build().expect("sound types")
}

/// A request of a client.
pub(super) enum Wish {
    Join,
    Shot(Vec<u8>),
    Place(u32, [f32; 2]),
    Hit(Target),
}

pub(super) fn write_wish(wish: &Wish) -> Vec<u8> {
    let pair =
        |kind: u8, a: u32, b: u32| [&[kind][..], &a.to_be_bytes(), &b.to_be_bytes()].concat();
    match wish {
        Wish::Join => Vec::new(),
        Wish::Shot(bytes) => [&[1], &bytes[..]].concat(),
        Wish::Place(number, position) => {
            let [x, y] = position.map(f32::to_be_bytes);
            [&[2][..], &number.to_be_bytes(), &x, &y].concat()
        }
        Wish::Hit(Target::Player(other)) => pair(3, *other, 0),
        Wish::Hit(Target::Block(owner, number)) => pair(4, *owner, *number),
    }
}

pub(super) fn read_wish(bytes: &[u8]) -> Option<Wish> {
    let (kind, rest) = bytes.split_first()?;
    let word = |place: usize| Some(u32::from_be_bytes(*rest.get(place..)?.first_chunk()?));
    Some(match kind {
        1 => Wish::Shot(rest.to_vec()),
        2 => Wish::Place(
            word(0)?,
            [f32::from_bits(word(4)?), f32::from_bits(word(8)?)],
        ),
        3 => Wish::Hit(Target::Player(word(0)?)),
        4 => Wish::Hit(Target::Block(word(0)?, word(4)?)),
        _ => return None,
    })
}

pub(super) const STATE: ChannelId = ChannelId::UNRELIABLE;
pub(super) const EVENTS: ChannelId = ChannelId::ORDERED;
pub(super) const PROTOCOL: ProtocolId = ProtocolId(*b"prescient arena!");

/// Clients issue their own tokens: the game is played for its figures.
pub(super) fn token_key() -> TokenKey {
    TokenKey::new([7; 32]).expect("not the public one")
}
