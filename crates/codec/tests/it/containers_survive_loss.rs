//! Containers under random edits on a link that loses a fifth of all packets and acknowledgements,
//! with every content compared after every applied packet; and versions that one end would have
//! dropped if the model did not keep them.
//!
//! Mutations tried: kept rows without their contents, and contents of kept rows that are not
//! restored to the archive (both fail).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::common::{Random, config};
use prescient_codec::{
    Decoder, Encoder, HISTORY, NetEntityId, Policy, Profile, Slot, Tick,
    history::{Archive, CaptureError},
};
use prescient_schema::{Content, SchemaBuilder, State};
use proptest::prelude::*;

#[derive(State, Clone, Debug, Default, PartialEq)]
#[state(rename = "page")]
struct Page {
    title: String,
    #[state(bytes)]
    image: Vec<u8>,
    marks: Vec<i16>,
    lines: Vec<Line>,
    index: BTreeMap<u8, Line>,
    #[state(step = 0.5)]
    weights: BTreeMap<i64, f32>,
    tags: BTreeSet<u16>,
    subtitle: Option<String>,
    #[state(only_on_spawn)]
    author: String,
}

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Line {
    number: u32,
    indent: Option<i8>,
    style: Style,
    bold: bool,
}

#[derive(State, Clone, Copy, Debug, Default, PartialEq)]
enum Style {
    #[default]
    Plain,
    Code,
    Quote,
}

/// One change of one field.
#[derive(Clone, Debug)]
enum Edit {
    Title(String),
    Type(usize, String),
    Image(usize, usize, Vec<u8>),
    Marks(usize, usize, Vec<i16>),
    Shift(i16),
    Rotate(usize),
    InsertLine(usize, Line),
    RemoveLine(usize),
    ChangeLine(usize, u32),
    Index(u8, Option<Line>),
    Weight(i64, Option<i16>),
    Tag(u16),
    Subtitle(Option<String>),
    Clear,
}

fn line() -> impl Strategy<Value = Line> {
    let style = prop_oneof![Just(Style::Plain), Just(Style::Code), Just(Style::Quote)];
    let parts = (
        any::<u32>(),
        proptest::option::of(any::<i8>()),
        style,
        any::<bool>(),
    );
    parts.prop_map(|(number, indent, style, bold)| Line {
        number,
        indent,
        style,
        bold,
    })
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        ".{0,20}".prop_map(Edit::Title),
        (0usize..40, "[a-zé ]{0,4}").prop_map(|(at, text)| Edit::Type(at, text)),
        (
            0usize..90,
            0usize..20,
            proptest::collection::vec(any::<u8>(), 0..30)
        )
            .prop_map(|(at, gone, new)| Edit::Image(at, gone, new)),
        (
            0usize..50,
            0usize..9,
            proptest::collection::vec(any::<i16>(), 0..9)
        )
            .prop_map(|(at, gone, new)| Edit::Marks(at, gone, new)),
        (-3i16..3).prop_map(Edit::Shift),
        (0usize..5).prop_map(Edit::Rotate),
        (0usize..50, line()).prop_map(|(at, line)| Edit::InsertLine(at, line)),
        (0usize..50).prop_map(Edit::RemoveLine),
        (0usize..50, 0u32..9).prop_map(|(at, by)| Edit::ChangeLine(at, by)),
        (any::<u8>(), proptest::option::of(line())).prop_map(|(key, line)| Edit::Index(key, line)),
        (any::<i64>(), proptest::option::of(any::<i16>()))
            .prop_map(|(key, weight)| Edit::Weight(key % 9 * (i64::MAX / 9), weight)),
        (0u16..40).prop_map(Edit::Tag),
        proptest::option::of("[a-z]{0,9}").prop_map(Edit::Subtitle),
        Just(Edit::Clear),
    ]
}

