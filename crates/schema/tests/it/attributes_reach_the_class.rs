//! Attributes of a type appear in its class.

use prescient_schema::{
    ClassBuilder, Derivative, Fault, Field, FieldKind, Priority, Rate, SchemaBuilder, State, Step,
};

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Body {
    #[state(step = 0.01)]
    position: [f32; 2],
    #[state(step = 0.5, velocity_of = "position", per_tick)]
    drift: [f32; 2],
}

#[derive(State, Clone, Debug, PartialEq)]
#[state(
    rename = "tank",
    tick_hz = 30,
    priority = 2,
    tables(public, private),
    predict_with = Tank::roll,
    position = "body.position",
    group = "squad"
)]
struct Tank {
    #[state(step = 0.01)]
    x: f32,
    #[state(step = 0.02, velocity_of = "x", per_second, priority = 1)]
    speed: f64,
    #[state(velocity_of = "x")]
    gears: i8,
    body: Body,
    #[state(owner, only_on_spawn)]
    player: u8,
    squad: u16,
    #[state(tables(private), optional)]
    ammunition: u16,
    #[state(tables(private), velocity_of = "ammunition", per_tick)]
    firing: i8,
    #[state(skip)]
    cache: Option<String>,
}

impl Tank {
    fn roll(&self, ticks: u32) -> Self {
        Self {
            gears: self.gears + ticks as i8,
            ..self.clone()
        }
    }
}

fn tank() -> Tank {
    Tank {
        x: 1.0,
        speed: 0.5,
        gears: 3,
        body: Body {
            position: [1.0, 2.0],
            drift: [3.0, 4.0],
        },
        player: 1,
        squad: 9,
        ammunition: 50,
        firing: -1,
        cache: Some("not sent".into()),
    }
}

/// Fails if a field that names no tables is in another than the first, or one that names some is in
/// the first.
#[test]
fn each_table_is_a_class_of_its_own() {
    let schema = SchemaBuilder::new().state::<Tank>().build().unwrap();
    let [public, private] = schema.classes.as_slice() else {
        panic!("two tables")
    };
    assert_eq!((public.name.as_str(), public.fields.len()), ("tank", 9));
    assert_eq!(
        (private.name.as_str(), private.fields.len()),
        ("tank.private", 2)
    );
    assert_eq!(tank().to_row("public").len(), 9);
    let seen = Tank::from_row("public", &tank().to_row("public")).unwrap();
    let hidden = Tank {
        ammunition: 0,
        firing: 0,
        cache: None,
        ..tank()
    };
    assert_eq!(seen, hidden);
    let known = Tank::from_row("private", &tank().to_row("private")).unwrap();
    assert_eq!((known.ammunition, known.firing), (50, -1));
    assert_eq!((known.x, known.body), (0.0, Body::default()));
    let error = Tank::class("secret").unwrap_err();
    assert_eq!(error.fault, Fault::NoSuchTable("secret".into()));
}

#[test]
fn velocities_are_exact_ratios() {
    let classes = ["public", "private"].map(|table| Tank::class(table).unwrap());
    let rate = |name: &str| {
        let mut fields = classes.iter().flat_map(|class| &class.fields);
        let field = fields.find(|field| field.name == name).unwrap();
        field.derivative_of
    };
    let ratio = |of, numerator, denominator| {
        Some(Derivative {
            of,
            numerator,
            denominator,
        })
    };
    // 0.02 units a second is 2 steps of 0.01 in 30 ticks.
    assert_eq!(rate("speed"), ratio(0, 1, 15));
    assert_eq!(rate("gears"), ratio(0, 10, 3));
    assert_eq!(rate("body.drift[1]"), ratio(4, 50, 1));
    assert_eq!(rate("firing"), ratio(0, 1, 1));
    assert_eq!(rate("x"), None);
}

