//! A script for the protocols on top of NDN packets: versioned sync, segments, events, interactions, discovery, entity
//! sets and spectators. All packets are authentic, so that every decoder sees any content.
#![no_main]

use std::collections::BTreeSet;
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prescient::named::*;
use prescient::{EntityConsumer, EntitySetCodec, SpectatorConsumer, State};
use prescient_schema::SchemaBuilder;

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Thing {
    #[state(step = 0.5, position)]
    position: [f32; 2],
    health: u8,
}

/// A name below a topic, near those that the protocol uses.
#[derive(Arbitrary, Debug)]
struct SyncName {
    /// Added to the version that the consumer holds.
    floor: i8,
    next: Option<i8>,
    segment: Option<u8>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Consumes {
    Plain,
    Entities,
    Spectator,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Wait(u16),
    Pause(u16),
    Restart,
    /// The producer publishes, and answers with this many bytes.
    Publish(u16),
    /// An Interest of any consumer arrives at the producer.
    Request(SyncName, u16, u8),
    /// What the consumer asks for reaches the producer, and the answer the consumer.
    Exchange,
    /// Authentic Data with any content.
    Arrive(Consumes, SyncName, Option<u8>, Vec<u8>),
    Refuse(SyncName),
    /// A segment of a content.
    Segment(u8, Option<u8>, Vec<u8>),
    Events(Vec<u8>),
    /// An interaction with this number: well-formed parameters or any bytes.
    Interact(u8, u8, bool, Vec<u8>),
    /// The answer to an interaction.
    Decide(Vec<u8>),
    /// A state vector: members of a group, or any bytes.
    Vector(Vec<(u8, u8, u8)>),
    RawVector(Vec<u8>),
    /// The peer goes to a region, and observes those up to this far away.
    Enter(i8, i8, u8),
    /// A profile that was requested, with any content.
    Profile(Vec<u8>),
    Raw(Vec<u8>),
}

const TOPIC: &str = "/game/0/anna/status";
const GROUP: &str = "/game/0/discovery";

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

fn data(name: &Name, last: Option<u8>, content: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut end = Name::new();
    let number = last.map(u64::from).unwrap_or(0);
    end.push_number(ComponentKind::SEGMENT, number).ok()?;
    let mut builder = DataBuilder::new(name.view()).content(content);
    if last.is_some() {
        builder = builder.final_block(end.view());
    }
    builder.sign(&Signer::digest(), &mut bytes).ok()?;
    Some(bytes)
}

struct Rig {
    now: Time,
    producer: Producer,
    length: usize,
    plain: Consumer,
    entities: EntityConsumer<Thing>,
    spectator: SpectatorConsumer,
    fetch: SegmentFetch,
    owner: InteractionOwner,
    decided: BTreeSet<u64>,
    interactor: Interactor,
    discovery: Discovery,
    regions: Regions,
    /// What the regions have registered, and whom they know.
    prefixes: BTreeSet<Name>,
    members: BTreeSet<Member>,
    requested: Vec<Name>,
}

impl Rig {
    fn new() -> Self {
        let now = Time::from_micros(1_000_000);
        let topic = name(TOPIC);
        let consumer = || ConsumerConfig::new(Verifier::digest());
        let schema = SchemaBuilder::new().state::<Thing>().build();
        let signer = |text: &str| Signer::hmac(b"key", Some(name(text)));
        let mut owner = InteractionOwner::new(topic.view(), 7, Signer::digest()).expect("short");
        owner.trust(name("/game/0/ben"), Verifier::hmac(b"key"));
        let profile = Profile {
            key: [1; 32],
            fingerprint: [2; 16],
            details: Vec::new(),
        };
        let discovery = DiscoveryConfig::new(name(GROUP), name("/game/0/anna"), 100, profile);
        let discovery = discovery.expect("sound");
        Self {
            now,
            producer: Producer::new(topic.view(), ProducerConfig::new(Signer::digest()), 100)
                .expect("short"),
            length: 10,
            plain: Consumer::new(now, topic.view(), consumer(), 100, [1; 16]).expect("short"),
            entities: EntityConsumer::new(
                now,
                topic.view(),
                consumer(),
                100,
                EntitySetCodec::new().expect("sound"),
                [2; 16],
            )
            .expect("short"),
            spectator: SpectatorConsumer::new(
                now,
                topic.view(),
                consumer(),
                100,
                schema.expect("sound"),
                [3; 16],
            )
            .expect("short"),
            fetch: SegmentFetch::new(name("/map"), Verifier::digest(), [4; 16]).expect("short"),
            owner,
            decided: BTreeSet::new(),
            interactor: Interactor::new(signer("/game/0/ben"), 1, [5; 16]),
            regions: Regions::new(now, 100, discovery.clone(), [7; 16]),
            discovery: Discovery::new(now, 100, discovery, [6; 16]),
            prefixes: BTreeSet::new(),
            members: BTreeSet::new(),
            requested: Vec::new(),
        }
    }

