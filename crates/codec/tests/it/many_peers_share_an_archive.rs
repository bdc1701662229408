//! One world, many receivers: each encoder reads its own snapshot of the archive on its own thread
//! while the next tick is captured, and writes the same packets as on one thread.

use crate::common;

use std::thread;

use crate::common::{World, config};
use prescient_codec::{Decoder, Encoder, Policy, Profile, Slot, history::Archive};

struct Peer {
    number: u32,
    encoder: Encoder,
    decoder: Decoder,
    sent: Vec<Vec<u8>>,
}

impl Peer {
    fn new(number: u32, world: &World) -> Self {
        let config = config(Policy::Confirmed, Profile::Default);
        Self {
            number,
            encoder: Encoder::new(world.schema.clone(), config),
            decoder: Decoder::new(world.schema.clone(), config),
            sent: Vec::new(),
        }
    }

    /// Every peer sees another part of the world and loses other packets.
    fn serve(&mut self, archive: &Archive, tick: u32) {
        for slot in archive.living_slots() {
            if !(slot.0 + self.number).is_multiple_of(3) {
                self.encoder.show(slot, archive);
            }
        }
        let packet = self.encoder.encode(archive, Some(200)).unwrap();
        if !(tick + self.number).is_multiple_of(5) {
            self.decoder.decode(&packet.bytes).unwrap();
            for id in self.decoder.covered() {
                let slot: Slot = self.encoder.slot(id).unwrap();
                let expected = common::as_sent(archive, &self.encoder, slot);
                assert_eq!(self.decoder.row(id), expected.as_deref());
            }
            let ack = self.decoder.acknowledgement().unwrap();
            self.encoder.acknowledge(&ack, archive).unwrap();
        }
        self.sent.push(packet.bytes);
    }
}

#[test]
fn peers_on_threads_get_what_they_would_get_alone() {
    const PEERS: u32 = 12;
    const TICKS: u32 = 120;
    let play = |threads: bool| -> Vec<Vec<Vec<u8>>> {
        let mut world = World::new(77);
        world.step(30);
        let mut peers: Vec<Peer> = (0..PEERS).map(|number| Peer::new(number, &world)).collect();
        for tick in 0..TICKS {
            let snapshot = world.archive.clone();
            if threads {
                thread::scope(|scope| {
                    for peer in &mut peers {
                        let snapshot = &snapshot;
                        scope.spawn(move || peer.serve(snapshot, tick));
                    }
                    world.step(30);
                });
            } else {
                peers
                    .iter_mut()
                    .for_each(|peer| peer.serve(&snapshot, tick));
                world.step(30);
            }
        }
        peers.into_iter().map(|peer| peer.sent).collect()
    };
    assert!(play(true) == play(false));
}
