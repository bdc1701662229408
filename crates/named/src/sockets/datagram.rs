//! A UDP socket, and the neighbours that send to it.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use mio::net::UdpSocket;
use prescient_transport::Time;

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
    /// When it was last heard of, if that matters.
    heard: Option<Time>,
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

    /// Adds a neighbour. It becomes idle after a while if `heard` is given.
    pub(super) fn add(&mut self, address: SocketAddr, face: FaceId, heard: Option<Time>) {
        self.neighbours.insert(address, Neighbour { face, heard });
    }

    pub(super) fn remove(&mut self, address: SocketAddr) {
        self.neighbours.remove(&address);
    }

    /// Whether nothing can come any more.
    pub(super) fn is_over(&self) -> bool {
        !self.is_open && self.neighbours.is_empty()
    }

    /// The face of a neighbour, whose idle time starts anew.
    pub(super) fn face(&mut self, address: SocketAddr, now: Time) -> Option<FaceId> {
        let neighbour = self.neighbours.get_mut(&address)?;
        if neighbour.heard.is_some() {
            neighbour.heard = Some(now);
        }
        Some(neighbour.face)
    }

    /// Whether an unknown sender of this datagram becomes a face.
    pub(super) fn accepts(&self, datagram: &[u8]) -> bool {
        let starts_well = matches!(datagram.first(), Some(0x05 | 0x06 | 0x64));
        self.is_open && starts_well && LinkPacket::decode(datagram).is_ok()
    }

    /// How many faces were opened by datagrams.
    pub(super) fn opened(&self) -> usize {
        let opened = |neighbour: &&Neighbour| neighbour.heard.is_some();
        self.neighbours.values().filter(opened).count()
    }

    /// Faces from which nothing came for too long.
    pub(super) fn idle(&self, now: Time) -> impl Iterator<Item = FaceId> {
        let is_idle = move |neighbour: &&Neighbour| {
            let heard = neighbour.heard;
            heard.is_some_and(|heard| now.since(heard) >= DATAGRAM_IDLE)
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
