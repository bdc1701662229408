//! Settings, codecs, names and keys that all players of a run share.

use prescient::named::{ComponentKind, Freshness, Grid, Member, Name, NameRef, Radii, Signer};
use prescient::{EntitySet, EntitySetCodec};
use prescient_sim::world::Random;

use super::{Arena, Block, Player, Seen, Status};

/// The prefix of all names of the game.
const GAME: &str = "/arena/0";
/// The group in which players find each other.
pub(crate) const GROUP: &str = "/arena/0/discovery";

/// Settings that all players of a run share.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) seed: u64,
    pub(crate) players: u32,
    pub(crate) freshness: Freshness,
    /// The threshold of dead reckoning; without one every update is published.
    pub(crate) throttle: Option<f64>,
    /// Without radii all players are requested as often as possible.
    pub(crate) interest: Option<Radii>,
    pub(crate) finding: Finding,
    /// Characters without a player, which peers share out among themselves.
    pub(crate) npcs: u32,
    pub(crate) codecs: Codecs,
}

/// How players find each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Finding {
    /// They know each other from the start.
    Known,
    /// All are members of one group.
    Group,
    /// Each knows those in the regions around it.
    Regions(Grid),
}

/// The codecs of the game's types, with a prior that every machine trains from the same bots.
#[derive(Clone)]
pub(crate) struct Codecs {
    pub(super) status: EntitySetCodec<Status>,
    pub(super) blocks: EntitySetCodec<Block>,
}

impl std::fmt::Debug for Codecs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Codecs")
    }
}

impl Codecs {
    pub(crate) fn trained() -> Self {
        let arena = Arena::for_players(4);
        let mut status = Vec::new();
        for number in 0..4 {
            let mut bot = Player::new(number, 1, &arena);
            for frame in 0..1800_u64 {
                bot.step(&arena, &Seen::default());
                if frame % 4 == 0 {
                    let tick = u64::from(number) * 1800 + frame;
                    status.push(one(tick, &bot.status));
                }
            }
        }
        let plain = EntitySetCodec::new().expect("a sound type");
        let trained = EntitySetCodec::train(&status).ok();
        let trained = trained.and_then(|prior| plain.clone().with_prior(&prior).ok());
        Self {
            status: trained.unwrap_or(plain),
            blocks: EntitySetCodec::new().expect("a sound type"),
        }
    }

    pub(super) fn fingerprint(&self) -> [u8; 16] {
        self.status.fingerprint().to_be_bytes()
    }
}

/// A set of one entity.
pub(super) fn one<T: Clone>(tick: u64, entity: &T) -> EntitySet<T> {
    EntitySet {
        tick,
        entities: [(0, entity.clone())].into(),
    }
}

/// The prefix of all names of a player.
pub(crate) fn player_name(number: u32) -> Name {
    let text = format!("{GAME}/p{number}");
    text.parse().unwrap_or_default()
}

pub(super) fn topic_name(player: &Name, text: &str) -> Name {
    let mut name = player.clone();
    let pushed = name.push(ComponentKind::GENERIC, text.as_bytes());
    debug_assert!(pushed.is_ok());
    name
}

/// The number of the player whose name this is, or starts with.
pub(super) fn number_of(name: NameRef<'_>) -> Option<u32> {
    let component = name.get(2)?;
    let text = std::str::from_utf8(component.value).ok()?;
    text.strip_prefix('p')?.parse().ok()
}

/// A player's key. A real game draws it from the system's randomness at every start.
pub(super) fn signer(settings: &Settings, member: &Member) -> Signer {
    Signer::ed25519(&key_seed(settings, member), Some(member.name.clone()))
}

pub(super) fn public_key(settings: &Settings, member: &Member) -> [u8; 32] {
    let verifier = signer(settings, member).verifier();
    verifier.public_key().unwrap_or_default()
}

fn key_seed(settings: &Settings, member: &Member) -> [u8; 32] {
    let number = number_of(member.name.view()).unwrap_or_default();
    let mut random = Random::new(settings.seed ^ member.boot << 24 ^ u64::from(number) << 1);
    let mut seed = [0; 32];
    seed.fill_with(|| random.bits() as u8);
    seed
}

pub(super) fn key(random: &mut Random) -> [u8; 16] {
    let [high, low] = [random.bits(), random.bits()].map(u128::from);
    (high << 64 | low).to_be_bytes()
}
