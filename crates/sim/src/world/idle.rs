//! Very many entities at rest and a few that move, with scattered ids.
//!
//! Measures whether a method's cost depends on the number of entities or on the number of changes.

use super::{Change, Random, Source, SourceError, Spawn, TickUpdate, WorldSpec};
use crate::trace::{ClassHeader, FieldHeader, Header};

/// A hundred thousand buildings and a hundred carts.
pub struct Idle {
    header: Header,
    random: Random,
    ticks: u64,
    tick: u64,
    idle: u64,
    moving: u64,
    /// Id, position and velocity of moving entities.
    carts: Vec<(u64, [i64; 2], [i64; 2])>,
}

impl Idle {
    /// 100,000 at rest and 100 moving by default.
    pub fn new(spec: WorldSpec) -> Self {
        let class = ClassHeader {
            name: "thing".into(),
            owner: None,
            position: vec!["x".into(), "y".into()],
            fields: vec![
                FieldHeader::int("x"),
                FieldHeader::int("y"),
                FieldHeader::symbol("kind", 16),
                FieldHeader::int("health"),
            ],
        };
        let header = Header {
            format: "trace/1".into(),
            name: "idle".into(),
            source: "synthetic".into(),
            tick_hz: Some(30.0),
            classes: vec![class],
        };
        Self {
            header,
            random: Random::new(spec.seed),
            ticks: spec.ticks.unwrap_or(100),
            tick: 0,
            idle: spec.count.unwrap_or(100_000),
            moving: spec.moving.unwrap_or(100),
            carts: Vec::new(),
        }
    }

    fn fill(&mut self, update: &mut TickUpdate) {
        let random = &mut self.random;
        let total = self.idle.saturating_add(self.moving);
        let mut id = 0;
        let mut left = self.moving;
        for index in 0..total {
            id += random.range(1, 10) as u64;
            let position = [random.range(0, 1 << 20), random.range(0, 1 << 20)];
            // As in reservoir sampling: the moving ones are spread evenly over all ids.
            if random.range(0, (total - index) as i64) < left as i64 {
                left -= 1;
                let velocity = [random.range(-300, 301), random.range(-300, 301)];
                self.carts.push((id, position, velocity));
            }
            let [x, y] = position;
            let row = vec![x, y, random.range(0, 16), random.range(100, 1000)];
            update.spawns.push(Spawn { id, class: 0, row });
        }
    }
}

impl Source for Idle {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_tick(&mut self) -> Result<Option<TickUpdate>, SourceError> {
        if self.tick == self.ticks {
            return Ok(None);
        }
        let mut update = TickUpdate::at(self.tick);
        if self.tick == 0 {
            self.fill(&mut update);
        } else {
            for (id, position, velocity) in &mut self.carts {
                if self.random.chance(20_000) {
                    *velocity = [self.random.range(-300, 301), self.random.range(-300, 301)];
                }
                let mut values = Vec::new();
                for axis in 0..2 {
                    position[axis] += velocity[axis];
                    if velocity[axis] != 0 {
                        values.push((axis as u16, position[axis]));
                    }
                }
                if !values.is_empty() {
                    update.changes.push(Change { id: *id, values });
                }
            }
        }
        self.tick += 1;
        Ok(Some(update))
    }
}
