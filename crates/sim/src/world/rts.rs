//! A small strategy game: five hundred units, a third of them walking, a few fighting.
//!
//! Rows are like those of such games: a few numbers among many states and flags that rarely change,
//! 35 bytes at natural width.

use super::{Random, Source, SourceError, Spawn, TickUpdate, WorldSpec, source::Rows};
use crate::trace::{ClassHeader, FieldHeader, Header};

/// Units that walk to targets, stand and fight.
pub struct Rts {
    header: Header,
    random: Random,
    ticks: u64,
    tick: u64,
    count: usize,
    next_id: u64,
    units: Vec<Unit>,
    rows: Rows,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Stand,
    Walk { velocity: [i64; 2], stride: i64 },
    Fight { target: u64, swing: i64 },
}

#[derive(Clone, Debug)]
struct Unit {
    id: u64,
    owner: i64,
    kind: i64,
    position: [i64; 2],
    /// In 1/65536 of a turn.
    heading: i64,
    health: i64,
    task: Task,
    flags: [i64; 6],
}

/// Side of the map in units of 1/256 tile.
const MAP: i64 = 256 << 8;
/// Distance that a unit walks per tick, by kind; 1/256 tile.
const SPEED: [i64; 4] = [18, 24, 31, 40];
const FULL_HEALTH: i64 = 400;

impl Rts {
    /// Five hundred units for a minute by default.
    pub fn new(spec: WorldSpec) -> Self {
        let mut fields = vec![
            FieldHeader::symbol("owner", 4),
            FieldHeader::symbol("kind", 4),
            FieldHeader::int("x"),
            FieldHeader::int("y"),
            FieldHeader::int("heading"),
            FieldHeader::int("health"),
            FieldHeader::int("target"),
            FieldHeader::symbol("order", 8),
            FieldHeader::symbol("animation", 16),
        ];
        let flags = [
            "moving", "fighting", "hurt", "weak", "selected", "stealth", "buffed",
        ];
        let more = ["slowed", "burning", "holding", "patrol"];
        fields.extend(
            flags
                .iter()
                .chain(&more)
                .map(|name| FieldHeader::boolean(name)),
        );
        let class = ClassHeader {
            name: "unit".into(),
            owner: Some("owner".into()),
            position: vec!["x".into(), "y".into()],
            fields,
        };
        let header = Header {
            format: "trace/1".into(),
            name: "rts".into(),
            source: "synthetic".into(),
            tick_hz: Some(24.0),
            classes: vec![class],
        };
        Self {
            header,
            random: Random::new(spec.seed),
            ticks: spec.ticks.unwrap_or(1440),
            tick: 0,
            count: spec.count.unwrap_or(500) as usize,
            next_id: 1,
            units: Vec::new(),
            rows: Rows::default(),
        }
    }

    fn recruit(&mut self) -> Unit {
        let random = &mut self.random;
        let mut unit = Unit {
            id: self.next_id,
            owner: random.range(0, 4),
            kind: random.range(0, 4),
            position: [random.range(0, MAP), random.range(0, MAP)],
            heading: random.range(0, 65536),
            health: FULL_HEALTH,
            task: Task::Stand,
            flags: [0; 6],
        };
        self.next_id += 1;
        unit.decide(random, self.next_id);
        unit
    }
}

impl Unit {
    /// Chooses a new task such that on average 30 % of all units walk and 5 % fight.
    fn decide(&mut self, random: &mut Random, newest_id: u64) {
        // A walk lasts about 180 ticks, a fight 120, standing 100: hence these probabilities.
        self.task = match random.range(0, 1000) {
            0..=195 => {
                self.aim(random);
                self.task
            }
            196..=245 => {
                let target = random.range(1, newest_id as i64 + 1) as u64;
                Task::Fight {
                    target,
                    swing: random.range(0, 24),
                }
            }
            _ => Task::Stand,
        };
        let flag = random.range(0, 6) as usize;
        if random.chance(200_000) {
            self.flags[flag] ^= 1;
        }
    }

