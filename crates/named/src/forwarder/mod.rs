//! The forwarder: packets and time in, packets out.
//!
//! `mod.rs` has the public calls, `pipeline.rs` the processing of Interests, Data and Nacks; the tables do
//! not depend on each other.

mod config;
mod face;
mod fib;
mod management;
mod nonces;
mod pipeline;
mod pit;
mod routing;
mod statistics;
mod store;
mod strategy;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use prescient_channels::Time;
use thiserror::Error;

pub use config::{CommandTrust, ForwarderConfig};
pub use face::{FaceConfig, FaceId, FaceStatistics};
pub use routing::RoutingError;
pub use statistics::Statistics;
pub use strategy::Strategy;

use crate::data::Data;
use crate::error::DecodeError;
use crate::hash::{Hasher, Prefix};
use crate::interest::Interest;
use crate::link::{self, LinkHeader, LinkPacket};
use crate::name::NameRef;
use crate::tlv::kind;
use face::Face;
use fib::{Fib, NextHop, Route};
use nonces::DeadNonces;
use pit::{Pit, PitIndex};
use routing::{ROUTING_ORIGIN, Routing};
use store::Store;

/// An NDN forwarder without sockets and clocks; the [front page](crate) numbers its calls.
#[derive(Debug)]
pub struct Forwarder {
    config: ForwarderConfig,
    hasher: Hasher,
    /// The number of pseudo-random numbers so far.
    drawn: u64,
    faces: BTreeMap<FaceId, Face>,
    next_face: u64,
    fib: Fib,
    pit: Pit,
    /// The bytes that pending Interests count.
    pending_bytes: usize,
    store: Store,
    dead_nonces: DeadNonces,
    queue: VecDeque<Queued>,
    queued_bytes: usize,
    /// Fragments of the packet that left the queue last.
    fragments: VecDeque<(FaceId, Vec<u8>)>,
    /// No incomplete packet is removed before this time.
    reassembly_due: Option<Time>,
    /// The signing time of the last command under each trusted key.
    command_times: Vec<u64>,
    routing: Option<Routing>,
    statistics: Statistics,
    scratch: Scratch,
}

/// A packet that waits to be sent.
#[derive(Debug)]
struct Queued {
    face: FaceId,
    header: LinkHeader,
    packet: Arc<[u8]>,
}

/// The overhead of a queued packet, in bytes.
const QUEUED_OVERHEAD: usize = 128;

/// Buffers that are reused for each packet.
#[derive(Debug, Default)]
struct Scratch {
    prefixes: Vec<Prefix>,
    hops: Vec<NextHop>,
    chosen: Vec<FaceId>,
    places: Vec<PitIndex>,
    bytes: Vec<u8>,
}

/// Why a packet changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HandleError {
    /// There is no such face.
    #[error("there is no such face")]
    NoSuchFace,
    /// The bytes are not a packet. Close a stream; drop a datagram.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
}

/// Why a face was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FaceError {
    /// The limit is reached: remove one first.
    #[error("there are {0} faces, which is the limit")]
    Full(usize),
}

/// Why a route was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RouteError {
    /// There is no such face.
    #[error("there is no such face")]
    NoSuchFace,
    /// The limit is reached, in total or for this face.
    #[error("there are too many routes: remove one first")]
    Full,
}

/// The origin of routes by [`Forwarder::add_route`], as NFD numbers it.
const STATIC_ORIGIN: u64 = 255;

impl Forwarder {
    /// A forwarder without faces and routes. `key` must be unpredictable: an attacker who knows it can
    /// choose names that collide in the tables.
    pub fn new(config: ForwarderConfig, key: [u8; 16]) -> Self {
        let hasher = Hasher::new(key);
        let keys = match &config.commands {
            CommandTrust::LocalFaces => 0,
            CommandTrust::Keys(keys) => keys.len(),
        };
        Self {
            hasher,
            drawn: 0,
            faces: BTreeMap::new(),
            // NFD reserves the lower ones.
            next_face: 256,
            fib: Fib::new(hasher),
            pit: Pit::default(),
            pending_bytes: 0,
            store: Store::new(config.max_store_bytes),
            dead_nonces: DeadNonces::new(config.max_dead_nonces),
            queue: VecDeque::new(),
            queued_bytes: 0,
            fragments: VecDeque::new(),
            reassembly_due: None,
            command_times: vec![config.commands_after; keys],
            routing: None,
            statistics: Statistics::default(),
            scratch: Scratch::default(),
            config,
        }
    }

