//! One client as the server sees it: what it is shown, and what it is still to hear.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use prescient_codec::{
    Ack, AckError, ClientId, Config, EncodeError, Encoder, Slot, Statistics, Tick,
};
use prescient_schema::{EntityRef, Schema};

use crate::message::Message;
use crate::relevance::{Relevance, Sight, Subject, Viewer};
use crate::server::{Announcement, PeerId};
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
    visible: BTreeMap<Serial, Sight>,
    /// Whether everything is to be looked at anew.
    pub unsettled: bool,
    /// Who looked at places last, and when: what has not moved since need not be asked about.
    looked: Option<(Viewer, Tick)>,
    /// What it shall see, too, when its turn comes, with its distance as bits: what is nearest last.
    /// What moves while it waits is in here more than once.
    wanted: Vec<(u64, Serial)>,
    /// Events that can be sent, and how many ever could.
    ready: VecDeque<Vec<u8>>,
    events: u64,
    /// Events about objects that the client does not know yet, as far as we know.
    waiting: BTreeMap<Serial, Vec<(Tick, Vec<u8>)>>,
}

impl Peer {
    pub fn new(schema: Arc<Schema>, config: Config) -> Self {
        Self {
            encoder: Encoder::new(schema, config),
            eye: Eye::Nowhere,
            team: 0,
            visible: BTreeMap::new(),
            unsettled: true,
            looked: None,
            wanted: Vec::new(),
            ready: VecDeque::new(),
            events: 0,
            waiting: BTreeMap::new(),
        }
    }

    pub fn statistics(&self) -> PeerStatistics {
        PeerStatistics {
            codec: self.encoder.statistics(),
            visible: self.visible.len(),
            model_bytes: self.encoder.model_bytes(),
            events: self.events,
            events_waiting: self.waiting.values().map(Vec::len).sum(),
        }
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
        let sight = |record: &Record, seen: Option<Sight>| {
            let subject = Subject {
                object: world.archive().reference(record.slots[0])?,
                owner: record.owner,
                team: team_of(record.owner),
                place: record.place,
            };
            policy.sight(viewer, &subject, seen)
        };
        for &touched in touched {
            if let Touched::Gone(serial) = touched {
                // The encoder notices by itself what left the archive.
                self.visible.remove(&serial);
                self.give_up(serial);
            }
        }
        let tick = world.tick().unwrap_or_default();
        let mut asked = Vec::new();
        if std::mem::take(&mut self.unsettled) {
            self.wanted.clear();
            self.looked = Some((*viewer, tick));
            asked.extend(world.serials());
        } else {
            let here = touched.iter().filter_map(|touched| match touched {
                Touched::Here(serial) => Some(*serial),
                Touched::Gone(_) => None,
            });
            asked.extend(here);
            if now && let Some(reach) = policy.reach(viewer) {
                let before = self.looked.replace((*viewer, tick));
                let same = before.filter(|(looked, _)| looked == viewer);
                let moved = |serial: &Serial| match (same, world.record_of(*serial)) {
                    (Some((_, since)), Some(record)) => record.moved > since,
                    (None, record) => record.is_some(),
                    (_, None) => false,
                };
                if same.is_none() {
                    asked.extend(self.wanted.drain(..).map(|(_, serial)| serial));
                }
                if let Some(eye) = viewer.eye {
                    asked.extend(world.grid().near(eye, reach).filter(moved));
                }
                asked.extend(self.visible.keys().copied().filter(moved));
            }
            asked.sort_unstable();
            asked.dedup();
        }
        let mut fresh = Vec::new();
        for serial in asked {
            let Some(record) = world.record_of(serial) else {
                continue;
            };
            let seen = self.visible.get(&serial).copied();
            let sight = sight(record, seen);
            match seen {
                None if sight.is_some() => fresh.push(serial),
                None => {}
                Some(_) => self.show(record, sight, world),
            }
        }
        self.want(fresh, viewer, world);
        let most = self.visible.len().saturating_add(MOST_SHOWN);
        while self.visible.len() < most
            && let Some((_, serial)) = self.wanted.pop()
        {
            if let Some(record) = world.record_of(serial)
                && !self.visible.contains_key(&serial)
            {
                self.show(record, sight(record, None), world);
            }
        }
    }

