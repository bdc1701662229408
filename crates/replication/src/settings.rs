//! The settings that a server and its clients share besides the schema; the server decides and
//! sends them.

use prescient_codec::{Config, Policy, Prior, Profile};
use prescient_schema::Fingerprint;
use thiserror::Error;

/// The settings that a server sends to its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub config: Config,
    /// The prior from which the models start.
    pub prior: Option<Fingerprint>,
}

impl Settings {
    /// Encodes the settings as the end of a message.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        write(&self.config, bytes);
        if let Some(prior) = self.prior {
            bytes.extend_from_slice(&prior.to_be_bytes());
        }
    }

    /// Reads what [`write`](Self::write) wrote; `None` for anything else.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (config, prior) = bytes.split_at_checked(LEN)?;
        let prior = match prior.is_empty() {
            true => None,
            false => Some(Fingerprint::from_be_bytes(prior.try_into().ok()?)),
        };
        let config = read(config)?;
        Some(Self { config, prior })
    }
}

/// Bytes of the settings without a prior.
pub(crate) const LEN: usize = 7;

/// Encodes the settings without a prior.
pub(crate) fn write(config: &Config, bytes: &mut Vec<u8>) {
    let policy = match config.policy() {
        Policy::Confirmed => 0,
        Policy::Immediate => 1,
        Policy::Stateless => 2,
    };
    let profile = match config.profile() {
        Profile::Default => 0,
        Profile::Best => 1,
    };
    bytes.extend([policy, profile, u8::from(config.learning())]);
    bytes.extend_from_slice(&entities(config.max_entities()).to_le_bytes());
}

/// Reads what [`write`] wrote; `None` for anything else.
pub(crate) fn read(bytes: &[u8]) -> Option<Config> {
    let &[policy, profile, learning, ref entities @ ..] = bytes else {
        return None;
    };
    let policy = match policy {
        0 => Policy::Confirmed,
        1 => Policy::Immediate,
        2 => Policy::Stateless,
        _ => return None,
    };
    let profile = match profile {
        0 => Profile::Default,
        1 => Profile::Best,
        _ => return None,
    };
    let learning = match learning {
        0 => false,
        1 => true,
        _ => return None,
    };
    let max_entities = u32::from_le_bytes(entities.try_into().ok()?) as usize;
    let config = Config::default()
        .with_policy(policy)
        .with_profile(profile)
        .with_learning(learning)
        .with_max_entities(max_entities);
    Some(config)
}

/// Entity ids have 32 bits, so a higher number is no limit.
fn entities(max_entities: usize) -> u32 {
    u32::try_from(max_entities).unwrap_or(u32::MAX)
}

/// A setting of the server that a client cannot adopt.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SettingsMismatch {
    /// The server may show more entities than this client accepts. Raise
    /// [`ClientConfig::with_max_entities`](crate::ClientConfig::with_max_entities) or lower the server's
    /// limit.
    #[error("the server may show {server} entities, and this client holds {client} at most")]
    MaxEntities {
        /// [`Config::max_entities`] of the server.
        server: usize,
        /// [`ClientConfig::with_max_entities`](crate::ClientConfig::with_max_entities) of the client.
        client: usize,
    },
    /// The server's models start from a prior that this client does not have. Give it the server's
    /// file ([`ClientConfig::with_prior`](crate::ClientConfig::with_prior)).
    #[error("the server starts from prior {server}, and this client has {}", or_none(.client))]
    Prior {
        /// [`Prior::fingerprint`] of the server's.
        server: Fingerprint,
        /// That of the client's, if it has one.
        client: Option<Fingerprint>,
    },
}

fn or_none(prior: &Option<Fingerprint>) -> String {
    prior.map_or_else(|| "none".into(), |prior| prior.to_string())
}

prescient_schema::debug_as_display!(SettingsMismatch);

/// The server's settings with the client's own limit of entities, and the prior to start from.
pub(crate) fn adopt(
    server: Settings,
    max_entities: usize,
    prior: Option<&Prior>,
) -> Result<(Config, Option<&Prior>), SettingsMismatch> {
    let client = entities(max_entities) as usize;
    if server.config.max_entities() > client {
        let server = server.config.max_entities();
        return Err(SettingsMismatch::MaxEntities { server, client });
    }
    let config = server.config.with_max_entities(client);
    let Some(pinned) = server.prior else {
        return Ok((config, None));
    };
    let same = prior.filter(|prior| {
        prior.fingerprint() == pinned && prior.profile() == server.config.profile()
    });
    match same {
        Some(prior) => Ok((config, Some(prior))),
        None => Err(SettingsMismatch::Prior {
            server: pinned,
            client: prior.map(Prior::fingerprint),
        }),
    }
}
