//! Endpoints with addresses and clocks, and the links between them.
//!
//! An endpoint's address may change while datagrams are under way, as it does when a phone leaves a
//! wireless network, and senders can spoof addresses. Two endpoints are connected by a link in each
//! direction, with its own conditions.

use std::{collections::BTreeMap, net::SocketAddr};

use crate::Random;
use crate::{Clock, Conditions, LinkConditioner, Time};

/// Several endpoints and the links between them; the same seed and calls give the same result.
///
/// ```
/// use prescient_links::{Conditions, Network, Time};
///
/// let mut network = Network::new(1);
/// let server = network.add("10.0.0.1:7000".parse()?)?;
/// let client = network.add("10.0.0.2:5000".parse()?)?;
/// network.join(client, server, Conditions::default(), Conditions::default())?;
///
/// network.send(Time::ZERO, client, "10.0.0.1:7000".parse()?, b"hello")?;
/// let datagram = network.poll(Time::ZERO, server)?.expect("the link is perfect");
/// assert_eq!(datagram.path.from, "10.0.0.2:5000".parse()?);
/// assert_eq!(datagram.bytes, b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Network {
    seed: u64,
    endpoints: Vec<Endpoint>,
    owners: BTreeMap<SocketAddr, EndpointId>,
    links: BTreeMap<(EndpointId, EndpointId), LinkConditioner<Path>>,
    unreachable: u64,
}

/// One of the endpoints of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(u32);

/// The addresses of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The source address, as the sender set it.
    pub from: SocketAddr,
    /// The destination address.
    pub to: SocketAddr,
}

/// A datagram that arrives at an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its addresses at the time it was sent.
    pub path: Path,
    /// Its payload.
    pub bytes: Vec<u8>,
}

/// Why a call was refused. It had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// Another endpoint has this address.
    #[error("the address {0} is taken")]
    AddressTaken(SocketAddr),
    /// The id belongs to another network.
    #[error("there is no endpoint {0:?}")]
    NoSuchEndpoint(EndpointId),
    /// An endpoint cannot be joined with itself.
    #[error("{0:?} cannot be joined with itself")]
    SameEndpoint(EndpointId),
}

#[derive(Clone, Debug)]
struct Endpoint {
    address: SocketAddr,
    clock: Clock,
}