#[test]
fn roles_are_indices() {
    let class = Tank::class("public").unwrap();
    assert_eq!(class.owner, Some(7));
    assert_eq!(class.group, Some(8));
    assert_eq!(class.position, [3, 4]);
    assert_eq!(class.priority.get(), 2);
    assert!(class.fields[7].only_on_spawn && !class.fields[8].only_on_spawn);
    assert_eq!(class.fields[1].priority.get(), 1);
    assert_eq!(class.fields[1].coarser, [0, 1, 2, 3]);
}

/// The macro cannot see the fields of a nested type, so a schema finds a role that names none.
///
/// Fails if the derive macro declares a role only where `class.has(name)`: the entity would have no
/// position, and be visible at any distance.
#[test]
fn a_role_of_no_field_is_an_error() {
    #[derive(State)]
    #[state(position = "body.typo")]
    struct Typo {
        _body: u8,
        body: Body,
    }
    let error = Typo::class("default").unwrap_err();
    assert_eq!(error.fault, Fault::NoSuchField("body.typo".into()));
    assert!(SchemaBuilder::new().state::<Typo>().build().is_err());
}

/// Fails if a role is declared in every table: this table lacks its field.
#[test]
fn a_role_belongs_to_the_tables_that_have_its_field() {
    #[derive(State, Default)]
    #[state(tables(open, closed))]
    struct Crate {
        #[state(tables(closed))]
        lid: u8,
        weight: u16,
    }
    #[derive(State)]
    #[state(tables(open, closed), owner = "inside.lid")]
    struct Shelf {
        #[state(tables(open, closed))]
        inside: Crate,
    }
    assert_eq!(Shelf::class("open").unwrap().owner, None);
    assert_eq!(Shelf::class("closed").unwrap().owner, Some(0));
}

#[test]
fn a_contract_moves_rows_forward() {
    for table in Tank::TABLES {
        let contract = Tank::class(table).unwrap().contract.unwrap();
        assert_eq!(contract.name, "Tank::roll");
        let row = tank().to_row(table);
        let mut out = vec![0; row.len()];
        (contract.fast_forward)(&row, 4, &mut out);
        assert_eq!(out, tank().roll(4).to_row(table));
        // An invalid row is not changed.
        let mut broken = row.clone();
        let small = if *table == "public" { 2 } else { 1 };
        broken[small] = 1000;
        (contract.fast_forward)(&broken, 4, &mut out);
        assert_eq!(out, broken);
    }
}

#[test]
fn a_schema_built_at_run_time_is_the_same_thing() {
    #[derive(State)]
    #[state(rename = "car", tick_hz = 60)]
    struct Car {
        #[state(step = 0.01, priority = 1, position)]
        _x: f32,
        #[state(rename = "speed", step = 0.1, velocity_of = "_x")]
        _v: f64,
        #[state(owner, only_on_spawn)]
        _team: u8,
    }
    let derived = SchemaBuilder::new().state::<Car>().build().unwrap();

    let stepped = |name: &str, step: f64, bits| {
        let step = Step::from_f64(step).unwrap();
        Field::new(name, FieldKind::Step { step, bits })
    };
    let mut class = ClassBuilder::new("car");
    class
        .field(Field {
            priority: Priority::new(1).unwrap(),
            coarser: [0, 1, 2, 3],
            ..stepped("_x", 0.01, 32)
        })
        .field(stepped("speed", 0.1, 64))
        .field(Field {
            only_on_spawn: true,
            ..Field::new(
                "_team",
                FieldKind::Int {
                    bits: 8,
                    signed: false,
                },
            )
        })
        .rate(
            "speed",
            "_x",
            Rate::PerSecond {
                tick_hz: Step::ratio(60, 1).unwrap(),
            },
        )
        .position(["_x"])
        .owner("_team");
    let built = SchemaBuilder::new()
        .class(class.build().unwrap())
        .build()
        .unwrap();

    assert!(derived.differences(&built).is_empty());
    assert_eq!(derived.fingerprint(), built.fingerprint());
}
