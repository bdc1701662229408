//! One client as the server sees it: what it is shown, and what it is still to hear.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use prescient_codec::{Ack, AckError, ClientId, EncodeError, Encoder, Slot, Statistics, Tick};
use prescient_schema::{EntityRef, Schema};

use crate::message::Message;
use crate::relevance::{Relevance, Sight, Subject, Viewer};
use crate::server::{Announcement, PeerId, ServerConfig};
use crate::world::{Record, Serial, Touched, World};

/// What happened between a server and one of its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerStatistics {
    /// What the codec counted.
    pub codec: Statistics,
    /// Objects that it is shown.
    pub visible: usize,
    /// Bytes that its model holds.
    pub model_bytes: usize,
    /// Events that were made ready for it.
    pub events: u64,
    /// Events that wait for their object to be known there.
    pub events_waiting: usize,
    /// Bytes of events that wait, for that or to be polled.
    pub event_bytes: usize,
    /// It does not take in what it is told: more waited than may, and was thrown away. Nothing is
    /// told to it any more; disconnect it.
    pub overrun: bool,
}

/// From where a peer looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Eye {
    Nowhere,
    At(crate::Place),
    Object(EntityRef),
}

pub(crate) struct Peer {
    encoder: Encoder,
    pub eye: Eye,
    pub team: u32,
    /// What it is shown, in the order in which it appeared in the world.
    visible: BTreeMap<Serial, Seen>,
    /// The tick since which each of the client's numbers is that of the object it was last given to.
    since: Vec<Tick>,
    /// Whether everything is to be looked at anew.
    pub unsettled: bool,
    /// Events that can be sent, and how many ever could.
    ready: VecDeque<Vec<u8>>,
    events: u64,
    /// Events about objects that the client does not know yet, as far as we know.
    waiting: BTreeMap<Serial, Vec<(Tick, Vec<u8>)>>,
    /// Bytes of both, and how many they may be.
    event_bytes: usize,
    most_event_bytes: usize,
    overrun: bool,
    /// When it was last given a new epoch that it asked for, and the ticks between two of them.
    resynced: Option<Tick>,
    resync_every: u32,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    sight: Sight,
    /// The entity of its first table, by whose number both ends call it.
    first: Slot,
}

impl Peer {
    pub fn new(schema: Arc<Schema>, config: &ServerConfig) -> Self {
        Self {
            encoder: Encoder::new(schema, config.codec),
            eye: Eye::Nowhere,
            team: 0,
            visible: BTreeMap::new(),
            since: Vec::new(),
            unsettled: true,
            ready: VecDeque::new(),
            events: 0,
            waiting: BTreeMap::new(),
            event_bytes: 0,
            most_event_bytes: config.most_event_bytes,
            overrun: false,
            resynced: None,
            resync_every: config.resync_every,
        }
    }

    pub fn statistics(&self) -> PeerStatistics {
        PeerStatistics {
            codec: self.encoder.statistics(),
            visible: self.visible.len(),
            model_bytes: self.encoder.model_bytes(),
            events: self.events,
            events_waiting: self.waiting.values().map(Vec::len).sum(),
            event_bytes: self.event_bytes,
            overrun: self.overrun,
        }
    }

    pub fn is_overrun(&self) -> bool {
        self.overrun
    }

    pub fn sees(&self, serial: Serial) -> bool {
        self.visible.contains_key(&serial)
    }

    /// Brings what is shown up to date. `now` says that places are to be looked at.
    pub fn look(
        &mut self,
        viewer: &Viewer,
        world: &World,
        policy: &dyn Relevance,
        touched: &[Touched],
        now: bool,
        team_of: &dyn Fn(Option<PeerId>) -> u32,
    ) {
        let ask = |peer: &mut Self, serial: Serial| {
            let Some(record) = world.record_of(serial) else {
                return;
            };
            let Some(object) = world.archive().reference(record.slots[0]) else {
                return;
            };
            let subject = Subject {
                object,
                owner: record.owner,
                team: team_of(record.owner),
                place: record.place,
            };
            let seen = peer.visible.get(&serial).map(|seen| seen.sight);
            peer.show(record, policy.sight(viewer, &subject, seen), world);
        };
        for &touched in touched {
            if let Touched::Gone(serial) = touched {
                // The encoder notices by itself what left the archive.
                self.visible.remove(&serial);
                self.give_up(serial);
            }
        }
        if std::mem::take(&mut self.unsettled) {
            for serial in world.serials() {
                ask(self, serial);
            }
            return;
        }
        for &touched in touched {
            if let Touched::Here(serial) = touched {
                ask(self, serial);
            }
        }
        if now && let Some(reach) = policy.reach(viewer) {
            let mut near = match viewer.eye {
                Some(eye) => world.grid().near(eye, reach),
                None => Default::default(),
            };
            near.extend(self.visible.keys());
            for serial in near {
                ask(self, serial);
            }
        }
    }

    /// Shows an object like this from now on, or not at all.
    fn show(&mut self, record: &Record, sight: Option<Sight>, world: &World) {
        let seen = self.visible.get(&record.serial).map(|seen| seen.sight);
        if sight == seen {
            return;
        }
        for (table, &slot) in record.slots.iter().enumerate() {
            let before = seen.is_some_and(|seen| seen.shows(table));
            match sight.filter(|sight| sight.shows(table)) {
                Some(sight) => {
                    if !before && let Some(id) = self.encoder.show(slot, world.archive()) {
                        self.name(id, world.tick().unwrap_or_default());
                    }
                    self.encoder.set_level(slot, sight.level, world.archive());
                    self.encoder.set_weight(slot, sight.weight);
                }
                None if before => self.encoder.hide(slot),
                None => {}
            }
        }
        match sight {
            Some(sight) => {
                let first = record.slots[0];
                self.visible.insert(record.serial, Seen { sight, first });
            }
            None => {
                self.visible.remove(&record.serial);
                self.give_up(record.serial);
            }
        }
    }

