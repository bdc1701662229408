//! A player of the shooter as a peer of a named-data network, without sockets and clocks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use prescient::named::{
    Answer, Data, DeadReckoning, Decision, DiscoveryEvent, EventCache, EveryUpdate, FullInterest,
    Interaction, InteractionOwner, Interactor, Interest, InterestPolicy, LinkPacket, Member, Name,
    PrefixChange, Producer, ProducerConfig, Time, UpdateCheck, UpdatePolicy, Verifier,
    first_version, write_events,
};
use prescient::{EntityProducer, EntitySet};
use prescient_sim::world::Random;

use super::finder::Finder;
use super::npcs::Npcs;
use super::remote::{Arrived, Remote};
use super::settings::{
    Finding, Settings, key, number_of, one, player_name, public_key, signer, topic_name,
};
use super::{Arena, Block, Deed, FRAMES, FRAMES_PER_UPDATE, Player, Seen, Status, Target};
use crate::topology::measures::Histogram;

/// The most projectiles that consumers can miss and still get.
const MAX_SHOTS: usize = 16;

/// A peer's measurements of the updates of players.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerMeasures {
    /// Milliseconds from an Interest to its answer.
    pub(crate) rtt: Histogram,
    /// That time without the wait at the producer.
    pub(crate) effective_rtt: Histogram,
    /// The distance from the extrapolated position to the one that arrives.
    pub(crate) corrections: Histogram,
    /// Results of checks whether an update is worth publishing.
    pub(crate) checks: BTreeMap<UpdateCheck, u64>,
    /// Interests for players' updates that this peer has sent, of consumers that are gone.
    pub(crate) past_expressed: BTreeMap<u32, u64>,
    pub(crate) hits_accepted: u64,
    pub(crate) hits_refused: u64,
    pub(crate) shots_seen: u64,
    pub(crate) refused: u64,
    pub(crate) joined: u64,
    pub(crate) left: u64,
}

/// A player.
pub(crate) struct Peer {
    pub(crate) player: Player,
    pub(crate) measures: PeerMeasures,
    arena: Arena,
    settings: Arc<Settings>,
    own: Member,
    finder: Finder,
    status: EntityProducer<Status>,
    published: Option<(Time, Status)>,
    blocks: EntityProducer<Block>,
    shots: Producer,
    events: EventCache<[u8; 12]>,
    interactor: Interactor,
    owners: [InteractionOwner; 2],
    remotes: BTreeMap<u32, Remote>,
    npcs: Npcs,
    updates: Box<dyn UpdatePolicy + Send>,
    interest: Box<dyn InterestPolicy + Send>,
    outgoing: VecDeque<Vec<u8>>,
    random: Random,
}

impl Peer {
    /// A player that starts now; `boot` is the time in seconds since 1970.
    pub(crate) fn new(number: u32, settings: Arc<Settings>, now: Time, boot: u64) -> Self {
        let arena = Arena::for_players(settings.players);
        let mut random = Random::new(settings.seed ^ boot << 20 ^ u64::from(number));
        let first = first_version(boot);
        let name = player_name(number);
        let own = Member {
            name: name.clone(),
            boot,
        };
        let topic = |text: &str| topic_name(&name, text);
        let config = || ProducerConfig::new(signer(&settings, &own)).freshness(settings.freshness);
        let fits = "names of players are short";
        let mut blocks = EntityProducer::new(
            topic("blocks").view(),
            config(),
            first,
            settings.codecs.blocks.clone(),
        )
        .expect(fits);
        blocks.publish(now, EntitySet::default());
        let owner = |text| InteractionOwner::new(topic(text).view(), boot, signer(&settings, &own));
        let mut peer = Self {
            player: Player::new(number, settings.seed, &arena),
            measures: PeerMeasures::default(),
            finder: Finder::new(&settings, &own, now, boot, &mut random),
            status: EntityProducer::new(
                topic("status").view(),
                config(),
                first,
                settings.codecs.status.clone(),
            )
            .expect(fits),
            published: None,
            blocks,
            shots: Producer::new(topic("shots").view(), config(), first).expect(fits),
            events: EventCache::new(MAX_SHOTS, first),
            interactor: Interactor::new(signer(&settings, &own), first, key(&mut random)),
            owners: ["status", "blocks"].map(|text| owner(text).expect(fits)),
            remotes: BTreeMap::new(),
            npcs: Npcs::new(&settings, &name, config(), first, &arena).expect(fits),
            updates: match settings.throttle {
                Some(threshold) => Box::new(DeadReckoning { threshold }),
                None => Box::new(EveryUpdate),
            },
            interest: match settings.interest {
                Some(radii) => Box::new(radii),
                None => Box::new(FullInterest),
            },
            outgoing: VecDeque::new(),
            arena,
            random,
            own,
            settings,
        };
        if peer.settings.finding == Finding::Known {
            for other in (0..peer.settings.players).filter(|other| *other != number) {
                let member = Member {
                    name: player_name(other),
                    boot,
                };
                let public = public_key(&peer.settings, &member);
                peer.join(now, member, public);
            }
        }
        peer
    }

