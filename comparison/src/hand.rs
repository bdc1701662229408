//! A delta packed into bits, as an expert writes it for one game: each packet has what changed since
//! the newest tick that the client acknowledged. A bit per visible entity, a bit per field of a
//! changed one, and differences in four sizes. Nothing is predicted and nothing is learned.

use std::time::Instant;

use prescient_sim::world::{Scene, Script};

use crate::{
    Method, Played, View,
    link::{Link, UnderWay},
};

/// Ticks that both ends keep as bases.
const KEPT: usize = 64;

pub struct Connections {
    world: World,
    peers: Vec<Peer>,
    link: Link,
}

struct Peer {
    sender: Sender,
    receiver: Receiver,
    down: UnderWay<Vec<u8>>,
    up: UnderWay<u32>,
}

impl Connections {
    pub fn new(script: &Script, views: &[View], link: Link) -> Self {
        let world = World::new(script);
        let peer = |&view: &View| Peer {
            sender: Sender {
                view,
                acknowledged: 0,
            },
            receiver: Receiver {
                view,
                fields: world.fields,
                rows: vec![Vec::new(); KEPT],
                newest: 0,
            },
            down: UnderWay::default(),
            up: UnderWay::default(),
        };
        let peers = views.iter().map(peer).collect();
        Self { world, peers, link }
    }
}

impl Method for Connections {
    fn play(&mut self, scene: &Scene, link_is_good: bool) -> Played {
        let link = self.link;
        let tick = self.world.tick as usize + 1;
        let mut packets = Vec::with_capacity(self.peers.len());

        let started = Instant::now();
        self.world.capture(scene);
        for peer in &mut self.peers {
            while let Some(applied) = peer.up.receive(tick) {
                peer.sender.acknowledged = peer.sender.acknowledged.max(applied);
            }
            packets.push(peer.sender.encode(&self.world));
        }
        let time = started.elapsed();

        let bytes = packets.iter().map(Vec::len).sum();
        for (client, (peer, packet)) in self.peers.iter_mut().zip(packets).enumerate() {
            if link_is_good || !link.loses(client, tick, false) {
                peer.down.send(tick + link.delay, packet);
            }
            while let Some(packet) = peer.down.receive(tick) {
                peer.receiver.decode(&packet);
            }
            if link_is_good || !link.loses(client, tick, true) {
                peer.up.send(tick + link.delay, peer.receiver.newest);
            }
        }
        Played { bytes, time }
    }

    fn shown(&mut self, client: usize) -> Vec<Vec<i64>> {
        self.peers[client].receiver.shown()
    }
}

/// The rows of the newest ticks, shared by all clients.
struct World {
    fields: usize,
    /// By tick modulo [`KEPT`]: all rows, one after the other, each with one number in front that
    /// is 1 while the entity lives.
    rows: Vec<Vec<i32>>,
    /// For each entity, the tick of its last change.
    changed: Vec<u32>,
    tick: u32,
}

impl World {
    fn new(script: &Script) -> Self {
        let [class] = &script.schema.classes[..] else {
            panic!("the worlds that are compared have one class");
        };
        Self {
            fields: class.fields.len() + 1,
            rows: vec![Vec::new(); KEPT],
            changed: Vec::new(),
            tick: 0,
        }
    }

    fn capture(&mut self, scene: &Scene) {
        let before = self.tick as usize % KEPT;
        self.tick += 1;
        let mut rows = std::mem::take(&mut self.rows[self.tick as usize % KEPT]);
        rows.clear();
        rows.extend_from_slice(&self.rows[before]);
        for (_, row) in &scene.spawned {
            rows.push(1);
            rows.extend(row.iter().map(|&value| value as i32));
            self.changed.push(self.tick);
        }
        for &number in &scene.despawned {
            rows[number * self.fields..][..self.fields].fill(0);
            self.changed[number] = self.tick;
        }
        for (number, row) in &scene.changed {
            let to = &mut rows[number * self.fields + 1..][..row.len()];
            for (to, &value) in to.iter_mut().zip(row.iter()) {
                *to = value as i32;
            }
            self.changed[*number] = self.tick;
        }
        self.rows[self.tick as usize % KEPT] = rows;
    }
}

/// What the server keeps of one client.
struct Sender {
    view: View,
    /// The newest acknowledged tick, or 0.
    acknowledged: u32,
}

