//! Random schemas.

use prescient::schema::{
    Class, Contract, CustomFloat, Derivative, Field, FieldKind, FloatFormat, Priority, Schema,
    Shape, Step,
};

use super::dice::Dice;

/// A random type of entities.
pub(super) struct Type {
    pub name: String,
    /// The classes of its tables, without columns that replication adds.
    pub tables: Vec<Class>,
    /// The column of the first table that holds the entity's key.
    pub key: usize,
}

/// A few random types, and their schema.
pub(super) fn random(dice: &mut Dice) -> (Vec<Type>, Schema) {
    let count = 1 + dice.below(4);
    let names: Vec<String> = (0..count).map(|number| format!("type{number}")).collect();
    let types: Vec<Type> = names.iter().map(|name| of(name, &names, dice)).collect();
    let classes = types.iter().flat_map(|one| one.tables.clone()).collect();
    (types, Schema { classes })
}

fn of(name: &str, names: &[String], dice: &mut Dice) -> Type {
    let count = 1 + dice.below(3) * dice.below(2);
    let mut tables: Vec<Class> = (0..count)
        .map(|table| class(name, table, names, dice))
        .collect();
    // The key must be exact, and sent with the spawn.
    let mut which = Field::new(
        "key",
        FieldKind::Int {
            bits: 32,
            signed: false,
        },
    );
    which.only_on_spawn = dice.of_thousand(500);
    let key = tables[0].fields.len();
    tables[0].fields.push(which);
    Type {
        name: name.into(),
        tables,
        key,
    }
}

fn class(name: &str, table: usize, names: &[String], dice: &mut Dice) -> Class {
    let name = match table {
        0 => name.into(),
        _ => format!("{name}.part{table}"),
    };
    let mut class = Class::new(name, Vec::new());
    if table == 0 && dice.of_thousand(800) {
        for axis in 0..1 + dice.below(3) {
            class.position.push(axis as u16);
            class.fields.push(coordinate(axis, dice));
        }
    }
    for number in 0..1 + dice.below(9) {
        let field = Field::new(format!("field{number}"), kind(names, dice));
        class.fields.push(declared(field, dice));
    }
    relate(&mut class, dice);
    if dice.of_thousand(250) {
        class.group = Some(class.fields.len() as u16);
        let crew = FieldKind::Int {
            bits: 3,
            signed: false,
        };
        class.fields.push(Field::new("crew", crew));
    }
    if dice.of_thousand(250) {
        class.owner = Some(dice.below(class.fields.len()) as u16);
    }
    if dice.of_thousand(150) {
        class.contract = Some(Contract {
            name: "stays".into(),
            fast_forward: |past, _, out| out.copy_from_slice(past),
        });
    }
    class.priority = priority(dice);
    class
}

fn coordinate(axis: usize, dice: &mut Dice) -> Field {
    let step = Step::ratio(1, [1, 2, 10, 100][dice.below(4)]).expect("not zero");
    let kind = match dice.below(2) {
        0 => FieldKind::Int {
            bits: 16,
            signed: true,
        },
        _ => FieldKind::Step { step, bits: 24 },
    };
    let field = Field::new(format!("place{axis}"), kind);
    Field {
        only_on_spawn: false,
        ..declared(field, dice)
    }
}

/// A random kind, out of all.
fn kind(names: &[String], dice: &mut Dice) -> FieldKind {
    let max_len = 1 + dice.below(12) as u32;
    match dice.below(10) {
        0..6 => scalar(dice),
        6 => FieldKind::Text { max_len },
        7 => FieldKind::Bytes { max_len },
        8 => {
            let item: Vec<Field> = (0..1 + dice.below(3))
                .map(|number| Field::new(format!("item{number}"), scalar(dice)))
                .collect();
            let key = 1 + dice.below(item.len()) as u8;
            match dice.below(2) {
                0 => FieldKind::List { item, max_len },
                _ => FieldKind::Map { item, key, max_len },
            }
        }
        _ => FieldKind::Reference {
            class: dice
                .of_thousand(500)
                .then(|| names[dice.below(names.len())].clone()),
        },
    }
}

fn scalar(dice: &mut Dice) -> FieldKind {
    let bits = [1, 2, 7, 8, 13, 16, 31, 32, 33, 63, 64][dice.below(11)];
    match dice.below(9) {
        0 | 1 => FieldKind::Int {
            bits,
            signed: dice.of_thousand(500),
        },
        2 => FieldKind::Enum {
            values: [1, 2, 5, 300, 70_000][dice.below(5)],
        },
        3 => FieldKind::Bool,
        4 => FieldKind::variants(&["stand", "walk", "run"][..1 + dice.below(3)]),
        5 => FieldKind::Step {
            step: Step::ratio(1 + dice.below(9) as u64, 100).expect("not zero"),
            bits,
        },
        6 => FieldKind::F32,
        7 => FieldKind::F64,
        _ => FieldKind::Custom(CustomFloat::uniform(format(8, dice))),
    }
}

fn format(mantissa: u8, dice: &mut Dice) -> FloatFormat {
    let mantissa = mantissa - dice.below(3) as u8;
    FloatFormat::new(mantissa, 5, 15).expect("within that of f64")
}

/// Declares random properties on a field.
fn declared(mut field: Field, dice: &mut Dice) -> Field {
    field.priority = priority(dice);
    field.only_on_spawn = dice.of_thousand(80);
    field.optional = dice.of_thousand(80);
    if field.priority.get() == 0 || dice.of_thousand(300) {
        return field;
    }
    match field.kind.shape() {
        Shape::Number { bits, .. } if field.kind.unit().is_some() && bits > 1 => {
            let mut coarser = [0; 4].map(|_: u8| dice.below(usize::from(bits)) as u8);
            coarser[0] = 0;
            coarser.sort_unstable();
            field.coarser = coarser;
        }
        _ => {}
    }
    if let FieldKind::Custom(_) = field.kind {
        let exact = format(10, dice);
        let levels = [
            exact,
            format(exact.mantissa(), dice),
            format(5, dice),
            format(4, dice),
        ];
        let float = CustomFloat::new(levels);
        field.kind = FieldKind::Custom(float.expect("level 0 has the widest mantissa"));
    }
    field
}

/// Declares some fields to be the rate of change of others.
fn relate(class: &mut Class, dice: &mut Dice) {
    let is_number = |field: &Field| matches!(field.kind.shape(), Shape::Number { .. });
    for at in 0..class.fields.len() {
        let of = dice.below(class.fields.len());
        let numbers = is_number(&class.fields[at]) && is_number(&class.fields[of]);
        if of != at && numbers && dice.of_thousand(200) {
            class.fields[at].derivative_of = Some(Derivative {
                of: of as u16,
                numerator: dice.between(-9, 9) as i32,
                denominator: 1 + dice.below(60) as u32,
            });
        }
    }
}

fn priority(dice: &mut Dice) -> Priority {
    Priority::new(dice.below(4) as u8).unwrap_or_default()
}
