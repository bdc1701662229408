//! Real sockets, and clients whose schema or settings differ from the server's.
#![allow(unreachable_pub, reason = "a module of a program of its own")]

use crate::common::{bind, join, run, token};
use prescient::{
    Client, ClientConfig, ClientEvent, ClientOptions, Config, JoinError, Policy, Profile, Schema,
    ServerConfig, ServerEvent, ServerOptions, SettingsMismatch, State, Tolerance,
};
use prescient_schema::{Difference, Side};

mod old {
    use super::*;

    #[derive(State, Clone, Debug, PartialEq)]
    #[state(rename = "car")]
    pub struct Car {
        #[state(step = 0.01)]
        pub speed: f32,
        pub fuel: u8,
    }
}

mod new {
    use super::*;

    #[derive(State, Clone, Debug, PartialEq)]
    #[state(rename = "car")]
    pub struct Car {
        #[state(optional)]
        pub doors: u8,
        #[state(step = 0.01)]
        pub speed: f32,
        pub fuel: u8,
    }
}

fn old_schema() -> Schema {
    Schema::of::<old::Car>().expect("sound")
}

fn new_schema() -> Schema {
    Schema::of::<new::Car>().expect("sound")
}

fn options(replication: ServerConfig) -> ServerOptions {
    ServerOptions::default().with_replication(replication)
}

fn tolerant(tolerance: Tolerance) -> (ServerOptions, ClientOptions) {
    let server = options(ServerConfig::default().with_tolerance(tolerance));
    let client = ClientOptions::default()
        .with_replication(ClientConfig::default().with_tolerance(tolerance));
    (server, client)
}

/// Fails if `Client::begin` of the replication keeps its own settings: then refused packets are not
/// applied.
#[test]
fn the_server_alone_decides_how_state_is_coded() {
    for (policy, profile) in [
        (Policy::Confirmed, Profile::Best),
        (Policy::Stateless, Profile::Default),
    ] {
        let codec = Config::default().with_policy(policy).with_profile(profile);
        let replication = ServerConfig::default().with_codec(codec);
        let mut server = bind(old_schema(), options(replication));
        let car = old::Car {
            speed: 2.5,
            fuel: 9,
        };
        let mut step = server.step().expect("the first");
        step.spawn(&car).expect("sound");
        step.finish();
        let mut clients = Vec::new();
        for _ in 0..3 {
            let token = token(&server);
            let (client, _) = join(&mut server, || Client::join(token, old_schema()));
            clients.push(client.expect("it understands"));
        }
        let shown = |client: &Client| {
            let entity = client.entities().next()?;
            client.get::<old::Car>(entity)
        };
        run(&mut server, &mut clients, |_, clients| {
            clients.iter().all(|client| shown(client).is_some())
        });
        for client in &clients {
            assert_eq!(shown(client), Some(car.clone()));
            assert_eq!(client.view_statistics().refused, 0);
        }
    }
}

/// An older client at a newer server, which has one field more. Fails if `Client::start_with`
/// ignores the client's options.
#[test]
fn an_old_client_reads_what_a_new_server_shows() {
    let (server_options, client_options) = tolerant(Tolerance::Additive);
    let mut server = bind(new_schema(), server_options);
    let (doors, fuel, speed) = (4, 9, 2.5);
    let mut step = server.step().expect("the first");
    let car = step.spawn(&new::Car { doors, fuel, speed }).expect("sound");
    step.finish();
    let token = token(&server);
    let joining = move || Client::join_with(token, old_schema(), client_options);
    let (client, _) = join(&mut server, joining);
    let mut clients = [client.expect("both are tolerant")];
    let mut speed = speed;
    run(&mut server, &mut clients, |server, clients| {
        let entity = clients[0].entities().next();
        let shown: Option<old::Car> = entity.and_then(|entity| clients[0].get(entity));
        if shown == Some(old::Car { speed: 4.5, fuel }) {
            return true;
        }
        speed = (speed + 0.25).min(4.5);
        let mut step = server.step().expect("in order");
        step.set(car, &new::Car { doors, fuel, speed })
            .expect("there");
        step.finish();
        false
    });
}

