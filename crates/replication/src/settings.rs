//! The settings that a server and its clients share besides the schema; the server decides and
//! sends them.

use prescient_codec::{Config, Policy, Profile};
use thiserror::Error;

/// Bytes of the settings in a message.
pub(crate) const LEN: usize = 7;

/// Encodes the settings for a message.
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
}

prescient_schema::debug_as_display!(SettingsMismatch);

/// The server's settings with the client's own limit of entities.
pub(crate) fn adopt(server: Config, max_entities: usize) -> Result<Config, SettingsMismatch> {
    let client = entities(max_entities) as usize;
    if server.max_entities() > client {
        let server = server.max_entities();
        return Err(SettingsMismatch::MaxEntities { server, client });
    }
    Ok(server.with_max_entities(client))
}
