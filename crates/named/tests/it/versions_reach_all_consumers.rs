//! Versioned sync and interaction, over forwarders on a virtual clock.

use crate::common;

use std::time::Duration;

use crate::common::{App, MS, Random, World, name};
use prescient_named::*;

const SEED: [u8; 32] = [3; 32];

fn signer() -> Signer {
    Signer::ed25519(&SEED, None)
}

/// A producer and consumers of `/game/0/anna/status`, each at a forwarder of its own.
struct Rig {
    world: World,
    at: App,
    producer: Producer,
    /// Answers carry the version as their content.
    log: VersionLog<u64>,
    consumers: Vec<Reader>,
}

struct Reader {
    at: App,
    consumer: Consumer,
    updates: Vec<(Time, Update)>,
    errors: Vec<UpdateError>,
}

/// The producer at forwarder 0; the others hang on forwarder 1, which is its neighbour.
fn rig(consumers: usize, freshness: Freshness, link: Duration) -> Rig {
    let mut world = World::default();
    let nodes: Vec<usize> = (0..consumers + 2).map(|_| world.node()).collect();
    let backbone = world.link(nodes[0], nodes[1], link);
    let at = world.app(nodes[0]);
    world.route(nodes[0], "/game", at.face, 0);
    world.route(nodes[1], "/game", backbone.faces[1], 0);
    let config = ProducerConfig::new(signer()).freshness(freshness);
    let producer = Producer::new(name("/game/0/anna/status").view(), config, 100);
    let mut rig = Rig {
        at,
        producer: producer.expect("a short name"),
        log: VersionLog::new(64),
        consumers: Vec::new(),
        world,
    };
    for &node in &nodes[2..] {
        let link = rig.world.link(nodes[1], node, MS * 2);
        rig.world.route(node, "/game", link.faces[1], 0);
        let at = rig.world.app(node);
        rig.consumers.push(reader(at, rig.world.now));
    }
    rig
}

fn reader(at: App, now: Time) -> Reader {
    let config = ConsumerConfig::new(signer().verifier());
    let key = [at.node as u8; 16];
    let consumer = Consumer::new(now, name("/game/0/anna/status").view(), config, 100, key);
    Reader {
        at,
        consumer: consumer.expect("a short name"),
        updates: Vec::new(),
        errors: Vec::new(),
    }
}

impl Rig {
    /// Advances by a millisecond.
    fn step(&mut self) {
        let now = self.world.now;
        let mut bytes = Vec::new();
        for reader in &mut self.consumers {
            while reader.consumer.poll_transmit(now, &mut bytes) {
                self.world.send(reader.at, &bytes);
            }
        }
        for packet in self.world.received(self.at) {
            let packet = LinkPacket::decode(&packet).expect("our own").packet;
            let interest = Interest::decode(packet).expect("our own");
            if let Some(segment) = self.producer.handle_interest(now, &interest) {
                let segment = segment.to_vec();
                self.world.send(self.at, &segment);
            }
        }
        self.answer_all();
        self.world.run(MS);
        let now = self.world.now;
        for reader in &mut self.consumers {
            for packet in self.world.received(reader.at) {
                let packet = LinkPacket::decode(&packet).expect("our own").packet;
                let data = Data::decode(packet).expect("no Nacks here");
                match reader.consumer.handle_data(now, &data) {
                    Ok(update) => reader.updates.extend(update.map(|update| (now, update))),
                    Err(error) => reader.errors.push(error),
                }
            }
        }
    }

    fn run(&mut self, milliseconds: u32) {
        (0..milliseconds).for_each(|_| self.step());
    }

    /// Publishes a version every 33 ms.
    fn play(&mut self, milliseconds: u32) {
        for at in 0..milliseconds {
            if at % 33 == 0 {
                self.publish();
            }
            self.step();
        }
    }

    fn publish(&mut self) -> u64 {
        let version = self.producer.publish();
        self.log.insert(version, self.world.now, version);
        version
    }