    /// The prefix that its forwarder needs a route for.
    pub(crate) fn prefix(&self) -> &Name {
        &self.own.name
    }

    /// Interests for this player's updates that arrived here.
    pub(crate) fn interests_seen(&self) -> u64 {
        self.status.statistics().interests
    }

    /// Interests for another player's updates that this peer has sent.
    pub(crate) fn expressed(&self) -> BTreeMap<u32, u64> {
        let mut expressed = self.measures.past_expressed.clone();
        for (number, remote) in &self.remotes {
            *expressed.entry(*number).or_default() += remote.status.statistics().interests;
        }
        expressed
    }

    /// Where this peer shows other players.
    pub(crate) fn shown(&self, now: Time) -> impl Iterator<Item = (u32, [f32; 2])> {
        let remotes = self.remotes.iter();
        remotes.filter_map(move |(number, remote)| Some((*number, remote.shown(now)?.1)))
    }

    /// How long ago the newest update of each other player arrived.
    #[cfg(test)]
    pub(crate) fn ages(&self, now: Time) -> impl Iterator<Item = (u32, Duration)> {
        let remotes = self.remotes.iter();
        remotes.filter_map(move |(number, remote)| Some((*number, now.since(remote.received?))))
    }

    /// Other players that it knows of.
    pub(crate) fn known(&self) -> usize {
        self.remotes.len()
    }

    /// Whether it knows of another player.
    pub(crate) fn knows(&self, other: u32) -> bool {
        self.remotes.contains_key(&other)
    }

    /// The next prefix besides its own that its forwarder needs a route for, or no longer needs one.
    pub(crate) fn poll_prefix(&mut self) -> Option<PrefixChange> {
        self.finder.poll_prefix()
    }

    /// The characters that this peer owns, and where they are.
    pub(crate) fn npcs(&self) -> impl Iterator<Item = (u32, [f32; 2])> {
        self.npcs.owned()
    }

    /// Handles a packet from the forwarder.
    pub(crate) fn handle_packet(&mut self, now: Time, packet: &[u8]) {
        let Ok(link) = LinkPacket::decode(packet) else {
            self.measures.refused += 1;
            return;
        };
        if let Ok(data) = Data::decode(link.packet) {
            self.handle_data(now, &data);
        } else if let Ok(interest) = Interest::decode(link.packet) {
            match link.header.nack {
                None => self.handle_interest(now, &interest),
                Some(_) => self.handle_nack(now, &interest),
            }
        } else {
            self.measures.refused += 1;
        }
        self.run_discovery(now);
    }

    /// Simulates a frame, and publishes and requests what is due.
    pub(crate) fn frame(&mut self, now: Time) {
        let seen = self.seen(now);
        for deed in self.player.step(&self.arena, &seen) {
            match deed {
                Deed::Shot(projectile) => {
                    self.events.push(projectile.to_bytes());
                    self.shots.publish();
                }
                Deed::Blocks => self.publish_blocks(now),
                Deed::Hit(target) => self.hit(now, target),
            }
        }
        if self.player.frame.is_multiple_of(FRAMES_PER_UPDATE) {
            self.check_update(now);
        }
        self.npcs.step(now, &self.arena, self.player.frame);
        self.answer(now);
        // Four times a second is enough to know in which region the player is.
        if self.player.frame % (u64::from(FRAMES) / 4) == 1 {
            self.finder.move_to(now, self.player.status.position);
        }
        self.finder.handle_timeout(now);
        self.run_discovery(now);
        self.request(now);
    }

    /// Replaces the content of `bytes` by the next packet for the forwarder. False if there is none.
    pub(crate) fn poll_transmit(&mut self, bytes: &mut Vec<u8>) -> bool {
        match self.outgoing.pop_front() {
            Some(packet) => {
                *bytes = packet;
                true
            }
            None => false,
        }
    }

    fn seen(&self, now: Time) -> Seen {
        let blocks = self.remotes.iter().flat_map(|(owner, remote)| {
            let blocks = remote.blocks.set().entities.iter();
            blocks.map(|(number, block)| (*owner, *number, block.position))
        });
        Seen {
            players: self.shown(now).collect(),
            blocks: blocks.collect(),
        }
    }

