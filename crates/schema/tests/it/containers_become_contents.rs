//! Texts, byte buffers, lists, maps, sets and references as columns and contents; invalid and too
//! long contents.

use std::collections::{BTreeMap, BTreeSet};

use prescient_schema::{
    Class, Content, DecodeError, EntityRef, Fault, Field, FieldKind, Level, Parcel, Priority,
    ReadFault, Ref, Schema, SchemaBuilder, SchemaError, State,
};
use proptest::prelude::*;

#[derive(State, Clone, Debug, Default, PartialEq)]
#[state(rename = "hero")]
struct Hero {
    #[state(max_len = 12)]
    name: String,
    #[state(bytes, max_len = 5)]
    portrait: Vec<u8>,
    #[state(step = 0.5)]
    path: Vec<[f32; 2]>,
    bag: Vec<Stack>,
    skills: BTreeMap<u16, i8>,
    #[state(bits = 4)]
    marks: BTreeMap<Rank, u8>,
    seen: BTreeSet<u64>,
    title: Option<String>,
    friend: Ref<Hero>,
    target: EntityRef,
    health: u8,
}

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Stack {
    item: u16,
    count: u32,
    #[state(step = 0.1, priority = 2)]
    wear: f32,
    enchanted: Option<Rank>,
}

#[derive(State, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    #[default]
    Low,
    High,
}

fn schema() -> Schema {
    SchemaBuilder::new().state::<Hero>().build().unwrap()
}

fn read(parcel: &Parcel) -> Hero {
    Hero::from_row_in("default", &parcel.row, parcel).unwrap()
}

fn stack() -> impl Strategy<Value = Stack> {
    let rank = prop_oneof![Just(Rank::Low), Just(Rank::High)];
    let parts = (
        any::<u16>(),
        any::<u32>(),
        0..1000u32,
        proptest::option::of(rank),
    );
    parts.prop_map(|(item, count, wear, enchanted)| Stack {
        item,
        count,
        wear: wear as f32 / 10.0,
        enchanted,
    })
}

fn hero() -> impl Strategy<Value = Hero> {
    let things = (
        "[a-z]{0,12}",
        proptest::collection::vec(any::<u8>(), 0..=5),
        proptest::collection::vec((any::<i16>(), any::<i16>()), 0..20),
        proptest::collection::vec(stack(), 0..10),
        proptest::collection::btree_map(any::<u16>(), any::<i8>(), 0..20),
        proptest::collection::btree_set(any::<u64>(), 0..20),
        proptest::option::of("[ä-ü]{0,9}"),
        (0..i64::MAX).prop_map(|cell| EntityRef::from_cell(cell).unwrap()),
        any::<u8>(),
    );
    things.prop_map(
        |(name, portrait, path, bag, skills, seen, title, target, health)| Hero {
            name,
            portrait,
            path: path
                .iter()
                .map(|(x, y)| [f32::from(*x) / 2.0, f32::from(*y) / 2.0])
                .collect(),
            bag,
            skills,
            marks: BTreeMap::from([(Rank::High, health & 15)]),
            seen,
            title,
            friend: Ref::to(target),
            target,
            health,
        },
    )
}

proptest! {
    #[test]
    fn whatever_it_holds_comes_back(hero in hero()) {
        let parcel = hero.to_parcel("default");
        prop_assert_eq!(&parcel.row, &hero.to_row("default"));
        prop_assert_eq!(&read(&parcel), &hero);
        let schema = schema();
        for (field, &cell) in schema.classes[0].fields.iter().zip(&parcel.row) {
            prop_assert!(field.kind.admits(cell));
            if let Some(container) = field.kind.container()
                && let Some(content) = parcel.contents.iter().find(|c| c.cell() == cell)
            {
                prop_assert!(container.admits(content), "{}", field.name);
            }
        }
    }

    #[test]
    fn strange_contents_are_refused_without_a_panic(
        cell in 1..i64::MAX,
        cells in proptest::collection::vec(any::<i64>(), 0..40),
        bytes in proptest::collection::vec(any::<u8>(), 0..40),
        column in 0usize..12,
    ) {
        let mut parcel = Hero::default().to_parcel("default");
        let column = column.min(parcel.row.len() - 1);
        for content in [Content::Cells(cells.into()), Content::Bytes(bytes.into())] {
            parcel.row[column] = content.cell();
            let admitted = schema().classes[0].fields[column]
                .kind
                .container()
                .is_some_and(|container| container.admits(&content));
            parcel.contents = vec![content];
            let read = Hero::from_row_in("default", &parcel.row, &parcel);
            prop_assert!(!admitted || read.is_ok());
        }
        parcel.row[column] = cell;
        let _ = Hero::from_row_in("default", &parcel.row, &parcel);
    }
}

