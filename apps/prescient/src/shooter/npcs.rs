//! Characters without a player, which peers share out among themselves.

use std::collections::BTreeMap;

use prescient::named::{
    DeadReckoning, HandOver, Name, NameError, NameRef, Ownership, ProducerConfig, Time,
    UpdateCheck, UpdatePolicy,
};
use prescient::{EntityProducer, EntitySet, SeenSet};

use super::settings::{Settings, topic_name};
use super::{Arena, FRAMES_PER_UPDATE, Player, Seen, Status};

/// The characters of a game, as one peer knows them.
pub(super) struct Npcs {
    seed: u64,
    ownership: Ownership,
    pub(super) producer: EntityProducer<Status>,
    /// The characters that this peer owns.
    own: BTreeMap<u32, Player>,
    /// How the others were seen last.
    seen: BTreeMap<u32, Status>,
}

impl Npcs {
    /// All characters of the game belong to this peer until others join.
    pub(super) fn new(
        settings: &Settings,
        peer: &Name,
        config: ProducerConfig,
        first: u64,
        arena: &Arena,
    ) -> Result<Self, NameError> {
        let topic = topic_name(peer, "npcs");
        let codec = settings.codecs.status.clone();
        let mut npcs = Self {
            seed: settings.seed,
            ownership: Ownership::new(peer.clone()),
            producer: EntityProducer::new(topic.view(), config, first, codec)?,
            own: BTreeMap::new(),
            seen: BTreeMap::new(),
        };
        for npc in 0..settings.npcs {
            if npcs.ownership.add(u64::from(npc)) {
                npcs.adopt(npc, arena);
            }
        }
        Ok(npcs)
    }

    pub(super) fn prefix(&self) -> NameRef<'_> {
        self.producer.prefix()
    }

    /// The characters that this peer owns, and where they are.
    pub(super) fn owned(&self) -> impl Iterator<Item = (u32, [f32; 2])> {
        let npcs = self.own.iter();
        npcs.map(|(number, npc)| (*number, npc.status.position))
    }

    /// Simulates the characters that this peer owns, and publishes what others extrapolate wrongly.
    pub(super) fn step(&mut self, now: Time, arena: &Arena, frame: u64) {
        for npc in self.own.values_mut() {
            npc.step(arena, &Seen::default());
            npc.status.ammunition = 0;
        }
        if !frame.is_multiple_of(FRAMES_PER_UPDATE) {
            return;
        }
        let policy = DeadReckoning::default();
        let is_due = |seen: SeenSet<'_, Status>| {
            let Some((at, set)) = seen.held else {
                return true;
            };
            seen.answer_by <= now
                || set.entities.len() != self.own.len()
                || self.own.iter().any(|(number, npc)| {
                    let seen = set.entities.get(number);
                    let seen = seen.map(|seen| seen.motion().after(now.since(at)));
                    policy.check(seen.as_ref(), &npc.status.motion()) != UpdateCheck::Skip
                })
        };
        if self.producer.seen(now).any(is_due) {
            let npcs = self.own.iter();
            let set = EntitySet {
                tick: frame,
                entities: npcs
                    .map(|(number, npc)| (*number, npc.status.clone()))
                    .collect(),
            };
            self.producer.publish(now, set);
        }
    }

    /// Notes characters of another peer.
    pub(super) fn see(&mut self, set: &EntitySet<Status>) {
        let npcs = set.entities.iter();
        self.seen
            .extend(npcs.map(|(number, npc)| (*number, npc.clone())));
    }

    /// A peer has joined, and takes its share.
    pub(super) fn join(&mut self, peer: Name, arena: &Arena) {
        let changes = self.ownership.join(peer);
        self.hand_over(changes, arena);
    }

    /// A peer has left, and the others share out what it owned.
    pub(super) fn leave(&mut self, peer: &Name, arena: &Arena) {
        let changes = self.ownership.leave(peer);
        self.hand_over(changes, arena);
    }

    fn hand_over(&mut self, changes: HandOver, arena: &Arena) {
        for npc in changes.gained {
            self.adopt(npc as u32, arena);
        }
        for (npc, _) in changes.lost {
            if let Some(lost) = self.own.remove(&(npc as u32)) {
                self.seen.insert(npc as u32, lost.status);
            }
        }
    }

    /// Continues with a character as it was seen last, or starts it.
    fn adopt(&mut self, number: u32, arena: &Arena) {
        // Numbers of players and characters are apart, so that their paths are.
        let mut npc = Player::new(number | 1 << 16, self.seed, arena);
        if let Some(seen) = self.seen.get(&number) {
            npc.status = seen.clone();
        }
        self.own.insert(number, npc);
    }
}
