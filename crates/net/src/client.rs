//! What a client's driver has of its own: a socket by the token, and words for what went wrong.

use prescient_transport::{
    Client, ClientEvent, ConnectError, ConnectToken, LinkConfig, ProtocolId, Time,
};

use crate::blocking::BlockingClient;
use crate::clock::SystemEntropy;
use crate::driver::Driver;
use crate::error::{JoinError, OpenError, SendFailure};
use crate::port::Waitable;
use crate::socket::Socket;

impl<W: Waitable> Driver<Client, W> {
    /// Begins to connect to the token's servers, from a free port. Events tell what comes of it;
    /// [`explain`](Self::explain) has more to say about
    /// [`Failed`](prescient_transport::ClientEvent::Failed).
    pub fn start(
        token: ConnectToken,
        protocol: ProtocolId,
        config: LinkConfig,
    ) -> Result<Self, JoinError> {
        let socket = Socket::towards(token.servers())?;
        Self::start_on(socket, token, protocol, config)
    }

    /// The same from a socket of the caller's choice.
    pub fn start_on(
        socket: Socket,
        token: ConnectToken,
        protocol: ProtocolId,
        config: LinkConfig,
    ) -> Result<Self, JoinError> {
        Self::with_machine(socket, true, |entropy: &mut SystemEntropy, now| {
            Ok(Client::connect(token, protocol, config, entropy, now)?)
        })
    }

    /// Goes on from another socket, with the same connection: call it with
    /// [`Socket::towards`] when the system says that the machine is on another network. A socket at
    /// all addresses, which [`start`](Self::start) uses, also goes on without it wherever the
    /// system finds a way; the server notices by itself that the address is another.
    pub fn rebind(&mut self, socket: Socket) -> Result<(), OpenError> {
        self.replace(socket, true)
    }

    /// Why there is no connection, with what the socket knows about it.
    pub fn explain(&self, error: ConnectError) -> JoinError {
        let server = self.destination.address;
        match (error, self.destination.failure) {
            (ConnectError::Denied(denial), _) => JoinError::Denied(denial),
            (ConnectError::Closed, _) => JoinError::Closed,
            (_, Some(SendFailure::NobodyListens)) => JoinError::NobodyListens { server },
            (_, Some(SendFailure::NoRoute)) => JoinError::NoRoute { server },
            (_, Some(SendFailure::Forbidden)) => JoinError::Forbidden { server },
            (_, None) => JoinError::TimedOut { server },
        }
    }

    /// Whether an event decides the attempt to connect, and how.
    fn verdict(&mut self, event: Option<ClientEvent>) -> Option<Result<(), JoinError>> {
        match event? {
            ClientEvent::Connected { .. } => {
                // The server does not know yet, and the caller may have other things to do first.
                self.flush();
                Some(Ok(()))
            }
            ClientEvent::Failed(error) => Some(Err(self.explain(error))),
            _ => None,
        }
    }
}

impl BlockingClient {
    /// Connects to one of the token's servers, and returns when that is done.
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
    /// Connects to one of the token's servers, and returns when that is done.
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
