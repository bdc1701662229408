//! The limits of a forwarder, and the commands that it accepts.

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
    /// The most faces; 1024 by default.
    pub fn max_faces(mut self, faces: usize) -> Self {
        self.max_faces = faces;
        self
    }

    /// The most bytes of pending Interests, in total and per face; 64 and 16 MiB by default. An Interest
    /// counts its length and 512 bytes of overhead. One that exceeds a limit gets a Nack for congestion.
    pub fn max_pending_bytes(mut self, of_all: usize, of_one: usize) -> Self {
        self.max_pending_bytes = of_all;
        self.max_pending_bytes_per_face = of_one;
        self
    }

    /// The longest time that an Interest is pending, whatever its own lifetime; a minute by default.
    pub fn max_lifetime(mut self, lifetime: Duration) -> Self {
        self.max_lifetime = lifetime;
        self
    }

    /// The most routes, in total and per face; 4096 and 1024 by default.
    pub fn max_routes(mut self, of_all: usize, of_one: usize) -> Self {
        self.max_routes = of_all;
        self.max_routes_per_face = of_one;
        self
    }

    /// The size of the content store; 64 MiB by default, 0 for none. A packet counts its length, 192 bytes
    /// of overhead, and 64 bytes for each component of its name.
    pub fn max_store_bytes(mut self, bytes: usize) -> Self {
        self.max_store_bytes = bytes;
        self
    }

    /// The size of the dead nonce list, for loop detection; 65,536 by default.
    pub fn max_dead_nonces(mut self, nonces: usize) -> Self {
        self.max_dead_nonces = nonces;
        self
    }

    /// The most bytes that wait for [`poll_transmit`](crate::Forwarder::poll_transmit); 16 MiB by default. A
    /// packet counts its length and 128 bytes of overhead. Further packets are dropped and counted.
    pub fn max_queued_bytes(mut self, bytes: usize) -> Self {
        self.max_queued_bytes = bytes;
        self
    }

    /// Which commands are accepted; all from local faces by default.
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

/// Which commands a forwarder accepts from faces that may register prefixes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CommandTrust {
    /// All of them, with any signature: from applications on this machine, and from neighbours that may
    /// register because their link is trusted.
    LocalFaces,
    /// Those that are signed with one of these keys, each later than the last under the same key.
    Keys(Vec<Verifier>),
}
