//! A socket in use: what the system does for all of its datagrams.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use quinn_udp::{Transmit, UdpSockRef, UdpSocketState};

use crate::error::OpenError;
use crate::incoming::Incoming;
use crate::outgoing::Batch;
use crate::socket::{Socket, mapped};

/// A socket that somebody can wait for. `receive` and `send` make one call of the system, and
/// remember for whoever waits if that would have had to.
pub trait Waitable: Sized {
    fn adopt(socket: Socket) -> Result<Self, OpenError>;

    fn receive<R>(&self, call: impl FnOnce(UdpSockRef<'_>) -> io::Result<R>) -> io::Result<R>;

    fn send<R>(&self, call: impl FnOnce(UdpSockRef<'_>) -> io::Result<R>) -> io::Result<R>;

    /// The socket for what nobody waits for.
    fn reference(&self) -> UdpSockRef<'_>;
}

pub(crate) struct Port<W> {
    pub(crate) socket: W,
    pub(crate) address: SocketAddr,
    state: UdpSocketState,
}

/// What came of an attempt to receive.
pub(crate) enum Receipt {
    /// There are datagrams.
    Some,
    /// There are none for now.
    Nothing,
    /// There are none for now, because of something else.
    Failed,
    /// No datagram, but news of one that was sent; there may be more.
    Undelivered(io::Error),
}

impl<W: Waitable> Port<W> {
    /// Takes over a socket. If `curious`, it tells what becomes of datagrams as far as the system
    /// knows, which costs something and which a server has no use for.
    ///
    /// Datagrams that are too long for the way are not cut up but lost: the machines have to know
    /// how long they may be, and the pieces would be lost more often than the whole.
    #[cfg_attr(
        not(unix),
        expect(unused_variables, reason = "the others cannot be asked")
    )]
    pub(crate) fn new(socket: Socket, curious: bool) -> Result<Self, OpenError> {
        let address = socket.address();
        let prepare = || {
            let state = UdpSocketState::new(UdpSockRef::from(&socket.inner))?;
            // Windows tells without being asked.
            #[cfg(unix)]
            if curious {
                state.enable_transport_errors(UdpSockRef::from(&socket.inner))?;
            }
            Ok(state)
        };
        Ok(Self {
            state: prepare().map_err(|error| OpenError::new(address, error))?,
            socket: W::adopt(socket)?,
            address,
        })
    }

    /// How many datagrams a batch may have.
    pub(crate) fn max_segments(&self) -> usize {
        self.state.max_gso_segments().max(1)
    }

    pub(crate) fn receive(&self, incoming: &mut Incoming) -> Receipt {
        let mut failed = None;
        let received = self.socket.receive(|socket| {
            let filled = incoming.fill(|buffers, metas| self.state.recv(socket, buffers, metas));
            filled.map_err(|error| {
                if error.kind() == ErrorKind::WouldBlock || is_about_sending(&error) {
                    return error;
                }
                // Whoever waits would be told at once that there is something to receive.
                failed = Some(error);
                ErrorKind::WouldBlock.into()
            })
        });
        match (received, failed) {
            (Ok(()), _) => Receipt::Some,
            (Err(_), Some(_)) => Receipt::Failed,
            (Err(error), None) if error.kind() == ErrorKind::WouldBlock => Receipt::Nothing,
            (Err(error), None) => {
                self.forget_errors();
                Receipt::Undelivered(error)
            }
        }
    }

    pub(crate) fn send(&self, batch: &Batch<'_>) -> io::Result<()> {
        let transmit = Transmit {
            destination: mapped(batch.to, self.address),
            ecn: None,
            contents: batch.bytes,
            segment_size: (batch.bytes.len() > batch.segment).then_some(batch.segment),
            src_ip: None,
        };
        let sent = self
            .socket
            .send(|socket| self.state.try_send(socket, &transmit));
        if sent.as_ref().is_err_and(is_refusal) {
            self.forget_errors();
        }
        sent
    }

    /// The system remembers errors in the place of datagrams until somebody asks for them. The
    /// first of them was told already, and one is enough.
    #[cfg(unix)]
    fn forget_errors(&self) {
        for _ in 0..MAX_ERRORS {
            let told = self.state.recv_transport_error(self.socket.reference());
            if !matches!(told, Ok(Some(_))) {
                return;
            }
        }
    }

    /// Elsewhere whoever is told has forgotten it.
    #[cfg(not(unix))]
    fn forget_errors(&self) {}
}

/// Whether somebody refused an earlier datagram. A system that says so when asked for something
/// else has not done that.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset
    )
}

/// Whether a call to receive failed for something that was sent, or for a single datagram, so that
/// there may be others.
fn is_about_sending(error: &io::Error) -> bool {
    let unreachable = matches!(
        error.kind(),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::PermissionDenied
    );
    is_refusal(error) || unreachable || quinn_udp::is_msg_size_err(error)
}

#[cfg(unix)]
const MAX_ERRORS: usize = 1000;
