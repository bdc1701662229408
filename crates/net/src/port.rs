//! A socket with the system's features for batches and errors.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use quinn_udp::{Transmit, UdpSockRef, UdpSocketState};

use crate::error::OpenError;
use crate::incoming::Incoming;
use crate::outgoing::Batch;
use crate::socket::{Socket, mapped};

/// A socket that can be waited for. `receive` and `send` make one system call; if that would block,
/// they rearm the readiness that a wait depends on.
pub trait Waitable: Sized {
    fn adopt(socket: Socket) -> Result<Self, OpenError>;

    fn receive<R>(&self, call: impl FnOnce(UdpSockRef<'_>) -> io::Result<R>) -> io::Result<R>;

    fn send<R>(&self, call: impl FnOnce(UdpSockRef<'_>) -> io::Result<R>) -> io::Result<R>;

    /// The socket, for calls without waiting.
    fn reference(&self) -> UdpSockRef<'_>;

    /// The socket, for calls that only Linux has.
    #[cfg(target_os = "linux")]
    fn descriptor(&self) -> std::os::fd::BorrowedFd<'_>;
}

pub(crate) struct Port<W> {
    pub(crate) socket: W,
    pub(crate) address: SocketAddr,
    state: UdpSocketState,
}

/// The result of an attempt to receive.
pub(crate) enum Receipt {
    /// Datagrams were received.
    Some,
    /// There are none at present.
    Nothing,
    /// The call failed; try again later.
    Failed,
    /// An error report about a datagram that was sent; there may be more to receive.
    Undelivered(io::Error),
}

impl<W: Waitable> Port<W> {
    /// Takes over a socket. With `curious`, it reports ICMP errors where the system supports that;
    /// a server has no use for this cost.
    ///
    /// Datagrams that exceed the path MTU are not fragmented by IP but lost: MTU discovery depends
    /// on it, and fragments are lost more often than whole datagrams.
    #[cfg_attr(
        not(unix),
        expect(unused_variables, reason = "the others cannot be asked")
    )]
    pub(crate) fn new(socket: Socket, curious: bool) -> Result<Self, OpenError> {
        let address = socket.address();
        let prepare = || {
            let state = UdpSocketState::new(UdpSockRef::from(&socket.inner))?;
            // Windows reports them anyway.
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
                // With another error, the socket would stay ready, and a wait would return at once.
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

    /// Sends datagrams in one system call, and returns how many were sent.
    pub(crate) fn send(&self, batch: &Batch<'_>) -> io::Result<usize> {
        let sent = match *batch {
            Batch::Segments { to, bytes, segment } => {
                let sent = self.send_one(to, bytes, Some(segment));
                sent.map(|()| bytes.len().div_ceil(segment))
            }
            Batch::Several([single]) => {
                let sent = self.send_one(single.to, &single.bytes, None);
                sent.map(|()| 1)
            }
            Batch::Several(datagrams) => self.send_several(datagrams),
        };
        if sent.as_ref().is_err_and(is_refusal) {
            self.forget_errors();
        }
        sent
    }

    fn send_one(&self, to: SocketAddr, bytes: &[u8], segment: Option<usize>) -> io::Result<()> {
        let transmit = Transmit {
            destination: mapped(to, self.address),
            ecn: None,
            contents: bytes,
            segment_size: segment,
            src_ip: None,
        };
        self.socket
            .send(|socket| self.state.try_send(socket, &transmit))
    }

    #[cfg(target_os = "linux")]
    fn send_several(&self, datagrams: &[prescient_transport::Transmit]) -> io::Result<usize> {
        use rustix::net::addr::SocketAddrArg;
        use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg};
        let addresses = datagrams
            .iter()
            .map(|datagram| mapped(datagram.to, self.address).as_any());
        let addresses: Vec<_> = addresses.collect();
        let contents = datagrams
            .iter()
            .map(|datagram| [io::IoSlice::new(&datagram.bytes)]);
        let contents: Vec<_> = contents.collect();
        let mut controls: Vec<_> = datagrams
            .iter()
            .map(|_| SendAncillaryBuffer::default())
            .collect();
        let headers = addresses.iter().zip(&contents).zip(&mut controls);
        let headers =
            headers.map(|((to, bytes), control)| MMsgHdr::new_with_addr(to, bytes, control));
        let mut headers: Vec<_> = headers.collect();
        self.socket.send(|_| {
            let sent = sendmmsg(self.socket.descriptor(), &mut headers, SendFlags::empty());
            Ok(sent?)
        })
    }

    /// Other systems send one datagram in a call.
    #[cfg(not(target_os = "linux"))]
    fn send_several(&self, datagrams: &[prescient_transport::Transmit]) -> io::Result<usize> {
        let Some(first) = datagrams.first() else {
            return Ok(0);
        };
        self.send_one(first.to, &first.bytes, None).map(|()| 1)
    }

    /// Discards queued errors, which the system would return in place of datagrams. The first was
    /// reported already, and one suffices.
    #[cfg(unix)]
    fn forget_errors(&self) {
        for _ in 0..MAX_ERRORS {
            let told = self.state.recv_transport_error(self.socket.reference());
            if !matches!(told, Ok(Some(_))) {
                return;
            }
        }
    }

    /// Other systems queue no errors.
    #[cfg(not(unix))]
    fn forget_errors(&self) {}
}

/// Whether this error is about an earlier datagram, which was refused. The present call did
/// nothing.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset
    )
}

/// Whether a call to receive failed because of a datagram that was sent, or of a single one that
/// was received; there may be others.
fn is_about_sending(error: &io::Error) -> bool {
    let unreachable = matches!(
        error.kind(),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::PermissionDenied
    );
    is_refusal(error) || unreachable || quinn_udp::is_msg_size_err(error)
}

#[cfg(unix)]
const MAX_ERRORS: usize = 1000;