    /// Puts what it shall see behind what is nearer. How many others there are that it shall not
    /// see must not matter here.
    fn want(&mut self, fresh: Vec<Serial>, viewer: &Viewer, world: &World) {
        if fresh.is_empty() {
            return;
        }
        let distance = |serial: Serial| {
            let place = world.record_of(serial).and_then(|record| record.place);
            let distance = viewer.eye.zip(place).map(|(eye, at)| eye.distance(at));
            // Not negative, so that its bits are in the same order.
            (distance.unwrap_or(0.0).to_bits(), serial)
        };
        self.wanted.extend(fresh.into_iter().map(distance));
        // Most are in order already, of which this sort makes use.
        self.wanted.sort_by(|a, b| b.cmp(a));
    }

    /// Shows an object like this from now on, or not at all.
    fn show(&mut self, record: &Record, sight: Option<Sight>, world: &World) {
        let seen = self.visible.get(&record.serial).copied();
        if sight == seen {
            return;
        }
        for (table, &slot) in record.slots.iter().enumerate() {
            let before = seen.is_some_and(|seen| seen.shows(table));
            match sight.filter(|sight| sight.shows(table)) {
                Some(sight) => {
                    if !before {
                        self.encoder.show(slot, world.archive());
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
                self.visible.insert(record.serial, sight);
            }
            None => {
                self.visible.remove(&record.serial);
                self.give_up(record.serial);
            }
        }
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
        self.encoder.acknowledge(ack, world.archive())?;
        let known = |serial: &Serial| {
            let slot = self.visible.contains_key(serial).then_some(serial.first)?;
            let id = self.encoder.client_id(slot)?;
            self.encoder.is_confirmed(slot).then_some((*serial, id))
        };
        let known: Vec<_> = self.waiting.keys().filter_map(known).collect();
        for (serial, id) in known {
            for (tick, payload) in self.waiting.remove(&serial).into_iter().flatten() {
                self.push(tick, Some(id), &payload);
            }
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
            if !is_meant || !self.visible.contains_key(&about) {
                continue;
            }
            heard.push(number);
            let slot = about.first;
            match self.encoder.client_id(slot) {
                Some(id) if self.encoder.is_confirmed(slot) => self.push(tick, Some(id), payload),
                _ => {
                    let waiting = self.waiting.entry(about).or_default();
                    waiting.push((tick, payload.clone()));
                }
            }
        }
        heard
    }

    /// Tells of something that is about no object.
    pub fn tell(&mut self, tick: Tick, payload: &[u8]) {
        self.push(tick, None, payload);
    }

    pub fn poll_event(&mut self) -> Option<Vec<u8>> {
        self.ready.pop_front()
    }

    /// The entity that the client calls by a number.
    pub fn slot(&self, id: ClientId) -> Option<Slot> {
        self.encoder.slot(id)
    }

    fn push(&mut self, tick: Tick, about: Option<ClientId>, payload: &[u8]) {
        let event = Message::Event {
            tick,
            about,
            payload,
        };
        self.events += 1;
        self.ready.push_back(event.to_bytes());
    }

    /// An object will not become known any more: what waits for it is told all the same, about a
    /// number that nobody has.
    fn give_up(&mut self, serial: Serial) {
        for (tick, payload) in self.waiting.remove(&serial).into_iter().flatten() {
            self.push(tick, Some(NOBODY), &payload);
        }
    }
}

/// Objects that come into sight in a tick at most: showing an object is work, and no packet takes
/// more.
const MOST_SHOWN: usize = 2048;

/// A number that no client ever has: ids stay near each other.
const NOBODY: ClientId = ClientId(u32::MAX - 1);