    /// Publishes the player's status if the policy says so for any consumer that waits.
    fn check_update(&mut self, now: Time) {
        let motion = self.player.status.motion();
        let checks = self.status.seen(now).map(|seen| {
            let held = seen.held.and_then(|(at, set)| {
                let status = set.entities.get(&0)?;
                // Health is not extrapolated. Ammunition matters less, and waits for the next update.
                let is_same = status.health == self.player.status.health;
                Some((status.motion().after(now.since(at)), is_same))
            });
            let held_motion = held.as_ref().map(|(motion, _)| motion);
            match self.updates.check(held_motion, &motion) {
                UpdateCheck::Skip if held.is_some_and(|(_, is_same)| !is_same) => {
                    UpdateCheck::Other
                }
                UpdateCheck::Skip if seen.answer_by <= now => UpdateCheck::Expiring,
                check => check,
            }
        });
        let Some(check) = checks.max() else {
            return;
        };
        *self.measures.checks.entry(check).or_default() += 1;
        if check != UpdateCheck::Skip {
            let set = one(self.player.frame, &self.player.status);
            self.status.publish(now, set);
            self.published = Some((now, self.player.status.clone()));
        }
    }

    fn publish_blocks(&mut self, now: Time) {
        let set = EntitySet {
            tick: self.player.frame,
            entities: self.player.blocks.clone(),
        };
        self.blocks.publish(now, set);
    }

    /// Answers Interests. An old status is not an answer: the next check publishes a new one.
    fn answer(&mut self, now: Time) {
        let mut bytes = Vec::new();
        let frame = Duration::from_secs(1) / FRAMES;
        let is_new = |at: Time| now.since(at) < frame * 2;
        if self.published.as_ref().is_some_and(|(at, _)| is_new(*at)) {
            while self.status.poll_transmit(now, &mut bytes) {
                self.outgoing.push_back(std::mem::take(&mut bytes));
            }
        }
        while self.npcs.producer.poll_transmit(now, &mut bytes)
            || self.blocks.poll_transmit(now, &mut bytes)
        {
            self.outgoing.push_back(std::mem::take(&mut bytes));
        }
        let events = &self.events;
        let shots = |floor| {
            let mut content = Vec::new();
            let events = events.since(floor).map(|(_, event)| &event[..]);
            write_events(events, &mut content);
            Answer {
                content,
                is_delta: false,
            }
        };
        while self
            .shots
            .poll_transmit(now, |request| Some(shots(request.floor)), &mut bytes)
        {
            self.outgoing.push_back(std::mem::take(&mut bytes));
        }
    }

    /// Sends the Interests that are due.
    fn request(&mut self, now: Time) {
        let mut bytes = Vec::new();
        for remote in self.remotes.values_mut() {
            remote.request(now, &mut self.outgoing);
        }
        while self.interactor.poll_transmit(now, &mut bytes) {
            self.outgoing.push_back(std::mem::take(&mut bytes));
        }
        while self.interactor.poll_outcome().is_some() {}
    }

    fn hit(&mut self, now: Time, target: Target) {
        let (owner, id, topic) = match target {
            Target::Player(owner) => (owner, 0, "status"),
            Target::Block(owner, number) => (owner, u64::from(number), "blocks"),
        };
        let Some(remote) = self.remotes.get(&owner) else {
            return;
        };
        let interactor = &mut self.interactor;
        // If too many wait for an answer, this one is lost.
        let _ = remote.with_owner(topic, |owner| {
            interactor.send(now, owner, id, b"attack", &[1])
        });
    }

    fn handle_interest(&mut self, now: Time, interest: &Interest<'_>) {
        let name = interest.name();
        let segment = if name.starts_with(self.status.prefix()) {
            self.status.handle_interest(now, interest)
        } else if name.starts_with(self.blocks.prefix()) {
            self.blocks.handle_interest(now, interest)
        } else if name.starts_with(self.npcs.prefix()) {
            self.npcs.producer.handle_interest(now, interest)
        } else if name.starts_with(self.shots.prefix()) {
            self.shots.handle_interest(now, interest)
        } else if let Some(place) = self
            .owners
            .iter()
            .position(|owner| name.starts_with(owner.prefix()))
        {
            return self.handle_interaction(now, place, interest);
        } else {
            return self.finder.handle_interest(now, interest);
        };
        self.outgoing.extend(segment.map(<[u8]>::to_vec));
    }

