//! Fingerprints, differences, encoded schemas and projections.

use prescient_schema::{
    Class, ClassBuilder, Contract, CustomFloat, DecodeError, Derivative, Fault, Field, FieldKind,
    FloatFormat, Level, Priority, Projection, Rate, Schema, SchemaBuilder, Step, Tolerance,
};
use proptest::prelude::*;

fn stepped(name: &str, step: &str) -> Field {
    let step = Step::parse(step).unwrap();
    Field::new(name, FieldKind::Step { step, bits: 32 })
}

fn car(fields: Vec<Field>) -> Schema {
    Schema {
        classes: vec![Class::new("car", fields)],
    }
}

fn texts(here: &Schema, there: &Schema) -> Vec<String> {
    let differences = here.differences(there);
    differences.iter().map(ToString::to_string).collect()
}

/// Every kind of field, with every property set.
fn rich() -> Schema {
    let format = |m, e, b| FloatFormat::new(m, e, b).unwrap();
    let float = [
        format(10, 5, 15),
        format(8, 5, 15),
        format(6, 5, 15),
        format(4, 4, 7),
    ];
    let priority = Priority::new(2).unwrap();
    let mut class = ClassBuilder::new("car");
    class
        .field(Field {
            priority,
            coarser: [0, 1, 2, 3],
            ..stepped("x", "0.01")
        })
        .field(Field {
            optional: true,
            ..stepped("v", "0.02")
        })
        .field(Field {
            only_on_spawn: true,
            ..Field::new("team", FieldKind::Enum { values: 300 })
        })
        .field(Field::new(
            "gear",
            FieldKind::variants(&["Forward", "Reverse"]),
        ))
        .field(Field::new("on", FieldKind::Bool))
        .field(Field::new(
            "squad",
            FieldKind::Int {
                bits: 64,
                signed: false,
            },
        ))
        .field(Field::new("exact", FieldKind::F32))
        .field(Field::new("double", FieldKind::F64))
        .field(Field {
            priority,
            ..Field::new(
                "custom",
                FieldKind::Custom(CustomFloat::new(float).unwrap()),
            )
        })
        .rate(
            "v",
            "x",
            Rate::PerSecond {
                tick_hz: Step::parse("60").unwrap(),
            },
        )
        .owner("team")
        .group("squad")
        .position(["x"])
        .priority(Priority::new(1).unwrap())
        .contract(hold());
    let class = class.build().unwrap();
    SchemaBuilder::new()
        .class(class)
        .class(Class::new("marker", vec![]))
        .build()
        .unwrap()
}

fn hold() -> Contract {
    Contract {
        name: "hold".into(),
        fast_forward: |row, _, out| out.copy_from_slice(row),
    }
}

#[test]
fn a_schema_has_one_fingerprint_for_ever() {
    // A changed fingerprint makes old and new programs incompatible and needs a new version of the
    // encoding.
    assert_eq!(
        rich().fingerprint().to_string(),
        "43dcc7e0e0e55390be0e7aaff397eb7a"
    );
}

/// Schemas without keys keep their encoding. Fails if the role is written where none is declared,
/// or if two keys fields are accepted.
#[test]
fn keys_are_a_flag_of_their_field() {
    let bits = FieldKind::Int {
        bits: 32,
        signed: false,
    };
    let mut schema = car(vec![Field::new("a", bits.clone()), Field::new("b", bits)]);
    let without = schema.to_bytes();
    schema.classes[0].keys = Some(1);
    let with = schema.to_bytes();
    let differ = (without.iter().zip(&with)).filter(|(a, b)| a != b);
    assert_eq!(differ.collect::<Vec<_>>(), [(&0, &4)]);
    let read = Schema::from_bytes(&with, &[]).expect("sound");
    assert_eq!(read.classes[0].keys, Some(1));

    schema.classes[0].keys = Some(0);
    let other = schema.to_bytes();
    let both: Vec<u8> = (with.iter().zip(&other)).map(|(a, b)| a | b).collect();
    let refused = Schema::from_bytes(&both, &[]);
    assert!(matches!(refused, Err(DecodeError::Malformed)));
}

