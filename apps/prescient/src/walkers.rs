//! A world whose state at every tick is computable from entity and tick, so that clients can verify
//! every value they receive.

use prescient::{Client, EntityHandle, Ref, Schema, State, WorldError, WorldStep};

/// An entity that walks to and fro, or stands still.
#[derive(State, Clone, Debug, PartialEq)]
pub(crate) struct Walker {
    /// Position.
    #[state(step = 0.01, position)]
    pub position: [f32; 2],
    /// Index of the walker in the world.
    #[state(only_on_spawn)]
    pub number: u32,
    /// Grows by one every `beat` ticks, if it walks.
    pub steps: u16,
}

/// The schema of both ends.
pub(crate) fn schema() -> Schema {
    Schema::of::<Walker>().expect("the schema is sound")
}

/// State of a walker at a tick, in a world of `all` walkers.
pub(crate) fn walker(number: u32, tick: u64, all: u32) -> Walker {
    let [x, y] = home(number, all);
    let stands = number.is_multiple_of(3);
    // Each walker has its own speed and beat, and turns around after a beat.
    let (speed, beat) = (3 + number % 29, 40 + number % 61);
    let round = (tick.wrapping_add(u64::from(number * 7)) % u64::from(2 * beat)) as u32;
    let walked = if stands {
        0
    } else {
        speed * round.min(2 * beat - round)
    };
    let across = number.is_multiple_of(2);
    let cents = |at: u32, walks: bool| at * 100 + if walks { walked } else { 0 };
    Walker {
        position: [cents(x, across), cents(y, !across)].map(|cents| cents as f32 / 100.0),
        number,
        steps: if stands {
            0
        } else {
            (tick / u64::from(beat)) as u16
        },
    }
}

/// Moves all walkers to their positions of a tick, and spawns the missing ones.
pub(crate) fn walk(
    walkers: &mut Vec<Ref<Walker>>,
    mut step: WorldStep<'_>,
    tick: u64,
    all: u32,
) -> Result<(), WorldError> {
    for number in 0..all {
        let value = walker(number, tick, all);
        match walkers.get(number as usize) {
            Some(&entity) => step.set(entity, &value)?,
            None => walkers.push(step.spawn(&value)?),
        }
    }
    Ok(())
}

/// Whether a client's state of a walker equals the server's at the tick it is shown as of; `None`
/// if the client does not have it.
pub(crate) fn is_true(client: &Client, entity: EntityHandle, all: u32) -> Option<bool> {
    let shown: Walker = client.get(entity)?;
    let tick = client.tick_of(entity)?;
    Some(walker(shown.number, tick.0, all) == shown)
}

/// Where a walker starts: on a square grid with a walker every [`SPACING`] units.
pub(crate) fn home(number: u32, all: u32) -> [u32; 2] {
    let side = (f64::from(all).sqrt().ceil() as u32).max(1);
    [number % side * SPACING, number / side * SPACING]
}

/// The radius within which about `visible` walkers are.
pub(crate) fn reach(visible: u32) -> f64 {
    f64::from(SPACING) * (f64::from(visible) / std::f64::consts::PI).sqrt()
}

const SPACING: u32 = 10;
