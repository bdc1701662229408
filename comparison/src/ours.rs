//! Our own connections. Acknowledging, capturing and encoding count as the server's time.

use std::time::Instant;

use prescient_codec::{Ack, Config, Decoder, Encoder, HISTORY, Slot, Tick, history::Archive};
use prescient_sim::world::{Scene, Script};

use crate::{
    Method, Played, View,
    link::{Link, UnderWay},
};

pub struct Connections {
    archive: Archive,
    peers: Vec<Peer>,
    slots: Vec<Slot>,
    link: Link,
    tick: usize,
}

struct Peer {
    view: View,
    encoder: Encoder,
    decoder: Decoder,
    down: UnderWay<Vec<u8>>,
    up: UnderWay<Ack>,
}

impl Connections {
    pub fn new(script: &Script, views: &[View], link: Link) -> Self {
        let config = Config::default();
        let peer = |&view: &View| Peer {
            view,
            encoder: Encoder::new(script.schema.clone(), config),
            decoder: Decoder::new(script.schema.clone(), config),
            down: UnderWay::default(),
            up: UnderWay::default(),
        };
        Self {
            archive: Archive::new(script.schema.clone(), HISTORY),
            peers: views.iter().map(peer).collect(),
            slots: Vec::new(),
            link,
            tick: 0,
        }
    }

    fn capture(&mut self, scene: &Scene) {
        let begun = self.archive.begin(Tick(self.tick as u64));
        let mut capture = begun.expect("ticks increase");
        for &number in &scene.despawned {
            let gone = capture.despawn(self.slots[number]);
            gone.expect("the entity is alive");
        }
        for (class, row) in &scene.spawned {
            let slot = capture.spawn(*class, row).expect("the row fits");
            self.slots.push(slot);
        }
        for (number, row) in &scene.changed {
            let written = capture.write(self.slots[*number], row);
            written.expect("the entity is alive and the row fits");
        }
        capture.finish();
    }
}

impl Method for Connections {
    fn play(&mut self, scene: &Scene, link_is_good: bool) -> Played {
        self.tick += 1;
        let (tick, link) = (self.tick, self.link);
        let known = self.slots.len();
        let mut packets = Vec::with_capacity(self.peers.len());
        let mut arrived = Vec::with_capacity(self.peers.len());
        for peer in &mut self.peers {
            let mut newest = None;
            while let Some(ack) = peer.up.receive(tick) {
                newest = Some(ack);
            }
            arrived.push(newest);
        }

        let started = Instant::now();
        self.capture(scene);
        for (peer, ack) in self.peers.iter_mut().zip(arrived) {
            if let Some(ack) = ack {
                let taken = peer.encoder.acknowledge(&ack, &self.archive);
                taken.expect("the packet was sent");
            }
            for (at, &slot) in self.slots[known..].iter().enumerate() {
                if peer.view.contains(known + at) {
                    peer.encoder.show(slot, &self.archive);
                }
            }
            let packet = peer.encoder.encode(&self.archive, None);
            packets.push(packet.expect("a tick was captured").bytes);
        }
        let time = started.elapsed();

        let bytes = packets.iter().map(Vec::len).sum();
        for (client, (peer, packet)) in self.peers.iter_mut().zip(packets).enumerate() {
            if link_is_good || !link.loses(client, tick, false) {
                peer.down.send(tick + link.delay, packet);
            }
            while let Some(packet) = peer.down.receive(tick) {
                let applied = peer.decoder.decode(&packet);
                applied.expect("packets are unchanged and in order");
            }
            if let Some(ack) = peer.decoder.acknowledgement()
                && (link_is_good || !link.loses(client, tick, true))
            {
                peer.up.send(tick + link.delay, ack);
            }
        }
        Played { bytes, time }
    }

    fn shown(&mut self, client: usize) -> Vec<Vec<i64>> {
        let world = self.peers[client].decoder.world();
        let slots = world.living_slots();
        let rows = slots.filter_map(|slot| world.latest(slot).map(<[i64]>::to_vec));
        let mut rows: Vec<_> = rows.collect();
        rows.sort_unstable();
        rows
    }
}