#[test]
fn the_bytes_are_those_one_writes_by_hand() {
    let schema = car(vec![Field::new("on", FieldKind::Bool)]);
    #[rustfmt::skip]
    let bytes = [
        1,                      // version
        1, 3, b'c', b'a', b'r', // one class
        1, 2, b'o', b'n',       // of one field,
        2, 0, 0, 0, 0, 0, 0, 0, // a boolean: priority, flags, no rate, four levels
        0, 0, 0, 0, 0,          // no owner, position, group; priority 0; no contract
    ];
    assert_eq!(schema.to_bytes(), bytes);
}

#[test]
fn a_difference_names_the_class_the_field_and_both_values() {
    let here = car(vec![stepped("boost", "0.01")]);
    let there = car(vec![stepped("boost", "0.1")]);
    assert_eq!(
        texts(&here, &there),
        ["class `car`, field `boost`: step 0.01 here, 0.1 there"]
    );
    let there = car(vec![
        Field::new("boost", FieldKind::Bool),
        Field::new("fuel", FieldKind::Bool),
    ]);
    assert_eq!(
        texts(&here, &there),
        [
            "class `car`, field `boost`: kind step 0.01 in 32 bits here, bool there",
            "class `car`, field `fuel`: only there",
        ]
    );
    assert_eq!(
        texts(&car(vec![]), &Schema::default()),
        ["class `car`: only here"]
    );
}

/// Every property that both ends must agree on, changed one at a time.
#[test]
fn every_property_changes_the_fingerprint_and_is_named() {
    type Change = fn(&mut Class);
    let changes: [(&str, Change); 15] = [
        ("step", |car| car.fields[0].kind = stepped("", "0.5").kind),
        ("bits", |car| {
            car.fields[0].kind = FieldKind::Step {
                step: Step::parse("0.01").unwrap(),
                bits: 31,
            };
        }),
        ("levels", |car| car.fields[0].coarser[3] = 4),
        ("velocity_of", |car| {
            car.fields[1].derivative_of = Some(Derivative {
                of: 0,
                numerator: 1,
                denominator: 7,
            });
        }),
        ("optional", |car| car.fields[1].optional = false),
        ("only_on_spawn", |car| car.fields[2].only_on_spawn = false),
        ("values", |car| {
            car.fields[2].kind = FieldKind::Enum { values: 2 }
        }),
        ("kind", |car| {
            car.fields[3].kind = FieldKind::variants(&["Reverse", "Forward"])
        }),
        ("owner", |car| car.owner = None),
        ("group", |car| car.group = Some(0)),
        ("keys", |car| car.keys = Some(5)),
        ("position", |car| car.position = vec![0, 1]),
        ("priority", |car| car.priority = Priority::new(3).unwrap()),
        ("predict_with", |car| car.contract = None),
        ("float", |car| {
            car.fields[8].kind = FieldKind::Custom(CustomFloat::uniform(FloatFormat::BINARY16));
        }),
    ];
    let here = rich();
    for (property, change) in changes {
        let mut there = here.clone();
        change(&mut there.classes[0]);
        assert_ne!(here.fingerprint(), there.fingerprint(), "{property}");
        let texts = texts(&here, &there);
        assert_eq!(texts.len(), 1, "{texts:?}");
        assert!(texts[0].contains(property), "{texts:?}");
    }
    assert!(here.differences(&rich()).is_empty());
}

#[test]
fn an_encoded_schema_is_read_back_whole() {
    let bytes = rich().to_bytes();
    let read = Schema::from_bytes(&bytes, &[hold()]).unwrap();
    assert!(read.differences(&rich()).is_empty());
    assert_eq!(read.to_bytes(), bytes);
    let unknown = Schema::from_bytes(&bytes, &[]).unwrap_err();
    assert_eq!(unknown, DecodeError::UnknownContract("hold".into()));
    for length in 0..bytes.len() {
        assert!(Schema::from_bytes(&bytes[..length], &[hold()]).is_err());
    }
}

