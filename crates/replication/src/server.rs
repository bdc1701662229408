//! The server: one world and everybody who looks at it.

use std::collections::BTreeMap;
use std::ops::Range;

use prescient_codec::history::Archive;
use prescient_codec::{AckError, Config, Tick, ledger::Ledger};
use prescient_schema::{Difference, EntityRef, Fingerprint, Schema, Tolerance};
use rayon::prelude::*;
use thiserror::Error;

use crate::event::About;
use crate::grid::Place;
use crate::message::{Message, Said};
use crate::peer::{Eye, Peer, PeerStatistics, Traveller};
use crate::relevance::{Relevance, Viewer};
use crate::testimony::{self, Divergence};
use crate::world::{Serial, Step, World, WorldError};

/// A client, as the program calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u64);

/// What a server does by default.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig {
    /// How values are coded. Clients are told, and do the same.
    pub codec: Config,
    /// Every how many ticks places are looked at. Peers take turns.
    pub look_every: u32,
    /// The size of the cells by which near objects are found, in the units of positions; about
    /// half of how far one can see.
    pub cell: f64,
    /// Whether clients with other schemas may read, as far as that is possible.
    pub tolerance: Tolerance,
    /// Ticks at least between two times that a peer is told everything anew because it asks for it;
    /// about a second.
    pub resync_every: u32,
    /// Ticks between two packets for a peer that has stopped to apply what it is sent; about a third
    /// of a second. One of which nothing was acknowledged as applied in three times that is sent less
    /// and less until it is sent that much, and after 20 seconds, or if it never applied anything,
    /// only packets that say nothing of the world, once a second.
    pub probe_every: u32,
    /// Bytes of events that may wait for a peer. One that lets more wait takes nothing in: see
    /// [`PeerStatistics::overrun`].
    pub most_event_bytes: usize,
    /// Bytes that a peer may make the server hold by what it reports of the objects that it is in
    /// charge of. Reports that need more are lost.
    pub report_memory: usize,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            codec: Config::default(),
            look_every: 4,
            cell: 32.0,
            tolerance: Tolerance::Exact,
            resync_every: 30,
            probe_every: 10,
            most_event_bytes: 1 << 20,
            report_memory: 16 << 20,
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
    /// It said something before its greeting, which nothing may precede.
    #[error("the peer said something before its greeting")]
    NotGreeted,
    /// It reported what it shows although nobody [asked](Server::question).
    #[error("the peer reports what it shows although nobody asked")]
    NotAsked,
    /// It reads by another schema. *Here* is the server.
    #[error("the peer's schema is another: {}", Difference::list(.0))]
    Schema(Vec<Difference>),
    /// It claims to have applied what was never sent. Whoever does that is broken or hostile.
    #[error("the peer acknowledges what it cannot have: {0}")]
    BadAcknowledgement(AckError),
}

/// What a client said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromClient {
    /// It is ready, and is shown the world from now on.
    Greeted,
    /// Something about connections; nothing to do.
    Applied,
    /// A part of the answer, as it was [asked](Server::question).
    Testified {
        /// What it shows that was not true; empty if all is well.
        differences: Vec<Divergence>,
        /// Whether that was all.
        last: bool,
    },
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
/// [`poll_message`](Self::poll_message) and send that reliably and in order; in between
/// [`handle`](Self::handle) whatever arrives.
pub struct Server {
    world: World,
    config: ServerConfig,
    relevance: Box<dyn Relevance>,
    peers: BTreeMap<PeerId, Peer>,
    /// What happened since the last [`encode`](Self::encode), which says who sees what.
    announced: Vec<Announcement>,
}

/// How many bytes a peer may be sent at most; `None` without a limit.
pub type Budget<'a> = dyn Fn(PeerId) -> Option<usize> + Sync + 'a;

