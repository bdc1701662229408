//! Forged packets between honest ones: headers that fit the receiver with any body, and an encoder
//! that gets two worlds in turn, in which the same id has different classes, containers and
//! references. No panic, and a refused packet leaves the state unchanged.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prescient_codec::{Decoder, Encoder, Policy, Sequence, Slot};
use prescient_fuzz::{
    Watched, World, config,
    forgery::{Forgery, Target},
    schema,
};

#[derive(Arbitrary, Debug)]
enum Act {
    /// A tick of both worlds, each changed by its own `whim`, and a packet about one of them.
    Encode {
        second: bool,
        whims: [u8; 2],
        budget: Option<u8>,
        /// Whether the packet arrives.
        arrives: bool,
    },
    /// Quiet ticks, each delivered and acknowledged: the world comes to rest.
    Calm(u8),
    /// The receiver's acknowledgement arrives, or a forged one.
    Acknowledge {
        lie: Option<(u8, u64)>,
    },
    /// An entity becomes hidden from the receiver, or the encoder resyncs.
    Hide(u8),
    Resync,
    /// The encoder returns to its state at the previous `Fork`.
    Fork,
    Forge(Forgery),
}

#[derive(Arbitrary, Debug)]
struct Script {
    best: bool,
    immediate: bool,
    acts: Vec<Act>,
}

struct Scene {
    worlds: [World; 2],
    tick: u32,
    encoder: Encoder,
    watched: Watched,
    honest: Vec<u8>,
}

fuzz_target!(|script: Script| {
    let schema = schema();
    let config = config(script.best).with_policy(match script.immediate {
        false => Policy::Confirmed,
        true => Policy::Immediate,
    });
    let mut scene = Scene {
        worlds: [World::new(schema.clone()), World::new(schema.clone())],
        tick: 0,
        encoder: Encoder::new(schema.clone(), config),
        watched: Watched::new(Decoder::new(schema, config)),
        honest: Vec::new(),
    };
    let mut fork = scene.encoder.clone();
    let mut calm = CALM;
    for act in script.acts.into_iter().take(120) {
        match act {
            Act::Encode {
                second,
                whims,
                budget,
                arrives,
            } => {
                let budget = budget.map(|bytes| 20 + usize::from(bytes));
                scene.encode(second, whims, budget);
                if arrives {
                    scene.deliver();
                }
            }
            Act::Calm(ticks) => {
                let ticks = (ticks % 80).min(calm);
                calm -= ticks;
                for _ in 0..ticks {
                    scene.encode(false, [0; 2], None);
                    scene.watched.feed_unwatched(&scene.honest);
                    scene.acknowledge(None);
                }
            }
            Act::Acknowledge { lie } => scene.acknowledge(lie),
            Act::Hide(slot) => scene.encoder.hide(Slot(u32::from(slot) % 32)),
            Act::Resync => scene.encoder.resync(),
            Act::Fork => std::mem::swap(&mut fork, &mut scene.encoder),
            Act::Forge(forgery) => {
                let ack = scene.watched.decoder.acknowledgement();
                let packet = forgery.to_bytes(Target {
                    epoch: ack.map_or(0, |ack| ack.epoch),
                    newest: ack.map_or(0, |ack| ack.newest.0),
                    tick: scene
                        .watched
                        .decoder
                        .world()
                        .newest()
                        .map_or(0, |tick| tick.0 as u32),
                    honest: &scene.honest,
                });
                scene.watched.feed(&packet);
            }
        }
    }
});

/// Maximum number of quiet ticks of a script; more would only take time.
const CALM: u8 = 200;

impl Scene {
    fn encode(&mut self, second: bool, whims: [u8; 2], budget: Option<usize>) {
        // Forged packets may be ahead of the honest ones.
        let shown = self
            .watched
            .decoder
            .world()
            .newest()
            .map_or(0, |tick| tick.0);
        self.tick = self.tick.max(shown.min(1 << 30) as u32) + 1;
        for (world, whim) in self.worlds.iter_mut().zip(whims) {
            world.step_to(self.tick, whim);
        }
        let world = &self.worlds[usize::from(second)];
        world.show(&mut self.encoder);
        if let Ok(packet) = self.encoder.encode(&world.archive, budget) {
            self.honest = packet.bytes;
        }
    }

    fn deliver(&mut self) {
        self.watched.feed(&self.honest);
    }

    fn acknowledge(&mut self, lie: Option<(u8, u64)>) {
        let Some(mut ack) = self.watched.decoder.acknowledgement() else {
            return;
        };
        if let Some((behind, lost)) = lie {
            ack.newest = Sequence(ack.newest.0.saturating_sub(u32::from(behind)));
            for back in (1..64).filter(|back| lost >> back & 1 == 1) {
                ack.applied.remove(back);
            }
        }
        let _ = self.encoder.acknowledge(&ack, &self.worlds[0].archive);
    }
}
