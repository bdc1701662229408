//! Scripts for a forwarder and a few faces: no panic, no Data to a face that did not request it, all limits
//! hold, and in the end nothing is pending. Routing runs without a key, so its messages are fuzzed, too.
#![no_main]

use std::collections::BTreeMap;
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prescient_named::*;

#[derive(Arbitrary, Debug)]
enum Step {
    Wait {
        milliseconds: u16,
    },
    AddFace {
        is_local: bool,
        is_short: bool,
    },
    RemoveFace {
        face: u8,
    },
    Route {
        name: Wish,
        face: u8,
        cost: u8,
        is_gone: bool,
    },
    Strategy {
        name: Wish,
        strategy: Option<bool>,
    },
    Ask {
        face: u8,
        interest: Ask,
    },
    Answer {
        face: u8,
        name: Wish,
        freshness: u16,
        length: u16,
    },
    Refuse {
        face: u8,
        interest: Ask,
        reason: u8,
    },
    Register {
        face: u8,
        name: Wish,
        flags: u8,
        expiration: Option<u16>,
        is_gone: bool,
    },
    Fragment {
        face: u8,
        sequence: u8,
        index: u8,
        count: u8,
        interest: Ask,
    },
    Neighbour {
        face: u8,
        cost: u8,
    },
    Routing {
        face: u8,
        kind: u8,
        bytes: Vec<u8>,
    },
    Raw {
        face: u8,
        bytes: Vec<u8>,
    },
}

/// A short name of few components, so that names are often equal.
#[derive(Arbitrary, Clone, Debug)]
struct Wish {
    first: u8,
    rest: [Option<u8>; 3],
}

#[derive(Arbitrary, Debug)]
struct Ask {
    name: Wish,
    can_be_prefix: bool,
    must_be_fresh: bool,
    nonce: Option<u8>,
    lifetime: Option<u16>,
    hop_limit: Option<u8>,
    token: Option<u8>,
    hint: Option<Wish>,
    parameters: Option<u8>,
}

const PENDING: usize = 1 << 14;
const STORED: usize = 1 << 14;
const ROUTES: usize = 16;
const FACES: usize = 6;

fuzz_target!(|steps: Vec<Step>| {
    let config = ForwarderConfig::default()
        .max_faces(FACES)
        .max_routes(ROUTES, ROUTES / 2)
        .max_pending_bytes(PENDING, PENDING / 2)
        .max_store_bytes(STORED)
        .max_dead_nonces(8);
    let mut rig = Rig {
        forwarder: Forwarder::new(config, *b"a key for a fuzz"),
        now: Time::from_micros(1),
        faces: Vec::new(),
        asked: BTreeMap::new(),
    };
    let routing = RoutingConfig::new("/router".parse().expect("a name"), 1000);
    rig.forwarder
        .start_routing(rig.now, routing.expect("a good name"));
    rig.run(Step::AddFace {
        is_local: true,
        is_short: false,
    });
    rig.run(Step::AddFace {
        is_local: false,
        is_short: true,
    });
    for step in steps {
        rig.run(step);
        rig.check();
    }
    // A minute is the longest that an Interest is pending.
    rig.run(Step::Wait {
        milliseconds: u16::MAX,
    });
    let statistics = rig.forwarder.statistics();
    assert_eq!((statistics.pending, statistics.pending_bytes), (0, 0));
});

struct Rig {
    forwarder: Forwarder,
    now: Time,
    faces: Vec<FaceId>,
    /// Names that each face asked for, and whether a longer one will do.
    asked: BTreeMap<FaceId, Vec<(Name, bool)>>,
}

