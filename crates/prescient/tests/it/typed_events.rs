//! Events, questions and inputs of a program's own types.

use std::collections::BTreeMap;

use prescient::{
    ClientEvent, ClientId, CloseReason, Distance, EntityRef, Event, EventError, Everything,
    JoinError, PeerId, Position, Ref, Schema, Server, ServerEvent, State,
};

#[derive(State, Clone, Debug, PartialEq)]
struct Tank {
    #[state(step = 0.01, position)]
    position: [f32; 2],
    #[state(max_len = 20)]
    name: String,
}

#[derive(State, Clone, Debug, PartialEq)]
struct Flag {
    team: u8,
}

#[derive(State, Clone, Copy, Debug, PartialEq)]
enum Weapon {
    Gun,
    Mine,
}

#[derive(Event, Clone, Debug, PartialEq)]
struct Kill {
    killer: Ref<Tank>,
    victim: Ref<Tank>,
    weapon: Weapon,
    #[event(step = 0.5)]
    damage: f32,
}

#[derive(Event, Clone, Debug, PartialEq)]
enum Notice {
    Chat {
        from: EntityRef,
        #[event(max_len = 80)]
        text: String,
    },
    Scores(BTreeMap<u8, u32>),
    #[event(unordered)]
    Achievement(u16),
    #[event(unreliable)]
    Dust {
        #[event(step = 0.1)]
        at: [f32; 2],
    },
    #[event(sequenced)]
    Wind {
        #[event(bits = 9)]
        degrees: u16,
    },
    RoundOver,
}

#[derive(Event, Clone, Debug, PartialEq)]
#[event(answer = Bought)]
struct Buy {
    item: u8,
    for_whom: Option<Ref<Tank>>,
}

#[derive(Event, Clone, Debug, PartialEq)]
struct Bought {
    price: u32,
}

fn schema() -> Schema {
    let schema = Schema::of::<(Tank, Flag)>().expect("sound states");
    let schema = schema.with_events::<(Kill, Notice, Buy, Bought)>();
    schema.expect("sound events")
}

fn tank(x: f32) -> Tank {
    Tank {
        position: [x, 0.0],
        name: format!("tank {x}"),
    }
}

fn server() -> Server {
    Server::offline(schema(), Everything).expect("a sound schema")
}

/// Ends a tick, and returns what a client was told.
fn tick(server: &mut Server, client: &mut prescient::Client) -> Vec<ClientEvent> {
    server.step().expect("a tick").finish();
    server.send();
    let told = std::iter::from_fn(|| client.poll()).collect();
    while server.poll().is_some() {}
    told
}

fn read<T: Event>(events: &[ClientEvent]) -> Vec<T> {
    let read = |event: &ClientEvent| match event {
        ClientEvent::Typed(event) => event.read::<T>(),
        _ => None,
    };
    events.iter().filter_map(read).collect()
}

/// Every kind of field and every delivery arrives as it was sent, in one `match` or by type. Fails if
/// `event::expand` reads in another order than it writes, or if `encode_typed` leaves out the
/// delivery of a variant.
#[test]
fn events_arrive_as_they_were_sent() {
    let mut server = server();
    let mut client = server.local_client();
    let (one, two) = {
        let mut step = server.step().expect("a tick");
        let one = step.spawn(&tank(1.0)).expect("room");
        (one, step.spawn(&tank(2.0)).expect("room"))
    };
    for _ in 0..4 {
        tick(&mut server, &mut client);
    }
    let chat = Notice::Chat {
        from: one.entity_ref(),
        text: "hello, wörld".into(),
    };
    let sent = [
        chat,
        Notice::Scores([(1, 70), (2, 1_000_000)].into()),
        Notice::Achievement(517),
        Notice::Dust { at: [-3.5, 0.1] },
        Notice::Wind { degrees: 359 },
        Notice::RoundOver,
    ];
    for round in 0..50 {
        for notice in &sent {
            server.broadcast(notice).expect("a sound event");
        }
        let kill = Kill {
            killer: one,
            victim: two,
            weapon: Weapon::Mine,
            damage: round as f32 / 2.0,
        };
        server.broadcast(&kill).expect("a sound event");
        let told = tick(&mut server, &mut client);
        let kills: Vec<Kill> = read(&told);
        assert_eq!(kills.len(), 1);
        let victim = client.resolve(kills[0].victim).expect("it is visible");
        assert_eq!(client.get::<Tank>(victim), Some(tank(2.0)));
        assert_eq!(
            (kills[0].weapon, kills[0].damage),
            (kill.weapon, kill.damage)
        );
        let mut seen = Vec::new();
        for notice in read::<Notice>(&told) {
            seen.push(match notice {
                Notice::Chat { from, text } => {
                    let from = client.resolve(from).expect("it is visible");
                    assert_eq!(client.get::<Tank>(from), Some(tank(1.0)));
                    assert_eq!(text, "hello, wörld");
                    0
                }
                Notice::Scores(scores) => {
                    assert_eq!(scores[&2], 1_000_000);
                    1
                }
                Notice::Achievement(517) => 2,
                Notice::Dust { at: [-3.5, 0.1] } => 3,
                Notice::Wind { degrees: 359 } => 4,
                Notice::RoundOver => 5,
                other => panic!("{other:?}"),
            });
        }
        assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
    }
}

