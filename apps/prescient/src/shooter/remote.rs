//! Another player, as a peer sees it.

use std::collections::VecDeque;
use std::time::Duration;

use prescient::EntityConsumer;
use prescient::named::{
    Consumer, ConsumerConfig, Data, Interest, InterestPolicy, Member, NameError, OwnerRef, Time,
    Verifier, first_version, pause_together, read_events,
};
use prescient_sim::world::Random;

use super::settings::{Settings, key, topic_name};
use super::{Block, FRAMES, Projectile, Status, distance};

/// Another player as a peer sees it.
pub(super) struct Remote {
    pub(super) member: Member,
    verifier: Verifier,
    pub(super) status: EntityConsumer<Status>,
    pub(super) blocks: EntityConsumer<Block>,
    shots: Consumer,
    /// The characters that it owns; `None` if the game has none.
    pub(super) npcs: Option<EntityConsumer<Status>>,
    /// When its status arrived last.
    pub(super) received: Option<Time>,
}

/// The kind of Data from another player.
pub(super) enum Arrived {
    /// A new status.
    Status(StatusArrival),
    Npcs,
    Shots(u64),
    Other,
    Refused,
}

/// A status that arrived.
pub(super) struct StatusArrival {
    pub(super) rtt: Duration,
    /// The part of it that passed on the network.
    pub(super) effective_rtt: Duration,
    /// The distance from the extrapolated position to the one that arrived.
    pub(super) correction: Option<f32>,
}

impl Remote {
    pub(super) fn new(
        now: Time,
        member: Member,
        verifier: Verifier,
        settings: &Settings,
        random: &mut Random,
    ) -> Result<Self, NameError> {
        let first = first_version(member.boot);
        let config = || ConsumerConfig::new(verifier.clone());
        let topic = |text| topic_name(&member.name, text);
        let codecs = &settings.codecs;
        let status = |topic, key| {
            let codec = codecs.status.clone();
            EntityConsumer::new(now, topic, config(), first, codec, key)
        };
        let blocks = codecs.blocks.clone();
        let blocks_topic = topic("blocks");
        Ok(Self {
            status: status(topic("status").view(), key(random))?,
            blocks: EntityConsumer::new(
                now,
                blocks_topic.view(),
                config(),
                first,
                blocks,
                key(random),
            )?,
            shots: Consumer::new(now, topic("shots").view(), config(), first, key(random))?,
            npcs: match settings.npcs {
                0 => None,
                _ => Some(status(topic("npcs").view(), key(random))?),
            },
            received: None,
            verifier,
            member,
        })
    }

    /// Its status as it arrived last, and where it is shown.
    pub(super) fn shown(&self, now: Time) -> Option<(&Status, [f32; 2])> {
        let received = self.received?;
        let status = self.status.set().entities.get(&0)?;
        let seconds = now.since(received).as_secs_f32();
        let [x, y] = status.position;
        let place = [
            x + status.velocity[0] * seconds,
            y + status.velocity[1] * seconds,
        ];
        Some((status, place))
    }

    /// Sends the Interests that are due.
    pub(super) fn request(&mut self, now: Time, outgoing: &mut VecDeque<Vec<u8>>) {
        let mut bytes = Vec::new();
        while self.status.poll_transmit(now, &mut bytes)
            || self.blocks.poll_transmit(now, &mut bytes)
            || self.shots.poll_transmit(now, &mut bytes)
            || (self.npcs.as_mut()).is_some_and(|npcs| npcs.poll_transmit(now, &mut bytes))
        {
            outgoing.push_back(std::mem::take(&mut bytes));
        }
    }

    pub(super) fn handle_nack(&mut self, now: Time, interest: &Interest<'_>) {
        self.status.handle_nack(now, interest);
        self.blocks.handle_nack(now, interest);
        self.shots.handle_nack(now, interest);
        if let Some(npcs) = &mut self.npcs {
            npcs.handle_nack(now, interest);
        }
    }

    pub(super) fn handle_data(&mut self, now: Time, data: &Data<'_>) -> Arrived {
        let name = data.name();
        if name.starts_with(self.status.prefix()) {
            return self.handle_status(now, data);
        }
        if name.starts_with(self.blocks.prefix()) {
            return match self.blocks.handle_data(now, data) {
                Ok(_) => Arrived::Other,
                Err(_) => Arrived::Refused,
            };
        }
        if name.starts_with(self.shots.prefix()) {
            let Ok(update) = self.shots.handle_data(now, data) else {
                return Arrived::Refused;
            };
            let content = update.map(|update| update.content).unwrap_or_default();
            let events = read_events(&content).unwrap_or_default();
            let shots = events.into_iter().filter_map(Projectile::from_bytes);
            return Arrived::Shots(shots.count() as u64);
        }
        let npcs = self.npcs.as_mut();
        let npcs = npcs.filter(|npcs| name.starts_with(npcs.prefix()));
        match npcs.map(|npcs| npcs.handle_data(now, data)) {
            Some(Ok(_)) => Arrived::Npcs,
            _ => Arrived::Refused,
        }
    }

    fn handle_status(&mut self, now: Time, data: &Data<'_>) -> Arrived {
        let before = self.shown(now).map(|(_, place)| place);
        let update = match self.status.handle_data(now, data) {
            Ok(Some(update)) => update,
            Ok(None) => return Arrived::Other,
            Err(_) => return Arrived::Refused,
        };
        self.received = Some(now);
        let after = self.shown(now).map(|(_, place)| place);
        Arrived::Status(StatusArrival {
            rtt: update.rtt,
            effective_rtt: update.rtt.saturating_sub(update.waited),
            correction: before.zip(after).map(|(one, other)| distance(one, other)),
        })
    }

    /// Delays the next Interest by how far this player is from a place.
    pub(super) fn pause(&mut self, now: Time, policy: &dyn InterestPolicy, from: [f32; 2]) {
        let Some((_, place)) = self.shown(now) else {
            return;
        };
        let pause = policy.pause(f64::from(distance(place, from)));
        let published = Duration::from_secs(self.status.set().tick) / FRAMES;
        let max_pause = policy.pause(f64::INFINITY);
        let pause = pause_together(pause, max_pause, published);
        self.status.pause(now.after(pause));
        self.shots.pause(now.after(pause));
    }

    /// Calls a function with the owner of one of its topics, for interactions.
    pub(super) fn with_owner<T>(&self, topic: &str, run: impl FnOnce(OwnerRef<'_>) -> T) -> T {
        let topic = topic_name(&self.member.name, topic);
        run(OwnerRef {
            topic: topic.view(),
            boot: self.member.boot,
            verifier: &self.verifier,
        })
    }
}