    /// Adds a face: a neighbour or an application.
    pub fn add_face(&mut self, config: &FaceConfig) -> Result<FaceId, FaceError> {
        if self.faces.len() >= self.config.max_faces {
            return Err(FaceError::Full(self.faces.len()));
        }
        let id = FaceId(self.next_face);
        self.next_face += 1;
        let sequence = self.draw();
        self.faces.insert(id, Face::new(config, sequence));
        Ok(id)
    }

    /// Removes a face with its routes and queued packets. Interests that were sent to it are sent to
    /// another face when consumers retransmit them.
    pub fn remove_face(&mut self, face: FaceId) {
        let Some(gone) = self.faces.remove(&face) else {
            return;
        };
        if gone.routes > 0 {
            self.fib.remove_face(face);
        }
        self.remove_neighbour(face);
    }

    /// Adds a route: Interests with this prefix may be sent to a face. Adding it again changes its cost.
    pub fn add_route(
        &mut self,
        prefix: NameRef<'_>,
        face: FaceId,
        cost: u64,
    ) -> Result<(), RouteError> {
        let route = Route {
            face,
            origin: STATIC_ORIGIN,
            cost,
            inherit: true,
            capture: false,
            expires: None,
        };
        self.insert_route(prefix, route)
    }

    /// Removes a route. False if there was none.
    pub fn remove_route(&mut self, prefix: NameRef<'_>, face: FaceId) -> bool {
        self.delete_route(prefix, face, STATIC_ORIGIN)
    }

    /// Sets the strategy of a prefix; `None` for that of the next shorter prefix with one, or else
    /// [`Strategy::BestRoute`].
    pub fn set_strategy(&mut self, prefix: NameRef<'_>, strategy: Option<Strategy>) {
        self.fib.set_strategy(prefix, strategy);
    }

    /// Handles a packet from a face: a whole datagram, or one packet of a stream.
    pub fn handle_packet(
        &mut self,
        now: Time,
        face: FaceId,
        bytes: &[u8],
    ) -> Result<(), HandleError> {
        let known = self.faces.get_mut(&face).ok_or(HandleError::NoSuchFace)?;
        known.statistics.bytes_in += bytes.len() as u64;
        let taken = self.take(now, face, bytes);
        if taken.is_err()
            && let Some(known) = self.faces.get_mut(&face)
        {
            known.statistics.malformed += 1;
        }
        Ok(taken?)
    }