impl Network {
    /// A network without endpoints.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            endpoints: Vec::new(),
            owners: BTreeMap::new(),
            links: BTreeMap::new(),
            unreachable: 0,
        }
    }

    /// Adds an endpoint, with a clock that shows true time.
    pub fn add(&mut self, address: SocketAddr) -> Result<EndpointId, NetworkError> {
        if self.owners.contains_key(&address) {
            return Err(NetworkError::AddressTaken(address));
        }
        let id = EndpointId(self.endpoints.len() as u32);
        self.endpoints.push(Endpoint {
            address,
            clock: Clock::new(),
        });
        self.owners.insert(address, id);
        Ok(id)
    }

    /// Joins two endpoints with a link in each direction; replaces existing links.
    pub fn join(
        &mut self,
        one: EndpointId,
        other: EndpointId,
        there: Conditions,
        back: Conditions,
    ) -> Result<(), NetworkError> {
        self.endpoint(one)?;
        self.endpoint(other)?;
        if one == other {
            return Err(NetworkError::SameEndpoint(one));
        }
        for (from, to, conditions) in [(one, other, there), (other, one, back)] {
            let seed = self.seed_of(from, to);
            let link = LinkConditioner::labelled(seed, conditions);
            self.links.insert((from, to), link);
        }
        Ok(())
    }

    /// Changes the address of an endpoint. Datagrams under way to the old address are lost; new
    /// ones have the new source address.
    pub fn rebind(&mut self, id: EndpointId, address: SocketAddr) -> Result<(), NetworkError> {
        let old = self.endpoint(id)?.address;
        match self.owners.get(&address) {
            Some(owner) if *owner != id => return Err(NetworkError::AddressTaken(address)),
            _ => {}
        }
        self.owners.remove(&old);
        self.owners.insert(address, id);
        self.endpoint_mut(id)?.address = address;
        Ok(())
    }

    /// An endpoint's current address.
    pub fn address(&self, id: EndpointId) -> Result<SocketAddr, NetworkError> {
        Ok(self.endpoint(id)?.address)
    }

    /// An endpoint's clock.
    pub fn clock(&self, id: EndpointId) -> Result<&Clock, NetworkError> {
        Ok(&self.endpoint(id)?.clock)
    }

    /// An endpoint's clock, for changes.
    pub fn clock_mut(&mut self, id: EndpointId) -> Result<&mut Clock, NetworkError> {
        Ok(&mut self.endpoint_mut(id)?.clock)
    }

    /// Sends a datagram. As on a real network, an unused destination is no error; see
    /// [`unreachable`](Self::unreachable).
    pub fn send(
        &mut self,
        now: Time,
        from: EndpointId,
        to: SocketAddr,
        bytes: &[u8],
    ) -> Result<(), NetworkError> {
        let source = self.endpoint(from)?.address;
        self.send_as(now, from, Path { from: source, to }, bytes)
    }

    /// Sends a datagram with any source address. It travels over the sender's own link.
    pub fn send_as(
        &mut self,
        now: Time,
        from: EndpointId,
        path: Path,
        bytes: &[u8],
    ) -> Result<(), NetworkError> {
        self.endpoint(from)?;
        let owner = self.owners.get(&path.to);
        match owner.and_then(|owner| self.links.get_mut(&(from, *owner))) {
            Some(link) => link.send_labelled(now, path, bytes),
            None => self.unreachable += 1,
        }
        Ok(())
    }

    /// The next datagram that has arrived at an endpoint by now, over any link, in order of
    /// arrival.
    pub fn poll(&mut self, now: Time, at: EndpointId) -> Result<Option<Datagram>, NetworkError> {
        let address = self.endpoint(at)?.address;
        loop {
            let links = self.links.iter_mut().filter(|((_, to), _)| *to == at);
            let arrivals = links.filter_map(|(_, link)| Some((link.arrival(now)?, link)));
            let first = arrivals.min_by_key(|(due, _)| *due);
            let Some((path, bytes)) = first.and_then(|(_, link)| link.poll_labelled(now)) else {
                return Ok(None);
            };
            if path.to == address {
                return Ok(Some(Datagram { path, bytes }));
            }
            self.unreachable += 1;
        }
    }

    /// When to poll next, for any endpoint; see [`LinkConditioner::next_delivery`].
    pub fn next_delivery(&self) -> Option<Time> {
        let links = self.links.values();
        links.filter_map(LinkConditioner::next_delivery).min()
    }

    /// The link from one endpoint to another, if they are joined.
    pub fn link(&self, from: EndpointId, to: EndpointId) -> Option<&LinkConditioner<Path>> {
        self.links.get(&(from, to))
    }

    /// The link from one endpoint to another, for changes of its conditions.
    pub fn link_mut(
        &mut self,
        from: EndpointId,
        to: EndpointId,
    ) -> Option<&mut LinkConditioner<Path>> {
        self.links.get_mut(&(from, to))
    }

    /// Datagrams to an address that no endpoint had, that no link leads to, or that changed while
    /// they were under way.
    pub fn unreachable(&self) -> u64 {
        self.unreachable
    }

    /// The seed of a link, which does not depend on other links.
    fn seed_of(&self, from: EndpointId, to: EndpointId) -> u64 {
        let pair = u64::from(from.0) << 32 | u64::from(to.0);
        self.seed ^ Random::new(pair).bits()
    }

    fn endpoint(&self, id: EndpointId) -> Result<&Endpoint, NetworkError> {
        let endpoint = self.endpoints.get(id.0 as usize);
        endpoint.ok_or(NetworkError::NoSuchEndpoint(id))
    }

    fn endpoint_mut(&mut self, id: EndpointId) -> Result<&mut Endpoint, NetworkError> {
        let endpoint = self.endpoints.get_mut(id.0 as usize);
        endpoint.ok_or(NetworkError::NoSuchEndpoint(id))
    }
}
