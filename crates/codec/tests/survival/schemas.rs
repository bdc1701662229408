//! Schemas with every kind of field and every declaration.
#![allow(unreachable_pub, reason = "a module of a program of its own")]

use std::sync::Arc;

use prescient_schema::{
    Class, Contract, CustomFloat, Derivative, Field, FieldKind, FloatFormat, Level, Priority,
    Schema, Shape, Step,
};
use proptest::{collection::vec, prelude::*};

/// A field before its neighbours are known.
#[derive(Clone, Debug)]
struct Plan {
    kind: FieldKind,
    priority: u8,
    coarser: [u8; 3],
    only_on_spawn: bool,
    optional: bool,
    /// The rate of change of another field, with a numerator and a denominator.
    rate: Option<(u8, i32, u32)>,
}

/// One to three classes. The first has integers of a chosen width, so that a round covers all
/// widths.
pub fn schema(bits: u8) -> impl Strategy<Value = Arc<Schema>> {
    let class = (vec(plan(), 1..7), 0u8..3, 0u8..4, any::<(bool, bool)>());
    vec(class, 1..=3).prop_map(move |classes| {
        let count = classes.len();
        let build = |(at, (plans, contract, priority, roles)): (usize, ClassPlan)| {
            let mut fields: Vec<Field> = Vec::new();
            if at == 0 {
                for (name, signed) in [("even", true), ("odd", false)] {
                    fields.push(Field::new(name, FieldKind::Int { bits, signed }));
                }
            }
            let first = fields.len();
            for (n, plan) in plans.iter().enumerate() {
                fields.push(plan.field(n, count));
            }
            for (n, plan) in plans.iter().enumerate() {
                declare_rate(&mut fields, first + n, plan.rate);
            }
            let mut class = Class::new(format!("class{at}"), fields);
            class.priority = Priority::new(priority).unwrap();
            class.group = roles.0.then_some(0);
            class.owner = roles.1.then_some(0);
            class.position = vec![0; usize::from(roles.1)];
            class.contract = contracts().into_iter().nth(usize::from(contract)).flatten();
            class
        };
        let schema = Schema {
            classes: classes.into_iter().enumerate().map(build).collect(),
        };
        schema.validate().unwrap();
        Arc::new(schema)
    })
}

type ClassPlan = (Vec<Plan>, u8, u8, (bool, bool));

/// The features of a schema, so that a round can check that it covered all of them.
pub fn ingredients(schema: &Schema) -> Vec<String> {
    let mut found = Vec::new();
    for class in &schema.classes {
        let named = class.contract.as_ref().map(|contract| &*contract.name);
        found.push(format!("contract {}", named.unwrap_or("none")));
        found.push(format!("group {}", class.group.is_some()));
        for field in &class.fields {
            found.push(match &field.kind {
                FieldKind::Int { bits, signed } => format!("int {bits} {signed}"),
                FieldKind::Custom(float) => format!("custom uniform {}", float.is_uniform()),
                FieldKind::Reference { class } => format!("reference typed {}", class.is_some()),
                FieldKind::Map { item, key, .. } if item.len() == usize::from(*key) => "set".into(),
                kind => {
                    let name = format!("{kind:?}").to_lowercase();
                    name.split([' ', '(']).next().unwrap_or_default().into()
                }
            });
            found.extend(field.only_on_spawn.then(|| "only on spawn".into()));
            found.extend(field.optional.then(|| "optional".into()));
            found.extend(field.derivative_of.map(|_| "rate".into()));
            found.extend((field.coarser != [0; 4]).then(|| "levels".into()));
            found.push(format!("priority {}", field.priority.get()));
        }
    }
    found
}

/// The features that every round must cover.
pub fn needed() -> Vec<String> {
    let widths =
        (1..=64).flat_map(|bits| [true, false].map(|signed| format!("int {bits} {signed}")));
    let rest = "contract none|contract drift|contract nonsense|group true|group false|\
        custom uniform true|custom uniform false|reference typed true|reference typed false|set|\
        enum|bool|variant|step|f32|f64|text|bytes|list|map|only on spawn|optional|rate|levels|\
        priority 0|priority 1|priority 2|priority 3";
    widths.chain(rest.split('|').map(String::from)).collect()
}

impl Plan {
    fn field(&self, n: usize, classes: usize) -> Field {
        let mut kind = self.kind.clone();
        if let FieldKind::Reference { class: Some(name) } = &mut kind {
            let wanted: usize = name.parse().unwrap();
            *name = format!("class{}", wanted % classes);
        }
        let mut field = Field::new(format!("field{n}"), kind);
        field.only_on_spawn = self.only_on_spawn;
        field.optional = self.optional;
        field.priority = Priority::new(self.priority).unwrap();
        match (&mut field.kind, field.priority.get()) {
            (FieldKind::Custom(float), 0) => {
                *float = CustomFloat::uniform(float.format(Level::EXACT))
            }
            (kind, 1..) if kind.unit().is_some() => {
                let Shape::Number { bits, .. } = kind.shape() else {
                    unreachable!("only numbers have units")
                };
                let mut coarser = self.coarser.map(|shift| shift.min(bits - 1));
                coarser.sort_unstable();
                field.coarser[1..].copy_from_slice(&coarser);
            }
            _ => {}
        }
        field
    }
}

