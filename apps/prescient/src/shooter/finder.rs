//! How a player finds the others.

use prescient::named::{
    Data, Discovery, DiscoveryConfig, DiscoveryEvent, Grid, Interest, Member, PrefixChange,
    Profile, Regions, Time,
};
use prescient_sim::world::Random;

use super::settings::{Finding, GROUP, Settings, key, public_key};

/// A player's discovery of the others.
pub(super) enum Finder {
    /// All players know each other from the start.
    Known,
    Group(Box<Discovery>),
    Regions(Box<Regions>, Grid),
}

impl Finder {
    pub(super) fn new(
        settings: &Settings,
        own: &Member,
        now: Time,
        unix: u64,
        random: &mut Random,
    ) -> Self {
        let profile = Profile {
            key: public_key(settings, own),
            fingerprint: settings.codecs.fingerprint(),
            details: Vec::new(),
        };
        let group = GROUP.parse().unwrap_or_default();
        let config = DiscoveryConfig::new(group, own.name.clone(), own.boot, profile)
            .expect("names of players are short")
            .key(&settings.seed.to_be_bytes());
        let key = key(random);
        match settings.finding {
            Finding::Known => Self::Known,
            Finding::Group => Self::Group(Box::new(Discovery::new(now, unix, config, key))),
            Finding::Regions(grid) => {
                Self::Regions(Box::new(Regions::new(now, unix, config, key)), grid)
            }
        }
    }

    pub(super) fn handle_interest(&mut self, now: Time, interest: &Interest<'_>) {
        match self {
            Self::Known => false,
            Self::Group(discovery) => discovery.handle_interest(now, interest),
            Self::Regions(regions, _) => regions.handle_interest(now, interest),
        };
    }

    /// False if it is not a profile that was requested.
    pub(super) fn handle_data(&mut self, now: Time, data: &Data<'_>) -> bool {
        match self {
            Self::Known => false,
            Self::Group(discovery) => discovery.handle_data(now, data),
            Self::Regions(regions, _) => regions.handle_data(now, data),
        }
    }

    /// The player is at a position now.
    pub(super) fn move_to(&mut self, now: Time, position: [f32; 2]) {
        if let Self::Regions(regions, grid) = self {
            let position = position.map(f64::from);
            // A grid never names too many regions, and its names are short.
            let _ = regions.enter(now, &grid.region(position), &grid.near(position));
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        match self {
            Self::Group(discovery) if discovery.next_timeout() <= now => {
                discovery.handle_timeout(now);
            }
            Self::Regions(regions, _) if regions.next_timeout().is_some_and(|due| due <= now) => {
                regions.handle_timeout(now);
            }
            _ => {}
        }
    }

    pub(super) fn poll_transmit(&mut self, bytes: &mut Vec<u8>) -> bool {
        match self {
            Self::Known => false,
            Self::Group(discovery) => discovery.poll_transmit(bytes),
            Self::Regions(regions, _) => regions.poll_transmit(bytes),
        }
    }

    pub(super) fn poll_event(&mut self) -> Option<DiscoveryEvent> {
        match self {
            Self::Known => None,
            Self::Group(discovery) => discovery.poll_event(),
            Self::Regions(regions, _) => regions.poll_event(),
        }
    }

    pub(super) fn poll_prefix(&mut self) -> Option<PrefixChange> {
        match self {
            Self::Regions(regions, _) => regions.poll_prefix(),
            _ => None,
        }
    }
}
