//! Every field type is described, written and read consistently.

use prescient_schema::{FieldKind, Level, SchemaBuilder, Shape, State};
use proptest::prelude::*;

#[derive(State, Clone, Copy, Debug, PartialEq)]
enum Gear {
    Reverse = -1,
    Neutral = 0,
    Forward = 10,
}

#[derive(State, Clone, Copy, Debug, PartialEq)]
struct Wheel {
    #[state(step = 0.5)]
    turn: f32,
    touches: bool,
}

#[derive(State, Clone, Copy, Debug, PartialEq)]
struct Wrapped(u16, #[state(rename = "second")] i8);

#[derive(State, Clone, Copy, Debug, PartialEq)]
struct Everything {
    a: i8,
    b: i16,
    c: i32,
    d: i64,
    e: u8,
    f: u16,
    g: u32,
    h: u64,
    i: bool,
    j: f32,
    #[state(exact)]
    k: f64,
    gear: Gear,
    wheels: [Wheel; 2],
    spare: Option<Wheel>,
    grid: [[u8; 2]; 2],
    wrapped: Wrapped,
    maybe: Option<u64>,
    r#type: u8,
}

fn gear() -> impl Strategy<Value = Gear> {
    prop_oneof![
        Just(Gear::Reverse),
        Just(Gear::Neutral),
        Just(Gear::Forward)
    ]
}

fn wheel() -> impl Strategy<Value = Wheel> {
    // Multiples of a half, so that the step loses nothing.
    (-1000..1000i16, any::<bool>()).prop_map(|(turn, touches)| Wheel {
        turn: f32::from(turn) / 2.0,
        touches,
    })
}

prop_compose! {
    fn everything()(
        integers in any::<(i8, i16, i32, i64, u8, u16, u32, u64)>(),
        i in any::<bool>(),
        (j, k) in any::<(u32, u64)>(),
        gear in gear(),
        wheels in [wheel(), wheel()],
        spare in proptest::option::of(wheel()),
        grid in any::<[[u8; 2]; 2]>(),
        wrapped in any::<(u16, i8)>(),
        (maybe, r#type) in any::<(Option<u64>, u8)>(),
    ) -> Everything {
        let (a, b, c, d, e, f, g, h) = integers;
        Everything {
            a, b, c, d, e, f, g, h, i,
            j: f32::from_bits(j),
            k: f64::from_bits(k),
            gear, wheels, spare, grid,
            wrapped: Wrapped(wrapped.0, wrapped.1),
            maybe, r#type,
        }
    }
}

proptest! {
    #[test]
    fn a_state_survives_its_row(state in everything()) {
        let row = state.to_row("default");
        let class = Everything::class("default").unwrap();
        prop_assert_eq!(row.len(), class.fields.len());
        for (value, field) in row.iter().zip(&class.fields) {
            prop_assert!(field.kind.admits(*value), "{} = {}", field.name, value);
        }
        let back = Everything::from_row("default", &row).unwrap();
        // Bit for bit: a NaN is not equal to itself, its row is.
        prop_assert_eq!(back.j.to_bits(), state.j.to_bits());
        prop_assert_eq!(back.k.to_bits(), state.k.to_bits());
        prop_assert_eq!(back.to_row("default"), row);
        let plain = |state| Everything { j: 0.0, k: 0.0, ..state };
        prop_assert_eq!(plain(back), plain(state));
    }

    #[test]
    fn any_row_is_read_or_refused_but_never_panics(
        row in proptest::collection::vec(any::<i64>(), 0..40),
    ) {
        if let Ok(state) = Everything::from_row("default", &row) {
            let again = state.to_row("default");
            prop_assert_eq!(Everything::from_row("default", &again).unwrap().to_row("default"), again);
        }
    }
}

#[test]
fn names_say_where_a_column_comes_from() {
    let class = Everything::class("default").unwrap();
    let names: Vec<_> = class
        .fields
        .iter()
        .map(|field| field.name.as_str())
        .collect();
    assert_eq!(
        names[11..],
        [
            "gear",
            "wheels[0].turn",
            "wheels[0].touches",
            "wheels[1].turn",
            "wheels[1].touches",
            "spare.some",
            "spare.turn",
            "spare.touches",
            "grid[0][0]",
            "grid[0][1]",
            "grid[1][0]",
            "grid[1][1]",
            "wrapped.0",
            "wrapped.second",
            "maybe.some",
            "maybe",
            "type",
        ]
    );
    assert_eq!(class.name, "Everything");
    assert_eq!(
        class.fields[7].kind,
        FieldKind::Int {
            bits: 64,
            signed: false
        }
    );
    assert_eq!(
        class.fields[11].kind,
        FieldKind::variants(&["Reverse", "Neutral", "Forward"])
    );
    assert_eq!(class.fields[11].kind.shape(), Shape::Symbol { values: 3 });
}

#[test]
fn absent_values_are_zero() {
    #[derive(State)]
    struct Target {
        who: Option<Wheel>,
        tail: u8,
    }
    let none = Target { who: None, tail: 9 };
    assert_eq!(none.to_row("default"), [0, 0, 0, 9]);
    // The columns of an absent value are skipped.
    let read = Target::from_row("default", &[0, 77, 99, 9]).unwrap();
    assert!(read.who.is_none() && read.tail == 9);
}

#[test]
fn a_row_of_the_wrong_length_or_content_names_the_column() {
    #[derive(State, Debug)]
    struct Small {
        _a: u8,
        _gear: Gear,
    }
    let error = |row: &[i64]| Small::from_row("default", row).unwrap_err().to_string();
    assert_eq!(error(&[1]), "the row ends before column 1");
    assert_eq!(error(&[1, 1, 1]), "the row should end before column 2");
    assert_eq!(error(&[256, 1]), "column 0 cannot have the value 256");
    assert_eq!(error(&[-1, 1]), "column 0 cannot have the value -1");
    assert_eq!(error(&[1, 3]), "column 1 cannot have the value 3");
}

#[test]
fn narrower_integers_saturate() {
    #[derive(State)]
    struct Narrow {
        #[state(bits = 4)]
        a: i32,
        #[state(bits = 4)]
        b: u64,
        #[state(bits = 10, step = 1)]
        c: f64,
    }
    let row = |a, b, c| Narrow { a, b, c }.to_row("default");
    assert_eq!(row(100, 100, 1e9), [7, 15, 511]);
    assert_eq!(row(-100, 0, -1e9), [-8, 0, -512]);
    assert_eq!(row(-3, 3, 3.0), [-3, 3, 3]);
}

#[test]
fn precision_is_given_up_only_where_it_was_offered() {
    #[derive(State)]
    struct Offers {
        #[state(step = 0.01)]
        _never: f32,
        #[state(step = 0.01, priority = 2)]
        _stepped: f32,
        #[state(step = 0.01, levels(0, 2, 4, 6))]
        _declared: f32,
        #[state(priority = 3)]
        _integer: i32,
        #[state(priority = 3, levels(0, 0, 1, 8))]
        _coarse: u8,
        #[state(priority = 3)]
        _exact: f32,
    }
    #[derive(State)]
    struct Outer {
        #[state(priority = 0)]
        _inner: Offers,
    }
    // Rounding away all eight bits is refused.
    let error = Offers::class("default").unwrap_err();
    assert_eq!(
        error.to_string(),
        "class `Offers`, field `_coarse`: levels [0, 0, 1, 8] must start at 0, not decrease, and \
         stay below the width"
    );
    let class = Outer::class("default").unwrap();
    let worst = Level::new(3).unwrap();
    assert!(
        class
            .fields
            .iter()
            .all(|field| field.at_level(worst, 123) == 123)
    );
}

#[test]
fn default_levels_double_the_step() {
    #[derive(State)]
    struct Stepped {
        #[state(step = 0.01, priority = 2)]
        _stepped: [f32; 2],
        #[state(step = 0.01, levels(0, 2, 4, 6))]
        _declared: f32,
    }
    let schema = SchemaBuilder::new().state::<Stepped>().build().unwrap();
    let fields = &schema.classes[0].fields;
    assert_eq!(fields[1].coarser, [0, 1, 2, 3]);
    assert_eq!(fields[1].priority.get(), 2);
    assert_eq!(fields[2].coarser, [0, 2, 4, 6]);
    assert_eq!(fields[2].priority.get(), 1);
}
