//! The server: one world and everybody who looks at it.

use std::collections::BTreeMap;

use prescient_codec::{AckError, Config, Tick};
use prescient_schema::{EntityRef, Schema};
use rayon::prelude::*;
use thiserror::Error;

use crate::event::About;
use crate::grid::Place;
use crate::message::Message;
use crate::peer::{Eye, Peer, PeerStatistics};
use crate::relevance::{Relevance, Viewer};
use crate::world::{Serial, Step, World, WorldError};

/// A client, as the program calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u64);

/// What a server does by default.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig {
    /// How values are coded; clients must have the same.
    pub codec: Config,
    /// Every how many ticks places are looked at. Peers take turns.
    pub look_every: u32,
    /// The size of the cells by which near objects are found, in the units of positions; about
    /// half of how far one can see.
    pub cell: f64,
    /// Ticks at least between two times that a peer is told everything anew because it asks for it;
    /// about a second.
    pub resync_every: u32,
    /// Bytes of events that may wait for a peer. One that lets more wait takes nothing in: see
    /// [`PeerStatistics::overrun`].
    pub most_event_bytes: usize,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            codec: Config::default(),
            look_every: 4,
            cell: 32.0,
            resync_every: 30,
            most_event_bytes: 1 << 20,
        }
    }
}

/// Why something could not be done for a peer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PeerError {
    /// It is not connected.
    #[error("no peer {0:?} is connected")]
    NoSuchPeer(PeerId),
    /// The bytes are not a message of a client.
    #[error("not a message of a client; the peer runs another program or is hostile")]
    Malformed,
    /// It claims to have applied what was never sent. Whoever does that is broken or hostile.
    #[error("the peer acknowledges what it cannot have: {0}")]
    BadAcknowledgement(AckError),
}

/// What a client said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromClient {
    /// Which packets it applied; nothing to do.
    Applied,
    /// Something happened there.
    Event {
        /// To what: one of the objects that it is shown.
        about: About<EntityRef>,
        /// What, in the program's own words.
        payload: Vec<u8>,
    },
}

/// A world and everybody who looks at it.
///
/// In every tick: [`step`](Self::step) the world, [`encode`](Self::encode) and send what comes out,
/// [`poll_event`](Self::poll_event) and send that reliably; in between [`handle`](Self::handle)
/// whatever arrives.
pub struct Server {
    world: World,
    config: ServerConfig,
    relevance: Box<dyn Relevance>,
    peers: BTreeMap<PeerId, Peer>,
    /// What happened since the last [`encode`](Self::encode), which says who sees what.
    announced: Vec<Announcement>,
}

/// Something that happened to an object.
pub(crate) struct Announcement {
    pub tick: Tick,
    pub about: Serial,
    /// `None` for everybody who sees it.
    pub to: Option<PeerId>,
    pub payload: Vec<u8>,
}

impl Server {
    /// A server with an empty world.
    pub fn new(
        schema: Schema,
        config: ServerConfig,
        relevance: impl Relevance + 'static,
    ) -> Result<Self, WorldError> {
        Ok(Self {
            world: World::new(schema, config.cell)?,
            config,
            relevance: Box::new(relevance),
            peers: BTreeMap::new(),
            announced: Vec::new(),
        })
    }