    fn answer_all(&mut self) {
        let now = self.world.now;
        while let Some(request) = self.producer.poll_request(now) {
            let (_, _, newest) = self.log.newest().expect("there is one");
            let base = request.base.and_then(|base| self.log.get(base));
            let mut content = newest.to_be_bytes().to_vec();
            content.extend(base.map_or(0, |(_, base)| *base).to_be_bytes());
            let answer = Answer {
                content,
                is_delta: base.is_some(),
            };
            let mut bytes = Vec::new();
            self.producer
                .answer(now, request, &answer, &mut bytes)
                .expect("it fits");
            self.world.send(self.at, &bytes);
        }
    }
}

impl Reader {
    fn versions(&self) -> Vec<u64> {
        let updates = self.updates.iter();
        updates.map(|(_, update)| update.version).collect()
    }

    /// Versions ascend, and every content says what its name says.
    fn check(&self) {
        let mut held = None;
        for (_, update) in &self.updates {
            assert!(held < Some(update.version), "versions ascend");
            let numbers = update.content.as_chunks::<8>().0;
            let [version, base] = numbers else {
                panic!("two numbers")
            };
            assert_eq!(u64::from_be_bytes(*version), update.version);
            assert_eq!(update.base.is_some(), u64::from_be_bytes(*base) != 0);
            if let Some(base) = update.base {
                assert_eq!(Some(base), held, "a delta from what it holds");
            }
            held = Some(update.version);
        }
    }
}

/// Fails if names contain anything of the consumer (for example, if the nonce's bytes are pushed to the name),
/// or if the next floor is not that of the answer.
#[test]
fn consumers_share_one_interest_and_one_answer() {
    let mut rig = rig(5, Freshness::None, MS * 5);
    rig.play(3300);
    for reader in &rig.consumers {
        reader.check();
        assert_eq!(reader.versions(), (100..200).collect::<Vec<_>>());
        let deltas = reader.updates.iter().filter(|(_, it)| it.base.is_some());
        assert_eq!(deltas.count(), 99);
        let network = |(_, update): &(Time, Update)| update.rtt - update.waited;
        let longest = reader.updates.iter().skip(1).map(network).max();
        assert!(longest < Some(MS * 20), "{longest:?} without the wait");
    }
    let seen = rig.producer.statistics().interests;
    let sent = |reader: &Reader| reader.consumer.statistics().interests;
    let expressed: u64 = rig.consumers.iter().map(sent).sum();
    assert!(seen <= 101, "{seen} Interests at the producer");
    assert!(expressed >= 500, "{expressed} Interests of consumers");
}

/// Fails if the producer answers with the version of the floor instead of the newest (`next: Some(floor + 1)`).
#[test]
fn who_fell_behind_continues_with_the_newest_version() {
    let mut rig = rig(2, Freshness::None, MS * 5);
    rig.play(330);
    rig.consumers[1]
        .consumer
        .pause(rig.world.now.after(MS * 2000));
    rig.play(1980);
    let (behind, ahead) = (&rig.consumers[1], &rig.consumers[0]);
    let held = behind.versions().last().copied();
    assert!(held < ahead.versions().last().copied());
    rig.play(990);
    rig.consumers.iter().for_each(Reader::check);
    let versions = rig.consumers[1].versions();
    let jump = versions.windows(2).filter(|pair| pair[1] > pair[0] + 1);
    assert_eq!(jump.count(), 1, "one answer made up for it: {versions:?}");
    assert!(versions.ends_with(&[197, 198, 199]));
}

/// Fails if the lifetime stays at its longest (`self.lifetime = self.config.max_lifetime` in `finish`): then a
/// lost packet stalls the version for a second.
#[test]
fn a_lost_packet_stalls_a_topic_for_a_few_updates_only() {
    for start in 0..40 {
        let mut rig = rig(3, Freshness::None, MS * 5);
        rig.play(3300 + start);
        // Everything on all links is lost for a while.
        rig.world.loss_percent = 100;
        rig.play(20);
        rig.world.loss_percent = 0;
        rig.play(1000);
        for reader in &rig.consumers {
            reader.check();
            let times: Vec<Time> = reader.updates.iter().map(|(at, _)| *at).collect();
            let gaps = times.windows(2).map(|pair| pair[1].since(pair[0]));
            let worst = gaps.max().expect("there are updates");
            assert!(worst < MS * 250, "{start}: {worst:?}");
            let newest = *reader.versions().last().expect("there are updates");
            assert!(newest + 1 >= rig.producer.version().expect("published"));
        }
    }
}

