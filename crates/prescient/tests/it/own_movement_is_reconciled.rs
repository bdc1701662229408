//! Own movement in the lives of players: typed inputs, another tank, another world, a rest.

use prescient::playout::SeenTick;
use prescient::{
    Change, Client, ClientEvent, EntityHandle, Event, Everything, Owned, PeerId, PredictionError,
    Ref, Schema, Server, ServerEvent, ServerOptions, State,
};

use crate::common::{bind, join, run, token};

#[derive(State, Clone, Debug, PartialEq)]
#[state(predicted)]
struct Tank {
    #[state(step = 0.01, position)]
    x: f64,
    #[state(keys)]
    keys: u8,
}

#[derive(Event, Default)]
struct Drive {
    #[event(step = 0.01)]
    throttle: f64,
    seen: SeenTick,
}

/// What a tick of input does to a tank; both ends have this code.
fn drive(tank: &mut Tank, drive: &Drive) {
    tank.x += drive.throttle;
}

fn tank(x: f64) -> Tank {
    Tank { x, keys: 0 }
}

fn schema() -> Schema {
    let states = Schema::of::<Tank>().expect("a sound schema");
    states.with_events::<Drive>().expect("sound events")
}

fn throttle(throttle: f64) -> Drive {
    Drive {
        throttle,
        ..Drive::default()
    }
}

/// A server with a tank, and the client whose it is.
struct Game {
    server: Server,
    client: Client,
    peer: PeerId,
    entity: Ref<Tank>,
    tank: Tank,
}

impl Game {
    fn new() -> Self {
        let mut server = Server::offline(schema(), Everything).expect("sound");
        let client = server.local_client();
        let Some(ServerEvent::Joined { peer, .. }) = server.poll() else {
            panic!("a local client has joined");
        };
        let tank = tank(0.0);
        let spawned = server.step().expect("a tick").spawn_for(peer, &tank);
        let entity = spawned.expect("room");
        server.send();
        Self {
            server,
            client,
            peer,
            entity,
            tank,
        }
    }

    /// A tick of the server.
    fn tick(&mut self) {
        while let Some(event) = self.server.poll() {
            if let ServerEvent::Input { peer, input, .. } = event {
                let input = self.server.read_input(peer, &input).unwrap_or_default();
                drive(&mut self.tank, &input);
            }
        }
        let mut step = self.server.step().expect("a tick");
        step.set(self.entity, &self.tank).expect("it is there");
        step.finish();
        self.server.send();
    }

    /// What the client's player sees of its only tank.
    fn own(&mut self) -> EntityHandle {
        while self.client.poll().is_some() {}
        self.client.entities().next().expect("it is visible")
    }
}

/// Typed inputs are predicted as the server reads them, rounded, so that nothing is corrected; keys
/// that the server fills in are no correction either, and raw inputs move nothing.
///
/// Fails if `predict_typed` gives its step what was passed to `steer`, or if keys are compared.
#[test]
fn typed_inputs_are_predicted_as_the_server_reads_them() {
    let mut game = Game::new();
    let own = game.own();
    let predicted = game.client.predict_typed(own, drive);
    predicted.expect("it is visible");
    let mut expected = 0.0;
    for number in 0..200_u32 {
        if number.is_multiple_of(10) {
            let pressed = game.client.press(u64::from(number / 10 % 8));
            pressed.expect("connected");
        }
        let by = f64::from(number % 7) / 3.0;
        expected += (by * 100.0).round() / 100.0;
        let steered = game.client.steer(&throttle(by));
        steered.expect("connected");
        let shown: Tank = game.client.shown(own).expect("it is predicted");
        assert!((shown.x - expected).abs() < 1e-6, "in the same frame");
        // The server is three inputs late.
        if number.is_multiple_of(3) {
            game.tick();
            while game.client.poll().is_some() {}
        }
    }
    let statistics = game.client.prediction_statistics(own).expect("predicted");
    assert!(statistics.confirmed > 60, "{statistics:?}");
    assert_eq!(statistics.corrected, 0, "{statistics:?}");
    assert_eq!(game.client.prediction_error(own), None);
}

/// A player whose tank is replaced while inputs are on their way goes on without a correction, and
/// what was removed is not predicted again.
///
/// Fails if `predict` forgets the inputs that no state has consumed, or accepts what can only be read
/// because it was removed.
#[test]
fn another_tank_takes_the_inputs_that_are_on_their_way() {
    let mut game = Game::new();
    let first = game.own();
    game.client.predict_typed(first, drive).expect("visible");
    for _ in 0..3 {
        game.client.steer(&throttle(1.0)).expect("connected");
    }
    // It is hit before they arrive.
    let mut step = game.server.step().expect("a tick");
    step.despawn(game.entity).expect("it is there");
    game.tank = tank(50.0);
    game.entity = step.spawn_for(game.peer, &game.tank).expect("room");
    step.finish();
    game.server.send();
    let mut second = None;
    while let Some(event) = game.client.poll() {
        match event {
            ClientEvent::Change(Change::Created(entity)) => second = Some(entity),
            ClientEvent::Change(Change::Removed(entity)) => {
                assert_eq!(entity, first);
                assert!(game.client.get::<Tank>(first).is_some(), "it can be read");
                let refused = game.client.predict_typed(first, drive);
                assert_eq!(refused, Err(PredictionError::NoSuchEntity));
                let refused = game.client.simulate(first, |_: &mut Tank, _, _| {});
                assert_eq!(refused, Err(PredictionError::NoSuchEntity));
            }
            _ => {}
        }
    }
    assert_eq!(game.client.prediction_statistics(first), None);
    let second = second.expect("there is another one");
    game.client.predict_typed(second, drive).expect("visible");
    let shown = |client: &mut Client| client.shown::<Tank>(second).expect("predicted").x;
    assert_eq!(shown(&mut game.client), 53.0);
    game.client.steer(&throttle(1.0)).expect("connected");
    assert_eq!(shown(&mut game.client), 54.0);
    game.tick();
    while game.client.poll().is_some() {}
    let statistics = game.client.prediction_statistics(second);
    let statistics = statistics.expect("predicted");
    assert_eq!((statistics.confirmed, statistics.corrected), (1, 0));
    assert_eq!(shown(&mut game.client), 54.0);
}

