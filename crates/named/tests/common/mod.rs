//! Forwarders, links and applications on a virtual clock.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "every test uses a part of it, as a module of its own"
)]

#[cfg(feature = "sockets")]
pub mod station;

use std::collections::BTreeMap;
use std::time::Duration;

use prescient_named::*;

pub const MS: Duration = Duration::from_millis(1);

/// Forwarders with links between them, and applications.
#[derive(Default)]
pub struct World {
    pub now: Time,
    pub nodes: Vec<Forwarder>,
    ends: BTreeMap<(usize, FaceId), End>,
    flights: BTreeMap<(Time, u64), (usize, FaceId, Vec<u8>)>,
    sent: u64,
    inboxes: Vec<Vec<Vec<u8>>>,
    /// The share of packets on links that are lost.
    pub loss_percent: u64,
    /// The seed of those losses.
    pub seed: u64,
}

#[derive(Clone, Copy)]
enum End {
    Link {
        node: usize,
        face: FaceId,
        delay: Duration,
    },
    App(usize),
}

/// An application at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct App {
    pub node: usize,
    pub face: FaceId,
    inbox: usize,
}

/// A link between two nodes, with the face at each end.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub nodes: [usize; 2],
    pub faces: [FaceId; 2],
}

/// What an application receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    Interest(Name, [u8; 4]),
    Data(Name, Vec<u8>),
    Nack(Name, [u8; 4], NackReason),
}

impl World {
    pub fn node(&mut self) -> usize {
        self.node_with(ForwarderConfig::default())
    }

    pub fn node_with(&mut self, config: ForwarderConfig) -> usize {
        let key = [self.nodes.len() as u8; 16];
        self.nodes.push(Forwarder::new(config, key));
        self.nodes.len() - 1
    }

    pub fn app(&mut self, node: usize) -> App {
        self.app_with(node, &FaceConfig::local())
    }

    pub fn app_with(&mut self, node: usize, config: &FaceConfig) -> App {
        let face = self.nodes[node].add_face(config).expect("there is room");
        let inbox = self.inboxes.len();
        self.inboxes.push(Vec::new());
        self.ends.insert((node, face), End::App(inbox));
        App { node, face, inbox }
    }

    pub fn link(&mut self, one: usize, other: usize, delay: Duration) -> Link {
        self.link_with(one, other, delay, &FaceConfig::remote())
    }

    pub fn link_with(
        &mut self,
        one: usize,
        other: usize,
        delay: Duration,
        config: &FaceConfig,
    ) -> Link {
        let nodes = [one, other];
        let faces = nodes.map(|node| self.nodes[node].add_face(config).expect("there is room"));
        let link = Link { nodes, faces };
        self.restore(link, delay);
        link
    }

    /// Loses all packets of a link from now on, without removing its faces.
    pub fn silence(&mut self, link: Link) {
        for end in link.nodes.into_iter().zip(link.faces) {
            self.ends.remove(&end);
        }
    }

    /// Ends what [`silence`](Self::silence) began.
    pub fn restore(&mut self, link: Link, delay: Duration) {
        for (here, there) in [(0, 1), (1, 0)] {
            let end = End::Link {
                node: link.nodes[there],
                face: link.faces[there],
                delay,
            };
            self.ends.insert((link.nodes[here], link.faces[here]), end);
        }
    }

    /// Removes a link and its faces.
    pub fn cut(&mut self, link: Link) {
        for (node, face) in link.nodes.into_iter().zip(link.faces) {
            self.nodes[node].remove_face(face);
            self.ends.remove(&(node, face));
        }
    }

    pub fn route(&mut self, node: usize, prefix: &str, face: FaceId, cost: u64) {
        let added = self.nodes[node].add_route(name(prefix).view(), face, cost);
        added.expect("there is room");
    }

    /// An application sends a packet.
    pub fn send(&mut self, app: App, packet: &[u8]) {
        let taken = self.nodes[app.node].handle_packet(self.now, app.face, packet);
        taken.expect("a good packet");
        self.pump(app.node);
    }

    /// An application requests a name, with a lifetime of four seconds.
    pub fn ask(&mut self, app: App, text: &str, nonce: u32) {
        self.send(app, &interest(text, nonce, |builder| builder));
    }