/// A producer publishes what has changed, now and then, and otherwise only to keep Interests from expiring.
///
/// Fails if `answer_by` is the whole lifetime: Interests expire on the way, and are repeated.
#[test]
fn a_producer_with_nothing_new_keeps_its_consumers() {
    for seed in 0..10 {
        let mut rig = rig(4, Freshness::None, MS * 5);
        let mut random = Random(seed);
        rig.play(660);
        let repeated = |rig: &Rig| -> u64 {
            let consumers = rig.consumers.iter();
            consumers.map(|it| it.consumer.statistics().repeated).sum()
        };
        let before = repeated(&rig);
        let mut changed = Vec::new();
        let mut next_change = 0;
        for at in 0..10_000 {
            let now = rig.world.now;
            let is_expiring = |request: Request| request.answer_by <= now;
            if at == next_change {
                next_change += 200 + random.below(3000);
                changed.push((rig.publish(), now));
            } else if rig.producer.waiting(now).any(is_expiring) {
                rig.publish();
            }
            rig.step();
        }
        rig.run(100);
        assert_eq!(repeated(&rig), before, "seed {seed}");
        for reader in &rig.consumers {
            reader.check();
            for &(version, published) in &changed {
                let mut updates = reader.updates.iter();
                let arrived = updates.find(|(_, it)| it.version >= version);
                let late = arrived.map(|(at, _)| at.since(published));
                assert!(late < Some(MS * 60), "seed {seed}: {late:?}");
                assert!(late.is_some(), "seed {seed}: version {version}");
            }
        }
        let answers = rig.producer.statistics().answers;
        assert!(answers < 60, "seed {seed}: {answers} answers in 10 s");
    }
}

/// Fails if an Interest is not repeated (`State::Waiting` without a timeout).
#[test]
fn versions_arrive_over_lossy_links() {
    for seed in 0..20 {
        let mut rig = rig(3, Freshness::None, MS * 5);
        rig.world.loss_percent = 10;
        rig.world.seed = seed;
        rig.play(10_000);
        for reader in &rig.consumers {
            reader.check();
            assert!(
                reader.updates.len() > 40,
                "seed {seed}: {}",
                reader.updates.len()
            );
            assert!(reader.consumer.statistics().repeated > 0, "seed {seed}");
        }
    }
}

/// Fails if `poll_request` leaves floors that are yet to come waiting (`**floor < self.next`): consumers would
/// wait until the new life has as many versions.
#[test]
fn a_producer_that_starts_again_is_followed() {
    let mut rig = rig(2, Freshness::None, MS * 5);
    rig.play(660);
    let config = ProducerConfig::new(signer()).freshness(Freshness::None);
    let topic = name("/game/0/anna/status");
    rig.producer = Producer::new(topic.view(), config, 50_000).expect("a short name");
    rig.log = VersionLog::new(64);
    rig.play(1980);
    for reader in &rig.consumers {
        reader.check();
        let versions = reader.versions();
        assert!(versions.contains(&119) && versions.contains(&50_040));
    }
    // A life with lower numbers, by mistake: its consumers get a whole version at once and do not go back.
    let config = ProducerConfig::new(signer()).freshness(Freshness::None);
    rig.producer = Producer::new(topic.view(), config, 1).expect("a short name");
    rig.log = VersionLog::new(64);
    rig.play(660);
    rig.consumers.iter().for_each(Reader::check);
}

/// Fails if `MaxAge` is not divided by the forwarders on the way, or the freshness is not written.
#[test]
fn late_consumers_are_answered_by_caches_within_the_age() {
    let age = MS * 60;
    let mut rig = rig(2, Freshness::MaxAge(age), MS * 40);
    rig.play(660);
    // The Interests pass three forwarders.
    assert_eq!(rig.producer.freshness(), Some(MS * 20));
    let hits = rig.world.nodes[1].statistics().store_hits;
    let late = rig.consumers[0].at;
    for at in 0..6600 {
        if at % 33 == 0 {
            rig.publish();
        }
        // Late by about a round trip: often the others have the answer just before.
        if at % 300 == 0 {
            let late = MS * (80 + at / 300);
            rig.consumers[0].consumer.pause(rig.world.now.after(late));
        }
        rig.step();
    }
    assert_eq!(late.node, 2);
    rig.consumers.iter().for_each(Reader::check);
    assert!(rig.world.nodes[1].statistics().store_hits > hits);
    let plain = ProducerConfig::new(signer()).freshness(Freshness::None);
    let plain = Producer::new(name("/p").view(), plain, 1).expect("a short name");
    assert_eq!(plain.freshness(), None);
}

