//! One client as the server sees it: what it is shown, and what it is still to hear.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use prescient_codec::{
    Ack, AckError, ClientId, Config, EncodeError, Encoder, Sequence, Slot, Statistics, Tick,
    ledger::Ledger,
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
    /// Messages of state that were made for it.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The newest tick that it is known to have applied something of.
    pub applied: Option<Tick>,
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
    /// What it was sent.
    sent: Sent,
    /// What it is shown, in the order in which it appeared in the world.
    visible: BTreeMap<Serial, Seen>,
    /// Whether everything is to be looked at anew.
    pub unsettled: bool,
    /// Events that can be sent, and how many ever could.
    ready: VecDeque<Vec<u8>>,
    events: u64,
    /// Events about objects that the client does not know yet, as far as we know.
    waiting: BTreeMap<Serial, Vec<(Tick, Vec<u8>)>>,
}

#[derive(Debug, Default)]
struct Sent {
    packets: u64,
    bytes: u64,
    /// The ticks of packets of which nothing is known yet.
    ticks: VecDeque<(Sequence, Tick)>,
    applied: Option<Tick>,
}

impl Sent {
    fn note(&mut self, sequence: Sequence, tick: Tick, length: usize) {
        self.packets += 1;
        self.bytes += length as u64;
        if self.ticks.len() == MOST_TICKS {
            self.ticks.pop_front();
        }
        self.ticks.push_back((sequence, tick));
    }

    fn apply(&mut self, newest: Sequence) {
        while let Some(&(sequence, tick)) = self.ticks.front()
            && sequence <= newest
        {
            self.ticks.pop_front();
            if sequence == newest {
                self.applied = Some(tick);
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    sight: Sight,
    /// The entity of its first table, by whose number both ends call it.
    first: Slot,
}

impl Peer {
    pub fn new(schema: Arc<Schema>, config: Config) -> Self {
        Self {
            encoder: Encoder::new(schema, config),
            eye: Eye::Nowhere,
            team: 0,
            sent: Sent::default(),
            visible: BTreeMap::new(),
            unsettled: true,
            ready: VecDeque::new(),
            events: 0,
            waiting: BTreeMap::new(),
        }
    }

    pub fn statistics(&self) -> PeerStatistics {
        PeerStatistics {
            codec: self.encoder.statistics(),
            packets: self.sent.packets,
            bytes: self.sent.bytes,
            applied: self.sent.applied,
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
                let first = record.slots[0];
                self.visible.insert(record.serial, Seen { sight, first });
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
            Ok(packet) => {
                let message = Message::State(&packet.bytes).to_bytes();
                let tick = world.tick().unwrap_or_default();
                self.sent.note(packet.sequence, tick, message.len());
                Some(message)
            }
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
        self.sent.apply(ack.newest);
        let known = |serial: &Serial| {
            let slot = self.visible.get(serial)?.first;
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
            let Some(seen) = self.visible.get(&about).filter(|_| is_meant) else {
                continue;
            };
            heard.push(number);
            let slot = seen.first;
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

    /// Keeps an account of what bits are spent on from now on, or no longer.
    pub fn keep_ledger(&mut self, keep: bool) {
        self.encoder.keep_ledger(keep);
    }

    pub fn ledger(&self) -> Option<&Ledger> {
        self.encoder.ledger()
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

/// Packets that may be under way before it is no longer told how old they are.
const MOST_TICKS: usize = 1024;
/// A number that no client ever has: ids stay near each other.
const NOBODY: ClientId = ClientId(u32::MAX - 1);
