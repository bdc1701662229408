//! Event types are classes of the schema, with names and rules of their own.

use prescient_schema::{
    Class, ClassBuilder, EntityRef, Event, EventDelivery, Fault, Field, FieldKind, Ref, Request,
    Schema, SchemaBuilder, State,
};

#[derive(State)]
struct Tank {
    health: u8,
}

/// A state and an event may have the same name.
#[derive(Event, Debug, PartialEq)]
#[event(rename = "Tank")]
struct TankEvent {
    tank: Ref<Tank>,
    #[event(step = 0.5)]
    speed: f32,
}

#[derive(Event, Debug, PartialEq)]
#[event(unreliable)]
enum Any {
    Unit,
    #[event(ordered)]
    Tuple(u8, #[event(rename = "name", max_len = 4)] String),
    #[event(rename = "Named", sequenced)]
    Struct {
        who: EntityRef,
        #[event(skip)]
        own: u32,
    },
}

#[derive(Event)]
#[event(answer = Any)]
struct Asks;

fn schema() -> Schema {
    let schema = Schema::of::<Tank>().expect("sound");
    let schema = schema.with_events::<(TankEvent, Any, Asks)>();
    schema.expect("sound")
}

/// Fails if the derive ignores an attribute of a variant, or names classes otherwise.
#[test]
fn attributes_reach_the_class() {
    let schema = schema();
    let found = schema.classes.iter().map(|class| {
        let fields = class.fields.iter().map(|field| field.name.as_str());
        (&class.name[..], class.event, fields.collect::<Vec<_>>())
    });
    let expected: [(_, _, Vec<&str>); 6] = [
        ("Tank", None, vec!["health"]),
        (
            "event Tank",
            Some(EventDelivery::Ordered),
            vec!["tank", "speed"],
        ),
        ("event Any::Unit", Some(EventDelivery::Unreliable), vec![]),
        (
            "event Any::Tuple",
            Some(EventDelivery::Ordered),
            vec!["0", "name"],
        ),
        (
            "event Any::Named",
            Some(EventDelivery::Sequenced),
            vec!["who"],
        ),
        ("event Asks", Some(EventDelivery::Ordered), vec![]),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    fn answer<T: Request<Answer = Any>>() {}
    answer::<Asks>();
}

/// Fails if `read` takes the fields of a variant in another order than `to_parcel` writes them.
#[test]
fn values_come_back() {
    let events = [
        Any::Unit,
        Any::Tuple(7, "abcd".into()),
        Any::Struct {
            who: EntityRef::new(3, 1),
            own: 0,
        },
    ];
    for event in events {
        let (variant, parcel) = event.to_parcel();
        let read = Any::from_row_in(variant, &parcel.row, &parcel);
        assert_eq!(read.as_ref(), Ok(&event));
        assert!(Any::from_row_in(9, &parcel.row, &parcel).is_err());
    }
}

/// Fails if `Writer::class` leaves out that a class is an event or its delivery.
#[test]
fn events_are_part_of_the_canonical_bytes() {
    let (one, bytes) = (schema(), schema().to_bytes());
    let read = Schema::from_bytes(&bytes, &[]).expect("its own bytes");
    assert_eq!(read.to_bytes(), bytes);
    assert!(one.differences(&read).is_empty());
    let mut other = schema();
    other.classes[5].event = Some(EventDelivery::Unordered);
    assert_ne!(one.fingerprint(), other.fingerprint());
    let told: Vec<String> = one
        .differences(&other)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        told,
        ["event `Asks`: delivery ordered here, unordered there"]
    );
    // Without events nothing has changed.
    let states = Schema::of::<Tank>().expect("sound");
    assert!(bytes[2..].starts_with(&states.to_bytes()[2..]));
}

/// Fails if `validate` allows an event what only entities have, or a reference to an event.
#[test]
fn events_are_no_entities() {
    let owned = {
        let mut class = ClassBuilder::new("event E");
        class.field(Field::new("who", FieldKind::Enum { values: 2 }));
        class.owner("who").event(EventDelivery::Ordered);
        class.build()
    };
    let fault = owned.expect_err("an event has no owner");
    assert_eq!(fault.fault, Fault::ReplicatedEvent);
    assert!(fault.to_string().starts_with("event `E`"), "{fault}");
    let kind = FieldKind::Reference {
        class: Some("event Asks".into()),
    };
    let class = Class::new("State", vec![Field::new("to", kind)]);
    let schema = SchemaBuilder::new().event::<Asks>().class(class).build();
    let fault = schema.expect_err("nothing refers to an event");
    assert_eq!(fault.fault, Fault::NoSuchClass("event Asks".into()));
}