impl Edit {
    fn apply(&self, page: &mut Page) {
        fn splice<T: Clone>(list: &mut Vec<T>, at: usize, gone: usize, new: &[T]) {
            let at = at.min(list.len());
            let end = (at + gone).min(list.len());
            list.splice(at..end, new.iter().cloned());
            list.truncate(200);
        }
        match self {
            Edit::Title(title) => page.title.clone_from(title),
            Edit::Type(at, text) => {
                let mut letters: Vec<char> = page.title.chars().collect();
                splice(&mut letters, *at, 1, &text.chars().collect::<Vec<_>>());
                page.title = letters.into_iter().collect();
            }
            Edit::Image(at, gone, new) => splice(&mut page.image, *at, *gone, new),
            Edit::Marks(at, gone, new) => splice(&mut page.marks, *at, *gone, new),
            Edit::Shift(by) => {
                for mark in &mut page.marks {
                    *mark = mark.wrapping_add(*by);
                }
            }
            Edit::Rotate(by) if !page.marks.is_empty() => {
                let by = by % page.marks.len();
                page.marks.rotate_left(by);
            }
            Edit::InsertLine(at, line) => {
                splice(&mut page.lines, *at, 0, std::slice::from_ref(line))
            }
            Edit::RemoveLine(at) => splice(&mut page.lines, *at, 1, &[]),
            Edit::ChangeLine(at, by) => {
                if let Some(line) = page.lines.get_mut(*at) {
                    line.number = line.number.wrapping_add(*by);
                    line.bold = by % 3 == 0;
                }
            }
            Edit::Index(key, Some(line)) => drop(page.index.insert(*key, line.clone())),
            Edit::Index(key, None) => drop(page.index.remove(key)),
            Edit::Weight(key, Some(weight)) => {
                page.weights.insert(*key, f32::from(*weight) / 2.0);
            }
            Edit::Weight(key, None) => drop(page.weights.remove(key)),
            Edit::Tag(tag) => {
                if !page.tags.remove(tag) {
                    page.tags.insert(*tag);
                }
            }
            Edit::Subtitle(text) => page.subtitle.clone_from(text),
            Edit::Clear | Edit::Rotate(_) => {
                page.lines.clear();
                page.marks.clear();
            }
        }
    }
}

struct Ends {
    archive: Archive,
    encoder: Encoder,
    decoder: Decoder,
    tick: u32,
}

impl Ends {
    fn new(profile: Profile) -> Self {
        let schema = Arc::new(SchemaBuilder::new().state::<Page>().build().unwrap());
        let config = config(Policy::Confirmed, profile);
        Self {
            archive: Archive::new(schema.clone(), HISTORY),
            encoder: Encoder::new(schema.clone(), config),
            decoder: Decoder::new(schema, config),
            tick: 0,
        }
    }

    fn spawn(&mut self, page: &Page) -> (Slot, NetEntityId) {
        self.tick += 1;
        let mut capture = self.archive.begin(Tick(self.tick.into())).unwrap();
        let slot = capture.spawn_parcel(0, &page.to_parcel("default")).unwrap();
        capture.finish();
        (slot, self.encoder.show(slot, &self.archive).unwrap())
    }

    fn write(&mut self, slot: Slot, page: &Page) {
        self.tick += 1;
        let mut capture = self.archive.begin(Tick(self.tick.into())).unwrap();
        capture
            .write_parcel(slot, &page.to_parcel("default"))
            .unwrap();
        capture.finish();
    }

    fn pause(&mut self) {
        self.tick += 1;
        self.archive.begin(Tick(self.tick.into())).unwrap().finish();
    }

    fn send(&mut self, arrives: bool, comes_back: bool) {
        let packet = self.encoder.encode(&self.archive, None).unwrap();
        if arrives {
            self.decoder.decode(&packet.bytes).unwrap();
            assert_eq!(self.encoder.digest(), self.decoder.digest());
            if comes_back {
                let ack = self.decoder.acknowledgement().unwrap();
                self.encoder.acknowledge(&ack, &self.archive).unwrap();
            }
        }
    }

