//! A player of the shooter as a peer of a named-data network, without sockets and clocks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use prescient::named::{
    Consumer, ConsumerConfig, Data, DeadReckoning, Decision, Discovery, DiscoveryConfig,
    DiscoveryEvent, EventCache, EveryUpdate, Freshness, FullInterest, HandOver, Interaction,
    InteractionOwner, Interactor, Interest, InterestPolicy, LinkPacket, Member, Name, NameRef,
    OwnerRef, Ownership, Producer, ProducerConfig, Profile, Radii, Signer, Time, UpdateCheck,
    UpdatePolicy, Verifier, first_version, read_events, write_events,
};
use prescient::{EntityConsumer, EntityProducer, EntitySet, EntitySetCodec};
use prescient_sim::world::Random;

use super::{
    Arena, Block, Deed, FRAMES, FRAMES_PER_UPDATE, Player, Projectile, Seen, Status, Target,
    distance,
};
use crate::topology::measures::Histogram;

/// The prefix of all names of the game.
pub(crate) const GAME: &str = "/arena/0";
/// The group in which players find each other.
pub(crate) const GROUP: &str = "/arena/0/discovery";

/// The most projectiles that consumers can miss and still get.
const MAX_SHOTS: usize = 16;

/// The prefix of all names of a player.
pub(crate) fn player_name(number: u32) -> Name {
    let text = format!("{GAME}/p{number}");
    text.parse().unwrap_or_default()
}

/// Settings that all players of a run share.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) seed: u64,
    pub(crate) players: u32,
    pub(crate) freshness: Freshness,
    /// The threshold of dead reckoning; without one every update is published.
    pub(crate) throttle: Option<f64>,
    /// Without radii all players are requested as often as possible.
    pub(crate) interest: Option<Radii>,
    /// Whether players find each other; otherwise they know each other from the start.
    pub(crate) discovery: bool,
    /// Characters without a player, which peers share out among themselves.
    pub(crate) npcs: u32,
    pub(crate) codecs: Codecs,
}

/// The codecs of the game's types, with a prior that every machine trains from the same bots.
#[derive(Clone)]
pub(crate) struct Codecs {
    status: EntitySetCodec<Status>,
    blocks: EntitySetCodec<Block>,
}

impl std::fmt::Debug for Codecs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Codecs")
    }
}

impl Codecs {
    pub(crate) fn trained() -> Self {
        let arena = Arena::for_players(4);
        let mut status = Vec::new();
        for number in 0..4 {
            let mut bot = Player::new(number, 1, &arena);
            for frame in 0..1800_u64 {
                bot.step(&arena, &Seen::default());
                if frame % 4 == 0 {
                    let tick = u64::from(number) * 1800 + frame;
                    status.push(one(tick, &bot.status));
                }
            }
        }
        let plain = EntitySetCodec::new().expect("a sound type");
        let trained = EntitySetCodec::train(&status).ok();
        let trained = trained.and_then(|prior| plain.clone().with_prior(&prior).ok());
        Self {
            status: trained.unwrap_or(plain),
            blocks: EntitySetCodec::new().expect("a sound type"),
        }
    }

    fn fingerprint(&self) -> [u8; 16] {
        self.status.fingerprint().to_be_bytes()
    }
}

fn one<T: Clone>(tick: u64, entity: &T) -> EntitySet<T> {
    EntitySet {
        tick,
        entities: [(0, entity.clone())].into(),
    }
}

/// What a peer has measured about updates of players.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerMeasures {
    /// Milliseconds from an Interest to its answer.
    pub(crate) rtt: Histogram,
    /// The same without the wait at the producer.
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

/// Another player as this peer sees it.
struct Remote {
    member: Member,
    verifier: Verifier,
    status: EntityConsumer<Status>,
    blocks: EntityConsumer<Block>,
    shots: Consumer,
    /// The characters that it owns; `None` if the game has none.
    npcs: Option<EntityConsumer<Status>>,
    /// When its status arrived last.
    received: Option<Time>,
}

