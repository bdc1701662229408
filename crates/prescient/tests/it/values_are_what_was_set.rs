//! What clients get is what was set, or setting it was refused.

use std::collections::BTreeMap;

use prescient::schema::Misfit;
use prescient::{
    About, Change, Client, ClientEvent, Everything, Ref, Schema, Server, ServerEvent, SetError,
    State, WorldError,
};

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Strict {
    #[state(step = 0.01)]
    x: f32,
    #[state(bits = 4)]
    ammunition: u8,
    #[state(float((10, 5, 15)))]
    half: f32,
    #[state(max_len = 8)]
    name: String,
    #[state(max_len = 2, bits = 4)]
    bag: Vec<u8>,
    #[state(max_len = 2, step = 0.5)]
    scores: BTreeMap<u8, f64>,
}

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Lenient {
    #[state(step = 0.01, saturate)]
    x: f32,
    #[state(bits = 4, saturate)]
    ammunition: u8,
    #[state(float((10, 5, 15)), saturate)]
    half: f32,
    #[state(max_len = 8, saturate)]
    name: String,
    #[state(max_len = 2, bits = 4, saturate)]
    bag: Vec<u8>,
    #[state(max_len = 2, step = 0.5, saturate)]
    scores: BTreeMap<u8, f64>,
}

fn schema() -> Schema {
    Schema::of::<(Strict, Lenient, Tank, Seen)>().expect("a sound schema")
}

fn offline() -> Server {
    Server::offline(schema(), Everything).expect("a sound schema")
}

fn changes(client: &mut Client) -> Vec<Change> {
    let change = |event| match event {
        ClientEvent::Change(change) => Some(change),
        _ => None,
    };
    std::iter::from_fn(|| client.poll())
        .filter_map(change)
        .collect()
}

/// Everything that does not fit is refused with its name, and the entity stays as it was. Fails if
/// `note_misfit` is left out where a value is written, or `with_rows` goes on nevertheless.
#[test]
fn a_value_that_does_not_fit_is_refused_by_name() {
    let mut server = offline();
    let good = Strict {
        ammunition: 15,
        half: f32::INFINITY,
        name: "Zoë".into(),
        bag: vec![15, 3],
        ..Strict::default()
    };
    let entity = server.step().expect("a tick").spawn(&good).expect("fits");
    let mut refused = |change: fn(&mut Strict), field: &str, misfit: Misfit| {
        let mut bad = good.clone();
        change(&mut bad);
        let field = format!("Strict.{field}");
        let error = WorldError::DoesNotFit { field, misfit };
        let mut step = server.step().expect("the same tick");
        assert_eq!(step.spawn(&bad), Err(error.clone()));
        assert_eq!(step.set(entity, &bad), Err(error));
    };
    refused(|it| it.x = f32::NAN, "x", Misfit::NotANumber);
    refused(|it| it.x = f32::INFINITY, "x", Misfit::OutOfRange);
    refused(|it| it.x = -3e7, "x", Misfit::OutOfRange);
    refused(|it| it.ammunition = 200, "ammunition", Misfit::OutOfRange);
    refused(|it| it.half = 1e6, "half", Misfit::OutOfRange);
    refused(|it| it.name = "123456789".into(), "name", Misfit::TooLong);
    refused(|it| it.bag = vec![1, 2, 3], "bag", Misfit::TooLong);
    refused(|it| it.bag = vec![16], "bag", Misfit::OutOfRange);
    refused(
        |it| it.scores = BTreeMap::from([(1, f64::NAN)]),
        "scores",
        Misfit::NotANumber,
    );
    let three = |it: &mut Strict| it.scores = [(1, 0.0), (2, 0.0), (3, 0.0)].into();
    refused(three, "scores", Misfit::TooLong);
    let (_, kept) = server.world().samples(entity).next_back().expect("there");
    assert_eq!(kept, good);
    assert_eq!(server.world().len(), 1);
    assert_eq!(server.saturated_values(), 0);
}

/// `saturate` changes values as documented, and counts each. Fails if one of them is not counted, or
/// is refused.
#[test]
fn a_field_that_saturates_counts_what_it_changes() {
    let mut server = offline();
    let mut client = server.local_client();
    let value = Lenient {
        x: f32::NAN,
        ammunition: 200,
        half: 1e6,
        name: "12345678é".into(),
        bag: vec![16, 2, 3],
        scores: [(1, 1e300), (2, 0.0), (3, 0.0)].into(),
    };
    server.step().expect("a tick").spawn(&value).expect("fits");
    server.send();
    changes(&mut client);
    let (_, seen) = client.all::<Lenient>().next().expect("it is shown");
    assert_eq!((seen.x, seen.ammunition), (0.0, 15));
    assert_eq!((seen.half, &*seen.name), (65504.0, "12345678"));
    assert_eq!(seen.bag, [15, 2]);
    assert_eq!(seen.scores.len(), 2);
    // Of the bag and the scores, a number and the length.
    assert_eq!(server.saturated_values(), 8);
}