/// What vanishes and returns is another entity to the client: its prediction has ended, and it is
/// shown as the server has it until it is predicted again. So it is in another world.
///
/// Fails if predictions outlive their entity (`note` ignores `Removed`), or the world.
#[test]
fn predictions_end_with_what_is_shown() {
    let mut server = Server::offline(schema(), Owned).expect("sound");
    let (mut client, _somebody_else) = (server.local_client(), server.local_client());
    let mut joined = || match server.poll() {
        Some(ServerEvent::Joined { peer, .. }) => peer,
        event => panic!("a local client has joined: {event:?}"),
    };
    let (peer, thief) = (joined(), joined());
    let other = server.open_world(Owned).expect("sound");
    let mut next = |client: &mut Client, change: &mut dyn FnMut(&mut Server)| {
        change(&mut server);
        server.send();
        while client.poll().is_some() {}
        while server.poll().is_some() {}
        client.entities().next()
    };
    let mut entity = None;
    let first = next(&mut client, &mut |server| {
        let spawned = server.step().expect("a tick").spawn_for(peer, &tank(1.0));
        entity = Some(spawned.expect("room"));
    });
    let first = first.expect("it is visible");
    let entity = entity.expect("it was spawned");
    client.predict_typed(first, drive).expect("visible");
    client.steer(&throttle(5.0)).expect("connected");
    let gone = next(&mut client, &mut |server| {
        let mut step = server.step().expect("a tick");
        step.set_owner(entity, Some(thief)).expect("it is there");
    });
    assert_eq!(gone, None);
    assert_eq!(client.shown::<Tank>(first), None);
    let again = next(&mut client, &mut |server| {
        let mut step = server.step().expect("a tick");
        step.set_owner(entity, Some(peer)).expect("it is there");
    });
    let again = again.expect("it has returned");
    assert_ne!(again, first);
    client.begin_frame();
    assert_eq!(client.shown(again), Some(tank(1.0)));
    assert_eq!(client.shown::<Tank>(first), None);
    client.predict_typed(again, drive).expect("visible");
    let elsewhere = next(&mut client, &mut |server| {
        server.move_to(peer, other).expect("both are there");
        let step = server.step_in(other).expect("it is open");
        let spawned = step.expect("a tick").spawn_for(peer, &tank(7.0));
        spawned.expect("room");
    });
    let elsewhere = elsewhere.expect("it is visible");
    assert_eq!(client.prediction_statistics(again), None);
    assert_eq!(client.prediction_statistics(elsewhere), None);
    client.begin_frame();
    assert_eq!(client.shown(elsewhere), Some(tank(7.0)));
}

/// A tank that rests is in no packet while packets are too small for everything that moves. Its
/// player can still move at once after any time.
///
/// Fails if `Prediction::confirm` ignores packets without the entity: after 128 inputs the 129th is
/// refused.
#[test]
fn a_tank_that_rested_moves_at_once() {
    let options = ServerOptions::default()
        .with_packet(100)
        .with_state_per_tick(100);
    let mut server = bind(schema(), options);
    let invited = token(&server);
    let (client, _) = join(&mut server, move || Client::join(invited, schema()));
    let mut clients = [client.expect("joined")];
    let mut step = server.step().expect("a tick");
    step.spawn(&tank(-1.0)).expect("room");
    let crowd: Vec<Ref<Tank>> = (0..400)
        .map(|number| step.spawn(&tank(f64::from(number))).expect("room"))
        .collect();
    step.finish();
    let (mut number, mut found, mut rested) = (0_u32, None, 0);
    run(&mut server, &mut clients, |server, clients| {
        let client = &mut clients[0];
        number += 1;
        let mut truth = None;
        while let Some(event) = server.poll() {
            if let ServerEvent::Input { peer, input, .. } = event {
                truth = server.read_input::<Drive>(peer, &input).or(truth);
            }
        }
        assert_eq!(truth.map_or(0.0, |truth| truth.throttle), 0.0);
        let mut step = server.step().expect("a tick");
        for (at, entity) in (0..).zip(&crowd) {
            let x = f64::from((number * 7919 + at * 104_729) % 9973);
            step.set(*entity, &tank(x)).expect("it is there");
        }
        step.finish();
        while client.poll().is_some() {}
        let is_own = |(_, tank): &(EntityHandle, Tank)| tank.x == -1.0;
        let own = found.or_else(|| client.all::<Tank>().find(is_own).map(|(it, _)| it));
        let Some(own) = own else {
            return false;
        };
        if found.replace(own).is_none() {
            client.predict_typed(own, drive).expect("visible");
        }
        client.steer(&throttle(0.0)).expect("connected");
        assert_eq!(client.prediction_error(own), None, "after {rested} inputs");
        rested += 1;
        rested == 400
    });
    let [client] = &mut clients;
    let shown = found.expect("it was visible");
    client.steer(&throttle(2.0)).expect("connected");
    assert_eq!(client.shown(shown), Some(tank(1.0)));
}