    fn sync_name(&self, wanted: &SyncName) -> Name {
        let held = self.plain.version().unwrap_or(99) as i64;
        let mut sync = name(TOPIC);
        sync.push(ComponentKind::GENERIC, b"sync").expect("short");
        let mut push = |kind, number: i64| {
            let pushed = sync.push_number(kind, number.max(0) as u64);
            pushed.expect("short");
        };
        push(ComponentKind::VERSION, held + i64::from(wanted.floor));
        if let Some(next) = wanted.next {
            push(ComponentKind::VERSION, held + i64::from(next));
        }
        if let Some(segment) = wanted.segment {
            push(ComponentKind::SEGMENT, segment.into());
        }
        sync
    }

    fn step(&mut self, step: Step) {
        let now = self.now;
        match step {
            Step::Wait(milliseconds) => {
                self.now = now.after(Duration::from_millis(milliseconds.into()));
                self.discovery.handle_timeout(self.now);
                self.regions.handle_timeout(self.now);
            }
            Step::Pause(milliseconds) => {
                let until = now.after(Duration::from_millis(milliseconds.into()));
                self.plain.pause(until);
            }
            Step::Restart => self.plain.restart(now),
            Step::Publish(length) => {
                self.producer.publish();
                self.length = usize::from(length) % 40_000;
            }
            Step::Request(wanted, lifetime, hops) => {
                let wanted = self.sync_name(&wanted);
                let mut bytes = Vec::new();
                let interest = InterestBuilder::new(wanted.view())
                    .lifetime(Duration::from_millis(lifetime.into()))
                    .hop_limit(hops);
                interest.encode(&mut bytes).expect("short");
                self.at_producer(&bytes);
            }
            Step::Exchange => self.exchange(),
            Step::Enter(x, y, radius) => {
                let at = [f64::from(x), f64::from(y)];
                let grid = Grid::new(4.0, f64::from(radius % 12) + 0.5).expect("few regions");
                let entered = self.regions.enter(now, &grid.region(at), &grid.near(at));
                entered.expect("few regions");
            }
            Step::Arrive(consumes, at, last, content) => {
                if let Some(packet) = data(&self.sync_name(&at), last, &content) {
                    self.arrive(consumes, &packet);
                }
            }
            Step::Refuse(wanted) => {
                let wanted = self.sync_name(&wanted);
                let mut bytes = Vec::new();
                let interest = InterestBuilder::new(wanted.view());
                interest.encode(&mut bytes).expect("short");
                let interest = Interest::decode(&bytes).expect("our own");
                self.plain.handle_nack(now, &interest);
            }
            Step::Segment(number, last, content) => {
                let mut segment = name("/map");
                let pushed = segment.push_number(ComponentKind::SEGMENT, number.into());
                pushed.expect("short");
                if let Some(packet) = data(&segment, last, &content) {
                    let packet = Data::decode(&packet).expect("our own");
                    let _ = self.fetch.handle_data(&packet);
                }
                let _ = self.fetch.content();
            }
            Step::Events(bytes) => {
                if let Ok(events) = read_events(&bytes) {
                    let mut written = Vec::new();
                    write_events(events.iter().copied(), &mut written);
                    assert_eq!(read_events(&written), Ok(events));
                }
            }
            Step::Interact(number, id, is_sound, parameters) => {
                self.interact(number.into(), id.into(), is_sound, &parameters);
            }
            Step::Decide(content) => {
                let verifier = Verifier::digest();
                let topic = name(TOPIC);
                let owner = OwnerRef {
                    topic: topic.view(),
                    boot: 7,
                    verifier: &verifier,
                };
                let _ = self.interactor.send(now, owner, 1, b"attack", &[]);
                let mut bytes = Vec::new();
                while self.interactor.poll_transmit(now, &mut bytes) {
                    let interest = Interest::decode(&bytes).expect("our own");
                    let wanted = interest.name().to_name();
                    if let Some(packet) = data(&wanted, None, &content) {
                        let packet = Data::decode(&packet).expect("our own");
                        self.interactor.handle_data(&packet);
                    }
                }
                while self.interactor.poll_outcome().is_some() {}
            }
            Step::Vector(members) => {
                let mut entries = Vec::new();
                for (member, boot, sequence) in members {
                    let text = format!("/game/0/p{}", member % 8);
                    let peer = name(&text);
                    let peer = peer.view().as_bytes().to_vec();
                    let numbers = [0xd4, 1, boot, 0xd6, 1, sequence];
                    let mut entry = vec![0x07, peer.len() as u8];
                    entry.extend(peer);
                    entry.extend([0xd2, numbers.len() as u8]);
                    entry.extend(numbers);
                    entries.extend([0xca, entry.len() as u8]);
                    entries.extend(entry);
                }
                let mut vector = vec![0xc9, 253];
                vector.extend((entries.len() as u16).to_be_bytes());
                vector.extend(entries);
                self.vector(&vector);
            }
            Step::RawVector(bytes) => self.vector(&bytes),
            Step::Profile(content) => {
                if let Some(wanted) = self.requested.pop()
                    && let Some(packet) = data(&wanted, None, &content)
                {
                    let packet = Data::decode(&packet).expect("our own");
                    // False if the peer has left meanwhile.
                    self.discovery.handle_data(now, &packet);
                    self.regions.handle_data(now, &packet);
                }
            }
            Step::Raw(bytes) => {
                if let Ok(data) = Data::decode(&bytes) {
                    let _ = self.plain.handle_data(now, &data);
                    self.discovery.handle_data(now, &data);
                    self.regions.handle_data(now, &data);
                    self.interactor.handle_data(&data);
                }
                if Interest::decode(&bytes).is_ok() {
                    self.at_producer(&bytes);
                }
            }
        }
        self.poll();
    }

