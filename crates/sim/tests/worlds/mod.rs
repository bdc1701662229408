//! Small random worlds with everything that can happen: classes with every kind of field, spawns,
//! despawns, changes of owner, and the extreme values of integers.
#![allow(unreachable_pub, reason = "a module of a program of its own")]

use prescient_sim::{
    trace::{ClassHeader, FieldHeader, FieldType, Header},
    world::{Change, Random, Source, SourceError, Spawn, TickUpdate},
};

/// How the numbers change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// By small steps.
    Ordinary,
    /// They jump between the ends of their range.
    Extreme,
}

/// A random world of three classes.
pub struct RandomWorld {
    header: Header,
    random: Random,
    shape: Shape,
    ticks: u64,
    tick: u64,
    next_id: u64,
    alive: Vec<(u64, u16, Vec<i64>)>,
}

impl RandomWorld {
    /// A world from a seed.
    pub fn new(seed: u64, shape: Shape, ticks: u64) -> Self {
        let class = |name: &str, owner: Option<&str>, fields: Vec<FieldHeader>| ClassHeader {
            name: name.into(),
            owner: owner.map(String::from),
            position: Vec::new(),
            fields,
        };
        let unit = vec![
            FieldHeader::symbol("owner", 3),
            FieldHeader::int("x"),
            FieldHeader::int("y"),
            FieldHeader::symbol("order", 300),
            FieldHeader::boolean("busy"),
        ];
        let big = vec![
            FieldHeader::symbol("colour", 100_000),
            FieldHeader::int("size"),
        ];
        let header = Header {
            format: "trace/1".into(),
            name: "random".into(),
            source: "synthetic".into(),
            tick_hz: Some(30.0),
            classes: vec![
                class("unit", Some("owner"), unit),
                class("marker", None, Vec::new()),
                class("big", None, big),
            ],
        };
        let random = Random::new(seed);
        Self {
            header,
            random,
            shape,
            ticks,
            tick: 0,
            next_id: 0,
            alive: Vec::new(),
        }
    }

    fn value(&mut self, class: u16, field: usize, old: i64) -> i64 {
        let kind = &self.header.classes[usize::from(class)].fields[field];
        let random = &mut self.random;
        match kind.kind {
            FieldType::Bool => random.range(0, 2),
            FieldType::Enum => random.range(0, i64::from(kind.values.unwrap_or(1))),
            FieldType::Int if self.shape == Shape::Ordinary => old + random.range(-5, 20),
            FieldType::Int => {
                let edges = [
                    i64::MIN,
                    i64::MAX,
                    0,
                    -1,
                    1 << 31,
                    (1 << 31) - 1,
                    -(1 << 31) - 1,
                ];
                edges[random.range(0, edges.len() as i64) as usize]
                    .wrapping_add(random.range(-1, 2))
            }
        }
    }
}

impl Source for RandomWorld {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_tick(&mut self) -> Result<Option<TickUpdate>, SourceError> {
        if self.tick == self.ticks {
            return Ok(None);
        }
        let mut update = TickUpdate::at(self.tick);
        let mut alive = std::mem::take(&mut self.alive);
        alive.retain(|&(id, ..)| {
            let leaves = self.random.chance(30_000);
            if leaves {
                update.despawns.push(id);
            }
            !leaves
        });
        for (id, class, row) in &mut alive {
            let mut values = Vec::new();
            for (field, known) in row.iter_mut().enumerate() {
                if self.random.chance(300_000) {
                    let value = self.value(*class, field, *known);
                    if value != *known {
                        *known = value;
                        values.push((field as u16, value));
                    }
                }
            }
            if !values.is_empty() {
                update.changes.push(Change { id: *id, values });
            }
        }
        for _ in 0..self.random.range(0, 4) {
            self.next_id += {
                let reach = 1 << self.random.range(1, 20);
                self.random.range(1, reach) as u64
            };
            let class = self.random.range(0, 3) as u16;
            let fields = self.header.classes[usize::from(class)].fields.len();
            let row: Vec<i64> = (0..fields)
                .map(|field| self.value(class, field, 1000))
                .collect();
            update.spawns.push(Spawn {
                id: self.next_id,
                class,
                row: row.clone(),
            });
            alive.push((self.next_id, class, row));
        }
        self.alive = alive;
        self.tick += 1;
        Ok(Some(update))
    }
}
