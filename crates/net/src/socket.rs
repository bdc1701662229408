//! Opening sockets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, Type};

use crate::error::OpenError;

/// A UDP socket at an address of this machine, which a driver takes over.
#[derive(Debug)]
pub struct Socket {
    pub(crate) inner: UdpSocket,
    address: SocketAddr,
}

impl Socket {
    /// A socket at this address; port 0 is any that is free. An IPv6 address, also the one for
    /// all, takes IPv6 alone.
    ///
    /// A server answers from where its system thinks best. On a machine with several addresses of
    /// a kind, bind to the one that tokens name.
    pub fn bind(address: SocketAddr) -> Result<Self, OpenError> {
        Self::open(address, true)
    }

    /// A socket for all addresses of this machine, of both kinds.
    pub fn bind_dual_stack(port: u16) -> Result<Self, OpenError> {
        Self::open(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port), false)
    }

    /// A socket at a free port from which these servers can be reached, whatever kinds of address
    /// they have. A machine without IPv6 gets one that reaches those with IPv4.
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

    /// Where it is.
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
            // Systems have limits of their own here, and what they allow has to do.
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

/// An address as the machines know it: IPv4 is IPv4, whatever socket it came through.
pub(crate) fn unmapped(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        // With the scope that an address of a local link is worth nothing without.
        IpAddr::V6(_) => address,
    }
}

/// The same address for a socket at `local`.
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

    /// Fails if IPv4 is not mapped on the way out, which Linux would forgive, or not unmapped on
    /// the way in.
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
