//! Opening sockets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, Type};

use crate::error::OpenError;

/// A UDP socket that is bound to a local address; a driver takes it over.
#[derive(Debug)]
pub struct Socket {
    pub(crate) inner: UdpSocket,
    address: SocketAddr,
}

impl Socket {
    /// Binds to this address; port 0 is any free one. An IPv6 address, also the unspecified one, is
    /// for IPv6 only.
    ///
    /// The system chooses the source address of a server's datagrams. On a host with several
    /// addresses of a family, bind to the one that tokens name.
    pub fn bind(address: SocketAddr) -> Result<Self, OpenError> {
        Self::open(address, true)
    }

    /// Binds to all local addresses, of IPv4 and IPv6.
    pub fn bind_dual_stack(port: u16) -> Result<Self, OpenError> {
        Self::open(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port), false)
    }

    /// Binds to a free port from which these servers can be reached, of whichever address family.
    /// On a host without IPv6, it reaches those with IPv4 only.
    pub fn towards(servers: &[SocketAddr]) -> Result<Self, OpenError> {
        let four = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let six = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
        let is_four = |server: &SocketAddr| server.ip().to_canonical().is_ipv4();
        if servers.iter().all(is_four) {
            Self::bind(four)
        } else if servers.iter().any(is_four) {
            Self::bind_dual_stack(0).or_else(|_| Self::bind(four))
        } else {
            Self::bind(six)
        }
    }

    /// The local address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    fn open(address: SocketAddr, only_v6: bool) -> Result<Self, OpenError> {
        let open = || {
            let socket = socket2::Socket::new(
                Domain::for_address(address),
                Type::DGRAM,
                Some(Protocol::UDP),
            )?;
            if address.is_ipv6() {
                socket.set_only_v6(only_v6)?;
            }
            // Systems limit these sizes; smaller buffers are acceptable.
            let _ = socket.set_recv_buffer_size(KERNEL_BUFFER);
            let _ = socket.set_send_buffer_size(KERNEL_BUFFER);
            socket.set_nonblocking(true)?;
            socket.bind(&address.into())?;
            let inner = UdpSocket::from(socket);
            let address = inner.local_addr()?;
            Ok(Self { inner, address })
        };
        open().map_err(|error| OpenError::new(address, error))
    }
}

/// The canonical form of an address: IPv4 is IPv4, also on a dual-stack socket.
pub(crate) fn unmapped(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        // Keeps the scope id, without which a link-local address is useless.
        IpAddr::V6(_) => address,
    }
}

/// The form of an address that a socket at `local` needs.
pub(crate) fn mapped(address: SocketAddr, local: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if local.is_ipv6() => {
            SocketAddr::new(ip.to_ipv6_mapped().into(), address.port())
        }
        _ => address,
    }
}

/// What arrives while a program is busy for a tick: 200,000 packets a second for 50 milliseconds.
const KERNEL_BUFFER: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if IPv4 is not mapped when sending, which Linux would tolerate, or not unmapped when
    /// receiving.
    #[test]
    fn addresses_come_back_from_a_socket_for_both_kinds() {
        let both: SocketAddr = "[::]:9".parse().expect("an address");
        for text in ["192.0.2.7:40", "[2001:db8::7]:40", "[fe80::1%3]:40"] {
            let address: SocketAddr = text.parse().expect("an address");
            assert_eq!(unmapped(mapped(address, both)), address);
            assert!(mapped(address, both).is_ipv6());
        }
    }
}
