//! A field of type `Option` can have a table of its own, which entities can lack.

use prescient_schema::{
    Class, ClassBuilder, Difference, Fault, Field, FieldKind, Parcel, Projection, ReadFault,
    Schema, SchemaBuilder, Source, State, Tolerance,
};

#[derive(State, Clone, Debug, PartialEq)]
#[state(rename = "ship", tables(public, private), predict_with = Ship::sail)]
struct Ship {
    #[state(step = 0.01)]
    x: f32,
    #[state(tables(private))]
    gold: u16,
    #[state(table)]
    sail: Option<Sail>,
    #[state(table, step = 0.5, rename = "leak")]
    water: Option<f32>,
}

impl Ship {
    fn sail(&self, _: u32) -> Self {
        self.clone()
    }
}

#[derive(State, Clone, Debug, PartialEq)]
struct Sail {
    #[state(step = 0.1)]
    angle: f32,
    #[state(velocity_of = "angle", step = 0.1, per_tick)]
    turning: f32,
    #[state(max_len = 8)]
    flag: String,
}

fn ship() -> Ship {
    Ship {
        x: 1.0,
        gold: 3,
        sail: Some(Sail {
            angle: 0.5,
            turning: 0.1,
            flag: "blue".into(),
        }),
        water: None,
    }
}

fn names(class: &Class) -> Vec<&str> {
    class.fields.iter().map(|field| &*field.name).collect()
}

/// Fails if the derive macro leaves the other columns in an optional table, gives it the type's
/// contract, or does not declare it optional.
#[test]
fn each_optional_table_has_the_columns_of_its_field() {
    assert_eq!(Ship::TABLES, ["public", "private", "sail", "leak"]);
    assert_eq!(Ship::OPTIONAL_TABLES, ["sail", "leak"]);
    let schema = Schema::of::<Ship>().expect("sound");
    let [public, private, sail, leak] = &schema.classes[..] else {
        panic!("{schema:?}");
    };
    assert_eq!(names(public), ["x"]);
    assert_eq!(names(private), ["gold"]);
    assert_eq!(names(sail), ["sail.angle", "sail.turning", "sail.flag"]);
    assert_eq!(names(leak), ["leak"]);
    assert_eq!(sail.name, "ship.sail");
    assert!(sail.fields[1].derivative_of.is_some());
    let optional = schema.classes.iter().map(|class| class.optional);
    assert!(optional.eq([false, false, true, true]));
    let contracts = schema.classes.iter().map(|class| class.contract.is_some());
    assert!(contracts.eq([true, true, false, false]));
}

/// Fails if `has_table` is always true, if `read_table` sets another field, or if `read` takes a
/// part for the whole.
#[test]
fn values_are_read_table_by_table() {
    let ship = ship();
    let has = |ship: &Ship| {
        Ship::TABLES
            .iter()
            .map(|table| ship.has_table(table))
            .collect()
    };
    let there: Vec<bool> = has(&ship);
    assert_eq!(there, [true, true, true, false]);
    let parcels: Vec<Parcel> = Ship::TABLES
        .iter()
        .map(|table| ship.to_parcel(table))
        .collect();
    assert_eq!(parcels[1].row, [3]);
    assert_eq!(parcels[2].row.len(), 3);
    assert_eq!(
        parcels[3].row,
        [0],
        "as wide as the table, though there is none"
    );

    let mut read = Ship::from_row("private", &parcels[1].row).expect("sound");
    assert_eq!((read.sail.is_none(), read.gold), (true, 3));
    let mut row = Source::with(&parcels[2].row, &parcels[2]);
    read.read_table("sail", &mut row).expect("sound");
    assert_eq!(read, Ship { x: 0.0, ..ship });
    read.read_table("leak", &mut Source::new(&[3]))
        .expect("sound");
    assert_eq!(read.water, Some(1.5));

    let whole = Ship::from_row_in("sail", &parcels[2].row, &parcels[2]);
    assert_eq!(
        whole.map_err(|error| error.fault),
        Err(ReadFault::OptionalTable)
    );
    let part = read.read_table("private", &mut Source::new(&[3]));
    assert_eq!(
        part.map_err(|error| error.fault),
        Err(ReadFault::OptionalTable)
    );
    assert!(read.read_table("leak", &mut Source::new(&[])).is_err());
}