    /// Expires pending Interests, routes and incomplete packets, and runs routing. To be called at
    /// [`next_timeout`](Self::next_timeout); a late call does no harm.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(place) = self.pit.next_expired(now) {
            self.statistics.expired += 1;
            self.remove_pending(now, place);
        }
        let (faces, mut is_expired) = (&mut self.faces, false);
        self.fib.expire(now, |face| {
            is_expired = true;
            if let Some(face) = faces.get_mut(&face) {
                face.routes -= 1;
            }
        });
        if is_expired {
            self.mark_routes();
        }
        if self.reassembly_due.is_some_and(|due| due <= now) {
            let partial = self.faces.values_mut().filter_map(|face| {
                face.reassembly.expire(now);
                face.reassembly.next_timeout()
            });
            self.reassembly_due = partial.min();
        }
        self.handle_routing_timeout(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn next_timeout(&self) -> Option<Time> {
        let timeouts = [
            self.pit.next_timeout(),
            self.fib.next_timeout(),
            self.reassembly_due,
            self.next_routing_timeout(),
        ];
        timeouts.into_iter().flatten().min()
    }

    /// Replaces the content of `bytes` by the next packet to send, and returns its face. `None` if there is
    /// nothing to send.
    pub fn poll_transmit(&mut self, bytes: &mut Vec<u8>) -> Option<FaceId> {
        loop {
            if let Some((face, fragment)) = self.fragments.pop_front() {
                *bytes = fragment;
                if self.count_sent(face, bytes.len()) {
                    return Some(face);
                }
                continue;
            }
            let next = self.queue.pop_front()?;
            self.queued_bytes -= next.packet.len() + QUEUED_OVERHEAD;
            let Some(face) = self.faces.get_mut(&next.face) else {
                continue;
            };
            bytes.clear();
            next.header.encode(&next.packet, bytes);
            if bytes.len() <= face.mtu {
                face.statistics.bytes_out += bytes.len() as u64;
                return Some(next.face);
            }
            let fragments = &mut self.fragments;
            let send = |fragment| fragments.push_back((next.face, fragment));
            link::split(
                next.header,
                &next.packet,
                face.mtu,
                &mut face.sequence,
                send,
            );
        }
    }

    /// Counts since the start, and the sizes of the tables.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            pending: self.pit.len(),
            pending_bytes: self.pending_bytes,
            stored: self.store.len(),
            stored_bytes: self.store.bytes(),
            routes: self.fib.len(),
            faces: self.faces.len(),
            ..self.statistics
        }
    }

    /// Counts of a face.
    pub fn face_statistics(&self, face: FaceId) -> Option<FaceStatistics> {
        self.faces.get(&face).map(|face| face.statistics)
    }

    fn take(&mut self, now: Time, face: FaceId, bytes: &[u8]) -> Result<(), DecodeError> {
        let came = LinkPacket::decode(bytes)?;
        let Some(fragment) = came.header.fragment else {
            return self.take_whole(now, face, came.header, came.packet);
        };
        let Some(known) = self.faces.get_mut(&face) else {
            return Ok(());
        };
        let whole = known
            .reassembly
            .insert(now, came.header, fragment, came.packet);
        let due = known.reassembly.next_timeout();
        self.reassembly_due = [self.reassembly_due, due].into_iter().flatten().min();
        match whole {
            Some((header, packet)) => self.take_whole(now, face, header, &packet),
            None => Ok(()),
        }
    }

    fn take_whole(
        &mut self,
        now: Time,
        face: FaceId,
        header: LinkHeader,
        packet: &[u8],
    ) -> Result<(), DecodeError> {
        let Some(&first) = packet.first() else {
            // A header without a packet; some neighbours send it to keep a face alive.
            return Ok(());
        };
        match (u32::from(first), header.nack) {
            (kind::INTEREST, None) => {
                let interest = Interest::decode(packet)?;
                if self.is_routing(interest.name()) {
                    return self.handle_routing(now, face, &interest);
                }
                self.handle_interest(now, face, &interest, header);
            }
            (kind::INTEREST, Some(reason)) => {
                self.handle_nack(now, face, &Interest::decode(packet)?, reason);
            }
            (kind::DATA, None) => self.handle_data(now, face, &Data::decode(packet)?, header),
            (kind, _) => return Err(DecodeError::Unexpected { kind }),
        }
        Ok(())
    }

    fn insert_route(&mut self, prefix: NameRef<'_>, route: Route) -> Result<(), RouteError> {
        let is_known = self.fib.contains(prefix, route.face, route.origin);
        let face = self.faces.get_mut(&route.face);
        let face = face.ok_or(RouteError::NoSuchFace)?;
        if !is_known {
            let is_full = self.fib.len() >= self.config.max_routes;
            if is_full || face.routes >= self.config.max_routes_per_face {
                return Err(RouteError::Full);
            }
            face.routes += 1;
        }
        self.fib.insert(prefix, route);
        if !is_known && route.origin != ROUTING_ORIGIN {
            self.mark_routes();
        }
        Ok(())
    }

    fn delete_route(&mut self, prefix: NameRef<'_>, face: FaceId, origin: u64) -> bool {
        let is_gone = self.fib.remove(prefix, face, origin);
        if is_gone && let Some(face) = self.faces.get_mut(&face) {
            face.routes -= 1;
        }
        if is_gone && origin != ROUTING_ORIGIN {
            self.mark_routes();
        }
        is_gone
    }

    fn send(&mut self, face: FaceId, header: LinkHeader, packet: &Arc<[u8]>) {
        let size = packet.len() + QUEUED_OVERHEAD;
        if self.queued_bytes + size > self.config.max_queued_bytes {
            self.statistics.dropped += 1;
            return;
        }
        self.queued_bytes += size;
        self.queue.push_back(Queued {
            face,
            header,
            packet: packet.clone(),
        });
    }

    fn count_sent(&mut self, face: FaceId, bytes: usize) -> bool {
        let Some(face) = self.faces.get_mut(&face) else {
            return false;
        };
        face.statistics.bytes_out += bytes as u64;
        true
    }

    /// A pseudo-random number, unpredictable without the key.
    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.hasher.hash(&self.drawn.to_be_bytes())
    }
}

/// How long an Interest is pending here.
fn lifetime(interest: &Interest<'_>, config: &ForwarderConfig) -> Duration {
    interest.lifetime().min(config.max_lifetime)
}