/// Rounding to a step is what a step is for. Fails if `fit` takes rounding for a misfit.
#[test]
fn rounding_to_a_step_is_no_misfit() {
    let mut server = offline();
    for x in [0.001, 1.0 / 3.0, 21_474_836.0, -21_474_836.0] {
        let value = Strict {
            x,
            half: 0.1,
            ..Strict::default()
        };
        let spawned = server.step().expect("a tick").spawn(&value);
        spawned.expect("it fits");
    }
}

/// A client with authority is refused like a server. Fails if `AuthorityReporter::set` does not
/// check.
#[test]
fn clients_with_authority_are_refused_too() {
    let mut server = offline();
    let mut client = server.local_client();
    let Some(ServerEvent::Joined { peer, .. }) = server.poll() else {
        panic!("it joins");
    };
    let mut step = server.step().expect("a tick");
    let entity = step.spawn(&Strict::default()).expect("room");
    step.grant_authority(entity, peer).expect("it is there");
    step.finish();
    let mut mine = None;
    while mine.is_none() {
        server.step().expect("a tick").finish();
        server.send();
        for change in changes(&mut client) {
            if let Change::AuthorityChanged { entity, .. } = change {
                mine = Some(entity);
            }
        }
        while server.poll().is_some() {}
    }
    let mine = mine.expect("it has authority");
    let bad = Strict {
        ammunition: 16,
        ..Strict::default()
    };
    let refused = SetError::DoesNotFit {
        field: "Strict.ammunition".into(),
        misfit: Misfit::OutOfRange,
    };
    assert_eq!(client.set(mine, &bad), Err(refused));
    assert_eq!(client.get(mine), Some(Strict::default()));
}

#[derive(State, Clone, Debug, Default, PartialEq)]
#[state(tables(public, private))]
struct Tank {
    #[state(step = 0.01, position)]
    position: [f32; 2],
    #[state(tables(private))]
    ammunition: u8,
}

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Seen {
    shooter: Ref<Tank>,
}

/// Owners are not sent twice what everybody sees. Fails if a field without `tables` is in every
/// table.
#[test]
fn a_field_without_tables_is_in_the_first_only() {
    let schema = Schema::of::<Tank>().expect("a sound schema");
    let fields = schema.classes.iter().map(|class| class.fields.len());
    assert_eq!(fields.collect::<Vec<_>>(), [2, 1]);
}

fn tank(x: f32) -> Tank {
    Tank {
        position: [x, 0.0],
        ammunition: 7,
    }
}

/// An entity that is announced and despawned in one tick: the event is about it, with its last
/// state, and so is its removal. Fails if `at_or_departed` only looks at visible entities, or if
/// `keep_departing` is called after the tables are detached.
#[test]
fn the_last_state_of_an_entity_comes_with_its_end() {
    let mut server = offline();
    let mut client = server.local_client();
    let Some(ServerEvent::Joined { peer, .. }) = server.poll() else {
        panic!("it joins");
    };
    let mut step = server.step().expect("a tick");
    let doomed = step.spawn_for(peer, &tank(1.0)).expect("room");
    step.finish();
    for _ in 0..3 {
        server.step().expect("a tick").finish();
        server.send();
        changes(&mut client);
        while server.poll().is_some() {}
    }
    let (handle, _) = client.all::<Tank>().next().expect("it is shown");
    server.send_entity_event(doomed, b"boom").expect("there");
    let mut step = server.step().expect("a tick");
    step.set(doomed, &tank(2.5)).expect("there");
    step.finish();
    server.send_entity_event(doomed, b"boom").expect("there");
    server.send();
    let mut told = 0;
    for _ in 0..2 {
        while let Some(event) = client.poll() {
            match event {
                ClientEvent::Change(Change::Event { about, .. }) => {
                    assert_eq!(about, About::Entity(handle));
                    let last: Tank = client.get(handle).expect("its last state");
                    assert_eq!(last.position, [2.5, 0.0]);
                    let own: Tank = client.get_table(handle, "private").expect("the owner's");
                    assert_eq!(own.ammunition, 7);
                    told += 1;
                }
                ClientEvent::Change(Change::Removed(entity)) => {
                    assert_eq!(entity, handle);
                    assert_eq!(
                        client.get(entity).map(|it: Tank| it.position),
                        Some([2.5, 0.0])
                    );
                    told += 10;
                }
                _ => {}
            }
        }
        if told < 10 {
            server.send_entity_event(doomed, b"boom").expect("there");
            let step = server.step().expect("a tick").despawn(doomed);
            step.expect("there");
            server.send();
        }
    }
    assert_eq!(told, 13, "three events and the removal");
    assert_eq!(client.get::<Tank>(handle), None, "afterwards it is gone");
}
