//! A program whose schema is known only at run time writes and reads the same values by name and
//! row.

use crate::common;

use crate::common::{Unit, encode, schema};
use prescient_codec::history::CaptureError;
use prescient_replication::{
    Change, Client, Everything, PeerId, Room, Server, ServerConfig, Tick, WorldError,
};
use prescient_schema::{
    Class, Content, EntityRef, Field, FieldKind, Parcel, Ref, Schema, SchemaBuilder, State,
};

fn rows(unit: &Unit) -> [Parcel; 2] {
    ["public", "private"].map(|table| unit.to_parcel(table))
}

/// Encodes, delivers one packet and returns the visible entities.
fn pass(server: &mut Server, client: &mut Client) -> Vec<prescient_replication::EntityHandle> {
    for (peer, message) in encode(server, &|_| Room::UNLIMITED) {
        client.handle(&message).expect("honest");
        let ack = client.acknowledgement().expect("something arrived");
        server.handle(peer, &ack).expect("honest");
    }
    while let Some(change) = client.poll_change() {
        assert!(!matches!(change, Change::Event { .. }));
    }
    client.entities().collect()
}

fn test_server(schema: Schema) -> (Server, Client) {
    let config = ServerConfig::default();
    let mut server = Server::new(schema.clone(), config, Everything).expect("sound");
    server.connect(PeerId(1));
    let mut client = Client::new(schema, Default::default()).expect("sound");
    common::greet(&mut server, PeerId(1), &mut client);
    (server, client)
}

/// Values written by row are read by type and the other way round. Fails if `stored_row` does not
/// add the reference to a further table's row, or if `Client::row` does not remove it.
#[test]
fn rows_and_types_are_the_same_thing() {
    let (mut server, mut client) = test_server(schema());
    let mut unit = Unit {
        position: [1.0, 2.0],
        health: 7,
        gold: 300,
        ..Unit::default()
    };
    let mut step = server.step(Tick(1)).expect("in order");
    let spawned = step.spawn_rows("unit", Some(PeerId(1)), &rows(&unit));
    let entity = spawned.expect("sound values");
    step.finish();
    assert_eq!(server.world().position(entity).map(|at| at.0[1]), Some(2.0));
    let shown = pass(&mut server, &mut client)[0];
    assert_eq!(client.type_name(shown), Some("unit"));
    assert_eq!(client.get::<Unit>(shown).map(|unit| unit.health), Some(7));
    assert_eq!(client.row(shown, 1), Some(&[300][..]));
    assert_eq!(client.row(shown, 2), None);
    assert_eq!(client.tick_of(shown, 1), Some(Tick(1)));

    unit.gold = 301;
    unit.target = Ref::to(entity);
    let mut step = server.step(Tick(2)).expect("in order");
    step.set_rows(entity, &rows(&unit)).expect("sound values");
    step.finish();
    pass(&mut server, &mut client);
    let private: Option<Unit> = client.get_table(shown, "private");
    assert_eq!(private.map(|unit| unit.gold), Some(301));
    let target = client.row(shown, 0).and_then(|row| row.last().copied());
    let target = target.and_then(EntityRef::from_cell).expect("a reference");
    assert_eq!(client.resolve(target), Some(shown));

    let mut step = server.step(Tick(3)).expect("in order");
    step.despawn(entity).expect("it was there");
    step.finish();
    assert!(pass(&mut server, &mut client).is_empty());
    assert_eq!(
        (client.type_name(shown), client.row(shown, 0)),
        (None, None)
    );
    assert_eq!(client.tick_of(shown, 0), None);
}

/// Invalid values are refused, and valid ones stay. Fails if `set_rows` writes the first table
/// before it has checked the others, or if `spawn_rows` does not despawn the first again.
#[test]
fn nonsense_is_refused_and_changes_nothing() {
    let (mut server, mut client) = test_server(schema());
    let unit = Unit {
        gold: 5,
        ..Unit::default()
    };
    let good = rows(&unit);
    let mut step = server.step(Tick(1)).expect("in order");
    let entity = step.spawn_rows("unit", Some(PeerId(1)), &good);
    let entity = entity.expect("sound values");
    let mut short = good.clone();
    short[1].row.clear();
    let mut wide = good.clone();
    wide[0].row[2] = 77;
    wide[1].row[0] = 1 << 16;
    let mut stranger = good.clone();
    stranger[0].row[3] = EntityRef::new(9, 9).cell();
    let width = |expected, found| {
        let error = CaptureError::WrongLength { expected, found };
        Err(WorldError::Capture(error))
    };
    for (bad, error) in [
        (
            &good[..1],
            Err(WorldError::WrongTables {
                expected: 2,
                found: 1,
            }),
        ),
        (&short[..], width(1, 0)),
        (
            &wide[..],
            Err(WorldError::Capture(CaptureError::OutOfRange {
                field: 0,
                value: 1 << 16,
            })),
        ),
        (
            &stranger[..],
            Err(WorldError::Capture(CaptureError::WrongReference {
                field: 3,
                to: EntityRef::new(9, 9),
            })),
        ),
    ] {
        assert_eq!(step.set_rows(entity, bad), error);
        assert_eq!(step.spawn_rows("unit", None, bad).map(drop), error);
    }
    for name in ["unit.private", "", "nobody"] {
        let unknown = Err(WorldError::UnknownType(name.into()));
        assert_eq!(step.spawn_rows(name, None, &good), unknown);
    }
    let nobody = EntityRef::new(40, 0);
    let missing = Err(WorldError::NoSuchEntity(nobody));
    assert_eq!(step.set_rows(nobody, &good), missing);
    step.finish();
    assert_eq!(server.world().len(), 1);
    let entities = server.world().archive().living_slots();
    assert_eq!(entities.count(), 2, "one per table");
    let shown = pass(&mut server, &mut client);
    assert_eq!(client.row(shown[0], 0), Some(&good[0].row[..]));
    assert_eq!(client.row(shown[0], 1), Some(&[5][..]));
    assert_eq!(shown.len(), 1);
}

/// Contents are sent with their rows. Fails if `Client::content` uses another store.
#[test]
fn containers_have_their_contents() {
    let text = Field::new("name", FieldKind::Text { max_len: 20 });
    let class = Class::new("door", vec![text]);
    let schema = SchemaBuilder::new().class(class).build().expect("sound");
    let (mut server, mut client) = test_server(schema);
    let name = Content::Bytes(b"the blue door".as_slice().into());
    let row = Parcel {
        row: vec![name.cell()],
        contents: vec![name.clone()],
    };
    let mut step = server.step(Tick(1)).expect("in order");
    step.spawn_rows("door", None, &[row]).expect("sound values");
    step.finish();
    let shown = pass(&mut server, &mut client)[0];
    let cell = client.row(shown, 0).expect("shown")[0];
    assert_eq!(client.content(cell), Some(&name));
    assert_eq!(client.content(0), None);
    assert_eq!(client.content(77), None);
}
