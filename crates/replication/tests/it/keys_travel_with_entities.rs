//! The keys that a player holds down are written to its entities, so that clients that see them can
//! simulate them.

use crate::common;

use crate::common::encode;

use prescient_replication::{Client, Everything, PeerId, Room, Server, ServerConfig, Tick};
use prescient_schema::{Ref, Schema, State};

#[derive(State, Clone, Debug, Default, PartialEq)]
#[state(tables(public, private))]
struct Walker {
    #[state(step = 0.01, position, tables(public))]
    x: f32,
    #[state(keys, tables(public))]
    keys: u8,
}

const ANN: PeerId = PeerId(1);
const BOB: PeerId = PeerId(2);

struct Game {
    server: Server,
    client: Client,
    tick: u32,
}

impl Game {
    fn new() -> Self {
        let schema = || Schema::of::<Walker>().expect("a sound schema");
        let mut server = Server::new(schema(), ServerConfig::default(), Everything).expect("sound");
        server.connect(ANN);
        server.connect(BOB);
        let mut client = Client::new(schema(), Default::default()).expect("sound");
        common::greet(&mut server, BOB, &mut client);
        Self {
            server,
            client,
            tick: 0,
        }
    }

    fn step<R>(&mut self, act: impl FnOnce(&mut prescient_replication::WorldStep<'_>) -> R) -> R {
        self.tick += 1;
        let mut step = self.server.step(Tick(self.tick.into())).expect("in order");
        act(&mut step)
    }

    /// The keys of all walkers that Bob sees, in the order in which they appeared.
    fn seen(&mut self) -> Vec<u8> {
        for (peer, message) in encode(&mut self.server, &|_| Room::UNLIMITED) {
            if peer == BOB {
                self.client.handle(&message).expect("an honest packet");
            }
        }
        let entities: Vec<_> = self.client.entities().collect();
        let walkers = entities
            .into_iter()
            .map(|entity| self.client.get::<Walker>(entity));
        walkers
            .map(|walker| walker.expect("a walker").keys)
            .collect()
    }
}

fn spawn(game: &mut Game, owner: Option<PeerId>, keys: u8) -> Ref<Walker> {
    let walker = Walker { x: 0.0, keys };
    game.step(|step| match owner {
        Some(owner) => step.spawn_for(owner, &walker),
        None => step.spawn(&walker),
    })
    .expect("sound")
}

/// Fails if `WorldStep::write_input_state` does nothing (then an entity that is not set keeps its
/// keys for ever), if `set` or `spawn_for` write the program's own keys over the owner's
/// (`stored_row` without `keys`), or if keys beyond the bits of the field are not cut off.
#[test]
fn the_keys_of_an_owner_are_visible_in_its_entities() {
    let mut game = Game::new();
    let own = spawn(&mut game, Some(ANN), 0b11);
    spawn(&mut game, None, 0b111);
    assert_eq!(game.seen(), [0b11, 0b111], "no key was pressed yet");

    game.server
        .set_keys(ANN, 0b1_0000_0101)
        .expect("she is connected");
    assert_eq!(game.server.keys(ANN), Some(0b1_0000_0101));
    game.step(|_| ());
    assert_eq!(game.seen(), [0b101, 0b111], "without being set");
    let walker = Walker { x: 1.0, keys: 0b11 };
    game.step(|step| step.set(own, &walker)).expect("sound");
    assert_eq!(game.seen(), [0b101, 0b111], "nor is it overwritten");
    spawn(&mut game, Some(ANN), 0);
    assert_eq!(game.seen(), [0b101, 0b111, 0b101], "and from the start");
}

/// Fails if `set_owner` does not write the new owner's keys, or if `InputState::release` is not
/// called: then the entities of a player that leaves while running run for ever.
#[test]
fn keys_change_hands_and_end() {
    let mut game = Game::new();
    let walker = spawn(&mut game, Some(ANN), 0);
    game.server.set_keys(ANN, 1).expect("she is connected");
    game.server.set_keys(BOB, 2).expect("he is connected");
    game.step(|_| ());
    assert_eq!(game.seen(), [1]);
    let given = game.step(|step| step.set_owner(walker.entity_ref(), Some(BOB)));
    given.expect("it is there");
    assert_eq!(game.seen(), [2]);
    let given = game.step(|step| step.set_owner(walker.entity_ref(), Some(ANN)));
    given.expect("it is there");
    assert_eq!(game.seen(), [1]);

    game.server.disconnect(ANN);
    game.step(|_| ());
    assert_eq!(game.seen(), [0]);
    assert_eq!(game.server.keys(ANN), None);
    assert!(game.server.set_keys(ANN, 1).is_err());
    let walker_of_the_program = Walker { x: 0.0, keys: 9 };
    game.step(|step| step.set(walker, &walker_of_the_program))
        .expect("sound");
    assert_eq!(
        game.seen(),
        [9],
        "without an owner, the keys are the program's own"
    );
    game.step(|step| step.despawn(walker.entity_ref()))
        .expect("it is there");
    assert_eq!(game.seen(), [] as [u8; 0]);
}