#[test]
fn empty_containers_are_zero_and_need_no_library() {
    let hero = Hero::default();
    let row = hero.to_row("default");
    assert_eq!(row[..7], [0; 7]);
    assert_eq!(Hero::from_row("default", &row), Ok(hero));
}

#[test]
fn unknown_contents_say_which_column() {
    let hero = Hero {
        skills: BTreeMap::from([(1, 1)]),
        ..Hero::default()
    };
    let error = Hero::from_row("default", &hero.to_row("default")).unwrap_err();
    assert_eq!((error.column, error.fault), (4, ReadFault::UnknownContent));
    assert_eq!(
        error.to_string(),
        "the content of the container at column 4 is unknown"
    );
}

#[test]
fn what_is_too_long_is_cut() {
    let hero = Hero {
        name: "größer als er darf".into(),
        portrait: (0..9).collect(),
        ..Hero::default()
    };
    let read = read(&hero.to_parcel("default"));
    assert_eq!(read.name, "größer als");
    assert_eq!(read.portrait, [0, 1, 2, 3, 4]);
}

#[test]
fn text_that_is_not_utf_8_is_no_text() {
    let content = Content::Bytes([0xFF].into());
    let text = FieldKind::Text { max_len: 9 };
    assert!(!text.container().unwrap().admits(&content));
    let bytes = FieldKind::Bytes { max_len: 9 };
    assert!(bytes.container().unwrap().admits(&content));
    let mut parcel = Hero::default().to_parcel("default");
    parcel.row[0] = content.cell();
    parcel.contents.push(content);
    let error = Hero::from_row_in("default", &parcel.row, &parcel).unwrap_err();
    assert_eq!((error.column, error.fault), (0, ReadFault::WrongContent));
}

#[test]
fn maps_are_sorted_by_their_columns() {
    let map = schema().classes[0].fields[4].kind.clone();
    let admits = |cells: &[i64]| {
        let content = Content::Cells(cells.into());
        map.container().unwrap().admits(&content)
    };
    assert!(admits(&[1, 5, 2, 5]));
    assert!(!admits(&[2, 5, 1, 5]));
    assert!(!admits(&[1, 5, 1, 5]));
    assert!(!admits(&[1, 5, 2]));
    assert!(!admits(&[1, 500]));
}

#[test]
fn items_have_columns_but_no_levels() {
    let schema = schema();
    let names = |at: usize| -> Vec<String> {
        let container = schema.classes[0].fields[at].kind.container();
        let item = container.unwrap().item;
        item.iter().map(|field| field.name.clone()).collect()
    };
    assert_eq!(names(2), ["[0]", "[1]"]);
    let stack = ["item", "count", "wear", "enchanted.some", "enchanted"];
    assert_eq!(names(3), stack);
    assert_eq!(names(4), ["key", "value"]);
    assert_eq!(names(6), ["key"]);
    let bag = &schema.classes[0].fields[3];
    let wear = &bag.kind.container().unwrap().item[2];
    assert_eq!(wear.priority, Priority::default());
    assert_eq!(wear.coarser, [0; 4]);
    let level = Level::new(3).unwrap();
    assert_eq!(bag.at_level(level, 12345), 12345);
}

#[test]
fn bytes_of_a_schema_keep_containers_and_references() {
    let schema = schema();
    let bytes = schema.to_bytes();
    let again = Schema::from_bytes(&bytes, &[]).unwrap();
    assert_eq!(again.fingerprint(), schema.fingerprint());
    assert!(schema.differences(&again).is_empty());
    for end in 0..bytes.len() {
        assert!(Schema::from_bytes(&bytes[..end], &[]).is_err());
    }
    let mut other = again;
    other.classes[0].fields[0].kind = FieldKind::Text { max_len: 13 };
    let FieldKind::List { item, .. } = &mut other.classes[0].fields[3].kind else {
        panic!("the bag is a list");
    };
    item.pop();
    let differences: Vec<_> = schema
        .differences(&other)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        differences[0],
        "class `hero`, field `name`: kind text of 12 bytes here, text of 13 bytes there"
    );
    assert_eq!(differences.len(), 2);
}

