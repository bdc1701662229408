//! The client's driver: chooses a socket by the token and explains errors of connecting.

use prescient_channels::{ConnectError, Time};
use prescient_transport::{Client, ClientEvent, ConnectToken, LinkConfig, ProtocolId};

use crate::blocking::BlockingClient;
use crate::clock::SystemEntropy;
use crate::driver::Driver;
use crate::error::{JoinError, OpenError, SendFailure};
use crate::port::Waitable;
use crate::socket::Socket;

impl<W: Waitable> Driver<Client, W> {
    /// Starts to connect to the token's servers, from a free port. An event reports the result;
    /// [`explain`](Self::explain) adds details to
    /// [`Failed`](prescient_transport::ClientEvent::Failed).
    pub fn start(
        token: ConnectToken,
        protocol: ProtocolId,
        config: LinkConfig,
    ) -> Result<Self, JoinError> {
        let socket = Socket::towards(token.servers())?;
        Self::start_on(socket, token, protocol, config)
    }

    /// Like [`start`](Self::start), from a given socket.
    pub fn start_on(
        socket: Socket,
        token: ConnectToken,
        protocol: ProtocolId,
        config: LinkConfig,
    ) -> Result<Self, JoinError> {
        Self::with_machine(socket, true, |entropy: &mut SystemEntropy, now| {
            let client = Client::connect(token, protocol, config, entropy, now);
            client.map_err(|error| match error {
                ConnectError::Denied(denial) => JoinError::Denied(denial),
                ConnectError::Config(error) => JoinError::Config(error),
                _ => JoinError::Closed,
            })
        })
    }

    /// Continues the same connection from another socket: call it with [`Socket::towards`] when the
    /// system reports a change of network. A socket bound to all addresses, as
    /// [`start`](Self::start) makes it, needs this only if the system finds no route any more; the
    /// server detects a new address by itself.
    pub fn rebind(&mut self, socket: Socket) -> Result<(), OpenError> {
        self.replace(socket, true)
    }

    /// Why there is no connection, with what the socket knows about it.
    pub fn explain(&self, error: ConnectError) -> JoinError {
        let server = self.destination.address;
        match (error, self.destination.failure) {
            (ConnectError::Denied(denial), _) => JoinError::Denied(denial),
            (ConnectError::Config(error), _) => JoinError::Config(error),
            (ConnectError::Closed, _) => JoinError::Closed,
            (_, Some(SendFailure::NobodyListens)) => JoinError::NobodyListens { server },
            (_, Some(SendFailure::NoRoute)) => JoinError::NoRoute { server },
            (_, Some(SendFailure::Forbidden)) => JoinError::Forbidden { server },
            (_, None) => JoinError::TimedOut { server },
        }
    }

    /// The result of connecting, if this event decides it.
    fn verdict(&mut self, event: Option<ClientEvent>) -> Option<Result<(), JoinError>> {
        match event? {
            ClientEvent::Connected { .. } => {
                // The server waits for this packet, and the caller may do other things first.
                self.flush();
                Some(Ok(()))
            }
            ClientEvent::Failed(error) => Some(Err(self.explain(error))),
            _ => None,
        }
    }
}

impl BlockingClient {
    /// Connects to one of the token's servers; blocks until that succeeds or fails.
    pub fn connect(
        token: ConnectToken,
        protocol: ProtocolId,
        config: LinkConfig,
    ) -> Result<Self, JoinError> {
        let mut client = Self::start(token, protocol, config)?;
        loop {
            let event = client.wait_until(NEVER);
            if let Some(verdict) = client.verdict(event) {
                return verdict.map(|()| client);
            }
        }
    }
}

#[cfg(feature = "tokio")]
impl crate::AsyncClient {
    /// Connects to one of the token's servers.
    pub async fn connect(
        token: ConnectToken,
        protocol: ProtocolId,
        config: LinkConfig,
    ) -> Result<Self, JoinError> {
        let mut client = Self::start(token, protocol, config)?;
        loop {
            let event = client.wait_until(NEVER).await;
            if let Some(verdict) = client.verdict(event) {
                return verdict.map(|()| client);
            }
        }
    }
}

const NEVER: Time = Time::from_micros(u64::MAX);
