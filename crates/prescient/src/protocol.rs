//! What both ends must have in common, and which channels carry what.

use prescient_transport::{ChannelId, ProtocolId};

/// What tokens have to name: whoever speaks another version is turned away at the door. Whether
/// both have the same schema turns out after that, so that it can be said where they differ.
pub fn protocol() -> ProtocolId {
    ProtocolId::of(&[b"prescient", &[prescient_codec::WIRE_VERSION, VERSION]])
}

/// Of the messages of `prescient-replication`.
const VERSION: u8 = 2;

/// State, both ways, and what clients applied of it: the newest counts.
pub(crate) const STATE: ChannelId = ChannelId::SEQUENCED;
/// Events, both ways.
pub(crate) const EVENTS: ChannelId = ChannelId::ORDERED;
/// What the server applied of what clients reported, apart from the state that they answer.
pub(crate) const ANSWERS: ChannelId = ChannelId::UNRELIABLE;