fn schema(optional: bool) -> Schema {
    let int = FieldKind::Int {
        bits: 8,
        signed: false,
    };
    let mut further = ClassBuilder::new("unit.shield");
    further.field(Field::new("strength", int.clone()));
    if optional {
        further.optional();
    }
    let mut first = ClassBuilder::new("unit");
    first.field(Field::new("health", int));
    let (first, further) = (
        first.build().expect("sound"),
        further.build().expect("sound"),
    );
    let schema = SchemaBuilder::new().class(first).class(further).build();
    schema.expect("sound")
}

/// Fails if the bytes of a class leave out `optional`, or if `differences` does.
#[test]
fn schemas_that_differ_in_it_differ() {
    let (optional, fixed) = (schema(true), schema(false));
    assert_ne!(optional.fingerprint(), fixed.fingerprint());
    let differences = optional.differences(&fixed);
    let expected = Difference::Property {
        class: "unit.shield".into(),
        field: None,
        property: "optional table",
        here: "true".into(),
        there: "false".into(),
    };
    assert_eq!(differences, [expected]);
    let bytes = optional.to_bytes();
    let read = Schema::from_bytes(&bytes, &[]).expect("just written");
    assert!(read.classes[1].optional && !read.classes[0].optional);
    assert_eq!(read.to_bytes(), bytes);
    // An unknown flag beside it, and that of an event.
    let [.., priority, _] = &bytes[..] else {
        panic!("{bytes:?}");
    };
    assert_eq!(*priority, 4);
    let mut unknown = bytes.clone();
    let at = unknown.len() - 2;
    for flags in [16, 20, 12] {
        unknown[at] = flags;
        assert!(Schema::from_bytes(&unknown, &[]).is_err());
    }
}

/// Fails if `Schema::validate` accepts an optional class that nothing belongs to.
#[test]
fn only_further_tables_are_optional() {
    let mut classes = schema(true).classes;
    classes.reverse();
    let reversed = Schema {
        classes: classes.clone(),
    };
    let fault = |schema: &Schema| schema.validate().expect_err("no first table").fault;
    assert_eq!(fault(&reversed), Fault::OptionalFirstTable);
    classes.pop();
    assert_eq!(fault(&Schema { classes }), Fault::OptionalFirstTable);
    let mut alone = Class::new("unit", Vec::new());
    alone.optional = true;
    let alone = Schema {
        classes: vec![alone],
    };
    assert_eq!(fault(&alone), Fault::OptionalFirstTable);
}

#[derive(State)]
struct Fleet {
    flagship: Ship,
}

#[derive(State)]
struct Harbour {
    ships: Vec<Ship>,
}

/// Fails if `ClassBuilder::check_own_table` accepts every name: then these fields would never be
/// sent.
#[test]
fn parts_of_parts_have_no_tables() {
    let error = Fleet::class("default").expect_err("nested");
    assert_eq!(error.fault, Fault::NestedTable);
    assert_eq!(error.field.as_deref(), Some("flagship.sail"));
    assert!(Harbour::class("default").is_err());
}

/// Fails if the projection lets only classes of optional fields be missing.
#[test]
fn a_program_without_the_table_can_still_connect() {
    let with = schema(true);
    let without = Schema {
        classes: with.classes[..1].to_vec(),
    };
    let between = |server: &Schema, client: &Schema| {
        let end = |schema| (schema, Tolerance::Additive);
        Projection::between(end(server), end(client))
    };
    let projection = between(&with, &without).expect("it may be missing");
    assert!(projection.class(0).is_some() && projection.class(1).is_none());
    assert!(between(&without, &with).is_ok());
    let fixed = schema(false);
    assert!(between(&fixed, &without).is_err());
}
