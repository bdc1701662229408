//! A socket with the system's features for batches and errors.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use quinn_udp::{EcnCodepoint, Transmit, UdpSockRef, UdpSocketState};

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
            #[cfg(target_os = "linux")]
            ask_for_marks(&socket.inner);
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
            Batch::Segments {
                to,
                bytes,
                segment,
                is_ecn_capable,
            } => {
                let sent = self.send_one(to, bytes, Some(segment), is_ecn_capable);
                sent.map(|()| bytes.len().div_ceil(segment))
            }
            Batch::Several([single]) => self.send_first(single).map(|()| 1),
            Batch::Several(datagrams) => self.send_several(datagrams),
        };
        if sent.as_ref().is_err_and(is_refusal) {
            self.forget_errors();
        }
        sent
    }

    fn send_first(&self, datagram: &prescient_transport::Transmit) -> io::Result<()> {
        self.send_one(datagram.to, &datagram.bytes, None, datagram.is_ecn_capable)
    }

    fn send_one(
        &self,
        to: SocketAddr,
        bytes: &[u8],
        segment: Option<usize>,
        is_ecn_capable: bool,
    ) -> io::Result<()> {
        let transmit = Transmit {
            destination: mapped(to, self.address),
            ecn: is_ecn_capable.then_some(EcnCodepoint::Ect0),
            contents: bytes,
            segment_size: segment,
            src_ip: None,
        };
        self.socket
            .send(|socket| self.state.try_send(socket, &transmit))
    }

    /// Datagrams of one call are sent as the socket is set: as ECN-capable ones. Others, those of
    /// handshakes, take a call each.
    #[cfg(target_os = "linux")]
    fn send_several(&self, datagrams: &[prescient_transport::Transmit]) -> io::Result<usize> {
        use rustix::net::addr::SocketAddrArg;
        use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg};
        let capable = datagrams.iter().take_while(|it| it.is_ecn_capable);
        let (datagrams, others) = datagrams.split_at(capable.count());
        if let ([], [first, ..]) = (datagrams, others) {
            return self.send_first(first).map(|()| 1);
        }
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
        self.send_first(first).map(|()| 1)
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

/// Lets routers mark what `send_several` sends instead of dropping it; where that cannot be set,
/// they cannot.
#[cfg(target_os = "linux")]
fn ask_for_marks(socket: &std::net::UdpSocket) {
    use rustix::net::sockopt::{set_ip_tos, set_ipv6_tclass};
    let _ = set_ip_tos(socket, EcnCodepoint::Ect0 as u8);
    let _ = set_ipv6_tclass(socket, EcnCodepoint::Ect0 as u32);
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::Duration;

    use prescient_transport::Transmit as Datagram;
    use quinn_udp::{BATCH_SIZE, RecvMeta};

    use super::*;
    use crate::blocking::Blocking;

    fn port() -> Port<Blocking> {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        Port::new(Socket::bind(address).expect("a free port"), false).expect("a socket")
    }

    /// The codepoints of the next `count` datagrams, each of which has a byte.
    fn codepoints(port: &mut Port<Blocking>, count: usize) -> Vec<Option<EcnCodepoint>> {
        let mut found = Vec::new();
        while found.len() < count {
            let mut bytes = [[0; 16]; BATCH_SIZE];
            let mut buffers = bytes.each_mut().map(|bytes| io::IoSliceMut::new(bytes));
            let mut metas = [RecvMeta::default(); BATCH_SIZE];
            let state = &port.state;
            let received = port
                .socket
                .receive(|socket| state.recv(socket, &mut buffers, &mut metas));
            for meta in &metas[..received.unwrap_or_default()] {
                found.extend(std::iter::repeat_n(meta.ecn, meta.len));
            }
            if found.len() < count {
                port.socket.sleep(Duration::from_secs(1), false);
            }
        }
        found
    }

    /// Fails if one of the three ways to send ignores whether a datagram is ECN-capable.
    #[test]
    fn datagrams_ask_for_marks_where_they_should() {
        let (sender, mut receiver) = (port(), port());
        let datagram = |is_ecn_capable| Datagram {
            to: receiver.address,
            bytes: vec![7].into(),
            is_ecn_capable,
        };
        let (yes, no) = (datagram(true), datagram(false));
        let mut send = |batch: &Batch<'_>| {
            let sent = sender.send(batch).expect("there is room");
            codepoints(&mut receiver, sent)
        };
        let capable = Some(EcnCodepoint::Ect0);
        assert_eq!(send(&Batch::Several(std::slice::from_ref(&yes))), [capable]);
        assert_eq!(send(&Batch::Several(std::slice::from_ref(&no))), [None]);
        let three = [yes.clone(), yes.clone(), no.clone()];
        assert_eq!(send(&Batch::Several(&three)), [capable; 2]);
        assert_eq!(send(&Batch::Several(&[no, yes])), [None]);
        for (is_ecn_capable, codepoint) in [(true, capable), (false, None)] {
            let segments = Batch::Segments {
                to: three[0].to,
                bytes: &[7],
                segment: 1,
                is_ecn_capable,
            };
            assert_eq!(send(&segments), [codepoint]);
        }
    }
}
