//! Our own connection. Acknowledging, capturing and encoding count as the server's time.

use std::time::Instant;

use prescient_sim::{
    rig::Rig,
    world::{Scene, Script},
};

use crate::Played;

pub struct Connection(Rig);

impl Connection {
    pub fn new(script: &Script) -> Self {
        Self(Rig::new(&script.schema, 1))
    }

    pub fn play(&mut self, scene: &Scene) -> Played {
        let started = Instant::now();
        self.0.acknowledge();
        self.0.capture(scene);
        self.0.encode();
        let time = started.elapsed();
        self.0.decode();
        Played {
            bytes: self.0.packet_bytes(),
            time,
        }
    }

    /// The client's rows, sorted.
    pub fn shown(&self) -> Vec<Vec<i64>> {
        self.0.shown(0)
    }
}