/// Fails if `SegmentFetch::content` does not wait for all segments, or the producer forgets them at once.
#[test]
fn long_contents_arrive_in_segments() {
    let mut rig = rig(2, Freshness::Fixed(MS * 20), MS * 5);
    rig.run(20);
    rig.publish();
    rig.world.loss_percent = 5;
    let content: Vec<u8> = (0..50_000_u32).map(|at| ((at * at) >> 8) as u8).collect();
    let answer = Answer {
        content: content.clone(),
        is_delta: false,
    };
    let now = rig.world.now;
    let mut sent = false;
    for _ in 0..4000 {
        if let Some(request) = rig.producer.poll_request(now) {
            let mut bytes = Vec::new();
            let answered = rig
                .producer
                .answer(rig.world.now, request, &answer, &mut bytes);
            answered.expect("it fits");
            rig.world.send(rig.at, &bytes);
            sent = true;
        }
        rig.step();
    }
    assert!(sent);
    for reader in &rig.consumers {
        let whole = reader.updates.iter().find(|(_, it)| it.content == content);
        assert!(whole.is_some(), "{:?}", reader.versions());
    }
}

/// Fails if `accept` verifies after the floor has changed, does not compare the floor, or takes a next floor that
/// is not higher.
#[test]
fn forged_replayed_and_oversized_answers_change_nothing() {
    let mut rig = rig(1, Freshness::None, MS * 5);
    rig.play(660);
    let topic = "/game/0/anna/status/sync";
    let held = rig.consumers[0].consumer.version().expect("updates");
    let data = |text: &str, content: &[u8], signer: &Signer| {
        let mut bytes = Vec::new();
        DataBuilder::new(name(text).view())
            .content(content)
            .sign(signer, &mut bytes)
            .expect("it fits");
        bytes
    };
    let floor = held + 1;
    let thief = Signer::ed25519(&[9; 32], None);
    let hostile = [
        data(&format!("{topic}/v={floor}/v=9999"), &[0, 1], &thief),
        data(
            &format!("{topic}/v={floor}/v=9999"),
            &[0, 1],
            &Signer::digest(),
        ),
        data(&format!("{topic}/v={floor}/v={floor}"), &[0, 1], &signer()),
        data(&format!("{topic}/v={held}/v={floor}"), &[0, 1], &signer()),
        data(&format!("{topic}/v={floor}"), &[0, 1], &signer()),
        data(&format!("{topic}/v={floor}/v=9999"), &[], &signer()),
        data(&format!("{topic}/v={floor}/v=9999/seg=1"), &[0], &signer()),
        data(&format!("{topic}/v={floor}/v=9999/seg=0"), &[0], &signer()),
        data(&format!("{topic}/v={floor}/v=9999/x"), &[0], &signer()),
        data(
            &format!("/game/0/ben/status/sync/v={floor}/v=9999"),
            &[0],
            &signer(),
        ),
    ];
    let now = rig.world.now;
    let reader = &mut rig.consumers[0];
    for packet in &hostile {
        let data = Data::decode(packet).expect("a packet");
        let handled = reader.consumer.handle_data(now, &data);
        assert!(handled.is_err(), "{}", data.name());
        assert_eq!(reader.consumer.version(), Some(held));
    }
    let oversized = vec![0; MAX_PACKET + 1];
    assert!(Data::decode(&oversized).is_err());
    // Interests that ask for nonsense are dropped, and floods do not grow the table.
    for floor in 0..10_000_u64 {
        let text = format!("{topic}/v={}", floor * 7919);
        let packet = common::interest(&text, floor as u32, |builder| builder);
        let interest = Interest::decode(&packet).expect("a packet");
        rig.producer.handle_interest(now, &interest);
    }
    assert!(rig.producer.waiting(now).count() <= 64);
    assert!(rig.producer.statistics().dropped > 9_000);
    rig.play(660);
    rig.consumers.iter().for_each(Reader::check);
    let newest = rig.producer.version().expect("published");
    assert!(rig.consumers[0].consumer.version() >= Some(newest - 1));
}