impl Rig {
    fn run(&mut self, step: Step) {
        match step {
            Step::Wait { milliseconds } => {
                let end = self.now.after(Duration::from_millis(milliseconds.into()));
                while let Some(due) = self.forwarder.next_timeout().filter(|due| *due <= end) {
                    self.now = self.now.max(due);
                    self.forwarder.handle_timeout(self.now);
                    let next = self.forwarder.next_timeout();
                    assert!(next.is_none_or(|next| next > self.now), "no progress");
                }
                self.now = end;
            }
            Step::AddFace { is_local, is_short } => {
                let face = if is_local {
                    FaceConfig::local()
                } else {
                    FaceConfig::remote()
                };
                let mtu = if is_short { MIN_MTU } else { MAX_PACKET };
                let face = face.mtu(mtu).expect("in its range");
                if let Ok(face) = self.forwarder.add_face(&face) {
                    self.faces.push(face);
                }
            }
            Step::RemoveFace { face } => {
                let face = self.face(face);
                self.forwarder.remove_face(face);
                if self.faces.len() > 1 {
                    self.faces.retain(|other| *other != face);
                }
            }
            Step::Route {
                name,
                face,
                cost,
                is_gone,
            } => {
                let (name, face) = (name.name(), self.face(face));
                if is_gone {
                    self.forwarder.remove_route(name.view(), face);
                } else {
                    let _ = self.forwarder.add_route(name.view(), face, cost.into());
                }
            }
            Step::Strategy { name, strategy } => {
                let strategy = strategy.map(|is_multicast| match is_multicast {
                    true => Strategy::Multicast,
                    false => Strategy::BestRoute,
                });
                self.forwarder.set_strategy(name.name().view(), strategy);
            }
            Step::Ask { face, interest } => {
                let packet = interest.packet(None);
                self.handle(face, &packet);
            }
            Step::Refuse {
                face,
                interest,
                reason,
            } => {
                let reason = match reason % 4 {
                    0 => NackReason::None,
                    1 => NackReason::Congestion,
                    2 => NackReason::Duplicate,
                    _ => NackReason::NoRoute,
                };
                let packet = interest.packet(Some(reason));
                self.handle(face, &packet);
            }
            Step::Answer {
                face,
                name,
                freshness,
                length,
            } => {
                let content = vec![1; usize::from(length) % 3000];
                let mut packet = Vec::new();
                DataBuilder::new(name.name().view())
                    .freshness(Duration::from_millis(freshness.into()))
                    .content(&content)
                    .sign(&Signer::digest(), &mut packet)
                    .expect("it fits");
                self.handle(face, &packet);
            }
            Step::Register {
                face,
                name,
                flags,
                expiration,
                is_gone,
            } => {
                let mut command = match is_gone {
                    true => Command::unregister(name.name()),
                    false => Command::register(name.name()),
                };
                command.parameters.flags = Some(flags.into());
                let expiration = expiration.map(u64::from).map(Duration::from_millis);
                command.parameters.expiration = expiration;
                let mut packet = Vec::new();
                let stamp = SignatureStamp::default();
                let signed = command.sign(&Signer::digest(), stamp, [0; 4], &mut packet);
                signed.expect("it fits");
                self.handle(face, &packet);
            }
            Step::Fragment {
                face,
                sequence,
                index,
                count,
                interest,
            } => {
                let whole = interest.packet(None);
                let count = usize::from(count % 4) + 1;
                let index = usize::from(index) % count;
                let length = whole.len().div_ceil(count);
                let bytes = whole.chunks(length).nth(index).unwrap_or_default();
                let fragment = Some(Fragment {
                    sequence: sequence.into(),
                    index,
                    count,
                });
                let mut packet = Vec::new();
                let header = LinkHeader {
                    fragment,
                    ..LinkHeader::default()
                };
                header.encode(bytes, &mut packet);
                // Which Interest it may complete is not known here.
                self.asked
                    .entry(self.face(face))
                    .or_default()
                    .push((Name::new(), true));
                self.handle(face, &packet);
            }
            Step::Neighbour { face, cost } => {
                let face = self.face(face);
                let _ = self.forwarder.add_neighbour(self.now, face, cost.into());
            }
            Step::Routing { face, kind, bytes } => {
                // One of the three messages of routing, with any elements in it.
                let kind = 1001 + 2 * u16::from(kind % 3);
                let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
                let mut message = vec![253];
                message.extend(kind.to_be_bytes());
                match u8::try_from(length) {
                    Ok(length) if length < 253 => message.push(length),
                    _ => {
                        message.push(253);
                        message.extend(length.to_be_bytes());
                    }
                }
                message.extend(&bytes);
                let name: Name = "/localhop/prescient/routing".parse().expect("a name");
                let mut packet = Vec::new();
                let interest = InterestBuilder::new(name.view()).parameters(&message);
                if interest.encode(&mut packet).is_ok() {
                    self.handle(face, &packet);
                }
            }
            Step::Raw { face, bytes } => self.handle(face, &bytes),
        }
        self.poll();
    }

