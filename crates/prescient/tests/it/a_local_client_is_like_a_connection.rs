//! Local clients: without any socket, and beside clients that have one.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use prescient::{
    About, Change, Client, ClientEvent, ClientId, CloseReason, Everything, Ref, Schema, SendError,
    Server, ServerEvent, State,
};

#[derive(State, Clone, Debug, PartialEq)]
struct Ball {
    #[state(step = 0.01, position)]
    position: [f32; 2],
}

fn schema() -> Schema {
    Schema::of::<Ball>().expect("a sound schema")
}

fn offline() -> Server {
    Server::offline(schema(), Everything).expect("a server")
}

fn events(server: &mut Server) -> Vec<ServerEvent> {
    std::iter::from_fn(|| server.poll()).collect()
}

fn happenings(client: &mut Client) -> Vec<ClientEvent> {
    std::iter::from_fn(|| client.poll()).collect()
}

fn spawn(server: &mut Server, position: [f32; 2]) -> Ref<Ball> {
    let mut step = server.step().expect("in order");
    step.spawn(&Ball { position }).expect("sound")
}

/// On one thread nothing waits: what was sent is visible after the next poll.
///
/// Fails if `Server::local_client_as` does not report the join, `Carriers::poll` skips the
/// local clients, or `Client::answer` sends nothing.
#[test]
fn a_game_alone_needs_no_socket_and_no_waiting() {
    let mut server = offline();
    assert_eq!(server.address(), None);
    let mut clients = [
        server.local_client(),
        server.local_client_as(ClientId(7), b"blue".to_vec()),
    ];
    let joined = events(&mut server);
    let [
        ServerEvent::Joined {
            peer: one,
            client: ClientId(0),
            ..
        },
        ServerEvent::Joined {
            peer: other,
            client: ClientId(7),
            data,
        },
    ] = &joined[..]
    else {
        panic!("not two joined: {joined:?}");
    };
    assert!(one != other && data == b"blue");

    let ball = spawn(&mut server, [1.0, 2.0]);
    server
        .send_entity_event(ball.entity_ref(), b"a ball")
        .expect("it is there");
    server.send();
    for client in &mut clients {
        let seen = happenings(client);
        let [ClientEvent::Change(Change::Created(entity))] = seen[..] else {
            panic!("not one ball: {seen:?}");
        };
        assert_eq!(
            client.get(entity),
            Some(Ball {
                position: [1.0, 2.0]
            })
        );
        client
            .send_event(Some(entity), b"mine")
            .expect("there is room");
    }
    let reported = events(&mut server);
    assert!(reported.iter().all(|event| matches!(event, ServerEvent::Event { about: About::Entity(entity), .. } if *entity == ball.entity_ref())));
    assert_eq!(reported.len(), 2);

    // The server knows now that they know the ball, and sends its event.
    server.step().expect("in order").finish();
    server.send();
    for client in &mut clients {
        let received = happenings(client);
        let [ClientEvent::Change(Change::Event { payload, .. })] = &received[..] else {
            panic!("not one event: {received:?}");
        };
        assert_eq!(payload, b"a ball");
    }
}

/// Fails if a dropped end does not close (`Drop` of `End`), or if `Carriers::close` skips the
/// local clients.
#[test]
fn each_end_sees_the_other_leave() {
    let mut server = offline();
    let leaving = [server.local_client(), server.local_client()];
    let mut kicked = server.local_client();
    let mut staying = server.local_client();
    let peers: Vec<_> = events(&mut server)
        .into_iter()
        .filter_map(|event| match event {
            ServerEvent::Joined { peer, .. } => Some(peer),
            _ => None,
        })
        .collect();
    let [one, other] = leaving;
    drop(one);
    other.leave();
    server.kick(peers[2]);
    let left = |peer, reason| ServerEvent::Left { peer, reason };
    assert_eq!(
        events(&mut server),
        [
            left(peers[0], CloseReason::Finished),
            left(peers[1], CloseReason::Finished),
            left(peers[2], CloseReason::Kicked),
        ]
    );
    let was_kicked = ClientEvent::Left(CloseReason::Kicked);
    assert_eq!(happenings(&mut kicked), [was_kicked]);
    assert_eq!(
        kicked.send_event(None, b"why?"),
        Err(SendError::NotConnected)
    );
    assert_eq!(server.peers().collect::<Vec<_>>(), [peers[3]]);
    server.shut_down();
    let shut_down = ClientEvent::Left(CloseReason::ShuttingDown);
    assert_eq!(happenings(&mut staying), [shut_down]);
}