/// An owner of blocks, and a peer that attacks them over a lossy link.
struct Duel {
    world: World,
    owner_at: App,
    owner: InteractionOwner,
    attacker_at: App,
    attacker: Interactor,
    /// How often each block was hit.
    hits: Vec<(u64, Vec<u8>)>,
    outcomes: Vec<Outcome>,
    recorded: Vec<Vec<u8>>,
}

fn duel() -> Duel {
    let mut world = World::default();
    let (one, other) = (world.node(), world.node());
    let link = world.link(one, other, MS * 5);
    let (owner_at, attacker_at) = (world.app(one), world.app(other));
    world.route(one, "/game", owner_at.face, 0);
    world.route(other, "/game", link.faces[1], 0);
    let mut owner = InteractionOwner::new(name("/game/0/anna/blocks").view(), 7, signer());
    let owner_mut = owner.as_mut().expect("a short name");
    let ben = Signer::ed25519(&[5; 32], Some(name("/peer/ben")));
    owner_mut.trust(name("/peer/ben"), ben.verifier());
    Duel {
        world,
        owner_at,
        owner: owner.expect("a short name"),
        attacker_at,
        attacker: Interactor::new(ben, 1000, [1; 16]),
        hits: Vec::new(),
        outcomes: Vec::new(),
        recorded: Vec::new(),
    }
}

impl Duel {
    fn attack(&mut self, block: u64, damage: &[u8]) -> u64 {
        let topic = name("/game/0/anna/blocks");
        let owner = OwnerRef {
            topic: topic.view(),
            boot: 7,
            verifier: &signer().verifier(),
        };
        let sent = self
            .attacker
            .send(self.world.now, owner, block, b"attack", damage);
        sent.expect("there is room")
    }

    fn handle(&mut self, packet: &[u8]) -> Result<Vec<u8>, InteractionError> {
        let interest = Interest::decode(packet).expect("a packet");
        let hits = &mut self.hits;
        let mut bytes = Vec::new();
        let decide = |it: &Interaction<'_>| match it.parameters {
            [damage] if *damage <= 2 => {
                assert_eq!(
                    (it.sender, it.command),
                    (&name("/peer/ben"), &b"attack"[..])
                );
                hits.push((it.id, it.parameters.to_vec()));
                Decision::Accepted(b"hit".to_vec())
            }
            _ => Decision::Refused(b"too strong".to_vec()),
        };
        self.owner.handle_interest(&interest, decide, &mut bytes)?;
        Ok(bytes)
    }

    fn run(&mut self, milliseconds: u32) {
        for _ in 0..milliseconds {
            let mut bytes = Vec::new();
            while self.attacker.poll_transmit(self.world.now, &mut bytes) {
                self.recorded.push(bytes.clone());
                self.world.send(self.attacker_at, &bytes);
            }
            self.world.run(MS);
            for packet in self.world.received(self.owner_at) {
                let packet = LinkPacket::decode(&packet).expect("our own").packet;
                if let Ok(answer) = self.handle(packet) {
                    self.world.send(self.owner_at, &answer);
                }
            }
            for packet in self.world.received(self.attacker_at) {
                let packet = LinkPacket::decode(&packet).expect("our own").packet;
                if let Ok(data) = Data::decode(packet) {
                    self.attacker.handle_data(&data);
                }
            }
            while let Some(outcome) = self.attacker.poll_outcome() {
                self.outcomes.push(outcome);
            }
        }
    }
}

