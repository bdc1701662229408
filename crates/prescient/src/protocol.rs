//! The protocol version that both ends must share, and the channels.

use prescient_channels::ChannelId;

/// The protocol id that tokens must carry: an end with another version is refused in the handshake.
/// Schemas are compared afterwards, so that the differences can be reported.
#[cfg(feature = "udp")]
pub fn protocol() -> prescient_transport::ProtocolId {
    prescient_transport::ProtocolId::of(&[b"prescient", &[prescient_codec::WIRE_VERSION, VERSION]])
}

/// Version of the messages of `prescient-replication`.
#[cfg(feature = "udp")]
const VERSION: u8 = 6;

/// State in both directions, and its acknowledgements. Messages of one tick may arrive in any order;
/// those that are late are recognised by the codec.
pub(crate) const STATE: ChannelId = ChannelId::UNRELIABLE;
/// Events, in both directions.
pub(crate) const EVENTS: ChannelId = ChannelId::ORDERED;