/// What to send, and to whom.
pub type Messages = Vec<(PeerId, Vec<u8>)>;

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

    /// Begins the next tick; what happens in it is said to what this returns. What clients
    /// reported of objects that they are in charge of has happened by then.
    pub fn step(&mut self, tick: Tick) -> Result<Step<'_>, WorldError> {
        begin(&mut self.world, &mut self.peers, tick)
    }

    /// The world.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Somebody looks, as soon as it has said by which schema it reads; who did already starts
    /// anew.
    pub fn connect(&mut self, peer: PeerId) {
        let schema = self.world.archive().schema().clone();
        let new = Peer::new(schema, &self.config);
        self.take_in(peer, new);
    }

    /// Somebody looks who looked at another world until now; that must have the same schema.
    pub fn welcome(&mut self, peer: PeerId, traveller: Traveller) {
        let schema = self.world.archive().schema().clone();
        let new = Peer::arrived(traveller, schema, &self.config);
        self.take_in(peer, new);
    }

    /// Somebody no longer looks.
    pub fn disconnect(&mut self, peer: PeerId) {
        self.part_with(peer);
    }

    /// Somebody looks at another world from now on, which is to [`welcome`](Self::welcome) it.
    pub fn depart(&mut self, peer: PeerId) -> Option<Traveller> {
        self.part_with(peer).map(Peer::depart)
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
            self.look_again();
        }
        Ok(())
    }

    /// A peer holds these keys down, a bit each. From the next [`step`](Self::step) on they stand in
    /// the objects that belong to it and have a field for them (`#[state(keys)]`), whatever the
    /// program itself writes there.
    pub fn set_keys(&mut self, peer: PeerId, keys: u64) -> Result<(), PeerError> {
        self.peer(peer)?;
        self.world.held_mut().set(peer, keys);
        Ok(())
    }

    /// The keys that a peer holds down; `None` if it never said.
    pub fn keys(&self, peer: PeerId) -> Option<u64> {
        self.world.held().keys(peer)
    }

    /// Asks the policy about everything anew, because what it goes by has changed: fog has lifted, or
    /// somebody has learned to see in the dark. Teams, owners and places are noticed without it.
    pub fn look_again(&mut self) {
        for peer in self.peers.values_mut() {
            peer.unsettled = true;
        }
    }

    /// Whether a peer is shown an object.
    pub fn sees(&self, peer: PeerId, object: EntityRef) -> bool {
        let record = self.world.record(object);
        let peer = self.peers.get(&peer);
        peer.zip(record)
            .is_some_and(|(peer, record)| peer.sees(record.serial))
    }

    /// What each peer is to be sent about the newest tick, in no more bytes than `budget` says of
    /// it. Nothing for those whose messages were not [polled](Self::poll_message) since they came:
    /// these say how to read it. Peers that do not acknowledge what they apply are left out in more
    /// and more ticks ([`ServerConfig::probe_every`]). May be left out for a tick, for all peers or (with a budget of 0) for some: how often
    /// is sent and how often the world is stepped are two matters.
    pub fn encode(&mut self, budget: &Budget<'_>) -> Messages {
        self.look();
        encode(&mut self.peers, self.world.archive(), budget)
    }

    /// Like [`encode`](Self::encode), while the next tick happens on another core: peers are sent
    /// what the world was before it.
    pub fn encode_during<R: Send>(
        &mut self,
        budget: &Budget<'_>,
        next: Tick,
        happen: impl FnOnce(&mut Step<'_>) -> R + Send,
    ) -> Result<(Messages, R), WorldError> {
        self.look();
        let before = self.world.archive().clone();
        let mut step = begin(&mut self.world, &mut self.peers, next)?;
        let peers = &mut self.peers;
        Ok(rayon::join(
            || encode(peers, &before, budget),
            move || happen(&mut step),
        ))
    }

    /// Brings up to date who sees what, and tells of what happened.
    fn look(&mut self) {
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
        let config = &self.config;
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
            // Who is not told of it need not be looked for.
            let every = match peer.is_thinned(tick) {
                true => config.look_every.max(config.probe_every),
                false => config.look_every,
            };
            // By its own number, so that nobody can tell from it who else is there.
            let now = tick
                .0
                .wrapping_add(id.0 as u32)
                .is_multiple_of(every.max(1));
            // Who saw an object until now hears of it, and who sees it from now on.
            let told = peer.hear(id, &announced, &[], |_| true);
            peer.look(&viewer, world, relevance, &touched, now, &team_of);
            let there = |serial| world.record_of(serial).is_some();
            peer.hear(id, &announced, &told, there);
        };
        greeted(&mut self.peers).into_par_iter().for_each(serve);
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

    /// The next message for a peer that wants a carrier that delivers it once and in order.
    pub fn poll_message(&mut self, peer: PeerId) -> Option<Vec<u8>> {
        self.peers.get_mut(&peer)?.poll_message()
    }

    /// What to tell a peer about what it reported; to be sent after [`handle`](Self::handle), and
    /// may get lost.
    pub fn acknowledgement(&mut self, peer: PeerId) -> Option<Vec<u8>> {
        self.peers.get_mut(&peer)?.acknowledgement()
    }

    /// Forgets what was learned with a peer, and tells it everything anew; what it shows stays. It
    /// is done by itself where the two ends no longer understand each other.
    pub fn resync(&mut self, peer: PeerId) -> Result<(), PeerError> {
        self.peer(peer)?.resync();
        Ok(())
    }

    /// Asks a peer what it shows, to compare it with the truth; what comes of it is
    /// [`FromClient::Testified`]. The answer is about as long as everything that is shown, and comes
    /// in parts. Who is asked again before it has answered answers once.
    pub fn question(&mut self, peer: PeerId) -> Result<(), PeerError> {
        let peer = self.peer(peer)?;
        peer.questions = peer.questions.saturating_add(1);
        peer.say(Message::Question);
        Ok(())
    }

    /// Takes what a client sent.
    pub fn handle(&mut self, peer: PeerId, message: &[u8]) -> Result<FromClient, PeerError> {
        let from = self
            .peers
            .get_mut(&peer)
            .ok_or(PeerError::NoSuchPeer(peer))?;
        match Message::read(message).ok_or(PeerError::Malformed)? {
            Message::Here { .. } if !from.greeted => Err(PeerError::NotGreeted),
            Message::Here { stay, said } => {
                let here = from.is_here(stay);
                self.hear(peer, here, said)
            }
            Message::Hello { fingerprint } => self.greet(peer, fingerprint),
            Message::Unreadable { schema } if !from.greeted => {
                let own = self.world.schema();
                let theirs = own.read_other(schema).map_err(|_| PeerError::Malformed)?;
                Err(PeerError::Schema(own.differences(&theirs)))
            }
            Message::Unreadable { .. }
            | Message::Schema { .. }
            | Message::Welcome { .. }
            | Message::Question => Err(PeerError::Malformed),
        }
    }

    /// Takes what a client said about this world, if it is `here`, or about the one before.
    fn hear(&mut self, peer: PeerId, here: bool, said: Said<'_>) -> Result<FromClient, PeerError> {
        let world = &self.world;
        let from = self.peers.get_mut(&peer);
        let from = from.ok_or(PeerError::NoSuchPeer(peer))?;
        match said {
            Said::Told {
                tick,
                about,
                payload,
            } => {
                let about = match about {
                    None => About::Nothing,
                    // What it cannot see, or made up, is the same to us as what just went.
                    Some(id) => {
                        let slot = from.slot(id, tick).filter(|_| here);
                        let object = slot.and_then(|slot| world.object_of(slot));
                        object.map_or(About::Gone, About::Object)
                    }
                };
                let payload = payload.to_vec();
                Ok(FromClient::Event { about, payload })
            }
            Said::Applied(ack) if here => {
                let taken = from.acknowledge(&ack, world);
                taken.map_err(PeerError::BadAcknowledgement)?;
                Ok(FromClient::Applied)
            }
            Said::State(packet) if packet.len() > MAX_REPORT_BYTES => Err(PeerError::Malformed),
            Said::State(packet) if here => {
                // What could not be applied is late or damaged, and heals by itself.
                let _ = from.report(peer, packet, world, &self.config);
                match from.reports_too_much() {
                    true => Err(PeerError::Malformed),
                    false => Ok(FromClient::Applied),
                }
            }
            Said::Testimony { .. } if here && from.questions == 0 => Err(PeerError::NotAsked),
            Said::Testimony { last, rows } if here => {
                from.questions -= u32::from(last);
                let find = |id, shown| from.slot(id, shown);
                let found = testimony::examine(rows, world.archive(), &find);
                let differences = found.ok_or(PeerError::Malformed)?;
                Ok(FromClient::Testified { differences, last })
            }
            Said::Applied(_) | Said::State(_) | Said::Testimony { .. } => Ok(FromClient::Applied),
            Said::Event { .. } | Said::Charge { .. } | Said::Entered { .. } => {
                Err(PeerError::Malformed)
            }
        }
    }

    /// A client says by which schema it reads.
    fn greet(&mut self, peer: PeerId, theirs: Fingerprint) -> Result<FromClient, PeerError> {
        let from = self.peers.get_mut(&peer);
        let from = from.ok_or(PeerError::NoSuchPeer(peer))?;
        let own = self.world.schema();
        let same = own.fingerprint() == theirs;
        if from.greeted || from.corrected && !same {
            return Err(PeerError::Malformed);
        }
        if same {
            from.greeted = true;
            from.say(Message::Welcome {
                config: self.config.codec,
            });
            return Ok(FromClient::Greeted);
        }
        from.corrected = true;
        from.say(Message::Schema {
            tolerance: self.config.tolerance,
            schema: &own.to_bytes(),
        });
        Ok(FromClient::Applied)
    }

    fn take_in(&mut self, peer: PeerId, new: Peer) {
        self.part_with(peer);
        self.peers.insert(peer, new);
    }

    fn part_with(&mut self, peer: PeerId) -> Option<Peer> {
        let gone = self.peers.remove(&peer)?;
        self.world.dismiss(peer);
        self.world.held_mut().release(peer);
        if gone.team != 0 {
            self.look_again();
        }
        Some(gone)
    }

    /// A peer is heard of again after a while of silence: it is sent state at once, without waiting
    /// for the next probe ([`ServerConfig::probe_every`]).
    pub fn resume(&mut self, peer: PeerId) -> Result<(), PeerError> {
        let now = self.world.tick().unwrap_or_default();
        self.peer(peer)?.resume(now);
        Ok(())
    }

    /// Packets that a peer was sent since it last acknowledged another one as applied, by how many it
    /// was sent before each. Empty where nobody acknowledges ([`Config::policy`]).
    pub fn unapplied(&self, peer: PeerId) -> Option<Range<u64>> {
        self.peers.get(&peer).map(Peer::unapplied)
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

    /// Keeps an account of what the bits for a peer are spent on from now on, or no longer. It makes
    /// encoding slower.
    pub fn keep_ledger(&mut self, peer: PeerId, keep: bool) -> Result<(), PeerError> {
        self.peer(peer)?.keep_ledger(keep);
        Ok(())
    }

    /// What the bits for a peer were spent on, by class, field and cause, since that was last asked
    /// to be kept.
    pub fn ledger(&self, peer: PeerId) -> Option<&Ledger> {
        self.peers.get(&peer)?.ledger()
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
}

/// Begins a tick, in which what clients reported happens first.
fn begin<'a>(
    world: &'a mut World,
    peers: &mut BTreeMap<PeerId, Peer>,
    tick: Tick,
) -> Result<Step<'a>, WorldError> {
    let mut step = world.step(tick)?;
    for peer in peers.values_mut() {
        peer.relay(&mut step);
    }
    Ok(step)
}

/// Everybody who is shown something.
fn greeted(peers: &mut BTreeMap<PeerId, Peer>) -> Vec<(&PeerId, &mut Peer)> {
    peers.iter_mut().filter(|(_, peer)| peer.greeted).collect()
}

fn encode(peers: &mut BTreeMap<PeerId, Peer>, archive: &Archive, budget: &Budget<'_>) -> Messages {
    let serve = |(&id, peer): (&PeerId, &mut Peer)| {
        let bytes = match budget(id) {
            Some(0) => None,
            budget => peer.encode(archive, budget),
        };
        bytes.map(|bytes| (id, bytes))
    };
    greeted(peers).into_par_iter().filter_map(serve).collect()
}

/// The longest report that a server reads. A report is compressed: a byte of it can take a thousand times
/// as much memory and time to read.
pub const MAX_REPORT_BYTES: usize = 1200;
