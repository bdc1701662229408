//! Names of other crates that this one hands on.
//!
//! They stand in a module of their own because the derive macro `State` of this crate is to be found
//! beside the trait `State` of another, and hides the macro of that one only in a glob import.

pub use prescient_codec::{Policy, Profile};
pub use prescient_net::{key_from_text, token_from_text};
pub use prescient_replication::{
    About, Candidate, Change, ClientConfig, Config, Distance, Divergence, EntityHandle, Everything,
    Factory, Observer, Owned, PeerError, PeerId, PeerStatistics, Position, Relevance, ServerConfig,
    SetError, SettingsMismatch, Tick, Tolerance, Views, Visibility, Weight, World, WorldError,
    WorldStep,
};
pub use prescient_schema::{Difference, EntityRef, Level, Ref, Schema, SchemaBuilder, State};
pub use prescient_transport::{
    ClientId, CloseReason, ConnectError, ConnectToken, Grant, Input, InputError, Keys, Limits,
    LinkConfig, ProtocolId, SendError, TokenKey, UnixTime,
};