#[test]
fn a_client_without_an_optional_field_still_connects() {
    let speed = Field {
        optional: true,
        ..stepped("speed", "1")
    };
    let nitro = Field {
        optional: true,
        ..stepped("nitro", "1")
    };
    let server = car(vec![stepped("x", "1"), speed, stepped("y", "1")]);
    let client = car(vec![stepped("y", "1"), nitro, stepped("x", "1")]);
    let both = Tolerance::Additive;
    let projection = Projection::between((&server, both), (&client, both)).unwrap();
    assert!(!projection.is_identity());
    let class = projection.class(0).unwrap();
    assert_eq!(
        (class.class, class.columns.as_slice()),
        (0, &[Some(2), None, Some(0)][..])
    );
    let mut row = [9; 3];
    class.apply(&[10, 20, 30], &mut row);
    assert_eq!(row, [30, 0, 10]);
    assert!(projection.class(1).is_none());
    for (server_is, client_is) in [(Tolerance::Exact, both), (both, Tolerance::Exact)] {
        let refused = Projection::between((&server, server_is), (&client, client_is));
        assert!(refused.unwrap_err().len() > 1);
    }
}

#[test]
fn a_client_with_another_meaning_is_told_which() {
    let server = car(vec![stepped("x", "1"), stepped("y", "1")]);
    let client = car(vec![stepped("x", "2"), stepped("z", "1")]);
    let both = Tolerance::Additive;
    let refused = Projection::between((&server, both), (&client, both)).unwrap_err();
    let texts: Vec<_> = refused.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "class `car`, field `x`: step 1 here, 2 there",
            "class `car`, field `y`: only here",
            "class `car`, field `z`: only there",
        ]
    );
}

#[test]
fn equal_schemas_need_no_projection() {
    let exact = Tolerance::Exact;
    let projection = Projection::between((&rich(), exact), (&rich(), exact)).unwrap();
    assert!(projection.is_identity());
}

#[test]
fn whole_classes_may_be_missing_if_all_their_fields_are_optional() {
    let field = Field {
        optional: true,
        ..stepped("x", "1")
    };
    let both = Tolerance::Additive;
    let with = car(vec![field]);
    let without = Schema::default();
    assert!(
        Projection::between((&with, both), (&without, both))
            .unwrap()
            .class(0)
            .is_none()
    );
    assert!(Projection::between((&without, both), (&with, both)).is_ok());
    let needed = car(vec![stepped("x", "1")]);
    assert!(Projection::between((&needed, both), (&without, both)).is_err());
    assert!(Projection::between((&without, both), (&needed, both)).is_err());
}

/// The errors of invalid schemas.
#[test]
fn a_bad_schema_says_what_is_wrong_where() {
    let fault = |fields: Vec<Field>| car(fields).validate().unwrap_err().fault;
    let x = || stepped("x", "1");
    assert_eq!(fault(vec![x(), x()]), Fault::DuplicateName);
    assert_eq!(fault(vec![Field::new("", FieldKind::Bool)]), Fault::BadName);
    assert_eq!(
        fault(vec![Field::new("n".repeat(256), FieldKind::Bool)]),
        Fault::BadName
    );
    assert_eq!(
        fault(vec![Field::new(
            "n",
            FieldKind::Int {
                bits: 0,
                signed: true
            }
        )]),
        Fault::BadWidth(0)
    );
    assert_eq!(
        fault(vec![Field::new(
            "n",
            FieldKind::Int {
                bits: 65,
                signed: true
            }
        )]),
        Fault::BadWidth(65)
    );
    assert_eq!(
        fault(vec![Field::new("n", FieldKind::Enum { values: 0 })]),
        Fault::NoValues
    );
    assert_eq!(
        fault(vec![Field::new("n", FieldKind::variants(&[]))]),
        Fault::NoValues
    );
    assert_eq!(
        fault(vec![Field::new("n", FieldKind::variants(&["A", "A"]))]),
        Fault::DuplicateName
    );
    let coarser = [0, 1, 2, 3];
    assert_eq!(
        fault(vec![Field { coarser, ..x() }]),
        Fault::LevelsOnPriorityZero
    );
    let priority = Priority::new(1).unwrap();
    let exact = Field::new("n", FieldKind::F32);
    assert_eq!(
        fault(vec![Field {
            coarser,
            priority,
            ..exact
        }]),
        Fault::LevelsOnExact
    );
    let coarser = [1, 1, 2, 3];
    assert_eq!(
        fault(vec![Field {
            coarser,
            priority,
            ..x()
        }]),
        Fault::BadLevels(coarser)
    );
    let rate = |of, denominator| {
        Some(Derivative {
            of,
            numerator: 1,
            denominator,
        })
    };
    assert_eq!(
        fault(vec![Field {
            derivative_of: rate(0, 1),
            ..x()
        }]),
        Fault::RateOfItself
    );
    assert_eq!(
        fault(vec![Field {
            derivative_of: rate(1, 1),
            ..x()
        }]),
        Fault::BadIndex(1)
    );
    let v = |rate| Field {
        derivative_of: rate,
        ..stepped("v", "1")
    };
    assert_eq!(fault(vec![x(), v(rate(0, 0))]), Fault::RateOutOfRange);
    let many = (0..=Class::MAX_FIELDS).map(|n| Field::new(n.to_string(), FieldKind::Bool));
    assert_eq!(fault(many.collect()), Fault::TooManyFields);
    // Fails if `Class::validate` does not compare positions: differences would repeat a long name.
    let mut stutter = Class::new("c", vec![x()]);
    stutter.position = vec![0, 0];
    assert_eq!(stutter.validate().unwrap_err().fault, Fault::DeclaredTwice);
    let twice = Schema {
        classes: vec![Class::new("a", vec![]), Class::new("a", vec![])],
    };
    assert_eq!(
        twice.validate().unwrap_err().to_string(),
        "class `a`: the name is used twice"
    );
}

