//! One client as the server sees it: what it is shown, and what it is still to hear.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use prescient_codec::history::Archive;
use prescient_codec::{
    Ack, AckError, ClientId, Config, DecodeError, EncodeError, Encoder, Policy, Sequence, Slot,
    Statistics, Tick, ledger::Ledger,
};
use prescient_schema::{EntityRef, Schema};

use crate::charge::Intake;
use crate::mail::{Mail, Notice};
use crate::message::{Message, Said};
use crate::relevance::{Relevance, Sight, Subject, Viewer};
use crate::server::{Announcement, PeerId, ServerConfig};
use crate::stay::Stay;
use crate::world::{Record, Serial, Step, Touched, World};

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
    /// How it learns what it is told of.
    policy: Policy,
    stay: Stay,
    /// Whether it reads by the right schema; before that it is shown nothing.
    pub greeted: bool,
    /// Whether it was told the right one.
    pub corrected: bool,
    /// Whether it was told how state is coded: before that it could make nothing of any.
    introduced: bool,
    pub eye: Eye,
    pub team: u32,
    /// What it was sent.
    sent: Sent,
    /// What it is shown, in the order in which it appeared in the world.
    visible: BTreeMap<Serial, Sight>,
    /// The tick since which each of the client's numbers is that of the object it was last given to.
    since: Vec<Tick>,
    /// Whether everything is to be looked at anew.
    pub unsettled: bool,
    /// Who looked at places last, and when: what has not moved since need not be asked about.
    looked: Option<(Viewer, Tick)>,
    /// What it shall see, too, when its turn comes, with its distance as bits: what is nearest last.
    /// What moves while it waits is in here more than once.
    wanted: Vec<(u64, Serial)>,
    /// What it is to be told, and how many events it ever was.
    mail: Mail,
    events: u64,
    /// When it was last given a new epoch that it asked for, and the ticks between two of them.
    resynced: Option<Tick>,
    resync_every: u32,
    /// What the client was told that it is in charge of.
    charged: BTreeSet<Serial>,
    /// What it reports of that.
    intake: Option<Intake>,
}

/// A client between two worlds: what it is still to hear of the last one, and how it reads.
pub struct Traveller {
    stay: Stay,
    greeted: bool,
    mail: Mail,
    events: u64,
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

impl Peer {
    pub fn new(schema: Arc<Schema>, config: &ServerConfig) -> Self {
        Self {
            encoder: Encoder::new(schema, config.codec),
            policy: config.codec.policy,
            stay: Stay::default(),
            greeted: false,
            corrected: false,
            introduced: false,
            eye: Eye::Nowhere,
            team: 0,
            sent: Sent::default(),
            visible: BTreeMap::new(),
            since: Vec::new(),
            unsettled: true,
            looked: None,
            wanted: Vec::new(),
            mail: Mail::new(config.most_event_bytes),
            events: 0,
            resynced: None,
            resync_every: config.resync_every,
            charged: BTreeSet::new(),
            intake: None,
        }
    }

    /// A client that comes from another world.
    pub fn arrived(traveller: Traveller, schema: Arc<Schema>, config: &ServerConfig) -> Self {
        let mut peer = Self {
            stay: traveller.stay.next(),
            greeted: traveller.greeted,
            mail: traveller.mail,
            events: traveller.events,
            ..Self::new(schema, config)
        };
        let entered = peer.here(Said::Entered {
            config: config.codec,
        });
        peer.mail.push(entered);
        peer
    }

    /// The client leaves for another world; what waits for an object will never be about one.
    pub fn depart(mut self) -> Traveller {
        for serial in self.mail.held().collect::<Vec<_>>() {
            self.give_up(serial);
        }
        Traveller {
            stay: self.stay,
            greeted: self.greeted,
            mail: self.mail,
            events: self.events,
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
            events_waiting: self.mail.events_held(),
            event_bytes: self.mail.bytes(),
            overrun: self.mail.is_overrun(),
        }
    }