    /// Begins the next tick; what happens in it is said to what this returns.
    pub fn step(&mut self, tick: Tick) -> Result<Step<'_>, WorldError> {
        self.world.step(tick)
    }

    /// The world.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Somebody looks from now on; who did already starts anew.
    pub fn connect(&mut self, peer: PeerId) {
        let schema = self.world.archive().schema().clone();
        self.peers.insert(peer, Peer::new(schema, &self.config));
    }

    /// Somebody no longer looks.
    pub fn disconnect(&mut self, peer: PeerId) {
        let gone = self.peers.remove(&peer);
        if gone.is_some_and(|peer| peer.team != 0) {
            self.look_at_everything();
        }
    }

    /// Everybody who looks.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.peers.keys().copied()
    }

    /// A peer looks from a place.
    pub fn look_from(&mut self, peer: PeerId, place: Place) -> Result<(), PeerError> {
        self.peer(peer)?.eye = Eye::At(place);
        Ok(())
    }

    /// A peer looks from wherever an object is.
    pub fn look_from_object(&mut self, peer: PeerId, object: EntityRef) -> Result<(), PeerError> {
        self.peer(peer)?.eye = Eye::Object(object);
        Ok(())
    }

    /// A peer is of this team; 0 for none.
    pub fn set_team(&mut self, peer: PeerId, team: u32) -> Result<(), PeerError> {
        let old = std::mem::replace(&mut self.peer(peer)?.team, team);
        if old != team {
            self.look_at_everything();
        }
        Ok(())
    }

    /// Whether a peer is shown an object.
    pub fn sees(&self, peer: PeerId, object: EntityRef) -> bool {
        let record = self.world.record(object);
        let peer = self.peers.get(&peer);
        peer.zip(record)
            .is_some_and(|(peer, record)| peer.sees(record.serial))
    }

    /// What each peer is to be sent about the newest tick, in no more bytes than `budget` says of
    /// it. May be left out for a tick, for all peers or (with a budget of 0) for some.
    pub fn encode(
        &mut self,
        budget: &(dyn Fn(PeerId) -> Option<usize> + Sync),
    ) -> Vec<(PeerId, Vec<u8>)> {
        let touched = self.world.take_touched();
        let announced = std::mem::take(&mut self.announced);
        let tick = self.world.tick().unwrap_or_default();
        let teams: BTreeMap<_, _> = (self.peers.iter())
            .map(|(&id, peer)| (id, peer.team))
            .collect();
        let team_of = |owner: Option<PeerId>| {
            let team = owner.and_then(|owner| teams.get(&owner));
            team.copied().unwrap_or(0)
        };
        let (world, relevance) = (&self.world, &*self.relevance);
        let every = self.config.look_every.max(1);
        let serve = |(&id, peer): (&PeerId, &mut Peer)| {
            let viewer = Viewer {
                peer: id,
                team: peer.team,
                eye: match peer.eye {
                    Eye::Nowhere => None,
                    Eye::At(place) => Some(place),
                    Eye::Object(object) => world.place(object),
                },
            };
            // By its own number, so that nobody can tell from it who else is there.
            let now = tick.0.wrapping_add(id.0 as u32).is_multiple_of(every);
            // Who saw an object until now hears of it, and who sees it from now on.
            let told = peer.hear(id, &announced, &[]);
            peer.look(&viewer, world, relevance, &touched, now, &team_of);
            peer.hear(id, &announced, &told);
            let bytes = match budget(id) {
                Some(0) => None,
                budget => peer.encode(world, budget),
            };
            bytes.map(|bytes| (id, bytes))
        };
        let peers: Vec<_> = self.peers.iter_mut().collect();
        peers.into_par_iter().filter_map(serve).collect()
    }

    /// Tells everybody who is shown an object, or will be by the next [`encode`](Self::encode), what
    /// happened to it in this tick. They hear of it once they know the object, and if that does
    /// not come about, as being about something gone.
    pub fn announce(&mut self, object: EntityRef, payload: &[u8]) -> Result<(), WorldError> {
        self.note(object, None, payload)
    }

    /// Tells one peer what happened to an object, if it is shown to it.
    pub fn announce_to(
        &mut self,
        peer: PeerId,
        object: EntityRef,
        payload: &[u8],
    ) -> Result<(), WorldError> {
        self.note(object, Some(peer), payload)
    }

    /// Tells one peer what happened in this tick.
    pub fn tell(&mut self, peer: PeerId, payload: &[u8]) -> Result<(), PeerError> {
        let tick = self.world.tick().unwrap_or_default();
        self.peer(peer)?.tell(tick, payload);
        Ok(())
    }

    /// The next event for a peer, to be sent so that it arrives exactly once.
    pub fn poll_event(&mut self, peer: PeerId) -> Option<Vec<u8>> {
        self.peers.get_mut(&peer)?.poll_event()
    }

    /// Takes what a client sent.
    pub fn handle(&mut self, peer: PeerId, message: &[u8]) -> Result<FromClient, PeerError> {
        let from = self
            .peers
            .get_mut(&peer)
            .ok_or(PeerError::NoSuchPeer(peer))?;
        match Message::read(message) {
            Some(Message::Applied(ack)) => {
                let taken = from.acknowledge(&ack, &self.world);
                taken.map_err(PeerError::BadAcknowledgement)?;
                Ok(FromClient::Applied)
            }
            Some(Message::Said {
                tick,
                about,
                payload,
            }) => {
                let about = match about {
                    None => About::Nothing,
                    // What it cannot see, or made up, is the same to us as what just went.
                    Some(id) => {
                        match (from.slot(id, tick)).and_then(|slot| self.world.object_of(slot)) {
                            Some(object) => About::Object(object),
                            None => About::Gone,
                        }
                    }
                };
                let payload = payload.to_vec();
                Ok(FromClient::Event { about, payload })
            }
            Some(Message::State(_) | Message::Event { .. }) | None => Err(PeerError::Malformed),
        }
    }

    /// Peers that do not take in what they are told, and are to be disconnected; see
    /// [`PeerStatistics::overrun`].
    pub fn overrun(&self) -> impl Iterator<Item = PeerId> {
        let peers = self.peers.iter();
        peers.filter_map(|(&id, peer)| peer.is_overrun().then_some(id))
    }

    /// What happened between the server and a peer.
    pub fn statistics(&self, peer: PeerId) -> Option<PeerStatistics> {
        self.peers.get(&peer).map(Peer::statistics)
    }

    fn note(
        &mut self,
        object: EntityRef,
        to: Option<PeerId>,
        payload: &[u8],
    ) -> Result<(), WorldError> {
        let record = self.world.record(object);
        let record = record.ok_or(WorldError::NoSuchObject(object))?;
        self.announced.push(Announcement {
            tick: self.world.tick().unwrap_or_default(),
            about: record.serial,
            to,
            payload: payload.to_vec(),
        });
        Ok(())
    }

    fn peer(&mut self, peer: PeerId) -> Result<&mut Peer, PeerError> {
        self.peers.get_mut(&peer).ok_or(PeerError::NoSuchPeer(peer))
    }

    /// Which team an object's owner is of may decide who sees it.
    fn look_at_everything(&mut self) {
        for peer in self.peers.values_mut() {
            peer.unsettled = true;
        }
    }
}