fn declare_rate(fields: &mut [Field], at: usize, rate: Option<(u8, i32, u32)>) {
    let Some((of, numerator, denominator)) = rate else {
        return;
    };
    let of = usize::from(of) % fields.len();
    let is_number = |field: &Field| matches!(field.kind.shape(), Shape::Number { .. });
    if of != at && is_number(&fields[of]) && is_number(&fields[at]) {
        fields[at].derivative_of = Some(Derivative {
            of: of as u16,
            numerator,
            denominator,
        });
    }
}

fn plan() -> impl Strategy<Value = Plan> {
    let rate = (any::<u8>(), prop_oneof![-9..9i32, any::<i32>()], 1..70u32);
    let parts = (
        prop_oneof![5 => scalar(), 3 => container(), 1 => reference()],
        0u8..4,
        any::<[u8; 3]>().prop_map(|shifts| shifts.map(|shift| shift % 12)),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
        prop::option::weighted(0.4, rate),
    );
    parts.prop_map(
        |(kind, priority, coarser, only_on_spawn, optional, rate)| Plan {
            kind,
            priority,
            coarser,
            only_on_spawn,
            optional,
            rate,
        },
    )
}

fn scalar() -> impl Strategy<Value = FieldKind> {
    let names = ["one", "two", "three", "four", "five", "six", "seven"];
    let steps = ["0.01", "1/60", "3", "0.000001"];
    prop_oneof![
        4 => (1u8..=64, any::<bool>()).prop_map(|(bits, signed)| FieldKind::Int { bits, signed }),
        1 => Just(FieldKind::Bool),
        2 => prop_oneof![1u32..40, 200u32..70_000, Just(u32::MAX)]
            .prop_map(|values| FieldKind::Enum { values }),
        1 => (1usize..=7).prop_map(move |count| FieldKind::variants(&names[..count])),
        2 => (0usize..4, 1u8..=64).prop_map(move |(step, bits)| FieldKind::Step {
            step: Step::parse(steps[step]).unwrap(),
            bits,
        }),
        1 => Just(FieldKind::F32),
        1 => Just(FieldKind::F64),
        2 => (1u8..=20, 2u8..=8, any::<bool>()).prop_map(|(mantissa, exponent, uniform)| {
            let bias = (1 << (exponent - 1)) - 1;
            let format = |mantissa: u8| FloatFormat::new(mantissa, exponent, bias).unwrap();
            if uniform {
                return FieldKind::Custom(CustomFloat::uniform(format(mantissa)));
            }
            let levels = [0, 1, 2, 4].map(|fewer| format(mantissa.saturating_sub(fewer).max(1)));
            FieldKind::Custom(CustomFloat::new(levels).unwrap())
        }),
    ]
}

fn container() -> impl Strategy<Value = FieldKind> {
    prop_oneof![
        (1u32..60).prop_map(|max_len| FieldKind::Text { max_len }),
        (1u32..200).prop_map(|max_len| FieldKind::Bytes { max_len }),
        (item(), 1u32..30).prop_map(|(item, max_len)| FieldKind::List { item, max_len }),
        (item(), any::<u8>(), 1u32..30).prop_map(|(item, key, max_len)| {
            let key = 1 + key % item.len() as u8;
            FieldKind::Map { item, key, max_len }
        }),
    ]
}

fn item() -> impl Strategy<Value = Vec<Field>> {
    vec(scalar(), 1..4).prop_map(|kinds| {
        let named = kinds.into_iter().enumerate();
        let field = |(n, mut kind)| {
            if let FieldKind::Custom(float) = &mut kind {
                *float = CustomFloat::uniform(float.format(Level::EXACT));
            }
            Field::new(format!("column{n}"), kind)
        };
        named.map(field).collect()
    })
}

fn reference() -> impl Strategy<Value = FieldKind> {
    prop::option::of(0usize..3).prop_map(|class| FieldKind::Reference {
        class: class.map(|class| class.to_string()),
    })
}

/// No contract, one that is often right, and one that never is.
fn contracts() -> [Option<Contract>; 3] {
    let contract = |name: &str, fast_forward| {
        Some(Contract {
            name: name.into(),
            fast_forward,
        })
    };
    [
        None,
        contract("drift", |past, ticks, out| {
            for (at, (out, past)) in out.iter_mut().zip(past).enumerate() {
                *out = past.wrapping_add(at as i64 * i64::from(ticks));
            }
        }),
        contract("nonsense", |past, ticks, out| {
            for (out, past) in out.iter_mut().zip(past) {
                *out = (past ^ i64::from(ticks)).wrapping_mul(0x9E37_79B9_7F4A_7C15u64 as i64);
            }
        }),
    ]
}
