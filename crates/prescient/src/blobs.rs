//! Blobs: large data such as maps and replays, sent beside the game.

use prescient_channels::{BlobError, BlobId, Carrier, ConnectionId, Received};
use prescient_replication::PeerId;

use crate::client::Client;
use crate::server::Server;

/// Progress or outcome of a blob, at either end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlobEvent {
    /// The other end offers a blob: accept it, or cancel it.
    Offered {
        /// The blob.
        blob: BlobId,
        /// The sender's description of it.
        label: Vec<u8>,
        /// Its size in bytes.
        size: u64,
    },
    /// A part of a blob arrived, in either direction.
    Progress {
        /// The blob.
        blob: BlobId,
        /// Bytes that have arrived.
        done: u64,
        /// Its size in bytes.
        size: u64,
    },
    /// A blob that this end accepted is complete.
    Arrived {
        /// The blob.
        blob: BlobId,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A blob that this end offered is complete at the other end.
    Delivered {
        /// The blob.
        blob: BlobId,
    },
    /// The other end withdrew, refused or stopped a blob.
    Cancelled {
        /// The blob.
        blob: BlobId,
    },
}

impl BlobEvent {
    /// `None` for what is not about a blob.
    pub(crate) fn of(received: Received) -> Option<Self> {
        Some(match received {
            Received::BlobOffered { blob, label, size } => Self::Offered { blob, label, size },
            Received::BlobProgress { blob, done, size } => Self::Progress { blob, done, size },
            Received::BlobArrived { blob, bytes } => Self::Arrived { blob, bytes },
            Received::BlobDelivered { blob } => Self::Delivered { blob },
            Received::BlobCancelled { blob } => Self::Cancelled { blob },
            _ => return None,
        })
    }

    /// The memory that it takes while it waits to be polled.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Offered { label, .. } => label.len(),
            Self::Arrived { bytes, .. } => bytes.len(),
            _ => 0,
        }
    }
}

impl Server {
    /// Offers a peer a blob, with a label of up to 64 bytes that describes it. It is sent once the
    /// peer accepts it, beside state and events and without delaying them; progress is polled as
    /// [`ServerEvent::Blob`](crate::ServerEvent::Blob). Up to 8 blobs may be under way to a peer,
    /// of 64 MiB each by default
    /// ([`ExchangeConfig::with_blob_memory`](crate::ExchangeConfig::with_blob_memory)).
    ///
    /// ```
    /// use prescient::{BlobEvent, ClientEvent, Everything, Schema, Server, ServerEvent, State};
    /// # #[derive(State)]
    /// # struct Tank { #[state(step = 0.01)] x: f32 }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut server = Server::offline(Schema::of::<Tank>()?, Everything)?;
    /// let mut client = server.local_client();
    /// let Some(ServerEvent::Joined { peer, .. }) = server.poll() else { panic!("it joins") };
    /// let map = server.offer_blob(peer, b"map: desert", vec![7; 100_000])?;
    /// while let Some(event) = client.poll() {
    ///     match event {
    ///         ClientEvent::Blob(BlobEvent::Offered { blob, .. }) => client.accept_blob(blob)?,
    ///         ClientEvent::Blob(BlobEvent::Arrived { bytes, .. }) => assert_eq!(bytes.len(), 100_000),
    ///         _ => {}
    ///     }
    /// }
    /// let delivered = BlobEvent::Delivered { blob: map };
    /// assert_eq!(server.poll(), Some(ServerEvent::Blob { peer, blob: delivered }));
    /// # Ok(())
    /// # }
    /// ```
    pub fn offer_blob(
        &mut self,
        peer: PeerId,
        label: &[u8],
        bytes: Vec<u8>,
    ) -> Result<BlobId, BlobError> {
        let offered = self.with_carrier_of(peer, |carrier, connection| {
            carrier.offer_blob(connection, label, bytes)
        });
        self.unless_leaving(peer, offered, BlobId::new(u64::MAX, true))
    }

    /// Accepts a blob that a peer [offered](BlobEvent::Offered).
    pub fn accept_blob(&mut self, peer: PeerId, blob: BlobId) -> Result<(), BlobError> {
        let accepted = self.with_carrier_of(peer, |carrier, connection| {
            carrier.accept_blob(connection, blob)
        });
        self.unless_leaving(peer, accepted, ())
    }

    /// Refuses or stops a peer's blob, or withdraws one that was offered to it.
    ///
    /// ```
    /// # use prescient::{BlobError, BlobId, Everything, Schema, Server, ServerEvent, State};
    /// # #[derive(State)]
    /// # struct Tank { #[state(step = 0.01)] x: f32 }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let mut server = Server::offline(Schema::of::<Tank>()?, Everything)?;
    /// # let _client = server.local_client();
    /// # let Some(ServerEvent::Joined { peer, .. }) = server.poll() else { panic!("it joins") };
    /// let map: BlobId = server.offer_blob(peer, b"map: desert", vec![7; 100_000])?;
    /// server.cancel_blob(peer, map)?; // the round is over already
    /// assert_eq!(server.cancel_blob(peer, map), Err(BlobError::NoSuchBlob));
    /// # Ok(())
    /// # }
    /// ```
    pub fn cancel_blob(&mut self, peer: PeerId, blob: BlobId) -> Result<(), BlobError> {
        let cancelled = self.with_carrier_of(peer, |carrier, connection| {
            carrier.cancel_blob(connection, blob)
        });
        self.unless_leaving(peer, cancelled, ())
    }

    fn with_carrier_of<T>(
        &mut self,
        peer: PeerId,
        call: impl FnOnce(&mut dyn Carrier, ConnectionId) -> Result<T, BlobError>,
    ) -> Result<T, BlobError> {
        let (carrier, connection) = self.carrier_of(peer).ok_or(BlobError::NotConnected)?;
        call(carrier, connection)
    }

    /// A call about a peer whose connection has ended does nothing until that was polled.
    fn unless_leaving<T>(
        &self,
        peer: PeerId,
        result: Result<T, BlobError>,
        nothing: T,
    ) -> Result<T, BlobError> {
        match result {
            Err(BlobError::NotConnected) if self.is_known(peer) => Ok(nothing),
            result => result,
        }
    }
}

impl Client {
    /// Offers the server a blob, like [`Server::offer_blob`].
    pub fn offer_blob(&mut self, label: &[u8], bytes: Vec<u8>) -> Result<BlobId, BlobError> {
        let carrier = self.carrier_mut();
        let blob = carrier.offer_blob(ConnectionId::SERVER, label, bytes);
        carrier.flush();
        blob
    }

    /// Accepts a blob that the server [offered](BlobEvent::Offered).
    pub fn accept_blob(&mut self, blob: BlobId) -> Result<(), BlobError> {
        let carrier = self.carrier_mut();
        let accepted = carrier.accept_blob(ConnectionId::SERVER, blob);
        carrier.flush();
        accepted
    }

    /// Refuses or stops a blob of the server, or withdraws one that was offered to it.
    pub fn cancel_blob(&mut self, blob: BlobId) -> Result<(), BlobError> {
        let carrier = self.carrier_mut();
        let cancelled = carrier.cancel_blob(ConnectionId::SERVER, blob);
        carrier.flush();
        cancelled
    }
}
