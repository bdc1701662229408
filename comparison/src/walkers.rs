//! A walker as components with the narrowest integers.

use bevy::prelude::*;
use bevy_replicon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::replicon::{Shape, update};

#[derive(Component, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Position(i32, i32);

#[derive(Component, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Name(u32);

#[derive(Component, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Steps(u16);

pub struct Walker;

impl Shape for Walker {
    fn register(app: &mut App) {
        app.replicate::<Position>()
            .replicate::<Name>()
            .replicate::<Steps>();
    }

    fn spawn(world: &mut World, row: &[i64]) -> Entity {
        let (position, name, steps) = components(row);
        world.spawn((Replicated, position, name, steps)).id()
    }

    fn write(mut entity: EntityWorldMut, row: &[i64]) {
        let (position, _, steps) = components(row);
        update(&mut entity, position);
        update(&mut entity, steps);
    }

    fn rows(world: &mut World) -> Vec<Vec<i64>> {
        let mut query = world.query::<(&Position, &Name, &Steps)>();
        let entities = query.iter(world);
        let row = |(position, name, steps): (&Position, &Name, &Steps)| {
            let [x, y] = [position.0, position.1].map(i64::from);
            vec![x, y, i64::from(name.0), i64::from(steps.0)]
        };
        entities.map(row).collect()
    }
}

fn components(row: &[i64]) -> (Position, Name, Steps) {
    (
        Position(row[0] as i32, row[1] as i32),
        Name(row[2] as u32),
        Steps(row[3] as u16),
    )
}
