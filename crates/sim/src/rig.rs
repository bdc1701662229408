//! One world, some clients, and every step of a tick as a call of its own.
//!
//! The [harness](crate::harness) answers how many bytes any method needs; this is for timing our
//! own: benchmarks, instruction counts and the comparison with other libraries measure exactly the
//! step they mean, and nothing is simulated, looked up or compared in between.

use std::{collections::VecDeque, sync::Arc};

use prescient_codec::{Config, Decoder, Encoder, HISTORY, Slot, Tick, history::Archive};
use prescient_schema::Schema;

use crate::world::Scene;

/// An archive and the connections that read it.
#[derive(Clone, Debug)]
pub struct Rig {
    archive: Archive,
    peers: Vec<Peer>,
    slots: Vec<Slot>,
    /// Entities that appeared in the scene captured last.
    newborn: usize,
    visible: fn(usize) -> bool,
    route: Route,
    tick: u32,
}

/// What lies between the encoders and their clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Bytes that a packet may have.
    pub budget: Option<usize>,
    /// How many ticks late packets arrive. Acknowledgements take no time.
    pub delay: usize,
    /// One packet in so many is lost; 0 for none.
    pub loss: u32,
}

#[derive(Clone, Debug)]
struct Peer {
    encoder: Encoder,
    decoder: Decoder,
    /// Packets that did not arrive yet, oldest first; nothing in place of those that never will.
    under_way: VecDeque<Option<Vec<u8>>>,
    packet_len: usize,
}

impl Rig {
    /// A world of which nobody has seen anything, and so many clients.
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

    /// Shows the clients only entities whose number passes.
    pub fn see_only(mut self, visible: fn(usize) -> bool) -> Self {
        self.visible = visible;
        self
    }

    /// Lets packets travel like this from now on.
    pub fn over(mut self, route: Route) -> Self {
        self.route = route;
        self
    }

    /// Captures a scene.
    ///
    /// # Panics
    ///
    /// If the scene does not continue those before it.
    pub fn capture(&mut self, scene: &Scene) {
        self.tick += 1;
        let begun = self.archive.begin(Tick(self.tick));
        let mut capture = begun.expect("ticks increase");
        for &number in &scene.despawned {
            let gone = capture.despawn(self.slots[number]);
            gone.expect("it is alive");
        }
        for (class, row) in &scene.spawned {
            let slot = capture.spawn(*class, row).expect("the row fits");
            self.slots.push(slot);
        }
        for (number, row) in &scene.changed {
            let written = capture.write(self.slots[*number], row);
            written.expect("it is alive and the row fits");
        }
        capture.finish();
        self.newborn = scene.spawned.len();
    }

    /// Encodes what was captured last for every client. With [`acknowledge`](Self::acknowledge),
    /// this is a client's share of the server's time.
    ///
    /// # Panics
    ///
    /// If nothing was captured since.
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
            let is_lost = self.route.loss > 0 && self.tick.is_multiple_of(self.route.loss);
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
                applied.expect("packets stay as they were, and in order");
            }
        }
    }

    /// Lets every encoder know what its client applied.
    ///
    /// # Panics
    ///
    /// If an encoder refuses to believe it.
    pub fn acknowledge(&mut self) {
        for peer in &mut self.peers {
            if let Some(ack) = peer.decoder.acknowledgement() {
                let taken = peer.encoder.acknowledge(&ack, &self.archive);
                taken.expect("the packet was sent");
            }
        }
    }

    /// A whole tick: the acknowledgement of the last packet arrives, the scene is captured,
    /// encoded and decoded.
    pub fn play(&mut self, scene: &Scene) {
        self.acknowledge();
        self.capture(scene);
        self.encode();
        self.decode();
    }

    /// Length of the packets written last.
    pub fn packet_bytes(&self) -> usize {
        self.peers.iter().map(|peer| peer.packet_len).sum()
    }

    /// The encoder of a client.
    pub fn encoder(&self, client: usize) -> Option<&Encoder> {
        self.peers.get(client).map(|peer| &peer.encoder)
    }

    /// The rows that a client shows, sorted.
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

    /// Fails if packets arrive at once (`delay` not waited for).
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
        assert!(bytes(0) < 10);
        assert!(bytes(10) > 15);
    }
}