/// An event waits until its receiver knows the entities that it names, and names none that the
/// receiver cannot see. Events in order stay in order. Fails if `send_typed` does not wait, or if it
/// sends events in order past one that waits.
#[test]
fn events_name_what_the_receiver_sees() {
    let near = Distance::new(10.0, 10.0).expect("sound");
    let mut server = Server::offline(schema(), near).expect("a sound schema");
    let mut client = server.local_client();
    let Some(ServerEvent::Joined { peer, .. }) = server.poll() else {
        panic!("a local client has joined");
    };
    let origin = Position([0.0; 3]);
    server.set_view_position(peer, origin).expect("it is there");
    let hidden = server.step().expect("a tick").spawn(&tank(500.0));
    let hidden = hidden.expect("room");
    let (mut expected, mut kills) = (Vec::new(), Vec::new());
    for round in 0..40 {
        let victim = server.step().expect("a tick").spawn(&tank(1.0));
        let kill = Kill {
            killer: hidden,
            victim: victim.expect("room"),
            weapon: Weapon::Gun,
            damage: round as f32,
        };
        server.broadcast(&kill).expect("a sound event");
        expected.push(kill.damage);
        for _ in 0..3 {
            for kill in read::<Kill>(&tick(&mut server, &mut client)) {
                assert_eq!(kill.killer, Ref::NONE, "it is hidden");
                let victim = client.resolve(kill.victim).expect("it is visible");
                assert_eq!(client.get::<Tank>(victim), Some(tank(1.0)));
                kills.push(kill.damage);
            }
        }
    }
    assert_eq!(kills, expected);
    // To those who see an entity.
    let told = Notice::Achievement(1);
    server.tell_observers(hidden, &told).expect("it exists");
    assert!(read::<Notice>(&tick(&mut server, &mut client)).is_empty());
}

/// An event about an entity that is despawned in the same tick arrives with its last state, in
/// whichever order the two calls are made. Fails if `World::recent` does not know what was despawned
/// in this tick, if `name_before_update` does nothing, or if `keep_departed` does nothing.
#[test]
fn the_last_state_of_what_died_is_there() {
    let mut server = server();
    let mut client = server.local_client();
    for round in 0..20 {
        let mut step = server.step().expect("a tick");
        let killer = step.spawn(&tank(1.0)).expect("room");
        let victim = step.spawn(&tank(7.0)).expect("room");
        step.finish();
        for _ in 0..4 {
            tick(&mut server, &mut client);
        }
        let kill = Kill {
            killer,
            victim,
            weapon: Weapon::Gun,
            damage: 1.0,
        };
        if round % 2 == 0 {
            server.broadcast(&kill).expect("a sound event");
        }
        let mut step = server.step().expect("a tick");
        step.despawn(victim).expect("it lives");
        step.finish();
        if round % 2 == 1 {
            server.broadcast(&kill).expect("a sound event");
        }
        server.send();
        let mut kills = 0;
        while let Some(event) = client.poll() {
            if let ClientEvent::Typed(event) = event {
                let kill: Kill = event.read().expect("a kill");
                let victim = client.resolve(kill.victim).expect("the last state is kept");
                assert_eq!(client.get::<Tank>(victim), Some(tank(7.0)));
                assert!(!client.entities().any(|entity| entity == victim));
                kills += 1;
            }
        }
        assert_eq!(kills, 1, "round {round}");
        assert_eq!(client.all::<Tank>().count(), 1 + round);
        while server.poll().is_some() {}
    }
}

