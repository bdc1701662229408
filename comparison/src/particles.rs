//! A particle as components with the narrowest integers.

use bevy::prelude::*;
use bevy_replicon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::replicon::{Shape, update};

#[derive(Component, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Position(i32, i32);

#[derive(Component, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Colour(u8, u8, u8);

pub struct Particle;

impl Shape for Particle {
    fn register(app: &mut App) {
        app.replicate::<Position>().replicate::<Colour>();
    }

    fn spawn(world: &mut World, row: &[i64]) -> Entity {
        let (position, colour) = components(row);
        world.spawn((Replicated, position, colour)).id()
    }

    fn write(mut entity: EntityWorldMut, row: &[i64]) {
        let (position, colour) = components(row);
        update(&mut entity, position);
        update(&mut entity, colour);
    }

    fn rows(world: &mut World) -> Vec<Vec<i64>> {
        let mut query = world.query::<(&Position, &Colour)>();
        let entities = query.iter(world);
        let row = |(position, colour): (&Position, &Colour)| {
            let Colour(red, green, blue) = *colour;
            let mut row = vec![i64::from(position.0), i64::from(position.1)];
            row.extend([red, green, blue].map(i64::from));
            row
        };
        entities.map(row).collect()
    }
}

fn components(row: &[i64]) -> (Position, Colour) {
    (
        Position(row[0] as i32, row[1] as i32),
        Colour(row[2] as u8, row[3] as u8, row[4] as u8),
    )
}
