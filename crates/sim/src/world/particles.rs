//! The particle system that the learned protocol was measured on, rebuilt from its description.
//!
//! A closed room, gravity, restitution one half, colours that decay to black over four seconds,
//! sixty ticks a second. The simulation is finer than its output (1/65536 against 1/256), as a
//! floating-point one would be; this rounding makes even a perfect predictor err by one.

use super::{Random, Source, SourceError, Spawn, TickUpdate, WorldSpec, source::Rows};
use crate::trace::{ClassHeader, FieldHeader, Header};

/// About a thousand short-lived bouncing particles.
pub struct Particles {
    header: Header,
    random: Random,
    ticks: u64,
    tick: u64,
    count: usize,
    next_id: u64,
    particles: Vec<Particle>,
    rows: Rows,
}

#[derive(Clone, Debug)]
struct Particle {
    id: u64,
    age: i64,
    life: i64,
    position: [i64; 2],
    velocity: [i64; 2],
    colour: [i64; 3],
}

/// The room in internal units.
const ROOM: [i64; 2] = [640 << 16, 480 << 16];
/// Downward acceleration per tick squared, in internal units: 200 units per second squared.
const GRAVITY: i64 = (200 << 16) / 3600;

impl Particles {
    /// The document's world by default.
    pub fn new(spec: WorldSpec) -> Self {
        let fields = ["x", "y", "r", "g", "b"].map(FieldHeader::int).to_vec();
        let class = ClassHeader {
            name: "particle".into(),
            owner: None,
            position: vec!["x".into(), "y".into()],
            fields,
        };
        let header = Header {
            format: "trace/1".into(),
            name: "particles".into(),
            source: "synthetic".into(),
            tick_hz: Some(60.0),
            classes: vec![class],
        };
        Self {
            header,
            random: Random::new(spec.seed),
            ticks: spec.ticks.unwrap_or(1000),
            tick: 0,
            count: spec.count.unwrap_or(1000) as usize,
            next_id: 1,
            particles: Vec::new(),
            rows: Rows::default(),
        }
    }

    fn emit(&mut self, age: i64) -> Particle {
        let random = &mut self.random;
        let life = random.range(220, 261);
        let mut particle = Particle {
            id: self.next_id,
            age: 0,
            life,
            position: [ROOM[0] / 2, ROOM[1] / 3],
            velocity: [
                random.range(-400_000, 400_001),
                random.range(-400_000, 100_001),
            ],
            colour: [0; 3].map(|_| random.range(64, 256)),
        };
        self.next_id += 1;
        for _ in 0..age.min(life - 1) {
            particle.step();
        }
        particle
    }
}

impl Particle {
    fn step(&mut self) {
        self.age += 1;
        self.velocity[1] += GRAVITY;
        for ((position, velocity), room) in
            self.position.iter_mut().zip(&mut self.velocity).zip(ROOM)
        {
            *position += *velocity;
            let beyond = if *position < 0 {
                *position
            } else {
                (*position - room).max(0)
            };
            if beyond != 0 {
                *position -= beyond + beyond / 2;
                *velocity = -*velocity / 2;
            }
        }
    }

    fn row(&self) -> Vec<i64> {
        let colours = self
            .colour
            .map(|full| full * (self.life - self.age) / self.life);
        self.position
            .iter()
            .map(|position| position >> 8)
            .chain(colours)
            .collect()
    }
}

impl Source for Particles {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_tick(&mut self) -> Result<Option<TickUpdate>, SourceError> {
        if self.tick == self.ticks {
            return Ok(None);
        }
        let mut update = TickUpdate::at(self.tick);
        let mut particles = std::mem::take(&mut self.particles);
        particles.iter_mut().for_each(Particle::step);
        particles.retain(|particle| {
            let lives = particle.age < particle.life;
            if !lives {
                update.despawns.push(particle.id);
                self.rows.remove(particle.id);
            }
            lives
        });
        for particle in &particles {
            self.rows.change(particle.id, particle.row(), &mut update);
        }
        while particles.len() < self.count {
            // The room is full at the first tick, so the first generation starts at random ages.
            let age = if self.tick == 0 {
                self.random.range(0, 240)
            } else {
                0
            };
            let particle = self.emit(age);
            let spawn = Spawn {
                id: particle.id,
                class: 0,
                row: particle.row(),
            };
            self.rows.spawn(spawn, &mut update);
            particles.push(particle);
        }
        self.particles = particles;
        self.tick += 1;
        Ok(Some(update))
    }
}
