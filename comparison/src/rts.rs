//! A unit as components, grouped by what changes together; the eleven flags share sixteen bits.

use bevy::prelude::*;
use bevy_replicon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::replicon::{Shape, update};

#[derive(Component, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct UnitKind(u8, u8);

#[derive(Component, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Position(i32, i32);

#[derive(Component, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Heading(u16);

#[derive(Component, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Health(i16);

#[derive(Component, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Target(u32);

#[derive(Component, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Order(u8);

#[derive(Component, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Animation(u8);

#[derive(Component, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Flags(u16);

type Parts = (
    UnitKind,
    Position,
    Heading,
    Health,
    Target,
    Order,
    Animation,
    Flags,
);

pub struct Unit;

impl Shape for Unit {
    fn register(app: &mut App) {
        app.replicate::<UnitKind>()
            .replicate::<Position>()
            .replicate::<Heading>()
            .replicate::<Health>()
            .replicate::<Target>()
            .replicate::<Order>()
            .replicate::<Animation>()
            .replicate::<Flags>();
    }

    fn spawn(world: &mut World, row: &[i64]) -> Entity {
        world.spawn((Replicated, components(row))).id()
    }

    fn write(mut entity: EntityWorldMut, row: &[i64]) {
        let (kind, position, heading, health, target, order, animation, flags) = components(row);
        update(&mut entity, kind);
        update(&mut entity, position);
        update(&mut entity, heading);
        update(&mut entity, health);
        update(&mut entity, target);
        update(&mut entity, order);
        update(&mut entity, animation);
        update(&mut entity, flags);
    }

    fn rows(world: &mut World) -> Vec<Vec<i64>> {
        let mut query = world.query::<(
            (&UnitKind, &Position, &Heading, &Health),
            (&Target, &Order, &Animation, &Flags),
        )>();
        let mut rows = Vec::new();
        for ((kind, position, heading, health), (target, order, animation, flags)) in
            query.iter(world)
        {
            let mut row = vec![i64::from(kind.0), i64::from(kind.1)];
            row.extend([position.0, position.1].map(i64::from));
            row.extend([i64::from(heading.0), i64::from(health.0)]);
            row.push(i64::from(target.0));
            row.extend([order.0, animation.0].map(i64::from));
            row.extend((0..FLAGS).map(|bit| i64::from(flags.0 >> bit & 1)));
            rows.push(row);
        }
        rows
    }
}

fn components(row: &[i64]) -> Parts {
    let flags = &row[9..][..FLAGS];
    let flags = flags.iter().rev().fold(0, |bits, &flag| bits << 1 | flag);
    (
        UnitKind(row[0] as u8, row[1] as u8),
        Position(row[2] as i32, row[3] as i32),
        Heading(row[4] as u16),
        Health(row[5] as i16),
        Target(row[6] as u32),
        Order(row[7] as u8),
        Animation(row[8] as u8),
        Flags(flags as u16),
    )
}

const FLAGS: usize = 11;