    /// Starts to walk to a random target at the speed of its kind.
    fn aim(&mut self, random: &mut Random) {
        let way = self.position.map(|here| random.range(0, MAP) - here);
        let length = (way[0] * way[0] + way[1] * way[1]).isqrt().max(1);
        let speed = SPEED[self.kind as usize];
        self.heading = turn(way);
        self.task = Task::Walk {
            velocity: way.map(|way| way * speed / length),
            stride: 0,
        };
    }

    fn step(&mut self, random: &mut Random, newest_id: u64) {
        match &mut self.task {
            Task::Stand => {
                if random.chance(10_000) {
                    self.decide(random, newest_id);
                }
            }
            Task::Walk { velocity, stride } => {
                *stride = (*stride + 1) % 8;
                let velocity = *velocity;
                for (here, velocity) in self.position.iter_mut().zip(velocity) {
                    *here += velocity;
                }
                let outside = self.position.iter().any(|here| !(0..MAP).contains(here));
                if random.chance(5_500) {
                    self.decide(random, newest_id);
                } else if outside || random.chance(20_000) {
                    self.aim(random);
                }
            }
            Task::Fight { swing, .. } => {
                *swing = (*swing + 1) % 24;
                if *swing == 0 {
                    self.health -= random.range(3, 20);
                }
                if random.chance(8_000) {
                    self.decide(random, newest_id);
                }
            }
        }
    }

    fn row(&self) -> Vec<i64> {
        let (target, order, animation) = match self.task {
            Task::Stand => (0, 0, 0),
            Task::Walk { stride, .. } => (0, 1, 1 + stride),
            Task::Fight { target, swing } => (target as i64, 2, 9 + swing / 4),
        };
        let [x, y] = self.position;
        let mut row = vec![
            self.owner,
            self.kind,
            x,
            y,
            self.heading,
            self.health,
            target,
        ];
        row.extend([
            order,
            animation,
            i64::from(order == 1),
            i64::from(order == 2),
        ]);
        let hurt = i64::from(self.health < FULL_HEALTH);
        row.extend([
            hurt,
            i64::from(self.health < FULL_HEALTH / 4),
            self.flags[0],
        ]);
        row.extend(&self.flags[1..]);
        row.push(i64::from(self.flags[0] == 1 && order == 1));
        row
    }
}

/// Direction of a vector in 1/65536 of a turn, by the diamond angle: exact in integers.
fn turn(way: [i64; 2]) -> i64 {
    let [x, y] = way;
    let sum = x.abs() + y.abs();
    if sum == 0 {
        return 0;
    }
    let quarter = 16384;
    let along = match (x >= 0, y >= 0) {
        (true, true) => y * quarter / sum,
        (false, true) => quarter + -x * quarter / sum,
        (false, false) => 2 * quarter + -y * quarter / sum,
        (true, false) => 3 * quarter + x * quarter / sum,
    };
    along % 65536
}

impl Source for Rts {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_tick(&mut self) -> Result<Option<TickUpdate>, SourceError> {
        if self.tick == self.ticks {
            return Ok(None);
        }
        let mut update = TickUpdate::at(self.tick);
        let mut units = std::mem::take(&mut self.units);
        for unit in &mut units {
            unit.step(&mut self.random, self.next_id);
        }
        units.retain(|unit| {
            let lives = unit.health > 0;
            if lives {
                self.rows.change(unit.id, unit.row(), &mut update);
            } else {
                update.despawns.push(unit.id);
                self.rows.remove(unit.id);
            }
            lives
        });
        while units.len() < self.count {
            let mut unit = self.recruit();
            if self.tick == 0 {
                unit.health = self.random.range(FULL_HEALTH / 2, FULL_HEALTH + 1);
            }
            let spawn = Spawn {
                id: unit.id,
                class: 0,
                row: unit.row(),
            };
            self.rows.spawn(spawn, &mut update);
            units.push(unit);
        }
        self.units = units;
        self.tick += 1;
        Ok(Some(update))
    }
}