    /// A number is given to an entity.
    fn name(&mut self, id: ClientId, now: Tick) {
        let at = id.0 as usize;
        if self.since.len() <= at {
            self.since.resize(at + 1, Tick::default());
        }
        self.since[at] = now;
    }

    /// A packet of the newest tick; `None` if it was encoded already.
    pub fn encode(&mut self, world: &World, budget: Option<usize>) -> Option<Vec<u8>> {
        let budget = budget.map(|bytes| bytes.saturating_sub(1));
        match self.encoder.encode(world.archive(), budget) {
            Ok(packet) => Some(Message::State(&packet.bytes).to_bytes()),
            Err(
                EncodeError::NothingNew(_) | EncodeError::EmptyArchive | EncodeError::Exhausted,
            ) => None,
            Err(error) => {
                debug_assert!(false, "a peer's schema is its world's: {error}");
                None
            }
        }
    }

    pub fn acknowledge(&mut self, ack: &Ack, world: &World) -> Result<(), AckError> {
        let now = world.tick().unwrap_or_default();
        let is_early = |last: Tick| now.since(last) < self.resync_every;
        if ack.resync && self.resynced.is_some_and(is_early) {
            return Ok(());
        }
        let before = self.encoder.statistics().resyncs;
        self.encoder.acknowledge(ack, world.archive())?;
        if ack.resync && self.encoder.statistics().resyncs > before {
            self.resynced = Some(now);
        }
        let known = |serial: &Serial| {
            let slot = self.visible.get(serial)?.first;
            let id = self.encoder.client_id(slot)?;
            self.encoder.is_confirmed(slot).then_some((*serial, id))
        };
        let known: Vec<_> = self.waiting.keys().filter_map(known).collect();
        for (serial, id) in known {
            self.tell_waiting(serial, id);
        }
        Ok(())
    }

    /// Tells of what is about objects that are shown, but for what it was `told` already (ascending),
    /// and says what that was.
    pub fn hear(&mut self, own: PeerId, announced: &[Announcement], told: &[usize]) -> Vec<usize> {
        let mut heard = Vec::new();
        for (number, announcement) in announced.iter().enumerate() {
            let Announcement {
                tick,
                about,
                to,
                ref payload,
            } = *announcement;
            let is_meant =
                to.is_none_or(|peer| peer == own) && told.binary_search(&number).is_err();
            let Some(seen) = self.visible.get(&about).filter(|_| is_meant) else {
                continue;
            };
            heard.push(number);
            let slot = seen.first;
            match self.encoder.client_id(slot) {
                Some(id) if self.encoder.is_confirmed(slot) => self.push(tick, Some(id), payload),
                _ if self.has_room(payload.len()) => {
                    let waiting = self.waiting.entry(about).or_default();
                    waiting.push((tick, payload.clone()));
                }
                _ => {}
            }
        }
        heard
    }

    /// Tells of something that is about no object.
    pub fn tell(&mut self, tick: Tick, payload: &[u8]) {
        self.push(tick, None, payload);
    }

    pub fn poll_event(&mut self) -> Option<Vec<u8>> {
        let event = self.ready.pop_front()?;
        self.event_bytes -= event.len() + EVENT_ROOM;
        Some(event)
    }

    /// The entity that the client called by a number when it showed a tick; `None` if the number was
    /// another's then, which has left.
    pub fn slot(&self, id: ClientId, shown: Tick) -> Option<Slot> {
        let since = self.since.get(id.0 as usize)?;
        (*since <= shown).then(|| self.encoder.slot(id)).flatten()
    }

    fn push(&mut self, tick: Tick, about: Option<ClientId>, payload: &[u8]) {
        let event = Message::Event {
            tick,
            about,
            payload,
        };
        let event = event.to_bytes();
        if self.has_room(event.len()) {
            self.events += 1;
            self.ready.push_back(event);
        }
    }

    /// Takes room for an event. If there is none, nobody takes in what is told: all is thrown away.
    fn has_room(&mut self, bytes: usize) -> bool {
        let sum = self.event_bytes.saturating_add(bytes + EVENT_ROOM);
        if self.overrun || sum > self.most_event_bytes {
            self.overrun = true;
            self.event_bytes = 0;
            (self.ready, self.waiting) = Default::default();
            return false;
        }
        self.event_bytes = sum;
        true
    }

    /// Tells what waits for an object, by its number.
    fn tell_waiting(&mut self, serial: Serial, id: ClientId) {
        for (tick, payload) in self.waiting.remove(&serial).into_iter().flatten() {
            let freed = payload.len() + EVENT_ROOM;
            // All is free when the one before had no room.
            self.event_bytes = self.event_bytes.saturating_sub(freed);
            self.push(tick, Some(id), &payload);
        }
    }

    /// An object will not become known any more: what waits for it is told all the same, about a
    /// number that nobody has.
    fn give_up(&mut self, serial: Serial) {
        self.tell_waiting(serial, NOBODY);
    }
}

/// What an event takes besides its bytes, about.
const EVENT_ROOM: usize = 64;
/// A number that no client ever has: ids stay near each other.
const NOBODY: ClientId = ClientId(u32::MAX - 1);
