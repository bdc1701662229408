//! `glam` vectors and quaternions as fields.
#![cfg(feature = "glam")]

use glam::{DQuat, IVec2, Quat, Vec3};
use prescient_schema::{Derivative, FieldKind, Shape, State};
use proptest::prelude::*;

#[derive(State, Clone, Copy, Debug, PartialEq)]
#[state(tick_hz = 60)]
struct Cube {
    #[state(step = 0.001, position, priority = 1)]
    position: Vec3,
    #[state(step = 0.001, priority = 1)]
    turn: Quat,
    #[state(step = 0.001, velocity_of = "position")]
    velocity: Vec3,
    cell: IVec2,
    exact: DQuat,
}

fn cube(turn: Quat) -> Cube {
    Cube {
        position: Vec3::new(1.0, -2.0, 0.5),
        turn,
        velocity: Vec3::Y,
        cell: IVec2::new(-7, 7),
        exact: DQuat::from_xyzw(0.1, 0.2, 0.3, 0.4),
    }
}

#[test]
fn vectors_and_rotations_are_named_by_component() {
    let class = Cube::class("default").unwrap();
    let names: Vec<_> = class
        .fields
        .iter()
        .map(|field| field.name.as_str())
        .collect();
    assert_eq!(
        names[..8],
        [
            "position.x",
            "position.y",
            "position.z",
            "turn.largest",
            "turn.a",
            "turn.b",
            "turn.c",
            "velocity.x"
        ]
    );
    assert_eq!(class.fields[3].kind, FieldKind::Enum { values: 4 });
    assert_eq!(class.fields[3].kind.shape(), Shape::Symbol { values: 4 });
    assert_eq!(class.fields[3].coarser, [0; 4]);
    assert_eq!(class.fields[12].kind, FieldKind::F64);
    assert_eq!(class.position, [0, 1, 2]);
    let rate = Derivative {
        of: 1,
        numerator: 1,
        denominator: 60,
    };
    assert_eq!(class.fields[8].derivative_of, Some(rate));
}

#[test]
fn what_is_no_rotation_is_the_identity() {
    for broken in [
        Quat::from_xyzw(0.0, 0.0, 0.0, 0.0),
        Quat::from_xyzw(f32::NAN, 0.0, 0.0, 1.0),
        Quat::from_xyzw(0.0, 0.0, f32::INFINITY, 1.0),
    ] {
        let row = cube(broken).to_row("default");
        assert_eq!(row[3..7], [3, 0, 0, 0]);
        assert_eq!(
            Cube::from_row("default", &row).unwrap().turn,
            Quat::IDENTITY
        );
    }
}

proptest! {
    #[test]
    fn a_rotation_and_its_negative_are_one_and_come_back(parts in [-1.0..1.0f32, -1.0..1.0f32, -1.0..1.0f32, -1.0..1.0f32]) {
        let turn = Quat::from_array(parts);
        prop_assume!(turn.length() > 0.01);
        let row = cube(turn).to_row("default");
        prop_assert_eq!(&cube(-turn).to_row("default"), &row);
        // Half a step in each of three components, and the resulting error of the fourth.
        let back = Cube::from_row("default", &row).unwrap();
        let expected = turn.normalize();
        let expected = if expected.dot(back.turn) < 0.0 { -expected } else { expected };
        prop_assert!((back.turn - expected).length() < 0.002, "{} {}", back.turn, expected);
        prop_assert!((back.turn.length() - 1.0).abs() < 1e-5);
        prop_assert_eq!(back.cell, IVec2::new(-7, 7));
        prop_assert_eq!(back.exact, cube(turn).exact);
        prop_assert!(row[4..7].iter().all(|part| part.abs() <= 708));
    }
}