    /// An application answers with fresh Data.
    pub fn answer(&mut self, app: App, text: &str, content: &[u8], freshness: Duration) {
        self.send(app, &data(text, content, freshness));
    }

    /// Advances the time.
    pub fn run(&mut self, span: Duration) {
        let end = self.now.after(span);
        loop {
            let timeouts = self.nodes.iter().filter_map(Forwarder::next_timeout);
            let flight = self.flights.first_key_value().map(|((due, _), _)| *due);
            let next = timeouts.chain(flight).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            while let Some(entry) = self.flights.first_entry() {
                if entry.key().0 > self.now {
                    break;
                }
                let (node, face, packet) = entry.remove();
                // It fails if the face was removed.
                let _ = self.nodes[node].handle_packet(self.now, face, &packet);
                self.pump(node);
            }
            for node in 0..self.nodes.len() {
                self.nodes[node].handle_timeout(self.now);
                self.pump(node);
            }
        }
    }

    /// What an application received since the last call.
    pub fn heard(&mut self, app: App) -> Vec<Heard> {
        let packets = std::mem::take(&mut self.inboxes[app.inbox]);
        packets.iter().map(|packet| understand(packet)).collect()
    }

    /// The packets that an application received since the last call.
    pub fn received(&mut self, app: App) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.inboxes[app.inbox])
    }

    /// The number of packets on links.
    pub fn under_way(&self) -> usize {
        self.flights.len()
    }

    fn pump(&mut self, node: usize) {
        let mut bytes = Vec::new();
        while let Some(face) = self.nodes[node].poll_transmit(&mut bytes) {
            match self.ends.get(&(node, face)) {
                Some(End::App(inbox)) => self.inboxes[*inbox].push(bytes.clone()),
                Some(End::Link { node, face, delay }) => {
                    self.sent += 1;
                    let mut chance = Random(self.seed ^ self.sent << 20);
                    if (chance.below(100) as u64) < self.loss_percent {
                        continue;
                    }
                    let key = (self.now.after(*delay), self.sent);
                    self.flights.insert(key, (*node, *face, bytes.clone()));
                }
                None => {}
            }
        }
    }
}

fn understand(packet: &[u8]) -> Heard {
    let came = LinkPacket::decode(packet).expect("our own");
    if let Ok(data) = Data::decode(came.packet) {
        return Heard::Data(data.name().to_name(), data.content().to_vec());
    }
    let interest = Interest::decode(came.packet).expect("our own");
    let (name, nonce) = (interest.name().to_name(), interest.nonce());
    let nonce = nonce.expect("forwarders add one");
    match came.header.nack {
        None => Heard::Interest(name, nonce),
        Some(reason) => Heard::Nack(name, nonce, reason),
    }
}

pub fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

pub fn interest<'a>(
    text: &str,
    nonce: u32,
    change: impl FnOnce(InterestBuilder<'a>) -> InterestBuilder<'a>,
) -> Vec<u8> {
    // Leaked, so that it outlives what the change borrows.
    let name: &'static Name = Box::leak(Box::new(name(text)));
    let mut bytes = Vec::new();
    change(InterestBuilder::new(name.view()).nonce(nonce.to_be_bytes()))
        .encode(&mut bytes)
        .expect("it fits");
    bytes
}

pub fn data(text: &str, content: &[u8], freshness: Duration) -> Vec<u8> {
    let name = name(text);
    let mut bytes = Vec::new();
    DataBuilder::new(name.view())
        .content(content)
        .freshness(freshness)
        .sign(&Signer::digest(), &mut bytes)
        .expect("it fits");
    bytes
}

pub fn asked(text: &str, nonce: u32) -> Heard {
    Heard::Interest(name(text), nonce.to_be_bytes())
}

pub fn told(text: &str, content: &[u8]) -> Heard {
    Heard::Data(name(text), content.to_vec())
}

pub fn refused(text: &str, nonce: u32, reason: NackReason) -> Heard {
    Heard::Nack(name(text), nonce.to_be_bytes(), reason)
}

/// A random number generator (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) >> 1) as usize % bound.max(1)
    }

    pub fn delay(&mut self) -> Duration {
        MS * (1 + self.below(30) as u32)
    }
}
