//! Requests with answers, in both directions, beside state and events.

use std::time::Duration;

use prescient_channels::{Carrier, ConnectionId, Received, RequestId, SendError};
use prescient_replication::PeerId;

use crate::client::{Client, ClientEvent};
use crate::server::{Server, ServerEvent};

impl Server {
    /// Asks a peer. Exactly one [`Answer`](ServerEvent::Answer) follows: what the peer answers, or
    /// that it did not within `timeout`. Up to 1024 requests may be open to a peer.
    ///
    /// ```
    /// use prescient::{ClientEvent, Everything, RequestError, Schema, Server, ServerEvent, State};
    /// use std::time::Duration;
    /// # #[derive(State)]
    /// # struct Tank { #[state(step = 0.01)] x: f32 }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut server = Server::offline(Schema::of::<Tank>()?, Everything)?;
    /// let mut client = server.local_client();
    /// let buying = client.request(b"buy 3", Duration::from_secs(2))?;
    /// while let Some(event) = server.poll() {
    ///     if let ServerEvent::Request { peer, request, message } = event {
    ///         assert_eq!(message, b"buy 3");
    ///         server.respond(peer, request, b"sold")?;
    ///     }
    /// }
    /// let mut is_sold = false;
    /// while let Some(event) = client.poll() {
    ///     match event {
    ///         ClientEvent::Answer { request, answer: Ok(answer) } => {
    ///             is_sold = request == buying && answer == b"sold";
    ///         }
    ///         ClientEvent::Answer { answer: Err(RequestError::TimedOut), .. } => { /* ask again */ }
    ///         _ => {}
    ///     }
    /// }
    /// assert!(is_sold);
    /// # Ok(())
    /// # }
    /// ```
    pub fn request(
        &mut self,
        peer: PeerId,
        message: &[u8],
        timeout: Duration,
    ) -> Result<RequestId, SendError> {
        let requested = self.ask_carrier(peer, |carrier, connection| {
            carrier.request(connection, message, timeout)
        });
        self.unless_it_left(peer, requested, RequestId::new(u64::MAX, true))
    }

    /// Answers a peer's [`Request`](ServerEvent::Request). Only the first answer counts, and none
    /// after the peer's timeout.
    pub fn respond(
        &mut self,
        peer: PeerId,
        request: RequestId,
        message: &[u8],
    ) -> Result<(), SendError> {
        let responded = self.ask_carrier(peer, |carrier, connection| {
            carrier.respond(connection, request, message)
        });
        self.unless_it_left(peer, responded, ())
    }

    fn ask_carrier<T>(
        &mut self,
        peer: PeerId,
        call: impl FnOnce(&mut dyn Carrier, ConnectionId) -> Result<T, SendError>,
    ) -> Result<T, SendError> {
        let (carrier, connection) = self.carrier_of(peer).ok_or(SendError::NotConnected)?;
        call(carrier, connection)
    }

    /// A call about a peer whose connection has ended does nothing until that was polled.
    fn unless_it_left<T>(
        &self,
        peer: PeerId,
        result: Result<T, SendError>,
        nothing: T,
    ) -> Result<T, SendError> {
        match result {
            Err(SendError::NotConnected) if self.is_known(peer) => Ok(nothing),
            result => result,
        }
    }
}

impl Client {
    /// Asks the server. Exactly one [`Answer`](ClientEvent::Answer) follows: what the server answers,
    /// or that it did not within `timeout`; see [`Server::request`]. Fails before the client joined.
    pub fn request(&mut self, message: &[u8], timeout: Duration) -> Result<RequestId, SendError> {
        if !self.is_connected() {
            return Err(SendError::NotConnected);
        }
        let carrier = self.carrier_mut();
        let request = carrier.request(ConnectionId::SERVER, message, timeout);
        carrier.flush();
        request
    }

    /// Answers the server's [`Request`](ClientEvent::Request).
    pub fn respond(&mut self, request: RequestId, message: &[u8]) -> Result<(), SendError> {
        let carrier = self.carrier_mut();
        let responded = carrier.respond(ConnectionId::SERVER, request, message);
        carrier.flush();
        responded
    }
}

/// The event of a server for a request or an answer of a peer, and the bytes that it holds; what
/// else was received is returned.
pub(crate) fn server_event(
    peer: PeerId,
    received: Received,
) -> Result<(ServerEvent, usize), Received> {
    Ok(match received {
        Received::Request { request, message } => {
            let bytes = message.len();
            let event = ServerEvent::Request {
                peer,
                request,
                message,
            };
            (event, bytes)
        }
        Received::Answer { request, answer } => {
            let bytes = answer.as_ref().map_or(0, Vec::len);
            let event = ServerEvent::Answer {
                peer,
                request,
                answer,
            };
            (event, bytes)
        }
        other => return Err(other),
    })
}

/// The same for a client.
pub(crate) fn client_event(received: Received) -> Result<ClientEvent, Received> {
    Ok(match received {
        Received::Request { request, message } => ClientEvent::Request { request, message },
        Received::Answer { request, answer } => ClientEvent::Answer { request, answer },
        other => return Err(other),
    })
}
