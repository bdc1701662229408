//! The limits of a forwarder, and whose commands it carries out.

use std::time::Duration;

use crate::signature::Verifier;

/// The limits of a forwarder. Beyond them Interests get a Nack, Data is not cached, and routes and faces
/// are refused.
#[derive(Clone, Debug)]
pub struct ForwarderConfig {
    pub(crate) max_faces: usize,
    pub(crate) max_pending_bytes: usize,
    pub(crate) max_pending_bytes_per_face: usize,
    pub(crate) max_lifetime: Duration,
    pub(crate) max_routes: usize,
    pub(crate) max_routes_per_face: usize,
    pub(crate) max_store_bytes: usize,
    pub(crate) max_dead_nonces: usize,
    pub(crate) max_queued_bytes: usize,
    pub(crate) commands: CommandTrust,
    pub(crate) commands_after: u64,
}

impl Default for ForwarderConfig {
    fn default() -> Self {
        Self {
            max_faces: 1024,
            max_pending_bytes: 64 << 20,
            max_pending_bytes_per_face: 16 << 20,
            max_lifetime: Duration::from_secs(60),
            max_routes: 4096,
            max_routes_per_face: 1024,
            max_store_bytes: 64 << 20,
            max_dead_nonces: 1 << 16,
            max_queued_bytes: 16 << 20,
            commands: CommandTrust::LocalFaces,
            commands_after: 0,
        }
    }
}

impl ForwarderConfig {
    /// How many faces there may be; 1024 by default.
    pub fn max_faces(mut self, faces: usize) -> Self {
        self.max_faces = faces;
        self
    }

    /// How much Interests that wait for Data may take, of all faces and of one, with 512 bytes for
    /// keeping an Interest counted besides its own; 64 and 16 MiB by default. An Interest beyond that
    /// is answered with a Nack for congestion.
    pub fn max_pending_bytes(mut self, of_all: usize, of_one: usize) -> Self {
        self.max_pending_bytes = of_all;
        self.max_pending_bytes_per_face = of_one;
        self
    }

    /// The longest that an Interest is remembered, whatever its own lifetime; a minute by default.
    pub fn max_lifetime(mut self, lifetime: Duration) -> Self {
        self.max_lifetime = lifetime;
        self
    }

    /// How many routes there may be, to all faces and to one; 4096 and 1024 by default.
    pub fn max_routes(mut self, of_all: usize, of_one: usize) -> Self {
        self.max_routes = of_all;
        self.max_routes_per_face = of_one;
        self
    }

    /// How much the content store may take; 64 MiB by default, 0 for none. A packet counts with its
    /// length, 192 bytes, and 64 bytes for each component of its name.
    pub fn max_store_bytes(mut self, bytes: usize) -> Self {
        self.max_store_bytes = bytes;
        self
    }

    /// The size of the dead nonce list, for loop detection; 65,536 by default.
    pub fn max_dead_nonces(mut self, nonces: usize) -> Self {
        self.max_dead_nonces = nonces;
        self
    }

    /// How much may wait for [`poll_transmit`](crate::Forwarder::poll_transmit), with 128 bytes counted
    /// for a packet besides its own; 16 MiB by default. Further packets are dropped and counted.
    pub fn max_queued_bytes(mut self, bytes: usize) -> Self {
        self.max_queued_bytes = bytes;
        self
    }

    /// Whose commands are carried out; those of local faces by default.
    pub fn commands(mut self, trust: CommandTrust) -> Self {
        self.commands = trust;
        self
    }

    /// With keys: refuses commands that were signed at or before this time, in milliseconds since 1970.
    /// Set it to the time of the start, or commands to an earlier process could be replayed.
    pub fn commands_after(mut self, milliseconds: u64) -> Self {
        self.commands_after = milliseconds;
        self
    }
}

/// Whose commands a forwarder carries out, among faces that may register prefixes.
#[derive(Clone, Debug)]
pub enum CommandTrust {
    /// Every such face's, whatever the signature says: that of an application on this machine, or
    /// of a neighbour which may register because the link is trusted.
    LocalFaces,
    /// Those that one of these keys signed, each later than the last under its key.
    Keys(Vec<Verifier>),
}