impl Remote {
    fn shown(&self, now: Time) -> Option<(&Status, [f32; 2])> {
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
}

/// A player.
pub(crate) struct Peer {
    pub(crate) player: Player,
    pub(crate) measures: PeerMeasures,
    arena: Arena,
    settings: Arc<Settings>,
    own: Member,
    discovery: Option<Discovery>,
    status: EntityProducer<Status>,
    published: Option<(Time, Status)>,
    blocks: EntityProducer<Block>,
    shots: Producer,
    events: EventCache<[u8; 12]>,
    interactor: Interactor,
    owners: [InteractionOwner; 2],
    remotes: BTreeMap<u32, Remote>,
    ownership: Ownership,
    npcs: EntityProducer<Status>,
    /// The characters that this peer owns, and how others were seen last.
    own_npcs: BTreeMap<u32, Player>,
    seen_npcs: BTreeMap<u32, Status>,
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
            discovery: settings
                .discovery
                .then(|| discovery(&settings, &own, now, boot, &mut random)),
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
            ownership: Ownership::new(name.clone()),
            npcs: EntityProducer::new(
                topic("npcs").view(),
                config(),
                first,
                settings.codecs.status.clone(),
            )
            .expect(fits),
            own_npcs: BTreeMap::new(),
            seen_npcs: BTreeMap::new(),
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
        for npc in 0..peer.settings.npcs {
            if peer.ownership.add(u64::from(npc)) {
                peer.adopt(npc);
            }
        }
        if !peer.settings.discovery {
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

    /// The characters that this peer owns, and where they are.
    pub(crate) fn npcs(&self) -> impl Iterator<Item = (u32, [f32; 2])> {
        let npcs = self.own_npcs.iter();
        npcs.map(|(number, npc)| (*number, npc.status.position))
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
        self.step_npcs(now);
        self.answer(now);
        if let Some(discovery) = &mut self.discovery
            && discovery.next_timeout() <= now
        {
            discovery.handle_timeout(now);
        }
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
            let seen = seen.and_then(|(at, set)| {
                let status = set.entities.get(&0)?;
                // Nobody extrapolates health. Ammunition matters less, and waits for the next update.
                let is_same = status.health == self.player.status.health;
                Some((status.motion().after(now.since(at)), is_same))
            });
            match seen {
                Some((_, false)) if self.settings.throttle.is_some() => UpdateCheck::Other,
                _ => self
                    .updates
                    .check(seen.as_ref().map(|(motion, _)| motion), &motion),
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

    /// Simulates the characters that this peer owns. Others extrapolate them.
    fn step_npcs(&mut self, now: Time) {
        for npc in self.own_npcs.values_mut() {
            npc.step(&self.arena, &Seen::default());
            npc.status.ammunition = 0;
        }
        if self.settings.npcs == 0 || !self.player.frame.is_multiple_of(FRAMES_PER_UPDATE) {
            return;
        }
        let policy = DeadReckoning::default();
        let is_wrong = |seen: Option<(Time, &EntitySet<Status>)>| {
            let Some((at, set)) = seen else { return true };
            set.entities.len() != self.own_npcs.len()
                || self.own_npcs.iter().any(|(number, npc)| {
                    let seen = set.entities.get(number);
                    let seen = seen.map(|seen| seen.motion().after(now.since(at)));
                    policy.check(seen.as_ref(), &npc.status.motion()) != UpdateCheck::Skip
                })
        };
        if self.npcs.seen(now).any(is_wrong) {
            let npcs = self.own_npcs.iter();
            let set = EntitySet {
                tick: self.player.frame,
                entities: npcs
                    .map(|(number, npc)| (*number, npc.status.clone()))
                    .collect(),
            };
            self.npcs.publish(now, set);
        }
    }

    /// Continues with a character as it was seen last, or starts it.
    fn adopt(&mut self, number: u32) {
        // Numbers of players and characters are apart, so that their paths are.
        let mut npc = Player::new(number | 1 << 16, self.settings.seed, &self.arena);
        if let Some(seen) = self.seen_npcs.get(&number) {
            npc.status = seen.clone();
        }
        self.own_npcs.insert(number, npc);
    }

    fn hand_over(&mut self, changes: HandOver) {
        for npc in changes.gained {
            self.adopt(npc as u32);
        }
        for (npc, _) in changes.lost {
            if let Some(npc_state) = self.own_npcs.remove(&(npc as u32)) {
                self.seen_npcs.insert(npc as u32, npc_state.status);
            }
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
        while self.npcs.poll_transmit(now, &mut bytes) {
            self.outgoing.push_back(std::mem::take(&mut bytes));
        }
        while self.blocks.poll_transmit(now, &mut bytes) {
            self.outgoing.push_back(std::mem::take(&mut bytes));
        }
        while let Some(request) = self.shots.poll_request(now) {
            let mut content = Vec::new();
            let events = self.events.since(request.floor);
            write_events(events.map(|(_, event)| &event[..]), &mut content);
            let mut packet = Vec::new();
            let answered = self
                .shots
                .answer(now, request, false, &content, &mut packet);
            if answered.is_ok() {
                self.outgoing.push_back(packet);
            }
        }
    }

    /// Sends the Interests that are due.
    fn request(&mut self, now: Time) {
        let mut bytes = Vec::new();
        for remote in self.remotes.values_mut() {
            if remote.status.next_timeout() <= now {
                while remote.status.poll_transmit(now, &mut bytes) {
                    self.outgoing.push_back(std::mem::take(&mut bytes));
                }
            }
            if remote.blocks.next_timeout() <= now {
                while remote.blocks.poll_transmit(now, &mut bytes) {
                    self.outgoing.push_back(std::mem::take(&mut bytes));
                }
            }
            if let Some(npcs) = &mut remote.npcs
                && npcs.next_timeout() <= now
            {
                while npcs.poll_transmit(now, &mut bytes) {
                    self.outgoing.push_back(std::mem::take(&mut bytes));
                }
            }
            if remote.shots.next_timeout() <= now {
                while remote.shots.poll_transmit(now, &mut bytes) {
                    self.outgoing.push_back(std::mem::take(&mut bytes));
                }
            }
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
        let topic = topic_name(&remote.member.name, topic);
        let owner = OwnerRef {
            topic: topic.view(),
            boot: remote.member.boot,
            verifier: &remote.verifier,
        };
        // If too many wait for an answer, this one is lost.
        let _ = self.interactor.send(now, owner, id, b"attack", &[1]);
    }

    fn handle_interest(&mut self, now: Time, interest: &Interest<'_>) {
        let name = interest.name();
        let segment = if name.starts_with(self.status.prefix()) {
            self.status.handle_interest(now, interest)
        } else if name.starts_with(self.blocks.prefix()) {
            self.blocks.handle_interest(now, interest)
        } else if name.starts_with(self.npcs.prefix()) {
            self.npcs.handle_interest(now, interest)
        } else if name.starts_with(self.shots.prefix()) {
            self.shots.handle_interest(now, interest)
        } else if let Some(place) = self
            .owners
            .iter()
            .position(|owner| name.starts_with(owner.prefix()))
        {
            return self.handle_interaction(now, place, interest);
        } else {
            if let Some(discovery) = &mut self.discovery {
                discovery.handle_interest(now, interest);
            }
            return;
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
            remote.status.handle_nack(now, interest);
            remote.blocks.handle_nack(now, interest);
            remote.shots.handle_nack(now, interest);
            if let Some(npcs) = &mut remote.npcs {
                npcs.handle_nack(now, interest);
            }
        }
    }

    fn handle_data(&mut self, now: Time, data: &Data<'_>) {
        let name = data.name();
        let remote = number_of(name).and_then(|number| self.remotes.get_mut(&number));
        let is_ours = match remote {
            Some(remote) if name.starts_with(remote.status.prefix()) => {
                let before = remote.shown(now).map(|(_, place)| place);
                match remote.status.handle_data(now, data) {
                    Ok(Some(update)) => {
                        remote.received = Some(now);
                        let rtt = update.rtt.as_secs_f64() * 1e3;
                        let wait = update.waited.as_secs_f64() * 1e3;
                        self.measures.rtt.add(rtt);
                        self.measures.effective_rtt.add((rtt - wait).max(0.0));
                        if let Some((_, place)) = remote.shown(now) {
                            if let Some(before) = before {
                                let correction = distance(before, place);
                                self.measures.corrections.add(f64::from(correction));
                            }
                            let away = distance(place, self.player.status.position);
                            let pause = self.interest.pause(f64::from(away));
                            remote.status.pause(now.after(pause));
                            remote.shots.pause(now.after(pause));
                        }
                        true
                    }
                    other => other.is_ok(),
                }
            }
            Some(remote) if name.starts_with(remote.blocks.prefix()) => {
                remote.blocks.handle_data(now, data).is_ok()
            }
            Some(Remote {
                npcs: Some(npcs), ..
            }) if name.starts_with(npcs.prefix()) => {
                let handled = npcs.handle_data(now, data);
                let seen = npcs.set().entities.iter();
                self.seen_npcs
                    .extend(seen.map(|(number, npc)| (*number, npc.clone())));
                handled.is_ok()
            }
            Some(remote) if name.starts_with(remote.shots.prefix()) => {
                let update = remote.shots.handle_data(now, data);
                let is_ok = update.is_ok();
                let content = update.ok().flatten().map(|update| update.content);
                let events = content.as_deref().map(read_events);
                let events = events.and_then(Result::ok).unwrap_or_default();
                let shots = events.into_iter().filter_map(Projectile::from_bytes);
                self.measures.shots_seen += shots.count() as u64;
                is_ok
            }
            _ => {
                let discovery = &mut self.discovery;
                self.interactor.handle_data(data)
                    || discovery
                        .as_mut()
                        .is_some_and(|discovery| discovery.handle_data(now, data))
            }
        };
        self.measures.refused += u64::from(!is_ours);
        self.request(now);
    }

    fn run_discovery(&mut self, now: Time) {
        let Some(discovery) = &mut self.discovery else {
            return;
        };
        let mut bytes = Vec::new();
        while discovery.poll_transmit(&mut bytes) {
            self.outgoing.push_back(std::mem::take(&mut bytes));
        }
        let mut events = Vec::new();
        while let Some(event) = discovery.poll_event() {
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
        let first = first_version(member.boot);
        let config = || ConsumerConfig::new(verifier.clone());
        let topic = |text| topic_name(&member.name, text);
        let codecs = &self.settings.codecs;
        let status = EntityConsumer::new(
            now,
            topic("status").view(),
            config(),
            first,
            codecs.status.clone(),
            key(&mut self.random),
        );
        let blocks = EntityConsumer::new(
            now,
            topic("blocks").view(),
            config(),
            first,
            codecs.blocks.clone(),
            key(&mut self.random),
        );
        let npcs = (self.settings.npcs > 0).then(|| {
            EntityConsumer::new(
                now,
                topic("npcs").view(),
                config(),
                first,
                codecs.status.clone(),
                key(&mut self.random),
            )
        });
        let npcs = npcs.and_then(Result::ok);
        let shots = topic("shots");
        let shots = Consumer::new(now, shots.view(), config(), first, key(&mut self.random));
        if let (Ok(status), Ok(blocks), Ok(shots)) = (status, blocks, shots) {
            let name = member.name.clone();
            let remote = Remote {
                npcs,
                member,
                verifier,
                status,
                blocks,
                shots,
                received: None,
            };
            self.measures.joined += 1;
            self.remove(number);
            self.remotes.insert(number, remote);
            let changes = self.ownership.join(name);
            self.hand_over(changes);
        }
    }

    fn leave(&mut self, member: &Member) {
        let number = number_of(member.name.view());
        let known = number.and_then(|number| Some((number, self.remotes.get(&number)?)));
        if let Some((number, remote)) = known
            && remote.member == *member
        {
            self.measures.left += 1;
            self.remove(number);
            let changes = self.ownership.leave(&member.name);
            self.hand_over(changes);
        }
    }

    fn remove(&mut self, number: u32) {
        if let Some(gone) = self.remotes.remove(&number) {
            let sent = gone.status.statistics().interests;
            *self.measures.past_expressed.entry(number).or_default() += sent;
        }
    }
}

fn topic_name(player: &Name, text: &str) -> Name {
    let mut name = player.clone();
    let pushed = name.push(prescient::named::ComponentKind::GENERIC, text.as_bytes());
    debug_assert!(pushed.is_ok());
    name
}

/// The number of the player whose name this is, or starts with.
fn number_of(name: NameRef<'_>) -> Option<u32> {
    let component = name.get(2)?;
    let text = std::str::from_utf8(component.value).ok()?;
    text.strip_prefix('p')?.parse().ok()
}

/// A player's key. A real game draws it from the system's randomness at every start.
fn signer(settings: &Settings, member: &Member) -> Signer {
    Signer::ed25519(&key_seed(settings, member), Some(member.name.clone()))
}

fn public_key(settings: &Settings, member: &Member) -> [u8; 32] {
    let verifier = signer(settings, member).verifier();
    verifier.public_key().unwrap_or_default()
}

fn key_seed(settings: &Settings, member: &Member) -> [u8; 32] {
    let number = number_of(member.name.view()).unwrap_or_default();
    let mut random = Random::new(settings.seed ^ member.boot << 24 ^ u64::from(number) << 1);
    let mut seed = [0; 32];
    seed.fill_with(|| random.bits() as u8);
    seed
}

fn key(random: &mut Random) -> [u8; 16] {
    let [high, low] = [random.bits(), random.bits()].map(u128::from);
    (high << 64 | low).to_be_bytes()
}

fn discovery(
    settings: &Settings,
    own: &Member,
    now: Time,
    unix: u64,
    random: &mut Random,
) -> Discovery {
    let profile = Profile {
        key: public_key(settings, own),
        fingerprint: settings.codecs.fingerprint(),
        details: Vec::new(),
    };
    let group = GROUP.parse().unwrap_or_default();
    let config = DiscoveryConfig::new(group, own.name.clone(), own.boot, profile)
        .expect("names of players are short")
        .key(&settings.seed.to_be_bytes());
    Discovery::new(now, unix, config, key(random))
}
