//! One client as the server sees it: what it is shown, and what it is still to hear.

mod news;
mod outlook;
mod pace;
mod sent;
mod sights;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use prescient_codec::history::Archive;
use prescient_codec::{
    Ack, AckError, ClientId, DecodeError, EncodeError, Encoder, Policy, Slot, Statistics, Tick,
    ledger::Ledger,
};
use prescient_schema::{EntityRef, Schema};

use pace::{Pace, Turn};
use sent::Sent;
use sights::Sights;

use crate::charge::Intake;
use crate::mail::Mail;
use crate::message::{Message, Said};
use crate::relevance::{Sight, Viewer};
use crate::server::{PeerId, ServerConfig};
use crate::stay::Stay;
use crate::world::{Serial, Step, World};

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
    /// Messages of state since it last acknowledged another one as applied.
    pub unapplied: u32,
    /// Bytes of what is kept of messages until it is known whether they were applied.
    pub unsettled_bytes: usize,
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
    /// How often it was asked what it shows, as far as it has not answered.
    pub questions: u32,
    /// Whether it was told how state is coded: before that it could make nothing of any.
    introduced: bool,
    pub eye: Eye,
    pub team: u32,
    /// What it was sent.
    sent: Sent,
    /// How often it is sent something.
    pace: Pace,
    /// How it sees objects, by its numbers for their first tables.
    sights: Sights,
    /// The number of the next object when it last looked.
    unasked: u64,
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
    /// When it last said what it applied.
    heard: Tick,
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
    questions: u32,
    mail: Mail,
    events: u64,
}

impl Peer {
    pub fn new(schema: Arc<Schema>, config: &ServerConfig) -> Self {
        Self {
            encoder: Encoder::new(schema, config.codec),
            policy: config.codec.policy,
            stay: Stay::default(),
            greeted: false,
            corrected: false,
            questions: 0,
            introduced: false,
            eye: Eye::Nowhere,
            team: 0,
            sent: Sent::default(),
            pace: Pace::new(config.probe_every),
            sights: Sights::default(),
            unasked: 0,
            since: Vec::new(),
            unsettled: true,
            looked: None,
            wanted: Vec::new(),
            mail: Mail::new(config.most_event_bytes),
            events: 0,
            heard: Tick::default(),
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
            questions: traveller.questions,
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
            questions: self.questions,
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
            unapplied: self.sent.unapplied,
            unsettled_bytes: self.encoder.unsettled_bytes(),
            visible: self.sights.len(),
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
        self.sight(serial).is_some()
    }

    /// How an object is seen, if it is. What appeared since the last look is not what was seen in its
    /// slot.
    fn sight(&self, serial: Serial) -> Option<Sight> {
        let id = self.encoder.client_id(serial.first)?;
        self.sights.get(id).filter(|_| serial.number < self.unasked)
    }

    /// A number is given to an entity.
    fn name(&mut self, id: ClientId, now: Tick) {
        let at = id.0 as usize;
        if self.since.len() <= at {
            self.since.resize(at + 1, Tick::default());
        }
        self.since[at] = now;
    }

    /// A packet of the newest tick; `None` if it was encoded already, cannot be read yet, or is left
    /// out because the peer applies nothing.
    pub fn encode(&mut self, archive: &Archive, budget: Option<usize>) -> Option<Vec<u8>> {
        if !self.introduced {
            return None;
        }
        let now = archive.newest().unwrap_or_default();
        // Only where packets are confirmed does it say anything that none is.
        let is_paced = self.policy == Policy::Confirmed;
        let unsettled = || self.encoder.unsettled_bytes();
        let encoded = match self.pace.turn(now, unsettled) {
            Turn::Pass if is_paced => return None,
            Turn::Probe if is_paced => self.encoder.encode_probe(archive),
            _ => {
                let budget = budget.map(|bytes| bytes.saturating_sub(1));
                self.encoder.encode(archive, budget)
            }
        };
        match encoded {
            Ok(packet) => {
                let message = self.here(Said::State(&packet.bytes));
                self.sent.note(packet.sequence, now, message.len());
                if is_paced && let Some(limit) = self.pace.note_sent(now) {
                    self.encoder.drop_unsettled(limit);
                }
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
        let before = std::mem::replace(&mut self.heard, now);
        if now.since(before) > self.pace.second() {
            self.pace.resume(now);
        }
        let is_early = |last: Tick| now.since(last) < self.resync_every;
        if ack.resync && self.resynced.is_some_and(is_early) {
            return Ok(());
        }
        let (before, unsettled) = (self.encoder.statistics(), self.encoder.unsettled_bytes());
        self.encoder.acknowledge(ack, world.archive())?;
        let after = self.encoder.statistics();
        if ack.resync && after.resyncs > before.resyncs {
            self.resynced = Some(now);
        }
        if after.applied > before.applied {
            let settled = unsettled.saturating_sub(self.encoder.unsettled_bytes());
            self.pace.note_applied(settled);
            self.tell_of_known();
        }
        self.sent.apply(ack.newest);
        Ok(())
    }

    /// The client is heard of again after a while.
    pub fn resume(&mut self, now: Tick) {
        self.pace.resume(now);
    }

    /// Whether it is sent less than others because it applies nothing.
    pub fn is_thinned(&self, now: Tick) -> bool {
        self.policy == Policy::Confirmed && self.pace.is_thinned(now)
    }

    /// Packets since another one was acknowledged as applied, where that is done, by how many were
    /// sent before each.
    pub fn unapplied(&self) -> Range<u64> {
        let sent = self.sent.packets;
        match self.policy {
            Policy::Confirmed => sent - u64::from(self.sent.unapplied)..sent,
            Policy::Immediate | Policy::Stateless => sent..sent,
        }
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
        config: &ServerConfig,
    ) -> Result<(), DecodeError> {
        if self.charged.is_empty() && self.intake.is_none() {
            return Ok(());
        }
        let intake = self
            .intake
            .get_or_insert_with(|| Intake::new(world, config));
        let (encoder, since) = (&self.encoder, &self.since);
        let find = |id, shown| slot(encoder, since, id, shown);
        let most = most_reported(self.charged.len()).min(config.codec.max_entities);
        intake.take(packet, most, world, own, &find)
    }

    /// Whether the client reports more than it can be in charge of.
    pub fn reports_too_much(&self) -> bool {
        let most = most_reported(self.charged.len());
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

    fn here(&self, said: Said<'_>) -> Vec<u8> {
        let stay = self.stay.bits();
        Message::Here { stay, said }.to_bytes()
    }
}

fn slot(encoder: &Encoder, since: &[Tick], id: ClientId, shown: Tick) -> Option<Slot> {
    let since = since.get(id.0 as usize)?;
    (*since <= shown).then(|| encoder.slot(id)).flatten()
}

/// Entities by which a client can report that is in charge of so many objects, some of which may
/// just have taken the place of others. It numbers them from 0 and the server has a table of them, so
/// this bounds the numbers, too.
fn most_reported(objects: usize) -> usize {
    2 * objects * MOST_TABLES + SLACK
}

/// Tables that a type may have.
const MOST_TABLES: usize = 32;

/// Entities that a client may still report although it is no longer in charge of them.
const SLACK: usize = 1024;