/// Fails if the owner does not keep its answers (a repeated Interest would be `Replayed` and never be answered),
/// or does not remember numbers (it would take effect twice).
#[test]
fn an_interaction_takes_effect_once_over_a_lossy_link() {
    for seed in 0..20 {
        let mut duel = duel();
        duel.world.loss_percent = 20;
        duel.world.seed = seed;
        for block in 0..10 {
            duel.attack(block, &[1]);
            duel.run(100);
        }
        duel.attack(99, &[200]);
        duel.run(3000);
        let mut hit: Vec<u64> = duel.hits.iter().map(|(block, _)| *block).collect();
        hit.sort_unstable();
        assert_eq!(hit, (0..10).collect::<Vec<_>>(), "seed {seed}");
        let accepted = |it: &&Outcome| matches!(it, Outcome::Decided { decision: Decision::Accepted(text), .. } if text == b"hit");
        assert_eq!(
            duel.outcomes.iter().filter(accepted).count(),
            10,
            "seed {seed}"
        );
        let refused = |it: &&Outcome| {
            matches!(
                it,
                Outcome::Decided {
                    decision: Decision::Refused(_),
                    ..
                }
            )
        };
        assert_eq!(
            duel.outcomes.iter().filter(refused).count(),
            1,
            "seed {seed}"
        );
    }
}

/// Fails if the boot time of the owner is not compared, if the signature is not checked, or if a number is
/// accepted twice.
#[test]
fn forged_and_replayed_interactions_change_nothing() {
    let mut duel = duel();
    for block in 0..40 {
        duel.attack(block, &[1]);
        duel.run(60);
    }
    duel.run(1000);
    assert_eq!(duel.hits.len(), 40);
    let recorded = std::mem::take(&mut duel.recorded);
    let mut random = Random(4);
    for _ in 0..500 {
        let mut packet = recorded[random.below(recorded.len())].clone();
        let _ = duel.handle(&packet);
        let at = random.below(packet.len());
        packet[at] ^= 1 << random.below(8);
        let Ok(interest) = Interest::decode(&packet) else {
            continue;
        };
        let mut bytes = Vec::new();
        let decide = |_: &Interaction<'_>| panic!("a forged interaction");
        let _ = duel.owner.handle_interest(&interest, decide, &mut bytes);
    }
    assert_eq!(duel.hits.len(), 40, "no replay took effect");
    // The oldest answer is forgotten, its number is not.
    assert_eq!(duel.handle(&recorded[0]), Err(InteractionError::Replayed));
    // The owner starts again: what was sent to its earlier life is refused.
    let again = InteractionOwner::new(name("/game/0/anna/blocks").view(), 8, signer());
    duel.owner = again.expect("a short name");
    let newest = recorded.last().expect("recorded");
    assert_eq!(duel.handle(newest), Err(InteractionError::UnknownSender));
    let ben = Signer::ed25519(&[5; 32], Some(name("/peer/ben")));
    duel.owner.trust(name("/peer/ben"), ben.verifier());
    assert_eq!(duel.handle(newest), Err(InteractionError::OtherLife));
    // Signed with another key under the same name.
    let thief = Signer::ed25519(&[6; 32], Some(name("/peer/ben")));
    duel.attacker = Interactor::new(thief, 9000, [1; 16]);
    duel.attack(1, &[1]);
    let mut bytes = Vec::new();
    assert!(duel.attacker.poll_transmit(duel.world.now, &mut bytes));
    assert!(matches!(
        duel.handle(&bytes),
        Err(InteractionError::Untrusted(_))
    ));
    assert_eq!(duel.hits.len(), 40);
}

/// Fails if shared keys count as the same whatever they are (`is_same` compares public keys, which they lack), or if
/// a peer that is trusted again with its key may use a number twice.
#[test]
fn a_peer_may_change_its_key() {
    let mut duel = duel();
    for (key, first) in [(&b"old"[..], 1), (b"new", 1), (b"new", 1)] {
        let verifier = Verifier::hmac(key);
        duel.owner.trust(name("/peer/ben"), verifier);
        let signer = Signer::hmac(key, Some(name("/peer/ben")));
        duel.attacker = Interactor::new(signer, first, [1; 16]);
        duel.attack(1, &[1]);
        let mut bytes = Vec::new();
        assert!(duel.attacker.poll_transmit(duel.world.now, &mut bytes));
        duel.handle(&bytes).expect("trusted");
    }
    assert_eq!(duel.hits.len(), 2, "the same key used its number again");
}
