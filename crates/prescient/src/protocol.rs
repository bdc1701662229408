//! What both ends must have in common, and which channels carry what.

use prescient_schema::Schema;
use prescient_transport::{ChannelId, ProtocolId};

/// The protocol of two ends that share a schema, which tokens name: whoever has another is turned
/// away at the door.
pub fn protocol_of(schema: &Schema) -> ProtocolId {
    ProtocolId::of(&[
        b"prescient",
        &[prescient_codec::WIRE_VERSION],
        &schema.fingerprint().to_be_bytes(),
    ])
}

/// State, and what was applied of it: the newest counts.
pub(crate) const STATE: ChannelId = ChannelId::SEQUENCED;
/// Events, both ways.
pub(crate) const EVENTS: ChannelId = ChannelId::ORDERED;
