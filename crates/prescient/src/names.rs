//! Re-exports of other crates.
//!
//! They are in a module of their own because this crate's derive macros `State` and `Event` must stand
//! beside the traits of another crate, and an explicit export hides that crate's macros only if the
//! latter are a glob import.

pub use prescient_channels::lobby::{
    Bytes, ClientInfo, Latency, MAX_PLAYERS, Player, PlayerId, Roster, ServerInfo, Text, TooLong,
};
pub use prescient_channels::{
    AcknowledgedPacket, Aimd, BlobError, BlobId, BytesPerSecond, Carrier, CarrierEvent, ClientId,
    CloseReason, ConfigError, Congestion, CongestionControl, CongestionFactory, ConnectError,
    DelayBased, Denial, ExchangeConfig, FixedRate, Input, InputError, InputTick, Keys, LostPacket,
    RateLimits, RequestError, RequestId, RoundTrip, RoundTripWindow, SendError, SentPacket,
    Statistics, Time, Traffic,
};
pub use prescient_codec::{Policy, Prior, PriorMismatch, Profile};
#[cfg(feature = "udp")]
pub use prescient_net::{
    Clock, SystemEntropy, TcpClient, TcpError, TcpServer, key_from_text, new_key, token_from_text,
    token_to_text,
};
pub use prescient_replication::adaptation::{Adaptation, AdaptationReport, LinkEstimate};
pub use prescient_replication::{
    About, Candidate, Change, ClientConfig, Config, Distance, DistanceError, Divergence,
    EntityHandle, EventError, Everything, Factory, HistoryDepth, HistoryTooShort, Link,
    MAX_RATE_DIVISOR, MAX_SNAPSHOT_INTERVAL, Observer, Owned, PeerError, PeerId, PeerStatistics,
    Position, Priority, PublishError, PublishedPacket, Publisher, PublisherConfig,
    PublisherConfigError, Quality, QualityError, Question, QuestionId, Relevance, Reply, ReplyTo,
    Selection, ServerConfig, SetError, SettingsMismatch, ShowsEntities, SubscribeError, Subscriber,
    Tick, Tolerance, TypedEvent, Views, Visibility, Weight, World, WorldError, WorldStep,
};
pub use prescient_schema::{
    Difference, EntityRef, Event, EventDelivery, Events, Level, Misfit, Ref, Request, Schema,
    SchemaBuilder, State, States,
};
#[cfg(feature = "udp")]
pub use prescient_transport::{
    ConnectToken, Entropy, Grant, Limits, LinkConfig, ProtocolId, TokenKey, UnixTime,
};
