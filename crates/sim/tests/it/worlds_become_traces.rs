//! A synthetic world that is written to a trace and read again is unchanged.

use crate::worlds::{RandomWorld, Shape};
use prescient_sim::{
    trace::{Reader, Writer},
    world::{Source, open},
};

#[test]
fn every_world_returns_from_its_trace() {
    let mut sources: Vec<Box<dyn Source>> = vec![
        open("world:particles?ticks=50&count=80").expect("a built-in world"),
        open("world:rts?ticks=50&count=80").expect("a built-in world"),
        open("world:idle?ticks=20&count=300&moving=20").expect("a built-in world"),
        Box::new(RandomWorld::new(4, Shape::Ordinary, 50)),
        Box::new(RandomWorld::new(4, Shape::Extreme, 50)),
    ];
    for source in &mut sources {
        let mut writer = Writer::new(Vec::new(), source.header()).expect("memory");
        let mut updates = Vec::new();
        while let Some(update) = source.next_tick().expect("a synthetic world") {
            writer.write(&update).expect("memory");
            updates.push(update);
        }
        let file = writer.finish().expect("memory");
        let mut reader = Reader::new(file.as_slice()).expect("a valid header");
        assert_eq!(reader.header(), source.header());
        for update in updates {
            assert_eq!(reader.next_tick().expect("valid lines"), Some(update));
        }
        assert_eq!(reader.next_tick().expect("the end"), None);
    }
}

#[test]
fn worlds_are_named_by_strings_with_options() {
    let ticks = |name: &str| {
        let mut source = open(name).expect("a built-in world");
        std::iter::from_fn(|| source.next_tick().expect("a synthetic world")).collect::<Vec<_>>()
    };
    assert_eq!(
        ticks("world:rts?ticks=7&seed=3"),
        ticks("world:rts?seed=3&ticks=7")
    );
    assert_ne!(
        ticks("world:rts?ticks=7&seed=3"),
        ticks("world:rts?ticks=7&seed=4")
    );
    assert_eq!(
        ticks("world:particles?ticks=3&count=12")[0].spawns.len(),
        12
    );
    for wrong in [
        "world:mars",
        "world:rts?size=3",
        "world:rts?ticks=x",
        "/no/such/file",
    ] {
        assert!(open(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_strategy_world_is_as_busy_as_it_claims() {
    let mut source = open("world:rts?ticks=600").expect("a built-in world");
    let mut world = prescient_sim::world::World::default();
    let (mut walking, mut fighting, mut total) = (0, 0, 0);
    while let Some(update) = source.next_tick().expect("a synthetic world") {
        let tick = update.tick;
        world.apply(update);
        if tick >= 200 {
            total += world.len();
            walking += world.iter().filter(|(_, unit)| unit.row[7] == 1).count();
            fighting += world.iter().filter(|(_, unit)| unit.row[7] == 2).count();
        }
    }
    let (walking, fighting) = (100 * walking / total, 100 * fighting / total);
    assert!((27..=33).contains(&walking), "{walking} %");
    assert!((4..=6).contains(&fighting), "{fighting} %");
}