/// Clients send the same events, and ask; the server asks them. Fails if `Client::outgoing` leaves
/// out references, or if replies are matched by anything but their number.
#[test]
fn clients_tell_and_ask() {
    let mut server = server();
    let mut client = server.local_client();
    let one = server.step().expect("a tick").spawn(&tank(1.0));
    let one = one.expect("room");
    for _ in 0..4 {
        tick(&mut server, &mut client);
    }
    let (shown, _) = client.all::<Tank>().next().expect("it is visible");
    let own = client.reference(shown).expect("it is visible");
    let chat = Notice::Chat {
        from: own,
        text: "hi".into(),
    };
    client.tell(&chat).expect("a sound event");
    let buy = |item| Buy {
        item,
        for_whom: (item > 1).then_some(Ref::to(own)),
    };
    let asked = [1, 2].map(|item| client.ask(&buy(item)).expect("a sound question"));
    let mut happened = Vec::new();
    let mut open = Vec::new();
    while let Some(event) = server.poll() {
        match event {
            ServerEvent::Typed { event, .. } => {
                let Some(Notice::Chat { from, text }) = event.read() else {
                    panic!("{event:?}");
                };
                assert_eq!((from, &text[..]), (one.entity_ref(), "hi"));
                happened.push(0);
            }
            ServerEvent::Asked { peer, question } => {
                let (buy, to) = question.read::<Buy>().expect("it buys");
                assert_eq!(buy.for_whom, (buy.item > 1).then_some(one));
                open.push((peer, to, u32::from(buy.item)));
            }
            _ => {}
        }
    }
    assert_eq!((happened.len(), open.len()), (1, 2));
    let peer = open[0].0;
    for (peer, to, price) in open.into_iter().rev() {
        let bought = Bought { price };
        server.reply(peer, to, &bought).expect("a sound answer");
    }
    let for_one = Buy {
        item: 9,
        for_whom: Some(one),
    };
    let question = server.ask(peer, &for_one).expect("a sound question");
    let mut prices = BTreeMap::new();
    for event in tick(&mut server, &mut client) {
        match event {
            ClientEvent::Replied(reply) => {
                let Bought { price } = reply.read().expect("a price");
                prices.insert(reply.question(), price);
            }
            ClientEvent::Asked(question) => {
                let (buy, to) = question.read::<Buy>().expect("it buys");
                let for_whom = buy.for_whom.expect("it is named");
                assert_eq!(client.resolve(for_whom), Some(shown));
                client.reply(to, &Bought { price: 99 }).expect("an answer");
            }
            _ => {}
        }
    }
    assert_eq!(prices, [(asked[0], 1), (asked[1], 2)].into());
    let replied = std::iter::from_fn(|| server.poll()).find_map(|event| match event {
        ServerEvent::Replied { reply, .. } => Some((reply.question(), reply.read())),
        _ => None,
    });
    assert_eq!(replied, Some((question, Some(Bought { price: 99 }))));
}

/// Ends whose events differ do not meet, and both are told the event and the field. Fails if events
/// are not part of the fingerprint.
#[test]
fn ends_with_other_events_are_told_which() {
    mod newer {
        use super::{Bought, Event, Ref, State, Tank, Weapon};

        #[derive(Event)]
        #[event(unreliable)]
        pub(super) struct Kill {
            pub(super) killer: Ref<Tank>,
            pub(super) victim: Ref<Tank>,
            pub(super) weapon: Weapon,
            #[event(step = 0.25)]
            pub(super) damage: f32,
            pub(super) headshot: bool,
        }

        #[derive(State)]
        pub(super) struct Unused {
            pub(super) bought: bool,
        }

        pub(super) type Answer = Bought;
    }
    let _ = newer::Unused { bought: true };
    let states = || Schema::of::<(Tank, Flag)>().expect("sound states");
    let here = states().with_events::<Kill>().expect("sound events");
    let there = states().with_events::<(newer::Kill, newer::Answer)>();
    let there = there.expect("sound events");
    let mut server = Server::loopback("127.0.0.1:0", here, Everything).expect("a server");
    let address = server.address().expect("a socket").to_string();
    let joining = std::thread::spawn(move || prescient::Client::loopback(&address, there));
    let mut differences = Vec::new();
    while !joining.is_finished() {
        server.wait(std::time::Duration::from_millis(5));
        while let Some(event) = server.poll() {
            if let ServerEvent::OtherSchema {
                differences: of, ..
            } = event
            {
                differences = of;
            }
        }
        server.send();
    }
    let error = joining.join().expect("no panic").err().expect("refused");
    assert!(matches!(error, JoinError::OtherSchema(_)), "{error}");
    let told: Vec<String> = differences.iter().map(ToString::to_string).collect();
    let expected = [
        "event `Kill`, field `damage`: step 0.5 here, 0.25 there",
        "event `Kill`, field `headshot`: only there",
        "event `Kill`: delivery ordered here, unreliable there",
        "event `Bought`: only there",
    ];
    assert_eq!(told, expected);
    assert!(error.to_string().contains(expected[1]), "{error}");
}