    fn handle(&mut self, face: u8, packet: &[u8]) {
        let face = self.face(face);
        if let Ok(came) = LinkPacket::decode(packet)
            && let Ok(interest) = Interest::decode(came.packet)
        {
            let wish = (interest.name().to_name(), interest.can_be_prefix());
            self.asked.entry(face).or_default().push(wish);
        }
        let _ = self.forwarder.handle_packet(self.now, face, packet);
    }

    /// Data goes to faces that requested it; other packets are valid.
    fn poll(&mut self) {
        let mut bytes = Vec::new();
        while let Some(face) = self.forwarder.poll_transmit(&mut bytes) {
            assert!(bytes.len() <= MAX_PACKET);
            let came = LinkPacket::decode(&bytes).expect("our own");
            if came.header.fragment.is_some() {
                continue;
            }
            if let Ok(data) = Data::decode(came.packet) {
                let answers = |(name, can_be_prefix): &(Name, bool)| {
                    let data = data.name();
                    name.view() == data
                        || *can_be_prefix && data.starts_with(name.view())
                        || name.view().starts_with(data)
                };
                let asked = self.asked.get(&face);
                assert!(asked.is_some_and(|asked| asked.iter().any(answers)));
            } else {
                let interest = Interest::decode(came.packet).expect("our own");
                assert!(came.header.nack.is_some() || interest.nonce().is_some());
            }
        }
    }

    fn check(&self) {
        let statistics = self.forwarder.statistics();
        assert!(statistics.stored_bytes <= STORED);
        assert!(statistics.pending_bytes <= PENDING + FACES * 64);
        assert!(statistics.routes <= ROUTES && statistics.faces <= FACES);
    }

    fn face(&self, face: u8) -> FaceId {
        self.faces[usize::from(face) % self.faces.len()]
    }
}

impl Wish {
    fn name(&self) -> Name {
        let mut name = Name::new();
        let first: &[u8] = match self.first % 8 {
            0 => b"localhost",
            1 => b"localhop",
            2..=4 => b"a",
            _ => b"b",
        };
        name.push(ComponentKind::GENERIC, first).expect("it fits");
        for rest in self.rest.iter().flatten() {
            name.push(ComponentKind::GENERIC, &[rest % 4])
                .expect("it fits");
        }
        name
    }
}

impl Ask {
    fn packet(&self, nack: Option<NackReason>) -> Vec<u8> {
        let name = self.name.name();
        let hints: Vec<Name> = self.hint.iter().map(Wish::name).collect();
        let parameters = self.parameters.map(|length| vec![2; usize::from(length)]);
        let mut builder = InterestBuilder::new(name.view()).forwarding_hint(&hints);
        if self.can_be_prefix {
            builder = builder.can_be_prefix();
        }
        if self.must_be_fresh {
            builder = builder.must_be_fresh();
        }
        if let Some(nonce) = self.nonce {
            builder = builder.nonce([0, 0, 0, nonce % 16]);
        }
        if let Some(lifetime) = self.lifetime {
            builder = builder.lifetime(Duration::from_millis(lifetime.into()));
        }
        if let Some(limit) = self.hop_limit {
            builder = builder.hop_limit(limit % 4);
        }
        if let Some(parameters) = &parameters {
            builder = builder.parameters(parameters);
        }
        let mut interest = Vec::new();
        builder.encode(&mut interest).expect("it fits");
        let header = LinkHeader {
            nack,
            pit_token: self.token.and_then(|token| PitToken::new(&[token])),
            ..LinkHeader::default()
        };
        let mut packet = Vec::new();
        header.encode(&interest, &mut packet);
        packet
    }
}