/// Fails if `LocalClient::send` does not check the length of a local client's messages: then a
/// game finds out only from its first player on the network.
#[test]
fn what_is_too_long_for_others_is_too_long_for_a_local_client() {
    let mut server = offline();
    let mut client = server.local_client();
    let refused = client.send_event(None, &[0; 70_000]);
    assert!(matches!(refused, Err(SendError::TooLong { .. })));
    let long = [0; 60_000];
    let room = (0..100).take_while(|_| client.send_event(None, &long).is_ok());
    assert!(room.count() < 100, "what waits is bounded");
    let reported = events(&mut server);
    assert!(reported.len() > 10);
    client.send_event(None, &long).expect("there is room again");
}

/// Fails if `Client::press` reports keys that are still down as pressed, or if a local client
/// without room drops what was pressed meanwhile (`LocalClient::push_input`).
#[test]
fn a_press_is_reported_once() {
    let mut server = offline();
    let mut client = server.local_client();
    let [ServerEvent::Joined { peer, .. }] = events(&mut server)[..] else {
        panic!("no client joined");
    };
    for keys in [0b01, 0b11, 0b10, 0b10] {
        client.press(keys).expect("it has joined");
    }
    assert_eq!(server.keys(peer), 0);
    let pressed = |events: Vec<ServerEvent>| -> Vec<u64> {
        let bits = events.into_iter().map(|event| match event {
            ServerEvent::Input { input, .. } => input.pressed.bits(),
            _ => 0,
        });
        bits.collect()
    };
    assert_eq!(pressed(events(&mut server)), [0b01, 0b10, 0, 0]);
    assert_eq!(server.keys(peer), 0b10);

    while client.send_event(None, &[]).is_ok() {}
    // Inputs are the smallest messages, so the queue is full for anything.
    for keys in [0, 0b100, 0b1000, 0] {
        client.press(keys).expect("it has joined");
    }
    assert!(pressed(events(&mut server)).iter().all(|&keys| keys == 0));
    client.press(0).expect("it has joined");
    assert_eq!(pressed(events(&mut server)), [0b1100]);
}

/// Each client has its own thread. Fails if `Carriers::send` skips the local clients or the
/// socket.
#[test]
fn a_host_and_a_guest_see_the_same() {
    let mut server = Server::loopback("127.0.0.1:0", schema(), Everything).expect("a server");
    let address = server.address().expect("it has a socket").to_string();
    let host = server.local_client();
    let watching = [
        thread::spawn(move || watch(host)),
        thread::spawn(move || watch(Client::loopback(&address, schema()).expect("a server"))),
    ];
    show_both(server, watching);
}

/// Fails if `Carriers::poll` skips the local clients.
#[test]
fn two_local_clients_on_threads_of_their_own_see_the_same() {
    let mut server = offline();
    let local_clients = [server.local_client(), server.local_client()];
    let watching = local_clients.map(|client| thread::spawn(move || watch(client)));
    show_both(server, watching);
}

/// Runs the server until both clients have seen where the ball stops.
fn show_both(mut server: Server, watching: [JoinHandle<CloseReason>; 2]) {
    let mut ball = Ball { position: [0.0; 2] };
    let entity = spawn(&mut server, ball.position);
    let mut done = 0;
    for _ in 0..100_000 {
        server.wait(Duration::from_millis(2));
        for event in events(&mut server) {
            if let ServerEvent::Event { payload, .. } = event {
                assert_eq!(payload, b"I saw it at 3");
                done += 1;
            }
        }
        if done == 2 {
            break;
        }
        ball.position[0] = (ball.position[0] + 0.25).min(3.0);
        let mut step = server.step().expect("in order");
        step.set(entity, &ball).expect("sound");
        step.finish();
        server.send();
    }
    assert_eq!(done, 2);
    server.shut_down();
    for watching in watching {
        let reason = watching.join().expect("no panic");
        assert_eq!(reason, CloseReason::ShuttingDown);
    }
}

/// Sends where the ball stopped, and then waits for the end.
fn watch(mut client: Client) -> CloseReason {
    loop {
        client.wait(Duration::from_millis(5));
        for event in happenings(&mut client) {
            match event {
                ClientEvent::Change(Change::Created(entity) | Change::Updated(entity)) => {
                    if let Some(Ball { position: [3.0, _] }) = client.get(entity) {
                        let told = client.send_event(Some(entity), b"I saw it at 3");
                        told.expect("connected");
                    }
                }
                ClientEvent::Left(reason) => return reason,
                _ => {}
            }
        }
    }
}