    pub fn is_overrun(&self) -> bool {
        self.mail.is_overrun()
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
        let own = viewer.peer;
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
                self.charged.remove(&serial);
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
                Touched::Here(serial) => Some(world.root(*serial)),
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
            // Parts are seen as their wholes are, about which alone a policy is asked.
            let record = world.record_of(serial);
            let Some(record) = record.filter(|record| record.whole.is_none()) else {
                continue;
            };
            let seen = self.visible.get(&serial).copied();
            match (seen, sight(record, seen)) {
                (None, Some(_)) => fresh.push(serial),
                (_, sight) => self.show_whole(own, record, sight, world),
            }
        }
        self.want(fresh, viewer, world);
        let most = self.visible.len().saturating_add(MOST_SHOWN);
        while self.visible.len() < most
            && let Some((_, serial)) = self.wanted.pop()
        {
            let record = world.record_of(serial);
            if let Some(record) = record.filter(|record| record.whole.is_none())
                && !self.visible.contains_key(&serial)
            {
                self.show_whole(own, record, sight(record, None), world);
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

    /// Shows an object and its parts like this from now on, or not at all. Who is in charge of
    /// something sees it.
    fn show_whole(&mut self, own: PeerId, record: &Record, sight: Option<Sight>, world: &World) {
        let yours = record.author == Some(own);
        let sight = sight.or(yours.then_some(Sight::WHOLE));
        self.show(record, sight, world);
        if yours != self.charged.contains(&record.serial) {
            if yours {
                self.charged.insert(record.serial);
            } else {
                self.charged.remove(&record.serial);
            }
            let tick = world.tick().unwrap_or_default();
            self.notify(record.serial, tick, Notice::Charge(yours));
        }
        for &part in &record.parts {
            if let Some(part) = world.record_of(part) {
                self.show_whole(own, part, sight, world);
            }
        }
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
                self.visible.insert(record.serial, sight);
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

    /// A packet of the newest tick; `None` if it was encoded already, or cannot be read yet.
    pub fn encode(&mut self, archive: &Archive, budget: Option<usize>) -> Option<Vec<u8>> {
        if !self.introduced {
            return None;
        }
        let budget = budget.map(|bytes| bytes.saturating_sub(1));
        match self.encoder.encode(archive, budget) {
            Ok(packet) => {
                let message = self.here(Said::State(&packet.bytes));
                let tick = archive.newest().unwrap_or_default();
                self.sent.note(packet.sequence, tick, message.len());
                // Where nobody acknowledges, what was sent is known.
                self.tell_of_known();
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
        self.sent.apply(ack.newest);
        self.tell_of_known();
        Ok(())
    }

    /// Tells of what was held for objects that the client knows by now.
    fn tell_of_known(&mut self) {
        let known = |serial: Serial| {
            self.visible.get(&serial)?;
            Some((serial, self.known(serial.first)?))
        };
        for (serial, id) in self.mail.held().filter_map(known).collect::<Vec<_>>() {
            for (tick, notice) in self.mail.take(serial) {
                self.push(tick, id, notice);
            }
        }
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
            if is_meant && self.visible.contains_key(&about) {
                heard.push(number);
                self.notify(about, tick, Notice::Event(payload.clone()));
            }
        }
        heard
    }

    /// Tells of something that is about no object.
    pub fn tell(&mut self, tick: Tick, payload: &[u8]) {
        let about = None;
        self.send_event(Said::Event {
            tick,
            about,
            payload,
        });
    }

    /// Keeps an account of what bits are spent on from now on, or no longer.
    pub fn keep_ledger(&mut self, keep: bool) {
        self.encoder.keep_ledger(keep);
    }

    pub fn ledger(&self) -> Option<&Ledger> {
        self.encoder.ledger()
    }

    /// Sends a message that is to be delivered once.
    pub fn say(&mut self, message: Message<'_>) {
        self.mail.push(message.to_bytes());
    }

    pub fn poll_message(&mut self) -> Option<Vec<u8>> {
        let message = self.mail.pop()?;
        if !self.introduced {
            self.introduced = match Message::read(&message) {
                Some(Message::Welcome { .. }) => true,
                Some(Message::Here { stay, said }) => {
                    self.is_here(stay) && matches!(said, Said::Entered { .. })
                }
                _ => false,
            };
        }
        Some(message)
    }

    /// Whether a message is about the world that the client is in now.
    pub fn is_here(&self, stay: u8) -> bool {
        self.stay.bits() == stay
    }

    /// The entity that the client called by a number when it showed a tick; `None` if the number was
    /// another's then, which has left.
    pub fn slot(&self, id: ClientId, shown: Tick) -> Option<Slot> {
        slot(&self.encoder, &self.since, id, shown)
    }

    /// The model starts anew; what is shown keeps its numbers.
    pub fn resync(&mut self) {
        self.encoder.resync();
    }

    /// Takes what the client reports of what it is in charge of.
    pub fn report(
        &mut self,
        own: PeerId,
        packet: &[u8],
        world: &World,
        config: Config,
    ) -> Result<(), DecodeError> {
        if self.charged.is_empty() && self.intake.is_none() {
            return Ok(());
        }
        let intake = self
            .intake
            .get_or_insert_with(|| Intake::new(world, config));
        let (encoder, since) = (&self.encoder, &self.since);
        let find = |id, shown| slot(encoder, since, id, shown);
        intake.take(packet, world, own, &find)
    }

    /// Whether the client reports more than it can be in charge of.
    pub fn reports_too_much(&self) -> bool {
        let most = 2 * self.charged.len() * MOST_TABLES + SLACK;
        self.intake
            .as_ref()
            .is_some_and(|intake| intake.len() > most)
    }

    /// Makes what the client reported part of a tick.
    pub fn relay(&mut self, step: &mut Step<'_>) {
        if let Some(intake) = &mut self.intake {
            intake.apply(step);
        }
    }

    /// What to tell the client about what it reported.
    pub fn acknowledgement(&mut self) -> Option<Vec<u8>> {
        let intake = self.intake.as_mut()?;
        if !std::mem::take(&mut intake.unanswered) {
            return None;
        }
        let ack = intake.decoder().acknowledgement()?;
        Some(self.here(Said::Applied(ack)))
    }

    /// Tells of something about an object that is shown, now or once the client knows it.
    fn notify(&mut self, about: Serial, tick: Tick, notice: Notice) {
        if !self.visible.contains_key(&about) {
            return;
        }
        match self.known(about.first) {
            Some(id) => self.push(tick, id, notice),
            None => self.mail.hold(about, tick, notice),
        }
    }

    /// What the client calls an entity, if it is known to have been told of it; without any memory of
    /// what was applied that never comes, and every packet tells of everything.
    fn known(&self, slot: Slot) -> Option<ClientId> {
        let id = self.encoder.client_id(slot)?;
        let is_known = self.policy == Policy::Stateless || self.encoder.is_confirmed(slot);
        is_known.then_some(id)
    }

    fn push(&mut self, tick: Tick, about: ClientId, notice: Notice) {
        match notice {
            Notice::Event(payload) => self.send_event(Said::Event {
                tick,
                about: Some(about),
                payload: &payload,
            }),
            Notice::Charge(yours) => {
                let message = self.here(Said::Charge { tick, about, yours });
                self.mail.push(message);
            }
        }
    }

    fn send_event(&mut self, event: Said<'_>) {
        let message = self.here(event);
        self.events += u64::from(self.mail.push(message));
    }

    fn here(&self, said: Said<'_>) -> Vec<u8> {
        let stay = self.stay.bits();
        Message::Here { stay, said }.to_bytes()
    }

    /// The client will not get to know an object.
    fn give_up(&mut self, serial: Serial) {
        for (tick, notice) in self.mail.take(serial) {
            if let Notice::Event(_) = notice {
                self.push(tick, NOBODY, notice);
            }
        }
    }
}

fn slot(encoder: &Encoder, since: &[Tick], id: ClientId, shown: Tick) -> Option<Slot> {
    let since = since.get(id.0 as usize)?;
    (*since <= shown).then(|| encoder.slot(id)).flatten()
}

/// Objects that come into sight in a tick at most: showing an object is work, and no packet takes
/// more.
const MOST_SHOWN: usize = 2048;

/// Packets that may be under way before it is no longer told how old they are.
const MOST_TICKS: usize = 1024;

/// A number that no client ever has: ids stay near each other.
const NOBODY: ClientId = ClientId(u32::MAX - 1);

/// Tables that a type may have.
const MOST_TABLES: usize = 32;

/// Entities that a client may still report although it is no longer in charge of them.
const SLACK: usize = 1024;
