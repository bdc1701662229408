//! Connects routing to the forwarder: sends its messages as Interests and installs its routes in the FIB.

use std::collections::BTreeMap;
use std::mem;

use prescient_channels::Time;
use thiserror::Error;

use super::face::FaceId;
use super::fib::Route;
use super::{Forwarder, STATIC_ORIGIN};
use crate::error::DecodeError;
use crate::interest::{Interest, InterestBuilder};
use crate::link::LinkHeader;
use crate::name::{Name, NameRef};
use crate::routing::{NetworkRoute, ROUTING_PREFIX, Router, RoutingConfig, advertised};
use crate::signature::{SignatureStamp, Signer, Verifier};

/// The origin of routes that routing installs, as NFD numbers it.
pub(super) const ROUTING_ORIGIN: u64 = 128;

#[derive(Debug)]
pub(super) struct Routing {
    router: Router,
    key: Option<(Signer, Verifier)>,
    /// The cost of neighbours that were not configured but have the key; `None` if they are ignored.
    accept: Option<u64>,
    prefix: Name,
    /// Routes of the network that are in the FIB, with their costs.
    installed: BTreeMap<NetworkRoute, u64>,
    /// Whether routes to local faces may have changed since the last advertisement.
    pub(super) is_stale: bool,
}

/// Why a neighbour was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RoutingError {
    /// Call [`Forwarder::start_routing`] first.
    #[error("routing was not started")]
    NotStarted,
    /// There is no such face.
    #[error("there is no such face")]
    NoSuchFace,
}

impl Forwarder {
    /// Starts link-state routing, or restarts it without neighbours. Prefixes with routes to local faces, and
    /// those that faces have registered by commands, are advertised; routes to the prefixes of other routers are added and removed as links change.
    pub fn start_routing(&mut self, now: Time, config: RoutingConfig) {
        self.install(BTreeMap::new());
        let router = Router::new(now, &config);
        self.routing = Some(Routing {
            router,
            accept: config.accept.filter(|_| config.key.is_some()),
            key: config.key,
            prefix: ROUTING_PREFIX.parse().unwrap_or_default(),
            installed: BTreeMap::new(),
            is_stale: true,
        });
    }

    /// Makes a face a link to another router. The cost of a path is the sum of its links' costs. The link is
    /// down when the face is removed, or when no hello arrives for 3.5 s.
    pub fn add_neighbour(
        &mut self,
        now: Time,
        face: FaceId,
        cost: u64,
    ) -> Result<(), RoutingError> {
        let routing = self.routing.as_mut().ok_or(RoutingError::NotStarted)?;
        if !self.faces.contains_key(&face) {
            return Err(RoutingError::NoSuchFace);
        }
        routing.router.add_neighbour(now, face, cost);
        Ok(())
    }

    /// Whether an Interest with this name is a message of routing.
    pub(super) fn is_routing(&self, name: NameRef<'_>) -> bool {
        let routing = self.routing.as_ref();
        routing.is_some_and(|routing| name.starts_with(routing.prefix.view()))
    }

    /// Handles a message of a neighbour. Messages from other faces are ignored.
    pub(super) fn handle_routing(
        &mut self,
        now: Time,
        from: FaceId,
        interest: &Interest<'_>,
    ) -> Result<(), DecodeError> {
        let Some(routing) = &mut self.routing else {
            return Ok(());
        };
        let is_trusted = match &routing.key {
            Some((_, verifier)) => interest.verify(verifier).is_ok(),
            None => true,
        };
        if is_trusted
            && !routing.router.is_neighbour(from)
            && let Some(cost) = routing.accept
        {
            routing.router.add_neighbour(now, from, cost);
        }
        if !is_trusted || !routing.router.is_neighbour(from) {
            self.statistics.out_of_scope += 1;
            return Ok(());
        }
        let message = interest.parameters().unwrap_or_default();
        routing.router.handle_message(now, from, message)?;
        self.run_routing(now);
        Ok(())
    }

    pub(super) fn handle_routing_timeout(&mut self, now: Time) {
        if let Some(routing) = &mut self.routing {
            routing.router.handle_timeout(now);
            self.run_routing(now);
        }
    }

    pub(super) fn next_routing_timeout(&self) -> Option<Time> {
        let routing = self.routing.as_ref()?;
        if routing.is_stale {
            return Some(Time::default());
        }
        routing.router.next_timeout()
    }

    pub(super) fn remove_neighbour(&mut self, face: FaceId) {
        if let Some(routing) = &mut self.routing {
            routing.router.remove_neighbour(face);
            routing.is_stale = true;
        }
    }

    /// Notes that routes to local faces may have changed.
    pub(super) fn mark_routes(&mut self) {
        if let Some(routing) = &mut self.routing {
            routing.is_stale = true;
        }
    }

    /// Updates the local prefixes, sends messages, and installs routes.
    fn run_routing(&mut self, now: Time) {
        let Some(routing) = &mut self.routing else {
            return;
        };
        if mem::take(&mut routing.is_stale) {
            let faces = &self.faces;
            let is_local = |face| faces.get(&face).is_some_and(|face| face.is_local);
            // What a neighbour has registered is advertised for it: it may be a host that runs no routing.
            let is_registered =
                |route: &Route| !matches!(route.origin, STATIC_ORIGIN | ROUTING_ORIGIN);
            let is_own = |route: &Route| {
                is_registered(route) || (route.origin == STATIC_ORIGIN && is_local(route.face))
            };
            let prefixes = advertised(self.fib.prefixes(is_own));
            routing.router.set_prefixes(now, prefixes);
        }
        let mut messages = Vec::new();
        while let Some(message) = routing.router.poll_message() {
            messages.push(message);
        }
        let routes = routing.router.poll_routes();
        for (face, message) in messages {
            self.send_routing(face, &message);
        }
        if let Some(routes) = routes {
            self.install(routes);
        }
    }

    fn send_routing(&mut self, face: FaceId, message: &[u8]) {
        let nonce = (self.draw() as u32).to_be_bytes();
        let Some(routing) = &self.routing else {
            return;
        };
        let mut packet = Vec::new();
        let interest = InterestBuilder::new(routing.prefix.view())
            .nonce(nonce)
            .parameters(message);
        let stamp = SignatureStamp::default();
        let written = match &routing.key {
            Some((signer, _)) => interest.sign(signer, stamp, &mut packet),
            None => interest.encode(&mut packet),
        };
        // It does not fail: messages are limited so that they fit into a packet.
        if written.is_ok() {
            self.send(face, LinkHeader::default(), &packet.into());
        }
    }

    /// Replaces the routes of routing in the FIB. A route that exceeds the limits of the FIB is tried again
    /// at the next change.
    fn install(&mut self, routes: BTreeMap<NetworkRoute, u64>) {
        let Some(routing) = &mut self.routing else {
            return;
        };
        let mut installed = mem::take(&mut routing.installed);
        installed.retain(|route, _| {
            let stays = routes.contains_key(route);
            if !stays {
                self.delete_route(route.prefix.view(), route.face, ROUTING_ORIGIN);
            }
            stays
        });
        for (route, cost) in routes {
            if installed.get(&route) == Some(&cost) {
                continue;
            }
            let added = Route {
                face: route.face,
                origin: ROUTING_ORIGIN,
                cost,
                inherit: true,
                capture: false,
                expires: None,
            };
            if self.insert_route(route.prefix.view(), added).is_ok() {
                installed.insert(route, cost);
            }
        }
        if let Some(routing) = &mut self.routing {
            routing.installed = installed;
        }
    }
}
