//! One world, some clients, and a separate call for each step of a tick.
//!
//! The [harness](crate::harness) measures the bytes of any method; this is for timing our own
//! codec. Benchmarks, instruction counts and the comparison with other libraries measure exactly
//! the step they mean, without simulation, lookups or comparisons in between.

use std::{collections::VecDeque, sync::Arc};

use prescient_codec::{Config, Decoder, Encoder, HISTORY, Slot, Tick, history::Archive};
use prescient_schema::Schema;

use crate::world::Scene;

/// An archive with one encoder and decoder per client.
#[derive(Clone, Debug)]
pub struct Rig {
    archive: Archive,
    peers: Vec<Peer>,
    slots: Vec<Slot>,
    /// Number of entities spawned by the last captured scene.
    newborn: usize,
    visible: fn(usize) -> bool,
    route: Route,
    tick: u64,
}

/// The link between encoders and clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Maximum size of a packet.
    pub budget: Option<usize>,
    /// Latency of packets in ticks. Acknowledgements arrive at once.
    pub delay: usize,
    /// One packet in `loss` is lost; 0 for none.
    pub loss: u32,
}

#[derive(Clone, Debug)]
struct Peer {
    encoder: Encoder,
    decoder: Decoder,
    /// Packets under way, oldest first; `None` for lost ones.
    under_way: VecDeque<Option<Vec<u8>>>,
    packet_len: usize,
}

impl Rig {
    /// An empty world with this many clients.
    pub fn new(schema: &Arc<Schema>, clients: usize) -> Self {
        let config = Config::default();
        let peer = || Peer {
            encoder: Encoder::new(schema.clone(), config),
            decoder: Decoder::new(schema.clone(), config),
            under_way: VecDeque::new(),
            packet_len: 0,
        };
        Self {
            archive: Archive::new(schema.clone(), HISTORY),
            peers: (0..clients).map(|_| peer()).collect(),
            slots: Vec::new(),
            newborn: 0,
            visible: |_| true,
            route: Route::default(),
            tick: 0,
        }
    }

    /// Makes only entities visible whose number passes.
    pub fn see_only(mut self, visible: fn(usize) -> bool) -> Self {
        self.visible = visible;
        self
    }

    /// Sets the link for all further packets.
    pub fn over(mut self, route: Route) -> Self {
        self.route = route;
        self
    }

    /// Captures a scene.
    ///
    /// # Panics
    ///
    /// If the scene does not continue the previous ones.
    pub fn capture(&mut self, scene: &Scene) {
        self.tick += 1;
        let begun = self.archive.begin(Tick(self.tick));
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
        self.newborn = scene.spawned.len();
    }

    /// Encodes the last captured tick for every client. With [`acknowledge`](Self::acknowledge),
    /// this is the server's time per client.
    ///
    /// # Panics
    ///
    /// If no tick was captured since the last call.
    pub fn encode(&mut self) {
        let first = self.slots.len() - self.newborn;
        for peer in &mut self.peers {
            for (at, &slot) in self.slots[first..].iter().enumerate() {
                if (self.visible)(first + at) {
                    peer.encoder.show(slot, &self.archive);
                }
            }
            let packet = peer.encoder.encode(&self.archive, self.route.budget);
            let bytes = packet.expect("a tick was captured").bytes;
            peer.packet_len = bytes.len();
            let is_lost = self.route.loss > 0 && self.tick.is_multiple_of(self.route.loss.into());
            peer.under_way.push_back((!is_lost).then_some(bytes));
        }
    }

    /// Lets every client decode the packet that arrives now.
    ///
    /// # Panics
    ///
    /// If a client refuses it.
    pub fn decode(&mut self) {
        for peer in &mut self.peers {
            if peer.under_way.len() > self.route.delay
                && let Some(packet) = peer.under_way.pop_front().flatten()
            {
                let applied = peer.decoder.decode(&packet);
                applied.expect("packets are unchanged and in order");
            }
        }
    }

    /// Passes every client's acknowledgement to its encoder.
    ///
    /// # Panics
    ///
    /// If an encoder refuses an acknowledgement.
    pub fn acknowledge(&mut self) {
        for peer in &mut self.peers {
            if let Some(ack) = peer.decoder.acknowledgement() {
                let taken = peer.encoder.acknowledge(&ack, &self.archive);
                taken.expect("the packet was sent");
            }
        }
    }

    /// Plays a whole tick: the acknowledgement of the last packet arrives, the scene is captured,
    /// encoded and decoded.
    pub fn play(&mut self, scene: &Scene) {
        self.acknowledge();
        self.capture(scene);
        self.encode();
        self.decode();
    }

    /// Length of the last packets of all clients.
    pub fn packet_bytes(&self) -> usize {
        self.peers.iter().map(|peer| peer.packet_len).sum()
    }

    /// The encoder of a client.
    pub fn encoder(&self, client: usize) -> Option<&Encoder> {
        self.peers.get(client).map(|peer| &peer.encoder)
    }

    /// The rows of a client's world, sorted.
    pub fn shown(&self, client: usize) -> Vec<Vec<i64>> {
        let world = self.peers.get(client).map(|peer| peer.decoder.world());
        let rows = world.iter().flat_map(|world| {
            let slots = world.living_slots();
            slots.filter_map(|slot| world.latest(slot).map(<[i64]>::to_vec))
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_unstable();
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{Script, Steady, Walkers};

    #[test]
    fn every_client_ends_with_the_truth() {
        let script = Script::read("world:particles?count=40&ticks=60").unwrap();
        let mut rig = Rig::new(&script.schema, 2);
        for scene in &script.scenes {
            rig.play(scene);
        }
        for client in 0..2 {
            assert_eq!(rig.shown(client), script.last_rows());
        }
    }

    /// Fails if packets arrive at once (`delay` ignored).
    #[test]
    fn what_travels_for_three_ticks_shows_the_world_of_three_ticks_ago() {
        let walkers = Walkers {
            count: 30,
            ticks: 58,
        };
        let mut script = walkers.script();
        let route = Route {
            budget: Some(1200),
            delay: 3,
            loss: 20,
        };
        let mut rig = Rig::new(&script.schema, 1).over(route);
        for scene in &script.scenes {
            rig.play(scene);
        }
        script.scenes.truncate(58 - 3);
        assert_eq!(rig.shown(0), script.last_rows());
    }

    #[test]
    fn a_steady_world_costs_nothing_until_it_surprises() {
        let bytes = |surprises| {
            let steady = Steady {
                entities: 20,
                fields: 4,
                moving: 2,
                surprises,
                resting: 5,
                ticks: 100,
            };
            let script = steady.script();
            let mut rig = Rig::new(&script.schema, 1);
            for scene in &script.scenes {
                rig.play(scene);
            }
            assert_eq!(rig.shown(0), script.last_rows());
            rig.packet_bytes()
        };
        let quiet = bytes(0);
        assert!(quiet < 6, "{quiet}");
        assert!(bytes(10) > quiet + 8, "{} and {quiet}", bytes(10));
    }
}
