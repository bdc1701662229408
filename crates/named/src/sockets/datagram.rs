//! A UDP socket, and its neighbours.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use mio::net::UdpSocket;
use prescient_channels::Time;

use super::DATAGRAM_IDLE;
use crate::forwarder::FaceId;
use crate::link::LinkPacket;

pub(super) struct DatagramPort {
    socket: UdpSocket,
    /// Whether an unknown sender becomes a face.
    is_open: bool,
    neighbours: BTreeMap<SocketAddr, Neighbour>,
}

struct Neighbour {
    face: FaceId,
    /// When its last datagram arrived; `None` for a neighbour that does not become idle.
    received: Option<Time>,
}

impl DatagramPort {
    pub(super) fn bind(address: SocketAddr, is_open: bool) -> io::Result<Self> {
        Ok(Self {
            socket: UdpSocket::bind(address)?,
            is_open,
            neighbours: BTreeMap::new(),
        })
    }

    pub(super) fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub(super) fn source(&mut self) -> &mut UdpSocket {
        &mut self.socket
    }

    /// Adds a neighbour. If `received` is given, it becomes idle without further datagrams.
    pub(super) fn add(&mut self, address: SocketAddr, face: FaceId, received: Option<Time>) {
        let neighbour = Neighbour { face, received };
        self.neighbours.insert(address, neighbour);
    }

    pub(super) fn remove(&mut self, address: SocketAddr) {
        self.neighbours.remove(&address);
    }

    /// Whether it has no neighbours and accepts none.
    pub(super) fn is_over(&self) -> bool {
        !self.is_open && self.neighbours.is_empty()
    }

    /// The face of a neighbour that sent a datagram now.
    pub(super) fn face(&mut self, address: SocketAddr, now: Time) -> Option<FaceId> {
        let neighbour = self.neighbours.get_mut(&address)?;
        if neighbour.received.is_some() {
            neighbour.received = Some(now);
        }
        Some(neighbour.face)
    }

    /// Whether an unknown sender of this datagram becomes a face.
    pub(super) fn accepts(&self, datagram: &[u8]) -> bool {
        let starts_well = matches!(datagram.first(), Some(0x05 | 0x06 | 0x64));
        self.is_open && starts_well && LinkPacket::decode(datagram).is_ok()
    }

    /// The number of faces that datagrams opened.
    pub(super) fn opened(&self) -> usize {
        let opened = |neighbour: &&Neighbour| neighbour.received.is_some();
        self.neighbours.values().filter(opened).count()
    }

    /// Faces without a datagram for [`DATAGRAM_IDLE`].
    pub(super) fn idle(&self, now: Time) -> impl Iterator<Item = FaceId> {
        let is_idle = move |neighbour: &&Neighbour| {
            let received = neighbour.received;
            received.is_some_and(|received| now.since(received) >= DATAGRAM_IDLE)
        };
        let idle = self.neighbours.values().filter(is_idle);
        idle.map(|neighbour| neighbour.face)
    }

    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.socket.recv_from(buffer)
    }

    /// False if the packet was dropped.
    pub(super) fn send(&self, packet: &[u8], to: SocketAddr) -> bool {
        self.socket.send_to(packet, to).is_ok()
    }
}
