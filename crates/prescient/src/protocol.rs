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
const VERSION: u8 = 3;

/// State in both directions, and its acknowledgements; only the newest message counts.
pub(crate) const STATE: ChannelId = ChannelId::SEQUENCED;
/// Events, in both directions.
pub(crate) const EVENTS: ChannelId = ChannelId::ORDERED;
/// The server's acknowledgements of client reports, on another channel than state.
pub(crate) const ANSWERS: ChannelId = ChannelId::UNRELIABLE;