    fn handle_interaction(&mut self, now: Time, place: usize, interest: &Interest<'_>) {
        let (player, remotes) = (&mut self.player, &self.remotes);
        let mut is_hit = None;
        let decide = |interaction: &Interaction<'_>| {
            let target = match place {
                0 => Target::Player(player.number),
                _ => Target::Block(player.number, interaction.id as u32),
            };
            let attacker = number_of(interaction.sender.view());
            let remote = attacker.and_then(|number| remotes.get(&number));
            let from = remote.and_then(|remote| Some(remote.shown(now)?.1));
            let is_valid = interaction.command == b"attack"
                && interaction.parameters == [1]
                && player.is_plausible(target, from);
            is_hit = Some(is_valid);
            match is_valid {
                true => {
                    player.take_hit(target);
                    Decision::Accepted(Vec::new())
                }
                false => Decision::Refused(Vec::new()),
            }
        };
        let mut bytes = Vec::new();
        match self.owners[place].handle_interest(interest, decide, &mut bytes) {
            Ok(()) => self.outgoing.push_back(bytes),
            Err(_) => self.measures.refused += 1,
        }
        match is_hit {
            Some(true) => self.measures.hits_accepted += 1,
            Some(false) => self.measures.hits_refused += 1,
            None => {}
        }
        if place == 1 && is_hit == Some(true) {
            self.publish_blocks(now);
        }
    }

    fn handle_nack(&mut self, now: Time, interest: &Interest<'_>) {
        let number = number_of(interest.name());
        if let Some(remote) = number.and_then(|number| self.remotes.get_mut(&number)) {
            remote.handle_nack(now, interest);
        }
    }

    fn handle_data(&mut self, now: Time, data: &Data<'_>) {
        let remote = number_of(data.name()).and_then(|number| self.remotes.get_mut(&number));
        let arrived = remote.map(|remote| (remote.handle_data(now, data), remote));
        let is_refused = match arrived {
            Some((Arrived::Status(arrival), remote)) => {
                let measures = &mut self.measures;
                measures.rtt.add(arrival.rtt.as_secs_f64() * 1e3);
                let effective = arrival.effective_rtt.as_secs_f64() * 1e3;
                measures.effective_rtt.add(effective);
                if let Some(correction) = arrival.correction {
                    measures.corrections.add(f64::from(correction));
                }
                remote.pause(now, &*self.interest, self.player.status.position);
                false
            }
            Some((Arrived::Npcs, remote)) => {
                if let Some(npcs) = &remote.npcs {
                    self.npcs.see(npcs.set());
                }
                false
            }
            Some((Arrived::Shots(shots), _)) => {
                self.measures.shots_seen += shots;
                false
            }
            Some((Arrived::Other, _)) => false,
            Some((Arrived::Refused, _)) | None => {
                !self.interactor.handle_data(data) && !self.finder.handle_data(now, data)
            }
        };
        self.measures.refused += u64::from(is_refused);
        self.request(now);
    }

    fn run_discovery(&mut self, now: Time) {
        let mut bytes = Vec::new();
        while self.finder.poll_transmit(&mut bytes) {
            self.outgoing.push_back(std::mem::take(&mut bytes));
        }
        let mut events = Vec::new();
        while let Some(event) = self.finder.poll_event() {
            events.push(event);
        }
        for event in events {
            match event {
                // Peers with another schema or prior cannot read each other.
                DiscoveryEvent::Joined { member, profile }
                    if profile.fingerprint == self.settings.codecs.fingerprint() =>
                {
                    self.join(now, member, profile.key);
                }
                DiscoveryEvent::Left { member } => self.leave(&member),
                _ => {}
            }
        }
    }

    fn join(&mut self, now: Time, member: Member, public: [u8; 32]) {
        let Some(number) = number_of(member.name.view()) else {
            return;
        };
        let verifier = Verifier::ed25519(public);
        for owner in &mut self.owners {
            owner.trust(member.name.clone(), verifier.clone());
        }
        let (settings, random) = (&self.settings, &mut self.random);
        let Ok(remote) = Remote::new(now, member, verifier, settings, random) else {
            return;
        };
        self.measures.joined += 1;
        self.remove(number);
        self.npcs.join(remote.member.name.clone(), &self.arena);
        self.remotes.insert(number, remote);
    }

    fn leave(&mut self, member: &Member) {
        let number = number_of(member.name.view());
        let known = number.and_then(|number| Some((number, self.remotes.get(&number)?)));
        if let Some((number, remote)) = known
            && remote.member == *member
        {
            self.measures.left += 1;
            self.remove(number);
            self.npcs.leave(&member.name, &self.arena);
        }
    }

    fn remove(&mut self, number: u32) {
        if let Some(gone) = self.remotes.remove(&number) {
            let sent = gone.status.statistics().interests;
            *self.measures.past_expressed.entry(number).or_default() += sent;
        }
    }
}
