//! A battle, and whether clients see it as it was.

use std::collections::BTreeMap;

use prescient_replication::{PeerId, Tick};
use prescient_schema::Ref;

use super::{Seat, Theatre, Unit};

/// A battle in which units come, go, walk and refer to each other.
pub struct Battle {
    pub units: Vec<(Ref<Unit>, Unit)>,
    /// What was true at each tick, by the server's reference.
    pub past: BTreeMap<Tick, BTreeMap<i64, Unit>>,
}

impl Battle {
    pub fn new() -> Self {
        Self {
            units: Vec::new(),
            past: BTreeMap::new(),
        }
    }

    pub fn step(&mut self, theatre: &mut Theatre) {
        theatre.tick += 1;
        let dice = &mut theatre.dice;
        let mut step = theatre.server.step(Tick(theatre.tick)).expect("in order");
        if self.units.len() < 30 && dice.chance(40) {
            let place = [dice.below(200) as f32, dice.below(200) as f32];
            let unit = Unit {
                place,
                health: dice.below(250) as u8,
                ..Unit::default()
            };
            let owner = PeerId(1 + dice.below(3));
            let spawned = step.spawn_for(owner, &unit).expect("sound values");
            self.units.push((spawned, unit));
        }
        if self.units.len() > 5 && dice.chance(10) {
            let at = dice.below(self.units.len() as u64) as usize;
            let (gone, _) = self.units.swap_remove(at);
            for (_, unit) in &mut self.units {
                if unit.target == gone {
                    unit.target = Ref::NONE;
                }
            }
            step.despawn(gone.entity()).expect("it was there");
        }
        for at in 0..self.units.len() {
            let other = self.units[dice.below(self.units.len() as u64) as usize].0;
            let (object, unit) = &mut self.units[at];
            if dice.chance(60) {
                unit.place[0] += dice.below(5) as f32 - 2.0;
                unit.place[1] += 0.25;
            }
            if dice.chance(5) {
                unit.target = other;
                unit.gold = unit.gold.wrapping_add(dice.below(500) as u16);
            }
            step.set(*object, unit).expect("sound values");
        }
        step.finish();
        let now = self.units.iter();
        let now = now.map(|(object, unit)| (object.entity().cell(), unit.clone()));
        self.past.insert(Tick(theatre.tick), now.collect());
    }

    /// What every client shows is what was true at the tick that it shows, references included.
    pub fn check(&self, theatre: &Theatre) {
        for seat in &theatre.seats {
            if let Some((shown, was)) = self.compare(seat) {
                assert_eq!(shown, was, "at {:?}", seat.client.tick());
            }
        }
    }

    /// Whether a client shows all of what was true at the tick that it shows.
    pub fn agrees(&self, seat: &Seat) -> bool {
        let compared = self.compare(seat);
        compared.is_some_and(|(shown, was)| shown == was)
    }

    fn compare(&self, seat: &Seat) -> Option<(Vec<Pair>, Vec<Pair>)> {
        let there = &self.past[&seat.client.tick()?];
        let was = there.values().map(|unit| {
            let target = there.get(&unit.target.entity().cell());
            (looks(unit), target.map(looks))
        });
        let shown = seat.objects.values().map(|unit| {
            let target = seat.client.resolve(unit.target.entity());
            let target = target.map(|object| looks(&seat.objects[&object]));
            (looks(unit), target)
        });
        Some((sorted(shown), sorted(was)))
    }
}

type Looks = ([u32; 2], u8);
/// A unit and its target.
type Pair = (Looks, Option<Looks>);

fn looks(unit: &Unit) -> Looks {
    (unit.place.map(f32::to_bits), unit.health)
}

fn sorted<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort();
    all
}