#[test]
fn what_cannot_be_a_container_is_refused() {
    let int = FieldKind::Int {
        bits: 8,
        signed: false,
    };
    let list = |item: Vec<Field>, max_len| FieldKind::List { item, max_len };
    let fault = |kind: FieldKind| {
        let class = Class::new("c", vec![Field::new("f", kind)]);
        let schema = Schema {
            classes: vec![class],
        };
        schema.validate().unwrap_err().fault
    };
    let column = |kind: FieldKind| vec![Field::new("i", kind)];
    assert_eq!(fault(list(vec![], 5)), Fault::EmptyItem);
    assert_eq!(fault(list(column(int.clone()), 0)), Fault::BadLength(0));
    assert_eq!(
        fault(list(column(int.clone()), 65537)),
        Fault::BadLength(65537)
    );
    assert_eq!(
        fault(list(column(FieldKind::Text { max_len: 5 }), 5)),
        Fault::NestedContainer
    );
    assert_eq!(
        fault(list(column(FieldKind::Reference { class: None }), 5)),
        Fault::ReferenceInContainer
    );
    let mut once = Field::new("i", int.clone());
    once.only_on_spawn = true;
    assert_eq!(fault(list(vec![once], 5)), Fault::DeclaredOnItem);
    let map = |key| FieldKind::Map {
        item: column(int.clone()),
        key,
        max_len: 5,
    };
    assert_eq!(fault(map(0)), Fault::BadKey(0));
    assert_eq!(fault(map(2)), Fault::BadKey(2));
    let lost = FieldKind::Reference {
        class: Some("gone".into()),
    };
    assert_eq!(fault(lost), Fault::NoSuchClass("gone".into()));
}

#[test]
fn containers_in_containers_say_so() {
    #[derive(State)]
    struct Wrong {
        names: Vec<String>,
    }
    let error = SchemaBuilder::new().state::<Wrong>().build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "class `Wrong`, field `names`: a container cannot hold containers"
    );
    let _: SchemaError = error;
}

#[test]
fn deep_schemas_of_strangers_do_not_exhaust_the_stack() {
    let mut bytes = vec![1, 1, 1, b'c', 1, 1, b'f'];
    for _ in 0..100_000 {
        bytes.extend([10, 1, 1, b'i']);
    }
    assert_eq!(
        Schema::from_bytes(&bytes, &[]).unwrap_err(),
        DecodeError::Malformed
    );
}

#[test]
fn references_know_their_place_and_generation() {
    let first = EntityRef::new(7, 0);
    assert_eq!(first.cell(), 8);
    assert_eq!((first.index(), first.generation()), (Some(7), 0));
    let later = EntityRef::new(u32::MAX, 3);
    assert_eq!((later.index(), later.generation()), (Some(u32::MAX), 3));
    assert_eq!(EntityRef::from_cell(later.cell()), Some(later));
    assert_eq!(EntityRef::from_cell(-1), None);
    assert!(EntityRef::NONE.is_none() && EntityRef::NONE.index().is_none());
    assert_eq!(
        format!("{later:?} {:?}", EntityRef::NONE),
        "#4294967295.3 none"
    );
}

#[test]
fn contracts_see_empty_containers_and_leave_them_alone() {
    #[derive(State)]
    #[state(predict_with = age)]
    struct Sage {
        notes: String,
        age: u16,
    }
    fn age(sage: &Sage, ticks: u32) -> Sage {
        assert_eq!(sage.notes, "");
        Sage {
            notes: "made up".into(),
            age: sage.age + ticks as u16,
        }
    }
    let sage = Sage {
        notes: "wise".into(),
        age: 70,
    };
    let schema = SchemaBuilder::new().state::<Sage>().build().unwrap();
    let row = sage.to_row("default");
    let mut out = row.clone();
    let contract = schema.classes[0].contract.as_ref().unwrap();
    (contract.fast_forward)(&row, 5, &mut out);
    assert_eq!(out, [row[0], 75]);
}