#[test]
fn a_builder_resolves_names_or_says_which_it_lacks() {
    let build = |declare: fn(&mut ClassBuilder)| {
        let mut class = ClassBuilder::new("car");
        class
            .field(stepped("p.x", "0.01"))
            .field(stepped("p.y", "0.01"));
        class
            .field(stepped("v.x", "0.1"))
            .field(stepped("v.y", "0.1"));
        class
            .field(Field::new("on", FieldKind::Bool))
            .field(Field::new("wide", FieldKind::F32));
        class.field(stepped("tiny", "1e-12"));
        declare(&mut class);
        class.build().map_err(|error| error.to_string())
    };
    let class = build(|car| {
        car.position(["p"]).rate("v", "p", Rate::PerTick);
    });
    let class = class.unwrap();
    assert_eq!(class.position, [0, 1]);
    let rate = Derivative {
        of: 1,
        numerator: 10,
        denominator: 1,
    };
    assert_eq!(class.fields[3].derivative_of, Some(rate));
    for (declare, text) in [
        (
            (|car| _ = car.owner("p")) as fn(&mut ClassBuilder),
            "class `car`, field `p`: a single field is needed here, but this is flattened to several",
        ),
        (
            |car| _ = car.owner("q"),
            "class `car`: there is no field `q`",
        ),
        (
            |car| _ = car.group("on").group("on"),
            "class `car`, field `on`: declared twice",
        ),
        (
            |car| _ = car.keys("on"),
            "class `car`, field `on`: keys need an unsigned integer that is not `only_on_spawn`",
        ),
        (
            |car| _ = car.position(["on"]),
            "class `car`: there is no field `on`",
        ),
        (
            |car| _ = car.rate("v", "q", Rate::PerTick),
            "class `car`, field `v.x`: there is no field `q.x`",
        ),
        (
            |car| _ = car.rate("v.x", "v.x", Rate::PerTick),
            "class `car`, field `v.x`: a field cannot be its own rate of change",
        ),
        (
            |car| _ = car.rate("v.x", "wide", Rate::PerTick),
            "class `car`, field `v.x`: a rate needs integers or stepped floats on both sides",
        ),
        (
            |car| _ = car.rate("v.x", "tiny", Rate::PerTick),
            "class `car`, field `v.x`: the ratio of the two steps does not fit 32 bits",
        ),
    ] {
        assert_eq!(build(declare).unwrap_err(), text);
    }
}

proptest! {
    #[test]
    fn a_strangers_bytes_are_refused_or_read_but_never_panic(
        at in 0usize..200, byte in any::<u8>(), noise in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let mut bytes = rich().to_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        for bytes in [bytes, noise] {
            if let Ok(schema) = Schema::from_bytes(&bytes, &[hold()]) {
                // An accepted schema is canonical, and safe to use.
                prop_assert_eq!(schema.to_bytes(), bytes);
                for field in schema.classes.iter().flat_map(|class| &class.fields) {
                    for level in 0..4 {
                        field.at_level(Level::new(level).unwrap(), i64::MAX);
                    }
                }
            }
        }
    }
}
