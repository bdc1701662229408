//! What a server recorded of its world, and a view recorder of a client, is what both had.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use prescient::recording::{Player, Recording, RecordingConfig};
use prescient::{Everything, RecordingError, Ref, Schema, Server, State, ViewRecorder};

#[derive(State, Clone, Debug, PartialEq)]
struct Guard {
    #[state(step = 0.01, position)]
    position: [f32; 2],
    #[state(max_len = 20)]
    orders: String,
    follows: Ref<Guard>,
}

/// A file that the test can read while the server has it.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn guard(number: u32, tick: u32, follows: Ref<Guard>) -> Guard {
    Guard {
        position: [number as f32 * 3.0, (tick * (1 + number)) as f32 * 0.05],
        orders: format!("post {}", (tick / 7 + number) % 5),
        follows,
    }
}

/// What both ends have at a tick, without references: the two ends name entities differently.
type Seen = BTreeMap<u64, Vec<([i32; 2], String)>>;

/// A guard's position in steps, and its orders.
fn seen(guard: Guard) -> ([i32; 2], String) {
    let steps = guard.position.map(|axis| (axis * 100.0).round() as i32);
    (steps, guard.orders)
}

/// Fails if `Server::send` does not record, if `ViewRecorder` keeps entities that are gone, or if it
/// drops the contents of containers.
#[test]
fn a_server_and_a_client_are_recorded() {
    let schema = Schema::of::<Guard>().unwrap();
    let mut server = Server::offline(schema.clone(), Everything).unwrap();
    let file = Shared::default();
    server.record(file.clone()).unwrap();
    let mut client = server.local_client();
    let mut view = ViewRecorder::new(&schema, RecordingConfig::default()).unwrap();
    let mut view_bytes = view.take_bytes();
    let (mut guards, mut truth, mut shown) = (Vec::new(), Seen::new(), Seen::new());
    for tick in 1..200u32 {
        let mut step = server.step().unwrap();
        if tick % 5 == 1 {
            guards.push(step.spawn(&guard(tick, tick, Ref::NONE)).unwrap());
        }
        if tick % 11 == 0 {
            step.despawn(guards.remove(0).entity_ref()).unwrap();
        }
        let mut values = Vec::new();
        for (number, &entity) in (0..).zip(&guards) {
            let leader = guards[(number as usize + 1) % guards.len()];
            let value = guard(number, tick, leader);
            step.set(entity, &value).unwrap();
            values.push(seen(value));
        }
        step.finish();
        server.send();
        while client.poll().is_some() {}
        if view.record(&client).unwrap() {
            let now = client
                .entities()
                .filter_map(|entity| client.get::<Guard>(entity));
            let now = now.map(seen);
            let tick = client.tick().unwrap().0;
            shown.insert(tick, now.collect());
            view_bytes.extend(view.take_bytes());
        }
        while server.poll().is_some() {}
        truth.insert(tick.into(), values);
    }
    let written = server.stop_recording().unwrap().unwrap();
    assert_eq!(written.ticks, 199);
    view_bytes.extend(view.finish());
    let recorded = file.0.lock().unwrap().clone();
    assert!(shown.len() > 150, "the client showed {} ticks", shown.len());
    for (bytes, expected) in [(recorded, truth), (view_bytes, shown)] {
        let recording = Arc::new(Recording::open(bytes).unwrap());
        assert!(recording.is_finished());
        let mut player = Player::new(recording);
        for (tick, mut values) in expected {
            assert_eq!(player.step_forward(), Ok(Some(tick)));
            assert!(guards_are_linked(&player), "tick {tick}");
            let ids = player.entities().map(|(id, _)| id);
            let guards = ids.map(|id| player.get::<Guard>(id).unwrap());
            let mut played: Vec<_> = guards.map(seen).collect();
            played.sort();
            values.sort();
            assert_eq!(played, values, "tick {tick}");
        }
        assert_eq!(player.step_forward(), Ok(None));
    }
}

/// Whether every guard follows one that is there.
fn guards_are_linked(player: &Player) -> bool {
    player.entities().all(|(id, _)| {
        let guard: Guard = player.get(id).unwrap();
        let leader = guard.follows.entity_ref().cell() as u64;
        player
            .entity(prescient::recording::RecordedId(leader))
            .is_some()
    })
}

/// A disk that is full. Fails if `send` drops the error.
#[test]
fn a_full_disk_is_reported_and_does_not_stop_the_server() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.0.checked_sub(bytes.len()) {
                Some(left) => self.0 = left,
                None => return Err(io::Error::other("full")),
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut server = Server::offline(Schema::of::<Guard>().unwrap(), Everything).unwrap();
    server.record(Full(400)).unwrap();
    let entity = server
        .step()
        .unwrap()
        .spawn(&guard(1, 1, Ref::NONE))
        .unwrap();
    for tick in 2..400 {
        server
            .step()
            .unwrap()
            .set(entity, &guard(1, tick * tick % 991, Ref::NONE))
            .unwrap();
        server.send();
    }
    let ended = server.stop_recording().unwrap();
    assert!(matches!(ended, Err(RecordingError::Write(_))), "{ended:?}");
    assert!(server.stop_recording().is_none());
    assert!(server.record(Full(3)).is_err());
}