/// Fails if either end adopts the other's tolerance: then an end that requires its exact schema is
/// shown another.
#[test]
fn an_intolerant_end_gets_the_differences() {
    for (at_server, at_client) in [
        (Tolerance::Exact, Tolerance::Additive),
        (Tolerance::Additive, Tolerance::Exact),
        (Tolerance::Exact, Tolerance::Exact),
    ] {
        let mut server = bind(new_schema(), tolerant(at_server).0);
        let (token, options) = (token(&server), tolerant(at_client).1);
        let joining = move || Client::join_with(token, old_schema(), options).map(drop);
        let (joined, mut events) = join(&mut server, joining);
        let doors = Difference::Field {
            class: "car".into(),
            field: "doors".into(),
            only: Side::Here,
        };
        let Err(JoinError::OtherSchema(differences)) = joined else {
            panic!("not refused by name: {joined:?}");
        };
        assert!(differences.contains(&doors));
        run(&mut server, &mut [], |server, _| {
            events.extend(std::iter::from_fn(|| server.poll()));
            !events.is_empty()
        });
        let [ServerEvent::OtherSchema { differences, .. }] = &events[..] else {
            panic!("not noticed: {events:?}");
        };
        assert!(differences.contains(&doors));
    }
}

/// Fails if `Client::handle` only counts settings that it cannot adopt and reports nothing, or
/// stays connected.
#[test]
fn what_a_client_cannot_take_over_has_a_name() {
    let codec = Config::default().with_max_entities(7000);
    let replication = ServerConfig::default().with_codec(codec);
    let options =
        ClientOptions::default().with_replication(ClientConfig::default().with_max_entities(600));
    let mismatch = SettingsMismatch::MaxEntities {
        server: 7000,
        client: 600,
    };
    let mut server = bind(old_schema(), self::options(replication));
    let first = token(&server);
    let same = options.clone();
    let joining = move || Client::join_with(first, old_schema(), same).map(drop);
    let (joined, _) = join(&mut server, joining);
    let Err(JoinError::OtherSettings(named)) = joined else {
        panic!("not refused by name: {joined:?}");
    };
    assert_eq!(named, mismatch);
    assert!(named.to_string().contains("7000") && named.to_string().contains("600"));

    let client = Client::start_with(token(&server), old_schema(), options);
    let mut clients = [client.expect("it begins")];
    run(&mut server, &mut clients, |server, clients| {
        while server.poll().is_some() {}
        clients[0].poll() == Some(ClientEvent::OtherSettings(mismatch))
    });
    assert_eq!(clients[0].entities().count(), 0);
    run(&mut server, &mut [], |server, _| {
        while server.poll().is_some() {}
        server.peers().next().is_none()
    });
}

/// An audit report that is too long for one message and for the room there is at once. Fails if
/// `audit::write` does not split it, or `Client::send_messages` drops what there is no room for.
#[test]
fn a_client_that_shows_much_can_say_so() {
    let mut server = bind(old_schema(), ServerOptions::default());
    let mut step = server.step().expect("the first");
    for fuel in 0..8000 {
        let fuel = fuel as u8;
        step.spawn(&old::Car { speed: 1.0, fuel }).expect("sound");
    }
    step.finish();
    let token = token(&server);
    let exchange = prescient::ExchangeConfig::default().with_backlog(40 << 10);
    let link = prescient::LinkConfig::default().with_exchange(exchange);
    let options = ClientOptions::default().with_link(link);
    let joining = move || Client::join_with(token, old_schema(), options);
    let (client, events) = join(&mut server, joining);
    let mut clients = [client.expect("a server")];
    let mut events = events.into_iter();
    let Some(ServerEvent::Joined { peer, .. }) = events.next() else {
        panic!("no client joined");
    };
    run(&mut server, &mut clients, |server, clients| {
        while server.poll().is_some() {}
        while clients[0].poll().is_some() {}
        clients[0].entities().count() == 8000
    });
    server.audit(peer).expect("it is here");
    let mut parts = Vec::new();
    run(&mut server, &mut clients, |server, clients| {
        while clients[0].poll().is_some() {}
        while let Some(event) = server.poll() {
            if let ServerEvent::AuditReport {
                differences, last, ..
            } = event
            {
                assert_eq!(differences, []);
                parts.push(last);
            }
        }
        parts.last() == Some(&true)
    });
    // 30 bytes per entity, and 16 KiB per part.
    assert_eq!(parts.len(), (8000usize * 30).div_ceil(16 << 10));
    assert_eq!(clients[0].view_statistics().too_long, 0);
}