    fn at_producer(&mut self, packet: &[u8]) -> Vec<Vec<u8>> {
        let interest = Interest::decode(packet).expect("our own");
        let segment = self.producer.handle_interest(self.now, &interest);
        let mut answers: Vec<Vec<u8>> = segment.map(<[u8]>::to_vec).into_iter().collect();
        assert!(self.producer.waiting(self.now).count() <= 64);
        let length = self.length;
        let answer = |request: &Request| {
            Some(Answer {
                content: vec![7; length],
                is_delta: request.base.is_some(),
            })
        };
        let mut bytes = Vec::new();
        while self.producer.poll_transmit(self.now, answer, &mut bytes) {
            assert!(Data::decode(&bytes).is_ok());
            answers.push(bytes.clone());
        }
        answers
    }

    fn exchange(&mut self) {
        let mut bytes = Vec::new();
        // A content has a number of segments, each of which is requested once.
        for _ in 0..16 {
            if !self.plain.poll_transmit(self.now, &mut bytes) {
                break;
            }
            for answer in self.at_producer(&bytes) {
                self.arrive(Consumes::Plain, &answer);
            }
        }
    }

    fn arrive(&mut self, consumes: Consumes, packet: &[u8]) {
        let Ok(packet) = Data::decode(packet) else {
            return;
        };
        let now = self.now;
        match consumes {
            Consumes::Plain => {
                let before = self.plain.version();
                if let Ok(Some(update)) = self.plain.handle_data(now, &packet) {
                    assert!(before <= Some(update.version));
                    assert!(update.base.is_none() || update.base == before);
                }
                assert!(before <= self.plain.version());
            }
            Consumes::Entities => {
                let before = self.entities.set().clone();
                if self.entities.handle_data(now, &packet).is_err() {
                    assert_eq!(*self.entities.set(), before);
                }
            }
            Consumes::Spectator => {
                let _ = self.spectator.handle_data(now, &packet);
                while self.spectator.subscriber().poll_change().is_some() {}
            }
        }
    }