/// What cannot be sent is refused with a reason, and nothing is sent. Fails if `outgoing` does not
/// look at the types of entities, or if `check` is not called.
#[test]
fn what_cannot_be_sent_is_an_error() {
    #[derive(Event)]
    struct Stranger;

    let mut server = server();
    let mut client = server.local_client();
    let Some(ServerEvent::Joined { peer, .. }) = server.poll() else {
        panic!("a local client has joined");
    };
    let flag = server.step().expect("a tick").spawn(&Flag { team: 1 });
    let flag = flag.expect("room").entity_ref();
    for _ in 0..4 {
        tick(&mut server, &mut client);
    }
    let unknown = EventError::UnknownEvent("Stranger".into());
    assert_eq!(server.broadcast(&Stranger), Err(unknown.clone()));
    assert_eq!(client.tell(&Stranger), Err(unknown));
    let wrong = |tank| Kill {
        killer: Ref::NONE,
        victim: tank,
        weapon: Weapon::Gun,
        damage: 0.0,
    };
    let error = server.tell(peer, &wrong(Ref::to(flag)));
    let wrong_reference = EventError::WrongReference("Kill.victim".into());
    assert_eq!(error, Err(wrong_reference.clone()));
    let (shown, _) = client.all::<Flag>().next().expect("it is visible");
    let shown = client.reference(shown).expect("it is visible");
    let error = client.tell(&wrong(Ref::to(shown)));
    assert_eq!(error, Err(wrong_reference));
    let long = Notice::Chat {
        from: EntityRef::NONE,
        text: "x".repeat(81),
    };
    let error = server.broadcast(&long).expect_err("80 are possible");
    let expected = "the value of `Notice::Chat.text` does not fit: it is longer than `max_len` \
                    (`saturate` would change it)";
    assert_eq!(error.to_string(), expected);
    let gone = EventError::NoSuchPeer(PeerId(77));
    assert_eq!(server.tell(PeerId(77), &Bought { price: 1 }), Err(gone));
    let long = (0..=255).map(|key| (key, u32::from(key).wrapping_mul(2_654_435_761)));
    let long = Notice::Scores(long.collect());
    server.broadcast(&long).expect("long, not too long");
    assert_eq!(read::<Notice>(&tick(&mut server, &mut client)), [long]);
}

/// A typed input reaches the server with the entity that it names. Fails if `typed_input` does not
/// resolve references.
#[test]
fn inputs_have_types() {
    #[derive(Event, Clone, Debug, PartialEq)]
    struct Aim {
        at: Option<Ref<Tank>>,
        #[event(step = 0.01)]
        turn: f32,
        fire: bool,
    }

    let schema = Schema::of::<Tank>().expect("sound").with_events::<Aim>();
    let schema = schema.expect("sound");
    let mut server = Server::offline(schema, Everything).expect("a sound schema");
    let mut client = server.local_client();
    let one = server.step().expect("a tick").spawn(&tank(1.0));
    let one = one.expect("room");
    for _ in 0..4 {
        tick(&mut server, &mut client);
    }
    let (shown, _) = client.all::<Tank>().next().expect("it is visible");
    let shown = Ref::to(client.reference(shown).expect("it is visible"));
    for round in 0..20 {
        let aim = Aim {
            at: (round % 2 == 0).then_some(shown),
            turn: round as f32 / 4.0,
            fire: round % 3 == 0,
        };
        client.press(round).expect("room");
        client.steer(&aim).expect("room");
        let mut inputs = Vec::new();
        while let Some(event) = server.poll() {
            if let ServerEvent::Input { peer, input, .. } = event {
                assert_eq!(server.keys(peer), round);
                inputs.extend(server.read_input::<Aim>(peer, &input));
            }
        }
        let at = aim.at.map(|_| one);
        assert_eq!(inputs, [Aim { at, ..aim }]);
    }
}

/// A client that the carrier refuses to serve any longer loses no event in order; one that joins late
/// gets only what is new. Fails if `EventCoders` are shared by peers.
#[test]
fn late_joiners_have_streams_of_their_own() {
    let mut server = server();
    let mut early = server.local_client_as(ClientId(1), Vec::new());
    for _ in 0..3 {
        tick(&mut server, &mut early);
    }
    let bought = |price| Bought { price };
    for price in 0..30 {
        server.broadcast(&bought(price)).expect("a sound event");
        assert_eq!(
            read::<Bought>(&tick(&mut server, &mut early)),
            [bought(price)]
        );
    }
    let mut late = server.local_client_as(ClientId(2), Vec::new());
    while server.poll().is_some() {}
    server.broadcast(&bought(7)).expect("a sound event");
    assert_eq!(read::<Bought>(&tick(&mut server, &mut late)), [bought(7)]);
    let told: Vec<ClientEvent> = std::iter::from_fn(|| early.poll()).collect();
    assert_eq!(read::<Bought>(&told), [bought(7)]);
    let left = |event: &ClientEvent| matches!(event, ClientEvent::Left(CloseReason::Violation));
    assert!(!told.iter().any(left));
}