    fn read(&self, id: NetEntityId) -> Page {
        let row = self.decoder.row(id).unwrap();
        Page::from_row_in("default", row, self.decoder.world()).unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(debug_assertions) { 24 } else { 300 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edits_arrive_whatever_is_lost(
        edits in proptest::collection::vec((0usize..3, edit()), 1..250),
        seed in any::<u64>(),
        best in any::<bool>(),
    ) {
        let mut random = Random::new(seed);
        let mut ends = Ends::new(if best { Profile::Best } else { Profile::Default });
        let mut pages: Vec<(Slot, NetEntityId, Page)> = Vec::new();
        for author in ["Ann", "Ben", "Ann"] {
            let page = Page { author: author.into(), ..Page::default() };
            let (slot, id) = ends.spawn(&page);
            pages.push((slot, id, page));
        }
        let mut edits = edits.into_iter().peekable();
        while edits.peek().is_some() {
            ends.tick += 1;
            let mut capture = ends.archive.begin(Tick(ends.tick.into())).unwrap();
            for (at, edit) in edits.by_ref().take(random.below(4) as usize) {
                let (slot, _, page) = &mut pages[at];
                edit.apply(page);
                capture.write_parcel(*slot, &page.to_parcel("default")).unwrap();
            }
            capture.finish();
            let packet = ends.encoder.encode(&ends.archive, None).unwrap();
            if random.chance(20) {
                continue;
            }
            ends.decoder.decode(&packet.bytes).unwrap();
            prop_assert_eq!(ends.encoder.digest(), ends.decoder.digest());
            for (_, id, page) in &pages {
                prop_assert_eq!(&ends.read(*id), page);
            }
            if !random.chance(20) {
                let ack = ends.decoder.acknowledgement().unwrap();
                ends.encoder.acknowledge(&ack, &ends.archive).unwrap();
            }
        }
    }
}

#[test]
fn what_the_last_of_its_class_held_is_remembered() {
    let mut ends = Ends::new(Profile::Default);
    let page = Page {
        title: "The same for everyone".into(),
        marks: (0..100).collect(),
        ..Page::default()
    };
    let (first, _) = ends.spawn(&page);
    for _ in 0..10 {
        ends.send(true, true);
        ends.pause();
    }
    let mut capture = ends.archive.begin(Tick((ends.tick + 1).into())).unwrap();
    capture.despawn(first).unwrap();
    capture.finish();
    ends.tick += 1;
    // Long enough for both archives to drop it.
    for _ in 0..3 * HISTORY {
        ends.send(true, true);
        ends.pause();
    }
    let (_, id) = ends.spawn(&page);
    let packet = ends.encoder.encode(&ends.archive, None).unwrap();
    assert!(packet.bytes.len() < 20, "{} bytes", packet.bytes.len());
    ends.decoder.decode(&packet.bytes).unwrap();
    assert_eq!(ends.read(id), page);
}

#[test]
fn what_an_entity_rested_at_can_come_back_after_any_time() {
    let mut ends = Ends::new(Profile::Default);
    let at_rest = Page {
        title: "first".into(),
        image: (0..100).collect(),
        ..Page::default()
    };
    let (slot, id) = ends.spawn(&at_rest);
    for _ in 0..120 {
        ends.send(true, true);
        ends.pause();
    }
    assert_eq!(ends.encoder.estimate(slot, &ends.archive), Some(0));
    let mut page = at_rest.clone();
    page.title = "second".into();
    page.image.clear();
    ends.write(slot, &page);
    // Everything arrives, but no acknowledgement does.
    for _ in 0..2 * HISTORY {
        ends.send(true, false);
        assert_eq!(ends.read(id), page);
        ends.pause();
    }
    page.title = "third".into();
    page.image = at_rest.image.clone();
    ends.write(slot, &page);
    ends.send(true, false);
    assert_eq!(ends.read(id), page);
    for _ in 0..2 * HISTORY {
        ends.pause();
        ends.send(true, false);
    }
    // Back to its old value: there is nothing to send.
    ends.write(slot, &at_rest);
    ends.send(true, false);
    assert_eq!(ends.read(id), at_rest);
    for _ in 0..100 {
        ends.pause();
        ends.send(true, true);
        assert_eq!(ends.read(id), at_rest);
    }
}

#[test]
fn contents_that_are_unknown_or_wrong_are_refused() {
    let mut ends = Ends::new(Profile::Default);
    let page = Page {
        title: "known".into(),
        ..Page::default()
    };
    ends.tick += 1;
    let mut capture = ends.archive.begin(Tick(1)).unwrap();
    let unknown = page.to_row("default");
    let cell = unknown[0];
    assert_eq!(
        capture.spawn(0, &unknown),
        Err(CaptureError::UnknownContent { field: 0, cell })
    );
    let slot = capture
        .spawn(0, &Page::default().to_row("default"))
        .unwrap();
    assert_eq!(
        capture.set(slot, 0, cell),
        Err(CaptureError::UnknownContent { field: 0, cell })
    );
    let cell = capture.intern(Content::Bytes([0xFF, 0xFE].into())).unwrap();
    assert_eq!(
        capture.set(slot, 0, cell),
        Err(CaptureError::WrongContent { field: 0, cell })
    );
    // The same bytes are an image.
    capture.set(slot, 1, cell).unwrap();
    let unsorted = capture.intern(Content::Cells([5, 3].into())).unwrap();
    assert!(capture.set(slot, 7, unsorted).is_err());
    capture.set(slot, 2, unsorted).unwrap();
    capture.finish();
    let id = ends.encoder.show(slot, &ends.archive).unwrap();
    ends.send(true, true);
    let read = ends.read(id);
    assert_eq!(read.image, [0xFF, 0xFE]);
    assert_eq!(read.marks, [5, 3]);
}