    fn interact(&mut self, number: u64, id: u64, is_sound: bool, parameters: &[u8]) {
        let mut wanted = name(TOPIC);
        let pushed = wanted.push(ComponentKind::GENERIC, b"interact");
        pushed.expect("short");
        let pushed = wanted.push_number(ComponentKind::GENERIC, id);
        pushed.expect("short");
        let pushed = wanted.push(ComponentKind::GENERIC, b"attack");
        pushed.expect("short");
        let mut content = parameters.to_vec();
        if is_sound {
            content.insert(0, 7);
        }
        let stamp = SignatureStamp {
            sequence: Some(number),
            ..SignatureStamp::default()
        };
        let signer = Signer::hmac(b"key", Some(name("/game/0/ben")));
        let mut bytes = Vec::new();
        let interest = InterestBuilder::new(wanted.view()).parameters(&content);
        if interest.sign(&signer, stamp, &mut bytes).is_err() {
            return;
        }
        let interest = Interest::decode(&bytes).expect("our own");
        let mut answer = Vec::new();
        let decided = &mut self.decided;
        let decide = |interaction: &Interaction<'_>| {
            assert!(decided.insert(number), "each number once");
            assert_eq!(interaction.id, id);
            Decision::Refused(interaction.parameters.to_vec())
        };
        if (self.owner)
            .handle_interest(&interest, decide, &mut answer)
            .is_ok()
        {
            assert!(Data::decode(&answer).is_ok());
        }
    }

    /// A vector for the group, and for the first region.
    fn vector(&mut self, content: &[u8]) {
        let prefix = self.discovery.sync_prefix().to_name();
        self.vector_for(&prefix, content);
        if let Some(prefix) = self.prefixes.first().cloned() {
            self.vector_for(&prefix, content);
        }
    }

    fn vector_for(&mut self, prefix: &Name, content: &[u8]) {
        let Some(inner) = data(prefix, None, content) else {
            return;
        };
        let mut bytes = Vec::new();
        let interest = InterestBuilder::new(prefix.view()).parameters(&inner);
        if interest.encode(&mut bytes).is_ok() {
            let interest = Interest::decode(&bytes).expect("our own");
            let is_group = self.discovery.handle_interest(self.now, &interest);
            let is_region = self.regions.handle_interest(self.now, &interest);
            assert!(is_group != is_region);
        }
    }

    fn poll(&mut self) {
        let mut bytes = Vec::new();
        while self.discovery.poll_transmit(&mut bytes) || self.regions.poll_transmit(&mut bytes) {
            if let Ok(interest) = Interest::decode(&bytes)
                && interest.parameters().is_none()
            {
                self.requested.push(interest.name().to_name());
            }
        }
        // Regions that were left end with time.
        while let Some(change) = self.regions.poll_prefix() {
            match change {
                PrefixChange::Register(prefix) => assert!(self.prefixes.insert(prefix)),
                PrefixChange::Unregister(prefix) => assert!(self.prefixes.remove(&prefix)),
            }
        }
        assert!(self.prefixes.len() <= 2 * MAX_REGIONS);
        while self.discovery.poll_event().is_some() {}
        while let Some(event) = self.regions.poll_event() {
            match event {
                DiscoveryEvent::Joined { member, .. } => assert!(self.members.insert(member)),
                DiscoveryEvent::Left { member } => assert!(self.members.remove(&member)),
                _ => {}
            }
        }
        while self.fetch.poll_transmit(self.now, &mut bytes) {
            assert!(Interest::decode(&bytes).is_ok());
        }
        if self.entities.poll_transmit(self.now, &mut bytes)
            || self.spectator.poll_transmit(self.now, &mut bytes)
        {
            assert!(Interest::decode(&bytes).is_ok());
        }
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let mut rig = Rig::new();
    for step in steps.into_iter().take(200) {
        rig.step(step);
    }
});