impl Sender {
    /// The newest tick as a packet: tick, distance to the base or 0 without one, entities.
    fn encode(&self, world: &World) -> Vec<u8> {
        let ago = world.tick - self.acknowledged;
        let has_base = self.acknowledged > 0 && (ago as usize) < KEPT;
        let empty = Vec::new();
        let base = match has_base {
            true => &world.rows[self.acknowledged as usize % KEPT],
            false => &empty,
        };
        let since = if has_base { self.acknowledged } else { 0 };
        let present = &world.rows[world.tick as usize % KEPT];
        let mut bits = BitWriter::default();
        bits.put(world.tick, 32);
        bits.put(if has_base { ago } else { 0 }, 6);
        let count = self.view.numbers().end.min(world.changed.len());
        bits.put(count.saturating_sub(self.view.first) as u32, 16);
        let fields = world.fields;
        let zeros = [0; MAX_FIELDS];
        for number in self.view.numbers() {
            let Some(&changed) = world.changed.get(number) else {
                break;
            };
            let new = &present[number * fields..][..fields];
            let old = base.get(number * fields..).and_then(|rows| rows.get(..fields));
            let old = old.unwrap_or(&zeros[..fields]);
            let differs = changed > since && old != new;
            bits.put(differs.into(), 1);
            if !differs {
                continue;
            }
            for (&new, &old) in new.iter().zip(old) {
                if new == old {
                    bits.put(0, 1);
                    continue;
                }
                let difference = new.wrapping_sub(old);
                let zigzag = (difference << 1 ^ difference >> 31) as u32;
                let size = SIZES.iter().position(|&size| size == 32 || zigzag >> size == 0);
                let size = size.unwrap_or(SIZES.len() - 1);
                bits.put(1 | (size as u32) << 1, 3);
                bits.put(zigzag, SIZES[size]);
            }
        }
        bits.finish()
    }
}

/// The client's end.
struct Receiver {
    view: View,
    fields: usize,
    /// By tick modulo [`KEPT`], as far as visible.
    rows: Vec<Vec<i32>>,
    /// The newest applied tick.
    newest: u32,
}

impl Receiver {
    fn decode(&mut self, packet: &[u8]) {
        let mut bits = BitReader {
            bytes: packet,
            at: 0,
        };
        let tick = bits.take(32);
        let ago = bits.take(6);
        let mut rows = match ago {
            0 => Vec::new(),
            _ => self.rows[(tick - ago) as usize % KEPT].clone(),
        };
        rows.resize(bits.take(16) as usize * self.fields, 0);
        for row in rows.chunks_exact_mut(self.fields) {
            if bits.take(1) == 0 {
                continue;
            }
            for value in row {
                if bits.take(1) == 1 {
                    let size = SIZES[bits.take(2) as usize];
                    let zigzag = bits.take(size);
                    let difference = (zigzag >> 1) as i32 ^ -((zigzag & 1) as i32);
                    *value = value.wrapping_add(difference);
                }
            }
        }
        self.rows[tick as usize % KEPT] = rows;
        self.newest = self.newest.max(tick);
    }

    /// The rows of the living entities, sorted.
    fn shown(&self) -> Vec<Vec<i64>> {
        let rows = self.rows[self.newest as usize % KEPT].chunks_exact(self.fields);
        let living = rows.filter(|row| row[0] == 1);
        let row = |row: &[i32]| row[1..].iter().map(|&value| i64::from(value)).collect();
        let mut living: Vec<Vec<i64>> = living.map(row).collect();
        living.sort_unstable();
        living
    }
}

/// The sizes of a difference in bits, as zigzag.
const SIZES: [u32; 4] = [4, 8, 16, 32];
const MAX_FIELDS: usize = 32;

#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    pending: u64,
    count: u32,
}

impl BitWriter {
    fn put(&mut self, value: u32, count: u32) {
        self.pending |= u64::from(value) << self.count;
        self.count += count;
        if self.count >= 32 {
            self.bytes.extend((self.pending as u32).to_le_bytes());
            self.pending >>= 32;
            self.count -= 32;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        let rest = self.count.div_ceil(8) as usize;
        self.bytes.extend(&self.pending.to_le_bytes()[..rest]);
        self.bytes
    }
}

struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl BitReader<'_> {
    fn take(&mut self, count: u32) -> u32 {
        let mut value = 0;
        for bit in 0..count {
            let byte = self.bytes.get(self.at / 8).copied().unwrap_or(0);
            value |= u32::from(byte >> (self.at % 8) & 1) << bit;
            self.at += 1;
        }
        value
    }
}
